"""Pages of a column of a parquet file: where they are, what they hold, and their bytes.

    description | packed bytes     a list of values, of dictionary-encoded columns
    description | packed bytes     marks and numbers, or marks and places in the list
    ...

What is not of the plain kind is NotPlainError, and left to pyarrow (plain_parquet.py). Sizes are
compared with what is there before anything is allocated: the bytes come from strangers.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.inputs.root_bytes import LocalFile, NotPlainError, zstd_frame
from analysis.inputs.thrift import fields, varint

PLAIN, OLD_PLACES, RUNS, PLACES = 0, 2, 3, 8  # encodings of numbers and marks
DATA, LIST, DATA_2 = 0, 2, 3  # types of pages
DESCRIBED = 512  # bytes; a description is shorter, one that is not is left to pyarrow
LEVELS = 64  # bytes that a page may have beside its numbers, and two for each row

Array = npt.NDArray[Any]


class Page(NamedTuple):
    """A page, and where it is."""

    kind: int
    encoding: int
    first: int  # row of its group; 0 of a list
    n: int
    at: int  # after its description, and after marks that are not packed
    n_packed: int
    n_whole: int
    marks_inside: bool
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

    @property
    def n_found(self) -> int:
        """Rows of the pages that are known."""
        return self.pages[-1].first + self.pages[-1].n if self.pages else 0


def find_page(file: LocalFile, chunk: Chunk) -> None:
    """The next page."""
    data = file.bytes_at(chunk.next_at, min(DESCRIBED, chunk.end - chunk.next_at))
    page = _page(data, chunk.next_at, chunk.n_found)
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
    """Can it be there and hold what it says?"""
    most = LEVELS + page.n * (2 + chunk.column.stored.itemsize)
    rows = 0 <= page.n < 1 << 31 and page.first + page.n <= chunk.n_rows
    place = page.n_packed >= 0 and page.at + page.n_packed <= chunk.end
    return rows and place and 0 <= page.n_whole <= most


def _page(data: bytes, begin: int, first: int) -> Page:
    """What the bytes at `begin` of the file describe."""
    described, size = fields(data, 0)
    kind, n_whole, n_packed = (described[i] for i in (1, 2, 3))
    marks, packed = 0, True  # bytes of marks before what is packed
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
        plain = plain and (marks == 0 or all_there(data[size : size + marks], n))
    else:
        plain = False
    if not plain or encoding not in (PLAIN, OLD_PLACES, PLACES):
        msg = f"a page of type {kind}"
        raise NotPlainError(msg)
    at, n_packed, n_whole = begin + size + marks, n_packed - marks, n_whole - marks
    return Page(kind, encoding, first, n, at, n_packed, n_whole, kind == DATA, packed)


def all_there(marks: bytes, n: int) -> bool:
    """Are they one run of n times 1? Others are left to pyarrow."""
    run, at = varint(marks, 0)
    return run == 2 * n and marks[at:] == b"\x01"


def page_bytes(file: LocalFile, chunk: Chunk, pages: Sequence[Page]) -> list[Array]:
    """The bytes of pages that follow each other, decompressed."""
    begin = pages[0].at
    data = memoryview(file.bytes_at(begin, pages[-1].at + pages[-1].n_packed - begin))
    return [_whole(chunk, page, data[page.at - begin :][: page.n_packed]) for page in pages]


def _whole(chunk: Chunk, page: Page, data: memoryview) -> Array:
    """The bytes of a page, decompressed."""
    if chunk.codec is None or not page.packed:
        return np.frombuffer(data, np.uint8)
    if chunk.codec == "zstd":
        return zstd_frame(data, page.n_whole)
    if varint(data, 0)[0] != page.n_whole:
        msg = "a compressed page has another size than it says"
        raise ValueError(msg)
    return np.frombuffer(pa.decompress(data, page.n_whole, codec=chunk.codec), np.uint8)
