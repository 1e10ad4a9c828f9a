"""Bad input, as a person meets it: the command, the message, the exit code, and nothing harmed.

Each case starts from good inputs and a finished run, does one thing wrong, and calls `punzi`. The
message must say what was found and where; there is never a traceback; files that were there before
and are not the mistake itself keep their bytes.
"""

import errno
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import uproot

from analysis.cli import main


def punzi(monkeypatch, capsys, folder, *words):
    """Exit code and output of one command, run inside `folder`."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["punzi", *map(str, words)])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    captured = capsys.readouterr()
    return code, re.sub(r"\s+", " ", captured.out + captured.err)


QUICK = [
    "--set=training.bce.epochs=2",
    "--set=training.punzi.epochs=3",
    "--set=training.punzi.refine=2",
    "--set=training.folds=2",
    "--set=training.bce_equal_budget=false",
    "--set=windows.min_events=50",
    "--workers=1",
]


@pytest.fixture(scope="module")
def finished(small_inputs, tmp_path_factory):
    """Inputs with a finished run beside them."""
    folder = tmp_path_factory.mktemp("finished") / "work"
    shutil.copytree(small_inputs, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["punzi", "evaluate", "-r", "good", *QUICK])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 0
    return folder


@pytest.fixture
def work(finished, tmp_path):
    """A private copy of the finished folder."""
    folder = tmp_path / "work"
    shutil.copytree(finished, folder)
    return folder


def edit(old, new):
    def change(folder):
        path = folder / "datasets.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def rewrite(name, change, **options):
    """Write an ntuple again with one thing changed."""

    def apply(folder):
        path = folder / name
        with uproot.open({path: "variables"}) as tree:
            columns = tree.arrays(library="np")
        change(columns)
        with uproot.recreate(path) as file:
            tree = options.get("tree", "variables")
            file.mktree(tree, {k: v.dtype for k, v in columns.items()}).extend(columns)

    return apply


def overwrite(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def shorten(name, share=0.5):
    def change(folder):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])

    return change


def set_column(name, value, rows=slice(None)):
    def change(columns):
        columns[name] = columns[name].copy()
        columns[name][rows] = value

    return change


MODEL = "runs/good/models/net-00.safetensors"
APPLY = ["apply", MODEL, "background_0.root", "-o", "scored"]
SELECT = ["select", "-r", "good", *QUICK[-2:]]
TRAIN = ["train", "-r", "good", *QUICK]

CASES = {
    # configuration
    "no configuration": (None, ["check", "-c", "no.yaml"], 1, "no configuration file no.yaml"),
    "configuration is a folder": (
        lambda f: (f / "dir.yaml").mkdir(),
        ["check", "-c", "dir.yaml"],
        1,
        "cannot read the configuration",
    ),
    "misspelt key": (edit("n_generated", "n_gen"), SELECT, 1, "did you mean 'n_generated'"),
    "wrong type": (edit("1200", "many"), SELECT, 1, "line 7: .*valid integer"),
    "mass out of reach": (edit("4, 5]", "4, 55]"), SELECT, 1, "55 GeV is out of range"),
    "no normalisation": (edit("    weight: weight\n", ""), SELECT, 1, "neither is given"),
    "sample twice": (edit("  background:", "  signal:"), SELECT, 1, "'signal' is given twice"),
    "binary configuration": (
        overwrite("datasets.yaml", bytes(range(256))),
        SELECT,
        1,
        "cannot read the configuration",
    ),
    "code in the configuration": (
        overwrite("datasets.yaml", b"!!python/object/apply:os.system ['touch hacked']"),
        SELECT,
        1,
        "is not valid YAML",
    ),
    "no background": (
        edit("  background:\n    kind: background\n    files: background_*.root\n    weight: weight\n", ""),
        TRAIN,
        1,
        "no background sample",
    ),
    "check finds a missing file": (
        lambda f: (f / "signal_3.root").unlink(), ["check"], 1, r"1 problems.*signal/3.*no such file",
    ),
    # command line
    "unknown command": (None, ["selct"], 2, "Did you mean 'select'"),
    "unknown option": (None, ["select", "--wrokers", "2"], 2, "No such option"),
    "bad number": (None, ["select", "--workers", "two"], 2, "Invalid value for '--workers'"),
    "bad setting": (None, ["select", "--set", "windows.nsigma=3"], 1, "did you mean 'n_sigma'"),
    "setting without value": (None, ["select", "--set", "windows"], 1, "must read section.key=value"),
    "run outside": (None, ["select", "-r", "../../away"], 1, "a run cannot be called"),
    "unknown executor": (None, ["select", "--executor", "slrum"], 2, "Invalid value for '--executor'"),
    "no scheduler": (
        None,
        ["select", "-r", "new", "--executor", "dask", "--cluster", "no.yaml"],
        1,
        "cannot read the cluster description",
    ),
    # ntuples
    "missing file": (lambda f: (f / "signal_3.root").unlink(), SELECT, 1, "signal_3.root no such file"),
    "empty file": (overwrite("signal_3.root", b""), SELECT, 1, "is empty"),
    "not ROOT": (overwrite("signal_3.root", b"hello world, no ROOT"), SELECT, 1, "is not a ROOT file"),
    "truncated": (shorten("signal_3.root"), SELECT, 1, "is truncated"),
    "truncated head": (shorten("signal_3.root", 0.0005), SELECT, 1, "signal_3.root"),
    "glob without match": (edit("background_*", "bkg_*"), SELECT, 1, "no file matches this pattern"),
    "wrong tree": (
        lambda f: (edit("luminosity_inv_fb: 50", "luminosity_inv_fb: 50\ntree: ntuple")(f)),
        SELECT,
        1,
        "has no tree 'ntuple'",
    ),
    "missing branch": (
        rewrite("signal_3.root", lambda c: c.pop("extra_energy")),
        SELECT,
        1,
        "has no branch 'extra_energy'",
    ),
    "no weights": (
        edit("weight: weight", "weight: wieght"),
        SELECT,
        1,
        r"has no branch 'wieght' \(nearest: weight",
    ),
    "zero entries": (
        rewrite("signal_3.root", lambda c: c.update({k: v[:0] for k, v in c.items()})),
        SELECT,
        1,
        "has zero entries",
    ),
    "all momenta NaN": (
        rewrite("signal_3.root", set_column("mu_plus_pz", np.nan)),
        SELECT,
        1,
        "100.0% of the first 1000 rows have NaN momenta",
    ),
    "weight NaN": (
        rewrite("background_1.root", set_column("weight", np.nan, slice(5, 7))),
        SELECT,
        1,
        "background_1.root the weight of 2 of the first 4000 rows is not a number",
    ),
    "weight NaN, late": (
        rewrite("background_1.root", set_column("weight", np.nan, slice(5000, 5002))),
        SELECT,
        1,
        "background_1.root rows 0-12345",
    ),
    "other n_generated": (
        edit("n_generated: 1200", "n_generated: 1000"),
        SELECT,
        1,
        "n_generated is 1000 in the configuration, 1200 in the files",
    ),
    "events twice": (
        lambda f: shutil.copy(f / "background_0.root", f / "background_2.root"),
        SELECT,
        1,
        "background_2.root has the same content as .*background_0.root \\[same_file\\]",
    ),
    "mass without events": (
        rewrite("signal_3.root", set_column("extra_energy", 9.0)),
        TRAIN,
        1,
        "signal/3: cut extra_energy removes all .* events: values 9 to 9 \\[empty_cut\\]",
    ),
    "no signal left": (
        None,
        [*TRAIN, "--set=cuts.pt_mumu=pt_mumu > 5.2"],
        1,
        r"cut pt_mumu removes all .* events: values .* \[empty_cut\]",
    ),
    "no background left": (
        rewrite("background_0.root", set_column("extra_energy", 9.0)),
        [*TRAIN, "--set=cuts.muon_id=min(mu_plus_id, mu_minus_id) > 2"],
        1,
        r"signal/1: cut muon_id removes all 1000 events: values 1 to 1 \[empty_cut\]; likewise",
    ),
    # models
    "no model": (None, ["apply", "no.safetensors", *APPLY[2:]], 1, "no.safetensors"),
    "model is text": (overwrite(MODEL, b"weights = 3"), APPLY, 1, "net-00.safetensors"),
    "model is empty": (overwrite(MODEL, b""), APPLY, 1, "net-00.safetensors"),
    "model truncated": (shorten(MODEL), APPLY, 1, "net-00.safetensors"),
    "model is a pickle": (
        overwrite(MODEL, b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00cos\nsystem\n"),
        APPLY,
        1,
        "net-00.safetensors",
    ),
    "header of absurd size": (overwrite(MODEL, b"\xff" * 8 + b"{}"), APPLY, 1, "net-00.safetensors"),
    "apply to a missing file": (None, [*APPLY[:2], "no.root", "-o", "s"], 1, "no such file"),
    "apply to a truncated file": (shorten("background_0.root"), APPLY, 1, "is truncated"),
    "export over a file": (
        overwrite("net.onnx", b"precious"),
        ["export", MODEL, "-o", "net.onnx"],
        1,
        "net.onnx",
    ),
    # skims and results of an earlier stage
    "damaged shard": (
        lambda f: [p.write_bytes(b"PAR1") for p in sorted((f / "runs/good/skim").rglob("*.parquet"))[:1]],
        TRAIN,
        1,
        "delete it and run select again",
    ),
    "damaged index": (
        overwrite("runs/good/skim/index.json", b"{"),
        TRAIN,
        1,
        "run `punzi select",
    ),
}  # fmt: skip


def snapshot(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in {".txt", ".lock"}
    }


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_a_clear_error_and_harms_nothing(name, work, monkeypatch, capsys):
    mistake, words, code, message = CASES[name]
    if mistake:
        mistake(work)
    before = snapshot(work)
    found, text = punzi(monkeypatch, capsys, work, *words)
    assert found == code, text
    assert re.search(message, text), text
    assert "Traceback" not in text
    assert "internal error" not in text
    assert not (work / "hacked").exists()
    if code:
        after = snapshot(work)
        kept = {p for p in before if "models" in p.parts or p.parts[0] != "runs"}
        assert {p: after[p] for p in kept} == {p: before[p] for p in kept}
        assert not [p for p in after if ".tmp" in p.name or p.name.endswith(".part")]


def test_a_good_check_ends_with_zero(work, monkeypatch, capsys):
    code, text = punzi(monkeypatch, capsys, work, "check")
    assert code == 0
    assert "7 files" in text


def test_an_interrupt_ends_with_one_line_that_says_how_to_resume(work):
    command = [sys.executable, "-m", "analysis.cli", "train", "-r", "long", *QUICK[1:]]
    command.append("--set=training.bce.epochs=100000")
    lines = []
    with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            lines.append(line)
            if line.startswith("train:"):
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    text = "".join(lines)
    assert "resume with: punzi train -r long" in text.replace("\n", " ")
    assert "Traceback" not in text
    assert not list((work / "runs/long").rglob("*.tmp*"))


def test_a_read_only_run_folder_is_said(work, monkeypatch, capsys):
    """The error a read-only disk gives; a real one cannot be had where tests run as root."""

    def refuse(*_args, **_kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("analysis.run.folder.Path.mkdir", refuse)
    before = snapshot(work)
    code, text = punzi(monkeypatch, capsys, work, "select", "-r", "good")
    assert code == 1
    assert "cannot write to the run folder runs/good: Read-only file system" in text
    assert snapshot(work) == before


def test_a_full_disk_is_said_and_old_results_stay(work, monkeypatch, capsys):
    """ENOSPC at the moment of writing the first new shard."""

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device", "shard")

    monkeypatch.setattr("analysis.run.folder.Path.replace", full)
    before = snapshot(work)
    code, text = punzi(
        monkeypatch, capsys, work, "select", "-r", "good", "--set=cuts.pt_mumu=pt_mumu > 2"
    )
    assert code == 1
    assert "No space left on device" in text
    after = snapshot(work)
    assert {k: v for k, v in after.items() if k in before} == before
    assert not [p for p in after if ".tmp" in p.name]
