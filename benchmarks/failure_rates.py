"""How often do published trainings fail on a sample of ours?

    python benchmarks/failure_rates.py [-c datasets.yaml] [-r failures] [--seeds 2] [--only TEXT]

Trains every case below with seeds 1, 2, ... on the same split of the selected events (80 %, as in
the paper) and counts the networks that fail the checks of models/training/checks.py: no better than
accepting everything, accepting or rejecting all, blind at a mass. Also the mean sigma_min [fb] of
the others, of all training events, at the end. Outcomes are the same for any number of workers; 20
seeds of all cases take about 15 minutes of two idle cores on the demo.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.stage import select_events
from analysis.train.stage import simulated_events, split_sets
from models.training.ensemble import Member, Sets, train_ensemble
from models.training.settings import AUTHORS, PAPER, Stage, TrainingSettings

AUTHORS_STEPS = 200_000  # of the BCE stage on the authors' own sample
PAPER_STEPS = 72_000  # of the Punzi stage on a sample of the paper's size: 72 batches an epoch


def changed(settings: TrainingSettings, at: int, **changes: object) -> TrainingSettings:
    """The same with another stage number `at`."""
    stages: list[Stage] = list(settings.stages)
    stages[at] = replace(stages[at], **changes)  # type: ignore[arg-type]
    return replace(settings, stages=tuple(stages))


CASES = {
    "authors": AUTHORS,
    "authors, plateau on all events": changed(AUTHORS, 0, plateau_on="all_events"),
    "authors, Punzi rate 0.02": changed(AUTHORS, 1, learning_rate=0.02),
    "authors, BCE 2048 x 200": replace(AUTHORS, stages=(PAPER.stages[0], AUTHORS.stages[1])),
    "authors, 2.0e5 BCE steps": changed(AUTHORS, 0, steps=AUTHORS_STEPS),
    "paper": PAPER,
    "paper, 7.2e4 Punzi steps": changed(PAPER, 1, steps=PAPER_STEPS),
}


def demo_sets(config_path: Path, run_name: str, workers: int) -> Sets:
    """Training and held-out events of one split."""
    config = load(config_path, ["training.folds=1"])
    sets = datasets(config, folder=config_path.parent)
    with open_run(Path("runs") / run_name) as run:
        selection = select_events(run, config, sets, Execution("threads", workers))
        return split_sets(config, simulated_events(run, config, selection), fold=0)


def outcomes(
    sets: Sets, settings: TrainingSettings, seeds: range, workers: int
) -> Iterator[tuple[bool, float]]:
    """Did it fail, and its mean sigma_min at the end, for each seed."""
    members = [Member(seed) for seed in seeds]
    for result in train_ensemble([sets], settings, members=members, workers=workers):
        yield result.status == "failed", float(result.history.train_loss[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-c", "--config", type=Path, default=Path("datasets.yaml"))
    parser.add_argument("-r", "--run", default="failures", help="name of the run folder")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    asked = parser.parse_args()
    config = load(asked.config)
    files = [f for ds in datasets(config, folder=asked.config.parent) for f in ds.files]
    if not all("://" in file or Path(file).exists() for file in files):
        print(f"the ntuples of {asked.config} are not there: punzi simulate -c {asked.config}")
        return
    sets = demo_sets(asked.config, asked.run, asked.workers)
    print(f"{len(sets[0])} training events; seeds {asked.first} to "
          f"{asked.first + asked.seeds - 1}", flush=True)  # fmt: skip
    print("| case | failed | mean sigma_min of the others [fb] | seconds |\n|---|---|---|---|")
    for name, settings in CASES.items():
        if asked.only in name:
            begin = time.monotonic()
            seeds = range(asked.first, asked.first + asked.seeds)
            ends = list(outcomes(sets, settings, seeds, asked.workers))
            good = [loss for failed, loss in ends if not failed]
            mean = float(np.mean(good)) if good else math.nan
            failed = len(ends) - len(good)
            spent = time.monotonic() - begin
            print(f"| {name} | {failed} of {len(ends)} | {mean:.2f} | {spent:.0f} |", flush=True)


if __name__ == "__main__":
    main()
