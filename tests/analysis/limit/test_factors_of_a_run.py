"""Factors of backgrounds in a run: fitted to its regions, applied, and gone when switched off."""

import json

import numpy as np
import pytest

from analysis.config.configuration import ConfigError, load
from analysis.inputs.datasets import datasets
from analysis.limit.normalisation import (
    factors_of,
    fit_normalisation,
    region_counts,
    with_errors,
    with_factors,
)
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.stage import select_events
from analysis.train.stage import simulated_events

SIDEBAND = "regions.sideband.cuts.extra_energy=0.4 <= extra_energy and extra_energy < 0.6"
FITTED = ("normalisation.regions=[sideband]", "normalisation.samples=[background]")


@pytest.fixture(scope="module")
def selected(small_inputs, tmp_path_factory):
    """A run with data and a sideband, selected."""
    folder = tmp_path_factory.mktemp("factors")
    for file in small_inputs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "recorded.root").write_bytes((folder / "background_0.root").read_bytes())
    with (folder / "datasets.yaml").open("a") as stream:
        stream.write("    uncertainty: 0.03\n  recorded: {kind: data, files: recorded.root, ")
        stream.write("luminosity_inv_fb: 25}\naccept: [same_file, same_events]\n")
    config = load(folder / "datasets.yaml", [SIDEBAND])
    with open_run(folder / "run") as run:
        selection = select_events(
            run, config, datasets(config, folder=folder), Execution(executor="iterative")
        )
    return folder, run, selection


def test_one_factor_is_data_over_simulation_of_the_region(selected):
    folder, run, selection = selected
    config = load(folder / "datasets.yaml", [SIDEBAND, *FITTED])
    flows = json.loads(run.region("sideband").cutflow.read_text())
    expected = flows["background"]["events"][-1] * 25 / config.luminosity_inv_fb
    ratio = flows["recorded"]["events"][-1] / expected
    fit_normalisation(run, config)
    assert factors_of(run)["background"] == pytest.approx(ratio, rel=2e-3)
    error = json.loads(run.normalisation.read_text())["error"][0] / ratio
    wanted = np.hypot(0.03, error)
    assert with_errors(config, run).samples["background"].uncertainty == pytest.approx(
        wanted, rel=0.01
    )
    before = simulated_events(run, config, selection)
    after = with_factors(run, before)
    scale = after.table.weight / before.table.weight
    assert scale[~before.table.is_signal] == pytest.approx(ratio, rel=2e-3)
    assert (scale[before.table.is_signal] == 1).all()
    fit_normalisation(run, load(folder / "datasets.yaml", [SIDEBAND]))
    assert not run.normalisation.exists()
    assert with_factors(run, before) is before
    assert with_errors(config, run) is config


def test_a_histogram_holds_the_events_of_its_region(selected):
    folder, run, _ = selected
    one = region_counts(run, load(folder / "datasets.yaml", [SIDEBAND, *FITTED]))
    shape = ("normalisation.quantity=recoil_mass2",)
    many = region_counts(run, load(folder / "datasets.yaml", [SIDEBAND, *FITTED, *shape]))
    assert len(one.data) == 1 < len(many.data)
    assert many.data.sum() == one.data.sum() > 50
    assert many.events.sum() == pytest.approx(one.events.sum())
    assert many.squares.sum() == pytest.approx(one.squares.sum())


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("normalisation.regions=[sideban]", "sideban"),
        ("normalisation.samples=[signal]", "signal"),
        ("normalisation.quantity=mass", "mass"),
        ("normalisation.samples=[background, background]", "twice"),
    ],
)
def test_names_that_are_not_there_are_refused(selected, change, match):
    with pytest.raises(ConfigError, match=match):
        load(selected[0] / "datasets.yaml", [SIDEBAND, *FITTED, change])
