"""How surprising the observed counts are without signal, and the signal that fits them best.

    p0 = P(>= n | b)                exact, averaged over gammas and log-normals, summed from above
    Z  = Phi^-1(1 - p0), 0 for p0 >= 1/2                                              one-sided
    s_hat = n - <b>,   high - s_hat = sqrt((lambda_high - n)^2 + var b + (u s_hat)^2), low alike

p0 of a count that is at or below its expectation is large and counts as no significance: a deficit
is no discovery. s_hat is not clipped, so that its mean over many data sets is the true signal: it
goes down to -<b>. lambda_low, lambda_high is the central 68.27 % interval of a Poisson mean
(Garwood); the uncertainties of b and of the signal's scale u are added in quadrature. With b known
the interval covers at least 68.27 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammainccinv, gammaincinv, ndtr, ndtri

from limits.counts import background_counts
from limits.expectation import Expectation, whole_counts
from models.results import Floats

ONE_SIGMA_TAIL = float(ndtr(-1.0))


@dataclass(frozen=True, eq=False)
class BestSignal:
    """Signal events that fit best and their 68.27 % interval; (n_masses,), may be negative."""

    signal: Floats
    low: Floats
    high: Floats


def local_p_values(expectation: Expectation, observed: npt.ArrayLike) -> Floats:
    """P(>= n | b) of each window (n_masses,)."""
    counts = whole_counts(observed, len(expectation.rows))
    tail = background_counts(expectation, counts + 1).tail
    return np.minimum(tail[np.arange(len(counts)), counts], 1.0)


def significance(p: npt.ArrayLike) -> Floats:
    """Z (one-sided) of p-values of any shape."""
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        msg = f"p-values lie between 0 and 1, found {values.min()} to {values.max()}"
        raise ValueError(msg)
    return np.maximum(-ndtri(values), 0.0)


def best_signal(expectation: Expectation, observed: npt.ArrayLike) -> BestSignal:
    """s_hat = n - <b> and its interval, in signal events."""
    n = whole_counts(observed, len(expectation.rows)).astype(np.float64)
    signal = n - expectation.mean
    low = np.where(n > 0, gammaincinv(np.maximum(n, 1), ONE_SIGMA_TAIL), 0.0)
    high = gammainccinv(n + 1, ONE_SIGMA_TAIL)
    others = expectation.variance + (expectation.signal_uncertainty * signal) ** 2
    return BestSignal(
        signal,
        low=signal - np.sqrt((n - low) ** 2 + others),
        high=signal + np.sqrt((high - n) ** 2 + others),
    )
