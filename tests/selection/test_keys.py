"""The key of an event: all four numbers of its identity, and the data set, decide it."""

import hashlib

import numpy as np
import pytest

from selection.keys import event_identities, event_keys, row_keys
from selection.ntuple import EVENT_COLUMNS, KEY_COLUMNS
from selection.table import Folds

UINT64 = 2**64 - 1


def identity(n):
    return {branch: np.zeros(n, np.int64) for branch in EVENT_COLUMNS}


def mixed(z):
    """splitmix64 (Steele, Lea, Flood 2014), in integers of any size."""
    z = (z + 0x9E3779B97F4A7C15) & UINT64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & UINT64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & UINT64
    return z ^ (z >> 31)


def test_the_numbers_are_those_that_basf2_writes():
    assert list(EVENT_COLUMNS) == ["experiment", "run", "event", "production"]
    assert list(KEY_COLUMNS) == [*EVENT_COLUMNS, "candidate"]


@pytest.mark.parametrize("branch", EVENT_COLUMNS)
def test_events_that_differ_in_one_number_are_different_events(branch):
    columns = identity(1000) | {branch: np.arange(1000)}
    assert len(np.unique(event_keys("signal", columns, 1000))) == 1000


def test_the_same_number_in_another_place_is_another_event():
    keys = {
        branch: int(event_keys("signal", identity(1) | {branch: np.array([7])}, 1)[0])
        for branch in EVENT_COLUMNS
    }
    assert len(set(keys.values())) == 4


def test_a_key_is_the_chain_of_mixes_of_its_head():
    rng = np.random.default_rng(1)
    columns = {b: rng.integers(-1, 2**31, 20) for b in EVENT_COLUMNS}
    expected = []
    for row in range(20):
        key = int.from_bytes(hashlib.blake2b(b"taupair", digest_size=8).digest(), "little")
        for branch in EVENT_COLUMNS:
            key = mixed(key ^ (int(columns[branch][row]) & UINT64))
        expected.append(mixed(key))
    found = event_keys("taupair", columns, 20)
    assert found.tolist() == expected
    candidate = rng.integers(0, 9, 20)
    rows = [mixed(k ^ int(c)) for k, c in zip(expected, candidate, strict=True)]
    assert row_keys(found, candidate).tolist() == rows
    assert found.tolist() == expected  # not changed in place


def test_the_candidate_is_no_part_of_the_event_and_tells_its_rows_apart():
    columns = identity(1000) | {"candidate": np.arange(1000)}
    key = event_keys("signal", columns, 1000)
    assert len(np.unique(key)) == 1
    assert len(np.unique(row_keys(key, columns["candidate"]))) == 1000


def test_the_data_set_is_part_of_the_identity_and_absent_numbers_are_zero():
    columns = identity(5) | {"event": np.arange(5)}
    assert not set(event_keys("signal/1", columns, 5)) & set(event_keys("signal/2", columns, 5))
    alone = event_keys("signal/1", {"event": np.arange(5)}, 5)
    assert np.array_equal(alone, event_keys("signal/1", columns, 5))


def test_the_type_of_a_column_does_not_matter():
    wide = identity(3) | {"__run__": np.array([1, 2, 3])}
    narrow = {branch: column.astype(np.int32) for branch, column in wide.items()}
    assert np.array_equal(event_keys("x", wide, 3), event_keys("x", narrow, 3))


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 0.9])
def test_any_share_of_neighbouring_events_can_be_set_aside(fraction):
    """Events that are counted through, as in a file: the share is binomial all the same."""
    n = 20_000
    identities = event_identities(identity(n) | {"event": np.arange(n)}, n)
    held_out = Folds(1, fraction).of(identities) == 0
    assert held_out.mean() == pytest.approx(fraction, abs=5 * np.sqrt(0.25 / n))
    more = Folds(1, fraction + 0.05).of(identities) == 0
    assert (more | ~held_out).all()  # a larger share holds the smaller one


def test_the_held_out_are_those_with_the_smallest_identities():
    at = np.array([0, 2**30 - 1, 2**30, 2**31, 2**32 - 1], np.uint32)
    assert Folds(1, 0.25).of(at).tolist() == [0, 0, -1, -1, -1]
    assert (Folds(1, 0.0).of(at) == -1).all()
    assert Folds(4).of(at).tolist() == [0, 0, 1, 2, 3]
    assert Folds(100).of(at).tolist() == [0, 24, 25, 50, 99]
    for count, fraction in ((1, -0.1), (1, 1.0), (1, 1.5), (0, 0.2), (101, 0.2)):
        with pytest.raises(ValueError, match=r"from 1 to 100 folds and a validation fraction in"):
            Folds(count, fraction)
