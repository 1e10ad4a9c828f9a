"""The background of a window from the data beside it: a check that needs no simulated rate.

    lambda_j = exp(c_0 + c_1 v_j + c_2 v_j^2),  v = u/8        events in bins of one sigma, |u| > 3
    b = sum of lambda_j over the window |u| < 2,   (delta b)^2 = g^T C g,  g = db/dc

u as in limits/shape.py. Poisson likelihood in the 10 bins beside, C the inverse of its curvature;
the bins next to the window are left out because the signal reaches into them. b is then a gamma of
shape (b/delta b)^2, so that limits and p-values come from the same tables as with simulation.

Not below 1.5 GeV, where the background is not smooth on the scale of 16 sigma, not where the bins
of either side hold less than 10 events, and not where no curve fits best (a few bins hold all of
them): there b is nan. A check and not the result: a curve bends where the background does not, and
its own error does not know that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from limits.expectation import Expectation
from limits.shape import EDGES
from limits.significance import local_p_values
from models.results import Floats
from selection.errors import UserError

MINIMUM_MASS_GEV = 1.5
MINIMUM_EVENTS = 10  # on either side
DEGREE = 2
CENTRE = (EDGES[1:] + EDGES[:-1]) / 2
WINDOW = np.abs(CENTRE) < 2
BESIDE = np.abs(CENTRE) > 3
POWERS = (CENTRE[:, None] / 8) ** np.arange(DEGREE + 1)  # (n_bins, 3)


@dataclass(frozen=True, eq=False)
class Sideband:
    """Background of each window from its sidebands; (n_masses,), nan where none can be had."""

    background: Floats
    error: Floats
    curve: Floats  # (n_masses, n_bins) events
    deviance: Floats  # -2 ln L relative to a perfect fit, for `freedom` degrees of freedom
    freedom: int


def sideband_background(counts: npt.ArrayLike, mass_gev: Floats) -> Sideband:
    """Fit of observed counts (n_masses, n_bins), of which only those beside the window are used."""
    n = np.asarray(counts, dtype=np.float64)
    if n.shape != (len(mass_gev), len(CENTRE)) or not (n >= 0).all():
        msg = f"counts {n.shape}: wanted ({len(mass_gev)}, {len(CENTRE)}), not negative"
        raise ValueError(msg)
    beside, x = n[:, BESIDE], POWERS[BESIDE]
    sides = n[:, BESIDE & (CENTRE < 0)].sum(axis=1), n[:, BESIDE & (CENTRE > 0)].sum(axis=1)
    usable = (mass_gev >= MINIMUM_MASS_GEV) & (np.minimum(*sides) >= MINIMUM_EVENTS)
    c, covariance = _poisson_fit(beside[usable], x)
    rate = np.exp(c @ POWERS.T)
    slopes = rate[:, WINDOW] @ POWERS[WINDOW]  # db/dc
    variance = np.einsum("ia,iab,ib->i", slopes, covariance, slopes)
    inside, seen = rate[:, BESIDE], beside[usable]
    logs = np.where(seen > 0, seen * np.log(np.where(seen > 0, seen, 1) / inside), 0.0)
    deviance = 2 * (logs - seen + inside).sum(axis=1)

    def everywhere(values: Floats) -> Floats:
        out = np.full((len(n), *values.shape[1:]), np.nan)
        out[usable] = values
        return out

    return Sideband(
        background=everywhere(rate[:, WINDOW].sum(axis=1)),
        error=everywhere(np.sqrt(variance)),
        curve=everywhere(rate),
        deviance=everywhere(deviance),
        freedom=int(BESIDE.sum()) - DEGREE - 1,
    )


def sideband_p_values(sideband: Sideband, counts: Floats) -> Floats:
    """P(>= n | b of the sidebands) of the counts (n_masses, n_bins); nan where b is."""
    usable = np.isfinite(sideband.background)
    p = np.full(len(usable), np.nan)
    some = replace(sideband, background=sideband.background[usable], error=sideband.error[usable])
    if usable.any():
        inside = counts[usable][:, WINDOW].sum(axis=1)
        p[usable] = local_p_values(as_expectation(some, np.zeros(len(inside))), inside)
    return p


def as_expectation(sideband: Sideband, signal_uncertainty: Floats) -> Expectation:
    """The gamma of b, for limits and p-values; every mass must have one."""
    if np.isnan(sideband.background).any():
        missing = int(np.isnan(sideband.background).sum())
        msg = (
            f"{missing} of {len(sideband.background)} masses have no sidebands (below "
            f"{MINIMUM_MASS_GEV:g} GeV, or less than {MINIMUM_EVENTS} events on a side); leave "
            "them out"
        )
        raise UserError(msg)
    b, error = sideband.background, sideband.error
    return Expectation(
        rows=((b / error) ** 2)[:, None],
        row_weight=(error**2 / b)[:, None],
        normalisation=np.zeros(1),
        signal_uncertainty=signal_uncertainty,
        prior=0.0,
    )


def _poisson_fit(n: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Coefficients (n_fits, 3) of exp(x c), their covariance: Newton, at most a factor e a step.

    nan where it does not end: the best curve is infinitely steep.
    """
    c = np.zeros((len(n), x.shape[1]))
    c[:, 0] = np.log(n.mean(axis=1))
    ridge = 1e-9 * np.eye(x.shape[1])  # a step of zero curvature; the end does not depend on it
    for _ in range(100):
        rate = np.exp(c @ x.T)
        curvature = np.einsum("ij,ja,jb->iab", rate, x, x) + ridge
        step = np.linalg.solve(curvature, ((n - rate) @ x)[:, :, None])[:, :, 0]
        longest = np.abs(step @ x.T).max(axis=1, initial=0.0)
        c += step / np.maximum(longest, 1.0)[:, None]
        if longest.max(initial=0.0) < 1e-10:
            break
    covariance = np.linalg.inv(np.einsum("ij,ja,jb->iab", np.exp(c @ x.T), x, x) + ridge)
    steep = longest > 1e-6
    c[steep], covariance[steep] = np.nan, np.nan
    return c, covariance
