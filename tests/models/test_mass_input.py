"""Laws of the mass as an input: background gets a mass whose window holds it, by chance alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models import mass_input
from models.layers import layers_of, load_layers, save_layers
from models.mass_input import MASS, scores_at_mass, with_mass
from models.model_file import ModelFileError
from models.network import PunziNet
from models.trained import load_model
from models.training.loop import train_network
from models.training.settings import DEFAULT, with_mass_input


def inside(windows, axis):
    return (windows.low[:, None] < axis) & (axis < windows.high[:, None])


@pytest.fixture(scope="module")
def told(toy_table, toy_windows):
    table = toy_table(n_background=20_000)
    return table, with_mass(table, toy_windows, seed=3)


def test_signal_has_its_own_mass_and_background_one_whose_window_holds_it(told, toy_windows):
    table, made = told
    mass = made.features[:, -1]
    assert made.feature_names == (*table.feature_names, MASS)
    assert np.array_equal(made.features[:, :4], table.features)
    signal = table.is_signal
    assert np.array_equal(mass[signal], table.signal_mass_gev[signal].astype(np.float32))
    where = inside(toy_windows, table.axis)
    held = where.any(axis=0) & ~signal
    at = np.argmin(np.abs(toy_windows.mass_gev[:, None] - mass), axis=0)
    assert np.abs(toy_windows.mass_gev[at] - mass)[held].max() < 1e-6
    assert where[at, np.arange(len(table))][held].all()
    assert held.sum() > 5000


def test_every_window_gets_its_background_on_average(told, toy_windows):
    """Chosen masses with weight n w: the sum at a mass is that of its window, within its error."""
    table, made = told
    background = ~table.is_signal
    where = inside(toy_windows, table.axis) & background
    for k, mass in enumerate(toy_windows.mass_gev):
        chosen = background & where[k] & (made.features[:, -1] == np.float32(mass))
        error = np.sqrt((made.weight[chosen] ** 2).sum())
        assert abs(made.weight[chosen].sum() - where[k] @ table.weight) < 4 * error
        assert chosen.sum() > 100


def test_background_stands_for_all_its_windows_and_signal_for_itself(told, toy_windows):
    table, made = told
    n = inside(toy_windows, table.axis).sum(axis=0)
    assert n.max() >= 2
    assert np.array_equal(made.weight, table.weight * np.where(table.is_signal, 1, n))


def test_the_choice_knows_neither_order_nor_neighbours_but_the_seed(told, toy_windows):
    table, made = told
    rows = np.random.default_rng(1).permutation(len(table))[:7000]
    part = with_mass(table.take(rows), toy_windows, seed=3)
    assert np.array_equal(part.features, made.features[rows])
    other = with_mass(table, toy_windows, seed=4)
    n = inside(toy_windows, table.axis).sum(axis=0)
    free = (n >= 2) & ~table.is_signal
    assert 0.3 < (other.features[free, -1] != made.features[free, -1]).mean() < 0.8


def network(seed=1):
    low, high = np.array([0, 0, -6, 1.0, 0.1]), np.array([5, 6, 2, 5.0, 8.9])
    return PunziNet(low, high, seed=seed)


def test_the_score_of_a_pair_is_that_of_the_event_at_the_mass(monkeypatch):
    monkeypatch.setattr(mass_input, "_CHUNK", 100)
    net, rng = network(), np.random.default_rng(2)
    features = rng.uniform(0, 5, (50, 4)).astype(np.float32)
    row, mass = rng.integers(0, 50, 333), rng.uniform(0.1, 8.9, 333)
    found = scores_at_mass(layers_of(net), features, row, mass)
    x = np.column_stack([features[row], mass]).astype(np.float32)
    with torch.no_grad():
        exact = net.double()(torch.from_numpy(x).double()).numpy()
    assert np.abs(found - exact).max() < 1e-6


def test_a_network_comes_back_from_its_file_and_is_no_model(tmp_path):
    sent = layers_of(network())
    save_layers(sent, tmp_path / "net", {"classifier": "bce_mass"})
    back = load_layers(tmp_path / "net")
    for a, b in zip(
        (*sent.parts[0], *sent.parts[1]), (*back.parts[0], *back.parts[1]), strict=True
    ):
        assert np.array_equal(a, b)
    assert np.array_equal(sent.feature_max, back.feature_max)
    with pytest.raises(ModelFileError, match="not a usable model"):
        load_model(tmp_path / "net")
    (tmp_path / "bad").write_bytes((tmp_path / "net").read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="damaged"):
        load_layers(tmp_path / "bad")


def test_a_net_that_is_told_the_mass_learns_where_its_signal_is(toy_table, toy_sets, toy_windows):
    """Signal lies at 2 (m - 1.7) in the first feature, background everywhere in it."""
    rng, table = np.random.default_rng(5), toy_table(n_background=3000)
    at = np.where(
        table.is_signal, 2 * (table.signal_mass_gev - 1.7), rng.uniform(-3, 3, len(table))
    )
    features = rng.normal(0, 1, (len(table), 4)).astype(np.float32)
    features[:, 0] = at + rng.normal(0, 0.3, len(table))
    told = with_mass(replace(table, features=features), toy_windows, seed=1)
    blind = replace(told, features=np.column_stack([features, features[:, 0]]))
    bce, punzi = DEFAULT.stages
    stages = (replace(bce, epochs=10, batch_size=256), replace(punzi, epochs=300))
    losses = []
    for events in (told, blind):
        settings = with_mass_input(replace(DEFAULT, stages=stages))
        result = train_network(*toy_sets(events), settings, seed=1)
        assert list(result.after) == ["bce", "bce_mass"]
        losses.append(result.history.of_stage(1).validation_loss[-1])
    assert losses[0] < 0.8 * losses[1]
