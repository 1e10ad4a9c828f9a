"""`punzi apply`: the trained cut on new ntuples, data or simulation.

    1 model      networks, cut and conditions
    2 plan       every file is looked at; all refusals
    3 rows       a piece of a file: read its columns
    4 friend       axis, features, flags, fold, score, pass
    5 spectra      before and after the cut
    6 output     pieces in order into one file per input

Everything that can be refused is refused before the first byte is written. Files are finished one
after the other; after an interrupt the same call keeps the finished ones and goes on.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial, reduce
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from analysis.apply.friend import BEAMS, CANDIDATE, INPUT, PRESELECTION, Counts
from analysis.apply.model import AppliedCut, load_cut
from analysis.apply.output import AppliedFile, FileToApply, write_applied
from analysis.apply.plan import (
    SPECTRA_JSON,
    SPECTRA_ROOT,
    SUMMARY,
    Request,
    finished_jobs,
    planned_jobs,
)
from analysis.apply.rows import score_rows
from analysis.apply.spectra import empty_spectra, summed
from analysis.inputs.tables import open_table
from analysis.run.executors import Execution
from analysis.run.folder import digest, write_json
from analysis.run.in_order import ordered_map
from analysis.select.histograms import save_json, save_root
from analysis.terminal import console
from analysis.terminal.compiling import compiling_said

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # malloc.h


def apply_model(request: Request, execution: Execution) -> list[AppliedFile]:
    """Score all files; what was found in each, in the order given."""
    _keep_freed_memory()
    config = _configuration(request.config)
    cut = load_cut(request.models, config=config, cut=request.cut)
    try:
        with compiling_said():  # pages of parquet are compiled code too
            jobs = planned_jobs(request, cut, config, execution)
        stamp = digest([job.stamp for job in jobs], [job.input for job in jobs])
        done = {} if request.overwrite else finished_jobs(request.output, jobs, stamp)
        todo = [job for job in jobs if job.input not in done]
        if done:
            log.info("apply: %d of %d files are finished already", len(done), len(jobs))
        if todo:  # spectra of other files must not stand beside the new ones
            for name in (SPECTRA_JSON, SPECTRA_ROOT, SUMMARY):
                (request.output / name).unlink(missing_ok=True)
        with compiling_said():
            made = {result.input: result for result in _processed(cut, todo, execution)}
    finally:
        open_table.cache_clear()
    results = [made.get(job.input) or done[job.input] for job in jobs]
    _write_summary(request.output, cut, results, stamp)
    return results


def _configuration(path: Path | None) -> Configuration | None:
    """Loaded only if there is one: its records cost a tenth of a second."""
    if path is None:
        return None
    from analysis.config.configuration import load

    return load(path, columns_only=True)


def _keep_freed_memory() -> None:
    """Ask glibc to keep the arrays of one piece for the next, where there is glibc.

    It hands them back to the system else, and gets zeroed pages again: 20 ns per event. One arena
    for all threads: those of new threads give back what they can, whatever the threshold says.
    """
    wanted = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 256 << 20, M_ARENA_MAX: 1}
    with suppress(OSError, TypeError, AttributeError):
        for parameter, value in wanted.items():
            ctypes.CDLL(None).mallopt(parameter, value)


def _processed(
    cut: AppliedCut, jobs: Sequence[FileToApply], execution: Execution
) -> list[AppliedFile]:
    """Pieces in parallel over all files, one writer in the order of the files."""
    pieces = [piece for job in jobs for piece in job.pieces]
    made = []
    with (
        console.progress("apply", len(jobs)) as advance,
        ordered_map(execution) as work,
    ):
        scored = iter(work(partial(score_rows, cut), pieces))
        for job in jobs:
            made.append(write_applied(job, cut, islice(scored, len(job.pieces))))
            advance(1, Path(job.input).name)
    return made


def _write_summary(
    output: Path, cut: AppliedCut, results: Sequence[AppliedFile], stamp: str
) -> None:
    spectra = reduce(summed, (result.spectra for result in results), empty_spectra(cut.search))
    save_json(output / SPECTRA_JSON, spectra)
    save_root(output / SPECTRA_ROOT, spectra)
    about = {
        "stamp": stamp,
        "punzi_version": version("punzi"),
        "models": dict(zip(cut.files, cut.sha256, strict=True)),
        "conditions": cut.identity(),
        "sqrt_s_gev": cut.sqrt_s_gev,
        "flags": {
            "bad_input": int(INPUT),
            "candidate": int(CANDIDATE),
            "preselection": int(PRESELECTION),
            "beams": int(BEAMS),
        },
        "files": [{"input": r.input, "output": r.output.name, **asdict(r.counts)} for r in results],
        "total": asdict(total_counts(results)),
    }
    write_json(output / SUMMARY, about)


def total_counts(results: Sequence[AppliedFile]) -> Counts:
    return reduce(Counts.__add__, (result.counts for result in results), Counts())


def print_applied(results: Sequence[AppliedFile], output: Path) -> None:
    """Counts of every file, and of all."""
    names = {
        "entries": "entries",
        "bad_input": "NaN",
        "candidate": "cand.",
        "preselection": "presel.",
        "beams": "energy",
        "selected": "selected",
        "passing": "pass",
    }
    table = Table(title=f"applied to {len(results)} files, in {output}", title_justify="left")
    table.add_column("file", overflow="fold")
    for heading in names.values():
        table.add_column(heading, justify="right", no_wrap=True)
    shown = results if len(results) <= 20 else []
    for result in shown:
        counts = asdict(result.counts)
        table.add_row(Path(result.input).name, *(str(counts[name]) for name in names))
    total = asdict(total_counts(results))
    if len(shown) != 1:
        table.add_row("all", *(str(total[name]) for name in names))
    console.stdout.print(table)
