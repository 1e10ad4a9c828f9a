"""Ntuples as they are: other names, other trees, several samples, counts and weights of any form."""

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from analysis.config.configuration import ConfigError, parse
from analysis.inputs.check import CheckError, find_problems, inspect_all
from analysis.inputs.datasets import datasets, filled
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.index import load_selection
from analysis.select.skim import read_table
from analysis.select.stage import select_events
from selection.beams import SUPERKEKB, Beams
from tests.dimuon import event_kinematics

ONE = Execution(executor="iterative")


def selected(text, folder, name="run"):
    config = parse(text, where="test", overrides=())
    with open_run(folder / name) as run:
        select_events(run, config, datasets(config, folder=folder), ONE)
        return read_table(load_selection(run).parts)


HEAD = "luminosity_inv_fb: 50\nsamples:\n"


def signal(name="signal", files="signal_{mass}.root", masses="[2, 3]", more="n_generated: 1200"):
    return f"  {name}: {{kind: signal, files: '{files}', masses_gev: {masses}, {more}}}\n"


def test_masses_may_be_spread_over_samples_of_unequal_size(tmp_path, save, columns):
    for mass, n in ((2, 500), (3, 800)):
        save(tmp_path / f"signal_{mass}.root", columns(n, seed=mass, mass_gev=float(mass)))
    text = HEAD + signal("low", masses="[2]", more="n_generated: 1000")
    text += signal("high", masses="[3]", more="n_generated: 4000")
    table = selected(text, tmp_path)
    assert table.sample_names == ("low", "high")
    for mass, n in ((2.0, 1000), (3.0, 4000)):
        rows = table.signal_mass_gev == mass
        assert np.all(table.weight[rows] == 1 / n)
        assert rows.any()


@pytest.mark.parametrize(
    "how", ["n_generated: [1000, 4000]", "n_generated: {2: 1000, 3: 4000}", "label: from the files"]
)
def test_generated_events_are_counted_for_each_mass(tmp_path, save, columns, how):
    for mass, n in ((2, 1000), (3, 4000)):
        cols = columns(700, seed=mass, mass_gev=float(mass))
        save(tmp_path / f"signal_{mass}.root", cols, metadata={"n_generated": n})
    table = selected(HEAD + signal(more=how), tmp_path)
    assert set(table.weight[table.signal_mass_gev == 2]) == {1 / 1000}
    assert set(table.weight[table.signal_mass_gev == 3]) == {1 / 4000}


def test_a_list_of_generated_events_follows_the_masses_as_they_are_written():
    text = HEAD + signal(masses="[3, 2]", more="n_generated: [30, 20]")
    sample = parse(text, where="test").signals["signal"]
    assert [sample.n_generated_at(m) for m in sample.masses] == [20, 30]


def test_a_weight_per_signal_event_averages_to_its_share(tmp_path, save, columns):
    cols = columns(900, seed=3, mass_gev=2.0)
    cols["w"] = np.linspace(0.5, 1.5, 900)
    save(tmp_path / "signal_2.root", cols)
    table = selected(HEAD + signal(masses="[2]", more="n_generated: 1200, weight: w"), tmp_path)
    assert table.weight.min() < 0.7 / 1200
    assert table.weight.sum() == pytest.approx(len(table) / 1200, rel=0.05)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("s_{mass:.2f}.root", "s_0.50.root"),
        ("s_{mass_mev:04d}.root", "s_0500.root"),
        ("s_{mass}_{mass_mev}.root", "s_0.5_500.root"),
        ("s_{mass:06.3f}.root", "s_00.500.root"),
        ("s_{mass:>9}.root", None),
    ],
)
def test_masses_in_file_names_may_be_padded(pattern, expected):
    text = HEAD + signal(files=pattern, masses="[0.5, 1]", more="n_generated: 5")
    if expected is None:
        with pytest.raises(ConfigError, match="has no meaning"):
            parse(text, where="test")
        return
    parse(text, where="test")
    assert filled(pattern, mass_gev=0.5, part=0) == expected


def test_a_tree_in_a_folder_of_the_file_is_found(tmp_path, columns):
    cols = columns(600, seed=3, mass_gev=2.0)
    with uproot.recreate(tmp_path / "signal_2.root") as file:
        file.mktree("ntuples/events", {k: v.dtype for k, v in cols.items()}).extend(cols)
    text = HEAD + signal(masses="[2]")
    by_itself = selected(text, tmp_path, "one")
    named = selected(text + "tree: ntuples/events\n", tmp_path, "two")
    assert np.array_equal(by_itself.axis, named.axis)
    assert len(named) > 300


def test_event_numbers_may_have_other_names_or_none(tmp_path, save, columns):
    cols = columns(600, seed=3, mass_gev=2.0)
    save(tmp_path / "signal_2.root", cols)
    usual = selected(HEAD + signal(masses="[2]"), tmp_path, "usual")
    names = {"__event__": "evt", "__run__": "runno", "__experiment__": "exp"}
    save(tmp_path / "signal_2.root", {names.get(k, k): v for k, v in cols.items()})
    text = HEAD + signal(masses="[2]") + "columns: {event: evt, run: runno, experiment: exp}\n"
    assert np.array_equal(selected(text, tmp_path, "mapped").key, usual.key)
    plain = {k: v for k, v in cols.items() if not k.startswith("__") or "cand" in k}
    save(tmp_path / "signal_2.root", plain)
    without = selected(HEAD + signal(masses="[2]"), tmp_path, "none")
    assert len(np.unique(without.key)) == len(usual)


def test_the_entry_number_identifies_an_event_for_any_chunk_size(tmp_path, save, columns):
    plain = {k: v for k, v in columns(600, seed=3, mass_gev=2.0).items()
             if not k.startswith("__") or "cand" in k}  # fmt: skip
    save(tmp_path / "signal_2.root", plain)
    config = parse(HEAD + signal(masses="[2]"), where="test")
    keys = []
    for size in (7, 600):
        with open_run(tmp_path / f"run{size}") as run:
            how = Execution(executor="iterative", chunk_size=size)
            select_events(run, config, datasets(config, folder=tmp_path), how)
            keys.append(read_table(load_selection(run).parts).key)
    assert np.array_equal(*keys)


def test_a_sample_may_have_its_own_names_tree_and_beams(tmp_path, save, columns):
    cols = columns(800, seed=3, mass_gev=2.0)
    save(tmp_path / "signal_2.root", cols)
    other = columns(800, seed=4)
    other["p1x"] = other.pop("mu_plus_px")
    save(tmp_path / "other.root", other, tree="theirs")
    text = HEAD + signal(masses="[2]")
    text += "  other: {kind: background, files: other.root, weight: weight, tree: theirs, "
    text += "columns: {mu_plus_px: p1x}, beams: {electron_energy_gev: 7.01}}\n"
    table = selected(text, tmp_path)
    theirs = table.axis[table.sample == 1]
    columns_ = {**other, "mu_plus_px": other["p1x"]}
    expected = event_kinematics(columns_, Beams(electron_energy_gev=7.01)).axis
    assert np.isin(theirs, expected).all()
    assert not np.isin(theirs, event_kinematics(columns_, SUPERKEKB).axis).any()


def test_a_file_without_a_tree_says_what_it_holds(tmp_path):
    with uproot.recreate(tmp_path / "signal_2.root") as file:
        file["mass"] = np.histogram([1.0, 2.0])
    config = parse(HEAD + signal(masses="[2]"), where="test")
    sets = datasets(config, folder=tmp_path)
    (problem,) = find_problems(sets, inspect_all(config, sets, workers=1))
    assert problem.text == "has no TTree or RNTuple; it holds a TH1D 'mass'"


def test_the_same_columns_are_the_same_events_in_a_tree_an_rntuple_and_parquet(
    tmp_path, save, columns
):
    cols = columns(300, mass_gev=2.0)
    tables = []
    for kind in ("root", "rntuple.root", "parquet"):
        folder = tmp_path / kind
        folder.mkdir()
        name = f"signal_2.{kind}"
        if kind == "root":
            save(folder / name, cols)
        elif kind == "parquet":
            pq.write_table(pa.table(cols), folder / name, row_group_size=70)
        else:
            with uproot.recreate(folder / name) as file:
                file.mkrntuple("events", cols)
        tables.append(selected(HEAD + signal(files=name, masses="[2]"), folder))
    assert 0 < len(tables[0]) < 300
    for other in tables[1:]:
        for f in fields(other):
            assert np.array_equal(getattr(other, f.name), getattr(tables[0], f.name)), f.name


def test_problems_are_told_once_for_all_files_that_have_them(tmp_path, save, columns):
    for mass in range(1, 7):
        cols = columns(100, seed=mass, mass_gev=float(mass))
        del cols["extra_energy"]
        save(tmp_path / f"signal_{mass}.root", cols)
    text = HEAD + signal(masses="[1, 2, 3, 4, 5, 6]")
    with pytest.raises(CheckError) as caught:
        selected(text, tmp_path)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "signal/1, signal/2, … (6 data sets): 6 files, the first " in lines[1]
