"""The running of alpha by pairs of leptons and hadrons in the photon: both signs of q^2 [GeV^2].

    alpha(q2) = alpha / (1 - D(q2)),    D = sum over e, mu, tau + hadrons
    lepton:    D = (alpha / 3 pi) (-8/3 + b2 + (b/2) (3 - b2) L),    b2 = 1 - 4 m^2 / q2
               L = ln |(1 + b) / (1 - b)|,  or  b L = 2 |b| arctan(1/|b|) where b2 < 0
    hadrons:   D = 0.00835 ln(1 + |q2|)               |q2| < 0.3^2
                   0.00238 ln(1 + 3.927 |q2|)                 < 3^2
                   0.00165 + 0.00299 ln(1 + |q2|)             < 100^2

One loop, real part. Hadrons after H. Burkhardt, F. Jegerlehner, G. Penso and C. Verzegnassi, Z.
Phys. C43 (1989) 497: smooth, no resonances. Each photon of a diagram brings one 1 / (1 - D), which
raises the rate of an annihilation at 10.58 GeV by 8 %. The imaginary part, alpha (3 + R) / 3 =
0.016 there, would change |1 / (1 - D)|^2 by less than 3e-4 and is left out.
"""

from __future__ import annotations

from math import atan, log, pi, sqrt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA, TAU_MASS_GEV


@inner()
def of_lepton(q2: float, m: float) -> float:
    """D of one pair of leptons of mass m."""
    x = q2 / (m * m)
    if abs(x) < 1e-2:  # the closed form cancels here
        return -ALPHA / (3 * pi) * x * (1 / 5 + 3 * x / 140)
    b2 = 1 - 4 / x
    b = sqrt(abs(b2))
    wave = 2 * b * atan(1 / b) if b2 < 0 else b * log(abs((1 + b) ** 2 * x / 4))
    return ALPHA / (3 * pi) * (-8 / 3 + b2 + 0.5 * (3 - b2) * wave)


@inner()
def of_hadrons(q2: float) -> float:
    """D of hadrons, without resonances."""
    x = abs(q2)
    if x < 0.09:
        return 0.00835 * log(1 + x)
    if x < 9:
        return 0.00238 * log(1 + 3.927 * x)
    return 0.00165 + 0.00299 * log(1 + x)


@inner()
def running(q2: float) -> float:
    """1 / (1 - D): factor on alpha, for each virtual photon of a diagram."""
    d = of_hadrons(q2)
    for m in (ELECTRON_MASS_GEV, MUON_MASS_GEV, TAU_MASS_GEV):
        d += of_lepton(q2, m)
    return 1 / (1 - d)
