"""Upper limits on the number of signal events, from exact sums.

    CLs(s) = P(<= n | s+b) / P(<= n | b) = 1 - level          numerator and denominator averaged
             over gammas and log-normals of the background; s (1+u)^z, z ~ N(0,1), in the numerator
    flat prior in s:  integral_s^inf L(n|s') ds' / integral_0^inf L(n|s') ds' = 1 - level

Without a signal uncertainty the two are the same number, with nuisances of the background too:
the integral of a Poisson probability over its mean is the running sum over its counts. With one,
the flat prior averages 1/scale as well, which moves z by -kappa: limit(Bayes) = e^(kappa^2)
limit(CLs), kappa = ln(1+u). n = 0 gives -ln(1 - level) for every b.

A large deficit makes both probabilities of CLs vanish; the ratio is computed with P(m | b) relative
to P(<= n | b), as logarithms if need be, and is never 0/0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from limits.counts import background_counts, rows_up_to, table_holding
from limits.expectation import Expectation, Ints, whole_counts
from limits.kernels import fill_expected, fill_limits, fill_smallest
from models.results import Floats
from selection.errors import UserError

LEFT_OUT = 1e-9  # probability of counts that the mean limit does without, on either side
BAND_SIGMAS = (0.0, -2.0, -1.0, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class ExpectedLimits:
    """Limits without signal in the data, in signal events; arrays (n_masses,).

    median and bands are limits at quantiles of n under P(n | b): n is whole, so they jump with b.
    mean is sum_n P(n | b) limit(n). asimov is the limit at n = <b>, limits at the four nearest
    whole n continued by a cubic; with b known it is the solution of Q(b+1, s+b) = (1 - level)
    Q(b+1, b) (arXiv:2009.07249) within 1 %. mean and asimov are smooth in b.
    """

    median: Floats
    mean: Floats
    asimov: Floats
    minus2: Floats
    minus1: Floats
    plus1: Floats
    plus2: Floats


def checked_alpha(level: float) -> float:
    """1 - level, a probability."""
    if not 0 < level < 1:
        msg = f"confidence level {level}: give a number between 0 and 1, such as 0.90"
        raise UserError(msg)
    return 1.0 - level


def upper_limits(
    expectation: Expectation, observed: npt.ArrayLike, *, level: float = 0.90
) -> Floats:
    """CLs limits in signal events for the observed counts (n_masses,)."""
    alpha = checked_alpha(level)
    counts = whole_counts(observed, len(expectation.rows))
    limits = np.empty(len(counts))
    pmf = rows_up_to(expectation, counts)
    fill_limits(pmf, counts, alpha, expectation.signal_log_width, limits)
    return limits


def bayesian_limits(
    expectation: Expectation, observed: npt.ArrayLike, *, level: float = 0.90
) -> Floats:
    """Limits with a flat prior in the signal rate; (n_masses,)."""
    scale = np.exp(expectation.signal_log_width**2)
    return upper_limits(expectation, observed, level=level) * scale


def expected_limits(expectation: Expectation, *, level: float = 0.90) -> ExpectedLimits:
    """What upper_limits will give if there is no signal."""
    options = np.array([checked_alpha(level), LEFT_OUT, *ndtr(BAND_SIGMAS)])
    table = table_holding(expectation, beyond=LEFT_OUT)
    found = np.empty((len(table.size), len(options)))
    fill_expected(
        table.pmf, table.size, expectation.mean, options, expectation.signal_log_width, found
    )
    mean, asimov, median, *bands = (np.ascontiguousarray(column) for column in found.T)
    return ExpectedLimits(median, mean, asimov, *bands)


def smallest_allowed(
    expectation: Expectation, signal: npt.ArrayLike, *, level: float = 0.90
) -> Ints:
    """Smallest count whose limit is not below the signal (n_masses,).

    The coverage of a limit is P(n >= smallest allowed | s + b): no limit has to be solved for. A
    count with P(<= n | s+b) >= 1 - level allows s; Cantelli's inequality says how far that can be.
    """
    s = np.broadcast_to(np.asarray(signal, dtype=np.float64), (len(expectation.rows),))
    alpha, spread = checked_alpha(level), np.exp(expectation.signal_log_width**2)
    mean = expectation.mean + s * np.sqrt(spread)
    variance = mean + expectation.variance + s**2 * spread * (spread - 1)
    size = np.ceil(mean + np.sqrt(variance * alpha / (1 - alpha))).astype(np.int64) + 2
    smallest = np.empty(len(size), dtype=np.int64)
    table = background_counts(expectation, size)
    fill_smallest(
        table.pmf, size, np.ascontiguousarray(s), alpha, expectation.signal_log_width,
        smallest,
    )  # fmt: skip
    return smallest
