"""What a person sees: one progress bar on a terminal, plain log lines elsewhere, tables."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

log = logging.getLogger(__name__)

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)

LOG_EVERY_SECONDS = 10.0

Advance = Callable[..., None]  # advance(n=1, text="")


@contextlib.contextmanager
def progress(title: str, total: int) -> Iterator[Advance]:
    """A bar while the block runs; without a terminal, a log line every ten seconds."""
    if not stderr.is_terminal or log.getEffectiveLevel() > logging.INFO:
        with _logged(title, total) as advance:
            yield advance
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(title, total=total, text="")

        def advance(n: int = 1, text: str = "") -> None:
            bar.update(task, advance=n, text=text)

        yield advance


@contextlib.contextmanager
def _logged(title: str, total: int) -> Iterator[Advance]:
    done, last = 0, time.monotonic()

    def advance(n: int = 1, text: str = "") -> None:
        nonlocal done, last
        done += n
        if time.monotonic() - last > LOG_EVERY_SECONDS:
            last = time.monotonic()
            log.info("%s: %d of %d %s", title, done, total, text)

    yield advance


def configure_logging(level: int) -> None:
    """Log lines to stderr; called once by the command line."""
    handler: logging.Handler = logging.StreamHandler()
    if stderr.is_terminal:  # elsewhere rich would fold long lines
        handler = RichHandler(level, stderr, show_path=False, show_time=False, show_level=False)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.raiseExceptions = False  # a full disk: log.txt stays behind without a traceback
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for package in ("analysis", "limits", "models", "plots", "selection", "simulation"):
        logging.getLogger(package).setLevel(level)


@contextlib.contextmanager
def warnings_only() -> Iterator[None]:
    """Without the lines of progress, unless a person asked for more than usual."""
    package = logging.getLogger("analysis")
    level = package.level
    if level == logging.INFO:
        package.setLevel(logging.WARNING)
    try:
        yield
    finally:
        package.setLevel(level)


@contextlib.contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Keep a copy of the log lines in the run folder."""
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
