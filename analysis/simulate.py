"""`punzi simulate`: make the missing files of the samples that have a recipe.

    for each (recipe, path):   no file             -> make it
                               file, same recipe   -> keep it
                               file, other recipe  -> an error that lists all of them

Files are made in parallel by processes. A file depends on its recipe alone, so the number of
workers changes nothing but the time; the grid of a process is adapted once for all its files. A
file appears only when complete, so an interrupt leaves nothing half-written and the next call makes
only what is missing.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType

from analysis.config.configuration import Configuration, load
from analysis.config.samples import Data, Signal
from analysis.inputs.datasets import filled
from analysis.terminal.compiling import (
    WorkersCompile,
    compile_in_turn,
    compiling_said,
    said_for_workers,
)
from analysis.terminal.console import progress
from analysis.terminal.interrupts import interrupts_held
from simulation.pseudodata import PseudoData
from simulation.recipe import SIGNALS, Recipe, SimulationError
from simulation.samples import Grid, Setup, adapted_grid
from simulation.write import SampleSummary, recorded_recipe, setups_of, write_sample

log = logging.getLogger(__name__)

FileToMake = tuple[Recipe | PseudoData, Path]
Report = Callable[[SampleSummary], None]


@dataclass(frozen=True)
class Simulated:
    """What a call did: the files it made and the files it found."""

    made: tuple[SampleSummary, ...]
    kept: tuple[Path, ...]


def simulate_samples(config_path: Path, *, workers: int, scale: float, overwrite: bool) -> None:
    """Make the missing files of a configuration and say what is in them."""
    config = load(config_path)
    files = files_to_make(config, config_path.parent, scale=scale)
    made = simulate_missing(files, workers=workers, overwrite=overwrite).made
    process = {path: recipe.process for recipe, path in files}
    for name in dict.fromkeys(process.values()):
        here = [m for m in made if process[m.path] == name and m.rows]
        if name == PseudoData.process:
            for m in here:
                log.info(
                    "%s: %d events, unweighted; the heaviest row stood for %.3g of them",
                    m.path.name,
                    m.rows,
                    m.max_weight_inv_fb * m.rows / m.sum_of_weights_inv_fb,
                )
            continue
        if here and name not in SIGNALS:
            rate = sum(m.sum_of_weights_inv_fb for m in here)
            squares = sum(m.sum_of_weights_inv_fb**2 / m.n_eff for m in here)
            log.info(
                "%s: %d rows, %.5g events per fb^-1, N_eff %.0f, largest weight %.3g at %g fb^-1",
                name,
                sum(m.rows for m in here),
                rate,
                rate**2 / squares,
                max(m.max_weight_inv_fb for m in here) * config.luminosity_inv_fb,
                config.luminosity_inv_fb,
            )


def files_to_make(config: Configuration, folder: Path, *, scale: float = 1.0) -> list[FileToMake]:
    """One recipe and path for every file of the samples that have a simulate recipe."""
    files: list[FileToMake] = []
    for sample in config.samples.values():
        recipe = sample.simulate
        if recipe is None or recipe.process == "pseudodata":
            if isinstance(sample, Data):
                files += _pseudo_data(config, sample, folder)
            continue
        is_signal = isinstance(sample, Signal)
        size = recipe.n_generated or 0
        if isinstance(sample, Signal) and isinstance(sample.n_generated, int):
            size = sample.n_generated
        per_file = max(1, round(size * scale / recipe.parts))
        rows = recipe.max_rows and max(1, round(recipe.max_rows * scale / recipe.parts))
        for mass in sample.masses if isinstance(sample, Signal) else (None,):
            for part in range(recipe.parts):
                path = folder / filled(sample.files[0], mass_gev=mass, part=part)
                files.append(
                    (
                        Recipe(
                            process=recipe.process,
                            n_generated=per_file,
                            seed=recipe.seed,
                            part=part,
                            parts=1 if is_signal else recipe.parts,
                            mass_gev=mass,
                            isr=recipe.isr,
                            fsr=recipe.fsr,
                            sqrt_s_spread_gev=recipe.sqrt_s_spread_gev,
                            max_rows=rows,
                            beams=config.beams,
                        ),
                        path,
                    )
                )
    return files


def _pseudo_data(config: Configuration, sample: Data, folder: Path) -> list[FileToMake]:
    """The file of simulated data; their luminosity says how many, whatever the --scale."""
    recipe = sample.simulate
    if recipe is None:
        return []
    made = PseudoData(
        luminosity_inv_fb=sample.luminosity_inv_fb,
        seed=recipe.seed,
        signal_mass_gev=recipe.signal_mass_gev,
        signal_cross_section_fb=recipe.signal_cross_section_fb,
        isr=recipe.isr,
        fsr=recipe.fsr,
        beams=config.beams,
        sqrt_s_spread_gev=recipe.sqrt_s_spread_gev,
    )
    return [(made, folder / sample.files[0])]


def simulate_missing(
    files: Sequence[FileToMake], *, workers: int, overwrite: bool = False
) -> Simulated:
    """Make the files that are missing."""
    paths = [path for _, path in files]
    twice = sorted({str(path) for path in paths if paths.count(path) > 1})
    if twice:
        msg = f"two recipes want the same file: {', '.join(twice)}; give each its own name"
        raise SimulationError(msg)
    todo, kept = _missing(files, overwrite=overwrite)
    log.info("simulate: %d files to make, %d already there", len(todo), len(kept))
    # the largest first: the last file then never runs alone for long
    todo.sort(key=lambda job: (-job[0].n_generated, str(job[1])))
    with progress("simulate", len(todo)) as advance:

        def report(summary: SampleSummary) -> None:
            advance(1, summary.path.name)
            log.debug("%s", _line(summary))

        made = _run_all(todo, workers, report)
    order = {path: i for i, path in enumerate(paths)}
    return Simulated(tuple(sorted(made, key=lambda s: order[s.path])), tuple(kept))


def _missing(
    files: Sequence[FileToMake], *, overwrite: bool
) -> tuple[list[FileToMake], list[Path]]:
    todo, kept, wrong = [], [], []
    for recipe, path in files:
        if not path.exists():
            todo.append((recipe, path))
            continue
        try:
            difference = _difference(recorded_recipe(path), recipe)
        except SimulationError as error:
            difference = str(error)
        if not difference:
            kept.append(path)
        elif overwrite:
            todo.append((recipe, path))
        else:
            wrong.append(f"  {path}: {difference}")
    if wrong:
        msg = (
            f"{len(wrong)} existing file(s) were made with other settings and are left alone:\n"
            + "\n".join(wrong[:5] + [f"  ... and {len(wrong) - 5} more"] * (len(wrong) > 5))
            + "\nDelete or move them, change the configuration, or allow --overwrite."
        )
        raise SimulationError(msg)
    return todo, kept


def _difference(found: Recipe | PseudoData, wanted: Recipe | PseudoData) -> str:
    if type(found) is not type(wanted):
        return f"process = {found.process} in the file, {wanted.process} wanted"
    parts = [
        f"{f.name} = {getattr(found, f.name)} in the file, {getattr(wanted, f.name)} wanted"
        for f in fields(wanted)
        if getattr(found, f.name) != getattr(wanted, f.name)
    ]
    return "; ".join(parts)


def _run_all(todo: Sequence[FileToMake], workers: int, report: Report) -> list[SampleSummary]:
    made = []
    if workers <= 1 or len(todo) <= 1:
        with _terminated_as_interrupt(), compiling_said():
            for recipe, path in todo:
                made.append(write_sample(recipe, path))
                report(made[-1])
        return made
    context = multiprocessing.get_context("spawn")
    with said_for_workers(context) as compiling:
        pool = ProcessPoolExecutor(
            min(workers, len(todo)),
            mp_context=context,
            initializer=_start_worker,
            initargs=(compiling,),
        )
        return _made_by(pool, todo, report)


def _made_by(
    pool: ProcessPoolExecutor, todo: Sequence[FileToMake], report: Report
) -> list[SampleSummary]:
    """All files, by a pool that is gone at the end, whatever happens."""
    made = []
    try:
        with interrupts_held():
            needs = {job: set(setups_of(job[0])) for job in todo}
            setups = dict.fromkeys(setup for needed in needs.values() for setup in needed)
            grids = {pool.submit(_in_worker, adapted_grid, setup): setup for setup in setups}
            plain = [job for job, needed in needs.items() if not needed]
            waiting = {*grids, *(pool.submit(_in_worker, write_sample, *job) for job in plain)}
        known: dict[Setup, Grid] = {}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                result = future.result()
                if isinstance(result, SampleSummary):
                    made.append(result)
                    report(result)
                    continue
                known[grids[future]] = result
                for job, needed in needs.items():
                    if grids[future] in needed and needed <= set(known):
                        own = {setup: known[setup] for setup in needed}
                        waiting.add(pool.submit(_in_worker, write_sample, *job, own))
    except BaseException:
        # running files are stopped, not waited for; their temporary files go with them
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
    return made


def _start_worker(compiling: WorkersCompile) -> None:
    """The parent ends the workers by SIGTERM, which cleans up; it says when they compile."""
    signal.signal(signal.SIGTERM, _raise_exit)
    compile_in_turn(compiling)


def _in_worker(
    make: Callable[..., Grid | SampleSummary], *arguments: object
) -> Grid | SampleSummary:
    try:
        return make(*arguments)
    except SystemExit:
        # its temporary file is gone; the pool would take SystemExit for a result and work on
        os._exit(1)


def _raise_exit(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _terminated_as_interrupt() -> Iterator[None]:
    """SIGTERM as an exception while files are written here (main thread only)."""
    try:
        before = signal.signal(signal.SIGTERM, _raise_exit)
    except ValueError:  # not the main thread: signals are someone else's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _line(s: SampleSummary) -> str:
    return (
        f"{s.path.name}, {s.rows} rows, sigma = {s.cross_section_fb:.5g} +- "
        f"{s.cross_section_error_fb:.2g} fb, N_eff = {s.n_eff:.0f}, "
        f"largest weight = {s.max_weight_inv_fb:.3g} fb^-1"
    )
