"""e+ e- -> tau+ tau- with full spin correlations, each tau to mu nu nu, pi nu or rho nu.

    dsigma/dOmega = alpha(s)^2 beta / (4 s) R00                                       (Born)
    R00 = 1 + c^2 + st^2/g^2    Rxx = (1 + 1/g^2) st^2      Ryy = -beta^2 st^2
    Rzz = 1 + c^2 - st^2/g^2    Rxz = Rzx = 2 st c / g      (st = sin, c = cos, g = E/m)
    weight of the decays = 1 + R_ij h-_i h+_j / R00

z along the tau-, x in the plane of the beam and towards the e-; both spins in these axes. Decays
and polarimeters h: simulation.taudecay; radiation off their muons: simulation.final_radiation. A
pion may be taken for a muon, one or both of them; the photons of a rho must be lost. The sign of x
matters: turning it flips Rxz.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt

import numba
import numpy as np
import numpy.typing as npt

from selection.compiled import inner
from simulation.couplings import ALPHA, FB_GEV2, TAU_MASS_GEV
from simulation.final_radiation import muon_radiates
from simulation.frames import boost, put, turned
from simulation.radiation import photon, radiated_share, recoil_velocity
from simulation.spinors import Vector
from simulation.taudecay import MUON, NO_PHOTONS, PION, RHO, decay, rho_decay
from simulation.vacuum_polarisation import running

FloatArray = npt.NDArray[np.float64]

BRANCHING = (0.1739, 0.1082, 0.2549)  # mu nu nu, pi nu, pi pi0 nu; PDG 2024
DRAWN = (0.7, 0.11, 0.19)  # shares of the draws: a fake weighs little


@inner()
def born_cross_section(s: float) -> float:
    """Total cross section [fb] without radiation, with the running coupling."""
    gamma2 = s / (4 * TAU_MASS_GEV**2)
    beta = sqrt(1 - 1 / gamma2)
    point = 4 * pi * (ALPHA * running(s)) ** 2 / (3 * s)
    return FB_GEV2 * point * beta * (3 - beta * beta) / 2


@inner()
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


@inner()
def _decayed(rng: np.random.Generator, mode: int, sign: float, fsr: bool):  # type: ignore[no-untyped-def]
    """(charged particle, polarimeter, two photons) in the tau's rest frame."""
    if mode == RHO:
        return rho_decay(rng, sign)
    p, h = decay(rng, mode == PION, sign)
    if mode == MUON and fsr:
        p, photon_off_muon = muon_radiates(rng, p)
        return p, h, (photon_off_muon, NO_PHOTONS[1])
    return p, h, NO_PHOTONS


@inner()
def visible_pair(rng, s: float, minus_mode: int, plus_mode: int, spins: bool, fsr: bool = False):  # type: ignore[no-untyped-def]
    """(plus, minus, photons of plus, of minus) in the frame of the annihilation."""
    gamma = sqrt(s) / (2 * TAU_MASS_GEV)
    beta = sqrt(1 - 1 / gamma**2)
    c = 0.0
    while True:
        c = 2 * rng.random() - 1
        if 2 * rng.random() < 1 + c * c + (1 - c * c) / gamma**2:
            break
    while True:
        p_minus, h_minus, g_minus = _decayed(rng, minus_mode, 1.0, fsr)
        p_plus, h_plus, g_plus = _decayed(rng, plus_mode, -1.0, fsr)
        if not spins:
            break
        if 2 * rng.random() < 1 + spin_correlation(c, gamma, h_minus, h_plus):
            break
    phi = 2 * pi * rng.random()
    return (
        _placed(p_plus, -beta, c, phi),
        _placed(p_minus, beta, c, phi),
        _placed(g_plus[0], -beta, c, phi),
        _placed(g_plus[1], -beta, c, phi),
        _placed(g_minus[0], beta, c, phi),
        _placed(g_minus[1], beta, c, phi),
    )


@inner()
def _placed(p: Vector, beta: float, c: float, phi: float) -> Vector:
    """A momentum of the tau's rest frame, the tau with velocity beta along (c, phi).

    `turned` carries x to -(e- direction) in the plane: x and y change sign to point at the e-.
    """
    if p[3] == 0:  # no photon
        return p
    moved = boost(p, (0.0, 0.0, beta))
    x, y, z = turned((-moved[0], -moved[1], moved[2]), c, phi)
    return (x, y, z, moved[3])


@inner()
def _mode(u: float) -> int:
    return MUON if u < DRAWN[MUON] else PION if u < DRAWN[MUON] + DRAWN[PION] else RHO


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(rng, sqrt_s, isr, fsr, spins, out, mode, weight):  # type: ignore[no-untyped-def]
    for i in range(len(sqrt_s)):
        s = sqrt_s[i] ** 2
        z, h = radiated_share(rng, s, 1 - 4 * TAU_MASS_GEV**2 / s, isr)
        reduced = s * (1 - z)
        if reduced <= 4.0001 * TAU_MASS_GEV**2:
            continue
        weight[i] = h * born_cross_section(reduced)
        mode[i, 0], mode[i, 1] = _mode(rng.random()), _mode(rng.random())
        visible = visible_pair(rng, reduced, mode[i, 1], mode[i, 0], spins, fsr)
        gamma = photon(rng, z, s)
        velocity = recoil_velocity(gamma, sqrt_s[i])
        put(out[i, 2], gamma)
        for j in range(6):
            if visible[j][3] > 0:
                put(out[i, j if j < 2 else j + 1], boost(visible[j], velocity))


@dataclass(frozen=True)
class TauPairs:
    """Momenta (n, 7, 4) of +, -, ISR photon, two photons of + and two of - in the CM frame.

    mode (n, 2): decays of the tau+ and the tau-. The mean of cross_section_fb is that of all tau
    pairs, of weight_fb that of pairs with these decays.
    """

    momenta: FloatArray
    mode: npt.NDArray[np.int64]
    cross_section_fb: FloatArray
    weight_fb: FloatArray

    @property
    def pion(self) -> npt.NDArray[np.bool_]:
        """(n, 2): whether the charged particle is a pion."""
        return self.mode != MUON


def tau_pairs(
    rng: np.random.Generator,
    *,
    sqrt_s_gev: FloatArray,
    isr: bool,
    fsr: bool,
    spins: bool = True,
) -> TauPairs:
    """One draw per entry of sqrt_s_gev. spins=False decays each tau as if unpolarised."""
    n = len(sqrt_s_gev)
    momenta, mode, sigma = np.zeros((n, 7, 4)), np.zeros((n, 2), np.int64), np.zeros(n)
    _fill(rng, sqrt_s_gev, isr, fsr, spins, momenta, mode, sigma)
    rate = (np.array(BRANCHING) / np.array(DRAWN))[mode].prod(axis=1)
    return TauPairs(momenta, mode, sigma, sigma * rate)
