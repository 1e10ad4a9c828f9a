"""What a row counts as, and what the files say against it."""

import math

import numpy as np
import pytest

from analysis.config.configuration import ConfigError, load, parse
from analysis.inputs.check import find_problems, inspect_all
from analysis.inputs.datasets import Dataset, datasets, filled

SAMPLES = """\
luminosity_inv_fb: 50
samples:
  signal:
    {{kind: signal, files: "s_{{mass_mev}}.root", masses_gev: [0.5, 2], n_generated: 4000,
      scale_factors: {{trigger: 0.9, tracking: 0.5}}}}
  taupair: {{kind: background, files: t.root, luminosity_inv_fb: 200, scale_factors: {{id: 0.8}}}}
  eemumu: {{kind: background, files: {files}, weight: weight, scale_factors: {{id: 0.25}}}}
  recorded: {{kind: data, files: d.root, luminosity_inv_fb: 5}}
"""


def by_name(folder, files="e.root"):
    config = parse(SAMPLES.format(files=files), where="here")
    return {ds.name: ds for ds in datasets(config, folder=folder)}


def test_a_row_counts_as_the_head_of_the_module_says(tmp_path):
    sets = by_name(tmp_path)
    assert list(sets) == ["signal/0.5", "signal/2", "taupair", "eemumu", "recorded"]
    counts = {name: ds.constant_weight * ds.scale for name, ds in sets.items()}
    wanted = {
        "signal/0.5": 0.45 / 4000,
        "signal/2": 0.45 / 4000,
        "taupair": 0.8 * 50 / 200,
        "eemumu": 0.25 * 50,
        "recorded": 1.0,
    }
    assert counts == pytest.approx(wanted)
    assert [ds.weight_branch for ds in sets.values()] == [None, None, None, "weight", None]
    assert [ds.kind for ds in sets.values()][1:] == ["signal", "background", "background", "data"]
    assert sets["signal/2"].files == (str(tmp_path / "s_2000.root"),)
    assert math.isnan(sets["taupair"].mass_gev)
    assert sets["signal/2"].mass_gev == 2


@pytest.mark.parametrize(
    ("constant", "factors"),
    [
        (1e300, {"a": 1e10}),  # both are good numbers, their product is none
        (1e-300, {"a": 1e-30}),
        (1.0, {"a": 1e200, "b": 1e200}),
        (1.0, {"a": 0.0}),
        (1.0, {"a": math.nan}),
        (-1.0, {}),
    ],
)
def test_weights_that_are_none_with_their_scale_factors_are_refused(constant, factors):
    with pytest.raises(ConfigError, match="a row of the sample x would count as"):
        Dataset("x", "background", ("f",), constant, scale_factors=factors)
    assert Dataset("x", "background", ("f",), 2.0, scale_factors={"a": 0.5}).scale == 0.5


@pytest.fixture
def parts(tmp_path, columns, save):
    """Four files of a weighted sample, each of which says that it is one part of four."""
    save(tmp_path / "t.root", columns(10))
    save(tmp_path / "d.root", columns(10))
    for mass in (500, 2000):
        save(tmp_path / f"s_{mass}.root", columns(10, mass_gev=mass / 1000))
    for part in range(4):
        save(tmp_path / f"e_{part}.root", columns(10, run=part), metadata={"parts": 4})
    return tmp_path


def problems_of(folder, files):
    (folder / "datasets.yaml").write_text(SAMPLES.format(files=files))
    config = load(folder / "datasets.yaml")
    sets = datasets(config, folder=folder)
    return [(p.dataset, p.text) for p in find_problems(sets, inspect_all(config, sets, workers=1))]


def test_all_parts_of_a_weighted_sample_are_a_whole(parts):
    assert problems_of(parts, "e_*.root") == []


@pytest.mark.parametrize(("lost", "share"), [((2,), "0.75"), ((0, 1, 3), "0.25")])
def test_a_missing_part_of_a_weighted_sample_is_said(parts, lost, share):
    """Weights are events per 1/fb of all parts together: a lost file would be lost background."""
    for part in lost:
        (parts / f"e_{part}.root").unlink()
    ((name, text),) = problems_of(parts, "e_*.root")
    assert name == "eemumu"
    assert text == f"the files are {share} of a whole sample; weights assume all parts"


def test_a_part_too_many_is_said_and_unknown_parts_are_not_guessed(parts, columns, save):
    save(parts / "e_9.root", columns(10, run=9), metadata={"parts": 4})
    ((_, text),) = problems_of(parts, "e_*.root")
    assert "are 1.25 of a whole sample" in text
    save(parts / "e_9.root", columns(10, run=9))  # nothing recorded: nothing to compare
    assert problems_of(parts, "e_*.root") == []


def test_samples_without_weights_may_be_any_part(parts, columns, save):
    save(parts / "t.root", columns(10), metadata={"parts": 4, "luminosity_inv_fb": 200})
    assert problems_of(parts, "e_*.root") == []
    save(parts / "t.root", columns(10), metadata={"luminosity_inv_fb": 150})
    ((name, text),) = problems_of(parts, "e_*.root")
    assert name == "taupair"
    assert text == "luminosity_inv_fb is 200 in the configuration, 150 in the files"


def test_names_of_files_are_filled_with_mass_and_part():
    assert (
        filled("a_{mass}_{mass_mev}_{part}.root", mass_gev=0.15, part=7) == "a_0.15_150_0007.root"
    )
    assert filled("{mass}_{part}", mass_gev=None, part=0) == "{mass}_0000"
    assert filled("{other}_{mass_mev}", mass_gev=1.0001, part=0) == "{other}_1000"


def test_files_are_sorted_and_named_once(parts):
    sets = by_name(parts, files="e_*.root")
    assert [f[-8:] for f in sets["eemumu"].files] == [f"e_{i}.root" for i in range(4)]
    with pytest.raises(ConfigError, match=r"e_1\.root is listed twice"):
        by_name(parts, files='["e_*.root", e_1.root]')
    assert np.all([f.startswith(str(parts)) for f in sets["eemumu"].files])
