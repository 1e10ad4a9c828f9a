"""A parquet file as a table: columns of numbers in groups of rows.

    rows [a, b)  ->  groups that hold them  ->  one column of each, decompressed

Plain numbers are read from their pages (plain_parquet.py), anything else by pyarrow. A reader of
pyarrow keeps what it has asked the file for until it comes, and holds it for one question at a
time: two threads with the same reader wait for ever, or end the process. So every thread has a
reader of its own, and none asks ahead; the description of the file is read once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.inputs.plain_parquet import PlainParquet
from analysis.inputs.root_bytes import LocalFile

Array = npt.NDArray[Any]


class ParquetTable:
    """The table of a local file; any number of threads may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        first = self._opened(None)
        self._readers = threading.local()
        self._readers.own = first
        self.metadata, self.schema = first.metadata, first.schema_arrow
        _refuse_truncated(path, self.metadata)
        self.n_entries = int(self.metadata.num_rows)
        self.names: Sequence[str] = list(self.schema.names)
        sizes = [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        if min(sizes, default=0) < 0 or self.starts[-1] != self.n_entries:
            msg = f"is damaged: {self.n_entries} rows in groups of {sum(sizes)}"
            raise ValueError(msg)
        self.plain = PlainParquet(LocalFile(path), self.metadata, self.schema, self.starts)

    def problem(self, name: str) -> str | None:
        """Why a column is not one number per row; None if it is."""
        if Counter(self.names)[name] > 1:
            return f"has {Counter(self.names)[name]} columns {name!r}; rename one of them"
        kind = self.schema.field(name).type
        if np.dtype(_numpy_type(kind)).kind in "fiub":
            return None
        return f"column {name!r} is {kind}, expected one number"

    def read(self, name: str, start: int, stop: int) -> Array:
        """Rows [start, stop) of a column."""
        start, stop = max(start, 0), min(stop, self.n_entries)
        if stop > start and (plain := self.plain.read(name, start, stop)) is not None:
            return plain
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        last = int(np.searchsorted(self.starts, stop, side="left"))
        groups = list(range(max(first, 0), last))
        if stop <= start or not groups:
            return np.empty(0, _numpy_type(self.schema.field(name).type))
        # no threads of its own: columns and pieces are read beside each other by ours
        column = self._reader().read_row_groups(groups, columns=[name], use_threads=False)[name]
        begin = start - int(self.starts[groups[0]])
        n_whole = int(self.starts[groups[-1] + 1] - self.starts[groups[0]])
        if len(column) != n_whole:  # pyarrow passes over pages of an unknown type
            msg = f"column {name!r} has {len(column)} rows, the file says {n_whole}"
            raise ValueError(msg)
        values: Array = column.slice(begin, stop - start).to_numpy()
        return values

    def borders(self, names: Sequence[str]) -> Array:  # noqa: ARG002
        """First row of each group, and the end."""
        return self.starts

    def types(self) -> dict[str, Any]:
        """Column -> type, of all columns, for a copy; TypeError names one that cannot be copied."""
        found = {}
        for field in self.schema:
            kind = np.dtype(_numpy_type(field.type))
            if kind.kind not in "fiub":
                msg = f"column {field.name!r} is {field.type}"
                raise TypeError(msg)
            found[field.name] = kind
        return found

    def _reader(self) -> Any:
        """That of this thread; all are closed when nobody holds the table any more."""
        if not hasattr(self._readers, "own"):
            self._readers.own = self._opened(self.metadata)
        return self._readers.own

    def _opened(self, metadata: Any) -> Any:
        import pyarrow.parquet as pq  # a tenth of a second that a file of ROOT does without

        return pq.ParquetFile(self.path, metadata=metadata, memory_map=False, pre_buffer=False)


def _refuse_truncated(path: Path, metadata: Any) -> None:
    """Its end is there and its beginning: what is missing is where the last group should be."""
    if metadata.num_row_groups == 0:
        return
    group = metadata.row_group(metadata.num_row_groups - 1)
    columns = [group.column(i) for i in range(group.num_columns)]
    first = [c.dictionary_page_offset or c.data_page_offset for c in columns]
    end = max(a + c.total_compressed_size for a, c in zip(first, columns, strict=True))
    size = path.stat().st_size
    if end > size - metadata.serialized_size:
        msg = f"is truncated: columns end at byte {end}, the file has {size} bytes"
        raise ValueError(msg)


def _numpy_type(kind: Any) -> Any:
    try:
        return kind.to_pandas_dtype()
    except NotImplementedError:
        return object
