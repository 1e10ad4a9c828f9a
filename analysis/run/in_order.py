"""Work done in parallel, handed back in order, with little of it in memory.

    results = work(function, tasks)         results[i] = function(tasks[i]), i = 0, 1, 2 ...

At most 2 tasks per worker are begun before the oldest result is taken: a slow reader of the results
slows the work down instead of filling the memory. The executors are those of run/executors.py; the
runner of coffea is not used here because it keeps every result until the last one is there.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from analysis.run.executors import IN_THREADS, Execution, dask_client
from analysis.terminal.interrupts import process_pool

Work = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
Submit = Callable[[Callable[[Any], Any], Any], Any]

AHEAD_PER_WORKER = 2


@contextlib.contextmanager
def ordered_map(execution: Execution) -> Iterator[Work]:
    """A map over tasks on the chosen executor; what is not begun is dropped at the end."""
    name, workers = execution.executor, execution.workers
    if name == "iterative":
        yield map
    elif name == "dask":
        with dask_client(workers=workers, cluster=execution.cluster) as client:
            yield _in_order(lambda f, task: client.submit(f, task, pure=False, retries=3), workers)
    else:
        in_threads = name in IN_THREADS
        pool: Executor = ThreadPoolExecutor(workers) if in_threads else process_pool(workers)
        try:
            yield _in_order(pool.submit, workers)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _in_order(submit: Submit, workers: int) -> Work:
    def work(function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        for task in tasks:
            waiting.append(submit(function, task))
            if len(waiting) >= AHEAD_PER_WORKER * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    return work
