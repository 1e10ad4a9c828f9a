"""Events dealt into batches.

    mono        all events
    stratified  every group cut into as many near-equal slices as there are batches; a batch gets
                one slice of each group, and S_g is scaled by n_g / n_g,batch
    random      events in any order, so many per batch; S_g is scaled by n / n_batch (the paper's)

Stratified batches cost nothing per epoch: events are shuffled once inside their groups, later
epochs only deal the slices anew. A group with fewer events than batches is missing in some batches;
its scale is the number of batches, which keeps the mean over the batches right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from models.training.deal import deal_columns, random_labels, random_order
from models.training.training_set import GroupedEvents, TrainingSet
from selection.table import IntArray


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


@dataclass(frozen=True)
class Room:
    """Memory that the random batches of one epoch after the other are dealt into."""

    columns: npt.NDArray[np.float32]  # (n_features + 1, n) features and weight
    label: npt.NDArray[np.uint32]  # (n,)


def room_for(data: TrainingSet) -> Room:
    """Room for batches of these events: 24 bytes each with four features."""
    n = len(data)
    return Room(np.empty((len(data.features) + 1, n), np.float32), np.empty(n, np.uint32))


def random_batches(
    data: TrainingSet, batch_size: int, seed: tuple[int, ...], room: Room | None = None
) -> Deal:
    """ceil(n / batch_size) batches; the last one may be smaller.

    They lie in `room`, until the next batches are dealt into it; without one, in memory of their
    own, which takes longer: the system gives out every page anew.
    """
    n, room = len(data), room or room_for(data)
    random_labels(n, batch_size, seed, room.label)
    edges = np.empty((-(-n // batch_size), data.n_groups + 1), np.int64)
    edges[:, 0] = np.arange(0, n, batch_size)
    deal_columns(data.features, data.weight, data.group_start, room.label, edges, room.columns)
    start, stop = np.ascontiguousarray(edges[:, :-1]), np.ascontiguousarray(edges[:, 1:])
    scale = n / (edges[:, -1:] - edges[:, :1])
    whole = replace(data.whole, features=room.columns[:-1], weight=room.columns[-1])
    return Deal(whole, start, stop, np.repeat(scale, data.n_groups, axis=1))
