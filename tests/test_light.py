"""A command loads only what it uses: nobody waits for torch to be told of a misspelt key."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import atexit, json, sys
atexit.register(lambda: print("LOADED", json.dumps(sorted(sys.modules))))
from analysis.cli import main
main()
"""


def loaded(*words, cwd):
    """Exit code and modules of a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, cwd=cwd, check=False
    )
    last = next(line for line in done.stdout.splitlines()[::-1] if line.startswith("LOADED"))
    return done.returncode, set(json.loads(last.removeprefix("LOADED")))


HEAVY = {"torch", "coffea", "matplotlib", "mplhep", "iminuit", "xgboost", "dask"}


@pytest.mark.parametrize(
    ("words", "code", "unneeded"),
    [
        (["--help"], 0, HEAVY | {"numpy", "numba", "uproot", "awkward", "pydantic", "yaml"}),
        (["run", "--help"], 0, HEAVY | {"numpy", "numba", "uproot", "awkward"}),
        (["--version"], 0, HEAVY | {"numpy", "numba", "uproot", "awkward", "pydantic"}),
        (["doctor"], 0, HEAVY | {"numba", "uproot", "awkward"}),
        (["completion", "bash"], 0, HEAVY | {"numpy", "numba", "uproot", "awkward"}),
        (["run", "-c", "typo.yaml"], 1, HEAVY | {"numba", "uproot", "awkward", "vector", "hist"}),
        (["check", "-c", "typo.yaml"], 1, HEAVY | {"numba", "uproot", "awkward", "vector", "hist"}),
        (["check"], 0, HEAVY | {"numba", "vector", "hist"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_light_command_loads_no_heavy_library(small_inputs, tmp_path, words, code, unneeded):
    for file in small_inputs.iterdir():
        (tmp_path / file.name).symlink_to(file)
    text = (small_inputs / "datasets.yaml").read_text()
    (tmp_path / "typo.yaml").write_text(text.replace("luminosity_inv_fb", "luminosity"))
    found, modules = loaded(*words, cwd=tmp_path)
    assert found == code
    assert sorted(modules & unneeded) == []


def test_apply_needs_neither_torch_nor_coffea_nor_matplotlib(small_inputs, saved_model, tmp_path):
    ntuple = str(small_inputs / "signal_2.root")
    words = ("apply", str(saved_model), ntuple, "-o", "out", "--workers=1")
    code, modules = loaded(*words, cwd=tmp_path)
    assert code == 0
    assert "numba" in modules
    assert sorted(modules & (HEAVY | {"vector", "sympy", "scipy.linalg"})) == []  # for numba alone
