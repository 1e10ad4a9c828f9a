"""Mass windows against their definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from selection.windows import MassWindows, hypothesis_index, in_own_window, window_span

MASSES = np.arange(1, 90) / 10
WINDOWS = MassWindows(MASSES, 0.3 - 0.026 * MASSES, 2.0, squared=True)


def dense(windows, mass2):
    return (windows.low[:, None] < mass2) & (mass2 < windows.high[:, None])


@given(mass2=arrays(float, st.integers(0, 50), elements=st.floats(-5, 90)))
def test_span_is_the_definition_of_the_window(mass2):
    first, stop = window_span(WINDOWS, mass2)
    k = np.arange(len(WINDOWS))[:, None]
    assert np.array_equal((first <= k) & (k < stop), dense(WINDOWS, mass2))


def test_edges_and_nan_lie_outside():
    edges = np.concatenate([WINDOWS.low, WINDOWS.high, [np.nan]])
    first, stop = window_span(WINDOWS, edges)
    k = np.arange(len(WINDOWS))[:, None]
    assert np.array_equal((first <= k) & (k < stop), dense(WINDOWS, edges))
    assert first[-1] == stop[-1]


@given(
    mass2=arrays(float, 20, elements=st.floats(-1, 82)),
    own=st.lists(st.sampled_from([*MASSES, np.nan, 0.55]), min_size=20, max_size=20),
)
def test_own_window_is_that_of_the_generated_mass(mass2, own):
    expected = [
        m in MASSES and bool(dense(WINDOWS, np.array([x]))[list(MASSES).index(m), 0])
        for x, m in zip(mass2, own, strict=True)
    ]
    assert in_own_window(WINDOWS, mass2, np.array(own)).tolist() == expected


def test_a_mass_is_indexed_by_the_list_of_hypotheses():
    half = WINDOWS.take(slice(0, None, 2))
    found = hypothesis_index(half, np.array([0.1, 0.2, 8.9, np.nan, 0.3]))
    assert found.tolist() == [0, -1, 44, -1, 1]


def test_windows_whose_edges_turn_back_are_refused():
    with pytest.raises(ValueError, match=r"low edges of the windows at 1 and 1\.1 GeV"):
        MassWindows(np.array([1.0, 1.1]), np.array([0.1, 0.5]), 2.0, squared=True)
