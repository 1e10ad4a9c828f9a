"""The mass hypothesis as one more input of a network, for comparison.

    signal       the mass it was generated with
    background   one of the n trained masses whose windows hold the event, chosen by a hash; the
                 event stands for all n of them: w -> n w

A network trained on such events estimates, for every mass, signal against the background of that
window. At quoting time window m asks it at mass m, also at masses it was not trained on. Without
the factor n, background in the overlap of many windows would count less than it does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from models.layers import Layers
from models.scoring import network_scores
from selection.keys import row_keys
from selection.table import EventTable, FloatArray, IntArray
from selection.windows import MassWindows, window_span

MASS = "mass hypothesis"  # no feature of a search can be called so
_CHUNK = 1_000_000  # pairs scored at a time: 20 MB of inputs


def with_mass(table: EventTable, windows: MassWindows, *, seed: int) -> EventTable:
    """The table with the mass as last feature; windows: of the trained masses.

    The choice depends on key and seed alone. Events outside all windows have mass 0 and are not
    for training.
    """
    first, stop = window_span(windows, table.axis)
    held = (stop - first).astype(np.int64)
    bits = row_keys(table.key, np.full(len(table), seed)) >> np.uint64(32)
    nth = (bits * held.astype(np.uint64)) >> np.uint64(32)  # uniform in 0 .. held-1
    at = np.minimum(first + nth.astype(np.int64), len(windows) - 1)
    drawn = np.where(held > 0, windows.mass_gev[at], 0.0)
    mass = np.where(table.is_signal, table.signal_mass_gev, drawn).astype(np.float32)
    return replace(
        table,
        features=np.column_stack([table.features, mass]),
        weight=np.where(table.is_signal, table.weight, table.weight * held),
        feature_names=(*table.feature_names, MASS),
    )


def scores_at_mass(
    network: Layers, features: FloatArray, row: IntArray, mass_gev: FloatArray
) -> npt.NDArray[np.float32]:
    """Score (n_pairs,) of the events `row` (n_pairs,), each at its mass; features of the table."""
    out = np.empty(len(row), np.float32)
    for at in range(0, len(row), _CHUNK):
        part = slice(at, at + _CHUNK)
        x = np.column_stack([features[row[part]], mass_gev[part].astype(np.float32)])
        out[part] = network_scores(x, *network.parts)
    return out
