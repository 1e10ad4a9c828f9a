"""`punzi check`: all problems of all input files, one line for each kind."""

from __future__ import annotations

from pathlib import Path

from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.terminal import console


def check_inputs(config_path: Path, *, workers: int) -> bool:
    """Print all that was found; True if nothing stops a run."""
    config = load(config_path)
    sets = datasets(config, folder=config_path.parent)

    from analysis.inputs.check import (  # here: a misspelt key needs no uproot
        find_mistakes,
        find_problems,
        inspect_all,
        listed,
        problem_lines,
    )
    from analysis.inputs.file_report import NO_FILE
    from analysis.inputs.findings import grouped

    with console.progress("check", sum(len(ds.files) for ds in sets)) as advance:
        reports = inspect_all(config, sets, workers=workers, step=advance)
    problems = find_problems(sets, reports)
    mistakes = [] if problems else find_mistakes(config, sets, reports)
    stopping = [f for f in mistakes if f.stops and f.name not in config.accept]
    for title, lines in {
        "problems of the files": problem_lines(problems),
        "mistakes in the physics (docs/mistakes.md)": grouped(stopping),
        "to be known": grouped(f for f in mistakes if f not in stopping),
    }.items():
        if lines:
            console.stdout.print(f"{len(lines)} {title}:\n{listed(lines)}", markup=False)
    if problems or stopping:
        if any(p.text == NO_FILE for p in problems) and any(
            sample.simulate for sample in config.samples.values()
        ):
            console.stdout.print(f"`punzi simulate -c {config_path}` makes what has a recipe")
        return False
    n_files = sum(len(of_files) for of_files in reports.values())
    n_rows = sum(report.n_entries for of_files in reports.values() for report in of_files)
    console.stdout.print(f"{n_files} files, {n_rows} rows, {len(sets)} data sets: all good")
    return True
