"""A search as compiled code: columns of the ntuple in, axis, features and cuts out.

    expressions -> lines of arithmetic (arithmetic.py) -> a module on disk -> numba

What depends on fixed beams alone stands before the loop. The source is kept in a cache folder
under the hash of its text, so that numba's own cache finds the compiled form; a file there that is
not the text we would write is written again, never run.

    code  0          axis or a feature is not finite
          2 + i      cut i is the first that fails (1 is left for the candidate policy)
          2 + n_cuts passes

Other sets of cuts (regions), further numbers and flags (conditions, a bit each) come out of the
same pass: they share every line with the search, and the columns are read once.

Every column is an argument of its own: only then LLVM sees that they do not overlap and computes
several events at once. It looks at no more than about twenty arrays of one loop, so that regions,
numbers and flags have loops of their own, each with the lines that it needs. No fastmath: an
event's bits must not depend on its place in a chunk.
The same lines run over whole arrays by numpy where a few rows are wanted (`values_of`): no
compilation, and the same numbers.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from selection.arithmetic import Arithmetic, one, text_of
from selection.beams import Beams, FloatArray
from selection.expressions import NUMBER, VECTOR4, Expression, Kind, parsed
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN
from selection.search import Search
from selection.whole_files import write_text

INVALID, DROPPED, FIRST_CUT = 0, 1, 2

_COMPILED_HEAD = '''\
"""Made by selection/kernel.py from the definition of a search; see there."""
import numba as nb
import numpy as np
from numpy import arccos, arcsin, arcsinh, arctan, arctan2, copysign, cos, exp, isfinite, log, \\
    log10, sin, sinh, sqrt, tan

def inline(f): return nb.njit(f, nogil=True, inline="always", error_model="numpy")
@inline
def where_(c, a, b): return a if c else b
@inline
def minimum_(a, b): return a if (a < b) | (a != a) else b
@inline
def maximum_(a, b): return a if (a > b) | (a != a) else b
@inline
def abs_(a): return abs(a)
@inline
def not_(c): return not c
@inline
def rounded_(a): return np.float64(np.float32(a))

'''


@dataclass(frozen=True)
class Further:
    """What else comes out of the same pass."""

    regions: tuple[Search, ...] = ()  # searches that differ from this one in their cuts only
    numbers: tuple[str, ...] = ()  # expressions
    flags: tuple[str, ...] = ()  # conditions; bit i is the i-th of them
    given: tuple[str, ...] = ()  # names in the flags that stand for numbers given with the events

    @property
    def flag_type(self) -> type[np.unsignedinteger]:
        return np.uint8 if len(self.flags) <= 8 else np.uint64


NOTHING = Further()


@dataclass(frozen=True)
class _Lines:
    """What is computed, as text."""

    columns: tuple[str, ...]  # c0, c1, ... of the event
    fixed: tuple[str, ...]
    lines: tuple[str, ...]
    stored: tuple[str, ...]  # axis and features
    numbers: tuple[str, ...]
    cuts: tuple[tuple[str, ...], ...]  # conditions of the search and of each region
    flags: tuple[str, ...]


@lru_cache(maxsize=32)
def _kernel_lines(search: Search, further: Further) -> _Lines:
    """axis, features, other numbers, and a condition for each cut and flag."""
    w = Arithmetic(search)
    axis = one(w.expression(search.parts.axis))
    features = [one(w.expression(e)) for e in search.parts.features]
    w.made[search.axis.name] = axis
    for name, value in zip(search.feature_names, features, strict=True):
        w.made[name] = w.call("rounded_", value)  # what is stored is what is cut on
    cuts = [
        tuple(text_of(one(w.expression(e))) for e in s.parts.cuts.values())
        for s in (search, *further.regions)
    ]
    others = [one(w.expression(expression_of(search, text))) for text in further.numbers]
    w.made |= _given_names(further.given)
    flags = [one(w.expression(expression_of(search, t, further.given))) for t in further.flags]
    return _Lines(
        tuple(w.columns), tuple(w.fixed), tuple(w.lines), tuple(map(text_of, (axis, *features))),
        tuple(map(text_of, others)), tuple(cuts), tuple(map(text_of, flags)),
    )  # fmt: skip


def _given_names(given: Sequence[str]) -> dict[str, str]:
    """Name -> variable."""
    return {name: f"k_{i}" for i, name in enumerate(given)}


@lru_cache(maxsize=32)
def kernel_source(search: Search, *, event_beams: bool, further: Further = NOTHING) -> str:
    """Text of the module whose function `kernel` runs over the events."""
    code = _kernel_lines(search, further)
    n = len(search.features)
    columns = [f"C{i}" for i in range(len(code.columns))]
    stored = ["axis", *(f"f{i}" for i in range(n))]
    others = [f"o{i}" for i in range(len(code.numbers))]
    codes = ["code", *(f"code{i}" for i in range(1, len(code.cuts)))]
    in_loop = [f"c{i} = np.float64(C{i}[i])" for i in range(len(columns))]
    if event_beams:
        in_loop += [f"b_{x} = B_{x}[i]" for x in "xyze"]
        in_loop += code.fixed
    in_loop += code.lines
    of_search, *of_regions = (
        _code_lines(name, cuts, stored) for name, cuts in zip(codes, code.cuts, strict=True)
    )
    loops = [[*_assigned(stored, code.stored), *of_search], *of_regions]
    loops += [_assigned(others, code.numbers)] if others else []
    if code.flags:
        bits = " | ".join(f"({1 << k} if {text} else 0)" for k, text in enumerate(code.flags))
        loops.append([f"flags[i] = {bits}"])
    given = [f"{k} = given[{i}]" for i, k in enumerate(_given_names(further.given).values())]
    if event_beams:
        before = ["B_x, B_y, B_z, B_e = beam"]
    else:
        before = ["b_x, b_y, b_z, b_e = beam[0], beam[1], beam[2], beam[3]", *code.fixed]
    outputs = [*stored, *others, *codes, "flags", "given"]
    lines = [
        '@nb.njit(nogil=True, cache=True, error_model="numpy")',
        f"def kernel({', '.join(['n', *columns, 'beam', 'electron', *outputs])}):",
        "    e_x, e_y, e_z = electron[0], electron[1], electron[2]",
        *(f"    {line}" for line in (*given, *before)),
    ]
    for loop in loops:
        used = (*_used(in_loop, loop), *loop)
        lines += ["    for i in range(n):", *(f"        {line}" for line in used)]
    return _COMPILED_HEAD + "\n".join(lines) + "\n"


def _assigned(names: Sequence[str], values: Sequence[str]) -> list[str]:
    return [f"{name}[i] = {value}" for name, value in zip(names, values, strict=True)]


def _code_lines(code: str, cuts: Sequence[str], stored: Sequence[str]) -> list[str]:
    """The code of an event by some cuts, from what is stored of it."""
    lines = [f"found = {FIRST_CUT + len(cuts)}"]
    last_first = reversed(range(len(cuts)))
    lines += [f"found = found if {cuts[k]} else {FIRST_CUT + k}" for k in last_first]
    finite = " + ".join(f"{name}[i]" for name in stored)
    return [*lines, f"{code}[i] = found if isfinite({finite}) else {INVALID}"]


def _used(lines: Sequence[str], by: Sequence[str]) -> list[str]:
    """Those of the lines `name = value` that others need, directly or through each other."""
    names = {name for line in by for name in _NAME.findall(line)}
    found = []
    for line in reversed(lines):
        name, _, value = line.partition(" = ")
        if name in names:
            names.update(_NAME.findall(value))
            found.append(line)
    return found[::-1]


_NAME = re.compile(r"[A-Za-z_]\w*")


def cache_folder() -> Path:
    """Where sources and their compiled forms are kept; a private one if that cannot be written."""
    base = os.environ.get("PUNZI_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base else Path.home() / ".cache"
    return folder / "punzi" / "kernels"


@lru_cache(maxsize=32)
def _compiled(source: str) -> Callable[..., None]:
    name = hashlib.blake2b(source.encode(), digest_size=12).hexdigest()
    path = cache_folder() / f"search_{name}.py"
    try:
        if not path.exists() or path.read_text(encoding="utf-8") != source:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, source)
    except OSError:
        path = Path(tempfile.mkdtemp(prefix="punzi-")) / path.name
        write_text(path, source)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module  # numba's cache asks for it by name
    exec(compile(source, str(path), "exec"), vars(module))  # noqa: S102  our own text, checked
    kernel: Callable[..., None] = module.kernel
    return kernel


@dataclass(frozen=True)
class EventQuantities:
    """What the kernel finds for each event; NaN where an input is NaN."""

    axis: npt.NDArray[np.float64]  # (n,)
    features: FloatArray  # (n_features, n): one contiguous row each
    code: npt.NDArray[np.uint8]  # (n,) see the module's head
    region_codes: npt.NDArray[np.uint8]  # (n_regions, n) the same by the cuts of each region
    beside: npt.NDArray[np.float32]  # (n_numbers, n) the further numbers
    flags: npt.NDArray[np.unsignedinteger]  # (n,) a bit for each condition; empty without any

    @property
    def finite(self) -> npt.NDArray[np.bool_]:
        return self.code != INVALID


def event_quantities(
    search: Search,
    columns: Mapping[str, npt.NDArray[Any]],
    beams: Beams,
    *,
    feature_type: type[np.floating] = np.float32,
    further: Further = NOTHING,
    given: Sequence[float] = (),
) -> EventQuantities:
    """Columns (n,) of the ntuple -> axis, features and cuts of each event.

    The beams of the event are, in this order of preference: the four beam columns; the configured
    beams scaled to the column `ecms` (same boost, other energy); the configured beams.
    given: the numbers whose names `further` has.
    """
    found = [np.asarray(columns[name]) for name in _kernel_lines(search, further).columns]
    single = all(a.dtype == np.float32 for a in found)
    inputs = [np.ascontiguousarray(a, np.float32 if single else np.float64) for a in found]
    n = row_count(columns)
    axis, code = np.empty(n), np.empty((1 + len(further.regions), n), np.uint8)
    features = np.empty((len(search.features), n), feature_type)
    others = np.empty((len(further.numbers), n), np.float32)
    flags = np.empty(n if further.flags else 0, further.flag_type)
    per_event = _event_beams(columns, beams)
    source = kernel_source(search, event_beams=per_event is not None, further=further)
    beam = beams.total if per_event is None else per_event
    made = (axis, *features, *others, *code, flags, np.array(given, np.float64))
    _compiled(source)(n, *inputs, beam, beams.electron_direction, *made)
    return EventQuantities(axis, features, code[0], code[1:], others, flags)


def row_count(columns: Mapping[str, npt.NDArray[Any]]) -> int:
    """Rows of a table of columns."""
    return len(next(iter(columns.values()))) if columns else 0


def _event_beams(
    columns: Mapping[str, npt.NDArray[Any]], beams: Beams
) -> tuple[npt.NDArray[np.float64], ...] | None:
    if all(name in columns for name in BEAM_COLUMNS):
        return tuple(np.ascontiguousarray(columns[name], np.float64) for name in BEAM_COLUMNS)
    if ECMS_COLUMN in columns:
        scale = np.asarray(columns[ECMS_COLUMN], np.float64) / beams.sqrt_s_gev
        return tuple(component * scale for component in beams.total)
    return None


def values_of(
    search: Search,
    columns: Mapping[str, npt.NDArray[Any]],
    beams: Beams,
    wanted: Sequence[str],
    *,
    given: Mapping[str, float] | None = None,
) -> list[npt.NDArray[Any]]:
    """Any expressions (numbers or conditions) over some rows, by numpy: nothing is compiled.

    given: further names and the numbers that they stand for.
    """
    given = given or {}
    code, names = _array_code(search, tuple(wanted), tuple(given))
    per_event = _event_beams(columns, beams)
    beam = beams.total if per_event is None else per_event
    space: dict[str, Any] = {
        **_ARRAY_NAMES,
        **dict(zip(("b_x", "b_y", "b_z", "b_e"), beam, strict=True)),
        **dict(zip(("e_x", "e_y", "e_z"), beams.electron_direction, strict=True)),
        **{v: np.asarray(columns[c], np.float64) for c, v in names.items()},
        **{v: given[name] for name, v in _given_names(tuple(given)).items()},
    }
    with np.errstate(all="ignore"):
        exec(code, space)  # noqa: S102  our own text, checked
    n = row_count(columns)
    return [np.broadcast_to(np.asarray(value), (n,)) for value in space["found"]]


@lru_cache(maxsize=256)
def _array_code(
    search: Search, wanted: tuple[str, ...], given: tuple[str, ...]
) -> tuple[CodeType, dict[str, str]]:
    """The code that leaves its results in `found`, and the variable of each column."""
    expressions = [expression_of(search, text, given) for text in wanted]
    used = {name for e in expressions for name in e.names}
    w = Arithmetic(search)
    if search.axis.name in used:
        w.made[search.axis.name] = one(w.expression(search.parts.axis))
    for f, e in zip(search.features, search.parts.features, strict=True):
        if f.name in used:
            w.made[f.name] = w.call("rounded_", one(w.expression(e)))
    w.made |= _given_names(given)
    results = [text_of(one(w.expression(e))) for e in expressions]
    text = "\n".join([*w.fixed, *w.lines, f"found = ({', '.join([*results, ''])})"])
    return compile(text, "<search>", "exec"), w.columns


def expression_of(search: Search, text: str, given: Sequence[str] = ()) -> Expression:
    """A further expression in the words of a search, its axis and features among them.

    given: further names that stand for numbers.
    """
    known: dict[str, Kind] = dict.fromkeys(search.particles, VECTOR4)
    known |= {name: e.kind for name, e in search.parts.define.items()}
    known |= {search.axis.name: NUMBER, **dict.fromkeys(search.feature_names, NUMBER)}
    known |= dict.fromkeys(given, NUMBER)
    return parsed(text, known)


_ARRAY_NAMES: Mapping[str, Any] = {
    "__builtins__": {},
    "np": np,
    **{
        name: getattr(np, name)
        for name in (
            *("arccos", "arcsin", "arcsinh", "arctan", "arctan2", "copysign", "cos", "exp"),
            *("isfinite", "log", "log10", "sin", "sinh", "sqrt", "tan"),
        )
    },
    "where_": np.where,
    "minimum_": np.minimum,
    "maximum_": np.maximum,
    "abs_": np.abs,
    "not_": np.logical_not,
    "rounded_": lambda a: np.asarray(a, np.float32).astype(np.float64),
}
