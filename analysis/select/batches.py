"""Chunks in batches, and where they are processed when nobody says it.

    batch     chunks in a row with about ROWS rows together, at least PIECES batches per worker
    auto      threads; processes where many chunks are small

What an executor of coffea does for a piece of work (progress bars that nobody sees, copies, a look
at all that is not yet done) takes a millisecond here and 25 on a cluster, as long as a small file
itself. Small files are also mostly Python, which one thread at a time runs; a process must import
everything first, two seconds, and pays only for many files. No result depends on either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.run.executors import Execution
from analysis.select.chunks import Chunk
from analysis.select.processor import Batch

ROWS = 250_000  # of a batch: a second of work at most
PIECES = 16  # per worker: nobody waits long for the last
CLUSTER = 4096  # pieces: workers come and go
MANY_CHUNKS, SMALL = 500, 100_000  # chunks, and rows of one
CHUNKS_OF_A_PROCESS = 100  # less do not pay for its start


def executor_for(chunks: Sequence[Chunk], execution: Execution) -> Execution:
    """The execution with `auto` decided."""
    if execution.executor != "auto":
        return execution
    n, rows = len(chunks), sum(chunk.stop - chunk.start for chunk in chunks)
    workers = min(execution.workers, n // CHUNKS_OF_A_PROCESS)
    if n < MANY_CHUNKS or rows > SMALL * n or workers < 2:
        return replace(execution, executor="threads")
    return replace(execution, executor="processes", workers=workers)


def batches(chunks: Sequence[Chunk], execution: Execution) -> Sequence[Batch]:
    """All chunks with their numbers, in their order."""
    pieces = CLUSTER if execution.executor == "dask" else PIECES * execution.workers
    most = min(ROWS, sum(chunk.stop - chunk.start for chunk in chunks) // pieces)
    found: list[list[tuple[int, Chunk]]] = []
    rows = most
    for number, chunk in enumerate(chunks):
        if rows >= most:
            found.append([])
            rows = 0
        found[-1].append((number, chunk))
        rows += chunk.stop - chunk.start
    return found
