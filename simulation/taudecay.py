"""Decays of a tau to one charged particle that is, or is taken for, a muon.

    mu nu nu   |M|^2 ~ (P - m s).k_nubar p_mu.k_nu            h: direction of the nubar_mu
    pi nu                                                      h: direction of the pion
    rho nu, rho -> pi pi0, pi0 -> gamma gamma
               dGamma/dQ^2 ~ (1 - Q^2/m^2)^2 (1 + 2 Q^2/m^2) v^3 |F(Q^2)|^2
               |M|^2 ~ w = 2 (q.N) q0 - q^2 N0,     h = (2 (q.N) q - q^2 N) / w
               q = p_pi - p_pi0 - Q (Q.(p_pi - p_pi0)) / Q^2,      N: neutrino, Q: rho
    F          = (BW(0.773, 0.145) + b BW(1.370, 0.510)) / (1 + b),  b = -0.145
    BW(M, G)   = M^2 / (M^2 - Q^2 - i Q G(Q^2)),     G(Q^2) = G (M^2/Q^2) (p/p_M)^3
               (J. H. Kuehn and A. Santamaria, Z. Phys. C48 (1990) 445)

In the rest frame of the tau [GeV]. h is the polarimeter: the rate of a tau- with spin s is
1 + h.s, with the opposite sign for tau+; its length is 1 for each of the three. The muon and nu_tau
decay isotropically from their own rest frame, exact in m_mu.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from selection.beams import MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import PION_MASS_GEV, TAU_MASS_GEV
from simulation.frames import boost, isotropic, polar
from simulation.spinors import Vector

FloatArray = npt.NDArray[np.float64]

NEUTRAL_PION_MASS_GEV = 0.1349768  # PDG 2024
MUON, PION, RHO = 0, 1, 2
NO_PHOTONS = ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))


def rho_spectrum(q2: FloatArray) -> FloatArray:
    """dGamma/dQ^2 [arbitrary units] of tau -> rho nu."""
    low, m2 = (PION_MASS_GEV + NEUTRAL_PION_MASS_GEV) ** 2, TAU_MASS_GEV**2

    def momentum2(s: FloatArray | float) -> FloatArray:
        difference = (PION_MASS_GEV - NEUTRAL_PION_MASS_GEV) ** 2
        return np.asarray((s - low) * (s - difference) / (4 * s))

    def wave(mass: float, width: float) -> npt.NDArray[np.complex128]:
        running = width * mass**2 / q2 * (momentum2(q2) / momentum2(mass**2)) ** 1.5
        return mass**2 / (mass**2 - q2 - 1j * np.sqrt(q2) * running)

    form = np.abs((wave(0.773, 0.145) - 0.145 * wave(1.370, 0.510)) / (1 - 0.145)) ** 2
    velocity3 = (4 * momentum2(q2) / q2) ** 1.5
    return np.asarray((1 - q2 / m2) ** 2 * (1 + 2 * q2 / m2) * velocity3 * form)


def _quantiles() -> FloatArray:
    """Q^2 at 1001 equal steps of the integral of the spectrum."""
    low = (PION_MASS_GEV + NEUTRAL_PION_MASS_GEV) ** 2
    q2 = np.linspace(low, TAU_MASS_GEV**2, 40_001)
    middle = 0.5 * (q2[1:] + q2[:-1])
    area = np.concatenate([[0.0], np.cumsum(rho_spectrum(middle))])
    return np.interp(np.linspace(0, area[-1], 1001), area, q2)


RHO_MASS2 = _quantiles()


@inner()
def decay(rng: np.random.Generator, to_pion: bool, sign: float):  # type: ignore[no-untyped-def]
    """(momentum of the charged particle, polarimeter) of mu nu nu or pi nu; sign +1 for tau-."""
    m = TAU_MASS_GEV
    c, phi = isotropic(rng)
    n = polar(sign, c, phi)
    if to_pion:
        e = (m * m + PION_MASS_GEV**2) / (2 * m)
        p = sign * sqrt(e * e - PION_MASS_GEV**2)
        return (p * n[0], p * n[1], p * n[2], e), n
    r = (MUON_MASS_GEV / m) ** 2
    while True:  # x^2 (1 - x - r)^2 / (1 - x), below its maximum 4/27 for r = 0
        x = (1 - r) * rng.random()
        if 4 / 27 * rng.random() < x * x * (1 - x - r) ** 2 / (1 - x):
            break
    pair2 = m * m * (1 - x)  # mass^2 of muon and nu_tau
    pair = sqrt(pair2)
    e = (pair2 + MUON_MASS_GEV**2) / (2 * pair)
    cm, phim = isotropic(rng)
    v = polar(sqrt(e * e - MUON_MASS_GEV**2), cm, phim)
    b = -sign * x / (2 - x)  # velocity of the pair, against the neutrino
    return boost((v[0], v[1], v[2], e), (b * n[0], b * n[1], b * n[2])), n


@inner()
def _dot(a: Vector, b: Vector) -> float:
    return a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]


@inner()
def rho_decay(rng: np.random.Generator, sign: float):  # type: ignore[no-untyped-def]
    """(charged pion, polarimeter, two photons) of rho nu; sign +1 for tau-."""
    m, mp, m0 = TAU_MASS_GEV, PION_MASS_GEV, NEUTRAL_PION_MASS_GEV
    at = rng.random() * (len(RHO_MASS2) - 1)
    k = int(at)
    q2 = RHO_MASS2[k] + (at - k) * (RHO_MASS2[k + 1] - RHO_MASS2[k])
    root = sqrt(q2)
    c, phi = isotropic(rng)
    e_rho, p_rho = (m * m + q2) / (2 * m), (m * m - q2) / (2 * m)
    n = polar(p_rho, c, phi)
    neutrino = (-n[0], -n[1], -n[2], p_rho)
    velocity = (n[0] / e_rho, n[1] / e_rho, n[2] / e_rho)
    e = (q2 + mp * mp - m0 * m0) / (2 * root)
    p = sqrt(e * e - mp * mp)
    while True:
        c, phi = isotropic(rng)
        a = polar(p, c, phi)
        # q of the rest frame of the rho is 2 p along the pion: no time component
        q = boost((2 * a[0], 2 * a[1], 2 * a[2], 0.0), velocity)
        qn, square = _dot(q, neutrino), -4 * p * p
        w = 2 * qn * q[3] - square * p_rho
        if rng.random() * 4 * p * p * p_rho * m * m / q2 < w:  # the largest: q along the tau
            break
    h = sign / w
    polarimeter = (
        h * (2 * qn * q[0] - square * neutrino[0]),
        h * (2 * qn * q[1] - square * neutrino[1]),
        h * (2 * qn * q[2] - square * neutrino[2]),
    )
    charged = boost((a[0], a[1], a[2], e), velocity)
    neutral = boost((-a[0], -a[1], -a[2], root - e), velocity)
    v = (neutral[0] / neutral[3], neutral[1] / neutral[3], neutral[2] / neutral[3])
    c, phi = isotropic(rng)
    g = polar(0.5 * m0, c, phi)
    one = boost((g[0], g[1], g[2], 0.5 * m0), v)
    two = boost((-g[0], -g[1], -g[2], 0.5 * m0), v)
    return charged, polarimeter, (one, two)
