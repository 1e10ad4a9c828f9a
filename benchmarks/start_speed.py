"""What a command costs before its first word: processor time beside that of an empty Python.

    python benchmarks/start_speed.py

Each command runs in a fresh process, several times; the least processor time (user and system) is
shown. Caches of bytecode and of compiled kernels are warm after the first call. The limit is what
the libraries that a command needs cost to import: beside each command their imports alone.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uproot

from analysis.config.searches import shipped_search
from models.network import PunziNet
from models.trained import Conditions, from_network, save_model
from selection.beams import SUPERKEKB
from selection.windows import MassWindows
from simulation.recipe import Recipe
from simulation.write import write_sample

TIMES = 5
CONFIG = """\
luminosity_inv_fb: 50
samples:
  signal: {kind: signal, files: "signal_{mass}.root", masses_gev: [2], n_generated: 3000}
"""


def seconds(command: list[str], folder: Path) -> float:
    """Least processor time of a command over several calls."""
    found = []
    for _ in range(TIMES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def prepare(folder: Path) -> None:
    """A configuration with one file, one with a mistake, a model, and 1000 events for it."""
    write_sample(Recipe("signal", 3000, seed=1, mass_gev=2.0), folder / "signal_2.root")
    (folder / "one.yaml").write_text(CONFIG)
    (folder / "parquet.yaml").write_text(CONFIG.replace("{mass}.root", "{mass}.parquet"))
    (folder / "typo.yaml").write_text(CONFIG.replace("luminosity", "luminositi"))
    with uproot.open(folder / "signal_2.root") as file:
        columns = file["variables"].arrays(library="np")
    pq.write_table(pa.table(columns), folder / "signal_2.parquet")
    columns = {name: values[:1000] for name, values in columns.items()}
    pq.write_table(pa.table(columns), folder / "thousand.parquet")
    with uproot.recreate(folder / "thousand.root") as file:
        file.mktree("variables", {k: v.dtype for k, v in columns.items()}).extend(columns)
    network = PunziNet(np.array([0, 0, -6, 0.0]), np.array([5, 6, 2, 5.0]), seed=1)
    conditions = Conditions(
        classifier="punzi",
        cut=0.5,
        sqrt_s_gev=SUPERKEKB.sqrt_s_gev,
        luminosity_inv_fb=50.0,
        beams=vars(SUPERKEKB),
        training={},
        provenance={},
    )
    windows = MassWindows(np.array([2.0]), np.array([0.3]), 2.0, squared=True)
    trained = np.ones(1, bool)
    search = shipped_search("dimuon_recoil")
    model = from_network(
        network, search=search, windows=windows, trained=trained, conditions=conditions
    )
    save_model(model, folder / "net-00.safetensors")


def main() -> None:
    python, punzi = [sys.executable, "-c"], [sys.executable, "-m", "analysis.cli", "-q"]
    apply = ["apply", "net-00.safetensors", "thousand.root", "-o", "out", "--overwrite"]
    others = "import typer, pydantic, yaml, uproot, pyarrow.parquet"
    cases = {
        "--help": ([*punzi[:3], "--help"], "import typer"),
        "a misspelt key": ([*punzi, "check", "-c", "typo.yaml"], "import typer, pydantic, yaml"),
        "check, one file": (
            [*punzi, "check", "-c", "one.yaml", "--workers=1"],
            "import typer, pydantic, yaml, uproot, rich.progress",
        ),
        "apply, 1000 events": (
            [*punzi, *apply, "--workers=1"],
            "import typer, pydantic, yaml, uproot, numba, vector, hist, uhi",
        ),
        "check, parquet": (
            [*punzi, "check", "-c", "parquet.yaml", "--workers=1"],
            f"{others}, rich.progress",
        ),
        "apply, parquet": (
            [*punzi, *(a.replace(".root", ".parquet") for a in apply), "--workers=1"],
            f"{others}, numba, vector, hist, uhi",
        ),
    }
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        nothing = seconds([*python, "pass"], folder)
        print(f"python -c pass      {nothing:.3f} s")
        print("command              seconds   x empty   its libraries alone")
        for what, (command, libraries) in cases.items():
            taken, limit = seconds(command, folder), seconds([*python, libraries], folder)
            print(f"{what:20s} {taken:7.3f} {taken / nothing:9.1f} {limit:12.3f} s")


if __name__ == "__main__":
    main()
