"""Identity of a file's content, without reading all of it: its head, its tail and its size.

The tail of a ROOT file holds the directory with the time of every object in it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

HEAD_BYTES, TAIL_BYTES = 1024, 65536


def file_fingerprint(file: str, uuid: str, n_entries: int) -> str:
    """Of a file that is open; one behind a URL is known by its UUID."""
    if "://" in file:
        return f"{uuid}-{n_entries}"
    return local_fingerprint(Path(file))


def local_fingerprint(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        stream.seek(max(0, size - TAIL_BYTES))
        tail = stream.read()
    return hashlib.blake2b(head + tail, digest_size=16).hexdigest() + f"-{size}"
