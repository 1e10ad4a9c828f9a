"""What must hold whatever happens around a run: a full disk, Ctrl-C, a second run, odd names.

A disk is full here when a file may not grow beyond a size (RLIMIT_FSIZE): the kernel then refuses
the write in the middle of a file, wherever the program has got to.
"""

import contextlib
import os
import re
import resource
import subprocess
import sys

import pytest
import uproot

from analysis.cli import main
from analysis.run.folder import open_run

QUICK = [
    "--networks=2",
    "--set=training.bce.epochs=2",
    "--set=training.punzi.epochs=3",
    "--set=training.punzi.refine=2",
    "--set=training.folds=2",
    "--set=training.bce_equal_budget=false",
    "--set=windows.min_events=50",
]


@pytest.fixture
def punzi(monkeypatch, capsys):
    """Exit code and output of one command, run inside a folder."""

    def command(folder, *words):
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["punzi", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        text = re.sub(r"\s+", " ", captured.out + captured.err)
        assert "Traceback" not in text
        assert "internal error" not in text
        return stop.value.code, text

    return command


def content(folder):
    """Bytes of every file below a folder, without the log, the lock and the ROOT file, which
    carries the time of writing."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {"log.txt", ".lock", "histograms.root"}
    }


def test_the_chain_ends_with_the_same_bytes_for_one_and_two_workers(own_inputs, punzi):
    """Skim, windows, networks and figures of merit; test_select has chunks and executors."""
    for workers in (1, 2):
        how = ["-r", f"with-{workers}", f"--workers={workers}"]
        assert punzi(own_inputs, "evaluate", *QUICK, *how)[0] == 0
    one, two = (content(own_inputs / "runs" / f"with-{workers}") for workers in (1, 2))
    assert {"fom.csv", "windows.json", "models/net-01.safetensors"} <= one.keys()
    assert two == one


@contextlib.contextmanager
def disk_full_beyond(n_bytes):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_fills_up_at_any_stage_is_said_and_costs_nothing(own_inputs, punzi):
    runs = own_inputs / "runs"
    evaluate = ["evaluate", *QUICK, "--workers=1"]
    assert punzi(own_inputs, *evaluate, "-r", "good")[0] == 0
    good = content(runs / "good")
    said = set()
    for begun in (False, True):  # from nothing; from a finished selection
        if begun:
            assert punzi(own_inputs, "select", "-r", "full", *QUICK[-1:], "--workers=1")[0] == 0
        for n_bytes in (0, 500, 1500, 2500, 4000, 6000, 12_000, 20_000):
            with disk_full_beyond(n_bytes):
                code, text = punzi(own_inputs, *evaluate, "-r", "full")
            assert code == 1
            said |= set(re.findall(r"cannot write (\S+).*File too large", text))
            assert not list(runs.rglob("*.tmp*"))
    assert len(said) >= 4  # the configuration, the skim, the windows, the results ...
    assert punzi(own_inputs, *evaluate, "-r", "full")[0] == 0
    assert content(runs / "full") == good == content(runs / "good")


def test_a_loss_of_events_cannot_be_accepted_because_of_a_full_disk(own_inputs, punzi):
    with disk_full_beyond(20_000):  # room for the configuration, not for a shard
        code, text = punzi(own_inputs, "select", "-r", "full", "--allow-lost", "--workers=1")
    assert code == 1
    assert "make room and run again" in text


def test_a_second_command_on_a_busy_run_is_refused_and_changes_nothing(own_inputs, punzi):
    with open_run(own_inputs / "runs/busy"):
        (own_inputs / "runs/busy/.half-written.tmp").touch()
        before = content(own_inputs)
        for command in ("select", "evaluate", "run", "report"):
            code, text = punzi(own_inputs, command, "-r", "busy")
            assert code == 1
            assert "another punzi is at work in runs/busy" in text
        assert content(own_inputs) == before


@pytest.mark.parametrize("name", ["../away", "..", "a/b", "/usr", ".hidden", "x" * 300, "a\0b"])
def test_no_command_leaves_the_folder_of_the_runs(own_inputs, punzi, name):
    """Opening a run removes half-written files, whose names begin with a dot, from its folder."""
    work = own_inputs / "work"
    work.mkdir()
    (own_inputs / ".precious").touch()
    before = content(own_inputs)
    for command in ("select", "run", "confirm", "batches"):
        code, text = punzi(work, command, "-c", "../datasets.yaml", "-r", name)
        assert code == 1
        assert "a run cannot be called" in text
    assert content(own_inputs) == before


@pytest.mark.parametrize("option", [[], ["--skim"]])
def test_names_inside_an_ntuple_write_nothing_outside_the_output(
    tmp_path, columns, saved_model, punzi, option
):
    work = tmp_path / "a/b/work"
    work.mkdir(parents=True)
    cols = columns(100, mass_gev=2.0)
    cols["../../../escaped"] = cols["weight"]
    with uproot.recreate(work / "in.root") as file:
        file.mktree("tree", {k: v.dtype for k, v in cols.items()}).extend(cols)
    data = (work / "in.root").read_bytes()
    (work / "in.root").write_bytes(data.replace(b"\x04tree", b"\x04../t"))
    before = content(tmp_path)
    code, text = punzi(work, "apply", saved_model, "in.root", "-o", "out", *option)
    after = content(tmp_path)
    assert {name: after[name] for name in before} == before
    assert all(name.startswith("a/b/work/out/") for name in after.keys() - before.keys())
    assert code in (0, 1)
    assert code == 0 or "in.root" in text


def test_names_that_are_not_utf8_are_shown_and_not_fatal(own_inputs, columns, save):
    """A real terminal is strict about what it prints; the test's own is not."""
    cols = columns(100, run=7)
    del cols["weight"]
    save(own_inputs / "new.root", cols).rename(own_inputs / os.fsdecode(b"background_\xff.root"))
    done = subprocess.run(
        [sys.executable, "-m", "analysis.cli", "check", "--workers=1"],
        cwd=own_inputs,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict", "COLUMNS": "200"},
    )
    assert done.returncode == 1, done.stderr
    assert "background_\\udcff.root" in done.stdout
    assert "has no branch 'weight'" in done.stdout
