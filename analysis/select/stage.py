"""`punzi select`: ntuples in; skim, histograms and cutflow out, with nothing lost in between.

    check -> plan chunks -> keep shards that are there -> process the rest -> account -> merge

Chunks may be processed anywhere and in any order; everything is merged in the order of the plan.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.inputs.check import CheckError, FileReport, find_problems, inspect_all
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, digest, write_json
from analysis.select.accounting import lost_shares, refuse_duplicates
from analysis.select.chunks import Chunk, plan_chunks
from analysis.select.histograms import added, empty_histograms, save_json, save_root
from analysis.select.index import Selection, load_selection, save_selection
from analysis.select.process import Result, processed_chunks
from analysis.select.skim import Part
from analysis.terminal.console import progress
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset
    from analysis.run.executors import Execution
    from analysis.select.histograms import Histograms

log = logging.getLogger(__name__)


def select_events(
    run: RunFolder, config: Configuration, datasets: Sequence[Dataset], execution: Execution
) -> Selection:
    """Bring the skim up to date and return it."""
    with progress("check", sum(len(ds.files) for ds in datasets)) as advance:
        reports = inspect_all(config, datasets, workers=execution.workers, step=advance)
    problems = find_problems(datasets, reports)
    if problems:
        rows = "\n".join(f"  {p.dataset}: {p.file} {p.text}" for p in problems[:20])
        more = f"\n  ... and {len(problems) - 20} more" if len(problems) > 20 else ""
        msg = f"{len(problems)} problems with input files (see `punzi check`):\n{rows}{more}"
        raise CheckError(msg)
    chunks = plan_chunks(config, datasets, reports, chunk_size=execution.chunk_size)
    _say_which_files_have_beams(reports)
    code = code_digest("analysis.select")
    stamp = digest([c.shard for c in chunks], [asdict(ds) for ds in datasets], code)
    if run.is_current("select", stamp):
        log.info("select: up to date (%d shards)", len(chunks))
        return load_selection(run)
    results, errors = processed_chunks(run.skim, config, chunks, execution)
    lost = lost_shares(chunks, errors, config, datasets, allow_lost=execution.allow_lost)
    done = [chunk for chunk in chunks if chunk.shard in results]
    refuse_duplicates(run.skim, datasets, done)
    _write_results(run, datasets, done, results, lost)
    _remove_stale(run.skim, {chunk.shard for chunk in chunks})
    if not lost:  # with losses the next call tries the missing chunks again
        outputs = [run.skim_index, run.cutflow, run.histograms, run.histograms_root]
        run.finish("select", stamp, outputs)
    return load_selection(run)


def _say_which_files_have_beams(reports: Mapping[str, Sequence[FileReport]]) -> None:
    """Files of one data set may differ; the beams are then not the same for all its events."""
    for name, of_files in reports.items():
        have = sum(bool({*BEAM_COLUMNS, ECMS_COLUMN} & set(report.branches)) for report in of_files)
        if 0 < have < len(of_files):
            log.warning(
                "%s: %d of %d files have beam columns; events of the others get the configured "
                "beams",
                name,
                have,
                len(of_files),
            )


def _write_results(
    run: RunFolder,
    datasets: Sequence[Dataset],
    chunks: Sequence[Chunk],
    results: Mapping[str, Result],
    lost: Mapping[str, float],
) -> None:
    histograms: dict[str, Histograms] = {}
    flows: dict[str, Any] = {}
    parts: list[Part] = []
    for ds in datasets:
        norm = ds.constant_weight * ds.scale / (1 - lost.get(ds.name, 0.0))
        own = [chunk for chunk in chunks if chunk.dataset == ds.name]
        total, flow = empty_histograms(), None
        for chunk in own:
            filled, counted = results[chunk.shard]
            total = added(total, filled)
            flow = counted if flow is None else flow + counted
            parts.append(Part(ds.sample, run.skim / chunk.shard, ds.mass_gev, norm))
        histograms[ds.name] = total
        if flow is not None:
            flows[ds.name] = {
                "cuts": flow.names,
                "raw": flow.raw,
                "events": [events * norm for events in flow.events],
                "unit": "efficiency" if ds.kind == "signal" else "events",
                "scale_factors": ds.scale_factors,
                "lost_share": lost.get(ds.name, 0.0),
            }
    save_json(run.histograms, histograms)
    save_root(run.histograms_root, histograms)
    write_json(run.cutflow, flows)
    save_selection(run, Selection(tuple(parts), lost))


def _remove_stale(skim: Path, wanted: set[str]) -> None:
    for path in skim.glob("*/*.parquet"):
        if str(path.relative_to(skim)) not in wanted:
            path.unlink()
