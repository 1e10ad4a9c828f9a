"""`punzi status` walks the chain of `punzi run`: it names the work that a run would do, and does none."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from analysis.cli import main
from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import RunFolder
from analysis.status import STAGES, run_status
from analysis.workflow import chain
from tests.analysis.conftest import QUICK

ONE_BY_ONE = Execution(executor="iterative")


def seen(folder):
    return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(folder.rglob("*"))}


def status_of(evaluated, *changes, config_path=None, path=None):
    """State and reasons by stage, with settings changed; nothing at all is written."""
    run, _, _, _ = evaluated
    folder = run.path.parent
    config = load(config_path or folder / "datasets.yaml", (*QUICK, *changes))
    sets = datasets(config, folder=folder)
    before = seen(folder)
    found = run_status((RunFolder(path or run.path, only_look=True), config, sets), ONE_BY_ONE)
    assert seen(folder) == before
    assert [s.stage for s in found] == list(STAGES)
    return {s.stage: (s.state, s.why) for s in found}


UP_TO_DATE = ("up to date", ())


def up_to_date(found, last):
    return all(found[stage] == UP_TO_DATE for stage in STAGES[: STAGES.index(last) + 1])


def test_what_was_done_is_up_to_date_to_the_last_stage(evaluated, drawn):
    found = status_of(evaluated)
    assert up_to_date(found, "plot")


@pytest.mark.parametrize(
    ("change", "stage", "why"),
    [
        ("windows.n_sigma=3", "windows", "windows.n_sigma was 2.0, is 3.0"),
        ("training.punzi.epochs=151", "train", "training.stages.1.epochs was 150, is 151"),
        ("evaluation.single_cut=0.3", "evaluate", "evaluation.single_cut was 0.5, is 0.3"),
        ("limit.level=0.95", "limit", "limit.level was 0.9, is 0.95"),
        ("plots.experiment=Belle", "plot", 'plots.experiment was "Belle II", is "Belle"'),
    ],
)
def test_a_changed_setting_makes_its_stage_out_of_date_by_name(
    evaluated, drawn, change, stage, why
):
    found = status_of(evaluated, change)
    state, reasons = found[stage]
    assert state == "out of date"
    assert why in reasons
    before, after = STAGES[: STAGES.index(stage)], STAGES[STAGES.index(stage) + 1 :]
    assert all(found[earlier] == UP_TO_DATE for earlier in before)
    assert all(found[later][0] in ("follows", "not done") for later in after)
    assert all(stage in found[later][1][0] for later in after)


def test_one_more_network_is_counted_and_the_others_are_kept(evaluated):
    state, why = status_of(evaluated, "training.networks=3")["train"]
    assert state == "out of date"
    assert why[0] == "2 to train: train-02.0, train-02.1"  # one in each of two folds


def test_a_changed_sample_is_named(evaluated, tmp_path):
    text = (evaluated[0].path.parent / "datasets.yaml").read_text()
    edited = tmp_path / "edited.yaml"
    edited.write_text(text.replace("n_generated: 1200", "n_generated: 1201"))
    found = status_of(evaluated, config_path=edited)
    assert found["select"][0] == "refused"  # the files say 1200
    edited.write_text(text.replace("inv_fb: 25", "inv_fb: 26"))
    found = status_of(evaluated, config_path=edited)
    assert found["select"][0] == "out of date"
    assert "samples.recorded.luminosity_inv_fb was 25.0, is 26.0" in found["select"][1]


def test_nothing_is_done_in_a_run_that_is_not_there(evaluated, tmp_path):
    found = status_of(evaluated, path=tmp_path / "none")
    assert {state for state, _ in found.values()} == {"not done"}
    assert not (tmp_path / "none").exists()


def test_the_stage_that_is_named_is_the_one_that_a_run_does(evaluated, drawn, tmp_path):
    """The law of the whole: work, and the next look finds that stage current."""
    run, _, _, _ = evaluated
    copy = RunFolder(tmp_path / "run")
    shutil.copytree(run.path, copy.path)
    (copy.path / "limit.csv").unlink()
    config_path = run.path.parent / "datasets.yaml"
    config = load(config_path, QUICK)
    sets = datasets(config, folder=config_path.parent)
    found = status_of(evaluated, path=copy.path)
    assert up_to_date(found, "evaluate")
    assert found["limit"] == ("out of date", ("limit.csv is missing",))
    next(stage for stage, _ in chain((copy, config, sets), ONE_BY_ONE) if stage == "limit")
    assert up_to_date(status_of(evaluated, path=copy.path), "limit")
    assert (copy.path / "limit.csv").read_bytes() == run.limits_csv.read_bytes()


def test_the_report_is_written_once_and_again_when_a_figure_changed(evaluated, drawn, tmp_path):
    from analysis.report.stage import write_report

    run, config, sets, _ = evaluated
    copy = RunFolder(tmp_path / "run")
    shutil.copytree(run.path, copy.path)
    write_report(copy, config, sets)
    first = copy.report.stat().st_mtime_ns
    write_report(copy, config, sets)
    assert copy.report.stat().st_mtime_ns == first
    other = next(path for path in drawn if path != drawn[0])
    shutil.copy(other, copy.plots / drawn[0].name)
    write_report(copy, config, sets)
    assert copy.report.stat().st_mtime_ns > first


def punzi(monkeypatch, folder, *words):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["punzi", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_status_and_dry_run_at_the_terminal_say_the_same_and_write_nothing(
    own_inputs, monkeypatch, capsys
):
    assert punzi(monkeypatch, own_inputs, "status", "-r", "new", "--json", "--workers=1") == 0
    found = json.loads(capsys.readouterr().out)
    assert [s["stage"] for s in found] == list(STAGES)
    assert {s["state"] for s in found} == {"not done"}
    assert punzi(monkeypatch, own_inputs, "run", "-r", "new", "--dry-run", "--workers=1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(STAGES)
    assert all("would be done" in line for line in lines)
    assert not Path("runs").exists()


def test_a_run_that_was_never_begun_is_told_with_the_nearest_that_was(
    own_inputs, monkeypatch, capsys
):
    (own_inputs / "runs/demo").mkdir(parents=True)
    assert (
        punzi(monkeypatch, own_inputs, "status", "-r", "dmo", "--json") == 0
    )  # asked before the first job
    out, err = capsys.readouterr()
    assert "no run dmo in runs/ yet (nearest: demo)" in " ".join(err.split())
    assert {s["state"] for s in json.loads(out)} == {"not done"}
    assert punzi(monkeypatch, own_inputs, "status", "-r", "demo") == 0
    assert "no run" not in capsys.readouterr().err


def test_what_a_run_would_refuse_is_told_by_status_and_refused_by_a_dry_run(
    own_inputs, monkeypatch, capsys
):
    (own_inputs / "background_1.root").write_bytes(b"")
    assert punzi(monkeypatch, own_inputs, "status", "-r", "new") == 0
    assert "refused" in capsys.readouterr().out.splitlines()[0]
    assert punzi(monkeypatch, own_inputs, "run", "-r", "new", "--dry-run") == 1
    assert "background_1.root" in capsys.readouterr().err
