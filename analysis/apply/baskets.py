"""Baskets of a tree that is being written, from the arrays to the file without a copy.

    key | class, name, title | buffer, size of an entry, entries, end | 0 | numbers, big-endian

uproot turns every array to bytes, joins them with the head of the basket and writes the result: two
copies, as expensive as the network. Here the head is written, then the array as it lies in memory,
into blocks that the file system was asked for at once: found page by page they cost half as much
again as the copy.
Everything else, the place in the file and the tree's description of its baskets, is uproot's own;
so are all baskets where a version of uproot has other parts than those used here.
"""

from __future__ import annotations

import ctypes
import struct
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION, BASKET_VERSION = 1004, 3  # of a key with places of eight bytes, and of a basket
BUFFER = 32000  # bytes, ROOT's default; nobody reads it
KEY = struct.Struct(">ihiIhhqq")
END = struct.Struct(">Hiiiix")
KEEP_SIZE = 1  # fallocate: the file is no longer than what was written
LARGEST = 2**30  # bytes; uproot refuses what ROOT could not read
PARTS = ("_directory", "_freesegments", "_name", "write_np_basket")  # of uproot


def write_without_copies(tree: Any) -> None:
    """Let a tree of uproot that is being written store its uncompressed numbers directly."""
    cascade = getattr(tree, "_cascading", None)  # uproot has no other door
    if cascade is None or not all(hasattr(cascade, part) for part in PARTS):
        return
    by_uproot = cascade.write_np_basket

    def write(
        sink: Any, name: str, compression: Any, array: npt.NDArray[Any]
    ) -> tuple[int, int, int]:
        direct = array.flags.c_contiguous and 0 < array.nbytes < LARGEST
        if compression is not None or not direct:
            found: tuple[int, int, int] = by_uproot(sink, name, compression, array)
            return found
        return _write(cascade, sink, name, array)

    cascade.write_np_basket = write


def _write(cascade: Any, sink: Any, name: str, array: npt.NDArray[Any]) -> tuple[int, int, int]:
    """One basket; its size with the key unpacked and in the file, and its place."""
    free = cascade._freesegments
    names = b"".join(_text(text) for text in ("TBasket", name, cascade._name))
    n_key = KEY.size + len(names) + END.size
    n_bytes = n_key + array.nbytes
    place = free.allocate(n_bytes, dry_run=False)
    folder = cascade._directory.key.location
    key = KEY.pack(n_bytes, VERSION, array.nbytes, _now(), n_key, 0, place, folder)
    n_entry = array.nbytes // len(array)
    head = key + names + END.pack(BASKET_VERSION, BUFFER, n_entry, len(array), n_bytes)
    _reserve(sink, place, n_bytes)
    sink.write(place, head)
    sink.write(place + len(head), array.reshape(-1).view(np.uint8).data)
    free.write(sink)
    sink.set_file_length(free.fileheader.end)
    sink.flush()
    return n_bytes, n_bytes, place


def _reserve(sink: Any, place: int, n_bytes: int) -> None:
    """Blocks of the disk for what is written next; where there are none, writing will say so.

    By the call of Linux itself: that of Python writes zeros where the file system has no such call.
    """
    with suppress(OSError, AttributeError, ctypes.ArgumentError):
        fallocate = ctypes.CDLL(None).fallocate
        number = ctypes.c_int(sink._file.fileno())
        fallocate(number, ctypes.c_int(KEEP_SIZE), *map(ctypes.c_int64, (place, n_bytes)))


def _text(text: str) -> bytes:
    """A TString."""
    data = text.encode(errors="surrogateescape")
    short = len(data) < 255
    return (bytes([len(data)]) if short else b"\xff" + struct.pack(">I", len(data))) + data


def _now() -> int:
    """The time as ROOT packs it."""
    t = datetime.now()  # noqa: DTZ005  local time, as ROOT has it
    day = (t.year - 1995) << 26 | t.month << 22 | t.day << 17
    return day | t.hour << 12 | t.minute << 6 | t.second
