"""e+ e- -> mu+ mu- Z' at tree level, the Z' radiated off either muon.

    M   = u_bar(k1) [ g^a (k1+q+m)/D1 g^mu + g^mu (-k2-q+m)/D2 g^a ] v(k2) J_mu eps*_a e^2 g' / s
    D_i = 2 k_i.q + m_Z'^2          (k1: mu-, k2: mu+, q: Z')
    sum over eps -> -g_ab           (the muon current is conserved)
    sum over e spins: J_mu J*_nu -> 2 s on x and y (massless e along z)

    sigma = 1/(2s) 1/4 integral sum|M|^2 dPhi_3
    dPhi_3 = dy1 dy2 / (4s) dOmega dphi / (8 (2 pi)^5)

with y_i = D_i and E1 = (s - y2)/(2 sqrt_s), E2 = (s - y1)/(2 sqrt_s), both y drawn log-uniform.
sigma goes as g'^2 exactly; the samples are made for g' = 0.1. `signal_draws` has the vacuum
polarisation of the photon, a factor on e^2 / s. Radiation off the beams is that of
simulation.radiation, off the muons that of simulation.final_radiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA, FB_GEV2
from simulation.final_radiation import pair_radiates
from simulation.frames import boost, isotropic, polar, put, turned
from simulation.radiation import photon, radiated_share, recoil_velocity
from simulation.spinors import FINITE, Vector, bar_product, slash, slash_plus_mass, spinor
from simulation.vacuum_polarisation import running

G_PRIME = 0.1
FloatArray = npt.NDArray[np.float64]


@inner(fastmath=FINITE)
def squared_current(k1: Vector, k2: Vector, q: Vector, j, eps) -> float:  # type: ignore[no-untyped-def]
    """Sum over muon spins of |u_bar Gamma(eps, j) v|^2; eps, j any (complex) vectors."""
    m = MUON_MASS_GEV
    one = (k1[0] + q[0], k1[1] + q[1], k1[2] + q[2], k1[3] + q[3])
    two = (-k2[0] - q[0], -k2[1] - q[1], -k2[2] - q[2], -k2[3] - q[3])
    d1 = 1 / (one[3] ** 2 - one[0] ** 2 - one[1] ** 2 - one[2] ** 2 - m * m)
    d2 = 1 / (two[3] ** 2 - two[0] ** 2 - two[1] ** 2 - two[2] ** 2 - m * m)
    total = 0.0
    for spin in range(2):
        v = spinor(k2, m, spin, -1.0)
        a0, a1, a2, a3 = slash(eps, slash_plus_mass(one, m, slash(j, v)))
        b0, b1, b2, b3 = slash(j, slash_plus_mass(two, m, slash(eps, v)))
        psi = (a0 * d1 + b0 * d2, a1 * d1 + b1 * d2, a2 * d1 + b2 * d2, a3 * d1 + b3 * d2)
        for other in range(2):
            amplitude = bar_product(spinor(k1, m, other, 1.0), psi)
            total += amplitude.real**2 + amplitude.imag**2
    return total


@inner(fastmath=FINITE)
def squared_amplitude(k1: Vector, k2: Vector, q: Vector, s: float, g: float) -> float:
    """Sum over all spins of |M|^2, beams along z in the rest frame of k1 + k2 + q."""
    j = (1 + 0j, 1j, 0j, 0j)  # one helicity of the beams; the other gives the same
    total = (
        squared_current(k1, k2, q, j, (1.0, 0.0, 0.0, 0.0))
        + squared_current(k1, k2, q, j, (0.0, 1.0, 0.0, 0.0))
        + squared_current(k1, k2, q, j, (0.0, 0.0, 1.0, 0.0))
        - squared_current(k1, k2, q, j, (0.0, 0.0, 0.0, 1.0))
    )
    return (4 * pi * ALPHA) ** 2 * g * g * 2 * total / s


@inner(fastmath=FINITE)
def point(  # type: ignore[no-untyped-def]
    rng: np.random.Generator, s: float, mass: float
):
    """(weight [fb], k1, k2) of one uniform draw in the frame of the annihilation; 0 if outside."""
    root, m = sqrt(s), MUON_MASS_GEV
    low = (m + mass) ** 2 - m * m
    span = log(((root - m) ** 2 - m * m) / low)
    y1, y2 = low * np.exp(span * rng.random()), low * np.exp(span * rng.random())
    e1, e2 = (s - y2) / (2 * root), (s - y1) / (2 * root)
    c, phi = isotropic(rng)
    turn = 2 * pi * rng.random()
    nothing = (0.0, 0.0, 0.0, 0.0)
    if e1 <= m or e2 <= m:
        return 0.0, nothing, nothing
    p1, p2 = sqrt(e1 * e1 - m * m), sqrt(e2 * e2 - m * m)
    q2 = (root - e1 - e2) ** 2 - mass * mass  # |q|^2
    c12 = (q2 - p1 * p1 - p2 * p2) / (2 * p1 * p2)
    if not abs(c12) <= 1 or e1 + e2 + mass > root:
        return 0.0, nothing, nothing
    a = turned((0.0, 0.0, p1), c, phi)
    b = turned(polar(p2, c12, turn), c, phi)
    k1, k2 = (a[0], a[1], a[2], e1), (b[0], b[1], b[2], e2)
    q = (-a[0] - b[0], -a[1] - b[1], -a[2] - b[2], root - e1 - e2)
    phase_space = y1 * y2 * span * span / (4 * s) * 8 * pi**2 / (8 * (2 * pi) ** 5)
    amplitude = squared_amplitude(k1, k2, q, s, G_PRIME)
    return FB_GEV2 / (2 * s) / 4 * amplitude * phase_space, k1, k2


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FINITE)
def _fill(  # type: ignore[no-untyped-def]
    rng: np.random.Generator, sqrt_s: FloatArray, mass: float, isr: bool, fsr: bool, out, weight
):
    for i in range(len(sqrt_s)):
        s = sqrt_s[i] ** 2
        z, h = radiated_share(rng, s, 1 - (2 * MUON_MASS_GEV + mass) ** 2 / s, isr)
        w, k1, k2 = point(rng, s * (1 - z), mass)
        if w <= 0:
            continue
        weight[i] = w * h * running(s * (1 - z)) ** 2
        gamma = photon(rng, z, s)
        velocity = recoil_velocity(gamma, sqrt_s[i])
        if fsr:
            k1, k2, off_muons = pair_radiates(rng, k1, k2)
            put(out[i, 3], boost(off_muons, velocity))
        put(out[i, 0], boost(k2, velocity))
        put(out[i, 1], boost(k1, velocity))
        put(out[i, 2], gamma)


@dataclass(frozen=True)
class SignalEvents:
    """Momenta (n, 4, 4) of mu+, mu-, ISR and FSR photon in the CM frame; weight [fb] per try."""

    momenta: FloatArray
    weight_fb: FloatArray


def signal_draws(
    rng: np.random.Generator, *, mass_gev: float, sqrt_s_gev: FloatArray, isr: bool, fsr: bool
) -> SignalEvents:
    """One weighted draw per entry of sqrt_s_gev; the mean weight is sigma at g' = 0.1."""
    momenta, weight = np.zeros((len(sqrt_s_gev), 4, 4)), np.zeros(len(sqrt_s_gev))
    _fill(rng, sqrt_s_gev, mass_gev, isr, fsr, momenta, weight)
    return SignalEvents(momenta, weight)
