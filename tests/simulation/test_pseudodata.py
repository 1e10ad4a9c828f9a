"""Pseudo-data: the rates of the simulation, and nothing that an experiment would not have."""

import numpy as np
import pytest
import uproot

from simulation import pseudodata
from simulation.pseudodata import PseudoData, recorded_events
from simulation.recipe import Recipe
from simulation.samples import simulate
from simulation.write import recorded_recipe, write_sample


@pytest.fixture
def taus_only(monkeypatch):
    """The one background without a grid that takes long to adapt."""
    monkeypatch.setattr(pseudodata, "POINTS_PER_INV_FB", {"taupair": 100_000})


def test_the_number_of_events_is_the_rate_times_luminosity(taus_only):
    rows = simulate(Recipe("taupair", 200_000, seed=3)).rows
    rate = rows.weight.sum()
    found = [recorded_events(PseudoData(0.2, seed)) for seed in range(4)]
    n = sum(len(f.rows) for f in found)
    assert n == pytest.approx(
        0.8 * rate, abs=4 * np.sqrt(0.8 * rate + 0.64 * (rows.weight**2).sum())
    )
    assert all(0 < f.heaviest < 1 for f in found)
    assert len({len(f.rows) for f in found}) > 1


def test_hidden_signal_is_there_beside_the_same_background(taus_only):
    plain = recorded_events(PseudoData(0.1, 7)).rows
    with_signal = recorded_events(PseudoData(0.1, 7, 2.0, 5000.0)).rows
    seen = len(with_signal) - len(plain)
    assert 0.2 * 500 < seen < 500  # of 500 generated
    assert set(plain.seen[:, 0, 0]) <= set(with_signal.seen[:, 0, 0])


def test_the_file_has_no_truth_no_weights_and_its_recipe(taus_only, tmp_path):
    recipe = PseudoData(0.05, 7, 2.0, 400.0)
    summary = write_sample(recipe, tmp_path / "data.root")
    with uproot.open(tmp_path / "data.root") as file:
        names = set(file["variables"].keys())
        assert file["variables"].num_entries == summary.rows > 100
    assert not [n for n in names if "true" in n or "weight" in n or "process" in n]
    assert "generated_mass" not in names
    assert recorded_recipe(tmp_path / "data.root") == recipe


def test_no_event_is_one_of_the_simulation_with_the_same_seed(taus_only):
    data = recorded_events(PseudoData(0.05, 7)).rows
    simulated = simulate(Recipe("taupair", 5000, seed=7)).rows
    assert not set(data.seen[:, 0, 0]) & set(simulated.seen[:, 0, 0])


def test_rows_too_heavy_for_one_event_are_refused(monkeypatch):
    monkeypatch.setattr(pseudodata, "POINTS_PER_INV_FB", {"taupair": 100})
    with pytest.raises(pseudodata.SimulationError, match=r"lack .* of its rate"):
        recorded_events(PseudoData(100.0, 7))
