"""The chunks of a selection on their way through coffea, and what came back of them.

    chunks  ->  batches  ->  coffea  ->  sums and counts, or why there are none

Chunks may be processed anywhere and in any order. A chunk that fails is named and never ends the
others; a disk that is full is no loss of events and ends everything.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import coffea.util

from analysis.inputs.tables import open_table
from analysis.run.executors import Execution, open_executor
from analysis.run.folder import RunFolder
from analysis.select.batches import batches, executor_for
from analysis.select.chunks import Chunk
from analysis.select.gathered import Gathered, Totals
from analysis.select.processor import SelectEvents
from analysis.terminal.console import progress
from selection.errors import UserError
from selection.preselection import PRESELECTION

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)

Found = TypeVar("Found")


class SelectionError(UserError):
    """The selection stopped; the message says where and what to do."""


def processed_chunks(
    run: RunFolder,
    config: Configuration,
    chunks: Sequence[Chunk],
    execution: Execution,
) -> tuple[Totals, dict[str, str]]:
    """Sums of histograms and cutflow by region and data set, and shard -> why it is not there."""
    searches = {PRESELECTION: config.definition, **config.region_searches}
    shards = [[run.path / shard for shard in chunk.shards.values()] for chunk in chunks]
    missing = [[path for path in of_chunk if not path.exists()] for of_chunk in shards]
    there = sum(not paths for paths in missing)
    log.info("select: %d chunks, %d already done", len(chunks), there)
    how = Execution("iterative") if there == len(chunks) else executor_for(chunks, execution)
    processor = SelectEvents(
        run=str(run.path.resolve()),
        searches=searches,
        candidates=config.candidates,
    )
    with (
        open_executor(how) as executor,
        _progress_on_disk([path for paths in missing for path in paths]),
    ):
        found = run_chunks(executor, batches(chunks, how), processor, Gathered())
    for shard in found.damaged:
        log.warning("the skim file %s is damaged and is made again", run.path / shard)
    unopened = "the data cannot be read; copy or make the file again"
    found = found.complete(len(chunks), otherwise=unopened)
    for outcome in found.failed.values():
        if outcome.unwritten:  # no loss of events that --allow-lost might accept
            msg = f"cannot write to {run.path}: {outcome.unwritten}; make room and run again"
            raise SelectionError(msg)
    why = ((chunks[number], failed.error) for number, failed in sorted(found.failed.items()))
    return found.totals, {shard: text for chunk, text in why for shard in chunk.shards.values()}


def run_chunks(
    executor: Any, work: Sequence[Any], function: Callable[[Any], Found], nothing: Found
) -> Found:
    """Map and add with an executor of coffea; nothing: what sums begin with."""
    if not work:
        return nothing
    coffea.util.coffea_console.quiet = True
    try:
        found: Found = executor(list(work), function, nothing)[0]
    finally:
        open_table.cache_clear()
    return found


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
