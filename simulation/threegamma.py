"""e+ e- -> gamma gamma gamma, all three photons in the calorimeter.

    sum |M|^2 = 4 e^6 s sum_i a_i b_i (a_i^2 + b_i^2) / prod_j a_j b_j,   a = p1.k, b = p2.k
                (massless electrons; F. A. Berends and R. Kleiss, Nucl. Phys. B186 (1981) 22)
    sigma     = 1/(2s) 1/4 1/3! integral sum |M|^2 dPhi_3
    dPhi_3    = E^2/2 dlnE dOmega / (2 pi)^3  dOmega* / (32 pi^2)

E, Omega: the softest photon; Omega*: one of the other two in the rest frame of both. Naming the
softest leaves 1/2 of the 1/3!. There is no pole between photons; those at the beams are outside.

Generated region, a little wider than the loose preselection of simulation.calorimeter: all three in
12.4 < theta < 155.1 deg and above 0.4 GeV in the lab, M(3 gamma) > 0.8 sqrt_s. The cross section of
a sample is that of this region. Radiation off the beams is one photon of simulation.radiation whose
pT is below those of the three. Not modelled: four photons in the calorimeter beyond that, virtual
corrections beyond those of the radiator, e+ e- -> gamma gamma with a split or random cluster.
"""

from __future__ import annotations

from math import atan2, atanh, hypot, log, pi, sqrt, tanh

import numba
import numpy as np
import numpy.typing as npt

from selection.compiled import inner
from simulation.couplings import ALPHA, FB_GEV2
from simulation.detector import ECL_THETA
from simulation.frames import boost, polar, put
from simulation.grid import Shape
from simulation.radiation import radiation_draw, recoil_velocity
from simulation.spinors import Vector

FloatArray = npt.NDArray[np.float64]

MIN_ENERGY_GEV = 0.4  # true, in the lab; 0.5 is measured in the ntuples
MIN_MASS_SHARE = 0.8  # of sqrt_s
FLATTENED = 0.98  # cos drawn as 1 / (1 - (0.98 cos)^2): about the pole, cut by the calorimeter
STRATA = Shape(n_strata=2, n_dim=8, rounds=(5_000, 10_000, 20_000, 40_000))  # radiation soft, hard


@inner()
def squared_amplitude(k1: Vector, k2: Vector, k3: Vector, s: float) -> float:
    """Sum over all spins of |M|^2 [GeV^-2], beams along z in the rest frame of the photons."""
    half = 0.5 * sqrt(s)
    total, product = 0.0, 1.0
    for k in (k1, k2, k3):
        a, b = half * (k[3] - k[2]), half * (k[3] + k[2])
        total += a * b * (a * a + b * b)
        product *= a * b
    return 4 * (4 * pi * ALPHA) ** 3 * s * total / product


@inner()
def _direction(x0: float, x1: float):  # type: ignore[no-untyped-def]
    """(cos theta, phi, dOmega / dx) with most directions near the beams."""
    span = atanh(FLATTENED)
    c = min(1.0, max(-1.0, tanh(span * (2 * x0 - 1)) / FLATTENED))
    solid_angle = 4 * pi * span / FLATTENED * (1 - (FLATTENED * c) ** 2)
    return c, 2 * pi * x1, solid_angle


@inner()
def _in_region(k: Vector, min_pt: float, to_lab: FloatArray) -> bool:
    """Whether a photon of the CM frame belongs to the generated region."""
    lab = to_lab @ np.array(k)
    theta = atan2(hypot(lab[0], lab[1]), lab[2])
    in_ecl = ECL_THETA[0] < theta < ECL_THETA[1]
    return in_ecl and lab[3] > MIN_ENERGY_GEV and hypot(k[0], k[1]) > min_pt


@inner()
def _draw(x, stratum: int, sqrt_s: float, isr: bool, to_lab, out) -> float:  # type: ignore[no-untyped-def]
    """Weight [fb] of one point of the unit cube; three photons and the radiated one into out."""
    z, weight, soft = radiation_draw(x[:3], sqrt_s**2, stratum == 1, isr)
    if weight <= 0 or 1 - z < MIN_MASS_SHARE**2:
        return 0.0
    s = sqrt_s**2 * (1 - z)
    root, back = sqrt(s), recoil_velocity(soft, sqrt_s)
    c, phi, solid_angle = _direction(x[3], x[4])
    n = polar(1.0, c, phi)
    per_energy = (to_lab @ np.array(boost((n[0], n[1], n[2], 1.0), back)))[3]
    low, high = MIN_ENERGY_GEV / per_energy, root / 3  # the softest has at most a third
    if low >= high:
        return 0.0
    e = low * (high / low) ** x[5]
    k1 = (e * n[0], e * n[1], e * n[2], e)
    c, phi, other_angle = _direction(x[6], x[7])
    half = 0.5 * sqrt(s - 2 * root * e)
    q = polar(half, c, phi)
    v = (-k1[0] / (root - e), -k1[1] / (root - e), -k1[2] / (root - e))
    k2 = boost((q[0], q[1], q[2], half), v)
    k3 = boost((-q[0], -q[1], -q[2], half), v)
    if k2[3] < e or k3[3] < e:
        return 0.0
    put(out[0], boost(k1, back))
    put(out[1], boost(k2, back))
    put(out[2], boost(k3, back))
    put(out[3], soft)
    min_pt = hypot(soft[0], soft[1])
    for j in range(3):
        k = (out[j, 0], out[j, 1], out[j, 2], out[j, 3])
        if not _in_region(k, min_pt, to_lab):
            return 0.0
    phase_space = e * e / 2 * log(high / low) * solid_angle / (2 * pi) ** 3
    phase_space *= other_angle / (32 * pi**2)
    return FB_GEV2 / (2 * s) / 4 / 2 * weight * phase_space * squared_amplitude(k1, k2, k3, s)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(x, stratum, sqrt_s, isr, to_lab, out, weight):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        weight[i] = _draw(x[i], stratum, sqrt_s[i], isr, to_lab, out[i])


def threegamma_draws(
    x: FloatArray, *, stratum: int, sqrt_s_gev: FloatArray, isr: bool, to_lab: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Momenta (n, 4, 4) of three photons and a radiated one in the CM frame, and weight [fb] (n,).

    x (n, 8) in the unit cube; the cross section is the sum over strata of the mean weight.
    """
    momenta, weight = np.zeros((len(x), 4, 4)), np.zeros(len(x))
    _fill(x, stratum, sqrt_s_gev, isr, to_lab, momenta, weight)
    return momenta, weight
