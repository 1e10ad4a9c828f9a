"""Mass windows in the squared recoil mass.

    low(m) = m^2 - n sigma(m),   high(m) = m^2 + n sigma(m)      GeV^2, n = 2 in the paper

Windows of neighbouring masses overlap. Because both edges grow with m, the windows that hold an
event are always a contiguous range [first, stop): two integers per event replace a dense
(n_events, n_windows) matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from selection.errors import UserError
from selection.masses import TOLERANCE_GEV, same_mass
from selection.table import FloatArray, IntArray


class WindowsError(UserError, ValueError):
    """Windows that cannot be used; the message says which."""


@dataclass(frozen=True)
class MassWindows:
    """One window per mass hypothesis, in rising order of mass."""

    mass_gev: npt.NDArray[np.float64]  # (n_windows,)
    sigma_gev2: npt.NDArray[np.float64]  # (n_windows,)
    n_sigma: float

    def __post_init__(self) -> None:
        if self.mass_gev.ndim != 1 or self.mass_gev.shape != self.sigma_gev2.shape:
            msg = f"masses {self.mass_gev.shape} and widths {self.sigma_gev2.shape} must match"
            raise ValueError(msg)
        if not (np.all(self.sigma_gev2 > 0) and self.n_sigma > 0):
            msg = "window widths must be positive and finite"
            raise ValueError(msg)
        for edge, values in (("low", self.low_gev2), ("high", self.high_gev2)):
            turn = np.flatnonzero(~(np.diff(values) > 0))
            if turn.size:
                msg = (
                    f"the {edge} edges of the windows at {self.mass_gev[turn[0]]:g} and "
                    f"{self.mass_gev[turn[0] + 1]:g} GeV do not rise with mass; "
                    f"check the fitted widths, or space the masses wider"
                )
                raise WindowsError(msg)

    def __len__(self) -> int:
        return len(self.mass_gev)

    @property
    def low_gev2(self) -> npt.NDArray[np.float64]:
        return self.mass_gev**2 - self.n_sigma * self.sigma_gev2

    @property
    def high_gev2(self) -> npt.NDArray[np.float64]:
        return self.mass_gev**2 + self.n_sigma * self.sigma_gev2

    def take(self, which: IntArray | npt.NDArray[np.bool_] | slice) -> MassWindows:
        """A subset of the windows, for example every second mass."""
        return MassWindows(self.mass_gev[which], self.sigma_gev2[which], self.n_sigma)


def window_span(windows: MassWindows, mass2_gev2: FloatArray) -> tuple[IntArray, IntArray]:
    """Half-open range [first, stop) of windows holding each event; empty where first == stop.

    mass2_gev2 (n_events,) -> two (n_events,) integer arrays. Edges are exclusive on both sides;
    a nan lies in no window.
    """
    first = np.searchsorted(windows.high_gev2, mass2_gev2, side="right")
    stop = np.searchsorted(windows.low_gev2, mass2_gev2, side="left")
    return np.minimum(first, stop), stop


def in_own_window(
    windows: MassWindows, mass2_gev2: FloatArray, signal_mass_gev: FloatArray
) -> npt.NDArray[np.bool_]:
    """True where a signal event lies in the window of its own mass (nan mass: never)."""
    own = hypothesis_index(windows, signal_mass_gev)
    first, stop = window_span(windows, mass2_gev2)
    inside: npt.NDArray[np.bool_] = (own >= 0) & (first <= own) & (own < stop)
    return inside


def hypothesis_index(windows: MassWindows, signal_mass_gev: FloatArray) -> IntArray:
    """Index of each mass in the list of hypotheses; -1 for background and masses not listed."""
    if len(windows) == 0:
        return np.full(len(signal_mass_gev), -1)
    at = np.searchsorted(windows.mass_gev, signal_mass_gev - TOLERANCE_GEV)
    at = np.minimum(at, len(windows) - 1)
    return np.where(same_mass(windows.mass_gev[at], signal_mass_gev), at, -1)
