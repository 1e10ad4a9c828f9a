"""Laws of the training set: sums over groups are sums over windows."""

from dataclasses import replace

import numpy as np
import pytest

from models.training.training_set import training_sets
from selection.table import Folds

ONE = Folds(1, 0.2)


def window_sums(table, windows):
    """eps and B by their definition, with a dense matrix."""
    mass2 = table.axis
    inside = (windows.low[:, None] < mass2) & (mass2 < windows.high[:, None])
    own = table.signal_mass_gev == windows.mass_gev[:, None]
    background = ~table.is_signal
    return (inside & own) @ table.weight, (inside & background) @ table.weight


def efficiency_and_background(data):
    sums = data.group_weight
    return sums[: data.n_masses], data.in_window @ sums[data.n_masses :]


def test_group_sums_are_window_sums_scaled_for_the_split(toy_table, toy_windows):
    table = toy_table()
    sets = training_sets(table, toy_windows, luminosity_inv_fb=50.0, folds=Folds(1, 0.25))
    held_out = Folds(1, 0.25).of(table.identity) == 0
    for data, rows, share in zip(sets, (~held_out, held_out), (0.75, 0.25), strict=True):
        for found, wanted in zip(
            efficiency_and_background(data), window_sums(table.take(rows), toy_windows), strict=True
        ):
            assert found == pytest.approx(wanted / share, rel=1e-6)


def test_events_on_window_edges_and_outside_are_not_lost_in_a_wrong_group(toy_table, toy_windows):
    table = toy_table(n_background=200)
    edges = np.concatenate([toy_windows.low, toy_windows.high, [-50.0, 99.0, np.nan]])
    mass2 = table.axis.copy()
    mass2[-len(edges) :] = edges
    table = replace(table, axis=mass2)
    data, _ = training_sets(table, toy_windows, luminosity_inv_fb=50.0, folds=Folds(1, 0.0))
    wanted = window_sums(table, toy_windows)
    for found, expected in zip(efficiency_and_background(data), wanted, strict=True):
        assert found == pytest.approx(expected, rel=1e-6)


def test_a_mass_without_events_leaves_the_other_masses_untouched(toy_table, toy_windows):
    table = toy_table()
    whole, _ = training_sets(table, toy_windows, luminosity_inv_fb=50.0, folds=ONE)
    poor, _ = training_sets(
        table.take(table.signal_mass_gev != 1.5), toy_windows, luminosity_inv_fb=50.0, folds=ONE
    )
    others = toy_windows.mass_gev != 1.5
    assert np.array_equal(poor.masses_without_events, [1.5])
    for before, after in zip(
        efficiency_and_background(whole), efficiency_and_background(poor), strict=True
    ):
        assert np.array_equal(before[others], after[others])
    assert efficiency_and_background(poor)[0][2] == 0


def test_order_inside_a_group_is_the_order_of_the_table(toy_table, toy_windows):
    table = toy_table(n_background=500, n_signal=30)
    data, _ = training_sets(table, toy_windows, luminosity_inv_fb=50.0, folds=Folds(1, 0.0))
    row_of = {tuple(x): i for i, x in enumerate(table.features)}
    rows = np.array([row_of[tuple(x)] for x in data.features.T])
    for start, stop in zip(data.group_start[:-1], data.group_start[1:], strict=True):
        assert np.all(np.diff(rows[start:stop]) > 0)


def test_without_signal_or_background_there_is_nothing_to_train(toy_table, toy_windows):
    table = toy_table()
    for rows in (table.is_signal, ~table.is_signal):
        with pytest.raises(ValueError, match="training needs signal and background"):
            training_sets(table.take(rows), toy_windows, luminosity_inv_fb=50.0, folds=ONE)


def test_features_that_are_not_finite_are_refused(toy_table, toy_windows):
    table = toy_table()
    features = table.features.copy()
    features[:, 2] = np.nan
    with pytest.raises(ValueError, match="not finite"):
        training_sets(
            replace(table, features=features), toy_windows, luminosity_inv_fb=50.0, folds=ONE
        )


def test_fingerprint_tells_sets_apart(toy_sets):
    first, other = toy_sets(seed=1)[0], toy_sets(seed=2)[0]
    assert first.fingerprint == toy_sets(seed=1)[0].fingerprint
    assert first.fingerprint != other.fingerprint
