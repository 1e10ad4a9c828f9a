"""What is installed is what stands here: a wheel holds every file of the packages, and works elsewhere.

`make wheel` is the full form: into an empty environment, with all dependencies.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from analysis.run.code import PACKAGES

ROOT = Path(__file__).resolve().parent.parent
NOT_SHIPPED = ("__pycache__", ".mypy_cache", ".ruff_cache")


def files_of(folder):
    """Content of every file of our packages below a folder, by name."""
    found = [p for package in PACKAGES for p in (folder / package).rglob("*") if p.is_file()]
    kept = [p for p in found if not set(NOT_SHIPPED) & set(p.parts)]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in kept}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A wheel of a copy of the sources: building leaves files beside them."""
    pytest.importorskip("setuptools", "77", reason="setuptools >= 77 is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns(*NOT_SHIPPED)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / "source" / package, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source" / name)
    build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run(
        [sys.executable, *build, "-w", str(folder), str(folder / "source")],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("punzi-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def punzi(unpacked, folder, *words):
    """The command with the wheel alone in the path of modules."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    script = "import analysis.cli, sys; print(analysis.cli.__file__); analysis.cli.main()"
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, _, text = done.stdout.partition("\n")
    assert Path(first).is_relative_to(unpacked)
    return text


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(unpacked):
    assert files_of(unpacked) == files_of(ROOT)
    own = {p.name for p in unpacked.iterdir() if not p.name.endswith(".dist-info")}
    assert own == set(PACKAGES)


def test_the_wheel_works_from_another_folder(unpacked, small_inputs, tmp_path):
    assert "Stages in order" in punzi(unpacked, tmp_path, "--help")
    files = sorted(small_inputs.glob("*.root"))
    assert "wrote" in punzi(unpacked, tmp_path, "init", "mine", *files)
    text = punzi(unpacked, tmp_path, "check", "-c", "mine/datasets.yaml", "--workers=1")
    assert "7 files" in text
    punzi(unpacked, tmp_path, "init", "demo", "--demo")
    assert (tmp_path / "demo/datasets.yaml").read_bytes() == (ROOT / "datasets.yaml").read_bytes()
