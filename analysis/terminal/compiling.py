"""A word while numba compiles: the first use of compiled code on a machine takes a minute.

numba keeps what it has compiled, and says when it compiles. So the word comes once on a machine,
and again when the code or numba is another.

Before the first compiled function runs, numba loads what other libraries (vector, and sympy with
it) register for code that uses their types, a second of processor time, and all of scipy.linalg to
see whether there is a BLAS, 0.2 s. None of ours uses either. While it compiles, it asks for every
sum of two numbers anew which of ten operators + may be meant, and colours the messages of those
that are not: a sixth of a compilation. A process that is a command of ours goes without
(`alone_in_process`), one that imports us does not.

Workers take turns (`said_for_workers`): what one compiles it writes down, the next only reads it.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from multiprocessing.context import BaseContext
from multiprocessing.synchronize import Event, RLock
from typing import Any

log = logging.getLogger(__name__)

MESSAGE = "compiling (once on this machine) ..."
ALONE = threading.Event()  # is this process a command of ours?
OURS = ("analysis.", "limits.", "models.", "selection.", "simulation.", "search_")


def alone_in_process() -> None:
    """Say that nobody else's compiled code runs in this process."""
    ALONE.set()
    os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")


@contextmanager
def compiling_said() -> Iterator[None]:
    """A line in the log at the first function of ours that is compiled inside the block."""
    from numba.core import event

    load_numba()
    listener = when_compiling(lambda: log.info(MESSAGE))
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


def load_numba() -> None:
    """Before the first compiled function: a command of ours goes without what it does not need."""
    if ALONE.is_set():
        _load_without_others()
        _remember_operators()


@cache
def _load_without_others() -> None:
    """What numba loads before its first function; a numba with other parts is only slower.

    Compiled code that multiplies matrices would still find its BLAS, when it runs.
    """
    from numba.core import entrypoints
    from numba.np import linalg

    vars(entrypoints)["_already_initialized"] = True
    asked = vars(linalg).get("ensure_blas")
    if asked is None:
        return
    vars(linalg)["ensure_blas"] = lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        vars(linalg)["ensure_blas"] = asked


@cache
def _remember_operators() -> None:
    """What a function makes of numbers, asked once for each function and their types."""
    from numba.core.types import Boolean, Function, Number

    ask = Function.get_call_type
    found: dict[tuple[Any, ...], Any] = {}

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(a, (Boolean, Number)) for a in args):
            return ask(function, context, args, kws)
        asked = function, context, tuple(args)
        if asked in found:
            return found[asked]
        answer = ask(function, context, args, kws)
        # max, min and int are compiled for the options of who calls them: they are asked again
        if answer is not None and function.get_impl_key(answer) is function.typing_key:
            found[asked] = answer
        return answer

    Function.get_call_type = get_call_type  # type: ignore[assignment, method-assign]


def when_compiling(tell: Callable[[], Any]) -> Any:
    """Call `tell` once, at the first function of ours that is compiled in this process.

    One that is loaded as it was compiled before does not count. Returns the listener of numba.
    """
    from numba.core import event

    once = threading.Lock()  # taken by the first, never given back

    class Listener(event.Listener):
        """Hears the beginning and the end of each compilation."""

        def on_start(self, found: Any) -> None:
            module = found.data["dispatcher"].py_func.__module__
            if module.startswith(OURS) and once.acquire(blocking=False):
                tell()

        def on_end(self, found: Any) -> None:
            """Nothing is said: the work goes on."""

    listener = Listener()
    event.register("numba:compile", listener)
    return listener


@dataclass(frozen=True)
class WorkersCompile:
    """What workers are started with."""

    told: Event  # set by the first that compiles
    turn: RLock  # of the one that compiles, or reads what was compiled
    alone: bool  # as in `alone_in_process`
    collector: tuple[int, int, int]  # how often Python's looks; a compiler makes many objects


def compile_in_turn(workers: WorkersCompile) -> None:
    """In a worker: say that it compiles, and never compile what another one is compiling."""
    from numba.core import event

    class Turn(event.Listener):
        """numba announces its own lock before it looks for what is compiled, and after it wrote."""

        def on_start(self, _: Any) -> None:
            workers.turn.acquire()

        def on_end(self, _: Any) -> None:
            workers.turn.release()

    gc.set_threshold(*workers.collector)
    if workers.alone:
        _load_without_others()
        _remember_operators()
    event.register("numba:compiler_lock", Turn())
    when_compiling(workers.told.set)


@contextmanager
def said_for_workers(context: BaseContext) -> Iterator[WorkersCompile]:
    """For the processes that are given to `compile_in_turn`: a line in the log of this one."""
    workers = WorkersCompile(context.Event(), context.RLock(), ALONE.is_set(), gc.get_threshold())
    ended = threading.Event()

    def wait() -> None:
        workers.told.wait()
        if not ended.is_set():
            log.info(MESSAGE)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    try:
        yield workers
    finally:
        ended.set()
        workers.told.set()
        waiting.join()
