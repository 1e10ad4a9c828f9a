"""The two shapes a peak is made of, as densities and as shares below x.

    Gauss          g(z) = exp(-z^2 / 2) / sqrt(2 pi)                z = (x - m0) / s
    Crystal Ball   exp(-z^2 / 2) / N                                z >= -beta
                   (n/beta)^n exp(-beta^2 / 2) (n/beta - beta - z)^-n / N      below

with N the integral of both parts; n > 1, and the two parts meet with equal value and slope at
-beta (T. Skwarnicki, DESY F31-86-02, appendix E). The power law is computed by logarithms: its
factors overflow long before the density does. Four small kernels of our own, because the library
that has them compiles its quantile functions anew in every process, five seconds before the first
event of a run is read.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

_SQRT_HALF = math.sqrt(0.5)
_LOG_TWO_PI = math.log(2 * math.pi)


@numba.njit(nogil=True, inline="always", error_model="numpy")
def _tail_area(z: float, beta: float, power: float) -> float:
    """Integral of the power law up to z <= -beta."""
    log_height = power * np.log(power / beta) - 0.5 * beta * beta
    return np.exp(log_height - (power - 1) * np.log(power / beta - beta - z) - np.log(power - 1))


@numba.njit(nogil=True, inline="always", error_model="numpy")
def _core_area(low: float, high: float) -> float:
    """Integral of exp(-z^2 / 2) from low to high."""
    ends = math.erf(high * _SQRT_HALF) - math.erf(low * _SQRT_HALF)
    return _SQRT_HALF * np.sqrt(np.pi) * ends


@numba.njit(cache=True, nogil=True, error_model="numpy")
def gauss(x: Values, m0: float, s: float) -> Values:
    """Density of the normal distribution at x (n,)."""
    found = np.empty(len(x))
    inverse, log_s = 1 / s, np.log(s)
    for i in range(len(x)):
        z = (x[i] - m0) * inverse
        found[i] = np.exp(-0.5 * (z * z + _LOG_TWO_PI) - log_s)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def gauss_below(x: Values, m0: float, s: float) -> Values:
    """Share of the normal distribution below x (n,)."""
    found = np.empty(len(x))
    inverse = 1 / s
    for i in range(len(x)):
        found[i] = 0.5 * (1 + math.erf((x[i] - m0) * inverse * _SQRT_HALF))
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def crystal_ball(x: Values, beta: float, power: float, m0: float, s: float) -> Values:
    """Density of the Crystal Ball at x (n,); its tail points downwards."""
    found = np.empty(len(x))
    inverse = 1 / s
    log_height = power * np.log(power / beta) - 0.5 * beta * beta
    log_norm = np.log(s * (_tail_area(-beta, beta, power) + _core_area(-beta, np.inf)))
    for i in range(len(x)):
        z = (x[i] - m0) * inverse
        value = -0.5 * z * z
        if z < -beta:
            value = log_height - power * np.log(power / beta - beta - z)
        found[i] = np.exp(value - log_norm)
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def crystal_ball_below(x: Values, beta: float, power: float, m0: float, s: float) -> Values:
    """Share of the Crystal Ball below x (n,)."""
    found = np.empty(len(x))
    inverse = 1 / s
    tail = _tail_area(-beta, beta, power)
    norm = tail + _core_area(-beta, np.inf)
    for i in range(len(x)):
        z = (x[i] - m0) * inverse
        if z < -beta:
            found[i] = _tail_area(z, beta, power) / norm
        else:
            found[i] = (tail + _core_area(-beta, z)) / norm
    return found
