"""Laws of the boosted trees."""

import sys

import numpy as np
import pytest

from models.evaluation.baselines import train_boosted_trees


@pytest.fixture(scope="module")
def trees(toy_sets):
    pytest.importorskip("xgboost")
    return train_boosted_trees(*toy_sets(), seed=1)


def test_signal_scores_above_background_on_events_not_trained_on(toy_sets, trees):
    _, validation = toy_sets()
    scores = trees.scores(validation.features.T)
    n_signal = validation.group_start[validation.n_masses]
    assert scores.min() >= 0
    assert scores.max() <= 1
    assert np.median(scores[:n_signal]) > np.median(scores[n_signal:]) + 0.3


def test_the_same_seed_gives_the_same_trees_for_any_number_of_threads(toy_sets, trees):
    _, validation = toy_sets()
    again = train_boosted_trees(*toy_sets(), seed=1, threads=2)
    assert again.n_rounds == trees.n_rounds
    assert np.allclose(again.scores(validation.features.T), trees.scores(validation.features.T))


def test_without_xgboost_the_error_names_the_extra(toy_sets, monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ImportError, match="extra 'baselines'"):
        train_boosted_trees(*toy_sets(), seed=1)
