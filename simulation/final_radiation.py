"""Radiation off muons after they are made: one photon, total rate unchanged.

    a pair of mass M                                                          (signal)
        dN = b z^(b-1) g(z, c) r dz  (1-c^2)/(1-v^2 c^2)^2 dc / norm,   M'^2 = M^2 (1-z)
        g  = ((2-z)^2 + z^2 c^2) / 4,   b = (2 alpha/pi) (I(M) - 1),   r = b(M') / b(M)
    a muon of energy E from a decay at rest                                   (tau)
        dN = b x^(b-1) (1 - x + x^2/2) dx  (1-c^2)/(1-v c)^2 dc / norm
        b  = (alpha/pi) (ln((1+v)/(1-v)) / v - 2)

z: photon energy over M/2 in the rest frame of pair and photon, c: its angle to the muons in that of
the muons alone, of mass M'; v: velocity of a muon there. Massless and to first order in alpha this
is gamma* -> mu mu gamma exactly: (x1^2 + x2^2) / ((1-x1)(1-x2)). x: share of the muon's energy.
Both are normalised: hard photons take what soft and virtual ones leave (Kinoshita, Lee and
Nauenberg), which gives the 1 + 3b/4 of z^b by itself. The pair and its photon keep the momentum of
the pair, so that what recoils keeps its mass; in a decay the neutrinos, unseen, give way.
"""

from __future__ import annotations

from math import atan2, atanh, pi, sqrt, tanh

import numpy as np

from selection.beams import MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA
from simulation.frames import boost, polar, turned
from simulation.infrared import dipole
from simulation.spinors import Vector

LEAST_SHARE = 1e-6  # softer photons are left out


@inner()
def pair_exponent(mass2: float) -> float:
    """b of a pair of muons."""
    m2 = MUON_MASS_GEV**2
    return 2 * ALPHA / pi * (dipole(0.5 * mass2 - m2, m2) - 1)


@inner()
def decay_exponent(v: float) -> float:
    """b of a muon of velocity v from something at rest."""
    return ALPHA / pi * (2 * atanh(v) / v - 2)


@inner()
def _velocity(p: Vector) -> tuple[float, float, float]:
    return (p[0] / p[3], p[1] / p[3], p[2] / p[3])


@inner()
def _angle_to_pair(rng: np.random.Generator, v: float) -> float:
    """cos of a photon to two muons back to back: (1 - c^2) / (1 - v^2 c^2)^2."""
    while True:
        c = min(1.0, max(-1.0, tanh(atanh(v) * (2 * rng.random() - 1)) / v))
        if rng.random() * (1 - v * v * c * c) < 1 - c * c:
            return c


@inner()
def pair_radiates(rng: np.random.Generator, k1: Vector, k2: Vector):  # type: ignore[no-untyped-def]
    """(k1, k2, photon) after radiation, their sum as before; the photon may be of energy 0."""
    m = MUON_MASS_GEV
    total = (k1[0] + k2[0], k1[1] + k2[1], k1[2] + k2[2], k1[3] + k2[3])
    mass2 = total[3] ** 2 - total[0] ** 2 - total[1] ** 2 - total[2] ** 2
    nothing = (0.0, 0.0, 0.0, 0.0)
    if mass2 < 4.1 * m * m:
        return k1, k2, nothing
    b = pair_exponent(mass2)
    while True:
        z = rng.random() ** (1 / b)
        if z < LEAST_SHARE:
            return k1, k2, nothing
        left = mass2 * (1 - z)
        if left < 4.01 * m * m:
            continue
        v = sqrt(1 - 4 * m * m / left)
        c = _angle_to_pair(rng, v)
        hard = ((2 - z) ** 2 + z * z * c * c) / 4
        if rng.random() < hard * pair_exponent(left) / b:
            break
    root = sqrt(left)
    back = _velocity(total)
    axis = boost(k1, (-back[0], -back[1], -back[2]))
    p = sqrt(axis[0] ** 2 + axis[1] ** 2 + axis[2] ** 2)
    w = 0.5 * (mass2 - left) / root  # photon in the rest frame of the new pair
    n = turned(polar(w, c, 2 * pi * rng.random()), axis[2] / p, atan2(axis[1], axis[0]))
    scale = 0.5 * root * v / p
    q = (scale * axis[0], scale * axis[1], scale * axis[2])
    rest = _velocity((n[0], n[1], n[2], root + w))
    away = (-rest[0], -rest[1], -rest[2])
    return (
        boost(boost((q[0], q[1], q[2], 0.5 * root), away), back),
        boost(boost((-q[0], -q[1], -q[2], 0.5 * root), away), back),
        boost(boost((n[0], n[1], n[2], w), away), back),
    )


@inner()
def muon_radiates(rng: np.random.Generator, k: Vector):  # type: ignore[no-untyped-def]
    """(muon, photon) after radiation of a muon from something that decays at rest."""
    m = MUON_MASS_GEV
    nothing = (0.0, 0.0, 0.0, 0.0)
    p = sqrt(k[0] ** 2 + k[1] ** 2 + k[2] ** 2)
    v = p / k[3]
    if v < 0.1:
        return k, nothing
    b = decay_exponent(v)
    while True:
        x = rng.random() ** (1 / b)
        if x < LEAST_SHARE:
            return k, nothing
        if k[3] * (1 - x) > m and rng.random() < 1 - x + 0.5 * x * x:
            break
    while True:  # 1 / (1 - v c) is drawn, the rest of the shape is below (1 + v) / v
        c = (1 - (1 + v) * ((1 - v) / (1 + v)) ** rng.random()) / v
        c = min(1.0, max(-1.0, c))
        if rng.random() * (1 + v) < v * (1 - c * c) / (1 - v * c):
            break
    w, e = x * k[3], (1 - x) * k[3]
    n = turned(polar(w, c, 2 * pi * rng.random()), k[2] / p, atan2(k[1], k[0]))
    scale = sqrt(e * e - m * m) / p
    return (scale * k[0], scale * k[1], scale * k[2], e), (n[0], n[1], n[2], w)
