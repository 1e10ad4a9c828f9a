"""Colliding beams, and the centre-of-mass frame they define.

    P      = p_e- + p_e+                              lab frame, GeV
    sqrt_s = |P|                                      10.5796 GeV at SuperKEKB
    x_cm   = R . boost(-P/E) x_lab                    R turns the e- direction onto +z

The e- direction after the boost depends only on its direction in the lab, not on its energy
(massless particle), so a per-event P needs no second vector. A boost without R gives wrong polar
angles: at SuperKEKB the e- leaves the boost 5.8 mrad away from +z.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, cos, hypot, sin, sqrt
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import vector

FloatArray = npt.NDArray[np.floating]

MUON_MASS_GEV = 0.1056583755  # PDG 2024
ELECTRON_MASS_GEV = 0.00051099895


@dataclass(frozen=True)
class Beams:
    """Two beams in the x-z plane, each at the same angle to the detector axis (SuperKEKB)."""

    electron_energy_gev: float = 7.004
    positron_energy_gev: float = 4.002
    half_crossing_angle_rad: float = 0.0415

    def __post_init__(self) -> None:
        if not (self.electron_energy_gev > 0 and self.positron_energy_gev > 0):
            msg = f"beam energies must be positive, found {self}"
            raise ValueError(msg)

    @property
    def electron_direction(self) -> tuple[float, float, float]:
        """Unit vector of the e- in the lab."""
        return (sin(self.half_crossing_angle_rad), 0.0, cos(self.half_crossing_angle_rad))

    @property
    def total(self) -> tuple[float, float, float, float]:
        """(px, py, pz, E) of both beams in the lab, GeV."""
        e_minus, e_plus = self.electron_energy_gev, self.positron_energy_gev
        angle = self.half_crossing_angle_rad
        return (
            (e_minus + e_plus) * sin(angle),
            0.0,
            (e_minus - e_plus) * cos(angle),
            e_minus + e_plus,
        )

    @property
    def p4(self) -> vector.MomentumObject4D:
        """Total four-momentum in the lab."""
        import vector  # here: it takes longer to import than a configuration to read

        px, py, pz, energy = self.total
        return vector.obj(px=px, py=py, pz=pz, E=energy)

    @property
    def sqrt_s_gev(self) -> float:
        px, py, pz, energy = self.total
        s = energy**2 - (px**2 + py**2 + pz**2)
        return copysign(sqrt(abs(s)), s)


SUPERKEKB = Beams()


def cm_matrix(beams: Beams) -> npt.NDArray[np.float64]:
    """Lorentz matrix (4, 4) acting on columns (px, py, pz, E): lab -> CM frame with e- on +z."""
    *momentum, energy = beams.total
    beta = np.array(momentum) / energy
    gamma = energy / beams.sqrt_s_gev
    boost = np.eye(4)
    # gamma^2 / (gamma + 1) = (gamma - 1) / beta^2, but finite for beams that are at rest together
    boost[:3, :3] += gamma**2 / (gamma + 1) * np.outer(beta, beta)
    boost[:3, 3] = boost[3, :3] = -gamma * beta
    boost[3, 3] = gamma

    x, _, z = (boost @ (*beams.electron_direction, 1.0))[:3]
    length = hypot(x, z)  # both beams lie in the x-z plane: R turns about y
    turn = np.eye(4)
    turn[0, 0] = turn[2, 2] = z / length
    turn[0, 2], turn[2, 0] = -x / length, x / length
    matrix: npt.NDArray[np.float64] = turn @ boost
    return matrix
