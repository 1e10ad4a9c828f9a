"""Ctrl-C: never lost, and handled by one process.

Python raises KeyboardInterrupt wherever the main thread happens to be. Inside a destructor it is
printed and forgotten, inside the import of a compiled library it may become any other error.

A terminal sends Ctrl-C to every process of a command. Only the first one knows what to do; each of
the others would end with a traceback of its own, in the middle of an import if it has just begun.
What is blocked in a process is blocked from the first moment in those that it starts.

A process that is started does not run the script of its first one: Python would do it, so that a
script of a reader without `if __name__ == "__main__"` started the whole analysis again in each.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerContext, ForkServerProcess
from types import FrameType, ModuleType
from typing import Any


def notice_interrupts() -> threading.Event:
    """Raise KeyboardInterrupt until it gets through; the event says that there was one.

    To be called in the main thread. Where Ctrl-C is ignored, as in background jobs of a script, it
    stays ignored.
    """
    pressed = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = _interrupt_again
    return pressed


def _interrupt_again(lost: Any) -> None:
    """Called by Python with exceptions that it is going to forget."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    # a moment later: here, and where it is called from, it would be forgotten again;
    # to the main thread itself: a signal to the process would not wake it from waiting
    main_thread = threading.main_thread().ident
    again = threading.Timer(0.05, signal.pthread_kill, (main_thread, signal.SIGINT))
    again.daemon = True
    with suppress(RuntimeError):  # the interpreter is going down already
        again.start()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Processes started inside the block by this thread never see Ctrl-C."""
    resource_tracker.ensure_running()  # the first process of all; its start ends every blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class FreshProcess(ForkServerProcess):
    """Knows nothing of the script that starts it. multiprocessing offers no other way than this."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802  the name is multiprocessing's
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return ForkServerProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = script


class FreshContext(ForkServerContext):
    """Starts fresh processes."""

    Process = FreshProcess


def process_pool(max_workers: int) -> ProcessPoolExecutor:
    """A pool of fresh processes: not forked from one that has threads."""
    with interrupts_held():
        forkserver.ensure_running()
    return ProcessPoolExecutor(max_workers, mp_context=FreshContext())
