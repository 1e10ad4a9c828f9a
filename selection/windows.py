"""Mass windows on the axis of a search.

    peak(m) = m^2 or m                                            axis of a squared mass, of a mass
    low(m) = peak - n sigma(m),   high(m) = peak + n sigma(m)     n = 2 in the paper

Windows of neighbouring masses overlap. Because both edges grow with m, the windows that hold an
event are always a contiguous range [first, stop): two integers per event replace a dense
(n_events, n_windows) matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    sigma: npt.NDArray[np.float64]  # (n_windows,) in the unit of the axis
    n_sigma: float
    squared: bool  # is the axis that of a squared mass?

    def __post_init__(self) -> None:
        if self.mass_gev.ndim != 1 or self.mass_gev.shape != self.sigma.shape:
            msg = f"masses {self.mass_gev.shape} and widths {self.sigma.shape} must match"
            raise ValueError(msg)
        if not (np.all(self.sigma > 0) and self.n_sigma > 0):
            msg = "window widths must be positive and finite"
            raise ValueError(msg)
        for edge, values in (("low", self.low), ("high", self.high)):
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
    def peak(self) -> npt.NDArray[np.float64]:
        """Where a particle of each mass lies on the axis."""
        return self.mass_gev**2 if self.squared else self.mass_gev

    @property
    def low(self) -> npt.NDArray[np.float64]:
        return self.peak - self.n_sigma * self.sigma

    @property
    def high(self) -> npt.NDArray[np.float64]:
        return self.peak + self.n_sigma * self.sigma

    def take(self, which: IntArray | npt.NDArray[np.bool_] | slice) -> MassWindows:
        """A subset of the windows, for example every second mass."""
        return replace(self, mass_gev=self.mass_gev[which], sigma=self.sigma[which])


def window_span(windows: MassWindows, axis: FloatArray) -> tuple[IntArray, IntArray]:
    """Half-open range [first, stop) of windows holding each event; empty where first == stop.

    axis (n_events,) -> two (n_events,) integer arrays. Edges are exclusive on both sides;
    a nan lies in no window.
    """
    first = np.searchsorted(windows.high, axis, side="right")
    stop = np.searchsorted(windows.low, axis, side="left")
    return np.minimum(first, stop), stop


def in_own_window(
    windows: MassWindows, axis: FloatArray, signal_mass_gev: FloatArray
) -> npt.NDArray[np.bool_]:
    """True where a signal event lies in the window of its own mass (nan mass: never)."""
    own = hypothesis_index(windows, signal_mass_gev)
    first, stop = window_span(windows, axis)
    inside: npt.NDArray[np.bool_] = (own >= 0) & (first <= own) & (own < stop)
    return inside


def hypothesis_index(windows: MassWindows, signal_mass_gev: FloatArray) -> IntArray:
    """Index of each mass in the list of hypotheses; -1 for background and masses not listed."""
    if len(windows) == 0:
        return np.full(len(signal_mass_gev), -1)
    at = np.searchsorted(windows.mass_gev, signal_mass_gev - TOLERANCE_GEV)
    at = np.minimum(at, len(windows) - 1)
    return np.where(same_mass(windows.mass_gev[at], signal_mass_gev), at, -1)
