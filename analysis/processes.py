"""Processes that do a share of the work and leave Ctrl-C to the one that started them.

A terminal sends Ctrl-C to every process of a command. Only the first one knows what to do; each of
the others would end with a traceback of its own, in the middle of an import if it has just begun.
What is blocked in a process is blocked from the first moment in those that it starts.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import forkserver, get_context, resource_tracker


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Processes started inside the block never see Ctrl-C; here it comes at the end of it."""
    resource_tracker.ensure_running()  # the first process of all; its start ends every blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process_pool(max_workers: int) -> ProcessPoolExecutor:
    """A pool of fresh processes: not forked from one that has threads."""
    with interrupts_held():
        forkserver.ensure_running()
    return ProcessPoolExecutor(max_workers, mp_context=get_context("forkserver"))


def usual_pool(max_workers: int) -> ProcessPoolExecutor:
    """A pool of processes in the way of the system: on Linux copies, with all that is imported."""
    return ProcessPoolExecutor(
        max_workers,
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
