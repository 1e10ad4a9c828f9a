"""Many networks in one pass: which of them judges an event, and nothing else, decides its score."""

from itertools import pairwise

import numpy as np
import pytest

from models.scoring import (
    _BLOCK,
    _SPAN,
    mean_and_spread,
    network_scores,
    networks_logits,
    networks_scores,
)


def parts(seed, hidden=(8, 4), n_in=4):
    """Weights, biases and scaling of one steep network."""
    rng = np.random.default_rng(seed)
    sizes = (n_in, *hidden, 1)
    weights = [rng.normal(0, 2, (b, a)) for a, b in pairwise(sizes)]
    return weights, [rng.normal(0, 1, len(w)) for w in weights], np.zeros(n_in), np.full(n_in, 5.0)


def events(n, kind=np.float32, seed=0):
    return np.random.default_rng(seed).uniform(0, 5, (n, 4)).astype(kind)


N = 2 * _SPAN * _BLOCK * 3 + 77  # two spans of three folds, and a part of a block


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_event_has_the_score_of_each_model_by_the_network_of_its_fold_alone(kind):
    models = [[parts(10 * m + k) for k in range(3)] for m in range(2)]
    x, fold = events(N, kind), np.random.default_rng(1).integers(-1, 3, N)
    for values in (networks_scores, networks_logits):
        found = values(x, models, fold)
        for m, model in enumerate(models):
            alone = [values(x, [[network]], None)[0] for network in model]
            wanted = np.where(fold < 0, np.nan, np.choose(np.maximum(fold, 0), alone))
            assert np.array_equal(found[m], wanted, equal_nan=True)


@pytest.mark.parametrize("hidden", [(5,), (16, 5, 7), (8, 4)])
def test_networks_of_other_shapes_in_the_same_ensemble_change_no_score(hidden):
    models, x = [[parts(1)], [parts(2, hidden)]], events(1000)
    found = networks_scores(x, models, None)
    assert np.array_equal(found, [network_scores(x, *network) for (network,) in models])


def test_all_events_in_one_fold_are_all_events_without_folds():
    x, model = events(N), [parts(3)]
    alone = networks_scores(x, [model], None)
    assert np.array_equal(alone, networks_scores(x, [model], np.zeros(N, np.int8)))
    assert np.array_equal(alone, networks_scores(x, [[parts(4), *model]], np.ones(N, np.int8)))
    assert np.isnan(networks_scores(x, [model], np.full(N, 1))).all()  # nobody judges them


def test_mean_and_spread_are_those_of_the_scores():
    scores = np.random.default_rng(2).uniform(0, 1, (5, 1000)).astype(np.float32)
    scores[:, 3] = np.nan
    scores[:, 4] = 0.7
    mean, spread = mean_and_spread(scores)
    assert mean == pytest.approx(scores.mean(axis=0, dtype=float), rel=1e-7, nan_ok=True)
    assert spread == pytest.approx(scores.std(axis=0, ddof=1, dtype=float), rel=1e-6, nan_ok=True)
    assert spread[4] == 0
    assert (mean_and_spread(scores[:1])[1][4:] == 0).all()
