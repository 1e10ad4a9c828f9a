"""Where only a share of the events is judged, they stand for all, whether one passes or not."""

from types import SimpleNamespace

import numpy as np
import pytest

from analysis.evaluate.passing import Passing, window_contents


def contents(evaluated, *, scale, judged):
    """What half of the judged events leave, each standing for `scale`."""
    _, _, _, simulated = evaluated
    rows = np.flatnonzero(judged)[::2]
    fold = np.where(judged, 0, -1).astype(np.int8)
    own = SimpleNamespace(table=simulated.table, windows=simulated.windows)
    return window_contents(own, [Passing(0, rows, fold, scale)])


def test_weights_of_passing_rows_and_of_one_row_are_those_of_all_events(evaluated):
    n = len(evaluated[3].table)
    judged = np.arange(n) % 5 != 0
    one = contents(evaluated, scale=1.0, judged=judged)
    five = contents(evaluated, scale=5.0, judged=judged)
    assert len(one) == len(five) > 0
    for a, b in zip(one, five, strict=True):
        assert np.array_equal(a.rows, b.rows)
        assert b.events == pytest.approx(5 * a.events)
        assert b.squares == pytest.approx(25 * a.squares)
        assert b.largest == pytest.approx(5 * a.largest)
        assert b.row_weight == pytest.approx(5 * a.row_weight)
        assert (a.row_weight > 0).any()
