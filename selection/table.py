"""The event table: what every event is after the selection, and all that training sees of it.

One row per selected event, in the fixed order (sample, mass, file, entry). `weight` is

    background   expected events at the target luminosity     (B is a plain sum of weights)
    signal       1 / n_generated of its mass                  (efficiency is a plain sum of weights)
    data         1

times any scale factors. `key` is a 64-bit hash of the sample and of the event's identity
(experiment, run, event, production; not the candidate), `identity` 32 bits of the latter. They
never depend on how the work was split: folds made from the identity are the same for every chunk
size, worker count, network seed and file name, and the candidates of an event share its fate.

    fold = floor(k identity / 2^32)                          k folds; of one: held out below a share
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
    identity: npt.NDArray[np.uint32]  # (n,)
    sample_names: tuple[str, ...]
    feature_names: tuple[str, ...]

    def __post_init__(self) -> None:
        n = len(self.axis)
        if self.features.shape != (n, len(self.feature_names)):
            wanted = (n, len(self.feature_names))
            msg = f"features have shape {self.features.shape}, expected {wanted}"
            raise ValueError(msg)
        for name in ("weight", "signal_mass_gev", "sample", "key", "identity"):
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


@dataclass(frozen=True)
class Folds:
    """Which network judges an event: one that was not trained on it.

    With k > 1 folds network f is trained on all other folds and judges fold f. With one, the only
    network judges the share `validation_fraction`, and nobody the events it was trained on.
    """

    count: int = 5
    validation_fraction: float = 0.2  # of one fold

    def __post_init__(self) -> None:
        if not (1 <= self.count <= 100 and 0 <= self.validation_fraction < 1):
            msg = f"from 1 to 100 folds and a validation fraction in [0, 1), found {self}"
            raise ValueError(msg)

    def of(self, identity: npt.NDArray[np.uint32]) -> npt.NDArray[np.int8]:
        """Fold (n,) whose network judges each event; -1: none may."""
        wide = identity.astype(np.uint64)
        if self.count == 1:
            held_out = wide < np.uint64(round(self.validation_fraction * 2**32))
            return np.where(held_out, 0, -1).astype(np.int8)
        wide *= np.uint64(self.count)
        wide >>= np.uint64(32)
        return wide.astype(np.int8)

    @property
    def held_out_share(self) -> float:
        """Share of the events that the network of a fold is not trained on."""
        return self.validation_fraction if self.count == 1 else 1 / self.count

    @property
    def judged_share(self) -> float:
        """Share of the events that some network judges."""
        return self.validation_fraction if self.count == 1 else 1.0
