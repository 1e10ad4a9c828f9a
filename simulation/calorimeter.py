"""Three photons in a Belle II-like calorimeter.

    sigma_E / E = 0.00066 / E (+) 0.0081 / E^(1/4) (+) 0.0134      E in GeV (Belle, same crystals)
                  one photon in ten has lost a share of its energy: exponential, mean 0.03
    sigma_theta = 4 mrad / sqrt(E) (+) 1.5 mrad,   sigma_phi = sigma_theta / sin(theta)
    seen with 1 - photon_missed (simulation.detector), by the true energy and direction
    two photons closer than 0.05 rad are one cluster: the event is lost

    loose preselection: three photons above 0.5 GeV, no fourth one,
                        0.85 sqrt_s < M(3 gamma) < 1.05 sqrt_s

Lab frame, GeV, rad. Energies: Belle, Nucl. Instrum. Meth. A479 (2002) 117; the loss, the angles
and the size of a cluster are our choice. As in simulation.detector, for background the efficiencies
are factors of the weight, for signal hit or miss. Photons of an event are ordered by their measured
energy: the order holds no truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin, sqrt

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import Beams
from selection.compiled import inner
from simulation.detector import photon_missed
from simulation.frames import lab_matrix, put

FloatArray = npt.NDArray[np.float64]

LOSS_CHANCE, MEAN_LOSS = 0.1, 0.03
MERGED_RAD = 0.05
MIN_PHOTON_GEV = 0.5
MASS_SHARE = (0.85, 1.05)  # of sqrt_s; the analysis cuts harder


@inner()
def energy_resolution(e: float) -> float:
    """sigma_E / E of the Gaussian part."""
    return sqrt((0.00066 / e) ** 2 + (0.0081 / e**0.25) ** 2 + 0.0134**2)


@inner()
def angular_resolution(e: float) -> float:
    """sigma_theta [rad]."""
    return hypot(0.004 / sqrt(e), 0.0015)


@inner()
def measured(rng: np.random.Generator, k: FloatArray) -> tuple[float, float, float]:
    """(E, theta, phi) of a photon (px, py, pz, E) as the calorimeter gives them."""
    pt, e = hypot(k[0], k[1]), k[3]
    theta, width = atan2(pt, k[2]), angular_resolution(e)
    phi = atan2(k[1], k[0]) + width / (pt / e) * rng.normal()
    theta += width * rng.normal()
    scale = 1 + energy_resolution(e) * rng.normal()
    if rng.random() < LOSS_CHANCE:
        scale -= MEAN_LOSS * rng.exponential()
    return max(scale, 0.0) * e, theta, phi - 2 * pi * np.floor((phi + pi) / (2 * pi))


@inner()
def invariant_mass(photons: FloatArray) -> float:
    """Mass of three photons (3, 3): E, theta, phi."""
    x, y, z, e = 0.0, 0.0, 0.0, 0.0
    for j in range(3):
        p, theta, phi = photons[j]
        x += p * sin(theta) * cos(phi)
        y += p * sin(theta) * sin(phi)
        z += p * cos(theta)
        e += p
    return sqrt(max(0.0, e * e - x * x - y * y - z * z))


@inner()
def _merged(k: FloatArray) -> bool:
    """Whether two of the photons (3, 4) are one cluster."""
    for a in range(3):
        b = (a + 1) % 3
        along = k[a, 0] * k[b, 0] + k[a, 1] * k[b, 1] + k[a, 2] * k[b, 2]
        if along > cos(MERGED_RAD) * k[a, 3] * k[b, 3]:
            return True
    return False


@inner()
def _chance(rng: np.random.Generator, k: FloatArray, hit_or_miss: bool) -> float:
    """Probability that three photons are seen and a fourth is not; 0 or 1 by lot."""
    w = 1.0
    for j in range(len(k)):
        if k[j, 3] <= 0 or (j == 3 and k[j, 3] < MIN_PHOTON_GEV):
            continue
        missed = photon_missed(k[j, 3], atan2(hypot(k[j, 0], k[j, 1]), k[j, 2]))
        w *= 1 - missed if j < 3 else missed
    if hit_or_miss:
        return 1.0 if rng.random() < w else 0.0
    return w


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _respond(rng, momenta, weight, to_lab, sqrt_s, hit_or_miss, seen, kept):  # type: ignore[no-untyped-def]
    """One pass over the events; kept is 0 for what fails the loose preselection."""
    for i in range(len(momenta)):
        if weight[i] <= 0:
            continue
        k = momenta[i] @ to_lab.T
        w = weight[i] * _chance(rng, k, hit_or_miss)
        if w <= 0 or _merged(k):
            continue
        lowest = np.inf
        for j in range(3):
            put(seen[i, j], measured(rng, k[j]))
            lowest = min(lowest, seen[i, j, 0])
        share = invariant_mass(seen[i]) / sqrt_s
        if lowest > MIN_PHOTON_GEV and MASS_SHARE[0] < share < MASS_SHARE[1]:
            kept[i] = w


@dataclass(frozen=True)
class ThreePhotons:
    """Events that pass the loose preselection; photons by falling measured energy."""

    seen: FloatArray  # (n, 3, 3): E, theta, phi in the lab
    origin: npt.NDArray[np.int64]  # (n, 3): which of the generated photons each is
    weight: FloatArray
    entry: npt.NDArray[np.int64]  # which of the generated events

    def __len__(self) -> int:
        return len(self.weight)


def three_photons(
    rng: np.random.Generator,
    momenta: FloatArray,
    weight: FloatArray,
    *,
    beams: Beams,
    hit_or_miss: bool,
) -> ThreePhotons:
    """Calorimeter and loose preselection.

    momenta (n, 4, 4) in the CM frame: the three photons and one radiated off the beams (energy 0:
    none). Events of weight 0 are skipped.
    """
    seen, kept = np.zeros((len(momenta), 3, 3)), np.zeros(len(momenta))
    to_lab, root = lab_matrix(beams), beams.sqrt_s_gev
    k = np.ascontiguousarray(momenta)
    _respond(rng, k, weight, to_lab, root, hit_or_miss, seen, kept)
    rows = np.flatnonzero(kept)
    order = np.argsort(-seen[rows, :, 0], axis=1)
    ordered = np.take_along_axis(seen[rows], order[:, :, None], axis=1)
    return ThreePhotons(ordered, order, kept[rows], rows)
