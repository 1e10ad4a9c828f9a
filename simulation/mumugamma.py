"""e+ e- -> mu+ mu- gamma with a photon that the detector misses.

    M_a = e^3 { v_bar(p2) [ g^mu (p1-k)/(-2 p1.k) g_a + g_a (k-p2)/(-2 p2.k) g^mu ] u(p1)
                   . u_bar(k1) g_mu v(k2) / (k1+k2)^2
              + v_bar(p2) g_mu u(p1) . u_bar(k1) [ g_a (k1+k+m)/(2 k1.k) g^mu
                   + g^mu (-k2-k+m)/(2 k2.k) g_a ] v(k2) / s }
    sum |M|^2 = - M_a M^a*                      (both brackets vanish for g_a -> k)

    dsigma = 1/(2s) 1/4 sum |M|^2  E^2/2 dlnE dOmega / (2 pi)^3  p*/(4 pi M_mumu) dOmega*/(4 pi)

Emission off the beams, off the muons and their interference, muon mass kept, electron mass zero:
the true dimuon pT is above `MIN_DIMUON_PT_GEV`, and the photon has at least half of it. A second
photon comes from the radiator (simulation.radiation) along the beams; the one with the larger pT
is the one of the matrix element. Two lost photons are the background at 1-6 GeV, so it is sampled
by strata: nine zones of the calorimeter, in each of which the chance to miss the photon is
constant, times soft or hard radiation.
"""

from __future__ import annotations

from math import atan2, atanh, hypot, log, pi, sqrt, tanh

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from simulation.couplings import ALPHA, FB_GEV2
from simulation.frames import boost, polar, turned
from simulation.grid import Shape
from simulation.radiation import exponent, radiator, recoil_velocity
from simulation.spinors import Vector, bar_product, current, slash, slash_plus_mass, spinor

FloatArray = npt.NDArray[np.float64]

MIN_DIMUON_PT_GEV = 0.92  # true; below the 0.95 that is measured in the ntuples
SOFT_SHARE = 0.01  # z that divides soft from hard radiation; 53 MeV
ZONES_DEG = (0.0, 12.4, 31.4, 32.2, 89.6, 90.4, 128.7, 130.7, 155.1, 180.0)
STRATA = Shape(n_strata=2 * (len(ZONES_DEG) - 1), n_dim=8, rounds=(5_000, 5_000, 10_000, 20_000))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def contracted(k1: Vector, k2: Vector, k: Vector, s: float, eps: Vector) -> float:
    """Sum over spins of |M_a eps^a|^2 / e^6; beams along z, rest frame of the annihilation."""
    m, half = MUON_MASS_GEV, 0.5 * sqrt(s)
    u = spinor((0.0, 0.0, half, half), 0.0, 0, 1.0)
    v = spinor((0.0, 0.0, -half, half), 0.0, 1, -1.0)
    j = current(v, u)  # one helicity of the beams; the other gives the same sum
    a = current(v, slash((-k[0], -k[1], half - k[2], half - k[3]), slash(eps, u)))
    b = current(slash((k[0], k[1], half + k[2], k[3] - half), slash(eps, v)), u)
    d1, d2 = -2 * half * (k[3] - k[2]), -2 * half * (k[3] + k[2])  # -2 p.k
    pair2 = 2 * (m * m + k1[3] * k2[3] - k1[0] * k2[0] - k1[1] * k2[1] - k1[2] * k2[2])
    d1, d2 = d1 * pair2, d2 * pair2
    isr = (
        a[0] / d1 + b[0] / d2,
        a[1] / d1 + b[1] / d2,
        a[2] / d1 + b[2] / d2,
        a[3] / d1 + b[3] / d2,
    )

    one = (k1[0] + k[0], k1[1] + k[1], k1[2] + k[2], k1[3] + k[3])
    two = (-k2[0] - k[0], -k2[1] - k[1], -k2[2] - k[2], -k2[3] - k[3])
    f1 = 2 * s * (k1[3] * k[3] - k1[0] * k[0] - k1[1] * k[1] - k1[2] * k[2])
    f2 = 2 * s * (k2[3] * k[3] - k2[0] * k[0] - k2[1] * k[1] - k2[2] * k[2])
    total = 0.0
    for spin in range(2):
        w = spinor(k2, m, spin, -1.0)
        i0, i1, i2, i3 = slash(isr, w)
        a0, a1, a2, a3 = slash(eps, slash_plus_mass(one, m, slash(j, w)))
        b0, b1, b2, b3 = slash(j, slash_plus_mass(two, m, slash(eps, w)))
        psi = (
            i0 + a0 / f1 + b0 / f2,
            i1 + a1 / f1 + b1 / f2,
            i2 + a2 / f1 + b2 / f2,
            i3 + a3 / f1 + b3 / f2,
        )
        for other in range(2):
            amplitude = bar_product(spinor(k1, m, other, 1.0), psi)
            total += amplitude.real**2 + amplitude.imag**2
    return 2 * total


@numba.njit(cache=True, nogil=True, error_model="numpy")
def squared_amplitude(k1: Vector, k2: Vector, k: Vector, s: float) -> float:
    """Sum over all spins and polarisations of |M|^2 (k1: mu-, k2: mu+, k: photon)."""
    total = (
        contracted(k1, k2, k, s, (1.0, 0.0, 0.0, 0.0))
        + contracted(k1, k2, k, s, (0.0, 1.0, 0.0, 0.0))
        + contracted(k1, k2, k, s, (0.0, 0.0, 1.0, 0.0))
        - contracted(k1, k2, k, s, (0.0, 0.0, 0.0, 1.0))
    )
    return (4 * pi * ALPHA) ** 3 * total


@numba.njit(cache=True, nogil=True, error_model="numpy")
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


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _direction(x0: float, x1: float, zone: int, to_cm: FloatArray):  # type: ignore[no-untyped-def]
    """(unit vector in the CM frame, dOmega_cm / dx) of a direction in a zone of the lab."""
    low, high = np.cos(ZONES_DEG[zone] * pi / 180), np.cos(ZONES_DEG[zone + 1] * pi / 180)
    n = polar(1.0, low + (high - low) * x0, 2 * pi * x1)
    k = to_cm @ np.array((n[0], n[1], n[2], 1.0))
    return (k[0] / k[3], k[1] / k[3], k[2] / k[3]), 2 * pi * (low - high) / (k[3] * k[3])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _draw(x, stratum: int, sqrt_s: float, isr: bool, to_cm, out) -> float:  # type: ignore[no-untyped-def]
    """Weight [fb] of one point of the unit cube; momenta mu+, mu-, two photons into out (4, 4)."""
    m, s = MUON_MASS_GEV, sqrt_s**2
    z, weight, soft = radiation_draw(x[:3], s, stratum % 2 == 1, isr)
    n, solid_angle = _direction(x[3], x[4], stratum // 2, to_cm)
    reduced, pt = s * (1 - z), hypot(soft[0], soft[1])
    low = max(pt, MIN_DIMUON_PT_GEV - pt) / hypot(n[0], n[1])
    along = n[0] * soft[0] + n[1] * soft[1] + n[2] * soft[2]
    high = (reduced - 4 * m * m) / (2 * (sqrt_s - soft[3] + along))  # 2 P'.k = s' - M_mumu^2
    if low >= high or weight <= 0:
        return 0.0
    e = low * (high / low) ** x[5]
    if hypot(e * n[0] + soft[0], e * n[1] + soft[1]) < MIN_DIMUON_PT_GEV:
        return 0.0
    back = recoil_velocity(soft, sqrt_s)
    k = boost((e * n[0], e * n[1], e * n[2], e), (-back[0], -back[1], -back[2]))
    root = sqrt(reduced)
    pair2 = reduced - 2 * root * k[3]
    if pair2 <= 4.0001 * m * m:
        return 0.0
    pair = sqrt(pair2)
    # muons in the frame of the pair, angle to the photon: 1/(1 - (beta c)^2) flattens both peaks
    beta = sqrt(1 - 4 * m * m / pair2)
    span = atanh(beta)
    c = tanh(span * (2 * x[6] - 1)) / beta
    q = turned(polar(0.5 * pair * beta, c, 2 * pi * x[7]), k[2] / k[3], atan2(k[1], k[0]))
    v = (-k[0] / (root - k[3]), -k[1] / (root - k[3]), -k[2] / (root - k[3]))
    k1 = boost((q[0], q[1], q[2], 0.5 * pair), v)
    k2 = boost((-q[0], -q[1], -q[2], 0.5 * pair), v)
    weight *= solid_angle * e * e / 2 * log(high / low) / (2 * pi) ** 3
    weight *= beta / (8 * pi) * (1 - beta * beta * c * c) * span / beta
    out[0], out[1] = boost(k2, back), boost(k1, back)
    out[2], out[3] = (e * n[0], e * n[1], e * n[2], e), soft
    return FB_GEV2 / (8 * reduced) * weight * squared_amplitude(k1, k2, k, reduced)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(x, stratum, sqrt_s, isr, to_cm, out, weight):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        weight[i] = _draw(x[i], stratum, sqrt_s[i], isr, to_cm, out[i])


def mumugamma_draws(
    x: FloatArray, *, stratum: int, sqrt_s_gev: FloatArray, isr: bool, to_cm: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Momenta (n, 4, 4) of mu+, mu-, two photons in the CM frame, and weight [fb] (n,).

    x (n, 8) in the unit cube; the cross section is the sum over strata of the mean weight.
    """
    momenta, weight = np.zeros((len(x), 4, 4)), np.zeros(len(x))
    _fill(x, stratum, sqrt_s_gev, isr, to_cm, momenta, weight)
    return momenta, weight
