"""Columns of a parquet file that are one number per row, read page by page from its bytes.

    rows [a, b) of a group  ->  pages that hold them  ->  marks, numbers
                                                          marks, places in the list of the group

pyarrow makes a column of marks and numbers and copies it into one of numbers, in memory that it
asks the system for each time; here the numbers of a page go where they belong. Its description of
the file is used. Marks say which rows are missing: where any is, and for everything else than
plain numbers and places (bits, collections, other encodings and codecs, damage), `read` gives None,
and the column is left to pyarrow. So is a whole group of many small pages: pyarrow holds the
interpreter once for all of them, and here every page costs 15 us of it.

A page begins with its description, and the file ends with that of its groups and columns; both are
structures (thrift.py). pyarrow has read the latter, but ends the process where one asks it for a
codec that it does not know.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.inputs.root_bytes import LocalFile, NotPlainError
from analysis.inputs.thrift import fields, varint

STORED = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
CODECS = {0: None, 1: "snappy", 6: "zstd"}
PLAIN, OLD_PLACES, RUNS, PLACES = 0, 2, 3, 8  # encodings of numbers and marks
DATA, LIST, DATA_2 = 0, 2, 3  # types of pages
TAIL = 8  # bytes after the description of the file
DESCRIBED = 512  # bytes; a description is shorter, one that is not is left to pyarrow
MANY = 8  # pages of a group from which on pyarrow is as fast
LEVELS = 1 << 16  # bytes that a page may have beside its numbers, and two for each row
NOT_HERE = (
    NotPlainError, ArithmeticError, LookupError, MemoryError, OSError, RecursionError, TypeError,
    ValueError, struct.error,
)  # fmt: skip

Array = npt.NDArray[Any]


class Page(NamedTuple):
    """A page, and where it is."""

    kind: int
    encoding: int
    first: int  # row of its group; 0 of a list
    n: int
    at: int  # after its description
    n_packed: int
    n_whole: int
    n_marks: int | None  # bytes before what is compressed; None: inside it
    packed: bool


@dataclass(frozen=True)
class Column:
    """One number per row, or none."""

    at: int  # among the columns of the file
    kind: np.dtype[Any]  # as pyarrow gives it
    stored: np.dtype[Any]
    marked: bool


@dataclass
class Chunk:
    """A column in one group of rows: its pages, found as far as rows are asked for."""

    column: Column
    group: int
    codec: str | None
    next_at: int
    end: int
    n_rows: int
    pages: list[Page] = field(default_factory=list)
    list_page: Page | None = None
    listed: Array | None = None  # made when a place is looked up
    lock: threading.Lock = field(default_factory=threading.Lock)


class PlainParquet:
    """The plain columns of a local file; any number of threads may read it."""

    def __init__(self, file: LocalFile, metadata: Any, schema: Any, starts: Array) -> None:
        self.file, self.starts, self._footer_size = file, starts, metadata.serialized_size
        self._groups: list[Any] | None = None  # their columns, from the end of the file
        self.columns = _columns(metadata.schema, schema)
        self._chunks: dict[str, Chunk] = {}  # of each column the last: rows come in their order

    def read(self, name: str, start: int, stop: int) -> Array | None:
        """Rows [start, stop) of a column; None if they are left to pyarrow."""
        column = self.columns.get(name)
        if column is None:
            return None
        out = np.empty(stop - start, column.kind)
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        last = int(np.searchsorted(self.starts, stop, side="left"))
        try:
            for group in range(first, last):
                begin, end = (int(row) for row in self.starts[group : group + 2])
                a, b = max(begin, start), min(end, stop)
                if a < b:
                    chunk = self._chunk(name, column, group, end - begin)
                    _fill(self.file, chunk, a - begin, out[a - start : b - start])
        except NOT_HERE:
            return None
        return out

    def _chunk(self, name: str, column: Column, group: int, n_rows: int) -> Chunk:
        chunk = self._chunks.get(name)
        if chunk is None or chunk.group != group:
            described = self._described()[group][column.at]
            found = described[3]
            codec, n, size, at = (found[i] for i in (4, 5, 7, 9))
            if 0 < found.get(11, 0) < at:
                at = found[11]
            elsewhere = not described.keys().isdisjoint((1, 8, 9))  # another file, or encrypted
            if elsewhere or n != n_rows or codec not in CODECS:
                msg = f"codec {codec}, {n} rows"
                raise NotPlainError(msg)
            chunk = Chunk(column, group, CODECS[codec], at, at + size, n_rows)
            self._chunks[name] = chunk
        return chunk

    def _described(self) -> list[Any]:
        """The columns of each group."""
        if self._groups is None:
            end = os.fstat(self.file.number).st_size - TAIL
            footer = self.file.bytes_at(end - self._footer_size, self._footer_size)
            self._groups = [found[1] for found in fields(footer, 0)[0][4]]
        return self._groups


def _columns(stored: Any, schema: Any) -> dict[str, Column]:
    """Name -> column, of those that can be one number in each row."""
    found: dict[str, Column] = {}
    names = Counter(schema.names)
    paths = Counter(stored.column(at).path for at in range(len(stored)))  # b in a is "a.b" too
    for at in range(len(stored)):
        column = stored.column(at)
        name, form = column.path, STORED.get(column.physical_type)
        if form is None or names[name] != 1 or paths[name] != 1 or column.max_repetition_level:
            continue
        kind = schema.field(name).type
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if number and column.max_definition_level <= 1:
            marked = column.max_definition_level == 1
            found[name] = Column(at, np.dtype(kind.to_pandas_dtype()), np.dtype(form), marked)
    return found


def _fill(file: LocalFile, chunk: Chunk, start: int, out: Array) -> None:
    """Rows of a group from `start` on, as many as out has."""
    stop = start + len(out)
    with chunk.lock:
        while _found(chunk) < stop:
            _find_page(file, chunk)
            if len(out) == chunk.n_rows > MANY * _found(chunk) > 0:
                msg = "many small pages"
                raise NotPlainError(msg)
        wanted = [p for p in chunk.pages if p.first < stop and p.first + p.n > start]
        if chunk.list_page and chunk.listed is None:
            packed = memoryview(file.bytes_at(chunk.list_page.at, chunk.list_page.n_packed))
            whole = _whole(chunk, chunk.list_page, packed)
            chunk.listed = np.frombuffer(whole, chunk.column.stored, chunk.list_page.n)
    for page in wanted:
        values = _numbers(chunk, page, memoryview(file.bytes_at(page.at, page.n_packed)))
        a, b = max(page.first, start), min(page.first + page.n, stop)
        out[a - start : b - start] = values[a - page.first : b - page.first]


def _found(chunk: Chunk) -> int:
    """Rows of the pages that are known."""
    return chunk.pages[-1].first + chunk.pages[-1].n if chunk.pages else 0


def _find_page(file: LocalFile, chunk: Chunk) -> None:
    """The next page."""
    data = file.bytes_at(chunk.next_at, min(DESCRIBED, chunk.end - chunk.next_at))
    page = _page(data, chunk.next_at, _found(chunk))
    if not _possible(chunk, page):
        msg = f"a page of {page.n} numbers is damaged"
        raise ValueError(msg)
    chunk.next_at = page.at + page.n_packed
    if page.kind == LIST:
        if chunk.list_page:
            msg = "two lists of values"
            raise NotPlainError(msg)
        chunk.list_page = page
    else:
        chunk.pages.append(page)


def _possible(chunk: Chunk, page: Page) -> bool:
    """Can it be there and hold what it says? Bytes come from strangers."""
    most = LEVELS + page.n * (2 + chunk.column.stored.itemsize)
    rows = page.n >= 0 and page.first + page.n <= chunk.n_rows
    place = page.n_packed >= 0 and page.at + page.n_packed <= chunk.end
    marks = 0 <= (page.n_marks or 0) <= min(page.n_packed, page.n_whole)
    return rows and place and marks and page.n_whole <= most


def _page(data: bytes, begin: int, first: int) -> Page:
    """What the bytes at `begin` of the file describe."""
    described, size = fields(data, 0)
    kind, n_whole, n_packed = (described[i] for i in (1, 2, 3))
    marks, packed = None, True
    if kind == DATA:
        n, encoding, of_marks = (described[5][i] for i in (1, 2, 3))
        plain = of_marks == RUNS
    elif kind == LIST:
        n, encoding, first = described[7][1], described[7][2], 0
        plain = encoding != PLACES
    elif kind == DATA_2:
        n, missing, encoding, marks, repeated = (described[8][i] for i in (1, 2, 4, 5, 6))
        packed = described[8].get(7, True)
        # before Arrow 2 compressed pages said that they are not (ARROW-10353)
        plain = missing == repeated == 0 and (packed or n_packed == n_whole)
    else:
        plain = False
    if not plain or encoding not in (PLAIN, OLD_PLACES, PLACES):
        msg = f"a page of type {kind}"
        raise NotPlainError(msg)
    return Page(kind, encoding, first, n, begin + size, n_packed, n_whole, marks, packed)


def _numbers(chunk: Chunk, page: Page, data: memoryview) -> Array:
    """The numbers of a page, as they are stored."""
    body: memoryview | npt.NDArray[np.uint8]
    if page.n_marks is None:
        body = np.frombuffer(_whole(chunk, page, data), np.uint8)
        if chunk.column.marked:
            end = 4 + int(body[:4].view("<u4")[0])
            if not _all_there(body[4:end].tobytes(), page.n):
                msg = "missing numbers"
                raise NotPlainError(msg)
            body = body[end:]
    else:
        n_packed, n_whole = page.n_packed - page.n_marks, page.n_whole - page.n_marks
        rest = page._replace(n_packed=n_packed, n_whole=n_whole)
        body = np.frombuffer(_whole(chunk, rest, data[page.n_marks :]), np.uint8)
    if page.encoding == PLAIN:
        return np.frombuffer(body, chunk.column.stored, page.n)
    if chunk.listed is None:
        msg = "places without a list"
        raise ValueError(msg)
    from analysis.inputs.packed_runs import unpacked_runs  # numba: only files with lists need it

    places = np.empty(page.n, np.uint32)
    if unpacked_runs(body[1:], int(body[0]), places) >= len(chunk.listed):
        msg = "a place beyond the list"
        raise ValueError(msg)
    found: Array = chunk.listed.take(places)
    return found


def _whole(chunk: Chunk, page: Page, data: memoryview) -> Any:
    """The bytes of a page, decompressed."""
    if chunk.codec is None or not page.packed:
        return data
    if chunk.codec == "snappy" and varint(data, 0)[0] != page.n_whole:  # zstd is asked by Arrow
        msg = "a compressed page has another size than it says"
        raise ValueError(msg)
    return pa.decompress(data, page.n_whole, codec=chunk.codec)


def _all_there(marks: bytes, n: int) -> bool:
    """Are the first n marks, in runs of equal ones or of bits, all 1?"""
    at = 0
    while n > 0:
        run, at = varint(marks, at)
        if run & 1:
            size = run >> 1
            bits = int.from_bytes(marks[at : at + size], "little")
            if ~bits & ((1 << min(n, 8 * size)) - 1):
                return False
            n, at = n - 8 * size, at + size
        else:
            if marks[at] != 1:
                return False
            n, at = n - (run >> 1), at + 1
    return True
