"""e+ e- -> tau+ tau- with full spin correlations, both taus to mu nu nu or one to pi nu.

    dsigma/dOmega = alpha(s)^2 beta / (4 s) R00                                       (Born)
    R00 = 1 + c^2 + st^2/g^2    Rxx = (1 + 1/g^2) st^2      Ryy = -beta^2 st^2
    Rzz = 1 + c^2 - st^2/g^2    Rxz = Rzx = 2 st c / g      (st = sin, c = cos, g = E/m)
    weight of the decays = 1 + R_ij h-_i h+_j / R00

z along the tau-, x in the plane of the beam and towards the e-; both spins in these axes. The
polarimeter of tau- -> mu nu_tau nubar_mu is the direction of the nubar_mu in the tau's rest frame
(|M|^2 ~ (P - m s).k_nubar p_mu.k_nu, exact in m_mu), of tau- -> pi nu the direction of the pion;
opposite signs for tau+. The muon and nu_tau then decay isotropically from their own rest frame.
The sign of x matters: turning it flips Rxz.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import MUON_MASS_GEV
from simulation.couplings import ALPHA, FB_GEV2, PION_MASS_GEV, TAU_MASS_GEV, running
from simulation.frames import boost, isotropic, polar, turned
from simulation.radiation import photon, radiated_share, recoil_velocity

FloatArray = npt.NDArray[np.float64]

BR_MUON = 0.1739  # PDG 2024
BR_PION = 0.1082
PION_SHARE = 0.3  # of the draws: one tau -> pi nu; oversampled, since a fake weighs little


@numba.njit(cache=True, nogil=True, error_model="numpy")
def born_cross_section(s: float) -> float:
    """Total cross section [fb] without radiation, with the running coupling."""
    gamma2 = s / (4 * TAU_MASS_GEV**2)
    beta = sqrt(1 - 1 / gamma2)
    point = 4 * pi * (ALPHA * running(s)) ** 2 / (3 * s)
    return FB_GEV2 * point * beta * (3 - beta * beta) / 2


@numba.njit(cache=True, nogil=True, error_model="numpy")
def spin_correlation(c: float, gamma: float, h_minus, h_plus) -> float:  # type: ignore[no-untyped-def]
    """R_ij h-_i h+_j / R00, between -1 and 1."""
    s2, g2 = 1 - c * c, 1 / (gamma * gamma)
    xz = 2 * sqrt(s2) * c / gamma
    total = (
        (1 + g2) * s2 * h_minus[0] * h_plus[0]
        - (1 - g2) * s2 * h_minus[1] * h_plus[1]
        + (1 + c * c - s2 * g2) * h_minus[2] * h_plus[2]
        + xz * (h_minus[0] * h_plus[2] + h_minus[2] * h_plus[0])
    )
    return total / (1 + c * c + s2 * g2)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def decay(rng: np.random.Generator, to_pion: bool, sign: float):  # type: ignore[no-untyped-def]
    """(momentum of the charged particle, polarimeter) in the tau's rest frame; sign +1 for tau-."""
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def visible_pair(rng, s: float, pion_minus: bool, pion_plus: bool, spins: bool):  # type: ignore[no-untyped-def]
    """(plus, minus) visible momenta in the frame of the annihilation."""
    gamma = sqrt(s) / (2 * TAU_MASS_GEV)
    beta = sqrt(1 - 1 / gamma**2)
    c = 0.0
    while True:
        c = 2 * rng.random() - 1
        if 2 * rng.random() < 1 + c * c + (1 - c * c) / gamma**2:
            break
    while True:
        p_minus, h_minus = decay(rng, pion_minus, 1.0)
        p_plus, h_plus = decay(rng, pion_plus, -1.0)
        if not spins:
            break
        if 2 * rng.random() < 1 + spin_correlation(c, gamma, h_minus, h_plus):
            break
    minus = boost(p_minus, (0.0, 0.0, beta))
    plus = boost(p_plus, (0.0, 0.0, -beta))
    # `turned` carries x to -(e- direction) in the plane: x and y change sign to point at the e-
    phi = 2 * pi * rng.random()
    a = turned((-plus[0], -plus[1], plus[2]), c, phi)
    b = turned((-minus[0], -minus[1], minus[2]), c, phi)
    return (a[0], a[1], a[2], plus[3]), (b[0], b[1], b[2], minus[3])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(rng, sqrt_s, isr, spins, out, pion, weight):  # type: ignore[no-untyped-def]
    for i in range(len(sqrt_s)):
        s = sqrt_s[i] ** 2
        z, h = radiated_share(rng, s, 1 - 4 * TAU_MASS_GEV**2 / s, isr)
        reduced = s * (1 - z)
        if reduced <= 4.0001 * TAU_MASS_GEV**2:
            continue
        weight[i] = h * born_cross_section(reduced)
        u = rng.random() / PION_SHARE
        pion[i, 0], pion[i, 1] = u < 0.5, 0.5 <= u < 1
        plus, minus = visible_pair(rng, reduced, pion[i, 1], pion[i, 0], spins)
        gamma = photon(rng, z, s)
        velocity = recoil_velocity(gamma, sqrt_s[i])
        out[i, 0], out[i, 1], out[i, 2] = boost(plus, velocity), boost(minus, velocity), gamma


@dataclass(frozen=True)
class TauPairs:
    """Momenta (n, 3, 4) of +, - and ISR photon in the CM frame; pion (n, 2) for + and -.

    The mean of cross_section_fb is that of all tau pairs, of weight_fb that of the two channels.
    """

    momenta: FloatArray
    pion: npt.NDArray[np.bool_]
    cross_section_fb: FloatArray
    weight_fb: FloatArray


def tau_pairs(
    rng: np.random.Generator, *, sqrt_s_gev: FloatArray, isr: bool, spins: bool = True
) -> TauPairs:
    """One draw per entry of sqrt_s_gev. spins=False decays each tau as if unpolarised."""
    n = len(sqrt_s_gev)
    momenta, pion, sigma = np.zeros((n, 3, 4)), np.zeros((n, 2), np.bool_), np.zeros(n)
    _fill(rng, sqrt_s_gev, isr, spins, momenta, pion, sigma)
    rate = np.where(
        pion.any(axis=1),
        2 * BR_MUON * BR_PION / PION_SHARE,
        BR_MUON**2 / (1 - PION_SHARE),
    )
    return TauPairs(momenta, pion, sigma, sigma * rate)
