"""Initial-state radiation off an annihilation: one photon that carries all the radiated energy.

    H(z)  = b z^(b-1) (1 + 3b/4 + (alpha/pi)(pi^2/3 - 1/2)) - b (1 - z/2)      0 < z < z_max
    b     = (2 alpha/pi) (ln(s/m_e^2) - 1)                        0.0877 at 10.58 GeV
    s'    = s (1 - z),     E = z sqrt(s) / 2,     sigma(s) = integral of H(z) sigma_0(s') dz
    dN/dcos ~ sin^2 / (1 - beta^2 cos^2)^2,     beta^2 = 1 - 4 m_e^2 / s

H holds the soft and virtual photons to order alpha: its norm is not 1 (see `radiator_norm`).
sigma_0 grows as 1/s', so z is drawn from a mixture of b z^(b-1) and 1/(1-z): the weight H/mixture
is bounded. With radiation off, z = 0 and the weight is 1.
"""

from __future__ import annotations

from math import atanh, log, pi, sqrt, tanh

import numpy as np
import numpy.typing as npt

from selection.beams import ELECTRON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA
from simulation.frames import polar
from simulation.spinors import Vector

FloatArray = npt.NDArray[np.float64]

SOFT_SHARE = 0.01  # z that divides soft from hard radiation in strata; 53 MeV
RETURN_SHARE = 0.1  # of the draws: 1/(1-z), the radiative return to small s'


@inner()
def exponent(s: float) -> float:
    """b of the radiator."""
    return 2 * ALPHA / pi * (log(s / ELECTRON_MASS_GEV**2) - 1)


@inner()
def radiator(z: float, b: float) -> float:
    """H(z)."""
    soft = 1 + 0.75 * b + ALPHA / pi * (pi**2 / 3 - 0.5)
    return b * z ** (b - 1) * soft - b * (1 - z / 2)


@inner()
def radiator_norm(z_max: float, b: float) -> float:
    """Integral of H from 0 to z_max."""
    soft = 1 + 0.75 * b + ALPHA / pi * (pi**2 / 3 - 0.5)
    return soft * z_max**b - b * (z_max - z_max**2 / 4)


@inner()
def radiated_share(
    rng: np.random.Generator, s: float, z_max: float, isr: bool
) -> tuple[float, float]:
    """(z, weight): the mean of weight * f(z) over draws is the integral of H f."""
    if not isr:
        return 0.0, 1.0
    b = exponent(s)
    log_range = -log(1 - z_max)
    if rng.random() < RETURN_SHARE:
        z = 1 - (1 - z_max) ** rng.random()
    else:
        z = z_max * rng.random() ** (1 / b)
    z = max(z, 1e-300)  # u^(1/b) underflows for one u in 1e27
    soft = b * z ** (b - 1) / z_max**b
    hard = 1 / ((1 - z) * log_range)
    return z, radiator(z, b) / ((1 - RETURN_SHARE) * soft + RETURN_SHARE * hard)


@inner()
def photon(rng: np.random.Generator, z: float, s: float) -> Vector:
    """Photon of energy z sqrt(s)/2 in the frame of the colliding beams."""
    beta = sqrt(1 - 4 * ELECTRON_MASS_GEV**2 / s)
    a = atanh(beta)
    while True:
        c = tanh(a * (2 * rng.random() - 1)) / beta
        c = min(1.0, max(-1.0, c))
        if rng.random() * (1 - beta * beta * c * c) < 1 - c * c:
            break
    energy = 0.5 * z * sqrt(s)
    x, y, w = polar(energy, c, 2 * pi * rng.random())
    return (x, y, w, energy)


@inner()
def radiation_draw(x: FloatArray, s: float, hard: bool, isr: bool):  # type: ignore[no-untyped-def]
    """(z, H dz/dx dcos/dx, photon) from three coordinates; soft: z^b, hard: ln z uniform."""
    if not isr:
        return 0.0, 0.0 if hard else 1.0, (0.0, 0.0, 0.0, 0.0)
    b = exponent(s)
    if hard:
        z = SOFT_SHARE ** (1 - x[0])
        weight = radiator(z, b) * z * -log(SOFT_SHARE)
    else:
        z = max(SOFT_SHARE * x[0] ** (1 / b), 1e-300)
        weight = radiator(z, b) * z ** (1 - b) * SOFT_SHARE**b / b
    beta2 = 1 - 4 * ELECTRON_MASS_GEV**2 / s
    beta = sqrt(beta2)
    span = atanh(beta)
    c = min(1.0, max(-1.0, tanh(span * (2 * x[1] - 1)) / beta))
    shape = (1 - c * c) / (1 - beta2 * c * c)  # over the drawn 1 / (1 - beta2 c^2)
    norm = 2 * span / beta / ((1 + beta2) / beta**3 * span - 1 / beta2)
    energy = 0.5 * z * sqrt(s)
    a, d, e = polar(energy, c, 2 * pi * x[2])
    return z, weight * shape * norm, (a, d, e, energy)


@inner()
def recoil_velocity(k: Vector, sqrt_s: float) -> tuple[float, float, float]:
    """Velocity of what is left after the photon k."""
    e = sqrt_s - k[3]
    return (-k[0] / e, -k[1] / e, -k[2] / e)
