"""Fits of all masses at once, and the asymptotic limits that follow from them.

    q(s) = -2 ln [L(s, theta_s)/L(s_hat, theta_hat)],  0 <= s_hat <= s               arXiv:1007.1727
    CLs(s) = [1 - Phi(sqrt(q))] / Phi(sqrt(q_A) - sqrt(q)),  and eq. 66 where q > q_A
    expected at N sigma:  sqrt(q_A(s)) = N + Phi^-1(1 - (1 - level) Phi(N))

q_A belongs to Asimov data: what should be seen without signal. The likelihood and its fit are in
limits/profile.py. Roots are found for all masses together: the loops here are over iterations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr, ndtri

from limits.profile import fill_fits
from models.results import Floats

BAND_SIGMAS = np.array([0.0, -2.0, -1.0, 1.0, 2.0])
ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class Model:
    """Expected events in the bins of each mass."""

    shape: Floats  # (n_masses, n_bins) share of the signal in each bin
    events: Floats  # (n_masses, n_bins, n_processes) background
    rows: Floats  # likewise: what it was simulated with; error = events/sqrt(rows)
    kappa: Floats  # (n_masses, 1 + n_processes) ln(1 + u) of signal and processes


@dataclass(frozen=True, eq=False)
class Data:
    """What was seen: in the bins, and as a measurement of each nuisance."""

    n: Floats  # (n_masses, n_bins)
    rows: Floats  # (n_masses, n_bins, n_processes)
    centre: Floats  # (n_masses, 1 + n_processes)


@dataclass(frozen=True, eq=False)
class Fit:
    """The largest likelihood of each mass."""

    theta: Floats  # (n_masses, 2 + n_processes): signal events, alphas
    value: Floats  # (n_masses,) ln L but for a constant of the data
    slope: Floats  # (n_masses,) d ln L/ds
    error: Floats  # (n_masses,) of s, from the curvature, everything else profiled
    gamma: Floats  # (n_masses, n_bins, n_processes)

    @property
    def signal(self) -> Floats:
        return self.theta[:, 0]


def seen(model: Model, n: npt.ArrayLike) -> Data:
    """Counts (n_masses, n_bins) with the simulation and the normalisations as they are."""
    return Data(np.ascontiguousarray(n, dtype=np.float64), model.rows, np.zeros_like(model.kappa))


def asimov(model: Model, fit: Fit) -> Data:
    """What should be seen without signal, with the nuisances of a fit."""
    scale = np.exp(model.kappa[:, 1:] * fit.theta[:, 2:])[:, None, :]
    n = (fit.gamma * model.events * scale).sum(axis=2)
    return Data(n, model.rows * fit.gamma, np.ascontiguousarray(fit.theta[:, 1:]))


def fit_at(model: Model, data: Data, signal: Floats, *, start: Floats | None = None) -> Fit:
    """Everything but the signal (n_masses,) fitted; start: alphas (n_masses, 1 + n_processes)."""
    alphas = data.centre if start is None else start
    return _fit(model, data, np.column_stack([signal, alphas]), np.zeros(len(signal), dtype=bool))


def best_fits(model: Model, data: Data) -> tuple[Fit, Fit]:
    """Fit without signal, and fit with the best signal that is not negative."""
    none = fit_at(model, data, np.zeros(len(data.n)))
    rising = (none.slope > 0) | np.isinf(none.value)
    excess = (data.n - (none.gamma * model.events).sum(axis=2)).sum(axis=1)
    theta = none.theta.copy()
    theta[:, 0] = np.where(rising, np.maximum(0.5 * excess, 1e-3), 0.0)
    return none, _fit(model, data, theta, rising)


def expected_signals(model: Model, *, alpha: float) -> Floats:
    """Limits (n_masses, n_bands) of data without signal that fluctuate by each of BAND_SIGMAS."""
    nominal = Fit(
        theta=np.zeros((len(model.shape), model.kappa.shape[1] + 1)),
        value=np.zeros(0), slope=np.zeros(0), error=np.zeros(0),
        gamma=np.ones_like(model.events),
    )  # fmt: skip
    data = asimov(model, nominal)
    best = fit_at(model, data, np.zeros(len(data.n)))
    targets = BAND_SIGMAS - ndtri(alpha * ndtr(BAND_SIGMAS))
    return np.stack([_excluded_at(t, model, data, best.value) for t in targets], axis=1)


def observed_signals(model: Model, data: Data, *, alpha: float) -> Floats:
    """Upper limits (n_masses,): CLs of q-tilde = alpha, by false position with halving."""
    none, best = best_fits(model, data)
    expected = asimov(model, none)
    best_expected = fit_at(model, expected, np.zeros(len(data.n)))

    def excess(s: Floats, fits: tuple[Fit, Fit]) -> tuple[Floats, tuple[Fit, Fit]]:
        """ln(CLs/alpha), which falls with s."""
        fit = fit_at(model, data, s, start=fits[0].theta[:, 1:])
        other = fit_at(model, expected, s, start=fits[1].theta[:, 1:])
        q, qa = _root(best.value, fit.value), _root(best_expected.value, other.value)
        far = (q**2 - qa**2) / (2 * np.where(qa > 0, qa, np.inf))
        z = np.where(q <= qa, q - qa, far)
        return log_ndtr(-z - qa) - log_ndtr(-z) - np.log(alpha), (fit, other)

    low, high = best.signal.copy(), np.full(len(data.n), np.inf)
    f_low, f_high = np.full(len(low), -np.log(alpha)), np.full(len(low), -1.0)
    s, fits = low + best.error + 2.0, (none, none)
    for _ in range(ITERATIONS):
        f, fits = excess(s, fits)
        up = f > 0
        low, f_low = np.where(up, s, low), np.where(up, f, f_low / 2)
        high, f_high = np.where(up, high, s), np.where(up, f_high / 2, f)
        if np.all((np.abs(f) < 1e-9) | (high - low < 1e-9 * s)):
            break
        bounded = np.isfinite(high)
        wide = np.where(bounded, high - low, 0.0)
        s = np.where(bounded, low + wide * f_low / (f_low - f_high), 2 * s)
    return s


def _fit(model: Model, data: Data, theta: Floats, free: np.ndarray) -> Fit:
    theta = np.ascontiguousarray(theta)
    n_masses, D = theta.shape
    value, slope, curvature = (
        np.empty(n_masses),
        np.zeros((n_masses, D)),
        np.zeros((n_masses, D, D)),
    )
    gamma = np.ones_like(model.events)
    fill_fits(
        theta, free, (data.n, data.rows, data.centre),
        (model.shape, model.events, model.rows, model.kappa), (value, slope, curvature, gamma),
    )  # fmt: skip
    error = np.zeros(n_masses)
    curved = np.isfinite(value) & (curvature[:, 0, 0] < 0)  # n = 0: ln L is a straight line
    inverse = np.linalg.inv(-curvature[curved])
    error[curved] = np.sqrt(np.maximum(inverse[:, 0, 0], 0.0))
    return Fit(theta, value, slope[:, 0].copy(), error, gamma)


def _root(best: Floats, value: Floats) -> Floats:
    """sqrt(q); no signal at all can be infinitely worse than the best."""
    return np.sqrt(np.maximum(2 * (best - value), 0.0))


def _excluded_at(target: float, model: Model, data: Data, best: Floats) -> Floats:
    """Signal that Asimov data exclude at `target` sigmas: Newton on sqrt(q_A), in a bracket."""
    s = target * (target + np.sqrt(data.n.sum(axis=1)))
    low, high = np.zeros_like(s), np.full_like(s, np.inf)
    alphas = data.centre
    for _ in range(ITERATIONS):
        fit = fit_at(model, data, s, start=alphas)
        alphas = fit.theta[:, 1:]
        root = _root(best, fit.value)
        low, high = np.where(root < target, s, low), np.where(root < target, high, s)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = s - (target - root) * root / fit.slope
        if np.all(np.abs(new - s) <= 1e-9 * s):
            return new
        inside = (low < new) & (new < high)
        middle = np.where(np.isinf(high), 2 * s, (low + np.where(np.isinf(high), 0, high)) / 2)
        s = np.where(inside, new, middle)
    return s
