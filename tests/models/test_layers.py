"""The mean of networks before the sigmoid is one network, for whoever scores, stores or exports."""

from itertools import pairwise

import numpy as np
import pytest

from analysis.config.settings import _WIDEST
from models.export import export_onnx, fold_path
from models.layers import WIDEST, Layers, mean_network
from models.scoring import network_scores, networks_logits
from models.trained import TrainedModel, load_model, save_model
from selection.windows import MassWindows
from tests.dimuon import SEARCH
from tests.models.test_trained import CONDITIONS

LOW, HIGH = np.array([0, 0, -6, 1.0], np.float32), np.array([5, 6, 2, 5.0], np.float32)
WINDOWS = MassWindows(np.array([1.0, 2.0]), np.full(2, 0.2), 2.0, squared=True)


def layers(seed, hidden=(8, 4), *, steepness=3.0, low=LOW):
    rng = np.random.default_rng(seed)
    widths = [4, *hidden, 1]
    return Layers(
        weights=tuple(
            rng.normal(0, steepness, (n_out, n_in)).astype(np.float32)
            for n_in, n_out in pairwise(widths)
        ),
        biases=tuple(rng.normal(0, 1, n).astype(np.float32) for n in widths[1:]),
        feature_min=low,
        feature_max=HIGH,
    )


def events(n=2000, seed=0):
    return np.random.default_rng(seed).uniform(LOW, HIGH, (n, 4)).astype(np.float32)


def mean_by_definition(networks, x):
    """Each network in plain numpy, double precision."""
    logits = []
    for net in networks:
        h = (x.astype(np.float64) - net.feature_min) / (net.feature_max - net.feature_min)
        for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
            h = np.tanh(h @ weight.T.astype(np.float64) + bias)
        logits.append(h @ net.weights[-1][0].astype(np.float64) + net.biases[-1][0])
    return np.mean(logits, axis=0)


@pytest.mark.parametrize("hidden", [(8, 4), (5, 3), (3,), (4, 6, 7), ()], ids=str)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_mean_network_gives_the_mean_of_the_outputs_before_the_sigmoid(hidden, n):
    x, nets = events(), [layers(seed, hidden) for seed in range(n)]
    mean, wanted = mean_network(nets), mean_by_definition(nets, x)
    assert [len(b) for b in mean.biases] == [*(n * width for width in hidden), 1]
    assert np.abs(networks_logits(x, [[mean.parts]], None)[0] - wanted).max() < 1e-5
    scores = network_scores(x, *mean.parts)
    assert np.abs(scores - 1 / (1 + np.exp(-wanted))).max() < 1e-6
    of_scores = np.mean([network_scores(x, *net.parts) for net in nets], axis=0)
    assert np.abs(scores - of_scores).max() > 0.01  # which is another number


def test_the_mean_of_one_network_is_that_network():
    net = layers(1)
    assert mean_network([net]) is net


def test_networks_of_different_widths_have_a_mean_too():
    x, nets = events(), [layers(1, (8, 4)), layers(2, (3, 6))]
    found = networks_logits(x, [[mean_network(nets).parts]], None)[0]
    assert np.abs(found - mean_by_definition(nets, x)).max() < 1e-5


def test_a_missing_input_has_no_score_in_a_mean_either():
    x = events(300)
    x[7, 3], x[8, 0] = np.nan, np.inf
    for hidden in ((8, 4), (5, 3)):
        scores = network_scores(x, *mean_network([layers(s, hidden) for s in range(3)]).parts)
        assert np.isnan(scores).nonzero()[0].tolist() == [7, 8]


def test_networks_with_other_scalings_or_layers_have_no_mean():
    other = layers(2, low=LOW - 1)
    for wrong in (other, layers(2, (8,))):
        with pytest.raises(ValueError, match="same number of layers and the same scaling"):
            mean_network([layers(1), wrong])


def test_the_settings_know_how_wide_a_mean_may_be():
    assert _WIDEST == WIDEST


def whole_model(n_folds, n_seeds):
    """Folds with other scalings; their seeds share that of the fold."""
    networks = [
        mean_network([layers(10 * k + s, low=LOW - np.float32(k)) for s in range(n_seeds)])
        for k in range(n_folds)
    ]
    return TrainedModel(tuple(networks), WINDOWS, np.ones(2, bool), CONDITIONS, SEARCH)


def test_seeds_and_folds_come_back_from_one_file(tmp_path):
    sent, x = whole_model(3, 2), events(500)
    save_model(sent, tmp_path / "net")
    back, fold = load_model(tmp_path / "net"), np.arange(500) % 3
    assert np.array_equal(back.score(x, fold), sent.score(x, fold))
    for k in range(3):
        nets = [layers(10 * k + s, low=LOW - np.float32(k)) for s in range(2)]
        rows = fold == k
        found = back.logits(x, fold)[rows]
        assert np.abs(found - mean_by_definition(nets, x[rows])).max() < 1e-5


@pytest.mark.parametrize(("n_folds", "n_seeds"), [(1, 3), (3, 2)])
def test_one_graph_and_the_graphs_of_the_folds_give_the_scores_of_the_means(
    n_folds, n_seeds, tmp_path
):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, x = whole_model(n_folds, n_seeds), events(3000)
    fold = np.arange(len(x)) % n_folds
    export_onnx(model, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    inputs = x if n_folds == 1 else np.column_stack([x, fold]).astype(np.float32)
    (score,) = session.run(None, {session.get_inputs()[0].name: inputs})
    assert np.abs(score[:, 0] - model.score(x, fold)).max() < 1e-6
    for k in range(n_folds if n_folds > 1 else 0):
        alone = onnxruntime.InferenceSession(fold_path(tmp_path / "net.onnx", k))
        (score,) = alone.run(None, {alone.get_inputs()[0].name: x})
        assert np.abs(score[:, 0] - model.of_fold(k).score(x)).max() < 1e-6
