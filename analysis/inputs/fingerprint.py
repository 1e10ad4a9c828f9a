"""Identity of a file's content, without reading all of it: its head, its tail and its size.

The tail of a ROOT file holds the directory with the time of every object in it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.run.folder import digest

if TYPE_CHECKING:
    from analysis.inputs.check import FileReport

HEAD_BYTES, TAIL_BYTES = 1024, 65536


def fingerprint(report: FileReport) -> str:
    """Of a file that was inspected; one behind a URL is known by its UUID."""
    if "://" in report.file:
        return digest(report.uuid, report.n_entries)
    return local_fingerprint(Path(report.file))


def local_fingerprint(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        stream.seek(max(0, size - TAIL_BYTES))
        tail = stream.read()
    return hashlib.blake2b(head + tail, digest_size=16).hexdigest() + f"-{size}"
