"""Events dealt into batches.

    mono        all events
    stratified  every group cut into as many near-equal slices as there are batches; a batch gets
                one slice of each group, and S_g is scaled by n_g / n_g,batch
    random      slices of a random order of all events; S_g is scaled by n / n_batch (the paper's)

Stratified batches cost nothing per epoch: events are shuffled once inside their groups, later
epochs only deal the slices anew. A group with fewer events than batches is missing in some batches;
its scale is the number of batches, which keeps the mean over the batches right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numba import njit

from models.training.training_set import GroupedEvents, TrainingSet
from selection.table import IntArray

BUCKET = 16384  # indices; a bucket is shuffled inside the second-level cache


@dataclass(frozen=True)
class Batch:
    """Events, and the factor per group (n_groups,) that makes their sums stand for all events."""

    events: GroupedEvents
    scale: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Deal:
    """The batches of one epoch: batch k holds events start[k, g] .. stop[k, g]-1 of group g."""

    events: GroupedEvents
    start: IntArray  # (n_batches, n_groups)
    stop: IntArray  # (n_batches, n_groups)
    scale: npt.NDArray[np.float64]  # (n_batches, n_groups)

    def __iter__(self) -> Iterator[Batch]:
        for start, stop, scale in zip(self.start, self.stop, self.scale, strict=True):
            yield Batch(replace(self.events, start=start, stop=stop), scale)


def random_order(n: int, seed: tuple[int, ...]) -> npt.NDArray[np.uint32]:
    """A uniformly random permutation of 0 .. n-1, several times faster than numpy's for large n."""
    if n >= 2**32:
        msg = f"{n} events do not fit 32-bit indices; train on parts and add their group sums"
        raise ValueError(msg)
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    return _random_order(n, max(1, -(-n // BUCKET)), state)


@njit(cache=True, nogil=True, inline="always")
def _draw(state, bound):  # type: ignore[no-untyped-def]
    """splitmix64: the next state and a number in 0 .. bound-1."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    u = state
    u = (u ^ (u >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    u = (u ^ (u >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    u = (u ^ (u >> np.uint64(31))) >> np.uint64(32)
    return state, np.int64((u * np.uint64(bound)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def _random_order(n, n_buckets, seed):  # type: ignore[no-untyped-def]
    # a random bucket for each index, then a shuffle in each bucket: uniform, and kind to caches
    begin = np.zeros(n_buckets + 1, np.int64)
    state = seed
    for _ in range(n):
        state, bucket = _draw(state, n_buckets)
        begin[bucket + 1] += 1
    begin = np.cumsum(begin)
    place = begin.copy()
    order = np.empty(n, np.uint32)
    again = seed
    for i in range(n):
        again, bucket = _draw(again, n_buckets)
        order[place[bucket]] = i
        place[bucket] += 1
    for bucket in range(n_buckets):
        first = begin[bucket]
        for i in range(begin[bucket + 1] - first - 1, 0, -1):
            state, j = _draw(state, i + 1)
            order[first + i], order[first + j] = order[first + j], order[first + i]
    return order


def shuffled_in_groups(data: TrainingSet, seed: tuple[int, ...]) -> TrainingSet:
    """The same groups with their events in random order."""
    order = random_order(len(data), seed)
    group = np.repeat(np.arange(data.n_groups, dtype=np.int32), np.diff(data.group_start))
    order = order[np.argsort(group[order], kind="stable")]
    features = np.ascontiguousarray(data.features[:, order])
    return replace(data, features=features, weight=data.weight[order])


def stratified_batches(shuffled: TrainingSet, batch_size: int, seed: tuple[int, ...]) -> Deal:
    """round(n / batch_size) batches of a set that is shuffled in its groups."""
    n_batches = max(1, round(len(shuffled) / batch_size))
    count = np.diff(shuffled.group_start)
    rng = np.random.default_rng(seed)
    deal = rng.permuted(np.tile(np.arange(n_batches), (shuffled.n_groups, 1)), axis=1).T
    start, stop = (
        shuffled.group_start[:-1] + count * slices // n_batches for slices in (deal, deal + 1)
    )  # (n_batches, n_groups)
    scale = np.where(count >= n_batches, count / np.maximum(stop - start, 1), n_batches)
    return Deal(shuffled.whole, *map(np.ascontiguousarray, (start, stop, scale)))


def random_batches(data: TrainingSet, batch_size: int, seed: tuple[int, ...]) -> Deal:
    """ceil(n / batch_size) batches; the last one may be smaller."""
    n = len(data)
    order = random_order(n, seed)
    features, weight, edges = _dealt(
        data.features, data.weight, data.group_start, order, batch_size
    )
    start, stop = np.ascontiguousarray(edges[:, :-1]), np.ascontiguousarray(edges[:, 1:])
    scale = n / (edges[:, -1:] - edges[:, :1])
    whole = replace(data.whole, features=features, weight=weight)
    return Deal(whole, start, stop, np.repeat(scale, data.n_groups, axis=1))


@njit(cache=True, nogil=True)
def _dealt(features, weight, group_start, order, batch_size):  # type: ignore[no-untyped-def]
    """Events by batch, inside a batch by group, and the edges (n_batches, n_groups + 1)."""
    n, n_groups = len(order), len(group_start) - 1
    label = np.empty(n, np.uint32)
    for k in range(n):
        label[order[k]] = k // batch_size
    place = np.arange(0, n, batch_size)
    edges = np.empty((len(place), n_groups + 1), np.int64)
    edges[:, 0] = place
    x, w = np.empty_like(features), np.empty_like(weight)
    for g in range(n_groups):
        for i in range(group_start[g], group_start[g + 1]):
            at = place[label[i]]
            place[label[i]] += 1
            w[at] = weight[i]
            for k in range(len(features)):
                x[k, at] = features[k, i]
        edges[:, g + 1] = place
    return x, w, edges
