"""Factors of simulated processes, fitted to data in control regions.

    n_i ~ Poisson(sum_j f_j w_ij A_ij)       data in bin i (a region, or a bin of its histogram)
    a_ij ~ Poisson(A_ij)                     rows simulated: a = e^2/v, each of weight w = v/e

e events and v = sum of w^2 of process j in bin i. The likelihood of both is largest; for given f
the A_ij follow from one number t_i per bin (Barlow, Beeston, Comput. Phys. Commun. 77 (1993) 219):

    n_i / (1 - t_i) = sum_j p_ij a_ij / (1 + p_ij t_i),    A_ij = a_ij / (1 + p_ij t_i),  p = f w

whose left side rises and whose right side falls with t. Processes without a factor keep f = 1.
Errors are those of the curvature at the minimum. What bins cannot tell apart is refused before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from iminuit import Minuit
from scipy.special import xlogy

from models.results import Floats
from selection.errors import UserError

STEPS = 50  # halvings of the interval of t
WORST = 0.7  # relative error of a factor that regions must promise


class NormalisationError(UserError):
    """The regions do not determine the factors; the message says which and what to do."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Fitted factors of some processes."""

    names: tuple[str, ...]
    value: Floats  # (n,)
    error: Floats  # (n,)
    correlation: Floats  # (n, n)
    deviance: float  # -2 ln L at the minimum, 0 where everything fits exactly
    ndf: int  # bins - factors


@dataclass(frozen=True, eq=False)
class Counts:
    """Data and simulation in the bins of all regions."""

    data: Floats  # (n_bins,)
    events: Floats  # (n_bins, n_processes)
    squares: Floats  # (n_bins, n_processes), sum of w^2
    names: tuple[str, ...]  # of the processes


def deviance(counts: Counts, factor: Floats) -> float:
    """-2 ln L for factors (n_processes,), with the simulation at its best."""
    e, v = counts.events, counts.squares
    some = (e > 0) & (v > 0)
    a = np.divide(e**2, v, out=np.zeros_like(e), where=some)
    p = factor * np.divide(v, e, out=np.zeros_like(e), where=some)
    n = counts.data
    low, high = -1 / np.maximum(p.max(axis=1), 1e-300), np.ones(len(n))
    for _ in range(STEPS):
        t = (low + high) / 2
        larger = n / (1 - t) > (p * a / (1 + p * t[:, None])).sum(axis=1)
        low, high = np.where(larger, low, t), np.where(larger, t, high)
    rows = a / (1 + p * np.where(n > 0, (low + high) / 2, 1.0)[:, None])
    mu = (p * rows).sum(axis=1)
    of_data = mu - n + xlogy(n, np.where(n > 0, n / np.maximum(mu, 1e-300), 1.0))
    ratio = np.divide(a, rows, out=np.ones_like(a), where=a > 0)
    return float(2 * of_data.sum() + 2 * (rows - a + xlogy(a, ratio)).sum())


def fit_factors(counts: Counts, free: Sequence[str]) -> Factors:
    """The factors of the processes `free`; refused in words where they cannot be determined."""
    at = [counts.names.index(name) for name in free]
    _refuse_undetermined(counts, free, at)

    def cost(values: Floats) -> float:
        factor = np.ones(len(counts.names))
        factor[at] = values
        return deviance(counts, factor)

    fit = Minuit(cost, np.ones(len(free)), name=list(free))
    fit.errordef = Minuit.LEAST_SQUARES
    fit.limits = [(1e-3, 1e3)] * len(free)
    fit.migrad()
    fit.hesse()
    values, covariance = np.array(fit.values), fit.covariance
    if not fit.valid or covariance is None or (values < 2e-3).any():
        found = ", ".join(f"{name} = {x:.3g}" for name, x in zip(free, values, strict=True))
        msg = (
            f"normalisation: the fit of factors found no minimum ({found}); the data of these "
            "regions do not look like the simulation: see their figures, or fit fewer samples"
        )
        raise NormalisationError(msg)
    error = np.array(fit.errors)
    correlation = np.asarray(covariance) / np.outer(error, error)
    ndf = len(counts.data) - len(free)
    return Factors(tuple(free), values, error, correlation, float(fit.fval or 0.0), ndf)


def _refuse_undetermined(counts: Counts, free: Sequence[str], at: Sequence[int]) -> None:
    n = len(counts.data)
    if n < len(free):
        msg = (
            f"normalisation: {n} bin{'s' * (n != 1)} of control regions cannot determine "
            f"{len(free)} factors ({', '.join(free)}); add regions, give a quantity, or fit fewer"
        )
        raise NormalisationError(msg)
    variance = np.maximum(counts.events.sum(axis=1) + counts.squares.sum(axis=1), 1e-300)
    e = counts.events[:, at]
    information = (e / variance[:, None]).T @ e
    scale = np.sqrt(np.diag(information))
    nothing = [name for name, s in zip(free, scale, strict=True) if s <= 0]
    if nothing:
        msg = f"normalisation: no event of {nothing[0]} is in the regions; leave it out of samples"
        raise NormalisationError(msg)
    inverse = np.linalg.pinv(information / np.outer(scale, scale), rcond=1e-12)
    rank = np.linalg.matrix_rank(information / np.outer(scale, scale), tol=1e-9)
    errors = np.sqrt(np.diag(inverse)) / scale
    worst = int(errors.argmax())
    if rank < len(free) or errors[worst] > WORST:
        text = "not at all" if rank < len(free) else f"to ±{100 * errors[worst]:.0f} % only"
        msg = (
            f"normalisation: the regions determine the factor of {free[worst]} {text}, because "
            f"all are made of the same mixture or hold little of it; add a region where it "
            f"dominates, or leave it out of samples"
        )
        raise NormalisationError(msg)
