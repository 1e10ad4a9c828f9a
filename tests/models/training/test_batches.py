"""Laws of dealing events."""

import numpy as np
import pytest

from models.training import batches
from models.training.batches import (
    random_batches,
    random_order,
    shuffled_in_groups,
    stratified_batches,
)


@pytest.mark.parametrize("n", [0, 1, 5, 20_000, 100_000])
def test_random_order_is_a_permutation_that_depends_on_the_seed_only(n):
    order = random_order(n, (1, 2, 3))
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(order, random_order(n, (1, 2, 3)))
    if n > 5:
        assert not np.array_equal(order, random_order(n, (1, 2, 4)))


def test_random_order_is_uniform(monkeypatch):
    monkeypatch.setattr(batches, "BUCKET", 2)  # three buckets for six events
    count = np.zeros((6, 6))
    for seed in range(6000):
        count[np.arange(6), random_order(6, (seed,))] += 1
    # 36 cells with 1000 expected, 25 degrees of freedom: chi2 > 60 has probability 1e-4
    assert np.sum((count - 1000) ** 2 / 1000) < 60


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
