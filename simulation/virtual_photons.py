"""A beam that radiates a virtual photon: energies, t, and the coordinates they are drawn in.

    p, p' = p - q: the beam before and after, t = q^2, least -t = 2 m^2 w^2 / (E E' - m^2 + p p')
    P = p - (E/q0) q                            (P0 = 0; P_z from q.P = t/2 - (E/q0) t)

Without the shift to P the terms of order E^2 in the lepton tensor cancel down to t ~ 1e-9 and
nothing is left. A leg is described along +z; `mirrored` turns it for the other beam. 1 - cos is
called versine: cos itself has no digits left at the angles that matter.
"""

from __future__ import annotations

from math import acos, acosh, atan2, atanh, cos, cosh, hypot, log, log1p, pi, sin, sqrt, tanh

import numpy as np
import numpy.typing as npt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from selection.compiled import inner
from simulation.detector import ECL_THETA

FloatArray = npt.NDArray[np.float64]

ELECTRON, POSITRON = np.int64(0), np.int64(1)  # for a plain 0 numba would compile once more


@inner()
def versine_of(pt: float, p: float) -> float:
    """1 - cos of the forward angle with this pT; 2 (backward) where no angle has it."""
    sine = pt / p
    return sine * sine / (1 + sqrt(1 - sine * sine)) if sine < 1 else 2.0


@inner()
def hole_versine(phi: float, which: int | np.int64, to_lab: FloatArray) -> float:
    """1 - cos of the CM angle at which leg `which` (ELECTRON, POSITRON) leaves its beam hole.

    The edge is p_z = cos(edge) E in the lab, linear in sin and cos of the angle; the beams cross,
    so it depends on the azimuth.
    """
    sign, c = 1.0 if which == 0 else -1.0, cos(ECL_THETA[which])
    x, y = to_lab[2, 0] - c * to_lab[3, 0], to_lab[2, 1] - c * to_lab[3, 1]
    z, t = to_lab[2, 2] - c * to_lab[3, 2], to_lab[2, 3] - c * to_lab[3, 3]
    a = sign * x * cos(phi) + y * sin(phi)
    return 1 - cos(atan2(a, z) + acos(-sign * t / hypot(a, z)))


@inner()
def least_t(w: float, energy: float) -> tuple[float, float, float]:
    """(-t of forward scattering, momentum before, momentum after) for a photon of energy w."""
    m, e = ELECTRON_MASS_GEV, energy - w
    p, p_out = sqrt(energy**2 - m * m), sqrt(e * e - m * m)
    return 2 * m * m * w * w / (energy * e - m * m + p * p_out), p, p_out


@inner()
def leg_at(t: float, w: float, phi: float, energy: float):  # type: ignore[no-untyped-def]
    """One beam along +z that radiates a photon with q^2 = -t: (-t, q, P, scattered electron)."""
    floor, p, p_out = least_t(w, energy)
    versine = min(2.0, (t - floor) / (2 * p * p_out))  # 1 - cos
    pt = p_out * sqrt(max(0.0, versine * (2 - versine)))
    x, y = pt * cos(phi), pt * sin(phi)
    qz = w * (2 * energy - w) / (p + p_out) + p_out * versine
    ratio = energy / w
    pz = p - ratio * qz if t > 0.01 else (-t * (ratio - 0.5) + ratio * pt * pt) / qz
    out = (x, y, p_out * (1 - versine), energy - w)
    return -t, (-x, -y, qz, w), (ratio * x, ratio * y, pz), out


@inner()
def log_t(x: float, w: float, energy: float, low: float, high: float) -> tuple[float, float]:
    """(t, dt dphi / (4p) per unit square) with ln t uniform where low < 1 - cos < high; 0: none."""
    if energy - w <= ELECTRON_MASS_GEV * 1.001 or low >= high:
        return 0.0, 0.0
    floor, p, p_out = least_t(w, energy)
    t_low = floor + 2 * p * p_out * low
    span = log((floor + 2 * p * p_out * high) / t_low)
    t = t_low * np.exp(x * span)
    return t, t * span * 2 * pi / (4 * p)


@inner()
def beyond_threshold(x: float, pt: float, pt2_pair: float, hard, energy: float):  # type: ignore[no-untyped-def]
    """(w, dw per unit interval) of a leg whose electron has this pT; the pair's pT^2 is given.

    With e = energy - w, k^2 = e^2 - m^2 - pT^2, A = energy + w_hard, B = q_z - p of the hard leg:

        W^2 = A^2 - B^2 - pt2_pair + m^2 + pT^2 - 2 (A e + B k)

    so W = 2 m_mu at A cosh(eta) + B sinh(eta) = c, with (e, k) along (cosh, sinh); from there on
    the logarithm of W^2 - 4 m_mu^2 + 0.1 GeV^2, to first order in w, is uniform.
    """
    mt2 = ELECTRON_MASS_GEV**2 + pt * pt
    mt = sqrt(mt2)
    a, b = energy + hard[3], hard[2] - sqrt(energy**2 - ELECTRON_MASS_GEV**2)
    c = 0.5 * (a * a - b * b - pt2_pair + mt2) - 2 * MUON_MASS_GEV**2
    root = sqrt((a - b) * (a + b))
    if c <= mt * root or mt >= energy:
        return 0.0, 0.0
    eta = acosh(c / (mt * root)) - atanh(b / a)
    least = max(0.0, energy - mt * cosh(eta))
    slope = max(2 * (a + b / tanh(eta)), 0.1) if eta > 0 else 0.1
    begin = 0.1 / slope
    span = log1p((energy - mt - least) / begin)
    if not span > 0:
        return 0.0, 0.0
    y = begin * np.exp(x * span)
    return least + y - begin, y * span


@inner()
def mirrored(v):  # type: ignore[no-untyped-def]
    """A four-vector of the leg along +z as one of the leg along -z: turned by pi about x."""
    return (v[0], -v[1], -v[2], v[3])
