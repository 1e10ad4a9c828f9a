"""A Belle II-like detector: what happens to two tracks and to photons.

    sigma_pt / pt = 0.0013 pt (+) 0.0019 / beta        3 % of tracks: all widths x 2.5
    sigma_theta = sigma_phi = 1 mrad sqrt(1 + (0.6 / p)^2)
    track:   17 < theta < 150 deg, efficiency 0.99
    muon ID: 0.86 / (1 + exp(-(p - 0.40) / 0.05))
    pion taken for a muon: 0.04 + 0.25 / (1 + exp((p - 0.7) / 0.1)), times the turn-on of muon ID
    photon > 0.1 GeV in the ECL (12.4-31.4, 32.2-128.7, 130.7-155.1 deg) missed:
             1e-3 barrel, 5e-3 endcaps, 3e-2 within 0.4 deg of 90 deg, always in the gaps
    electron: seen with 0.998 in 12.4-155.1 deg

Lab frame, GeV, rad. For background the efficiencies are factors of the weight, and a photon above
`MAX_EXTRA_GEV` must be missed, also by weight: nothing is thrown away that can be kept. For signal
everything is hit or miss, so that efficiency is a ratio of counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import acos, atan2, exp, hypot, nan, pi, sin, sqrt, tan

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import MUON_MASS_GEV, Beams, cm_matrix
from selection.compiled import inner
from simulation.couplings import PION_MASS_GEV
from simulation.frames import lab_matrix, moved, put

FloatArray = npt.NDArray[np.float64]

TRACK_THETA = (17 * pi / 180, 150 * pi / 180)
ECL_THETA = (12.4 * pi / 180, 155.1 * pi / 180)

# The loose preselection of the ntuples; the analysis cuts harder: recoils in 33-124 deg below
# 3 GeV, 25-124 deg above, 1.0 and 0.4 GeV.
MIN_DIMUON_PT_GEV = 0.95
MAX_EXTRA_GEV = 0.6
RECOIL_THETA = (24.5 * pi / 180, 125 * pi / 180)
LIGHT_RECOIL_THETA = 32.5 * pi / 180  # at 32 deg photons in the ECL gap come in
LIGHT_RECOIL_MASS2_GEV2 = 8.5  # below, one lost photon is the recoil
RECOIL_MASS2_GEV2 = (-3.0, 83.0)  # 8.9 GeV and its tail; above, ee mu mu is all there is


@inner()
def photon_missed(energy: float, theta: float) -> float:
    """Probability that the calorimeter does not see a photon."""
    deg = theta * 180 / pi
    if energy < 0.1 or deg < 12.4 or 31.4 < deg < 32.2 or 128.7 < deg < 130.7 or deg > 155.1:
        return 1.0
    if deg <= 31.4 or deg >= 130.7:
        return 5e-3
    return 3e-2 if abs(deg - 90) < 0.4 else 1e-3


@inner()
def electron_missed(theta: float) -> float:
    """Probability that neither track nor cluster of an electron is seen."""
    return 0.002 if ECL_THETA[0] < theta < ECL_THETA[1] else 1.0


@inner()
def taken_for_muon(p: float, theta: float, pion: bool) -> float:
    """Probability that a track is found and passes muon identification (muonID > 0.5)."""
    if not TRACK_THETA[0] < theta < TRACK_THETA[1]:
        return 0.0
    turn_on = 1 / (1 + exp(-(p - 0.40) / 0.05))  # below, no track reaches the muon detector
    if pion:
        return 0.99 * (0.04 + 0.25 / (1 + exp((p - 0.7) / 0.1))) * turn_on
    return 0.99 * 0.86 * turn_on


@inner()
def _smeared(rng: np.random.Generator, x: float, y: float, z: float, m: float):  # type: ignore[no-untyped-def]
    """Measured (px, py, pz, E), the energy with the muon's mass."""
    pt, p = hypot(x, y), sqrt(x * x + y * y + z * z)
    scale = 2.5 if rng.random() < 0.03 else 1.0
    beta = p / sqrt(p * p + m * m)
    relative = scale * hypot(0.0013 * pt, 0.0019 / beta)
    angle = scale * 1e-3 * sqrt(1 + (0.6 / p) ** 2)
    # a curvature of the wrong sign would be a track of the other charge: it is 500 sigma away
    pt *= max(1 + relative * rng.standard_normal(), 0.01)
    theta = atan2(hypot(x, y), z) + angle * rng.standard_normal()
    phi = atan2(y, x) + angle * rng.standard_normal()
    a, b, c = pt * np.cos(phi), pt * sin(phi), pt / tan(theta)
    return a, b, c, sqrt(a * a + b * b + c * c + MUON_MASS_GEV**2)


@inner()
def _sum(p, q):  # type: ignore[no-untyped-def]
    return (p[0] + q[0], p[1] + q[1], p[2] + q[2], p[3] + q[3])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _respond(  # type: ignore[no-untyped-def]
    rng, momenta, pion, weight, to_lab, to_cm, total, hit_or_miss, true, seen, other, kept_weight
):
    """One pass over the events; kept_weight is 0 for what fails the loose preselection."""
    for i in range(len(momenta)):
        w = weight[i]
        if w <= 0:
            continue
        for j in range(2):
            put(true[i, j], moved(to_lab, momenta[i, j]))
            x, y, z = true[i, j, 0], true[i, j, 1], true[i, j, 2]
            p = sqrt(x * x + y * y + z * z)
            chance = taken_for_muon(p, atan2(hypot(x, y), z), pion[i, j])
            if hit_or_miss:
                chance = 1.0 if rng.random() < chance else 0.0
            w *= chance
            if w <= 0:
                break
            m = PION_MASS_GEV if pion[i, j] else MUON_MASS_GEV
            put(seen[i, j], _smeared(rng, x, y, z, m))
        if w <= 0:
            continue

        pair = _sum(seen[i, 0], seen[i, 1])
        recoil = (total[0] - pair[0], total[1] - pair[1], total[2] - pair[2], total[3] - pair[3])
        length = sqrt(recoil[0] ** 2 + recoil[1] ** 2 + recoil[2] ** 2)
        mass2 = recoil[3] ** 2 - length**2
        theta = atan2(hypot(recoil[0], recoil[1]), recoil[2])
        in_cm = moved(to_cm, pair)
        if (
            hypot(in_cm[0], in_cm[1]) < MIN_DIMUON_PT_GEV
            or not RECOIL_THETA[0] < theta < RECOIL_THETA[1]
            or (mass2 < LIGHT_RECOIL_MASS2_GEV2 and theta < LIGHT_RECOIL_THETA)
            or not RECOIL_MASS2_GEV2[0] < mass2 < RECOIL_MASS2_GEV2[1]
        ):
            continue

        extra, nearest = 0.0, nan
        for j in range(2, momenta.shape[1]):
            if momenta[i, j, 3] <= 0:
                continue
            k = moved(to_lab, momenta[i, j])
            missed = photon_missed(k[3], atan2(hypot(k[0], k[1]), k[2]))
            if missed == 1.0:
                continue
            if not hit_or_miss and k[3] > MAX_EXTRA_GEV:
                w *= missed
                continue
            if rng.random() < missed:
                continue
            extra += k[3]
            c = (k[0] * recoil[0] + k[1] * recoil[1] + k[2] * recoil[2]) / (k[3] * length)
            angle = acos(min(1.0, max(-1.0, c)))
            nearest = angle if not nearest <= angle else nearest
        if extra > MAX_EXTRA_GEV:
            continue
        other[i, 0], other[i, 1], other[i, 2] = extra, theta, nearest
        kept_weight[i] = w


@dataclass(frozen=True)
class Reconstructed:
    """Events that pass the loose preselection; momenta (n, 2, 4): mu+, mu- in the lab."""

    seen: FloatArray
    true: FloatArray
    extra_energy: FloatArray
    recoil_theta: FloatArray
    photon_recoil_angle: FloatArray  # nan without a seen photon
    weight: FloatArray
    entry: npt.NDArray[np.int64]  # which of the generated events

    def __len__(self) -> int:
        return len(self.weight)


def reconstruct(
    rng: np.random.Generator,
    momenta: FloatArray,
    weight: FloatArray,
    *,
    beams: Beams,
    hit_or_miss: bool,
    pion: npt.NDArray[np.bool_] | None = None,
) -> Reconstructed:
    """Detector and loose preselection.

    momenta (n, 2 + n_photons, 4) in the CM frame: mu+, mu- (or pions, where `pion` (n, 2) is true),
    photons (energy 0: none). Events of weight 0 are skipped.
    """
    n = len(momenta)
    pion = np.zeros((n, 2), np.bool_) if pion is None else pion
    true, seen, other, kept = (
        np.zeros((n, 2, 4)),
        np.zeros((n, 2, 4)),
        np.zeros((n, 3)),
        np.zeros(n),
    )
    to_lab, to_cm = lab_matrix(beams), cm_matrix(beams)
    total = np.array(beams.total)
    _respond(rng, momenta, pion, weight, to_lab, to_cm, total, hit_or_miss, true, seen, other, kept)
    rows = np.flatnonzero(kept)
    extra, theta, nearest = other[rows].T
    return Reconstructed(seen[rows], true[rows], extra, theta, nearest, kept[rows], rows)


def smeared_sqrt_s(
    rng: np.random.Generator, n: int, *, beams: Beams, spread_gev: float
) -> FloatArray:
    """Collision energy of each event [GeV]."""
    return beams.sqrt_s_gev + spread_gev * rng.standard_normal(n)
