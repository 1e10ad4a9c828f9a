"""e+ e- -> e+ e- mu+ mu-, two photons making the muon pair (multiperipheral diagrams), exact.

    sum|M|^2 = e^8 / (t1 t2)^2  L1_{ma} L2_{nb} M^{mn} M^{ab}*
    L  = 8 P P + 2 t g,     P = p - (E/q0) q                  (P0 = 0; q.M = 0 allows the shift)
    M^{mn} = u_bar(k1) [ g^m (k1-q1+m)/((k1-q1)^2-m^2) g^n
                       + g^n (k1-q2+m)/((k1-q2)^2-m^2) g^m ] v(k2)

    dsigma = 1/(2s) 1/4 sum|M|^2 prod_legs (dE' dt dphi / (4 p)) / (2 pi)^6
             beta/(8 pi) dOmega*/(4 pi)

The beams with their photons are simulation/virtual_photons.py; electron and muon masses are kept.
The logarithms of t, of W^2 and of a photon energy are drawn. `eemumu_draws` has the vacuum
polarisation of both photons, 5 % of the rate.

A dimuon pT near 1 GeV must be balanced by an electron: one leg ("hard") has the larger pT. Strata:
which leg is hard, its electron in the beam hole or not (missed with 0.002), its photon's energy in
thirds of the logarithm, and pT of the other leg. Near W = 2 m_mu the rate is large in a narrow
band that no product of other coordinates follows, so the other photon's energy is drawn from there.
"""

from __future__ import annotations

from math import atan2, atanh, cos, hypot, log, pi, sqrt, tanh

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA, FB_GEV2
from simulation.detector import electron_missed
from simulation.frames import boost, moved, polar, put, turned
from simulation.grid import Shape
from simulation.spinors import FINITE, UP, Vector, current, slash, slash_plus_mass, spinor
from simulation.vacuum_polarisation import running
from simulation.virtual_photons import (
    beyond_threshold,
    hole_versine,
    least_t,
    leg_at,
    log_t,
    mirrored,
    versine_of,
)

FloatArray = npt.NDArray[np.float64]

MIN_DIMUON_PT_GEV = 0.92  # true; below the 0.95 that is measured in the ntuples
OTHER_PT_GEV = 0.02  # divides the strata of the leg that is not hard
MIN_PHOTON_GEV = 0.01  # of the hard leg; below, the pair cannot have the pT
STRATA = Shape(n_strata=24, n_dim=8, rounds=(5_000, 10_000, 20_000, 40_000))
UNITS = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))


@inner(fastmath=FINITE)
def _abs2(a: complex) -> float:
    return a.real * a.real + a.imag * a.imag


@inner(fastmath=FINITE)
def muon_tensor(k1: Vector, k2: Vector, q1: Vector, q2: Vector, spins, out) -> None:  # type: ignore[no-untyped-def]
    """M^{mn} for one pair of muon spins into out (4, 4); indices (x, y, z, t), both up."""
    m = MUON_MASS_GEV
    u, v = spinor(k1, m, spins[0], 1.0), spinor(k2, m, spins[1], -1.0)
    a = (k1[0] - q1[0], k1[1] - q1[1], k1[2] - q1[2], k1[3] - q1[3])
    b = (k1[0] - q2[0], k1[1] - q2[1], k1[2] - q2[2], k1[3] - q2[3])
    da = 1 / (a[3] ** 2 - a[0] ** 2 - a[1] ** 2 - a[2] ** 2 - m * m)
    db = 1 / (b[3] ** 2 - b[0] ** 2 - b[1] ** 2 - b[2] ** 2 - m * m)
    for n in range(4):
        sign = 1.0 if n == 3 else -1.0  # slash takes the vector with upper index: g^n from e_n
        ra, lb = sign * da, sign * db
        right = current(u, slash_plus_mass(a, m, slash(UNITS[n], v)))
        left = current(slash_plus_mass(b, m, slash(UNITS[n], u)), v)
        out[0, n] = right[0] * ra + left[0] * lb
        out[1, n] = right[1] * ra + left[1] * lb
        out[2, n] = right[2] * ra + left[2] * lb
        out[3, n] = right[3] * ra + left[3] * lb


@inner(fastmath=FINITE)
def squared_amplitude(k1, k2, q1, q2, p1, p2, t1: float, t2: float) -> float:  # type: ignore[no-untyped-def]
    """Sum over all spins of |M|^2; p1, p2 the shifted momenta P (three-vectors) of the legs."""
    tensor = np.empty((4, 4), np.complex128)
    total = 0.0
    for spin in range(2):  # u spin up; down gives the same by parity
        muon_tensor(k1, k2, q1, q2, (UP, spin), tensor)
        both = 0j
        for m in range(4):
            gm = 1.0 if m == 3 else -1.0
            row, column = 0j, 0j
            for i in range(3):
                row -= p2[i] * tensor[m, i]
                column -= p1[i] * tensor[i, m]
            total += 16 * gm * (t1 * _abs2(row) + t2 * _abs2(column))
            if m < 3:
                both -= p1[m] * row
            for n in range(4):
                gn = 1.0 if n == 3 else -1.0
                total += 4 * t1 * t2 * gm * gn * _abs2(tensor[m, n])
        total += 64 * _abs2(both)
    return max(0.0, 2 * total) * (4 * pi * ALPHA) ** 4 / (t1 * t2) ** 2


@inner(fastmath=FINITE)
def photon_energies(x0: float, x1: float, sqrt_s: float, tau_min: float):  # type: ignore[no-untyped-def]
    """(w1, w2, dw1 dw2 per unit square): ln(4 w1 w2) and ln(w1/w2) uniform, both below the beam."""
    log_tau = log(sqrt_s**2 / tau_min)
    tau = tau_min * np.exp(x0 * log_tau)
    reach = log(sqrt_s**2 / tau)
    ratio = np.exp(0.5 * reach * (2 * x1 - 1))
    return 0.5 * sqrt(tau) * ratio, 0.5 * sqrt(tau) / ratio, 0.25 * tau * log_tau * reach


@inner(fastmath=FINITE)
def muon_pair(x, sqrt_s: float, one, two, out) -> float:  # type: ignore[no-untyped-def]
    """Weight [fb] per phase space of the legs; mu+, mu-, e-, e+ into out. one, two: of `leg_at`."""
    m = MUON_MASS_GEV
    t1, q1, p1, e1 = one
    t2, q2, p2, e2 = two[0], mirrored(two[1]), two[2], mirrored(two[3])
    p2 = (p2[0], -p2[1], -p2[2])
    total = (q1[0] + q2[0], q1[1] + q2[1], q1[2] + q2[2], q1[3] + q2[3])
    pair2 = total[3] ** 2 - total[0] ** 2 - total[1] ** 2 - total[2] ** 2
    if pair2 <= 4.0001 * m * m:
        return 0.0
    pair = sqrt(pair2)
    v = (total[0] / total[3], total[1] / total[3], total[2] / total[3])
    axis = boost(q1, (-v[0], -v[1], -v[2]))
    length = sqrt(axis[0] ** 2 + axis[1] ** 2 + axis[2] ** 2)
    beta = sqrt(1 - 4 * m * m / pair2)
    span = atanh(beta)
    c = tanh(span * (2 * x[0] - 1)) / beta
    a = turned(
        polar(0.5 * pair * beta, c, 2 * pi * x[1]), axis[2] / length, atan2(axis[1], axis[0])
    )
    k1 = boost((a[0], a[1], a[2], 0.5 * pair), v)
    k2 = boost((-a[0], -a[1], -a[2], 0.5 * pair), v)
    put(out[0], k2)
    put(out[1], k1)
    put(out[2], e1)
    put(out[3], e2)
    weight = beta / (8 * pi) * (1 - beta * beta * c * c) * span / beta / (2 * pi) ** 6
    return FB_GEV2 / (8 * sqrt_s**2) * weight * squared_amplitude(k1, k2, q1, q2, p1, p2, t1, t2)


@inner(fastmath=FINITE)
def _theta(to_lab: FloatArray, p: FloatArray) -> float:
    """Polar angle in the lab of an electron p of the CM frame."""
    x, y, z, _ = moved(to_lab, p)
    return atan2(hypot(x, y), z)


@inner(fastmath=FINITE)
def _soft_leg(x, one, energy: float) -> tuple[float, float, float]:  # type: ignore[no-untyped-def]
    """(w, t, dw dt dphi / (4p)) of a leg with pT < OTHER_PT_GEV.

    Along its beam W^2 = t_hard + 2 w (w_hard + q_z): ln(W^2 + 0.2 GeV^2) is uniform, where such a
    pT changes W^2 by less than 0.1.
    """
    lever = 2 * (one[1][3] + one[1][2])
    log_w = log((4 * energy**2 + 0.2) / 0.1)
    y = 0.1 * np.exp(log_w * x[0])
    w = (y - 0.2 - one[0]) / lever
    if not 0 < w < energy - ELECTRON_MASS_GEV:
        return 0.0, 0.0, 0.0
    t, weight = log_t(x[4], w, energy, 0.0, versine_of(OTHER_PT_GEV, energy - w))
    return w, t, weight * y * log_w / lever


@inner(fastmath=FINITE)
def _leg_with_pt(x, one, pt_hard: float, energy: float) -> tuple[float, float, float]:  # type: ignore[no-untyped-def]
    """(w, t, dw dt dphi / (4p)) of a forward leg, OTHER_PT_GEV < pT < pt_hard, ln pT uniform."""
    span = 2 * log(pt_hard / OTHER_PT_GEV)
    pt = OTHER_PT_GEV * np.exp(0.5 * x[4] * span)
    pt2_pair = pt_hard**2 + pt**2 + 2 * pt_hard * pt * cos(2 * pi * x[5])
    w, dw = beyond_threshold(x[0], pt, pt2_pair, one[1], energy)
    if dw <= 0 or hypot(pt, ELECTRON_MASS_GEV) >= energy - w:
        return 0.0, 0.0, 0.0
    floor, p, p_out = least_t(w, energy)
    k = sqrt(max(0.0, p_out**2 - pt**2))
    if k == 0:
        return 0.0, 0.0, 0.0
    t = floor + 2 * p * p_out * versine_of(pt, p_out)
    return w, t, dw * pt**2 * span * 2 * pi / (4 * k)  # dt = (p / k) d pT^2


@inner(fastmath=FINITE)
def _draw(x, stratum: int, sqrt_s: float, to_lab, out) -> float:  # type: ignore[no-untyped-def]
    """Weight [fb] of one point with a hard leg: dimuon pT high enough, both electrons missed."""
    hard, in_hole, third, other = (
        stratum % 2,
        stratum // 2 % 2 == 0,
        stratum // 4 % 3,
        stratum // 12,
    )
    energy = 0.5 * sqrt_s
    log_energy = log(energy / MIN_PHOTON_GEV)
    w_hard = MIN_PHOTON_GEV * np.exp(log_energy * (third + x[1]) / 3)
    phi = 2 * pi * x[3]
    edge, low = (
        hole_versine(phi, hard, to_lab),
        versine_of(0.5 * MIN_DIMUON_PT_GEV, energy - w_hard),
    )
    low, high = (low, edge) if in_hole else (max(low, edge), 2.0)
    t, weight = log_t(x[2], w_hard, energy, low, high)
    if weight <= 0:
        return 0.0
    weight *= w_hard * log_energy / 3
    one = leg_at(t, w_hard, phi, energy)
    pt = hypot(one[3][0], one[3][1])
    w_soft, t, share = _soft_leg(x, one, energy) if other == 0 else _leg_with_pt(x, one, pt, energy)
    if share <= 0:
        return 0.0
    weight *= share * (running(one[0]) * running(-t)) ** 2
    two = leg_at(t, w_soft, 2 * pi * x[5] - phi, energy)
    if hypot(two[3][0], two[3][1]) > pt:
        return 0.0
    if hypot(one[3][0] + two[3][0], one[3][1] - two[3][1]) < MIN_DIMUON_PT_GEV:
        return 0.0
    if hard == 0:
        weight *= muon_pair(x[6:], sqrt_s, one, two, out)
    else:
        weight *= muon_pair(x[6:], sqrt_s, two, one, out)
    if weight <= 0:
        return 0.0
    return (
        weight * electron_missed(_theta(to_lab, out[2])) * electron_missed(_theta(to_lab, out[3]))
    )


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FINITE)
def _fill(x, stratum: int, sqrt_s, to_lab, momenta, weight):  # type: ignore[no-untyped-def]
    out = np.empty((4, 4))
    for i in range(len(x)):
        weight[i] = _draw(x[i], stratum, sqrt_s[i], to_lab, out)
        put(momenta[i, 0], out[0])
        put(momenta[i, 1], out[1])


def eemumu_draws(
    x: FloatArray, *, stratum: int, sqrt_s_gev: FloatArray, to_lab: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Momenta (n, 2, 4) of mu+, mu- in the CM frame, and weight [fb] (n,), electrons missed.

    x (n, 8) in the unit cube; the cross section is the sum over strata of the mean weight.
    """
    momenta, weight = np.zeros((len(x), 2, 4)), np.zeros(len(x))
    _fill(x, stratum, sqrt_s_gev, to_lab, momenta, weight)
    return momenta, weight


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FINITE)
def total_weights(x, sqrt_s: float, min_pair_mass: float):  # type: ignore[no-untyped-def]
    """Weights [fb] over all phase space with W above min_pair_mass; the check of the total."""
    weight, out = np.zeros(len(x)), np.empty((4, 4))
    for i in range(len(x)):
        w1, w2, w = photon_energies(x[i, 0], x[i, 1], sqrt_s, 0.01)
        t1, weight1 = log_t(x[i, 2], w1, 0.5 * sqrt_s, 0.0, 2.0)
        t2, weight2 = log_t(x[i, 4], w2, 0.5 * sqrt_s, 0.0, 2.0)
        if weight1 <= 0 or weight2 <= 0:
            continue
        one = leg_at(t1, w1, 2 * pi * x[i, 3], 0.5 * sqrt_s)
        two = leg_at(t2, w2, 2 * pi * x[i, 5], 0.5 * sqrt_s)
        w *= weight1 * weight2 * muon_pair(x[i, 6:], sqrt_s, one, two, out)
        pair = out[0] + out[1]
        if w > 0 and pair[3] ** 2 - pair[0] ** 2 - pair[1] ** 2 - pair[2] ** 2 > min_pair_mass**2:
            weight[i] = w
    return weight
