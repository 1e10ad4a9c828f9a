"""Fields of an RNTuple that are one number per row, read page by page from the bytes of the file.

    rows [a, b)  ->  pages that hold them  ->  decompressed into the column

uproot decompresses whole clusters for any of their rows, and the cluster behind them too where rows
end with one; ROOT writes clusters of millions of rows. Its description of the file is used here,
and its decoding of pages whose bytes are split or whose signs are folded. A field that is anything
else than one stored number (bits, collections, several representations) is left to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import uproot

from analysis.inputs.root_bytes import LocalFile, unpack, unpacked_size

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Field:
    """One number per row, in pages."""

    described: Any  # by uproot
    kind: np.dtype[Any]
    first_rows: Array  # of each page, and the end
    places: Array
    sizes: Array


class PlainNTuple:
    """The plain fields of an RNTuple in a local file."""

    def __init__(self, path: Path, ntuple: Any) -> None:
        self.file, self.ntuple = LocalFile(path), ntuple
        self._fields: dict[str, Field | None] = {}

    @cached_property
    def clusters(self) -> Array:
        """First row of each cluster, and the end."""
        found = self.ntuple.cluster_summaries
        starts = [int(c.num_first_entry) for c in found]
        return np.array([*starts, int(self.ntuple.num_entries)], np.int64)

    def field(self, name: str) -> Field | None:
        """How to read a field; None if that is left to uproot."""
        if name not in self._fields:
            self._fields[name] = _field(self.ntuple, name)
        return self._fields[name]

    def read(self, field: Field, start: int, stop: int) -> Array:
        """Rows [start, stop) of a field."""
        start, stop = max(start, 0), min(stop, int(field.first_rows[-1]))
        out = np.empty(max(stop - start, 0), field.kind)
        if not len(out):
            return out
        first, last = np.searchsorted(field.first_rows, (start, stop - 1), side="right") - 1
        for i in range(first, last + 1):
            begin, end = (int(row) for row in field.first_rows[i : i + 2])
            if start <= begin and end <= stop:
                self._page(field, i, out[begin - start : end - start])
                continue
            page = np.empty(end - begin, field.kind)
            self._page(field, i, page)
            a, b = max(begin, start), min(end, stop)
            out[a - start : b - start] = page[a - begin : b - begin]
        return out

    def _page(self, field: Field, i: int, out: Array) -> None:
        """All numbers of a page."""
        data = self.file.bytes_at(int(field.places[i]), int(field.sizes[i]))
        raw = out.view(np.uint8)
        if len(data) == len(raw):
            raw[:] = np.frombuffer(data, np.uint8)
        else:
            unpacked_size(data, len(raw))
            unpack(data, raw)
        if field.described.split or field.described.zigzag:
            self.ntuple.deserialize_page_decompressed_buffer(out, field.described)
            self.ntuple.post_process(out, field.described)


def _field(ntuple: Any, name: str) -> Field | None:
    number = ntuple[name].field_id
    columns = [c for c in ntuple.column_records if c.field_id == number]
    if len(columns) != 1 or columns[0].first_element_index:
        return None
    column = columns[0].idx
    described = ntuple.get_field_metadata(column)
    index = described.dtype_byte in uproot.const.rntuple_index_types
    kinds = {described.dtype, described.dtype_toread, described.dtype_result}
    if index or described.isbit or described.delta or len(kinds) > 1:
        return None
    linked = [cluster[column] for cluster in ntuple.page_link_list if column < len(cluster)]
    pages = [page for link in linked for page in link.pages]
    rows = np.concatenate([[0], np.cumsum([int(p.num_elements) for p in pages], dtype=np.int64)])
    standard = all(p.locator.type.value == 0 for p in pages)
    if any(link.suppressed for link in linked) or not standard or rows[-1] != ntuple.num_entries:
        return None
    return Field(
        described,
        described.dtype,
        rows,
        np.array([p.locator.offset for p in pages], np.int64),
        np.array([p.locator.num_bytes for p in pages], np.int64),
    )
