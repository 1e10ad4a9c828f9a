"""A map whose calls are shared by a few threads, the calling one among them.

Made for tasks of a tenth of a millisecond that release the interpreter: the caller works too, every
other thread is woken once per map and not once per task, and one that wakes too late is called off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def shared_map(threads: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map(task, parts)` for tasks without return value; with one thread it is map itself."""
    if threads <= 1:
        yield map
        return
    with ThreadPoolExecutor(threads - 1) as pool:

        def run(task: Callable[[Any], None], parts: Iterable[Any]) -> Iterable[None]:
            waiting = deque(parts)

            def work() -> None:
                while True:
                    try:
                        part = waiting.popleft()
                    except IndexError:
                        return
                    task(part)

            others = [pool.submit(work) for _ in range(min(threads, len(waiting)) - 1)]
            work()
            for other in others:
                if not other.cancel():
                    other.result()
            return ()

        yield run
