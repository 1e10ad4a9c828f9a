"""The event table: what every event is after the selection, and all that training sees of it.

One row per selected event, in the fixed order (sample, mass, file, entry). `weight` is

    background   expected events at the target luminosity     (B is a plain sum of weights)
    signal       1 / n_generated of its mass                  (efficiency is a plain sum of weights)
    data         1

times any scale factors. `key` is a 64-bit hash of the event's identity (sample, experiment, run,
event, production; not the candidate): it never depends on how the work was split, so a split made
from it is the same for every chunk size, worker count and network seed, and the candidates of an
event always share its fate.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer]


@dataclass(frozen=True)
class EventTable:
    """Columns of equal length; see the module's head for the meaning of weight and key."""

    features: npt.NDArray[np.float32]  # (n, n_features) in the order of feature_names
    axis: npt.NDArray[np.float64]  # (n,) the mass-like quantity of the search
    weight: npt.NDArray[np.float64]  # (n,)
    signal_mass_gev: npt.NDArray[np.float64]  # (n,) nan for background and data
    sample: npt.NDArray[np.int16]  # (n,) index into sample_names
    key: npt.NDArray[np.uint64]  # (n,)
    sample_names: tuple[str, ...]
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        n = len(self.axis)
        if self.features.shape != (n, len(self.feature_names)):
            wanted = (n, len(self.feature_names))
            msg = f"features have shape {self.features.shape}, expected {wanted}"
            raise ValueError(msg)
        for name in ("weight", "signal_mass_gev", "sample", "key"):
            if getattr(self, name).shape != (n,):
                msg = f"{name} has shape {getattr(self, name).shape}, expected ({n},)"
                raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.axis)

    @property
    def is_signal(self) -> BoolArray:
        return np.isfinite(self.signal_mass_gev)

    def take(self, rows: BoolArray | IntArray) -> EventTable:
        """The rows chosen by a mask or an index array, as a new table."""
        columns = {
            f.name: getattr(self, f.name)[rows]
            for f in fields(self)
            if f.name not in ("sample_names", "feature_names")
        }
        return replace(self, **columns)


def candidates_per_event(key: npt.NDArray[np.uint64]) -> float:
    """Rows per event, of rows with these keys; 1 without any."""
    return len(key) / len(np.unique(key)) if len(key) else 1.0


def validation_mask(key: npt.NDArray[np.uint64], *, fraction: float) -> BoolArray:
    """True for the share `fraction` of events held out of training; depends on the key only."""
    if not 0 <= fraction < 1:
        msg = f"validation fraction must lie in [0, 1), found {fraction}"
        raise ValueError(msg)
    # the key is uniform over 64 bits: its upper half is a uniform number
    mask: BoolArray = (key >> np.uint64(32)) < np.uint64(round(fraction * 2**32))
    return mask
