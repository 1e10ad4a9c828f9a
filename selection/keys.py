"""Identity of an event as one 64-bit number.

    key = mix(... mix(mix(name) ^ experiment) ... ^ 0)        mix: splitmix64's finaliser
    row = mix(key ^ candidate)
    identity = upper half of the same without the name

Candidates of one event have the same key; other events collide with probability 2^-64 per pair
(1e-6 for ten million events). The key is uniform, so any share of the events can be set aside by
comparing it with a threshold. It depends on nothing but the event; the identity not even on how its
data set is called, so that the same event has the same one in a file that is new to a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from selection.ntuple import EVENT_COLUMNS


@nb.njit(inline="always")
def _mix(z):  # type: ignore[no-untyped-def]
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@nb.njit(nogil=True, cache=True)
def _absorb(key, values):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        key[i] = _mix(key[i] ^ np.uint64(values[i]))


@nb.njit(nogil=True, cache=True)
def _keys(start, experiment, run, event, production, key):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        z = _mix(start ^ np.uint64(experiment[i]))
        z = _mix(z ^ np.uint64(run[i]))
        z = _mix(z ^ np.uint64(event[i]))
        z = _mix(z ^ np.uint64(production[i]))
        key[i] = _mix(z)


def key_start(dataset: str) -> int:
    """The number that the name of a data set begins a key with."""
    return int.from_bytes(hashlib.blake2b(dataset.encode(), digest_size=8).digest(), "little")


def event_keys(
    dataset: str, columns: Mapping[str, npt.NDArray[np.integer]], n: int
) -> npt.NDArray[np.uint64]:
    """Key of each of n events of the data set; columns that are absent count as zero."""
    given = [columns[name] for name in EVENT_COLUMNS if name in columns]
    # both kinds give the same: two kernels, not one for each choice of types
    kind = np.int32 if all(values.dtype == np.int32 for values in given) else np.int64
    zero = np.zeros(n, kind)
    numbers = (np.ascontiguousarray(columns.get(name, zero), kind) for name in EVENT_COLUMNS)
    key = np.empty(n, np.uint64)
    _keys(np.uint64(key_start(dataset)), *numbers, key)
    return key


def event_identities(
    columns: Mapping[str, npt.NDArray[Any]], n: int, *, start: int = 0
) -> npt.NDArray[np.uint32]:
    """32 bits of each of n events, by (experiment, run, event, production).

    Without event numbers the entry in the file stands for them: `start` is that of the first row.
    """
    if "event" not in columns:
        columns = {"event": np.arange(start, start + n)}
    key = event_keys("", columns, n)
    key >>= np.uint64(32)
    return key.astype(np.uint32)


def identities_of(
    columns: Mapping[str, npt.NDArray[Any]], rows: npt.NDArray[np.integer], *, start: int = 0
) -> npt.NDArray[np.uint32]:
    """Those of some rows: `event_identities` of all, at these places."""
    present = {name: columns[name].take(rows) for name in EVENT_COLUMNS if name in columns}
    if "event" not in present:
        present = {"event": start + rows}
    return event_identities(present, len(rows))


def row_keys(
    key: npt.NDArray[np.uint64], candidate: npt.NDArray[np.integer]
) -> npt.NDArray[np.uint64]:
    """Key of each row: of the event and the candidate."""
    rows = key.copy()
    _absorb(rows, np.ascontiguousarray(candidate, np.int64))
    return rows
