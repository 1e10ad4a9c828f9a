"""What a first run on a new machine spends in the compiler: processor time, cold minus warm.

    python benchmarks/first_run.py

The demo with few events and epochs, so that compiling is most of it, stage by stage and each in its
own process as a user would call them: once with empty caches of compiled code, then again from the
start with those caches full. The difference is the compilation (and writing its caches); the limit
for the whole is 20 s. Workers are two, as in `make demo`: a kernel that both need is compiled twice
unless the first one that has it wrote it down in time.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

DEMO = Path(__file__).parents[1] / "datasets.yaml"
STAGES = ("simulate", "select", "train", "evaluate", "limit", "plot")


def small(config: dict[str, Any]) -> dict[str, Any]:
    """The demo with all its stages and kernels, and little to do for them."""
    for sample in config["samples"].values():
        if sample["kind"] == "signal":
            sample["n_generated"] = 1200
            sample["masses_gev"] = {"first": 1.0, "last": 6.0, "step": 0.5}
        elif sample["kind"] == "data":
            sample["luminosity_inv_fb"] = 0.2
        else:
            sample["simulate"]["n_generated"] = 20_000
            sample["simulate"].pop("max_rows", None)
    config["luminosity_inv_fb"] = 5
    stages = {"bce": {"epochs": 5}, "punzi": {"epochs": 5, "refine": 5}}
    training = {"networks": 1, "folds": 2, **stages}
    config["settings"] |= {"training": training, "plots": {"formats": [], "dpi": 60}}
    return config


def seconds(folder: Path, stage: str) -> float:
    """Processor time of one stage and its workers."""
    caches = {"NUMBA_CACHE_DIR": str(folder / "numba"), "PUNZI_CACHE_DIR": str(folder / "own")}
    run = [] if stage == "simulate" else ["-r", "first"]
    command = [sys.executable, "-m", "analysis.cli", "-q", stage, *run, "--workers", "2"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, cwd=folder, env=os.environ | caches, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"punzi {stage} failed:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = small(yaml.safe_load(DEMO.read_text()))
        (folder / "datasets.yaml").write_text(yaml.safe_dump(config))
        times = []
        for _ in ("cold", "warm"):
            shutil.rmtree(folder / "data", ignore_errors=True)
            shutil.rmtree(folder / "runs", ignore_errors=True)
            times.append([seconds(folder, stage) for stage in STAGES])
    print(f"{'stage':10s} {'cold':>8s} {'warm':>8s} {'compiling':>10s}   [s of processor time]")
    for stage, cold, warm in zip(STAGES, *times, strict=True):
        print(f"{stage:10s} {cold:8.1f} {warm:8.1f} {cold - warm:10.1f}")
    cold, warm = map(sum, times)
    print(f"{'all':10s} {cold:8.1f} {warm:8.1f} {cold - warm:10.1f}   limit 20")


if __name__ == "__main__":
    main()
