"""A TTree of plain numbers, read without a model of its classes: what ntuples are made of.

    bytes of the tree  ->  branches  ->  baskets: first row, place          20 us per branch
    column[a:b]        =   numbers of the baskets that hold rows a to b, turned to our byte order

ROOT 6 writes the classes in this way; each object says its version and length, and any other
version is left to uproot (`NotPlainError`), as is a single branch that is not one number per row:
then it is in `names` and not in `branches`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.inputs.root_bytes import (
    KEY,
    Key,
    LocalFile,
    NotPlainError,
    directory,
    object_bytes,
    text_at,
    unpacked,
)

TREE, BRANCH = 20, 13  # versions
COUNTED, NEW_CLASS, CLASS_AGAIN = 0x40000000, 0xFFFFFFFF, 0x80000000
REFERENCED = 1 << 4  # bit of a TObject that has two more bytes
OF_TREE = struct.Struct(">qqqqqdiiiiIqqqqqq")
OF_BRANCH = (struct.Struct(">iiiiq"), struct.Struct(">iIiqqqq"))
OF_LEAF = struct.Struct(">iii??I")
OF_BASKET = struct.Struct(">Hiiii")
NUMBERS = {"TLeafO": "?", "TLeafB": "i1", "TLeafS": "i2", "TLeafI": "i4", "TLeafL": "i8",
           "TLeafG": "i8", "TLeafF": "f4", "TLeafD": "f8"}  # fmt: skip

# what bytes that are not as expected end in
NOT_HERE = (NotPlainError, struct.error, ValueError, LookupError, OSError, MemoryError)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Branch:
    """One number per row, in baskets."""

    kind: np.dtype[Any]  # big-endian
    n_entries: int
    first_rows: Array  # of each basket, and the end
    places: Array
    sizes: Array


@dataclass(frozen=True)
class PlainTree:
    """Names of all branches, and those that can be read here."""

    file: LocalFile
    n_entries: int
    names: Sequence[str]
    branches: Mapping[str, Branch]  # none whose name stands twice

    def read(self, name: str, start: int, stop: int) -> Array:
        return _rows(self.file, self.branches[name], start, stop)

    def borders(self, names: Sequence[str]) -> Array:
        """Rows at which baskets of all these branches begin."""
        found = [self.branches[name].first_rows for name in names]
        return reduce(np.intersect1d, found, np.arange(0) if not found else found[0])


@dataclass(frozen=True)
class PlainFile:
    """The keys of a file without folders."""

    file: LocalFile
    keys: Mapping[str, Key]
    uuid: str

    def tree(self, name: str) -> PlainTree | None:
        """A tree that can be read here; None of any other."""
        try:
            return _tree(self.file, self.keys[name])
        except NOT_HERE:
            return None


def plain_file(file: str) -> PlainFile | None:
    """A local ROOT file whose keys can be read here; None of any other, damaged ones among them."""
    if "://" in file:
        return None
    try:
        opened = LocalFile(Path(file))
        keys, uuid = directory(opened)
    except NOT_HERE:
        return None
    folders = any(k.classname.startswith("TDirectory") or "/" in k.name for k in keys.values())
    return None if folders else PlainFile(opened, keys, uuid)


class _Objects:
    """A place in the bytes of an object, and the classes that were named before it."""

    def __init__(self, data: bytes, shift: int) -> None:
        self.data, self.at, self.shift = data, 0, shift
        self.classes: dict[int, str] = {}

    def take(self, form: struct.Struct) -> tuple[Any, ...]:
        found = form.unpack_from(self.data, self.at)
        self.at += form.size
        return found

    def counted(self, version: int | None = None) -> int:
        """Begin a versioned object; where it ends."""
        n, found = struct.unpack_from(">IH", self.data, self.at)
        if not n & COUNTED or (version is not None and found != version):
            msg = f"version {found}, not {version}"
            raise NotPlainError(msg)
        end = self.at + 4 + (n & ~COUNTED)
        self.at += 6
        return int(end)

    def skip(self) -> None:
        self.at = self.counted()

    def tobject(self) -> None:
        bits = struct.unpack_from(">I", self.data, self.at + 6)[0]
        self.at += 12 if bits & REFERENCED else 10

    def name(self) -> str:
        """A TNamed; its name."""
        end = self.counted()
        self.tobject()
        found, _ = text_at(self.data, self.at)
        self.at = end
        return found

    def any_object(self) -> tuple[str, int]:
        """Begin an object of any class: its class and end; no class for none."""
        n = struct.unpack_from(">I", self.data, self.at)[0]
        if n == 0:
            self.at += 4
            return "", self.at
        if not n & COUNTED:
            msg = "an object that stands elsewhere"
            raise NotPlainError(msg)
        end, place = self.at + 4 + (n & ~COUNTED), self.at + 4
        tag = struct.unpack_from(">I", self.data, place)[0]
        self.at = place + 4
        if tag == NEW_CLASS:
            stop = self.data.index(b"\0", self.at)
            self.classes[place] = self.data[self.at : stop].decode()
            self.at = stop + 1
            return self.classes[place], end
        return self.classes[(tag & ~CLASS_AGAIN) - self.shift], end

    def array(self) -> tuple[int, int]:
        """Begin a TObjArray: number of its objects, and its end."""
        end = self.counted(3)
        self.tobject()
        _, self.at = text_at(self.data, self.at)
        n, _ = self.take(struct.Struct(">ii"))
        return n, end

    def numbers(self, n: int, kind: str) -> Array:
        found = np.frombuffer(self.data, kind, n, self.at + 1)
        self.at += 1 + found.nbytes
        return found


def _tree(file: LocalFile, key: Key) -> PlainTree:
    """The description of a tree."""
    if key.classname != "TTree":
        raise NotPlainError(key.classname)
    o = _Objects(object_bytes(file, key), key.n_key + 2)
    o.counted(TREE)
    o.name()
    for _ in range(3):  # how it is drawn
        o.skip()
    members = o.take(OF_TREE)
    for _ in range(2):  # clusters
        o.numbers(members[10], ">i8")
    o.skip()
    names: list[str] = []
    branches: dict[str, Branch] = {}
    for _ in range(o.array()[0]):
        classname, end = o.any_object()
        name, branch = _branch(o, classname)
        names.append(name)
        if branch is not None:
            branches.setdefault(name, branch)
        o.at = end
    twice = (
        {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else ()
    )
    return PlainTree(file, members[0], names, {n: b for n, b in branches.items() if n not in twice})


def _branch(o: _Objects, classname: str) -> tuple[str, Branch | None]:
    """Name of a branch, and how to read it if that is plain."""
    o.counted()
    if classname != "TBranch":
        o.counted()  # its TBranch comes first
        return o.name(), None
    o.at -= 6
    o.counted(BRANCH)
    name = o.name()
    o.skip()
    _, _, n_offsets, n_baskets, _ = o.take(OF_BRANCH[0])
    o.skip()
    _, n_most, _, n_entries, *_ = o.take(OF_BRANCH[1])
    n_branches, end = o.array()
    o.at = end
    n_leaves, end = o.array()
    kind = _number(o) if n_leaves == 1 else None
    o.at = end
    _, end = o.array()
    inside = o.data[o.at : end].strip(b"\0")  # a basket in the tree itself
    o.at = end
    if kind is None or n_offsets or n_branches or inside or n_baskets >= n_most:
        return name, None
    sizes, rows, places = (o.numbers(n_most, form) for form in (">i4", ">i8", ">i8"))
    first = rows[: n_baskets + 1].astype(np.int64)
    rising = len(first) < 3 or (np.diff(first) > 0).all()
    if first[0] or first[-1] != n_entries or not rising:
        return name, None
    return name, Branch(kind, n_entries, first, places[:n_baskets], sizes[:n_baskets])


def _number(o: _Objects) -> np.dtype[Any] | None:
    """Type of a leaf that is one number; None of any other."""
    classname, _ = o.any_object()
    if classname not in NUMBERS:
        return None
    o.counted(1)
    o.counted(2)
    o.name()
    length, n_bytes, _, _, unsigned, counter = o.take(OF_LEAF)
    kind = np.dtype(NUMBERS[classname])
    if unsigned and kind.kind == "i":
        kind = np.dtype(f"u{kind.itemsize}")
    return kind.newbyteorder(">") if (length, n_bytes, counter) == (1, kind.itemsize, 0) else None


def _rows(file: LocalFile, branch: Branch, start: int, stop: int) -> Array:
    """Rows [start, stop) of a branch in the byte order of this machine."""
    start, stop = max(start, 0), min(stop, branch.n_entries)
    out = np.empty(max(stop - start, 0), branch.kind.newbyteorder("="))
    if not len(out):
        return out
    first, last = np.searchsorted(branch.first_rows, (start, stop - 1), side="right") - 1
    for i in range(first, last + 1):
        begin, end = branch.first_rows[i : i + 2]
        rows = slice(max(begin, start) - begin, min(end, stop) - begin)
        values = _basket(file, branch, i, int(rows.stop))
        out[max(begin, start) - start : min(end, stop) - start] = values[rows]
    return out


def _basket(file: LocalFile, branch: Branch, i: int, n_wanted: int) -> Array:
    """The first numbers of a basket, as many as are wanted or more."""
    data = file.bytes_at(int(branch.places[i]), int(branch.sizes[i]))
    n_bytes, _, n_object, _, n_key, _ = KEY.unpack_from(data)
    *_, n_last = OF_BASKET.unpack_from(data, n_key - OF_BASKET.size - 1)
    n = int(branch.first_rows[i + 1] - branch.first_rows[i])
    if (
        n_bytes != len(data)
        or n_last - n_key != n * branch.kind.itemsize
        or n_last - n_key > n_object
    ):
        msg = f"a basket of {n} numbers is damaged"
        raise ValueError(msg)
    packed = memoryview(data)[n_key:]
    if len(packed) == n_object:
        return np.frombuffer(packed, branch.kind, n)
    values = unpacked(packed, n_object, n_wanted * branch.kind.itemsize)
    return np.frombuffer(values, branch.kind, min(n, len(values) // branch.kind.itemsize))
