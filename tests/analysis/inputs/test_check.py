"""`punzi check` names every problem of every file, and reads almost nothing to find it."""

import re

import numpy as np
import pytest
import uproot

from analysis.config.configuration import load, parse
from analysis.inputs.check import find_problems, inspect_all, wanted_branches
from analysis.inputs.columns import Wanted
from analysis.inputs.datasets import datasets
from analysis.inputs.file_report import inspect_file
from analysis.inputs.tables import open_file


def problems_of(folder, changes=()):
    config = load(folder / "datasets.yaml", changes)
    sets = datasets(config, folder=folder)
    reports = inspect_all(config, sets, workers=2)
    return [
        f"{p.dataset}: {p.file.rsplit('/', 1)[-1]} {p.text}" for p in find_problems(sets, reports)
    ]


def cut_short(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def without(name):
    def change(path, columns, save):
        del columns[name]
        save(path, columns)

    return change


def renamed(old, new):
    def change(path, columns, save):
        columns[new] = columns.pop(old)
        save(path, columns)

    return change


def with_nan(path, columns, save):
    columns["mu_plus_px"][:700] = np.nan
    save(path, columns)


DAMAGE = [
    (lambda path, *_: path.unlink(), "no such file"),
    (lambda path, *_: path.write_bytes(b""), r"is empty \(0 bytes\)"),
    (lambda path, *_: path.write_bytes(b"PK" * 50), r"is not a ROOT file \(begins with b'PKPK'\)"),
    (lambda path, *_: cut_short(path), r"is truncated: \d+ bytes of \d+"),
    (lambda path, *_: (path.unlink(), path.mkdir()), "is a folder"),
    (lambda path, columns, save: save(path, {k: v[:0] for k, v in columns.items()}), "zero entries"),
    (without("mu_plus_px"), r"has no branch 'mu_plus_px' \(nearest: mu_plus_p[yz], mu_plus_p[yz], "),
    (renamed("extra_energy", "extraEnergy"), r"no branch 'extra_energy' \(nearest: extraEnergy"),
    (with_nan, r"70\.0% of the first 1000 rows have NaN momenta"),
    (lambda path, columns, save: save(path, columns, metadata={"n_generated": 999}),
     "n_generated is 1200 in the configuration, 999 in the files"),
]  # fmt: skip


def test_a_weight_that_is_no_number_is_named(own_inputs, columns, save):
    found = columns(1000)
    found["weight"][::5] = np.nan
    save(own_inputs / "background_0.root", found)
    problems = problems_of(own_inputs)
    assert "the weight of 200 of the first 1000 rows is not a number" in " ".join(problems)


@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_each_damage_is_named(own_inputs, columns, save, damage, message):
    assert problems_of(own_inputs) == []
    damage(own_inputs / "signal_2.root", columns(1000, mass_gev=2.0), save)
    found = problems_of(own_inputs)
    assert len(found) == 1
    assert found[0].startswith("signal/2: ")
    assert re.search(message, found[0])


def test_all_problems_come_in_one_list(own_inputs, columns, save):
    (own_inputs / "signal_1.root").unlink()
    cut_short(own_inputs / "signal_3.root")
    save(own_inputs / "background_1.root", columns(10), tree="other")
    assert len(problems_of(own_inputs, ["preset=default"])) == 2  # `other` is found by itself
    text = (own_inputs / "datasets.yaml").read_text()
    (own_inputs / "datasets.yaml").write_text("tree: variables\n" + text)
    found = problems_of(own_inputs)
    assert len(found) == 3
    assert "has no tree 'variables' (found: other)" in found[-1]


def test_two_trees_must_be_told_apart(tmp_path, columns, save):
    path = save(tmp_path / "two.root", columns(10))
    with uproot.update(path) as file:
        file.mktree("again", {"x": np.float32}).extend({"x": np.ones(3, np.float32)})
    report = inspect_file(str(path), Wanted(None, {}, {}))
    assert "has 2 tables ['variables', 'again']; name the right one" in report.problems[0]
    assert inspect_file(str(path), Wanted("again", {}, {})).n_entries == 3


def test_text_and_array_branches_are_of_the_wrong_type(tmp_path):
    with uproot.recreate(tmp_path / "odd.root") as file:
        file.mktree("t", {"a": "string", "b": ("f4", (3,))}).extend(
            {"a": ["x", "y"], "b": np.ones((2, 3), np.float32)}
        )
    report = inspect_file(str(tmp_path / "odd.root"), Wanted("t", {"a": "a", "b": "b"}, {}))
    assert len(report.problems) == 2
    assert all("expected one number" in text for text in report.problems)


def test_basf2_expressions_and_recorded_events_are_found(tmp_path, columns):
    cols = columns(50)
    cols["daughter__bo0__cm__sppx__bc"] = cols.pop("mu_plus_px")
    path = tmp_path / "basf2.root"
    with uproot.recreate(path) as file:
        file.mktree("tree", {k: v.dtype for k, v in cols.items()}).extend(cols)
        file.mktree("persistent", {"m_mcEvents": np.uint32}).extend({"m_mcEvents": [np.uint32(77)]})
    text = (
        "luminosity_inv_fb: 1\ncolumns: {mu_plus_px: 'daughter(0, px)'}\nsamples:\n  signal:\n"
        "    {kind: signal, files: basf2.root, masses_gev: [1], n_generated: 77}"
    )
    config = parse(text, where="y")
    (ds,) = datasets(config, folder=tmp_path)
    report = inspect_file(str(path), wanted_branches(config, ds))
    assert report.problems == ()
    assert report.branches["mu_plus_px"] == "daughter__bo0__cm__sppx__bc"
    assert report.recorded == {"n_generated": 77}


def test_inspection_reads_a_small_part_of_a_large_file(tmp_path, columns, save):
    path = save(tmp_path / "large.root", columns(200_000))
    config = parse(
        "luminosity_inv_fb: 1\nsamples:\n  signal:\n"
        "    {kind: signal, files: large.root, masses_gev: [1], n_generated: 1}",
        where="y",
    )
    (ds,) = datasets(config, folder=tmp_path)
    wanted = wanted_branches(config, ds)
    with open_file(str(path)) as file:
        from analysis.inputs.file_report import _inspect_open

        _inspect_open(file, str(path), 0, wanted, None)
        assert 0 < file.opened.file.source.num_requested_bytes < 0.02 * path.stat().st_size
