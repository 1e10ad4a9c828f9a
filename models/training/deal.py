"""Random numbers and moves behind the batches, compiled.

    order    0 .. n-1 in uniformly random order
    label    batch of each event: every batch has exactly its size, all ways to choose alike
    dealt    events ordered by (batch, group), inside both as they were

Labels are drawn independently, then events of batches that have too many are picked at random and
given to those that have too few. Nothing in this looks at which event is which, so that every
choice of batches of the right sizes is as probable as any other: slices of a random order, without
the order. Events are moved block by block: places are found once for a block, which then goes to
its batches one column after the other, each batch a run of consecutive numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

BUCKET = 16384  # indices; a bucket is shuffled inside the second-level cache
BLOCK = 32768  # events; one column of a block stays in the second-level cache, indices have 16 bits


def random_order(n: int, seed: tuple[int, ...]) -> npt.NDArray[np.uint32]:
    """A uniformly random permutation of 0 .. n-1, several times faster than numpy's for large n."""
    if n >= 2**32:
        msg = f"{n} events do not fit 32-bit indices; train on parts and add their group sums"
        raise ValueError(msg)
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    n_buckets = max(1, -(-n // BUCKET))
    order = np.empty(n, np.uint32)
    _fill_order(order, np.zeros(n_buckets + 1, np.int64), np.empty(n_buckets, np.int64), state)
    return order


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
def _fill_order(order, begin, place, seed):  # type: ignore[no-untyped-def]
    # a random bucket for each index, then a shuffle in each bucket: uniform, and kind to caches
    n, n_buckets = len(order), len(place)
    state = seed
    for _ in range(n):
        state, bucket = _draw(state, n_buckets)
        begin[bucket + 1] += 1
    for bucket in range(n_buckets):  # np.cumsum would be compiled, this is not worth a function
        place[bucket] = begin[bucket]
        begin[bucket + 1] += begin[bucket]
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


def random_labels(
    n: int, batch_size: int, seed: tuple[int, ...], label: npt.NDArray[np.uint32]
) -> None:
    """Fills label (n,) with batches 0, 1, ... of batch_size events; the last one has the rest."""
    n_batches = -(-n // batch_size)
    wanted = np.minimum(batch_size, n - batch_size * np.arange(n_batches))
    draws, moves = np.random.SeedSequence(seed).generate_state(2, np.uint64)
    surplus = _draw_labels(label, n_batches, draws) - wanted
    missing = np.repeat(np.arange(n_batches, dtype=np.uint32), np.maximum(-surplus, 0))
    _move_surplus(label, surplus, missing, moves)


@njit(cache=True, nogil=True)
def _draw_labels(label, n_batches, seed):  # type: ignore[no-untyped-def]
    """Independent labels; how many events have each (n_batches,)."""
    count = np.zeros(n_batches, np.int64)
    state = seed
    for i in range(len(label)):
        state, batch = _draw(state, n_batches)
        label[i] = batch
        count[batch] += 1
    return count


@njit(cache=True, nogil=True)
def _move_surplus(label, surplus, missing, seed):  # type: ignore[no-untyped-def]
    """Events met at random in batches that have too many go to those that `missing` lists."""
    state = seed
    left = len(missing)
    while left > 0:
        state, i = _draw(state, len(label))
        batch = label[i]
        if surplus[batch] > 0:
            surplus[batch] -= 1
            left -= 1
            label[i] = missing[left]


@njit(cache=True, nogil=True)
def deal_columns(features, weight, group_start, label, edges, dealt):  # type: ignore[no-untyped-def]
    """Fills dealt (n_features + 1, n) with features (n_features, n) and weight by batch and group.

    edges (n_batches, n_groups + 1): the first event of each batch is in edges[:, 0]; the rest is
    filled with the ends of its groups.
    """
    n_batches, n_groups = len(edges), len(group_start) - 1
    place = edges[:, 0].copy()
    begin = np.empty(n_batches + 1, np.int64)
    free = np.empty(n_batches, np.uint32)
    index = np.empty(BLOCK, np.uint16)
    for g in range(n_groups):
        for at in range(group_start[g], group_start[g + 1], BLOCK):
            end = min(at + BLOCK, group_start[g + 1])
            here = label[at:end]
            begin[:] = 0
            count = begin[1:]
            for batch in here:
                count[batch] += 1
            for batch in range(n_batches):
                free[batch] = begin[batch]
                begin[batch + 1] += begin[batch]
            for e in range(end - at):
                batch = here[e]
                index[free[batch]] = e
                free[batch] += np.uint32(1)
            for c in range(len(dealt)):
                source = features[c, at:end] if c < len(features) else weight[at:end]
                for batch in range(n_batches):
                    chosen = index[begin[batch] : begin[batch + 1]]
                    target = dealt[c, place[batch] : place[batch] + len(chosen)]
                    for k in range(len(chosen)):  # slices: no index is asked whether it is negative
                        target[k] = source[chosen[k]]
            for batch in range(n_batches):
                place[batch] += begin[batch + 1] - begin[batch]
        edges[:, g + 1] = place
