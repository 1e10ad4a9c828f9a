"""Tables of numbers in files: TTree, TNtuple and RNTuple of ROOT, and parquet. One way to read all.

    with open_file(path) as file:          file.tables: name -> class, in the order of the file
        table = file.table(name)           table.names: columns, a name may stand twice
        table.read(name, start, stop)      (stop - start,) numbers of one column

A column is read when it is asked for and never kept. `open_table` keeps the last few files open:
opening one costs as much as reading 100 000 rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import uproot

from analysis.inputs.parquet_table import ParquetTable
from analysis.inputs.plain_ntuple import PlainNTuple
from analysis.inputs.plain_tree import PlainTree, plain_file

TREES = ("TTree", "TNtuple", "TNtupleD")
RNTUPLE = "RNTuple"
PARQUET = "parquet"
PARQUET_ENDINGS = (".parquet", ".pq")
OPEN_FILES = 4

Array = npt.NDArray[Any]


class Table(Protocol):
    """Columns of equal length."""

    n_entries: int
    names: Sequence[str]

    def problem(self, name: str) -> str | None:
        """Why a column is not one number per row; None if it is."""

    def read(self, name: str, start: int, stop: int) -> Array:
        """Rows [start, stop) of a column."""

    def borders(self, names: Sequence[str]) -> Array:
        """Rows at which the stored blocks of these columns begin together."""

    def types(self) -> dict[str, Any]:
        """Column -> type, of all columns, for a copy; TypeError names one that cannot be copied."""


class File(Protocol):
    """An open file."""

    tables: dict[str, str]  # name -> class
    content: dict[str, str]  # every object -> class, for messages
    uuid: str

    def table(self, name: str) -> Table: ...


class _Tree:
    """Plain numbers are read directly (plain_tree.py), anything else by uproot when it is asked."""

    def __init__(self, tree: Callable[[], Any], plain: PlainTree | None) -> None:
        self._open, self.plain = tree, plain
        self.n_entries = plain.n_entries if plain else int(self.tree.num_entries)
        self.names: Sequence[str] = plain.names if plain else self.tree.keys(recursive=False)

    @cached_property
    def tree(self) -> Any:
        return self._open()

    @cached_property
    def first(self) -> dict[str, Any]:
        return {b.name: b for b in reversed(self.tree.branches)}

    def branch(self, name: str) -> Any:
        return self.first[name] if name in self.first else self.tree[name]  # a branch has a length

    def problem(self, name: str) -> str | None:
        plain = self.plain.branches.get(name) if self.plain else None
        if plain is None:
            branch = self.branch(name)
            if not _is_number(branch.interpretation):
                return f"branch {name!r} is {branch.typename}, expected one number"
            n = branch.num_entries
        else:
            n = plain.n_entries
        if n != self.n_entries:  # a plan of rows that are not there
            counts = f"{n} entries, the tree {self.n_entries}"
            return f"is damaged: branch {name!r} has {counts}; copy or make it again"
        return None if plain else self._twins(name)

    def _twins(self, name: str) -> str | None:
        """basf2 writes a variable that is listed twice twice; only other content is a problem."""
        if Counter(self.names)[name] < 2:
            return None
        twins = [b for b in self.tree.branches if b.name == name]
        stop = min(self.n_entries, 1000)
        rows = [b.array(entry_stop=stop, library="np") for b in twins if b.num_entries]
        if all(np.array_equal(rows[0], other, equal_nan=True) for other in rows[1:]):
            return None
        return f"has {len(twins)} branches {name!r} with different content; rename one of them"

    def read(self, name: str, start: int, stop: int) -> Array:
        if self.plain and name in self.plain.branches:
            return self.plain.read(name, start, stop)
        values: Array = self.branch(name).array(entry_start=start, entry_stop=stop, library="np")
        return values

    def borders(self, names: Sequence[str]) -> Array:
        wanted = set(names)
        if self.plain and wanted <= set(self.plain.branches):
            return self.plain.borders(names)
        return np.asarray(self.tree.common_entry_offsets(filter_name=lambda n: n in wanted))

    def types(self) -> dict[str, Any]:
        if self.plain and len(self.plain.branches) == len(self.names):
            return {n: self.plain.branches[n].kind.newbyteorder("=") for n in self.names}
        types: dict[str, Any] = {}
        for branch in self.tree.branches:
            kind = branch.interpretation
            if isinstance(kind, uproot.interpretation.strings.AsStrings):
                types[branch.name] = "string"
            elif _is_flat(kind):
                types[branch.name] = kind.to_dtype.newbyteorder("=")
            else:
                msg = f"branch {branch.name!r} is {branch.typename}"
                raise TypeError(msg)
        return types


def _is_flat(kind: Any) -> bool:
    plain = isinstance(kind, uproot.interpretation.numerical.AsDtype)
    return plain and kind.to_dtype.names is None


def _is_number(kind: Any) -> bool:
    return _is_flat(kind) and kind.to_dtype.shape == () and kind.to_dtype.kind in "fiub"


class _RNTuple:
    """Plain numbers are read directly (plain_ntuple.py), anything else by uproot."""

    def __init__(self, ntuple: Any, path: str) -> None:
        self.ntuple = ntuple
        self.plain = None if "://" in path else PlainNTuple(Path(path), ntuple)
        self.n_entries = int(ntuple.num_entries)
        self.names: Sequence[str] = [name for name in ntuple.keys() if "." not in name]  # noqa: SIM118

    def _dtype(self, name: str) -> np.dtype[Any]:
        """Of one number per row; anything else is an object."""
        plain = self.plain.field(name) if self.plain else None
        if plain is not None:
            return plain.kind
        first = self.ntuple[name].array(entry_stop=min(1, self.n_entries), library="np")
        return first.dtype if first.ndim == 1 else np.dtype(object)

    def problem(self, name: str) -> str | None:
        if self._dtype(name).kind in "fiub":
            return None
        kind = self.ntuple[name].typename or "a collection"
        return f"field {name!r} is {kind}, expected one number"

    def read(self, name: str, start: int, stop: int) -> Array:
        plain = self.plain.field(name) if self.plain else None
        if self.plain and plain is not None:
            return self.plain.read(plain, start, stop)
        values: Array = self.ntuple[name].array(entry_start=start, entry_stop=stop, library="np")
        return values

    def borders(self, names: Sequence[str]) -> Array:  # noqa: ARG002
        return self.plain.clusters if self.plain else np.empty(0, np.int64)

    def types(self) -> dict[str, Any]:
        found = {name: self._dtype(name) for name in self.names}
        for name, kind in found.items():
            if kind.kind not in "fiub":
                msg = f"field {name!r} is {self.ntuple[name].typename or 'a collection'}"
                raise TypeError(msg)
        return found


class _RootFile:
    """Listed by its own keys where that is enough, else by uproot, which is then opened."""

    def __init__(self, file: str, stack: ExitStack) -> None:
        self.path, self.stack = file, stack
        self.plain = plain_file(file)
        if self.plain is not None:
            self.content = {name: key.classname for name, key in self.plain.keys.items()}
            self.uuid = self.plain.uuid
        else:
            # not recursive into trees; the newest cycle of a name
            self.content = self.opened.classnames(recursive=True, cycle=False)
            self.uuid = str(self.opened.file.uuid)
        self.tables = {
            n: RNTUPLE if RNTUPLE in c else "TTree"
            for n, c in self.content.items()
            if c in TREES or c.endswith(RNTUPLE)
        }

    @cached_property
    def opened(self) -> Any:
        return self.stack.enter_context(_open_root(self.path))

    def table(self, name: str) -> Table:
        if self.tables[name] == RNTUPLE:
            return _RNTuple(self.opened[name], self.path)
        plain = self.plain.tree(name) if self.plain is not None else None
        return _Tree(lambda: self.opened[name], plain)


class _ParquetFile:
    def __init__(self, path: Path) -> None:
        self.found = ParquetTable(path)
        self.tables = {PARQUET: PARQUET}
        self.content = dict(self.tables)
        self.uuid = ""

    def table(self, name: str) -> Table:  # noqa: ARG002
        return self.found


def generated_by_basf2(file: File, name: str) -> int:
    """m_mcEvents of basf2's FileMetaData; 0 if it is not told."""
    tree: Any = getattr(file.table(name), "tree", {})
    for key in list(tree.keys()):
        if key.rsplit("/", 1)[-1] == "m_mcEvents":
            return int(np.sum(tree[key].array(library="np")))
    return 0


def is_parquet(file: str) -> bool:
    return file.endswith(PARQUET_ENDINGS)


@contextmanager
def open_file(file: str) -> Iterator[File]:
    """A file, closed at the end of the block; whatever is wrong with it is raised."""
    if is_parquet(file):
        yield _ParquetFile(Path(file))
    else:
        with ExitStack() as stack:
            yield _RootFile(file, stack)


def _open_root(file: str) -> Any:
    """No caches: flat memory. Local files are read directly: fsspec's event loop costs a third."""
    how = {} if "://" in file else {"handler": uproot.source.file.MultithreadedFileSource}
    return uproot.open(file, array_cache=None, object_cache=None, **how)


# those that leave the cache may still be read by another thread: the collector closes them
@lru_cache(maxsize=OPEN_FILES)
def open_table(file: str, name: str, identity: str) -> Table:  # noqa: ARG001
    """A table that stays open; `identity` is part of the key only: a changed file is another."""
    if is_parquet(file):
        return ParquetTable(Path(file))
    plain = plain_file(file)
    tree = plain.tree(name) if plain is not None else None
    if tree is not None:
        return _Tree(lambda: _open_root(file)[name], tree)
    found = _open_root(file)[name]
    if type(found).__name__.endswith(RNTUPLE):
        return _RNTuple(found, file)
    return _Tree(lambda: found, None)
