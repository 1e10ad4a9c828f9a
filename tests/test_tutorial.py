"""A newcomer types every command of README, tutorial and apply.md, in order, and finds the files.

The same samples, files and settings, but fewer masses and events and shorter trainings: `small` is
the only difference to what the pages say, beside one worker instead of all cores.
"""

import glob
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from analysis.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/tutorial.md", "docs/apply.md")
STANDS_FOR = {  # words of the README's table
    "NAME": "demo",
    "MODEL": "runs/demo/models/net-00.safetensors",
    "FILE…": "new_0.root",
    "OUT": "out",
}
BLOCK = re.compile(
    r"(?:`(?P<file>[\w.-]+)`:\n\n)?```(?P<kind>sh|python|yaml)\n(?P<text>.*?)```"
    r"|^\|[^\n]*?\| `(?P<row>punzi [^\n]*?) \|",
    re.DOTALL | re.MULTILINE,
)


def small(text):
    """A configuration for seconds instead of minutes."""
    config = yaml.safe_load(text)
    for sample in config["samples"].values():
        if sample["kind"] == "signal":
            sample["n_generated"] = 1200
            if isinstance(sample["masses_gev"], dict):
                sample["masses_gev"] = {"first": 1.0, "last": 6.0, "step": 0.5}
        elif sample["kind"] == "data":
            if "simulate" in sample:
                sample["luminosity_inv_fb"] = 0.2
        else:
            sample["simulate"]["n_generated"] = 20_000
            sample["simulate"].pop("max_rows", None)
    training = config.setdefault("settings", {}).setdefault("training", {})
    training |= {"bce": {"epochs": 30}, "punzi": {"epochs": 100, "refine": 20}, "folds": 2}
    config["luminosity_inv_fb"] = (
        5  # few rows stand for many events, and limits sum over all counts
    )
    config["settings"]["plots"] = {"formats": [], "dpi": 60}
    return yaml.safe_dump(config)


def steps(page):
    """(kind, file, text) of what a page tells to type, run or save, in its order."""
    for found in BLOCK.finditer((ROOT / page).read_text()):
        if found["row"]:
            for command in re.findall(r"`(punzi [^`]+)`", f"`{found['row']}"):
                yield "sh", None, " ".join(STANDS_FOR.get(w, w) for w in command.split())
        else:
            yield found["kind"], found["file"], found["text"]


def type_in(line, monkeypatch):
    """One line of a shell; `make` is the subject of another test."""
    words = [name for w in shlex.split(line, comments=True) for name in sorted(glob.glob(w)) or [w]]  # noqa: PTH207
    if words[:1] == ["punzi"]:
        one_worker = [] if words[1] == "export" else ["--workers=1"]
        monkeypatch.setattr(sys, "argv", [*words, *one_worker])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0, line
    elif words[:1] == ["python"]:
        runpy.run_path(words[1])
    else:
        assert not words or words[0] in ("make", "cd", "git"), line


def follow(page, monkeypatch):
    for kind, file, text in steps(page):
        if kind == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                type_in(line, monkeypatch)
                if line.startswith("punzi simulate"):
                    shutil.copy("data/demo/taupair_0000.root", "new_0.root")  # somebody's new file
        elif kind == "python" and not file and page != "README.md" and "import ROOT" not in text:
            Path("block.py").write_text(text)
            runpy.run_path("block.py")


def promised(page):
    """Files that the page says are there at the end: README's table, paths in the tutorial."""
    text = (ROOT / page).read_text()
    if page == "README.md":
        rows = re.findall(
            r"^\|.*\| `punzi (?!apply|export|simulate).*?\|(.*)\|$", text, re.MULTILINE
        )
        return [f"runs/demo/{name}" for row in rows for name in re.findall(r"`([^`]+)`", row)]
    return re.findall(r"`((?:runs|data|spectrum)/[^`\s]+)`", text)


@pytest.mark.slow
@pytest.mark.timeout(600)  # the first time, all kernels are compiled on the way
def test_every_command_of_the_pages_works_and_leaves_the_files_they_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("datasets.yaml").write_text(small((ROOT / "datasets.yaml").read_text()))
    for kind, file, text in (step for page in PAGES for step in steps(page) if step[1]):
        Path(file).write_text(small(text) if kind == "yaml" else text)
    for page in PAGES:
        follow(page, monkeypatch)
        missing = [name for name in promised(page) if not list(Path().glob(name))]
        assert not missing, f"{page} names files that are not there"
        for exported in Path().glob("net.*"):  # export replaces nothing; two pages show it
            exported.unlink()


@pytest.mark.parametrize(
    "page", [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"], ids=lambda p: p.name
)
def test_every_make_target_in_the_documentation_exists(page):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    used = re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE)
    assert set(used) <= set(targets)
