"""Columns of a parquet file that are one number per row, read page by page from its bytes.

    rows [a, b) of a group  ->  pages that hold them  ->  marks, numbers
                                                          marks, places in the list of the group

pyarrow makes a column of marks and numbers and copies it into one of numbers, in memory that it
asks the system for each time; here the numbers of a page go where they belong. Its description of
the file is used. Marks say which rows are missing: where any is, and for everything else than
plain numbers and places (bits, collections, other encodings and codecs, damage), `read` gives None,
and the column is left to pyarrow. So is a whole group of many small pages that zstd has not packed:
pyarrow lets other threads work once for all of them, and here every page is a moment to wait.

A page begins with its description (parquet_pages.py), and the file ends with that of its groups and
columns. pyarrow has read the latter, but ends the process where one asks it for a codec that it
does not know.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from zstandard import ZstdError

from analysis.inputs.parquet_pages import PLAIN, Array, Chunk, Column, Page, find_page, page_bytes
from analysis.inputs.root_bytes import LocalFile, NotPlainError
from analysis.inputs.thrift import fields
from analysis.terminal.compiling import load_numba

STORED = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
CODECS = {0: None, 1: "snappy", 6: "zstd"}
LOADING = threading.Lock()  # of numba, which two threads cannot load at once
TAIL = 8  # bytes after the description of the file
MANY = 8  # pages of a group from which on pyarrow is as fast
NOT_HERE = (
    NotPlainError, ArithmeticError, LookupError, MemoryError, OSError, RecursionError, TypeError,
    ValueError, ZstdError, struct.error,
)  # fmt: skip


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
        while chunk.n_found < stop:
            find_page(file, chunk)
            small = len(out) == chunk.n_rows > MANY * chunk.n_found > 0
            if small and chunk.codec != "zstd":
                msg = "many small pages"
                raise NotPlainError(msg)
        pages = [p for p in chunk.pages if p.first < stop and p.first + p.n > start]
        if chunk.list_page and chunk.listed is None:
            (whole,) = page_bytes(file, chunk, [chunk.list_page])
            chunk.listed = np.frombuffer(whole, chunk.column.stored, chunk.list_page.n)
    stored = chunk.column.stored
    values = out if out.itemsize == stored.itemsize else np.empty(len(out), stored)
    _read_pages(file, chunk, pages, start, values)
    if values is not out:
        out[:] = values


def _read_pages(
    file: LocalFile, chunk: Chunk, pages: list[Page], start: int, values: Array
) -> None:
    """Numbers of pages to their places among the values of the rows from `start` on."""
    with LOADING:  # here first: a look at files of ROOT does without it
        load_numba()
        from analysis.inputs.packed_runs import read_pages

    if chunk.listed is None and any(page.encoding != PLAIN for page in pages):
        msg = "places without a list"
        raise ValueError(msg)
    word = f"u{values.itemsize}"  # whatever the numbers mean
    listed = np.frombuffer(b"" if chunk.listed is None else chunk.listed, word)
    bodies = page_bytes(file, chunk, pages)
    table = np.array([
        (b.ctypes.data, len(b), p.first - start, p.n, p.encoding == PLAIN,
         chunk.column.marked and p.marks_inside)
        for b, p in zip(bodies, pages, strict=True)
    ])  # fmt: skip
    first = pages[0]  # the only one that may begin before
    room = np.empty(min(first.n, start + len(values) - first.first), word)
    if not read_pages(table, listed, room, values.view(word)):
        msg = "missing numbers, or damage"
        raise NotPlainError(msg)
