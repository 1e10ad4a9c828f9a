"""Width of the peak on the axis, and its smooth dependence on the mass.

    f(x) = q CB(m0 - x; beta, n, s1) + (1 - q) G(x; m0, s2)     x: the axis; n = 2, s2 = 2 s1
    sigma(m) = q s1 + (1 - q) s2                                fraction-weighted core width

CB is a Crystal Ball mirrored so that its power-law tail points upwards: a photon lost from the
initial state adds to the recoil and pulls M_rec2 up. A quantile or an RMS would measure that tail,
not the core. Where an event has several candidates, the wrong ones are a flat share below the peak.
The widths of all masses then give one smooth curve,

    ln sigma(m) = polynomial of degree <= 4 in m,

weighted with the fit errors (enlarged by sqrt(chi2/ndf) where the points scatter more), from which
any mass in range gets its window. A mass with too few events or an invalid fit is named, left out
of the curve and takes its width from it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from iminuit import Minuit

from selection.errors import UserError
from selection.peak_shapes import crystal_ball, crystal_ball_below, gauss, gauss_below
from selection.table import FloatArray

log = logging.getLogger(__name__)

MAX_DEGREE = 4
# Fixed, because free they trade against q and beta: the widths of neighbouring masses then scatter
# by 4 % instead of 2.5 % at 20 000 generated events, and their errors are wrong by a factor 2.
WIDTH_RATIO = 2.0  # s2 / s1
TAIL_POWER = 2.0  # n of the Crystal Ball
TINY = float(np.finfo(np.float64).tiny)


class ResolutionError(UserError):
    """Too few good fits to say how wide the peak is."""


@dataclass(frozen=True)
class WidthFit:
    """Fit of one mass; `reason` is empty if it is good, else says why it is not used."""

    mass_gev: float
    n_events: int
    sigma: float = np.nan
    error: float = np.nan
    parameters: tuple[float, ...] = ()  # m0, s1, q, beta, flat of peak_density
    fit_range: tuple[float, float] = (np.nan, np.nan)
    reason: str = ""


@dataclass(frozen=True)
class WidthCurve:
    """ln sigma(m) = sum_k coefficients[k] t^k with t = (m - centre) / half_range."""

    coefficients: npt.NDArray[np.float64]
    covariance: npt.NDArray[np.float64]
    centre_gev: float
    half_range_gev: float

    def _powers(self, mass_gev: FloatArray) -> npt.NDArray[np.float64]:
        t = (np.asarray(mass_gev, np.float64) - self.centre_gev) / self.half_range_gev
        return np.vander(np.atleast_1d(t), len(self.coefficients), increasing=True)

    def sigma(self, mass_gev: FloatArray) -> npt.NDArray[np.float64]:
        return np.exp(self._powers(mass_gev) @ self.coefficients)

    def error(self, mass_gev: FloatArray) -> npt.NDArray[np.float64]:
        powers = self._powers(mass_gev)
        variance = np.einsum("ij,jk,ik->i", powers, self.covariance, powers)
        return self.sigma(mass_gev) * np.sqrt(variance)


def peak_density(
    x: FloatArray,
    m0: float,
    s1: float,
    q: float,
    beta: float,
    flat: float = 0.0,
    *,
    span: tuple[float, float],
) -> npt.NDArray[np.float64]:
    """The shape of the module's head and a flat share, normalised on `span`."""
    low, high = span
    core = crystal_ball(2 * m0 - x, beta, TAIL_POWER, m0, s1)
    core_edges = crystal_ball_below(2 * m0 - np.array([high, low]), beta, TAIL_POWER, m0, s1)
    wide = gauss(x, m0, WIDTH_RATIO * s1)
    wide_edges = gauss_below(np.array([low, high]), m0, WIDTH_RATIO * s1)
    peak = q * core / np.diff(core_edges) + (1 - q) * wide / np.diff(wide_edges)
    return (1 - flat) * peak + flat / (high - low)


def fit_width(
    mass_gev: float, axis: FloatArray, *, squared: bool, per_event: float = 1.0, min_events: int
) -> WidthFit:
    """Unbinned maximum-likelihood fit of one mass's axis (n,) around its peak.

    squared: the axis is that of a squared mass; per_event: candidates of an event.
    """
    m2 = mass_gev**2 if squared else mass_gev
    x = np.asarray(axis, np.float64)
    x = x[np.isfinite(x)]
    if len(x) < min_events:
        return WidthFit(mass_gev, len(x), reason=f"{len(x)} events, {min_events} needed")
    alone = per_event < 1.01
    if alone:  # half of the peak below its middle: the lower side has no tail
        scale = float(np.diff(np.quantile(x, [0.16, 0.6]))[0]) * 0.8
    else:  # within half a sigma of the middle lie 38 % of the right candidates
        nearest = np.sort(np.abs(x - m2))
        scale = 2 * float(nearest[int(0.3829 * len(x) / per_event)])
    span = (m2 - 6 * scale, m2 + 8 * scale)
    inside = x[(x > span[0]) & (x < span[1])]
    if scale <= 0 or len(inside) < min_events:
        return WidthFit(mass_gev, len(x), reason=f"{len(inside)} events near the peak")

    def cost(m0: float, s1: float, q: float, beta: float, flat: float) -> float:
        """-2 ln likelihood; a density of 0 is a large number, not an infinite one."""
        density = peak_density(inside, m0, s1, q, beta, flat, span=span)
        return -2.0 * float(np.log(density + TINY).sum())

    start = 0.0 if alone else 0.2
    fit = Minuit(cost, m0=m2, s1=scale, q=0.7, beta=1.0, flat=start)
    fit.errordef = Minuit.LEAST_SQUARES  # one sigma is where the cost rises by 1
    fit.fixed["flat"] = alone
    fit.limits["flat"] = None if alone else (0.0, 0.95)
    fit.limits["m0"] = (m2 - 2 * scale, m2 + 2 * scale)
    fit.limits["s1"] = (0.2 * scale, 5 * scale)
    fit.limits["q"] = (0.0, 1.0)
    fit.limits["beta"] = (0.2, 5.0)
    fit.migrad()
    if not fit.valid or fit.covariance is None:
        return WidthFit(mass_gev, len(x), reason="the fit did not converge")
    _, s1, q, _, _ = values = np.array(fit.values)
    sigma = s1 * (q + (1 - q) * WIDTH_RATIO)
    slope = np.array([0, q + (1 - q) * WIDTH_RATIO, s1 * (1 - WIDTH_RATIO), 0, 0])
    error = float(np.sqrt(slope @ np.array(fit.covariance) @ slope))
    if not 0 < error < sigma:
        return WidthFit(mass_gev, len(x), reason=f"sigma = {sigma:.3g} +- {error:.3g}")
    return WidthFit(mass_gev, len(x), float(sigma), error, tuple(map(float, values)), span)


def smooth_widths(fits: Sequence[WidthFit]) -> WidthCurve:
    """One curve through the good fits; the others are named in the log and left out."""
    good = [fit for fit in fits if not fit.reason]
    for fit in fits:
        if fit.reason:
            log.warning(
                "width at %g GeV is taken from the smooth curve: %s", fit.mass_gev, fit.reason
            )
    if len(good) < min(3, len(fits)) or not good:
        reasons = "; ".join(f"{f.mass_gev:g} GeV: {f.reason}" for f in fits if f.reason)
        msg = (
            f"only {len(good)} of {len(fits)} masses have a good width fit ({reasons}); "
            f"more signal events are needed, or a smaller windows.min_events"
        )
        raise ResolutionError(msg)
    mass = np.array([fit.mass_gev for fit in good])
    width = np.array([fit.sigma for fit in good])
    relative = np.array([fit.error for fit in good]) / width
    centre = (mass.max() + mass.min()) / 2
    half = (mass.max() - mass.min()) / 2 or 1.0
    degree = min(MAX_DEGREE, len(good) - 1)
    design = np.vander((mass - centre) / half, degree + 1, increasing=True) / relative[:, None]
    target = np.log(width) / relative
    coefficients, *_ = np.linalg.lstsq(design, target)
    covariance = np.linalg.inv(design.T @ design)
    free = len(good) - degree - 1
    if free > 0:
        chi2 = float(np.sum((target - design @ coefficients) ** 2))
        covariance *= max(1.0, chi2 / free)
    return WidthCurve(coefficients, covariance, float(centre), float(half))
