"""Files that are complete or not there: the one way in which this project writes.

    write to a temporary name beside the file  ->  rename

A reader never sees half of a file, and an interrupt leaves what was there before. Temporary names
begin with a dot; a run folder that is opened again removes those that a killed process left. It
stands in the most upstream room because every room writes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it at the end, removed on any failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # unique over threads, processes and hosts: a cluster may try the same piece of work twice
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(6)}.tmp{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename is None:  # a write that failed does not know where
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """On the disk, not only in its cache, before the file has its name: what cost hours to make."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        # names of files and branches need not be UTF-8
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
