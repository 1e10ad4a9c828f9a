"""`punzi select`: ntuples in; skim, histograms and cutflow out, with nothing lost in between.

    check -> plan chunks -> keep shards that are there -> process the rest -> account -> merge

Chunks may be processed anywhere and in any order; everything is merged in the order of the plan.
A control region is selected like the search region and leaves the same files in its own folder.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.inputs.check import inspect_all, refuse_mistakes, stop_or_say
from analysis.inputs.datasets import with_recorded_sizes
from analysis.inputs.file_report import FileReport
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, write_json
from analysis.run.stamps import Stamp, stamp_of
from analysis.select.accounting import (
    lost_chunks,
    lost_shares,
    refuse_overlap,
)
from analysis.select.chunks import Chunk, plan_chunks
from analysis.select.duplicates import refuse_duplicates
from analysis.select.events import ChunkCounts
from analysis.select.gathered import Result, Totals
from analysis.select.histogram_sums import as_histograms, no_sums
from analysis.select.histograms import save_json, save_root
from analysis.select.index import Selection, load_selection, save_inputs, save_selection
from analysis.select.process import processed_chunks
from analysis.select.selected import selected_findings
from analysis.select.skim import Part
from analysis.terminal.console import progress
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN
from selection.preselection import PRESELECTION
from selection.search import Search

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
    told = refuse_mistakes(config, datasets, reports, allow_lost=execution.allow_lost)
    datasets = with_recorded_sizes(datasets, reports)
    chunks = plan_chunks(config, datasets, reports, chunk_size=execution.chunk_size)
    _say_which_files_have_beams(reports)
    stamp = _stamp(config, datasets, chunks, execution)
    if run.is_current("select", stamp):
        log.info("select: up to date (%d shards)", len(chunks))
        return load_selection(run)
    totals, errors = processed_chunks(run, config, chunks, execution)
    lost = lost_shares(chunks, errors, config, datasets, allow_lost=execution.allow_lost)
    gone = {chunk.shard for chunk in lost_chunks(chunks, errors)}
    done = [chunk for chunk in chunks if chunk.shard not in gone]
    refuse_overlap(config, totals)
    save_inputs(run, {n: {r.file: r.fingerprint for r in rs} for n, rs in reports.items()})
    counts, outputs = _write_regions(run, config, datasets, done, totals, lost)
    findings = selected_findings(run, config, datasets, counts)
    known = {(f.name, f.dataset) for f in findings}
    first_look = [f for f in told if (f.name, f.dataset) not in known]
    write_json(run.findings, [*first_look, *findings])
    stop_or_say(findings, config.accept)
    _remove_stale(run, config, {s for chunk in chunks for s in chunk.shards.values()})
    if not lost:  # with losses the next call tries the missing chunks again
        run.finish("select", stamp, [run.findings, *outputs])
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


def _write_regions(
    run: RunFolder,
    config: Configuration,
    datasets: Sequence[Dataset],
    chunks: Sequence[Chunk],
    totals: Totals,
    lost: Mapping[str, float],
) -> tuple[dict[str, ChunkCounts], list[Path]]:
    """What was counted in the search region, by data set, and the files of all regions."""
    files = []
    for region, search in {PRESELECTION: config.definition, **config.region_searches}.items():
        of_region = {ds: found for (name, ds), found in totals.items() if name == region}
        n_rows = {ds: counts.flow.raw[-1] for ds, (_, counts) in of_region.items()}
        refuse_duplicates(run, datasets, chunks, region, n_rows=n_rows)
        folder = run if region == PRESELECTION else run.region(region)
        shards: dict[str, list[Path]] = {}
        for chunk in chunks:
            shards.setdefault(chunk.dataset, []).append(run.path / chunk.shards[region])
        _write_results(folder, search, datasets, (shards, of_region), lost)
        files += [folder.skim_index, folder.cutflow, folder.histograms, folder.histograms_root]
    return {ds: counts for (r, ds), (_, counts) in totals.items() if r == PRESELECTION}, files


def _write_results(
    run: RunFolder,
    search: Search,
    datasets: Sequence[Dataset],
    done: tuple[Mapping[str, Sequence[Path]], Mapping[str, Result]],
    lost: Mapping[str, float],
) -> None:
    """Write all but the shards. done: data set -> its shards, and what was found in them."""
    shards, totals = done
    histograms: dict[str, Histograms] = {}
    flows: dict[str, Any] = {}
    parts: list[Part] = []
    for ds in datasets:
        norm = ds.constant_weight * ds.scale / (1 - lost.get(ds.name, 0.0))
        parts += [Part(ds.sample, path, ds.mass_gev, norm) for path in shards.get(ds.name, ())]
        total = no_sums(search) + (totals[ds.name][0] if ds.name in totals else 0.0)
        histograms[ds.name] = as_histograms(total, search)
        if ds.name in totals:
            flow = totals[ds.name][1].flow
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


def _stamp(
    config: Configuration, datasets: Sequence[Dataset], chunks: Sequence[Chunk], how: Execution
) -> Stamp:
    """The names of the shards know of most changes; the other entries say which it was."""
    search = config.definition
    content: dict[str, list[str]] = {ds.name: [] for ds in datasets}
    for chunk in chunks:
        content[chunk.dataset].append(chunk.fingerprint)
    return stamp_of(
        content=content,
        samples={ds.name: asdict(ds) for ds in datasets},
        columns={name: config.columns_of(name) for name in config.samples},
        beams={name: asdict(config.beams_of(name)) for name in config.samples},
        missing={name: config.missing_of(name) for name in config.samples},
        candidates=config.candidates,
        define=search.define,
        cuts=search.cuts,
        accept=config.accept,
        histograms=[[q.name, q.bins] for q in (search.axis, *search.features)],
        chunk_size=how.chunk_size,
        code=code_digest("analysis.select"),
        overlaps={name: region.overlap for name, region in config.regions.items()},
        shards=[chunk.shards for chunk in chunks],
    )


def _remove_stale(run: RunFolder, config: Configuration, wanted: set[str]) -> None:
    """Shards of other cuts, and all of regions that are no longer there."""
    for path in (*run.skim.glob("*/*.parquet"), *run.regions.glob("*/skim/*/*.parquet")):
        if str(path.relative_to(run.path)) not in wanted:
            path.unlink()
    for folder in run.regions.glob("*"):
        if folder.name not in config.regions:
            shutil.rmtree(folder)
