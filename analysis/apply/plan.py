"""Step 2 of apply, the plan: which rows of which file, where the result goes, and every refusal.

A file is refused if it cannot be read, lacks a branch, has another energy than the training, or if
its output exists and is not finished work of the same call. All of it is known before any work.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.apply.model import AppliedCut, ApplyError, refuse_energy
from analysis.apply.output import AppliedFile, FileToApply, finished, output_layout, skim_types
from analysis.apply.rows import FileRows, columns_of, planned_rows
from analysis.inputs.check import CheckError, stop_or_say
from analysis.inputs.columns import BEAMS, Wanted, wanted_columns
from analysis.inputs.file_report import NO_FILE, FileReport, Look, inspect_file
from analysis.inputs.findings import Finding, branch_findings, row_findings, same_file_findings
from analysis.inputs.rows import BEAM_TOLERANCE_GEV, event_sqrt_s
from analysis.inputs.tables import open_table
from analysis.run.code import code_digest
from analysis.run.folder import MODEL_SUFFIX, digest

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.run.executors import Execution

ENERGY_PIECE = 1_000_000  # rows
SUMMARY, SPECTRA_JSON, SPECTRA_ROOT = "summary.json", "spectra.json", "spectra.root"


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Request:
    """What a person asks for."""

    models: tuple[Path, ...]
    files: tuple[str, ...]
    output: Path
    config: Path | None = None
    skim: bool = False
    overwrite: bool = False
    cut: float | None = None


def models_and_ntuples(
    model: Path, others: Sequence[str]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Arguments of the command, sorted: model files may stand before the first ntuple."""
    n = next((i for i, name in enumerate(others) if not name.endswith(MODEL_SUFFIX)), len(others))
    if n == len(others):
        msg = f"no ntuple given, only models: {model} {' '.join(others)}"
        raise ApplyError(msg)
    return (model, *map(Path, others[:n])), tuple(others[n:])


def planned_jobs(
    request: Request, cut: AppliedCut, config: Configuration | None, execution: Execution
) -> list[FileToApply]:
    """One job per input; every input is looked at, all bad ones are reported together."""
    outputs = _outputs(request)
    weights = _weight_branches(request, config)
    wants = [_wanted(cut, config, weights[file]) for file in request.files]
    with ThreadPoolExecutor(execution.workers) as pool:
        look = Look(cut.search, cut.beams, cut.missing, signal=False)
        looks = [look] * len(wants)
        reports = list(pool.map(inspect_file, request.files, wants, looks))
    problems = [f"  {r.file} {text}" for r in reports for text in _problems(r)]
    if problems:
        more = f"\n  ... and {len(problems) - 20} more" if len(problems) > 20 else ""
        hint = "\nOther branch names, tree or candidate policy: give a configuration with -c."
        hint *= not all(text.endswith(NO_FILE) for text in problems)
        msg = "the model cannot be applied:\n" + "\n".join(problems[:20]) + more + hint
        raise ApplyError(msg)
    _refuse_mistakes(cut, reports, () if config is None else config.accept)
    _say_what_was_trained_on(cut, reports)
    return [_job(request, cut, r, outputs[r.file], execution.chunk_size) for r in reports]


def _refuse_mistakes(
    cut: AppliedCut, reports: Sequence[FileReport], accepted: Sequence[str]
) -> None:
    """What the first rows of a file cannot be, and the same events under two names."""
    found: list[Finding] = []
    for report in reports:
        found += branch_findings(report.file, report.branches)
        found += row_findings(report.file, report.look, cut.beams, cut.search, cause=report.cause)
    found += same_file_findings(("the call", r.file, r.fingerprint) for r in reports)
    wanted = [f for f in found if f.name not in ("other_energy", "negative_weights")]
    try:
        stop_or_say(wanted, accepted)
    except CheckError as error:
        raise ApplyError(str(error)) from None


def _say_what_was_trained_on(cut: AppliedCut, reports: Sequence[FileReport]) -> None:
    """Files of the training prove nothing about one network; of folds each judges new events."""
    if cut.n_folds > 1:
        for report in reports:
            if "event" not in report.branches:
                log.warning(
                    "%s has no event numbers: the entry in the file decides the fold of an event",
                    report.file,
                )
        return
    inputs = cut.models[0].conditions.provenance.get("inputs", {}).get("files", {})
    known = {fingerprint for files in inputs.values() for fingerprint in files.values()}
    for report in reports:
        if report.fingerprint in known:
            log.warning(
                "%s is a file that the network was trained on: its events pass more often than new "
                "ones",
                report.file,
            )


def _job(
    request: Request, cut: AppliedCut, report: FileReport, output: Path, chunk_size: int
) -> FileToApply:
    content, code = report.fingerprint, code_digest("analysis.apply")
    whole = FileRows(
        report.file, report.tree, content, report.branches, 0, report.n_entries, cut.missing
    )
    _refuse_other_energy(cut, whole)
    tree, types = output_layout(cut)
    if request.skim:
        opened = open_table(report.file, report.tree, content)
        tree, types = report.tree, skim_types(opened, where=report.file)
        whole = replace(whole, copied=tuple(types))
    return FileToApply(
        input=report.file,
        output=output,
        stamp=digest(code, cut.identity(), content, report.branches, tree, request.skim),
        pieces=tuple(planned_rows(whole, chunk_size=chunk_size)),
        tree=tree,
        types=types,
        recorded=report.recorded if request.skim else {},
    )


def _wanted(cut: AppliedCut, config: Configuration | None, weight: str | None) -> Wanted:
    """Neither truth nor weights are needed; event numbers decide the fold, where they are."""
    return wanted_columns(
        {} if config is None else config.columns,
        tree=None if config is None else config.tree,
        searches=(cut.search,),
        candidates=cut.candidates,
        weight=weight,
        event_numbers=cut.n_folds > 1,
    )


def _problems(report: FileReport) -> tuple[str, ...]:
    # an empty tree is no problem here: its friend is empty too. It is reported last.
    empty = report.tree != "" and report.n_entries == 0
    return report.problems[:-1] if empty else report.problems


def _weight_branches(request: Request, config: Configuration | None) -> dict[str, str | None]:
    """The weight of each file: that of its sample, else the configured column `weight`, else 1."""
    if config is None or request.config is None:
        return dict.fromkeys(request.files)
    from analysis.inputs.datasets import datasets

    listed = {
        str(Path(file).resolve()): ds.weight_branch
        for ds in datasets(config, folder=request.config.parent)
        for file in ds.files
    }
    other = config.columns.get("weight")
    found = {file: listed.get(str(Path(file).resolve()), other) for file in request.files}
    if None in found.values() and any(found.values()):
        plain = next(file for file, branch in found.items() if branch is None)
        msg = (
            f"{plain} has no weights by the configuration, other files have: their sum in one "
            f"spectrum has no meaning. Apply them in separate calls."
        )
        raise ApplyError(msg)
    return found


def _outputs(request: Request) -> dict[str, Path]:
    """The output of each input; two inputs for one output are refused."""
    if request.output.exists() and not request.output.is_dir():
        msg = f"{request.output} is a file; -o wants a folder"
        raise ApplyError(msg)
    kind = "skim" if request.skim else "friend"
    sources = defaultdict(list)
    for file in request.files:
        stem = Path(file.rsplit("/", 1)[-1]).stem
        sources[request.output / f"{stem}.{kind}.root"].append(file)
    for output, files in sources.items():
        if len(files) > 1:
            msg = (
                f"{files[0]} and {files[1]} would both be written to {output}; "
                f"apply them in separate calls with other folders"
            )
            raise ApplyError(msg)
    return {files[0]: output for output, files in sources.items()}


def _refuse_other_energy(cut: AppliedCut, whole: FileRows) -> None:
    """Stop if most rows of the file have another energy; single ones are flagged and never pass.

    All rows are looked at, in pieces: the rule does not depend on their order.
    """
    beams = {c: b for c, b in whole.branches.items() if c in BEAMS}
    if not beams:
        return
    apart, told, sums = 0, 0, 0.0
    for start in range(0, whole.stop, ENERGY_PIECE):
        stop = min(start + ENERGY_PIECE, whole.stop)
        sqrt_s = event_sqrt_s(columns_of(replace(whole, branches=beams, start=start, stop=stop)))
        if sqrt_s is not None:
            other = sqrt_s[np.abs(sqrt_s - cut.sqrt_s_gev) > BEAM_TOLERANCE_GEV]
            told += int(np.count_nonzero(np.isfinite(sqrt_s)))
            apart, sums = apart + len(other), sums + float(other.sum())
    if 2 * apart > told:
        refuse_energy(sums / apart, cut.sqrt_s_gev, where=f"{whole.file} ({apart} of {told} rows)")


def finished_jobs(output: Path, jobs: Sequence[FileToApply], stamp: str) -> dict[str, AppliedFile]:
    """Results that are there already; anything else in the way is refused."""
    done: dict[str, AppliedFile] = {}
    for job in jobs:
        if not job.output.exists():
            continue
        result = finished(job)
        if result is None:
            msg = (
                f"{job.output} exists and was not made by this model, cut, input and version; "
                f"choose another folder with -o, or replace it with --overwrite"
            )
            raise ApplyError(msg)
        done[job.input] = result
    written = [output / name for name in (SPECTRA_JSON, SPECTRA_ROOT, SUMMARY)]
    in_the_way = [path for path in written if path.exists()]
    if in_the_way and f'"stamp": "{stamp}"' not in _text(output / SUMMARY):
        msg = (
            f"{in_the_way[0]} exists and belongs to another call; "
            f"choose another folder with -o, or replace it with --overwrite"
        )
        raise ApplyError(msg)
    return done


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
