"""What the simulation knows about the background in every window.

    b_p ~ Gamma(rows_p + prior, row_weight_p) * (1 + u_p)^z_p,   z_p ~ N(0, 1)   events of process p
    mean of the gamma  (rows_p + prior) row_weight_p,   variance  (rows_p + prior) row_weight_p^2

rows_p: simulated rows that pass, effective, (sum w)^2 / sum w^2; row_weight_p: events that one row
stands for; u_p: relative uncertainty of the normalisation, log-normal with median 1. The prior of
1/3 row (flat in the cube root of b_p; its median is close to rows_p for every number of rows) is
also there where no row passes: an empty simulation has not shown that nothing can come. Processes
are kept apart because one row may stand for 0.1 events of one and for 4 of another: pooled, they
have no common gamma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.results import Floats
from selection.errors import UserError

Ints = npt.NDArray[np.int64]

PRIOR_ROWS = 1 / 3
KNOWN_ROWS = 1e15  # so many rows know b to 3e-8 of itself


@dataclass(frozen=True, eq=False)
class Expectation:
    """Background of every window by process; arrays (n_masses, n_processes) unless said."""

    rows: Floats  # simulated rows that pass, effective
    row_weight: Floats  # events per row, also where no row passes; 0: the process does not exist
    normalisation: Floats  # (n_processes,) relative uncertainty, log-normal; 0: none
    signal_uncertainty: Floats  # (n_masses,) relative, log-normal, of efficiency x luminosity
    prior: float = PRIOR_ROWS

    def __post_init__(self) -> None:
        for name in ("rows", "row_weight", "normalisation", "signal_uncertainty"):
            values = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            _refuse_bad(name, values)
            object.__setattr__(self, name, values)
        if self.rows.ndim != 2 or self.rows.shape != self.row_weight.shape:
            msg = (
                f"rows {self.rows.shape} and row_weight {self.row_weight.shape} must both be "
                "(n_masses, n_processes)"
            )
            raise ValueError(msg)
        n_masses, n_processes = self.rows.shape
        found = (self.signal_uncertainty.shape, self.normalisation.shape)
        if found != ((n_masses,), (n_processes,)):
            msg = (
                f"signal_uncertainty and normalisation have shapes {found}, wanted "
                f"({n_masses},) and ({n_processes},): one per mass, one per process"
            )
            raise ValueError(msg)
        lost = (self.rows > 0) & (self.row_weight == 0)
        if lost.any():
            mass, process = np.argwhere(lost)[0]
            msg = (
                f"{self.rows[mass, process]:g} rows of process {process} pass in window {mass}, "
                "but a row of it weighs 0 events; give its weight, or rows = 0 if it does not exist"
            )
            raise UserError(msg)
        if not (np.isfinite(self.prior) and self.prior >= 0):
            msg = f"the prior is {self.prior} rows; give a number that is not negative"
            raise UserError(msg)

    @property
    def shape(self) -> Floats:
        """k of the gammas, 0 where a process does not exist."""
        return np.where(self.row_weight > 0, self.rows + self.prior, 0.0)

    @property
    def by_process(self) -> Floats:
        """Mean of b_p, with the prior and without the log-normal: (n_masses, n_processes)."""
        return self.shape * self.row_weight

    @property
    def mean(self) -> Floats:
        """<b> (n_masses,), the mean of the log-normals included."""
        return (self.by_process * np.exp(self.log_widths**2 / 2)).sum(axis=1)

    @property
    def variance(self) -> Floats:
        """<b^2> - <b>^2 (n_masses,): of the rate, without the Poisson fluctuation of the data."""
        squares = np.exp(2 * self.log_widths**2) * (1 + self.shape)
        plain = np.exp(self.log_widths**2) * self.shape
        return (self.row_weight**2 * self.shape * squares - self.row_weight**2 * self.shape * plain
                ).sum(axis=1)  # fmt: skip

    @property
    def log_widths(self) -> Floats:
        """ln(1 + u_p): one standard deviation up multiplies by 1 + u, one down divides."""
        return np.log1p(self.normalisation)

    @property
    def signal_log_width(self) -> Floats:
        return np.log1p(self.signal_uncertainty)


def known_background(b: npt.ArrayLike) -> Expectation:
    """b (n_masses,) events, exactly known: plain Poisson counting, no nuisances."""
    events = np.atleast_1d(np.asarray(b, dtype=np.float64))
    _refuse_bad("b", events)
    if events.ndim != 1:
        msg = f"b has shape {events.shape}, wanted one number per mass"
        raise ValueError(msg)
    present = events > 0
    return Expectation(
        rows=np.where(present, KNOWN_ROWS, 0.0)[:, None],
        row_weight=(events / KNOWN_ROWS)[:, None],
        normalisation=np.zeros(1),
        signal_uncertainty=np.zeros(len(events)),
        prior=0.0,
    )


def whole_counts(observed: npt.ArrayLike, n_masses: int) -> Ints:
    """Observed events (n_masses,) as integers; anything else is refused."""
    found = np.asarray(observed)
    if found.shape != (n_masses,):
        msg = f"observed events have shape {found.shape}, wanted ({n_masses},): one per mass"
        raise ValueError(msg)
    counts = np.nan_to_num(found.astype(np.float64), nan=-1.0, posinf=-1.0)
    bad = (counts < 0) | (counts != np.floor(counts))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        msg = (
            f"window {at} holds {found[at]} observed events; data are counted, so this must be a "
            "whole number that is not negative (data events carry no weights)"
        )
        raise UserError(msg)
    return counts.astype(np.int64)


def _refuse_bad(name: str, values: Floats) -> None:
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        msg = (
            f"{name} is {values[at]} at {at if len(at) > 1 else at[0]}; a finite number that is "
            "not negative is wanted. Negative weights have no gamma distribution: merge them "
            "with rows they were meant to cancel, or leave the sample out"
        )
        raise UserError(msg)
