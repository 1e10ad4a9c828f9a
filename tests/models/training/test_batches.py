"""Laws of dealing events."""

from collections import Counter

import numpy as np
import pytest

from models.training import deal
from models.training.batches import (
    random_batches,
    room_for,
    shuffled_in_groups,
    stratified_batches,
)
from models.training.deal import deal_columns, random_labels, random_order


@pytest.mark.parametrize("n", [0, 1, 5, 20_000, 100_000])
def test_random_order_is_a_permutation_that_depends_on_the_seed_only(n):
    order = random_order(n, (1, 2, 3))
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(order, random_order(n, (1, 2, 3)))
    if n > 5:
        assert not np.array_equal(order, random_order(n, (1, 2, 4)))


def test_random_order_is_uniform(monkeypatch):
    monkeypatch.setattr(deal, "BUCKET", 2)  # three buckets for six events
    count = np.zeros((6, 6))
    for seed in range(6000):
        count[np.arange(6), random_order(6, (seed,))] += 1
    # 36 cells with 1000 expected, 25 degrees of freedom: chi2 > 60 has probability 1e-4
    assert np.sum((count - 1000) ** 2 / 1000) < 60


@pytest.mark.parametrize(("n", "size"), [(0, 3), (1, 3), (6, 3), (7, 3), (9, 1), (20_001, 40)])
def test_random_labels_fill_every_batch_exactly(n, size):
    label = np.full(n, 99_999, np.uint32)
    random_labels(n, size, (1, 2), label)
    wanted = np.full(-(-n // size), size)
    wanted[-1:] -= -n % size
    assert np.array_equal(np.bincount(label), wanted)


def test_every_choice_of_batches_is_as_probable_as_any_other():
    label, found = np.empty(5, np.uint32), Counter()
    for seed in range(6000):
        random_labels(5, 2, (seed,), label)
        found[tuple(label)] += 1
    # 5! / (2! 2! 1!) = 30 choices with 200 expected, 29 degrees of freedom: chi2 > 66 is 1e-4
    assert len(found) == 30
    assert sum((n - 200) ** 2 / 200 for n in found.values()) < 66


def test_random_batches_are_those_of_the_labels_by_group_in_blocks_of_any_size(toy_sets):
    data, _ = toy_sets()
    start = np.array([0, 40_000, 40_000, 100_001])  # a group of two blocks, one without events
    rng = np.random.default_rng(1)
    features = rng.random((len(data.features), start[-1]), dtype=np.float32)
    weight, label = features[0] + 1, np.empty(start[-1], np.uint32)
    random_labels(len(label), 30_000, (1,), label)
    edges, dealt = np.zeros((4, 4), np.int64), np.empty((len(features) + 1, len(label)), np.float32)
    edges[:, 0] = np.arange(0, len(label), 30_000)
    deal_columns(features, weight, start, label, edges, dealt)
    order = np.argsort(label, kind="stable")  # events of a batch stay in the order of their groups
    assert np.array_equal(dealt, np.vstack([features, weight])[:, order])
    group = np.repeat(np.arange(3), np.diff(start))[order]
    for batch, bounds in enumerate(edges):
        count = np.bincount(group[label[order] == batch], minlength=3)
        assert np.array_equal(np.diff(bounds), count)


def test_batches_in_a_room_are_those_without_one(toy_sets):
    data, _ = toy_sets()
    room = room_for(data)
    random_batches(data, 700, (1,), room)
    inside, alone = random_batches(data, 700, (2,), room), random_batches(data, 700, (2,))
    assert inside.events.weight.base is room.columns
    assert np.array_equal(inside.events.features, alone.events.features)
    assert np.array_equal(inside.start, alone.start)


def event_ids(data, batch):
    """Rows of `data` by their unique weight."""
    rows = np.concatenate(
        [np.arange(a, b) for a, b in zip(batch.events.start, batch.events.stop, strict=True)]
    )
    return batch.events.weight[rows]


@pytest.mark.parametrize("kind", ["random", "stratified"])
def test_every_event_is_in_exactly_one_batch_and_in_its_group(toy_sets, kind):
    data, _ = toy_sets()
    weight = np.arange(1, len(data) + 1, dtype=np.float32)
    data = type(data)(**(vars_of(data) | {"weight": weight}))
    if kind == "random":
        dealt = list(random_batches(data, 700, (1,)))
    else:
        dealt = list(stratified_batches(shuffled_in_groups(data, (1,)), 700, (2,)))
    assert len(dealt) > 3
    assert np.array_equal(np.sort(np.concatenate([event_ids(data, b) for b in dealt])), weight)
    for batch in dealt:
        group = np.searchsorted(data.group_start, event_ids(data, batch) - 1, side="right") - 1
        assert np.array_equal(group, np.repeat(batch.events.group, batch.events.count))


def vars_of(data):
    return {name: getattr(data, name) for name in data.__dataclass_fields__}


@pytest.mark.parametrize("kind", ["random", "stratified"])
def test_scaled_batches_stand_for_all_events_on_average(toy_sets, kind):
    data, _ = toy_sets(n_signal=5)  # fewer events than batches in some groups
    if kind == "random":
        dealt = list(random_batches(data, -(-len(data) // 8), (1,)))
    else:
        dealt = list(stratified_batches(shuffled_in_groups(data, (1,)), len(data) // 8, (2,)))
    counts = np.mean([b.scale * b.events.count for b in dealt], axis=0)
    wanted = np.diff(data.group_start)
    assert np.allclose(counts, wanted, rtol=0.02 if kind == "random" else 1e-12)


def test_stratified_batches_hold_their_share_of_every_group(toy_sets):
    data, _ = toy_sets()
    dealt = list(stratified_batches(shuffled_in_groups(data, (1,)), 500, (2,)))
    share = np.diff(data.group_start) / len(dealt)
    for batch in dealt:
        assert np.all(np.abs(batch.events.count - share) < 1)


def test_epochs_deal_differently_and_the_same_epoch_the_same(toy_sets):
    data = shuffled_in_groups(toy_sets()[0], (1,))
    first, again, other = (
        [b.events.start.tolist() for b in stratified_batches(data, 500, (1, epoch))]
        for epoch in (0, 0, 1)
    )
    assert first == again
    assert first != other
