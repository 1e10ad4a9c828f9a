"""The two shapes a peak is made of, as densities and as shares below x.

    Gauss          g(z) = exp(-z^2 / 2) / sqrt(2 pi)                z = (x - m0) / s
    Crystal Ball   exp(-z^2 / 2) / N                                z >= -beta
                   (n/beta)^n exp(-beta^2 / 2) (n/beta - beta - z)^-n / N      below

with N the integral of both parts; n > 1, and the two parts meet with equal value and slope at
-beta (T. Skwarnicki, DESY F31-86-02, appendix E). The power law is computed by logarithms: its
factors overflow long before the density does. Plain numpy: it takes eight numbers at once, and a
compiled loop of exp and log, which does not, would have to be compiled before the first fit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating[Any]]

_LOG_TWO_PI = math.log(2 * math.pi)


def _erf(z: Values) -> Values:
    return np.array([math.erf(value) for value in z])


def _tail_area(z: Values, beta: float, power: float) -> Values:
    """Integral of the power law up to z <= -beta."""
    log_height = power * np.log(power / beta) - 0.5 * beta * beta
    return np.exp(log_height - (power - 1) * np.log(power / beta - beta - z) - np.log(power - 1))


def _core_area(z: Values, beta: float) -> Values:
    """Integral of exp(-z^2 / 2) from -beta to z."""
    return np.sqrt(np.pi / 2) * (_erf(z * np.sqrt(0.5)) + math.erf(beta * np.sqrt(0.5)))


def _whole_area(beta: float, power: float) -> float:
    core = _core_area(np.array([np.inf]), beta)
    return float((_tail_area(np.array([-beta]), beta, power) + core)[0])


def gauss(x: Values, m0: float, s: float) -> Values:
    """Density of the normal distribution at x (n,)."""
    z = (x - m0) / s
    return np.exp(-0.5 * (z * z + _LOG_TWO_PI)) / s


def gauss_below(x: Values, m0: float, s: float) -> Values:
    """Share of the normal distribution below x (n,)."""
    return 0.5 * (1 + _erf((x - m0) * (np.sqrt(0.5) / s)))


def crystal_ball(x: Values, beta: float, power: float, m0: float, s: float) -> Values:
    """Density of the Crystal Ball at x (n,); its tail points downwards."""
    z = (x - m0) / s
    log_height = power * np.log(power / beta) - 0.5 * beta * beta
    tail = log_height - power * np.log(power / beta - beta - np.minimum(z, -beta))
    return np.exp(np.where(z < -beta, tail, -0.5 * z * z)) / (s * _whole_area(beta, power))


def crystal_ball_below(x: Values, beta: float, power: float, m0: float, s: float) -> Values:
    """Share of the Crystal Ball below x (n,)."""
    z = (x - m0) / s
    tail = _tail_area(np.minimum(z, -beta), beta, power)
    core = _core_area(np.maximum(z, -beta), beta)
    return (tail + core) / _whole_area(beta, power)
