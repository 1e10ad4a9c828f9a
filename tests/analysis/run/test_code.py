"""Edited code makes its stages out of date; nothing else does, and nobody keeps a list."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.run import code
from analysis.run.code import PACKAGES, ROOT, code_digest, sources

STAGES = (
    *("analysis.select", "analysis.select.events", "analysis.train", "analysis.train.windows"),
    *("analysis.evaluate", "analysis.figures", "analysis.apply"),
)


def names(files):
    return {".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files}


LOADED = """
import importlib, sys
for line in sys.stdin:
    for name in [m for m in sys.modules if m.split(".")[0] in %r]:
        del sys.modules[name]
    for name in line.split():
        importlib.import_module(name)
    print(*sys.modules)
"""


def modules_of(stage):
    root = ROOT.joinpath(*stage.split("."))
    return [f"{stage}.{f.stem}" for f in root.glob("[!_]*.py")] if root.is_dir() else [stage]


def test_all_code_that_a_stage_loads_is_part_of_its_digest():
    """Loaded anew for each stage: what runs and what is hashed are the same files."""
    lines = "\n".join(" ".join(modules_of(stage)) for stage in STAGES)
    command = [sys.executable, "-c", LOADED % (PACKAGES,)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    for stage, loaded in zip(STAGES, done.stdout.splitlines(), strict=True):
        ours = {m for m in loaded.split() if m.split(".")[0] in PACKAGES}
        files = {m for m in ours if not ROOT.joinpath(*m.split(".")).is_dir()}
        hashed = names(sources(stage))
        assert len(files) > 5
        assert {m for m in files if not m.startswith("analysis.terminal")} <= hashed
        assert not {m for m in hashed if m.startswith("analysis.terminal")}


def test_a_stage_does_not_depend_on_what_only_its_types_need():
    """A new sentence about a misspelt key must not train ten networks again."""
    trained_with = names(sources("analysis.train"))
    assert "models.training.kernels" in trained_with
    assert "selection.windows" in trained_with
    assert not {m for m in trained_with if m.startswith(("analysis.config", "analysis.report"))}
    assert "analysis.select.histograms" not in names(sources("analysis.select.events"))


def test_lines_that_import_name_the_modules_of_the_whole_syntax_tree():
    for file in (f for package in PACKAGES for f in (ROOT / package).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        by_tree = code._names(ast.parse(text))
        assert set(filter(code._is_ours, code._imports(text))) == set(
            filter(code._is_ours, by_tree)
        ), file


@pytest.mark.parametrize(
    "text",
    [
        "from analysis.run import (\n    code,  # (its hash)\n    folder,\n)\n",
        "def f():\n    import analysis.run.code as c; return c\n",
        "from analysis.run import code, \\\n    folder\n",
        "if TYPE_CHECKING:\n    from analysis import cli\n\n    import limits\nimport plots\n",
        "if A:\n    if TYPE_CHECKING:\n        import limits\n    import plots\nimport models\n",
        '''"""Prose:\n\nimport of names\n"""\nimport plots\n''',
    ],
)
def test_an_import_is_found_however_it_is_written(text):
    assert code._imports(text) == tuple(code._names(ast.parse(text)))


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Our sources in a folder of their own, to edit."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("*.nb?"))
    monkeypatch.setattr(code, "ROOT", tmp_path)
    code_digest.cache_clear()
    yield tmp_path
    code_digest.cache_clear()


def append(path: Path, text: str):
    path.write_text(path.read_text() + text)
    code_digest.cache_clear()


def test_the_digest_changes_with_any_file_below_and_with_no_other(copied):
    before = {stage: code_digest(stage) for stage in STAGES}
    append(copied / "analysis/terminal/console.py", "\n# other words\n")
    append(copied / "analysis/report/page.py", "\n# another colour\n")
    append(copied / "simulation/signal.py", "\n# another amplitude\n")
    assert {stage: code_digest(stage) for stage in STAGES} == before
    append(copied / "analysis/select/histograms.py", "\nOTHER_BINS = 1\n")
    changed = {stage for stage in STAGES if code_digest(stage) != before[stage]}
    assert changed == {"analysis.select", "analysis.figures", "analysis.apply"}
    append(copied / "selection/windows.py", "\nOTHER = 1\n")
    after = {stage for stage in STAGES if code_digest(stage) != before[stage]}
    assert after >= {"analysis.train", "analysis.evaluate", "analysis.apply"}


def test_an_import_inside_a_function_counts_and_one_for_types_does_not(copied):
    before = code_digest("analysis.train.windows")
    (copied / "selection/new.py").write_text("x = 1\n")
    windows = copied / "analysis/train/windows.py"
    append(windows, "\nif TYPE_CHECKING:\n    from selection.new import x\n")
    with_types = code_digest("analysis.train.windows")
    append(copied / "selection/new.py", "y = 1\n")
    assert code_digest("analysis.train.windows") == with_types != before
    append(windows, "\n\ndef late():\n    from selection import new\n    return new\n")
    late = code_digest("analysis.train.windows")
    append(copied / "selection/new.py", "z = 1\n")
    assert code_digest("analysis.train.windows") != late


def test_a_name_that_is_no_code_of_ours_is_refused():
    with pytest.raises(ValueError, match=r"no code called analysis\.selct"):
        code_digest("analysis.selct")


@pytest.mark.slow
def test_other_bins_in_the_code_make_other_histograms(own_inputs, tmp_path):
    """The whole program from a copy of its sources, edited between two calls."""
    program = tmp_path / "program"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, program / package)
    command = [sys.executable, "-m", "analysis.cli", "select", "-r", "bins", "--workers=1"]
    place = {**os.environ, "PYTHONPATH": str(program)}

    def select():
        done = subprocess.run(
            command, cwd=own_inputs, env=place, capture_output=True, text=True, check=True
        )
        content = json.loads((own_inputs / "runs/bins/histograms.json").read_text())
        return done.stderr, content["background"]["recoil_mass"]["axes"][0]["bins"]

    said, bins = select()
    assert bins == 100
    assert "up to date" in select()[0]
    edited = program / "analysis/select/histograms.py"
    text = edited.read_text()
    assert text.count("Regular(100, 0,") == 1
    edited.write_text(text.replace("Regular(100, 0,", "Regular(50, 0,"))
    said, bins = select()
    assert bins == 50
    assert "0 already done" not in said  # the shards hold events, not histograms: they are kept
