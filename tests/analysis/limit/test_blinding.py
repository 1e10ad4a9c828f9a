"""Data after the cut stay hidden until a person asks, and what happens then is written down."""

import json
import shutil
from dataclasses import replace

import pytest

from analysis.config.configuration import Configuration
from analysis.figures.draw import warning_of
from analysis.figures.run_results import run_results
from analysis.figures.spectra import both_stages, spectra
from analysis.limit.blinding import (
    changed_after_unblinding,
    data_are_shown,
    note_unblinding,
    unblindings,
)
from analysis.report.stage import outcome
from analysis.run.folder import RunFolder
from models.trained import load_model, save_model, with_cut


@pytest.fixture
def own_run(evaluated, tmp_path):
    shutil.copytree(evaluated[0].path, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def blind(config):
    raw = config.model_dump(mode="json")
    raw["settings"]["limit"]["unblind"] = False
    return Configuration.model_validate(raw)


def test_nobody_sees_data_by_default(evaluated):
    assert not Configuration.model_fields["settings"].default_factory().limit.unblind
    config = evaluated[1]
    assert data_are_shown(config)
    assert not data_are_shown(blind(config))


def test_blind_figures_show_data_before_the_cut_only(evaluated):
    run, config, _, simulated = evaluated
    results = run_results(run, blind(config), simulated)
    before, after = both_stages(results, "recoil_mass2", 1.0)  # covers all recoils of this sample
    assert before.data.sum().value == pytest.approx(len(results.data), rel=2e-3)
    assert after.data is None
    drawn = list(spectra(results))
    assert not any(d.stem.endswith("_after") for d in drawn)
    assert all("blind" in d.caption for d in drawn)
    rows = next(d for d in drawn if d.stem == "recoil_mass").numbers
    assert all("data" not in row for row in rows if row["stage"] == "after")
    seen = both_stages(replace(results, config=config), "recoil_mass", 1.0)[1]
    assert seen.data.sum().value > 0


def test_unblinding_is_noted_once_with_date_model_and_configuration(evaluated, own_run):
    config = evaluated[1]
    first = unblindings(own_run)
    assert len(first) == 1  # the run of the fixture looked at its data
    assert set(first[0]) == {"date", "model", "configuration"}
    note_unblinding(own_run, config, network=0)
    assert unblindings(own_run) == first
    raw = config.model_dump(mode="json") | {"luminosity_inv_fb": 51.0}
    note_unblinding(own_run, Configuration.model_validate(raw), network=0)
    assert unblindings(own_run)[0] == first[0]
    assert len(unblindings(own_run)) == 2


def test_a_cut_changed_after_unblinding_is_said_by_figures_and_report(evaluated, own_run):
    config = evaluated[1]
    assert changed_after_unblinding(own_run, network=0) == ""
    path = own_run.model("punzi", 0)
    save_model(with_cut(load_model(path), 0.7), path)
    text = changed_after_unblinding(own_run, network=0)
    date = json.loads(own_run.unblinding.read_text())[0]["date"][:10]
    assert text == f"Model or cut changed after unblinding on {date}"
    assert any(text in finding for finding in outcome(own_run, config).findings)
    assert warning_of(own_run, network=0) == text
    # and a second look does not make the change forgotten
    note_unblinding(own_run, config, network=0)
    assert changed_after_unblinding(own_run, network=0) == text


def test_a_run_that_nobody_unblinded_says_nothing(tmp_path):
    run = RunFolder(tmp_path)
    assert unblindings(run) == []
    assert changed_after_unblinding(run, network=0) == ""
