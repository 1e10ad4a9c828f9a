"""A score per event and window, written as pairs, means what its definition says."""

from dataclasses import fields

import numpy as np
import pytest

from models.evaluation.figures_of_merit import Quoting, figures_of_merit, quote, split_events
from models.evaluation.pairs import in_pairs
from models.sensitivity import PunziFormula
from selection.table import Folds

FOLDS = Folds(3)
QUOTING = Quoting(PunziFormula(50.0, 3.0, 1.28155, "paper"))


@pytest.fixture(scope="module")
def case(toy_table, toy_windows):
    table = toy_table()
    return table, split_events(table, toy_windows, trained=np.ones(6, bool), folds=FOLDS)


def inside(windows, axis):
    return (windows.low[:, None] < axis) & (axis < windows.high[:, None])


def test_every_event_is_one_pair_in_each_window_it_counts_in(case, toy_windows):
    table, splits = case
    counts = inside(toy_windows, table.axis)
    counts &= ~table.is_signal | (table.signal_mass_gev == toy_windows.mass_gev[:, None])
    fold = FOLDS.of(table.identity)
    for k, split in enumerate(splits):
        pairs = in_pairs(split)
        for events, rows in ((pairs.split.training, fold != k), (pairs.split.judged, fold == k)):
            own = np.concatenate([events.signal_row, events.background_row])
            found = list(zip(pairs.window[own].tolist(), pairs.row[own].tolist(), strict=True))
            wanted = np.argwhere(counts & rows)
            assert sorted(found) == [tuple(pair) for pair in wanted.tolist()]
        assert sorted(np.concatenate([
            pairs.split.training.signal_row, pairs.split.training.background_row,
            pairs.split.judged.signal_row, pairs.split.judged.background_row,
        ])) == list(range(len(pairs.row)))  # fmt: skip


def test_a_score_that_is_the_same_in_all_windows_gives_the_same_bits_with_and_without_pairs(case):
    table, splits = case
    score = 1 / (1 + np.exp(-table.features[:, 3].astype(np.float64)))
    plain = figures_of_merit(
        splits, [score] * 3, classifier="bce", network=0, quoting=QUOTING
    )  # fmt: skip
    pairs = [in_pairs(split) for split in splits]
    paired = figures_of_merit(
        [p.split for p in pairs], [score[p.row] for p in pairs], classifier="bce", network=0,
        quoting=QUOTING,
    )  # fmt: skip
    for a, b in zip(plain, paired, strict=True):
        for field in fields(a):
            x, y = getattr(a, field.name), getattr(b, field.name)
            assert np.array_equal(x, y) if isinstance(x, np.ndarray) else x == y, field.name


def test_a_score_of_its_own_in_every_window_is_summed_window_by_window(case, toy_windows):
    """Window k lets events pass whose first feature is above -k/3."""
    table, splits = case
    pairs = [in_pairs(split) for split in splits]
    scores = [table.features[p.row, 0] + p.window / 3 for p in pairs]
    quoted = quote(
        [p.split for p in pairs], scores, np.zeros((3, 6)), name=("bce_mass", 0, "best_cut"),
        quoted_on="validation", quoting=QUOTING,
    )  # fmt: skip
    k = np.arange(6)[:, None]
    passing = inside(toy_windows, table.axis) & (table.features[:, 0] + k / 3 >= 0)
    own = passing & (table.signal_mass_gev == toy_windows.mass_gev[:, None])
    assert quoted.efficiency == pytest.approx(own @ table.weight, rel=1e-12)
    assert quoted.background == pytest.approx((passing & ~table.is_signal) @ table.weight)
