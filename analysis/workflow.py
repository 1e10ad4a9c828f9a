"""The chain, from files to figures, as it is read.

    simulate -> check -> select -> windows -> train -> evaluate -> plot -> report

Each stage is skipped while its stamp is current: a hash of its inputs, its settings and its code.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import yaml
from rich.table import Table

from analysis import console
from analysis.batch_study import final_losses, study_batches
from analysis.check import NO_FILE, find_problems, inspect_all
from analysis.config import Configuration, load
from analysis.confirm import confirm, refuse_missing_masses
from analysis.consistency import NAME
from analysis.cutflow_table import print_cutflow
from analysis.datasets import Dataset, datasets, filled
from analysis.evaluate import evaluate_networks, print_summary
from analysis.runs import RunError, RunFolder, open_run, write_text
from analysis.samples import Signal
from analysis.select import Execution, select
from analysis.train import failed_networks, prepare, train
from simulation.recipe import Recipe

log = logging.getLogger(__name__)

RUNS = Path("runs")
Last = Literal["plot", "report"]
MAIN_FIGURES = {
    "smallest detectable cross section against mass": "sigma_min",
    "recoil mass before and after the cut": "recoil_mass",
    "efficiency and background against mass": "efficiency_background",
}


def run_simulation(config_path: Path, *, workers: int, scale: float, overwrite: bool) -> None:
    from analysis.simulate import simulate_missing

    config = load(config_path)
    jobs = simulation_jobs(config, config_path.parent, scale=scale)
    made = simulate_missing(jobs, workers=workers, overwrite=overwrite).made
    process = {path: recipe.process for recipe, path in jobs}
    for name in dict.fromkeys(process.values()):
        files = [m for m in made if process[m.path] == name and m.rows]
        if files and name != "signal":
            rate = sum(m.sum_of_weights_inv_fb for m in files)
            squares = sum(m.sum_of_weights_inv_fb**2 / m.n_eff for m in files)
            log.info(
                "%s: %d rows, %.5g events per fb^-1, N_eff %.0f, largest weight %.3g at %g fb^-1",
                name,
                sum(m.rows for m in files),
                rate,
                rate**2 / squares,
                max(m.max_weight_inv_fb for m in files) * config.luminosity_inv_fb,
                config.luminosity_inv_fb,
            )


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
    if any(p.text == NO_FILE for p in problems) and any(
        sample.simulate for sample in config.samples.values()
    ):
        console.stdout.print(f"`punzi simulate -c {config_path}` makes the files of its recipes")
    return False


def run_select(config_path: Path, name: str, how: Execution, changes: Sequence[str]) -> None:
    with _run(config_path, name, changes) as (run, config, sets):
        select(run, config, sets, how)
        print_cutflow(run / "cutflow.json", config.signal[0])


def run_train(config_path: Path, name: str, how: Execution, changes: Sequence[str]) -> None:
    with _run(config_path, name, changes) as (run, config, sets):
        ready = prepare(run, config, select(run, config, sets, how))
        train(run, config, ready, how)
        for i, reasons in _failed(run, config).items():
            log.warning("network %d FAILED: %s", i, "; ".join(reasons))


def run_evaluate(config_path: Path, name: str, how: Execution, changes: Sequence[str]) -> None:
    with _run(config_path, name, changes) as (run, config, sets):
        ready = prepare(run, config, select(run, config, sets, how))
        train(run, config, ready, how)
        figures = evaluate_networks(run, config, ready, workers=how.workers)
        print_summary(figures, _failed(run, config))


def run_all(
    config_path: Path, name: str, how: Execution, changes: Sequence[str], *, upto: Last = "report"
) -> None:
    """Everything that is out of date, and at the end where to look."""
    from analysis.figures import draw_figures  # here: drawing takes seconds to import
    from analysis.report import write_report

    with _run(config_path, name, changes) as (run, config, sets):
        ready = prepare(run, config, select(run, config, sets, how))
        train(run, config, ready, how)
        figures = evaluate_networks(run, config, ready, workers=how.workers)
        drawn = draw_figures(run, config, ready, workers=how.workers)
        if upto == "plot":
            console.stdout.print(f"{len(drawn)} files in {run / 'plots'}", soft_wrap=True)
            return
        page = write_report(run, config, sets)
        print_cutflow(run / "cutflow.json", config.signal[0])
        print_summary(figures, _failed(run, config))
        console.stdout.print(f"\nreport: {page}", soft_wrap=True)
        for title, stem in MAIN_FIGURES.items():
            console.stdout.print(f"  {title}: {run / 'plots' / stem}.png", soft_wrap=True)


def run_batches(config_path: Path, name: str, how: Execution, changes: Sequence[str]) -> None:
    with _run(config_path, name, changes) as (run, config, sets):
        ready = prepare(run, config, select(run, config, sets, how))
        study_batches(run, config, ready, workers=how.workers)
        for label, loss in final_losses(run).items():
            console.stdout.print(f"batch size {label}: final loss {loss:.5g}")


def run_confirm(fresh_path: Path, name: str, how: Execution) -> None:
    """Quote the cuts of a finished run on the sample of another configuration."""
    config, sets = _inputs(fresh_path)
    path = _run_path(name)
    if not (path / "fom.json").exists():
        msg = f"{path} is not evaluated yet; run `punzi run -r {name}` first"
        raise RunError(msg)
    with open_run(path) as run, open_run(run / "fresh") as fresh:
        refuse_missing_masses(run, config)
        selection = select(fresh, config, sets, how)
        figures = confirm(run, fresh, config, selection)
        failed = failed_networks(run, sorted({f.network for f in figures}))
        print_summary(figures, failed, events="events of the fresh sample")


@contextlib.contextmanager
def _run(
    config_path: Path, name: str, changes: Sequence[str]
) -> Iterator[tuple[RunFolder, Configuration, tuple[Dataset, ...]]]:
    """The opened run folder, with the resolved configuration written into it."""
    path = _run_path(name)
    config, sets = _inputs(config_path, changes)
    with open_run(path) as run, console.logging_to(run / "log.txt"):
        text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        write_text(run / "config.yaml", text)
        yield run, config, sets


def _run_path(name: str) -> Path:
    if not NAME.fullmatch(name):
        msg = f"a run cannot be called {name!r}: use at most 100 letters, digits, - and _"
        raise RunError(msg)
    return RUNS / name


def _failed(run: RunFolder, config: Configuration) -> dict[int, list[str]]:
    return failed_networks(run, range(config.settings.training.networks))


def _inputs(
    config_path: Path, changes: Sequence[str] = ()
) -> tuple[Configuration, tuple[Dataset, ...]]:
    config = load(config_path, changes)
    return config, datasets(config, folder=config_path.parent)
