"""The chain, from files to the report, as it is read.

    check -> select -> windows -> train -> evaluate -> limit -> plot -> report

A command is the chain up to a stage. Each stage is skipped while its stamp is current: its inputs,
its settings and its code are what they were.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from analysis.config.configuration import Configuration, as_yaml, load
from analysis.config.conflicts import NAME
from analysis.inputs.datasets import Dataset, datasets
from analysis.run.folder import RunError, RunFolder, open_run
from analysis.terminal import console
from selection.whole_files import write_text

if TYPE_CHECKING:
    from analysis.run.executors import Execution

log = logging.getLogger(__name__)

Stage = Literal["select", "windows", "train", "evaluate", "limit", "plot", "report"]
Inputs = tuple[RunFolder, Configuration, tuple[Dataset, ...]]

RUNS = Path("runs")
MAIN_FIGURES = {
    "smallest detectable cross section against mass": "sigma_min",
    "efficiency and background against mass": "efficiency_background",
}


def chain(inputs: Inputs, execution: Execution) -> Iterator[tuple[Stage, Any]]:
    """Every stage that is out of date, one after the other, with what it leaves.

    Imports are made on the way: a stage that is not reached is not paid for.
    """
    run, config, sets = inputs

    from analysis.select.stage import select_events

    selection = select_events(run, config, sets, execution)
    yield "select", selection

    from analysis.train.stage import simulated_events, train_networks

    simulated = simulated_events(run, config, selection)
    yield "windows", simulated

    train_networks(run, config, simulated, execution)
    yield "train", simulated

    from analysis.evaluate.stage import evaluate_networks

    yield "evaluate", evaluate_networks(run, config, simulated, workers=execution.workers)

    from analysis.limit.stage import find_limits

    yield "limit", find_limits(run, config, simulated, sets)

    from analysis.figures.draw import draw_figures

    yield "plot", draw_figures(run, config, simulated, workers=execution.workers)

    from analysis.report.stage import write_report

    yield "report", write_report(run, config, sets)


def run_until(
    last: Stage, config_path: Path, name: str, execution: Execution, changes: Sequence[str]
) -> None:
    """Everything up to a stage, and what a person wants to see of it."""
    with _opened(config_path, name, changes) as inputs:
        left = _until(last, inputs, execution)
        run, config, _ = inputs
        if last == "limit" and left is None:
            msg = (
                f"no limits: the network of {run.path} has no single cut that leaves signal at "
                "every mass; set evaluation.single_cut to a number, or train longer"
            )
            raise RunError(msg)
        if last in ("select", "report"):
            show_cutflow(run, config)
        if last == "train":
            for i, reasons in _failed(run, config).items():
                log.warning("network %d FAILED: %s", i, "; ".join(reasons))
        if last in ("evaluate", "report"):
            show_comparison(run, _failed(run, config), events="events judged out of training")
        if last in ("limit", "report"):
            show_limits(run)
        if last == "plot":
            console.stdout.print(f"figures: {run.plots}", soft_wrap=True)
        if last == "report":
            show_warnings(run, config)
            console.stdout.print(f"\nreport: {run.report}", soft_wrap=True)
            spectrum = {"mass before and after the cut": config.definition.axis.mass_name}
            for title, stem in (MAIN_FIGURES | spectrum).items():
                console.stdout.print(f"  {title}: {run.plots / stem}.png", soft_wrap=True)


def run_figures(
    names: Sequence[str], config_path: Path, name: str, execution: Execution, changes: Sequence[str]
) -> None:
    """Single figures, after all stages before; the others are left as they are."""
    from analysis.terminal.compiling import compiling_said

    with _opened(config_path, name, changes) as inputs, compiling_said():
        from analysis.figures.draw import draw_some, refuse_unknown

        run, config, _ = inputs
        refuse_unknown(names, config)
        left: dict[str, Any] = {}
        for stage, found in chain(inputs, execution):
            left[stage] = found
            if stage == "limit":
                break
        for path in draw_some(run, config, left["windows"], names):
            console.stdout.print(f"figure: {path}", soft_wrap=True, markup=False)


def run_batches(config_path: Path, name: str, execution: Execution, changes: Sequence[str]) -> None:
    """The study of batch sizes, beside the trainings of the run."""
    from analysis.train.batch_study import final_losses, study_batches

    with _opened(config_path, name, changes) as inputs:
        run, config, _ = inputs
        simulated = _until("windows", inputs, execution)
        study_batches(run, config, simulated, workers=execution.workers)
        for label, loss in final_losses(run).items():
            console.stdout.print(f"batch size {label}: final loss {loss:.5g}")


def run_confirm(fresh_path: Path, name: str, execution: Execution) -> None:
    """Quote the cuts of a finished run on the sample of another configuration."""
    from analysis.evaluate.confirm import confirm, refuse_missing_masses, refuse_same_events

    config, sets = _read(fresh_path)
    path = _run_path(name)
    if not RunFolder(path).figures_of_merit.exists():
        msg = f"{path} is not evaluated yet; run `punzi run -r {name}` first"
        raise RunError(msg)
    with open_run(path) as run, open_run(run.fresh) as fresh:
        refuse_missing_masses(run, config)
        selection = _until("select", (fresh, config, sets), execution)
        refuse_same_events(run, selection)
        failed = confirm(run, fresh, config, selection)
        show_comparison(fresh, failed, events="events of the fresh sample")


def _until(last: Stage, inputs: Inputs, execution: Execution) -> Any:
    """What the stage leaves, after all before it."""
    from analysis.terminal.compiling import compiling_said

    with compiling_said():
        return next(left for stage, left in chain(inputs, execution) if stage == last)


def show_warnings(run: RunFolder, config: Configuration) -> None:
    """Those of the report: nobody should have to open it to be warned."""
    from analysis.report.stage import outcome
    from analysis.report.summary import summary_of

    for text in summary_of(outcome(run, config)).warnings:
        console.stdout.print(f"warning: {text}", markup=False)


def show_limits(run: RunFolder) -> None:
    from analysis.limit.limit_table import print_limits

    if run.limits.exists():
        print_limits(run)


def show_cutflow(run: RunFolder, config: Configuration) -> None:
    from analysis.select.cutflow_table import print_cutflow

    print_cutflow(run, config)
    for name in config.regions:
        print_cutflow(run.region(name), config, region=name)


def show_comparison(run: RunFolder, failed: dict[int, list[str]], *, events: str) -> None:
    from analysis.evaluate.comparison_table import print_comparison
    from analysis.evaluate.stage import load_figures
    from models.evaluation.comparison import compare

    print_comparison(compare(load_figures(run), list(failed)), failed, events=events)


def _failed(run: RunFolder, config: Configuration) -> dict[int, list[str]]:
    from analysis.train.outcome import failed_networks

    return failed_networks(run, config.settings.training)


@contextlib.contextmanager
def _opened(config_path: Path, name: str, changes: Sequence[str]) -> Iterator[Inputs]:
    """The opened run folder, with the resolved configuration written into it."""
    path = _run_path(name)
    config, sets = _read(config_path, changes)
    with open_run(path) as run, console.logging_to(run.log):
        write_text(run.config, as_yaml(config))
        yield run, config, sets


def looked_at(config_path: Path, name: str, changes: Sequence[str]) -> Inputs:
    """A run that is only looked at: no stage of the chain works on it, and nothing is written."""
    config, sets = _read(config_path, changes)
    return RunFolder(_run_path(name), only_look=True), config, sets


def _run_path(name: str) -> Path:
    if not NAME.fullmatch(name):
        msg = f"a run cannot be called {name!r}: use at most 100 letters, digits, - and _"
        raise RunError(msg)
    return RUNS / name


def _read(
    config_path: Path, changes: Sequence[str] = ()
) -> tuple[Configuration, tuple[Dataset, ...]]:
    config = load(config_path, changes)
    return config, datasets(config, folder=config_path.parent)
