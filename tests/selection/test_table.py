"""The event table: columns of one length, and rows that stay together."""

from dataclasses import replace

import numpy as np
import pytest

from selection.table import EventTable

N = 6
TABLE = EventTable(
    features=np.arange(4 * N, dtype=np.float32).reshape(N, 4),
    axis=np.arange(N) + 0.5,
    weight=np.arange(N) + 10.0,
    signal_mass_gev=np.array([1.0, np.nan, 2.0, np.nan, 3.0, 0.1]),
    sample=np.arange(N, dtype=np.int16),
    key=np.arange(N, dtype=np.uint64) + np.uint64(100),
    identity=np.arange(N, dtype=np.uint32) + np.uint32(200),
    sample_names=("a", "b"),
    feature_names=("p", "q", "r", "s"),
)
COLUMNS = ("features", "axis", "weight", "signal_mass_gev", "sample", "key", "identity")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_another_length_is_refused(name):
    shorter = getattr(TABLE, name)[:-1]
    with pytest.raises(ValueError, match=r"ha(s|ve) shape"):
        replace(TABLE, **{name: shorter})


@pytest.mark.parametrize("shape", [(N, 3), (N, 5), (4, N), (N,)])
def test_an_event_has_a_number_for_each_feature(shape):
    with pytest.raises(ValueError, match=r"features have shape .*, expected \(6, 4\)"):
        replace(TABLE, features=np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    "rows", [np.array([4, 0, 4]), np.array([True, False] * 3)], ids=["numbers", "mask"]
)
def test_rows_stay_together(rows):
    taken = TABLE.take(rows)
    for name in COLUMNS:
        assert np.array_equal(getattr(taken, name), getattr(TABLE, name)[rows], equal_nan=True)
    assert taken.sample_names == ("a", "b")
    assert len(taken) == 3


def test_signal_is_what_has_a_mass():
    assert TABLE.is_signal.tolist() == [True, False, True, False, True, True]
    assert len(TABLE) == N
