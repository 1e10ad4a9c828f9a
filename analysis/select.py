"""`punzi select`: ntuples in; skim, histograms and cutflow out, with nothing lost in between.

    check -> plan chunks -> keep shards that are there -> process the rest -> account -> merge

Chunks may be processed anywhere and in any order; everything is merged in the order of the plan.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import coffea.util
import numpy as np
from coffea.processor import Runner

from analysis.check import (
    CheckError,
    FileReport,
    find_problems,
    inspect_all,
    inspect_file,
    wanted_branches,
)
from analysis.chunks import Chunk, plan_chunks
from analysis.config import Configuration
from analysis.console import progress
from analysis.datasets import Dataset
from analysis.executors import ExecutorName, open_executor
from analysis.histograms import Histograms, added, empty_histograms, save_json, save_root
from analysis.processors import NtupleSchema, SelectEvents, shard_histograms
from analysis.runs import RunFolder, digest, write_json
from analysis.skim import IDENTITY, SCHEMA, Part, SkimError, read_shard, shard_cutflow
from selection.preselection import Cutflow

log = logging.getLogger(__name__)

INDEX = "skim/index.json"
OUTPUTS = (INDEX, "cutflow.json", "histograms.json", "histograms.root")


class SelectionError(Exception):
    """The selection stopped; the message says where and what to do."""


@dataclass(frozen=True)
class Execution:
    """Where and how the work is done; never part of a result."""

    executor: ExecutorName = "threads"
    workers: int = 1
    cluster: str | None = None
    chunk_size: int = 1_000_000
    allow_lost: bool = False


@dataclass(frozen=True)
class Selection:
    """What the next stages need: the shards in order, and what was lost of each data set."""

    parts: tuple[Part, ...]
    lost: Mapping[str, float]  # data set -> share of its rows that is missing


def select(
    run: RunFolder, config: Configuration, datasets: Sequence[Dataset], how: Execution
) -> Selection:
    """Bring the skim up to date and return it."""
    with progress("check", sum(len(ds.files) for ds in datasets)) as advance:
        reports = inspect_all(config, datasets, workers=how.workers, step=advance)
    problems = find_problems(datasets, reports)
    if problems:
        rows = "\n".join(f"  {p.dataset}: {p.file} {p.text}" for p in problems[:20])
        more = f"\n  ... and {len(problems) - 20} more" if len(problems) > 20 else ""
        msg = f"{len(problems)} problems with input files (see `punzi check`):\n{rows}{more}"
        raise CheckError(msg)
    chunks = plan_chunks(config, datasets, reports, chunk_size=how.chunk_size)
    stamp = digest([c.shard for c in chunks], [asdict(ds) for ds in datasets])
    if run.is_current("select", stamp):
        log.info("select: up to date (%d shards)", len(chunks))
        return load_selection(run)
    results, errors = _processed(run / "skim", config, reports, chunks, how)
    lost = _account(chunks, errors, config, datasets, allow_lost=how.allow_lost)
    done = [chunk for chunk in chunks if chunk.shard in results]
    _refuse_duplicates(run / "skim", datasets, done)
    _write_results(run, datasets, done, results, lost)
    _remove_stale(run / "skim", {chunk.shard for chunk in chunks})
    if not lost:  # with losses the next call tries the missing chunks again
        run.finish("select", stamp, [run / name for name in OUTPUTS])
    return load_selection(run)


Result = tuple[Histograms, Cutflow]


def _processed(
    skim: Path,
    config: Configuration,
    reports: Mapping[str, Sequence[FileReport]],
    chunks: Sequence[Chunk],
    how: Execution,
) -> tuple[dict[str, Result], dict[str, str]]:
    """Shard -> histograms and cutflow, and for those that could not be made -> why."""
    results = _kept(skim, chunks)
    missing = [chunk for chunk in chunks if chunk.shard not in results]
    log.info("select: %d chunks, %d already done", len(chunks), len(results))
    if not missing:
        return results, {}
    processor = SelectEvents(
        skim=str(skim.resolve()),
        beams=config.beams,
        preselection=config.settings.preselection,
        candidates=config.candidates,
        branches={name: dict(of_files[0].branches) for name, of_files in reports.items()},
    )
    with (
        open_executor(how.executor, workers=how.workers, cluster=how.cluster) as executor,
        _progress_on_disk([skim / chunk.shard for chunk in missing]),
        _quick_collector(),
    ):
        out = run_chunks(executor, missing, processor)
    unwritten = [found["unwritten"] for found in out.values() if "unwritten" in found]
    if unwritten:  # no loss of events that --allow-lost might accept
        msg = f"cannot write to {skim}: {unwritten[0]}; make room and run again"
        raise SelectionError(msg)
    results |= {s: (f["histograms"], f["cutflow"]) for s, f in out.items() if "error" not in f}
    unopened = {"error": "the data cannot be read; copy or make the file again"}
    gone = [chunk.shard for chunk in missing if chunk.shard not in results]
    return results, {shard: out.get(shard, unopened)["error"] for shard in gone}


@contextlib.contextmanager
def _quick_collector() -> Iterator[None]:
    """Hide what is there now from the collector: a call after each chunk would take 0.2 s."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def run_chunks(executor: Any, chunks: Sequence[Chunk], processor: Any) -> dict[str, dict[str, Any]]:
    """Process chunks with coffea; one whose file cannot be opened is missing from the result."""
    coffea.util.coffea_console.quiet = True
    runner = Runner(
        executor,
        schema=NtupleSchema,
        metadata_cache={},
        skipbadfiles=(Exception,),
        processor_compression=None if type(executor).__name__ == "IterativeExecutor" else 1,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Skipping bad file|Performed attempt")
        try:
            return dict(runner.run([chunk.work_item() for chunk in chunks], processor)["out"])
        except ValueError as error:
            if "No chunks returned results" in str(error):  # every single one failed
                return {}
            raise


def _kept(skim: Path, chunks: Sequence[Chunk]) -> dict[str, Result]:
    """Results of shards that are already there; a damaged one is made again."""
    results = {}
    for chunk in chunks:
        path = skim / chunk.shard
        if not path.exists():
            continue
        try:
            table = read_shard(path)
            columns = {name: table[name].to_numpy() for name in SCHEMA.names}
            results[chunk.shard] = (shard_histograms(columns), shard_cutflow(table))
        except (SkimError, KeyError, ValueError, TypeError):
            log.warning("the skim file %s is damaged and is made again", path)
            path.unlink()
    return results


@contextlib.contextmanager
def _progress_on_disk(shards: Sequence[Path]) -> Iterator[None]:
    """A bar that counts the shards on disk: right for any executor, here or far away."""
    finished = threading.Event()

    def watch() -> None:
        waiting = set(shards)
        with progress("select", len(shards)) as advance:
            while waiting and not finished.wait(0.3):
                arrived = {path for path in waiting if path.exists()}
                waiting -= arrived
                advance(len(arrived))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _account(
    chunks: Sequence[Chunk],
    errors: Mapping[str, str],
    config: Configuration,
    datasets: Sequence[Dataset],
    *,
    allow_lost: bool,
) -> dict[str, float]:
    """Share of rows lost per data set; without `allow_lost` any loss stops the run."""
    gone = [chunk for chunk in chunks if chunk.shard in errors]
    if not gone:
        return {}
    rows = {ds.name: [0, 0] for ds in datasets}
    for chunk in chunks:
        rows[chunk.dataset][0] += chunk.stop - chunk.start
        rows[chunk.dataset][1] += (chunk.stop - chunk.start) * (chunk.shard in errors)
    lost = {name: missing / total for name, (total, missing) in rows.items() if missing}
    by_name = {ds.name: ds for ds in datasets}
    details = []
    for chunk in gone[:10]:
        problems = inspect_file(
            chunk.file, wanted_branches(config, by_name[chunk.dataset])
        ).problems
        why = "; ".join(problems) or errors[chunk.shard]
        details.append(f"  {chunk.dataset}: {chunk.file} rows {chunk.start}-{chunk.stop}: {why}")
    text = f"{len(gone)} of {len(chunks)} chunks were lost:\n" + "\n".join(details)
    if not allow_lost or any(share == 1 for share in lost.values()):
        msg = f"{text}\nMend the files and run again, or accept the loss with --allow-lost"
        raise SelectionError(msg)
    log.warning("%s", text)
    for name, share in lost.items():
        log.warning(
            "%s: %.2f %% of the rows are lost; its weights are corrected", name, 100 * share
        )
    return lost


def _refuse_duplicates(skim: Path, datasets: Sequence[Dataset], chunks: Sequence[Chunk]) -> None:
    """The same event twice in one data set is an error, with the first of them."""
    for ds in datasets:
        if ds.duplicates_allowed:
            continue
        shards = [skim / chunk.shard for chunk in chunks if chunk.dataset == ds.name]
        keys = [read_shard(shard, ["key"])["key"].to_numpy() for shard in shards]
        together = np.sort(np.concatenate(keys)) if keys else np.empty(0, np.uint64)
        repeats = np.unique(together[1:][together[1:] == together[:-1]])
        if not repeats.size:
            continue
        rows = [
            np.stack([t[name].to_numpy() for name in IDENTITY], axis=1)[
                np.isin(t["key"].to_numpy(), repeats)
            ]
            for t in (read_shard(shard, ["key", *IDENTITY]) for shard in shards)
        ]
        events, times = np.unique(np.concatenate(rows), axis=0, return_counts=True)
        if not (times > 1).any():
            continue  # different events whose hashes agree by chance
        first = [dict(zip(IDENTITY, map(int, e), strict=True)) for e in events[times > 1][:3]]
        msg = (
            f"{ds.name}: {int((times - 1).sum())} events stand in the selection more than once, "
            f"first {first}; remove the repeated files or set `duplicates: allow` for this sample"
        )
        raise SelectionError(msg)


def _write_results(
    run: RunFolder,
    datasets: Sequence[Dataset],
    chunks: Sequence[Chunk],
    results: Mapping[str, Result],
    lost: Mapping[str, float],
) -> None:
    histograms: dict[str, Histograms] = {}
    flows: dict[str, Any] = {}
    index = []
    for ds in datasets:
        norm = ds.constant_weight * ds.scale / (1 - lost.get(ds.name, 0.0))
        own = [chunk for chunk in chunks if chunk.dataset == ds.name]
        total, flow = empty_histograms(), None
        for chunk in own:
            filled, counted = results[chunk.shard]
            total = added(total, filled)
            flow = counted if flow is None else flow + counted
            index.append(
                {
                    "sample": ds.sample,
                    "mass_gev": None if np.isnan(ds.mass_gev) else ds.mass_gev,
                    "shard": chunk.shard,
                    "normalisation": norm,
                }
            )
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
    save_json(run / "histograms.json", histograms)
    save_root(run / "histograms.root", histograms)
    write_json(run / "cutflow.json", flows)
    write_json(run / INDEX, {"parts": index, "lost": dict(lost)})


def _remove_stale(skim: Path, wanted: set[str]) -> None:
    for path in skim.glob("*/*.parquet"):
        if str(path.relative_to(skim)) not in wanted:
            path.unlink()


def load_selection(run: RunFolder) -> Selection:
    """The skim of a run, as `select` left it."""
    try:
        index = json.loads((run / INDEX).read_text())
    except (OSError, ValueError):
        msg = f"{run.path} has no selected events; run `punzi select -r {run.name}` first"
        raise SelectionError(msg) from None
    parts = tuple(
        Part(
            sample=row["sample"],
            shard=run / "skim" / row["shard"],
            mass_gev=np.nan if row["mass_gev"] is None else row["mass_gev"],
            normalisation=row["normalisation"],
        )
        for row in index["parts"]
    )
    return Selection(parts, index["lost"])
