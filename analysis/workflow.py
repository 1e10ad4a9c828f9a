"""The chain, from files to figures, as it is read.

    simulate -> check -> select -> windows -> train -> evaluate -> plot -> report

Each stage is skipped while its stamp is current: a hash of its inputs, its settings and its code.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from analysis import console
from analysis.check import find_problems, inspect_all
from analysis.config import Configuration, load
from analysis.cutflow_table import print_cutflow
from analysis.datasets import Dataset, datasets, filled
from analysis.evaluate import evaluate_networks, print_summary
from analysis.runs import RunFolder, open_run
from analysis.samples import Signal
from analysis.select import Execution, Selection, select
from analysis.train import failed_networks, prepare, train
from simulation.recipe import Recipe

log = logging.getLogger(__name__)

RUNS = Path("runs")


def run_simulation(config_path: Path, *, workers: int, scale: float, overwrite: bool) -> None:
    from analysis.simulate import simulate_missing

    config = load(config_path)
    jobs = simulation_jobs(config, config_path.parent, scale=scale)
    simulate_missing(jobs, workers=workers, overwrite=overwrite)


def simulation_jobs(
    config: Configuration, folder: Path, *, scale: float = 1.0
) -> list[tuple[Recipe, Path]]:
    """One recipe and path for every file of the samples that have a simulate recipe."""
    jobs: list[tuple[Recipe, Path]] = []
    for sample in config.samples.values():
        recipe = sample.simulate
        if recipe is None:
            continue
        is_signal = isinstance(sample, Signal)
        size = sample.n_generated if isinstance(sample, Signal) else recipe.n_generated or 0
        per_file = max(1, round(size * scale / recipe.parts))
        rows = recipe.max_rows and max(1, round(recipe.max_rows * scale / recipe.parts))
        for mass in sample.masses if isinstance(sample, Signal) else (None,):
            for part in range(recipe.parts):
                path = folder / filled(sample.files[0], mass_gev=mass, part=part)
                jobs.append(
                    (
                        Recipe(
                            process=recipe.process,
                            n_generated=per_file,
                            seed=recipe.seed,
                            part=part,
                            parts=1 if is_signal else recipe.parts,
                            mass_gev=mass,
                            isr=recipe.isr,
                            max_rows=rows,
                            beams=config.beams,
                        ),
                        path,
                    )
                )
    return jobs


def run_check(config_path: Path, *, workers: int) -> bool:
    """Print a table of all problems; True if there are none."""
    config, sets = _inputs(config_path)
    with console.progress("check", sum(len(ds.files) for ds in sets)) as advance:
        reports = inspect_all(config, sets, workers=workers, step=advance)
    problems = find_problems(sets, reports)
    if not problems:
        n_files = sum(len(of_files) for of_files in reports.values())
        n_rows = sum(report.n_entries for of_files in reports.values() for report in of_files)
        console.stdout.print(f"{n_files} files, {n_rows} rows, {len(sets)} data sets: all good")
        return True
    table = Table(title=f"{len(problems)} problems", title_justify="left")
    for heading in ("data set", "file", "problem"):
        table.add_column(heading, overflow="fold")
    for problem in problems:
        table.add_row(problem.dataset, problem.file, problem.text)
    console.stdout.print(table)
    return False


def run_select(
    config_path: Path, name: str, how: Execution, changes: Sequence[str] = ()
) -> Selection:
    config, sets = _inputs(config_path, changes)
    with open_run(RUNS / name) as run, console.logging_to(run / "log.txt"):
        selection = select(run, config, sets, how)
        print_cutflow(run / "cutflow.json", config.signal[0])
    return selection


def run_train(config_path: Path, name: str, how: Execution, changes: Sequence[str] = ()) -> None:
    config, sets = _inputs(config_path, changes)
    with open_run(RUNS / name) as run, console.logging_to(run / "log.txt"):
        ready = prepare(run, config, select(run, config, sets, how))
        train(run, config, ready, how)
        _report_failures(run, config)


def run_evaluate(config_path: Path, name: str, how: Execution, changes: Sequence[str] = ()) -> None:
    config, sets = _inputs(config_path, changes)
    with open_run(RUNS / name) as run, console.logging_to(run / "log.txt"):
        ready = prepare(run, config, select(run, config, sets, how))
        train(run, config, ready, how)
        figures = evaluate_networks(run, config, ready, workers=how.workers)
        print_summary(figures, _failed(run, config))


def _failed(run: RunFolder, config: Configuration) -> dict[int, list[str]]:
    return failed_networks(run, range(config.settings.training.networks))


def _report_failures(run: RunFolder, config: Configuration) -> None:
    for i, reasons in _failed(run, config).items():
        log.warning("network %d FAILED: %s", i, "; ".join(reasons))


def _inputs(
    config_path: Path, changes: Sequence[str] = ()
) -> tuple[Configuration, tuple[Dataset, ...]]:
    config = load(config_path, changes)
    return config, datasets(config, folder=config_path.parent)
