"""Keys that stand more than once are found whatever the number of parts they are sorted in."""

import numpy as np
import pytest

from analysis.select import duplicates
from analysis.select.duplicates import repeated


@pytest.mark.parametrize("most", [1, 7, 100, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_repeated_keys_are_those_that_are_counted_twice(tmp_path, monkeypatch, most, seed):
    monkeypatch.setattr(duplicates, "MOST_KEYS", most)
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, 300, dtype=np.uint64, endpoint=False)
    ends = np.array([0, 2**64 - 1, 2**64 - 1], np.uint64)
    keys = rng.permutation(np.concatenate([keys, rng.choice(keys, 30), ends]))
    pieces = np.split(keys, np.sort(rng.integers(0, len(keys), 20)))
    found = repeated(iter(pieces), n_rows=len(keys), folder=tmp_path)
    values, times = np.unique(keys, return_counts=True)
    assert np.array_equal(np.sort(found), values[times > 1])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_rows", [0, 5, 10**9])
def test_no_keys_have_no_repeats(tmp_path, n_rows):
    nothing = np.empty(0, np.uint64)
    assert not repeated(iter([]), n_rows=n_rows, folder=tmp_path).size
    assert not repeated(iter([nothing, nothing]), n_rows=n_rows, folder=tmp_path).size
