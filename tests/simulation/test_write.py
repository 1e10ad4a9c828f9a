"""Files: the ntuple contract, metadata, all or nothing, only what is missing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import uproot

from analysis.config.configuration import load
from analysis.simulate import files_to_make, simulate_missing
from selection.beams import SUPERKEKB
from selection.ntuple import DEFAULT_BRANCHES, KEY_COLUMNS
from simulation.recipe import Recipe, SimulationError
from simulation.samples import simulate
from simulation.write import recorded_recipe, write_sample

RECIPE = Recipe("signal", 800, 5, mass_gev=3.0)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("ntuples") / "new" / "signal.root"
    return write_sample(RECIPE, path)


def test_rows_are_the_simulated_ones(written):
    rows = simulate(RECIPE).rows
    tree = uproot.open(written.path)["variables"]
    assert tree.classname == "TTree"
    assert tree.num_entries == written.rows == len(rows)
    assert np.array_equal(tree["mu_minus_pz"].array(library="np"), rows.seen[:, 1, 2].astype("f4"))
    assert np.array_equal(
        tree["true_mu_plus_e"].array(library="np"), rows.true[:, 0, 3].astype("f4")
    )
    assert np.array_equal(tree["weight"].array(library="np"), rows.weight)
    assert set(tree["generated_mass"].array(library="np")) == {3.0}


def test_all_branches_of_the_contract_are_there(written):
    tree = uproot.open(written.path)["variables"]
    wanted = {*DEFAULT_BRANCHES.values(), "__weight__"}
    assert wanted <= set(tree.keys())
    assert tree["mu_plus_px"].typename == "float"
    assert tree["Ecms"].typename == "double"
    assert tree["Ecms"].array(library="np")[0] == SUPERKEKB.sqrt_s_gev


def test_metadata_tell_how_the_file_was_made(written):
    about = {k: v[0] for k, v in uproot.open(written.path)["metadata"].arrays(library="np").items()}
    assert about["process"] == "signal"
    assert about["n_generated"] == 800
    assert about["seed"] == 5
    assert about["sqrt_s_gev"] == SUPERKEKB.sqrt_s_gev
    assert about["cross_section_fb"] == written.cross_section_fb
    assert about["sum_of_weights_inv_fb"] == pytest.approx(
        written.rows / 800 * about["cross_section_fb"]
    )
    assert recorded_recipe(written.path) == RECIPE


def test_event_keys_are_unique_in_a_sample(tmp_path):
    keys = []
    for part in range(2):
        path = tmp_path / f"{part}.root"
        write_sample(Recipe("taupair", 5_000, 1, part=part, parts=2), path)
        tree = uproot.open(path)["variables"]
        keys.append(np.column_stack([tree[f"__{k}__"].array(library="np") for k in KEY_COLUMNS]))
    rows = np.concatenate(keys)
    assert len(np.unique(rows, axis=0)) == len(rows) > 100


def test_background_has_no_mass_and_nan_where_no_photon_is(tmp_path):
    write_sample(Recipe("taupair", 5_000, 1), tmp_path / "tau.root")
    tree = uproot.open(tmp_path / "tau.root")["variables"]
    assert np.isnan(tree["generated_mass"].array(library="np")).all()
    angle, extra = (tree[b].array(library="np") for b in ("photon_recoil_angle", "extra_energy"))
    assert np.array_equal(np.isnan(angle), extra == 0)


def test_a_sample_without_rows_is_still_a_file(tmp_path):
    summary = write_sample(Recipe("signal", 1, 3, mass_gev=8.9), tmp_path / "few.root")
    assert summary.rows == 0
    assert uproot.open(tmp_path / "few.root")["variables"].num_entries == 0
    assert recorded_recipe(tmp_path / "few.root").n_generated == 1


def test_a_failed_write_leaves_nothing(tmp_path):
    target = tmp_path / "taken.root"
    target.mkdir()  # the complete file cannot take this name
    with pytest.raises(OSError, match="taken"):
        write_sample(Recipe("signal", 10, 1, mass_gev=1.0), target)
    assert list(tmp_path.iterdir()) == [target]


def jobs(folder, n=200):
    masses = (1.0, 2.0, 3.0)
    return [(Recipe("signal", n, 1, mass_gev=m), folder / f"{m}.root") for m in masses]


def contents(path):
    return {k: v.tobytes() for k, v in uproot.open(path)["variables"].arrays(library="np").items()}


def test_only_missing_files_are_made_and_workers_change_nothing(tmp_path):
    one, two = jobs(tmp_path / "one"), jobs(tmp_path / "two")
    first = simulate_missing(one, workers=1)
    assert [s.path for s in first.made] == [path for _, path in one]
    one[1][1].unlink()
    second = simulate_missing(one, workers=1)
    assert [s.path.name for s in second.made] == ["2.0.root"]
    assert len(second.kept) == 2
    for part in range(2):  # a process with a grid, which the workers share
        recipe = Recipe("threegamma", 300, 1, part=part, parts=2)
        one.append((recipe, tmp_path / "one" / f"{part}.root"))
        two.append((recipe, tmp_path / "two" / f"{part}.root"))
    assert len(simulate_missing(one, workers=1).made) == 2
    assert len(simulate_missing(two, workers=2).made) == 5
    for (_, a), (_, b) in zip(one, two, strict=True):
        assert contents(a) == contents(b)


def test_files_of_other_settings_are_listed_and_left_alone(tmp_path):
    simulate_missing(jobs(tmp_path)[:2], workers=1)
    (tmp_path / "3.0.root").write_bytes(b"not a ROOT file")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    with pytest.raises(SimulationError, match="n_generated = 200 in the file, 300 wanted") as error:
        simulate_missing(jobs(tmp_path, n=300), workers=1)
    assert all(f"{m}.root" in str(error.value) for m in (1.0, 2.0, 3.0))
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    made = simulate_missing(jobs(tmp_path, n=300), workers=1, overwrite=True).made
    assert len(made) == 3
    assert recorded_recipe(tmp_path / "3.0.root").n_generated == 300


def test_two_recipes_for_one_file_are_refused(tmp_path):
    same = [(recipe, tmp_path / "same.root") for recipe, _ in jobs(tmp_path)]
    with pytest.raises(SimulationError, match="want the same file"):
        simulate_missing(same, workers=1)


SCRIPT = """
import sys
from pathlib import Path
from analysis.simulate import simulate_missing
from simulation.recipe import Recipe
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    quick = [(Recipe("signal", 50, 1, mass_gev=1.0), folder / "quick.root")]
    endless = [
        (Recipe("taupair", 10**9, 1, part=i, parts=3), folder / f"{i}.root") for i in range(3)
    ]
    workers = int(sys.argv[2])
    simulate_missing(quick if workers == 1 else [], workers=1)
    simulate_missing(endless + (quick if workers > 1 else []), workers=workers)
"""


@pytest.mark.parametrize(
    ("workers", "stop"), [(1, signal.SIGTERM), (2, signal.SIGINT)], ids=["one", "pool"]
)
def test_an_interrupt_leaves_no_half_written_file(tmp_path, workers, stop):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    folder = tmp_path / "data"
    folder.mkdir()
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(workers)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.2)
        if workers > 1 and time.monotonic() > deadline - 52:
            break
        if (folder / "quick.root").exists():
            time.sleep(0.5)
            break
    assert process.poll() is None
    process.send_signal(stop)
    assert process.wait(timeout=30) != 0
    assert {p.name for p in folder.iterdir()} <= {"quick.root"}


def test_options_of_a_recipe_are_those_of_the_configuration(tmp_path):
    text = """
luminosity_inv_fb: 50
samples:
  signal: {kind: signal, files: "s_{mass}.root", masses_gev: [1.0, 2.0], n_generated: 100,
           simulate: {process: signal, seed: 1, sqrt_s_spread_gev: 0.0053, fsr: false}}
  tau: {kind: background, files: "t_{part}.root", weight: weight,
        simulate: {process: taupair, n_generated: 1000, parts: 2, seed: 2, isr: false}}
"""
    (tmp_path / "d.yaml").write_text(text)
    recipes = [recipe for recipe, _ in files_to_make(load(tmp_path / "d.yaml"), tmp_path)]
    assert [r.sqrt_s_spread_gev for r in recipes] == [0.0053] * 2 + [0.001] * 2
    assert [(r.isr, r.fsr) for r in recipes] == [(True, False)] * 2 + [(False, True)] * 2
    assert [r.n_generated for r in recipes] == [100, 100, 500, 500]
