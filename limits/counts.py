"""How often n events are counted when there is no signal: P(n | b) and P(>= n | b), exact.

    n_p | process p   ~ negative binomial (k_p, w_p), averaged over its log-normal normalisation
    n = sum over p    convolution

Tables are (n_masses, longest size); a row is zero behind its own size. P(>= n) is summed from
above and keeps its digits far below 1e-12; with log-normals down to 1e-20 (they end at 10 sigma).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limits.expectation import Expectation, Ints
from limits.kernels import fill_tables, log_row
from models.results import Floats
from selection.errors import UserError

MOST_COUNTS = 40_000  # a row of the table; the work grows with its square: 3 s
SAFE = 1e-250  # smaller probabilities are computed as logarithms


@dataclass(frozen=True, eq=False)
class CountTable:
    """Probabilities of counts without signal; (n_masses, n_counts)."""

    size: Ints  # (n_masses,) counts in the row of each mass, from 0
    pmf: Floats  # P(n)
    tail: Floats  # P(>= n)


def background_counts(expectation: Expectation, size: Ints) -> CountTable:
    """Table with counts 0 ... size - 1 of each mass (n_masses,)."""
    longest = int(size.max(initial=1))
    if longest > MOST_COUNTS:
        msg = (
            f"window {int(size.argmax())} needs a table of {longest} counts (expected "
            f"{expectation.mean[size.argmax()]:.4g} events); exact sums go up to {MOST_COUNTS}. "
            "Use asymptotic limits; if few events are expected, one row or one normalisation "
            "uncertainty is so large that this window has no useful limit"
        )
        raise UserError(msg)
    pmf, tail = np.zeros((len(size), longest)), np.zeros((len(size), longest))
    fill_tables(expectation.shape, expectation.row_weight, expectation.log_widths, size, pmf, tail)
    return CountTable(size, pmf, tail)


def table_holding(expectation: Expectation, *, beyond: float) -> CountTable:
    """Table of all counts but those with P(>= n) below `beyond`; at least 8 of each mass.

    Rows that were begun too short are made again, half as long again.
    """
    spread = np.sqrt(expectation.mean + expectation.variance)
    size = np.ceil(expectation.mean + 6.5 * spread + 8).astype(np.int64)
    while True:
        table = background_counts(expectation, size)
        last = np.take_along_axis(table.tail, size[:, None] - 1, axis=1)[:, 0]
        short = last >= beyond
        if not short.any():
            break
        size = np.where(short, size + size // 2, size)
    size = (table.tail >= beyond).sum(axis=1).clip(min=8)
    longest = int(size.max(initial=8))
    return CountTable(size, table.pmf[:, :longest].copy(), table.tail[:, :longest].copy())


def rows_up_to(expectation: Expectation, counts: Ints) -> Floats:
    """P(m | b) for m <= counts, each row up to a factor, however large the deficit.

    Where P(<= n | b) is too small for a number, the row is computed as logarithms.
    """
    pmf = background_counts(expectation, counts + 1).pmf
    for i in np.flatnonzero(pmf.sum(axis=1) < SAFE):
        logs = log_row(
            expectation.shape[i], expectation.row_weight[i], expectation.log_widths, int(counts[i])
        )
        pmf[i, : len(logs)] = np.exp(logs - logs.max())
    return pmf
