"""e+ e- -> mu+ mu- gamma (gamma) with photons that the detector misses: two exact samples in one.

    one photon:   dsigma_1 S(w_c)                 all others below w_c = z_c sqrt_s/2, left out
    two photons:  dsigma_2 S(w)                   the second of energy w > w_c, all others below w
    dsigma_n = 1/(2s) 1/4 sum |M_n|^2  prod_photons w^2/2 dlnw dOmega / (2 pi)^3
               p*/(4 pi M_mumu) dOmega*/(4 pi)

M_1: simulation.mumugamma, M_2: simulation.mumugammagamma, `dressed`: with vacuum polarisation;
S: simulation.infrared. The second photon is the one with the smaller pT: no factor 1/2, nothing
twice. For w -> w_c the two-photon rate is the eikonal one times dsigma_1, so the sum does not
depend on z_c: it moves events of energies that nobody measures from one sample to the other. The
true dimuon pT is above `MIN_DIMUON_PT_GEV`, so the first photon has at least half of it.

Two lost photons are the background at 0.5-6 GeV, so it is sampled by strata: nine zones of the
calorimeter for the first photon, in each of which the chance to miss it is constant, times the
second photon: none, soft, hard in one of the beam holes or between them, along the muons. Between
the holes the last overlaps with the others: each is taken with its share in the sum of both
densities. Energies of the first photon are drawn as dE/E + dM^2/M^2, M the mass of the muons.
"""

from __future__ import annotations

from math import acosh, atan2, atanh, cosh, exp, hypot, log, pi, sqrt, tanh

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from selection.compiled import inner
from simulation import mumugamma, mumugammagamma
from simulation.couplings import FB_GEV2
from simulation.detector import ECL_THETA
from simulation.frames import boost, moved, polar, put, turned
from simulation.grid import Shape
from simulation.infrared import soft_factor
from simulation.mumugammagamma import dot
from simulation.radiation import SOFT_SHARE
from simulation.spinors import Vector
from simulation.virtual_photons import ELECTRON, POSITRON, hole_versine

FloatArray = npt.NDArray[np.float64]

MIN_DIMUON_PT_GEV = 0.92  # true; below the 0.95 that is measured in the ntuples
CUT_OFF = 1e-4  # z_c: 0.5 MeV, which moves M2_rec by at most 0.01 GeV^2
SLOPE = 0.1  # z^0.1 is drawn uniformly: about the spectrum
ZONES_DEG = (0.0, 12.4, 31.4, 32.2, 89.6, 90.4, 128.7, 130.7, 155.1, 180.0)
N_ZONES = len(ZONES_DEG) - 1
NONE, SOFT, FORWARD, BACKWARD, BETWEEN, MUON = range(6)  # the second photon
N_KINDS = 6
STRATA = Shape(n_strata=N_KINDS * N_ZONES, n_dim=8, rounds=(2_000, 4_000, 8_000))
NOTHING = (0.0, 0.0, 0.0, 0.0)


@inner()
def _in_zone(x0: float, x1: float, zone: int, to_cm: FloatArray):  # type: ignore[no-untyped-def]
    """(unit vector in the CM frame, dOmega_cm / dx) of a direction in a zone of the lab."""
    low, high = np.cos(ZONES_DEG[zone] * pi / 180), np.cos(ZONES_DEG[zone + 1] * pi / 180)
    n = polar(1.0, low + (high - low) * x0, 2 * pi * x1)
    k = moved(to_cm, (n[0], n[1], n[2], 1.0))
    return (k[0] / k[3], k[1] / k[3], k[2] / k[3]), 2 * pi * (low - high) / (k[3] * k[3])


@inner()
def _along_beams(x0: float, phi: float, kind: int, gamma: float, to_lab):  # type: ignore[no-untyped-def]
    """(unit vector, dOmega / dx): 1 / (1 - (v cos)^2) is drawn, v the velocity of the beams."""
    v2 = 1 - 1 / gamma**2
    v, low, high = sqrt(v2), -acosh(gamma), acosh(gamma)
    if kind in (FORWARD, BETWEEN):
        edge = atanh(v * (1 - hole_versine(phi, ELECTRON, to_lab)))
        low, high = (edge, high) if kind == FORWARD else (low, edge)
    if kind in (BACKWARD, BETWEEN):
        edge = -atanh(v * (1 - hole_versine(-phi, POSITRON, to_lab)))
        low, high = (low, edge) if kind == BACKWARD else (edge, high)
    y = low + x0 * (high - low)
    flat = 1 / cosh(y) ** 2  # 1 - (v cos)^2
    sine = sqrt(max(0.0, flat - 1 / gamma**2) / v2)  # cos has no digits left for it
    n = polar(sine, 0.0, phi)
    c = min(1.0, max(-1.0, tanh(y) / v))
    return (n[0], n[1], c), 2 * pi * (high - low) / v * flat


@inner()
def _second(x, kind: int, sqrt_s: float, cut_off: float, to_cm, to_lab):  # type: ignore[no-untyped-def]
    """(photon, phase space per unit cube) of the second photon."""
    if kind == NONE:
        return NOTHING, 1.0
    low = cut_off if kind in (SOFT, MUON) else SOFT_SHARE
    high = SOFT_SHARE if kind == SOFT else 1.0
    first, last = low**SLOPE, high**SLOPE
    power = first + x[0] * (last - first)
    w = 0.5 * sqrt_s * power ** (1 / SLOPE)
    weight = w * w / (2 * (2 * pi) ** 3) * (last - first) / (SLOPE * power)
    if kind == MUON:
        between = N_ZONES - 2
        zone = min(int(between * x[1]), between - 1)
        n, solid_angle = _in_zone(between * x[1] - zone, x[2], 1 + zone, to_cm)
        solid_angle *= between
    else:
        gamma = sqrt_s / (2 * ELECTRON_MASS_GEV)
        n, solid_angle = _along_beams(x[1], 2 * pi * x[2], kind, gamma, to_lab)
    return (w * n[0], w * n[1], w * n[2], w), weight * solid_angle


@inner()
def _muons(x, pair: Vector, k: Vector):  # type: ignore[no-untyped-def]
    """(mu-, mu+, phase space per unit square): 1/(1 - (v cos)^2) to the photon k is drawn."""
    m = MUON_MASS_GEV
    mass = sqrt(dot(pair, pair))
    v = (pair[0] / pair[3], pair[1] / pair[3], pair[2] / pair[3])
    axis = boost(k, (-v[0], -v[1], -v[2]))
    beta = sqrt(1 - 4 * (m / mass) ** 2)
    span = atanh(beta)
    c = tanh(span * (2 * x[0] - 1)) / beta
    q = turned(
        polar(0.5 * mass * beta, c, 2 * pi * x[1]), axis[2] / axis[3], atan2(axis[1], axis[0])
    )
    k1 = boost((q[0], q[1], q[2], 0.5 * mass), v)
    k2 = boost((-q[0], -q[1], -q[2], 0.5 * mass), v)
    return k1, k2, beta / (8 * pi) * (1 - beta * beta * c * c) * span / beta


@inner()
def _in_hole(k: Vector, to_lab: FloatArray) -> bool:
    p = moved(to_lab, k)
    return not ECL_THETA[0] < atan2(hypot(p[0], p[1]), p[2]) < ECL_THETA[1]


@inner()
def _first(x: float, low: float, top: float, high: float) -> tuple[float, float]:
    """(E, dE/dx) between low and high with density 1/E + 1/(top - E)."""
    span = log(high / low * (top - low) / (top - high))
    odds = low / (top - low) * exp(x * span)
    e = top * odds / (1 + odds)
    return e, e / (1 + odds) * span


@inner()
def _share(k1: Vector, k2: Vector, first: Vector, second: Vector, gamma: float, kind: int):  # type: ignore[no-untyped-def]
    """Share of a way of drawing between the holes: density of directions along beams or muons."""
    sine2 = (second[0] ** 2 + second[1] ** 2) / second[3] ** 2
    beams = 1 / (2 * acosh(gamma) * (sine2 + (1 - sine2) / gamma**2))  # flat in cos: 1/2
    beams *= (dot(k1, first) + dot(k2, first)) ** 2 / (dot(k1, first) * dot(k2, first))
    muons = 0.5 * (dot(k1, second) + dot(k2, second)) ** 2 / (dot(k1, second) * dot(k2, second))
    return (muons if kind == MUON else beams) / (beams + muons)


@inner()
def _draw(x, stratum: int, sqrt_s: float, order, cut_off: float, to_cm, to_lab, out) -> float:  # type: ignore[no-untyped-def]
    """Weight [fb] of one point of the unit cube; momenta mu+, mu-, two photons into out (4, 4)."""
    isr, dressed = order
    m, s, kind = MUON_MASS_GEV, sqrt_s**2, stratum % N_KINDS
    if kind != NONE and not isr:
        return 0.0
    two, weight = _second(x[:3], kind, sqrt_s, cut_off, to_cm, to_lab)
    n, solid_angle = _in_zone(x[3], x[4], stratum // N_KINDS, to_cm)
    pt = hypot(two[0], two[1])
    low = max(pt, MIN_DIMUON_PT_GEV - pt) / hypot(n[0], n[1])
    along = n[0] * two[0] + n[1] * two[1] + n[2] * two[2]
    left = s - 2 * sqrt_s * two[3]  # mass^2 of all but the second photon
    top = left / (2 * (sqrt_s - two[3] + along))  # both muons would have no mass
    high = top * (1 - 4.0001 * m * m / left)
    if low >= high:
        return 0.0
    e, de = _first(x[5], low, top, high)
    one = (e * n[0], e * n[1], e * n[2], e)
    if hypot(one[0] + two[0], one[1] + two[1]) < MIN_DIMUON_PT_GEV:
        return 0.0
    pair = (-one[0] - two[0], -one[1] - two[1], -one[2] - two[2], sqrt_s - e - two[3])
    k1, k2, phase_space = _muons(x[6:], pair, two if kind == MUON else one)
    weight *= solid_angle * e / 2 * de / (2 * pi) ** 3 * phase_space
    weight *= FB_GEV2 / (8 * s)
    if kind in (BETWEEN, MUON) or (kind == SOFT and not _in_hole(two, to_lab)):
        weight *= _share(k1, k2, one, two, sqrt_s / (2 * ELECTRON_MASS_GEV), kind)
    put(out[0], k2)
    put(out[1], k1)
    put(out[2], one)
    put(out[3], two)
    if isr:
        weight *= soft_factor(k1, k2, sqrt_s, max(two[3], 0.5 * sqrt_s * cut_off))
    if kind == NONE:
        return weight * mumugamma.squared_amplitude(k1, k2, one, s, dressed)
    return weight * mumugammagamma.squared_amplitude(k1, k2, one, two, s, dressed)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(x, stratum, sqrt_s, order, cut_off, to_cm, to_lab, out, weight):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        weight[i] = _draw(x[i], stratum, sqrt_s[i], order, cut_off, to_cm, to_lab, out[i])


def lost_photon_draws(
    x: FloatArray,
    *,
    stratum: int,
    sqrt_s_gev: FloatArray,
    isr: bool,
    to_cm: FloatArray,
    cut_off: float = CUT_OFF,
    dressed: bool = True,
) -> tuple[FloatArray, FloatArray]:
    """Momenta (n, 4, 4) of mu+, mu-, two photons in the CM frame, and weight [fb] (n,).

    x (n, 8) in the unit cube; the cross section is the sum over strata of the mean weight. Without
    isr there is one photon and nothing else; undressed, photons have no vacuum polarisation.
    """
    momenta, weight = np.zeros((len(x), 4, 4)), np.zeros(len(x))
    to_lab, order = np.linalg.inv(to_cm), (isr, dressed)
    _fill(x, stratum, sqrt_s_gev, order, cut_off, to_cm, to_lab, momenta, weight)
    return momenta, weight
