"""The chunks of a selection on their way through coffea, and what came back of each.

    shards that are there  ->  kept        the others  ->  coffea  ->  result, or why there is none

Chunks may be processed anywhere and in any order. A chunk that fails is named and never ends the
others; a disk that is full is no loss of events and ends everything.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coffea.util

from analysis.inputs.tables import open_table
from analysis.run.executors import Execution, open_executor
from analysis.run.folder import RunFolder
from analysis.select.chunks import Chunk
from analysis.select.events import ChunkCounts
from analysis.select.histogram_sums import Sums, skim_sums
from analysis.select.processor import SelectEvents
from analysis.select.skim import SkimError, read_shard, shard_counts
from analysis.terminal.console import progress
from selection.errors import UserError
from selection.preselection import PRESELECTION
from selection.search import Search

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)


class SelectionError(UserError):
    """The selection stopped; the message says where and what to do."""


Result = tuple[Sums, ChunkCounts]


def processed_chunks(
    run: RunFolder,
    config: Configuration,
    chunks: Sequence[Chunk],
    execution: Execution,
) -> tuple[dict[str, Result], dict[str, str]]:
    """Shard -> sums of its histograms and cutflow, and for those that could not be made -> why."""
    searches = {PRESELECTION: config.definition, **config.region_searches}
    results = _kept(run.path, chunks, searches)
    missing = [left for chunk in chunks if (left := _without(chunk, results)).shards]
    log.info("select: %d chunks, %d already done", len(chunks), len(chunks) - len(missing))
    if not missing:
        return results, {}
    processor = SelectEvents(
        run=str(run.path.resolve()),
        searches=searches,
        candidates=config.candidates,
    )
    with (
        open_executor(execution) as executor,
        _progress_on_disk([run.path / s for chunk in missing for s in chunk.shards.values()]),
    ):
        out = run_chunks(executor, missing, processor)
    unwritten = [found["unwritten"] for found in out.values() if "unwritten" in found]
    if unwritten:  # no loss of events that --allow-lost might accept
        msg = f"cannot write to {run.path}: {unwritten[0]}; make room and run again"
        raise SelectionError(msg)
    made = {shard: found["made"] for shard, found in out.items() if "made" in found}
    results |= {shard: (found.sums, found.counts) for shard, found in made.items()}
    unopened = {"error": "the data cannot be read; copy or make the file again"}
    gone = [s for chunk in missing for s in chunk.shards.values() if s not in results]
    return results, {shard: out.get(shard, unopened)["error"] for shard in gone}


def run_chunks(executor: Any, chunks: Sequence[Chunk], work: SelectEvents) -> dict[str, Any]:
    """Process chunks with an executor of coffea; a chunk that failed says why."""
    coffea.util.coffea_console.quiet = True
    try:
        found, _ = executor(list(chunks), work, {})
    finally:
        open_table.cache_clear()
    return dict(found)


def _without(chunk: Chunk, results: Mapping[str, Result]) -> Chunk:
    """The chunk with the shards that are still to be made."""
    return replace(chunk, shards={r: s for r, s in chunk.shards.items() if s not in results})


def _kept(run: Path, chunks: Sequence[Chunk], searches: Mapping[str, Search]) -> dict[str, Result]:
    """Results of shards that are already there; a damaged one is made again."""
    results = {}
    for region, shard in ((r, s) for chunk in chunks for r, s in chunk.shards.items()):
        path = run / shard
        if not path.exists():
            continue
        try:
            table = read_shard(path)
            columns = {name: table[name].to_numpy() for name in table.column_names}
            counts = ChunkCounts.from_plain(shard_counts(table))
            results[shard] = (skim_sums(columns, searches[region]), counts)
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
