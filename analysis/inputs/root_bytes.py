"""The bytes of a local ROOT file: its header, its keys, and what a key holds, decompressed.

    header -> directory -> keys (class, name, cycle, place) -> bytes of an object

Only what a file of plain trees needs, so that a look at one costs a millisecond; anything else is
`NotPlainError`, and uproot reads the file (tables.py). Sizes are compared with what is there before
anything is allocated: the bytes come from strangers.
"""

from __future__ import annotations

import lzma
import os
import struct
import threading
import uuid
import weakref
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cramjam
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import xxhash
from zstandard import ZstdDecompressor, ZstdError, frame_content_size

BIG = 1_000_000  # version of a file from which on places have eight bytes
HEADERS = (struct.Struct(">4siiiiiiiBiiH16s"), struct.Struct(">4siiqqiiiBiqiH16s"))
DIRECTORY = struct.Struct(">HIIii")
KEY = struct.Struct(">ihiIhh")
BLOCK = 9  # bytes before each compressed block: two of its name, its method, two sizes of three
CHECKSUM = 8  # before the data of LZ4
SMALL = 1 << 17  # bytes of a block of zstd that is unpacked into memory of Python
UNKNOWN = -1  # size of what a block of zstd holds, where it does not say
FEW = 4  # a beginning of less than 1 in so many bytes is decompressed alone

_own = threading.local()  # of each thread

Bytes = npt.NDArray[np.uint8]
Packed = bytes | memoryview


class NotPlainError(Exception):
    """Something that is left to uproot."""


@dataclass(frozen=True)
class Key:
    """Where an object is, and what it is."""

    classname: str
    name: str
    cycle: int
    at: int
    n_bytes: int  # with the key itself
    n_object: int  # uncompressed
    n_key: int


class LocalFile:
    """Bytes at any place, for any number of threads; closed when nobody holds it any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self.number)

    def bytes_at(self, at: int, n: int) -> bytes:
        found = os.pread(self.number, n, at) if at > 0 < n else b""
        if len(found) != n:
            msg = f"{self.path} ends before byte {at + n}"
            raise ValueError(msg)
        return found


def text_at(data: bytes, at: int) -> tuple[str, int]:
    """A TString, and where it ends."""
    n, begin = data[at], at + 1
    if n == 255:
        n, begin = struct.unpack_from(">i", data, at + 1)[0], at + 5
    return data[begin : begin + n].decode(errors="surrogateescape"), begin + n


def directory(file: LocalFile) -> tuple[dict[str, Key], str]:
    """Name -> its newest key, in the order of the file, and the file's UUID."""
    head = os.pread(file.number, 128, 0)
    version = struct.unpack_from(">i", head, 4)[0]
    fields = HEADERS[version >= BIG].unpack_from(head)
    begin, n_name = fields[2], fields[7]
    start = file.bytes_at(begin + n_name, DIRECTORY.size + 24)
    wide = DIRECTORY.unpack_from(start)[0] > 1000
    places = struct.unpack_from(">qqq" if wide else ">iii", start, DIRECTORY.size)
    n_listed = DIRECTORY.unpack_from(start)[3]
    listed = file.bytes_at(places[2], n_listed)
    at = KEY.unpack_from(listed)[4]  # the list is an object with a key of its own
    found: dict[str, Key] = {}
    for _ in range(struct.unpack_from(">i", listed, at)[0]):
        key, next_at = _key_at(listed, at + 4)
        at = next_at - 4
        if key.name not in found or found[key.name].cycle < key.cycle:
            found[key.name] = key
    return found, str(uuid.UUID(bytes=fields[-1]))


def _key_at(data: bytes, at: int) -> tuple[Key, int]:
    n_bytes, version, n_object, _, n_key, cycle = KEY.unpack_from(data, at)
    wide = version > 1000
    place = struct.unpack_from(">q" if wide else ">i", data, at + KEY.size)[0]
    classname, end = text_at(data, at + KEY.size + (16 if wide else 8))
    name, end = text_at(data, end)
    _, end = text_at(data, end)
    return Key(classname, name, cycle, place, n_bytes, n_object, n_key), end


def object_bytes(file: LocalFile, key: Key) -> bytes:
    """What a key holds, without the key."""
    packed = file.bytes_at(key.at + key.n_key, key.n_bytes - key.n_key)
    if len(packed) == key.n_object:
        return packed
    return unpacked(packed, key.n_object).tobytes()


def unpacked(packed: Packed, promised: int, wanted: int | None = None) -> Bytes:
    """All blocks, decompressed, or only their first `wanted` bytes where that is cheaper.

    The size of all of them must be the promised one.
    """
    size = unpacked_size(packed, promised)
    if packed[:2] == b"ZS" and len(packed) == BLOCK + _n_packed(packed, 0):
        with suppress(OSError, ZstdError):  # damaged: said by the other way, in the words of all
            return _one_zstd(packed[BLOCK:], size, size if wanted is None else wanted)
    out = np.empty(size, np.uint8)
    unpack(packed, out)
    return out


def zstd_frame(packed: Packed, size: int) -> Bytes:
    """What one frame holds, which must be so much.

    Arrow keeps the memory of large ones, zstandard what the library makes anew for every call, a
    third of the time of a small one.
    """
    if size >= SMALL:
        return np.frombuffer(pa.decompress(packed, size, codec="zstd"), np.uint8)
    if frame_content_size(packed) not in (size, UNKNOWN):
        msg = f"a compressed block says that it has another size than {size} bytes"
        raise OSError(msg)
    if not hasattr(_own, "zstd"):
        _own.zstd = ZstdDecompressor()
    found = _own.zstd.decompress(packed, max_output_size=size, allow_extra_data=False)
    if len(found) != size:
        msg = f"a compressed block gives {len(found)} bytes, {size} are promised"
        raise OSError(msg)
    return np.frombuffer(found, np.uint8)


def _one_zstd(block: Packed, size: int, wanted: int) -> Bytes:
    """By the library itself: cramjam takes a block in pieces, from buffer to buffer."""
    if size < SMALL or wanted > size // FEW:
        return zstd_frame(block, size)
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        found = np.frombuffer(stream.read(wanted), np.uint8)
    if len(found) < wanted:
        msg = f"a compressed block gives {len(found)} bytes, {size} are promised"
        raise OSError(msg)
    return found


def _n_packed(packed: Packed, at: int) -> int:
    """Compressed bytes of the block whose head is there."""
    return int.from_bytes(packed[at + 3 : at + 6], "little")


def unpacked_size(packed: Packed, promised: int) -> int:
    """The size that the blocks give, which must be the one that the key promises."""
    at = total = 0
    while at + BLOCK <= len(packed):
        total += int.from_bytes(packed[at + 6 : at + 9], "little")
        at += BLOCK + _n_packed(packed, at)
    if at != len(packed) or total != promised:
        msg = f"compressed blocks give {total} bytes, {promised} are promised"
        raise ValueError(msg)
    return total


def unpack(packed: Packed, out: Bytes) -> None:
    """Decompress all blocks into `out`, whose size is theirs."""
    view = memoryview(packed)
    at = done = 0
    while at < len(view):
        n = _n_packed(view, at)
        m = int.from_bytes(view[at + 6 : at + 9], "little")
        block = view[at + BLOCK : at + BLOCK + n]
        _unpack_block(bytes(view[at : at + 2]), block, out[done : done + m])
        at, done = at + BLOCK + n, done + m


def _unpack_block(kind: bytes, block: Any, out: Any) -> None:
    if kind == b"ZS":
        made = cramjam.zstd.decompress_into(block, out)
    elif kind == b"L4":
        if xxhash.xxh64_intdigest(block[CHECKSUM:]) != int.from_bytes(block[:CHECKSUM], "big"):
            msg = "a compressed block is damaged: its checksum is another one"
            raise ValueError(msg)
        made = cramjam.lz4.decompress_block_into(block[CHECKSUM:], out, output_len=len(out))
    elif kind in (b"ZL", b"XZ"):
        plain = (zlib if kind == b"ZL" else lzma).decompress(block)
        made = len(plain)
        out[: min(made, len(out))] = np.frombuffer(plain, np.uint8)[: len(out)]
    else:
        msg = f"compression {kind!r}"
        raise NotPlainError(msg)
    if made != len(out):
        msg = f"a compressed block gives {made} bytes, {len(out)} are promised"
        raise ValueError(msg)
