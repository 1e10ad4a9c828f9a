"""Inspection of all input files, and what is wrong with them: in their form and in their physics.

`punzi check` prints what is found, `punzi select` refuses to start while anything stops it. Every
file is opened; the rows of at most 20 files per data set are looked at.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from analysis.inputs.columns import Wanted, wanted_columns
from analysis.inputs.file_report import FileReport, Look, inspect_file
from analysis.inputs.findings import (
    Finding,
    branch_findings,
    grouped,
    joined,
    normalisation_findings,
    peak_findings,
    recorded_findings,
    row_findings,
    same_file_findings,
)
from analysis.inputs.rows import peak_of
from analysis.terminal.interrupts import process_pool
from selection.errors import UserError

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset

log = logging.getLogger(__name__)

LOOK_FILES_PER_DATASET = 20
MANY_FILES = 2000  # from here on processes pay for their start: parsing headers holds the GIL
MOST_LINES = 20

Reports = Mapping[str, Sequence[FileReport]]  # by data set


class CheckError(UserError):
    """Input files have problems; the message lists them."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with the form of a file, or of all files of a data set."""

    dataset: str
    file: str
    text: str


def wanted_branches(config: Configuration, dataset: Dataset) -> Wanted:
    """Columns this configuration needs of a data set, and those used where present."""
    sample = config.samples[dataset.sample]
    return wanted_columns(
        config.columns_of(dataset.sample),
        tree=sample.tree or config.tree,
        searches=(config.definition, *config.region_searches.values()),
        candidates=config.candidates,
        weight=dataset.weight_branch,
        event_numbers=True,
    )


def inspect_all(
    config: Configuration,
    datasets: Sequence[Dataset],
    *,
    workers: int,
    step: Callable[[], None] = lambda: None,
) -> dict[str, list[FileReport]]:
    """Reports of every file, by data set name, in the order of the files."""
    tasks: list[tuple[str, str, Wanted, Look | None]] = []
    for ds in datasets:
        beams, missing = config.beams_of(ds.sample), config.missing_of(ds.sample)
        wanted = wanted_branches(config, ds)
        look = Look(config.definition, beams, missing, signal=ds.kind == "signal")
        stride = math.ceil(len(ds.files) / LOOK_FILES_PER_DATASET) or 1
        tasks += [
            (ds.name, file, wanted, None if i % stride else look) for i, file in enumerate(ds.files)
        ]
    reports: dict[str, list[FileReport]] = {ds.name: [] for ds in datasets}
    names, files, wants, looks = zip(*tasks, strict=True) if tasks else ((), (), (), ())
    with _pool(len(tasks), workers) as pool:
        found = pool.map(inspect_file, files, wants, looks, chunksize=16)
        alike: dict[object, FileReport] = {}
        for name, report in zip(names, found, strict=True):
            reports[name].append(_sharing(report, alike))
            step()
    return reports


def _sharing(report: FileReport, alike: dict[object, FileReport]) -> FileReport:
    """The report with the branches and the empty look of one before that has the same."""
    first = alike.setdefault((tuple(report.branches.items()), report.tree), report)
    report = replace(report, tree=first.tree, branches=first.branches)
    if report.look.rows:
        return report
    unseen = alike.setdefault(None, report)
    return replace(report, look=unseen.look, axis=unseen.axis)


def _pool(n_files: int, workers: int) -> Executor:
    if n_files >= MANY_FILES and workers > 1:
        return process_pool(workers)
    return ThreadPoolExecutor(max(workers, 1))


def refuse_mistakes(
    config: Configuration, datasets: Sequence[Dataset], reports: Reports, *, allow_lost: bool
) -> list[Finding]:
    """Stop at the first kind of problem; what does not stop is said and returned.

    allow_lost: rows that cannot be read are accounted for by the selection.
    """
    problems = find_problems(datasets, reports, unreadable=not allow_lost)
    if problems:
        msg = f"{len(problems)} problems with input files (see `punzi check`):\n" + listed(
            problem_lines(problems)
        )
        raise CheckError(msg)
    found = find_mistakes(config, datasets, reports)
    stop_or_say(found, config.accept)
    return found


def stop_or_say(findings: Sequence[Finding], accepted: Sequence[str]) -> None:
    """Refuse what gives wrong physics unless it is accepted by name; log the rest."""
    stopping = [f for f in findings if f.stops and f.name not in accepted]
    for line in grouped(f for f in findings if f not in stopping):
        log.warning("%s", line)
    if stopping:
        raise CheckError(refusal(stopping))


def refusal(stopping: Sequence[Finding]) -> str:
    names = ", ".join(dict.fromkeys(f.name for f in stopping))
    return (
        f"the inputs cannot be right (docs/mistakes.md):\n{listed(grouped(stopping))}\n"
        f"Mend them; what is known and wanted is accepted with `accept: [{names}]` in the "
        f"configuration."
    )


def listed(lines: Sequence[str]) -> str:
    more = [f"... and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return "\n".join(f"  {line}" for line in [*lines[:MOST_LINES], *more])


def find_problems(
    datasets: Sequence[Dataset], reports: Reports, *, unreadable: bool = True
) -> list[Problem]:
    """All problems of all files, and where recorded and configured normalisation disagree."""
    found: list[Problem] = []
    for ds in datasets:
        of_files = reports[ds.name]
        found += [Problem(ds.name, r.file, text) for r in of_files for text in r.problems]
        if unreadable:
            text = "the data cannot be read, copy or make the file again"
            found += [
                Problem(ds.name, r.file, f"{text} ({r.unreadable})")
                for r in of_files
                if r.unreadable
            ]
        if all(not r.problems for r in of_files):
            found += [Problem(ds.name, "all files", t) for t in _normalisation(ds, of_files)]
    return found


def problem_lines(problems: Sequence[Problem]) -> list[str]:
    """As many lines as there are distinct problems: `in 45 files of signal/0.1, …: no branch …`."""
    by_text: dict[str, list[Problem]] = {}
    for problem in problems:
        by_text.setdefault(problem.text, []).append(problem)
    return [f"{_places(of_text)} {text}" for text, of_text in by_text.items()]


def _places(problems: Sequence[Problem]) -> str:
    first, names = problems[0], joined([p.dataset for p in problems])
    if len(problems) == 1:
        return f"{first.dataset}: {first.file}"
    return f"{names}: {len(problems)} files, the first {first.file}:"


def find_mistakes(
    config: Configuration, datasets: Sequence[Dataset], reports: Reports
) -> list[Finding]:
    """What the physics of the inputs cannot be, as far as a look at their first rows can tell."""
    found: list[Finding] = []
    for ds in datasets:
        found += _mistakes_of(config, ds, reports[ds.name])
    files = [(n, r.file, r.fingerprint) for n, of_files in reports.items() for r in of_files]
    allowed = {ds.name for ds in datasets if ds.duplicates_allowed}
    found += same_file_findings(files, allowed=allowed)
    return found


def _mistakes_of(
    config: Configuration, ds: Dataset, of_files: Sequence[FileReport]
) -> Iterator[Finding]:
    beams = config.beams_of(ds.sample)
    look = reduce(add, (report.look for report in of_files))
    cause = next((report.cause for report in of_files if report.cause), "")
    yield from {f.text: f for r in of_files for f in branch_findings(ds.name, r.branches)}.values()
    search = config.definition
    for text in dict.fromkeys(report.swapped for report in of_files if report.swapped):
        told = f"truth says that {text} are exchanged; exchange their columns"
        yield Finding("swapped", ds.name, told)
    wrong_rows = list(row_findings(ds.name, look, beams, search, cause=cause))
    yield from wrong_rows
    if ds.kind == "signal" and not any(f.stops for f in wrong_rows):  # one for one mistake
        axis = np.concatenate([report.axis for report in of_files])
        per_event = look.rows / max(look.first_candidates, 1)
        yield from peak_findings(ds.name, ds.mass_gev, peak_of(axis, per_event=per_event), search)
    entries = sum(report.n_entries for report in of_files)
    yield from normalisation_findings(ds, entries * look.first_candidates / max(look.rows, 1))
    yield from recorded_findings(ds, [report.recorded for report in of_files])
    if any("event" not in report.branches for report in of_files):
        text = "no event numbers in the files: the entry of a row in its file stands for them"
        yield Finding("entry_numbers", ds.name, text)
        if config.candidates == "all" and ds.kind != "data":
            text = (
                "all candidates of an event are wanted, but no event numbers tell which belong "
                "together: a network would judge events that it was trained on. Name their "
                "branches (`columns: {event: ..., run: ...}`), or take `candidates: first`"
            )
            yield Finding("candidates_apart", ds.name, text)


def _normalisation(ds: Dataset, reports: Sequence[FileReport]) -> list[str]:
    texts = []
    for name, configured in (
        ("n_generated", ds.n_generated),
        ("luminosity_inv_fb", ds.luminosity_inv_fb if ds.kind == "background" else None),
    ):
        values = [r.recorded.get(name) for r in reports]
        known = [value for value in values if value is not None]
        if configured is None or len(known) < len(values):
            continue
        total = math.fsum(known)
        if not math.isclose(total, configured, rel_tol=1e-6):
            texts.append(f"{name} is {configured:g} in the configuration, {total:g} in the files")
    if ds.kind == "signal" and ds.n_generated is None:
        untold = [r.file for r in reports if "n_generated" not in r.recorded]
        if untold:
            texts.append(f"n_generated is not configured, and {untold[0]} does not record it")
    shares = [r.recorded["parts"] for r in reports if r.recorded.get("parts")]
    if ds.weight_branch and len(shares) == len(reports):
        present = math.fsum(1 / parts for parts in shares)
        if not math.isclose(present, 1.0, rel_tol=1e-6):
            texts.append(f"the files are {present:.4g} of a whole sample; weights assume all parts")
    return texts
