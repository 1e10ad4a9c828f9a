"""`punzi check`: all problems of all input files in one table."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.terminal import console


def check_inputs(config_path: Path, *, workers: int) -> bool:
    """Print a table of all problems; True if there are none."""
    config = load(config_path)
    sets = datasets(config, folder=config_path.parent)

    from analysis.inputs.check import NO_FILE, find_problems, inspect_all  # a typo needs no uproot

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
