"""Whoever applies a model applies exactly the cut that was quoted."""

import json
import sys

import numpy as np
import pytest
import uproot

from analysis.apply.model import ApplyError, load_cut
from analysis.cli import main
from analysis.evaluate.stage import load_figures
from analysis.run.folder import RunFolder
from models.evaluation.comparison import BCE_SINGLE, PUNZI_SINGLE, of_curve
from models.trained import load_model

QUICK = ["--set=training.bce.epochs=2", "--set=training.punzi.epochs=3", "--networks=2"]
QUICK += ["--set=training.punzi.refine=2"]
QUICK += ["--set=training.folds=2", "--set=training.bce_equal_budget=false"]


def punzi(*words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["punzi", "-q", *words])
        with pytest.raises(SystemExit) as end:
            main()
    return end.value.code


@pytest.fixture(scope="module")
def run(own_inputs_of_module):
    """A run that is evaluated with other cuts, one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(own_inputs_of_module)
        yield RunFolder(own_inputs_of_module / "runs" / "cuts")


@pytest.fixture(scope="module")
def own_inputs_of_module(small_inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuts")
    for file in small_inputs.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def quoted_cuts(run):
    figures = load_figures(run)
    return {
        (f.classifier, f.network): set(f.cut.tolist())
        for curve in (PUNZI_SINGLE, BCE_SINGLE)
        for f in of_curve(figures, curve)
    }


@pytest.mark.parametrize("cut", ["0.5", "optimal", "0.7"])
def test_the_models_carry_the_cut_that_is_quoted(run, cut):
    """Also when the evaluation alone is made again: the networks stay what they are."""
    changed = f"--set=evaluation.single_cut={cut}"
    assert punzi("evaluate", "-r", run.name, "--workers=1", *QUICK, changed) == 0
    quoted = quoted_cuts(run)
    assert len(quoted) == 4
    for name, cuts in quoted.items():
        assert {load_model(run.model(*name)).cut} == cuts
        assert cut == "optimal" or cuts == {float(cut)}
    if cut == "optimal":
        assert len(set().union(*quoted.values())) > 1  # each network has its own
        assert 0.5 not in set().union(*quoted.values())


def test_apply_and_export_pass_what_was_quoted(run, tmp_path):
    changed = "--set=evaluation.single_cut=0.52"
    assert punzi("evaluate", "-r", run.name, "--workers=1", *QUICK, changed) == 0
    model, data = run.model("punzi", 0), run.path.parent.parent / "background_0.root"
    assert punzi("apply", str(model), str(data), "-o", str(tmp_path / "out"), "--workers=1") == 0
    with uproot.open(tmp_path / "out/background_0.friend.root") as file:
        score, passing = (file["punzi"][name].array(library="np") for name in ("score", "pass"))
        assert json.loads(str(file["provenance"]))["cut"] == 0.52
    assert np.array_equal(passing, score.astype(np.float64) >= 0.52)
    onnx = pytest.importorskip("onnx")
    assert punzi("export", str(model), "-o", str(tmp_path / "net.onnx")) == 0
    facts = {p.key: p.value for p in onnx.load(tmp_path / "net.onnx").metadata_props}
    assert facts.get("pass").split() == ["score", ">=", "0.52"]


def test_a_network_that_is_not_evaluated_has_no_cut_to_apply(run, tmp_path, capsys):
    network, data = run.network("punzi", 0, 0), run.path.parent.parent / "background_0.root"
    with pytest.raises(ApplyError, match="has no cut yet: `punzi evaluate` chooses one"):
        load_cut([network], config=None, cut=None)
    assert load_cut([network], config=None, cut=0.3).cut == 0.3
    assert punzi("apply", str(network), str(data), "-o", str(tmp_path / "out")) == 1
    assert punzi("export", str(network), "-o", str(tmp_path / "net.onnx")) == 1
    assert capsys.readouterr().err.count("has no cut yet") == 2
    assert list(tmp_path.iterdir()) == []
