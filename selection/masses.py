"""Two rules about masses that everybody must share.

m1 is m2      |m1 - m2| < 1e-6 GeV: masses are written with 0.1 MeV at most
M from M2     sign(M2) sqrt|M2|: resolution makes M2 negative, and such an event lies below
              every axis of M that begins at zero, never at some other place on it
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

TOLERANCE_GEV = 1e-6


def same_mass(left_gev: npt.ArrayLike, right_gev: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """True where both are the same mass, in GeV; the two broadcast. nan is no mass."""
    apart = np.abs(np.subtract(left_gev, right_gev))
    result: npt.NDArray[np.bool_] = np.asarray(apart < TOLERANCE_GEV)
    return result


def one_of(mass_gev: npt.ArrayLike, masses_gev: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """True where a mass (n,) is among the masses (m,)."""
    found: npt.NDArray[np.bool_] = np.zeros(np.shape(mass_gev), np.bool_)
    for mass in np.atleast_1d(masses_gev):
        found |= same_mass(mass_gev, mass)
    return found


def between(mass_gev: npt.ArrayLike, low_gev: float, high_gev: float) -> npt.NDArray[np.bool_]:
    """True where low <= mass <= high; a mass that is one of the ends lies between."""
    mass = np.asarray(mass_gev)
    result: npt.NDArray[np.bool_] = np.asarray(
        (mass > low_gev - TOLERANCE_GEV) & (mass < high_gev + TOLERANCE_GEV)
    )
    return result


def signed_root(axis: npt.ArrayLike) -> Floats:
    """M of M2, in GeV; negative where M2 is."""
    m2 = np.asarray(axis, np.float64)
    return np.copysign(np.sqrt(np.abs(m2)), m2)
