"""How often a scan without signal shows somewhere what was seen: global p-values from toys.

    n_i ~ Poisson(sum_p (1+u_p)^z_p g_ip),  g_ip ~ Gamma(rows_ip + prior share_i, row_weight_ip)
    n(window) = sum over its elementary intervals i;  p0 from the table of the local p-values
    p_global(p) = share of toys whose smallest p0 is <= p
    bound:  p_global <= p + <N(Z0)> exp(-(Z^2 - Z0^2)/2)                          arXiv:1005.1891

Elementary intervals lie between neighbouring edges of all windows: one number for each makes
windows that overlap fluctuate together. share_i divides the prior of every window among its
intervals (they add up to 1 in each), so that the gammas of a window add up to its own. One z_p per
process and toy: the normalisation is common to the whole scan. N(Z0): how often Z rises through Z0
from one mass to the next; counts are whole numbers and Z is no chi-square process, which makes the
bound several times too high here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from limits.counts import table_holding
from limits.expectation import Expectation, Ints
from limits.significance import significance
from limits.toys import fill_toys
from models.results import Floats
from selection.errors import UserError

SMALLEST_P = 1e-12  # toys are looked up in a table that ends there
ROUNDING = 1e-9  # the same count in two tables has the same p0 but for rounding
CHUNK = 10_000  # toys between two looks at the keyboard


@dataclass(frozen=True, eq=False)
class ScanToys:
    """What toy scans without signal showed."""

    smallest_p: Floats  # (n_toys,) sorted
    upcrossings: float  # mean number per scan
    reference_z: float  # of the upcrossings


@dataclass(frozen=True, eq=False)
class GlobalP:
    """Global p-values; arrays of the shape of the local ones."""

    p: Floats
    error: Floats  # binomial; of (k+1)/(n+2) toys, so that it is not 0 where no toy is as extreme
    bound: Floats  # from upcrossings, at most 1


def elementary_intervals(low: Floats, high: Floats) -> Floats:
    """Sorted edges (n_intervals + 1,) of the pieces that all windows are made of.

    Gaps between windows are pieces too, which no window counts.
    """
    if low.shape != high.shape or low.ndim != 1 or not (low < high).all():
        msg = f"windows need low < high, one of each per mass; found {low.shape} and {high.shape}"
        raise ValueError(msg)
    return np.unique(np.concatenate([low, high]))


def interval_spans(low: Floats, high: Floats) -> Ints:
    """Elementary intervals [first, stop) of each window; (n_masses, 2)."""
    edges = elementary_intervals(low, high)
    return np.stack([np.searchsorted(edges, low), np.searchsorted(edges, high)], axis=1)


def prior_shares(low: Floats, high: Floats) -> Floats:
    """Non-negative share_i (n_intervals,) with sum 1 in every window, or as near as there is.

    Begins with width over width of the windows there, then multiplies each share by the mean of
    1/sum over the windows that hold it (maximum likelihood, expectation maximisation).
    """
    edges, spans = elementary_intervals(low, high), interval_spans(low, high)
    holders = _over_windows(np.ones(len(low)), spans, len(edges) - 1)
    inside = holders > 0
    share = np.diff(edges) * _mean_over_windows(1 / (high - low), spans, holders)
    for _ in range(2000):
        running = np.concatenate([[0.0], np.cumsum(share)])
        total = running[spans[:, 1]] - running[spans[:, 0]]
        if np.abs(total - 1).max() < 1e-6:
            break
        share = np.where(inside, share * _mean_over_windows(1 / total, spans, holders), 0.0)
    return share


def scan_toys(
    expectation: Expectation,
    windows: tuple[Floats, Floats],
    intervals: tuple[Floats, Floats],
    *,
    n_toys: int,
    seed: int,
    reference_z: float = 1.0,
    chunk: int = CHUNK,
) -> ScanToys:
    """Toys of the whole scan; the same for any chunk.

    windows: low, high (n_masses,), in the order of the expectation. intervals: rows and row_weight
    (n_intervals, n_processes) between the edges of `elementary_intervals(low, high)`.
    """
    low, high = (np.asarray(edge, dtype=np.float64) for edge in windows)
    share, spans = prior_shares(low, high), interval_spans(low, high)
    rows, row_weight = (np.ascontiguousarray(part, dtype=np.float64) for part in intervals)
    wanted = (len(share), expectation.rows.shape[1])
    if rows.shape != wanted or row_weight.shape != wanted or len(low) != len(expectation.rows):
        msg = (
            f"{len(low)} windows, {len(expectation.rows)} expectations, rows {rows.shape} and "
            f"row_weight {row_weight.shape}; wanted (n_intervals, n_processes) = {wanted}"
        )
        raise ValueError(msg)
    if n_toys < 1:
        msg = f"{n_toys} toy scans asked for; a global p-value needs at least one, better 10000"
        raise UserError(msg)
    present = (share > 0)[:, None] & (row_weight > 0)
    k = np.where(present, rows + expectation.prior * share[:, None], 0.0)
    table = table_holding(expectation, beyond=SMALLEST_P)
    reached = (table.tail > ndtr(-reference_z)).sum(axis=1)
    limits = np.stack([table.size, reached], axis=1)
    found = np.empty((n_toys, 2))
    rng = np.random.default_rng(seed)
    for begin in range(0, n_toys, chunk):
        part = found[begin : begin + chunk]
        fill_toys(rng, (k, row_weight, expectation.log_widths), spans, table.tail, limits, part)
    return ScanToys(np.sort(found[:, 0]), float(found[:, 1].mean()), reference_z)


def global_p_values(toys: ScanToys, p_local: npt.ArrayLike) -> GlobalP:
    """Global p-values of local ones, of any shape."""
    p = np.asarray(p_local, dtype=np.float64)
    n = len(toys.smallest_p)
    as_extreme = np.searchsorted(toys.smallest_p, p * (1 + ROUNDING), side="right")
    near = (as_extreme + 1) / (n + 2)
    z = significance(p)
    bound = p + toys.upcrossings * np.exp(-(z**2 - toys.reference_z**2) / 2)
    return GlobalP(
        p=as_extreme / n,
        error=np.sqrt(near * (1 - near) / n),
        bound=np.where(z > toys.reference_z, np.minimum(bound, 1.0), 1.0),
    )


def _over_windows(values: Floats, spans: Ints, n_intervals: int) -> Floats:
    """Sum, for each interval, of the values of the windows that hold it."""
    steps = np.zeros(n_intervals + 1)
    np.add.at(steps, spans[:, 0], values)
    np.subtract.at(steps, spans[:, 1], values)
    return np.cumsum(steps)[:-1]


def _mean_over_windows(values: Floats, spans: Ints, holders: Floats) -> Floats:
    total = _over_windows(values, spans, len(holders))
    return np.where(holders > 0, total / np.maximum(holders, 1), 0.0)
