"""Laws of the boosted trees."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from models.evaluation.baselines import train_boosted_trees
from models.training.training_set import training_sets
from selection.table import Folds


@pytest.fixture(scope="module")
def trees(toy_sets):
    pytest.importorskip("xgboost")
    return train_boosted_trees(toy_sets()[0], seed=1)


def test_signal_scores_above_background_on_events_not_trained_on(toy_sets, trees):
    _, validation = toy_sets()
    scores = trees.scores(validation.features.T)
    n_signal = validation.group_start[validation.n_masses]
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert np.median(scores[:n_signal]) > np.median(scores[n_signal:]) + 0.3


def test_the_same_seed_gives_the_same_trees_for_any_number_of_threads(toy_sets, trees):
    _, validation = toy_sets()
    again = train_boosted_trees(toy_sets()[0], seed=1, threads=2)
    assert again.n_rounds == trees.n_rounds
    assert np.allclose(again.scores(validation.features.T), trees.scores(validation.features.T))


def test_without_xgboost_the_error_names_the_extra(toy_sets, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ImportError, match="extra 'baselines'"):
        train_boosted_trees(toy_sets()[0], seed=1)


def test_the_best_number_of_rounds_is_kept_and_found_again(toy_sets, trees):
    """Stopped exactly there, the same rounds are the best; one round less is not the same."""
    again = train_boosted_trees(toy_sets()[0], seed=1, max_rounds=trees.n_rounds)
    assert again.n_rounds == trees.n_rounds == trees.booster.num_boosted_rounds()
    x = toy_sets()[1].features.T
    assert np.array_equal(again.scores(x), trees.scores(x))


def test_the_events_they_are_judged_by_decide_nothing_about_them(toy_table, toy_windows):
    """Other judged events, the same trees: also the number of rounds comes from the training part."""
    pytest.importorskip("xgboost")
    folds = Folds(4)

    def trees(table):
        train, _ = training_sets(table, toy_windows, luminosity_inv_fb=50.0, folds=folds, fold=1)
        return train_boosted_trees(train, seed=1)

    table = toy_table()
    judged = folds.of(table.identity) == 1
    features = table.features.copy()
    features[judged] = features[judged][::-1]  # signal and background exchanged among themselves
    one, other = trees(table), trees(replace(table, features=features))
    assert one.n_rounds == other.n_rounds
    assert np.array_equal(one.scores(table.features), other.scores(table.features))


def test_both_classes_weigh_the_same_so_that_a_stump_of_nothing_says_one_half(toy_sets):
    """Scores of weighted log-loss average to one half over equal classes."""
    pytest.importorskip("xgboost")
    data, _ = toy_sets()
    trees = train_boosted_trees(data, seed=1, max_rounds=1, depth=1)
    weight = data.weight.astype(float)
    n_signal = data.group_start[data.n_masses]
    weight[:n_signal] /= weight[:n_signal].sum()
    weight[n_signal:] /= weight[n_signal:].sum()
    scores = trees.scores(data.features.T)
    assert np.average(scores, weights=weight) == pytest.approx(0.5, abs=0.01)


def test_trees_that_are_given_up_end_with_the_round(toy_sets, trees):
    asked = iter([False, False, True])
    assert train_boosted_trees(toy_sets()[0], seed=1, given_up=lambda: next(asked)).n_rounds <= 3
