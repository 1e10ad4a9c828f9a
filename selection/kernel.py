"""A search as compiled code: columns of the ntuple in, axis, features and cuts out.

    expressions -> components of vectors -> one line of arithmetic each -> a module on disk -> numba

A vector is its components, each a variable: nothing but numbers is left, every sub-expression is
computed once, constants are folded, and what depends on fixed beams alone stands before the loop.
The source is kept in a cache folder under the hash of its text, so that numba's own cache finds the
compiled form; a file there that is not the text we would write is written again, never run.

    code  0          axis or a feature is not finite
          2 + i      cut i is the first that fails (1 is left for the candidate policy)
          2 + n_cuts passes

Every column is an argument of its own: only then LLVM sees that they do not overlap and computes
several events at once. No fastmath: an event's bits must not depend on its place in a chunk.
The same lines run over whole arrays by numpy where a few rows are wanted (`values_of`): no
compilation, and the same numbers.
"""

from __future__ import annotations

import ast
import hashlib
import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from selection.beams import Beams, FloatArray
from selection.expressions import CONSTANTS, NUMBER, VECTOR4, Expression, Kind, parsed
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN
from selection.search import Search
from selection.whole_files import write_text

Value = str | float  # name of a variable, or a constant
Vector = tuple[Value, ...]  # (x, y, z) or (x, y, z, E)

INVALID, DROPPED, FIRST_CUT = 0, 1, 2

_FOLDED: Mapping[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": np.divide, "sqrt": np.sqrt, "log": np.log, "log10": np.log10, "exp": np.exp,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "arcsin": np.arcsin, "arccos": np.arccos,
    "arctan": np.arctan, "arctan2": np.arctan2, "abs_": np.abs, "minimum_": np.minimum,
    "maximum_": np.maximum,
}  # fmt: skip
_NUMPY_NAME = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
               "abs": "abs_"}  # fmt: skip

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


@dataclass
class _Writer:
    """Lines of arithmetic in single assignments; the same right side is computed once."""

    search: Search
    lines: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)  # do not depend on the event if the beams don't
    names: dict[str, str] = field(default_factory=dict)  # right side -> variable
    event: set[str] = field(default_factory=set)  # variables that depend on the event
    columns: dict[str, str] = field(default_factory=dict)  # column -> variable
    made: dict[str, Value | Vector] = field(default_factory=dict)  # name of the search -> value

    def let(self, right: str, *operands: Value) -> str:
        if right not in self.names:
            name = f"v{len(self.names)}"
            self.names[right] = name
            in_event = any(o in self.event for o in operands)
            (self.lines if in_event else self.fixed).append(f"{name} = {right}")
            if in_event:
                self.event.add(name)
        return self.names[right]

    def op(self, sign: str, a: Value, b: Value) -> Value:
        if isinstance(a, float) and isinstance(b, float):
            with np.errstate(all="ignore"):
                return float(_FOLDED[sign](a, b))
        return self.let(f"{_text(a)} {sign} {_text(b)}", a, b)

    def call(self, name: str, *arguments: Value) -> Value:
        if all(isinstance(a, float) for a in arguments) and name in _FOLDED:
            with np.errstate(all="ignore"):
                return float(_FOLDED[name](*arguments))
        return self.let(f"{name}({', '.join(map(_text, arguments))})", *arguments)

    def total(self, *terms: Value) -> Value:
        found = terms[0]
        for term in terms[1:]:
            found = self.op("+", found, term)
        return found

    def column(self, name: str) -> str:
        if name not in self.columns:
            self.columns[name] = f"c{len(self.columns)}"
            self.event.add(self.columns[name])
        return self.columns[name]

    # vectors

    def mag2(self, v: Vector) -> Value:
        return self.total(*(self.op("*", c, c) for c in v[:3]))

    def rho2(self, v: Vector) -> Value:
        return self.total(*(self.op("*", c, c) for c in v[:2]))

    def dot3(self, v: Vector, w: Vector) -> Value:
        return self.total(*(self.op("*", a, b) for a, b in zip(v[:3], w[:3], strict=True)))

    def mass2(self, p: Vector) -> Value:
        found = self.op("*", p[3], p[3])
        for c in p[:3]:
            found = self.op("-", found, self.op("*", c, c))
        return found

    def root(self, square: Value) -> Value:
        """Mass of a squared mass, with its sign: as vector has it."""
        return self.call("copysign", self.call("sqrt", self.call("abs_", square)), square)

    def cross(self, v: Vector, w: Vector) -> Vector:
        def part(i: int, j: int) -> Value:
            return self.op("-", self.op("*", v[i], w[j]), self.op("*", v[j], w[i]))

        return part(1, 2), part(2, 0), part(0, 1)

    def boosted(self, p: Vector, frame: Vector, sign: str) -> Vector:
        """p after a boost by the velocity of `frame` (+), or into its rest frame (-)."""
        mass2 = self.mass2(frame)
        inverse = self.op("/", 1.0, self.call("sqrt", mass2))
        gamma = self.op("*", frame[3], inverse)
        along = self.dot3(p, frame)
        # (gamma - 1) / beta^2 = gamma^2 / (gamma + 1), also for a frame at rest
        share = self.op("/", 1.0, self.op("*", mass2, self.op("+", gamma, 1.0)))
        k = self.op(sign, self.op("*", along, share), self.op("*", p[3], inverse))
        space = (self.op("+", p[i], self.op("*", k, frame[i])) for i in range(3))
        energy = self.op(sign, self.op("*", gamma, p[3]), self.op("*", along, inverse))
        return (*space, energy)

    def to_cm(self, p: Vector) -> Vector:
        """Boost into the rest frame of the beams, then the shortest turn of the e- onto +z."""
        beams = self.vector("beams")
        q = self.boosted(p, beams, "-")
        lab: Vector = ("e_x", "e_y", "e_z", 1.0)
        electron = self.boosted(lab, beams, "-")
        inverse = self.op("/", 1.0, self.call("sqrt", self.mag2(electron)))
        a, b, c = (self.op("*", x, inverse) for x in electron[:3])
        z = self.dot3(q, (a, b, c))
        # v + (z + v_z) / (1 + c) n: what the turn of n onto z leaves of x and y
        k = self.op("*", self.op("+", z, q[2]), self.op("/", 1.0, self.op("+", 1.0, c)))
        x = self.op("-", q[0], self.op("*", a, k))
        y = self.op("-", q[1], self.op("*", b, k))
        return x, y, z, q[3]

    # names

    def vector(self, name: str) -> Vector:
        found = self.value(name)
        assert isinstance(found, tuple)  # noqa: S101  kinds are checked before
        return found

    def value(self, name: str) -> Value | Vector:
        if name not in self.made:
            self.made[name] = self._value(name)
        return self.made[name]

    def _value(self, name: str) -> Value | Vector:
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name == "beams":
            return ("b_x", "b_y", "b_z", "b_e")
        if name == "sqrt_s":
            return self.root(self.mass2(self.vector("beams")))
        if name in self.search.particles:
            return self._particle(self.search.particles[name])
        if name in self.search.parts.define:
            return self.expression(self.search.parts.define[name])
        return self.column(name)

    def _particle(self, how: Mapping[str, str | float]) -> Vector:
        def part(name: str) -> Value:
            given = how[name]
            return self.column(given) if isinstance(given, str) else float(given)

        if "px" in how:
            space: Vector = (part("px"), part("py"), part("pz"))
        else:
            phi = part("phi")
            if "p" in how:
                theta = part("theta")
                pt = self.op("*", part("p"), self.call("sin", theta))
                z = self.op("*", part("p"), self.call("cos", theta))
            else:
                pt = part("pt")
                z = (
                    self.op("*", pt, self.call("sinh", part("eta")))
                    if "eta" in how
                    else self.op("/", pt, self.call("tan", part("theta")))
                )
            space = (self.op("*", pt, self.call("cos", phi)),
                     self.op("*", pt, self.call("sin", phi)), z)  # fmt: skip
        if "e" in how:
            return (*space, part("e"))
        mass = part("mass")
        square = self.op("+", self.mag2(space), self.op("*", mass, mass))
        return (*space, self.call("sqrt", square))

    # expressions

    def expression(self, e: Expression) -> Value | Vector:
        return self.node(e.tree)

    def number(self, node: ast.expr) -> Value:
        found = self.node(node)
        assert not isinstance(found, tuple)  # noqa: S101  kinds are checked before
        return found

    def node(self, node: ast.expr) -> Value | Vector:
        match node:
            case ast.Constant(value=value):
                return float(value)  # type: ignore[arg-type]
            case ast.Name(id=name):
                return self.value(name)
            case ast.Attribute(value=inner, attr=name):
                return self.property(_vector(self.node(inner)), name)
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args):
                others = [_vector(self.node(a)) for a in args]
                return self.method(_vector(self.node(inner)), name, *others)
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.function(name, args)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return self.call("not_", self.number(a))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return self._each(lambda c: self.op("*", -1.0, c), self.node(a))
            case ast.UnaryOp(operand=a):
                return self.node(a)
            case ast.BoolOp(op=op, values=values):
                found = [self.number(v) for v in values]
                sign = " & " if isinstance(op, ast.And) else " | "
                return self.let(sign.join(map(_text, found)), *found)
            case ast.Compare():
                return self._comparison(node)
            case ast.BinOp():
                return self._operation(node)
        raise AssertionError(ast.dump(node))

    def _each(self, f: Callable[[Value], Value], value: Value | Vector) -> Value | Vector:
        return tuple(map(f, value)) if isinstance(value, tuple) else f(value)

    def _comparison(self, node: ast.Compare) -> Value:
        values = [self.number(v) for v in (node.left, *node.comparators)]
        signs = [_SIGNS[type(op)] for op in node.ops]
        pieces = [
            self.let(f"{_text(a)} {sign} {_text(b)}", a, b)
            for a, sign, b in zip(values, signs, values[1:], strict=False)
        ]
        return pieces[0] if len(pieces) == 1 else self.let(" & ".join(pieces), *pieces)

    def _operation(self, node: ast.BinOp) -> Value | Vector:
        if isinstance(node.op, ast.Pow):
            base = self.number(node.left)
            power = self.number(node.right)
            return self._power(base, float(power))
        a, b = self.node(node.left), self.node(node.right)
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(node.op)]
        if isinstance(a, tuple) and isinstance(b, tuple):
            return tuple(self.op(sign, x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, tuple):
            return tuple(self.op(sign, x, b) for x in a)  # type: ignore[arg-type]
        if isinstance(b, tuple):
            return tuple(self.op(sign, a, x) for x in b)
        return self.op(sign, a, b)

    def _power(self, base: Value, power: float) -> Value:
        if power != int(power):
            return self.let(f"{_text(base)} ** {power!r}", base)
        found: Value = 1.0
        for i in range(abs(int(power))):
            found = base if i == 0 else self.op("*", found, base)
        return found if power >= 0 else self.op("/", 1.0, found)

    def function(self, name: str, args: Sequence[ast.expr]) -> Value | Vector:
        values = [self.node(a) for a in args]
        if name == "to_cm":
            return self.to_cm(_vector(values[0]))
        if name == "where":
            condition = _one(values[0])
            if isinstance(values[1], tuple):
                both = zip(values[1], _vector(values[2]), strict=True)
                return tuple(self.call("where_", condition, a, b) for a, b in both)
            return self.call("where_", condition, _one(values[1]), _one(values[2]))
        numbers: list[Value] = [v for v in values if not isinstance(v, tuple)]
        if name in ("min", "max"):
            found = numbers[0]
            for other in numbers[1:]:
                found = self.call(f"{name}imum_", found, other)
            return found
        if name == "isnan":
            return self.let(f"{_text(numbers[0])} != {_text(numbers[0])}", numbers[0])
        return self.call(_NUMPY_NAME.get(name, name), *numbers)

    def property(self, v: Vector, name: str) -> Value | Vector:
        simple = {"x": 0, "px": 0, "y": 1, "py": 1, "z": 2, "pz": 2, "E": 3, "t": 3}
        if name in simple:
            return v[simple[name]]
        if name == "p3":
            return v[:3]
        if name in ("mag2", "mass2"):
            return self.mag2(v) if name == "mag2" else self.mass2(v)
        if name in ("mag", "p"):
            return self.call("sqrt", self.mag2(v))
        if name in ("rho", "pt"):
            return self.call("sqrt", self.rho2(v))
        if name == "costheta":
            return self.op("/", v[2], self.call("sqrt", self.mag2(v)))
        if name == "theta":
            return self.call("arctan2", self.call("sqrt", self.rho2(v)), v[2])
        if name == "phi":
            return self.call("arctan2", v[1], v[0])
        if name == "eta":
            return self.call("arcsinh", self.op("/", v[2], self.call("sqrt", self.rho2(v))))
        if name == "mass":
            return self.root(self.mass2(v))
        if name == "beta":
            return self.op("/", self.call("sqrt", self.mag2(v)), v[3])
        if name == "gamma":
            return self.op("/", v[3], self.root(self.mass2(v)))
        ratio = self.op("/", self.op("+", v[3], v[2]), self.op("-", v[3], v[2]))
        return self.op("*", 0.5, self.call("log", ratio))  # rapidity

    def method(self, v: Vector, name: str, w: Vector = ()) -> Value | Vector:
        if name == "unit":
            length = self.call("sqrt", self.mag2(v))
            return tuple(self.op("/", c, length) for c in v)
        if name == "cross":
            return self.cross(v, w)
        if name == "dot":
            if len(v) == 3:
                return self.dot3(v, w)
            return self.op("-", self.op("*", v[3], w[3]), self.dot3(v, w))
        if name in ("boost_p4", "boostCM_of_p4"):
            return self.boosted(v, w, "+" if name == "boost_p4" else "-")
        if name == "deltaangle":
            lengths = self.op("*", self.call("sqrt", self.mag2(v)), self.call("sqrt", self.mag2(w)))
            c = self.op("/", self.dot3(v, w), lengths)
            return self.call("arccos", self.call("maximum_", -1.0, self.call("minimum_", 1.0, c)))
        phi = self.op("-", _one(self.property(v, "phi")), _one(self.property(w, "phi")))
        turn = self.op("+", phi, math.pi)
        phi = self.op("-", self.let(f"{_text(turn)} % {2 * math.pi!r}", turn), math.pi)
        if name == "deltaphi":
            return phi
        eta = self.op("-", _one(self.property(v, "eta")), _one(self.property(w, "eta")))
        if name == "deltaeta":
            return eta
        square = self.op("+", self.op("*", phi, phi), self.op("*", eta, eta))
        return self.call("sqrt", square)


_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def _text(value: Value) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "np.nan"
    return repr(value) if math.isfinite(value) else f"({'-' if value < 0 else ''}np.inf)"


def _vector(value: Value | Vector) -> Vector:
    assert isinstance(value, tuple)  # noqa: S101  kinds are checked before
    return value


def _one(value: Value | Vector) -> Value:
    assert not isinstance(value, tuple)  # noqa: S101
    return value


@dataclass(frozen=True)
class _Lines:
    """What is computed, as text."""

    columns: tuple[str, ...]  # c0, c1, ... of the event
    fixed: tuple[str, ...]
    lines: tuple[str, ...]
    results: tuple[str, ...]


def _kernel_lines(search: Search) -> _Lines:
    """axis, features, and a condition for each cut."""
    w = _Writer(search)
    axis = _one(w.expression(search.parts.axis))
    features = [_one(w.expression(e)) for e in search.parts.features]
    w.made[search.axis.name] = axis
    for name, value in zip(search.feature_names, features, strict=True):
        w.made[name] = w.call("rounded_", value)  # what is stored is what is cut on
    cuts = [_one(w.expression(e)) for e in search.parts.cuts.values()]
    return _Lines(
        tuple(w.columns), tuple(w.fixed), tuple(w.lines),
        tuple(map(_text, (axis, *features, *cuts))),
    )  # fmt: skip


def kernel_source(search: Search, *, event_beams: bool) -> str:
    """Text of the module whose function `kernel` runs over the events."""
    code = _kernel_lines(search)
    n = len(search.features)
    columns = [f"C{i}" for i in range(len(code.columns))]
    outputs = ["axis", *(f"f{i}" for i in range(n)), "code"]
    axis, *rest = code.results
    features, cuts = rest[:n], rest[n:]
    beams = "b_x, b_y, b_z, b_e"
    in_loop = [f"c{i} = np.float64(C{i}[i])" for i in range(len(columns))]
    if event_beams:
        in_loop += [f"b_{x} = B_{x}[i]" for x in "xyze"]
        in_loop += code.fixed
    in_loop += code.lines
    in_loop += [f"axis[i] = {axis}", *(f"f{j}[i] = {value}" for j, value in enumerate(features))]
    in_loop += [f"found = {FIRST_CUT + len(cuts)}"]
    for k in reversed(range(len(cuts))):
        in_loop.append(f"found = found if {cuts[k]} else {FIRST_CUT + k}")
    stored = " + ".join(["axis[i]", *(f"f{j}[i]" for j in range(n))])
    in_loop.append(f"code[i] = found if isfinite({stored}) else {INVALID}")
    before = [] if event_beams else [f"{beams} = beam[0], beam[1], beam[2], beam[3]", *code.fixed]
    if event_beams:
        before = ["B_x, B_y, B_z, B_e = beam"]
    lines = [
        '@nb.njit(nogil=True, cache=True, error_model="numpy")',
        f"def kernel({', '.join(['n', *columns, 'beam', 'electron', *outputs])}):",
        "    e_x, e_y, e_z = electron[0], electron[1], electron[2]",
        *(f"    {line}" for line in before),
        "    for i in range(n):",
        *(f"        {line}" for line in in_loop),
    ]
    return _COMPILED_HEAD + "\n".join(lines) + "\n"


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

    @property
    def finite(self) -> npt.NDArray[np.bool_]:
        return self.code != INVALID


def event_quantities(
    search: Search,
    columns: Mapping[str, npt.NDArray[Any]],
    beams: Beams,
    *,
    feature_type: type[np.floating] = np.float32,
) -> EventQuantities:
    """Columns (n,) of the ntuple -> axis, features and cuts of each event.

    The beams of the event are, in this order of preference: the four beam columns; the configured
    beams scaled to the column `ecms` (same boost, other energy); the configured beams.
    """
    code = _lines_of(search)
    found = [np.asarray(columns[name]) for name in code.columns]
    single = all(a.dtype == np.float32 for a in found)
    inputs = [np.ascontiguousarray(a, np.float32 if single else np.float64) for a in found]
    n = row_count(columns)
    axis, code_ = np.empty(n), np.empty(n, np.uint8)
    features = np.empty((len(search.features), n), feature_type)
    per_event = _event_beams(columns, beams)
    kernel = _compiled(_source_of(search, event_beams=per_event is not None))
    beam = beams.total if per_event is None else per_event
    kernel(n, *inputs, beam, beams.electron_direction, axis, *features, code_)
    return EventQuantities(axis, features, code_)


def row_count(columns: Mapping[str, npt.NDArray[Any]]) -> int:
    """Rows of a table of columns."""
    return len(next(iter(columns.values()))) if columns else 0


_sources: dict[tuple[str, bool], str] = {}
_lines: dict[str, _Lines] = {}


def _source_of(search: Search, *, event_beams: bool) -> str:
    key = (search.identity, event_beams)
    if key not in _sources:
        _sources[key] = kernel_source(search, event_beams=event_beams)
    return _sources[key]


def _lines_of(search: Search) -> _Lines:
    if search.identity not in _lines:
        _lines[search.identity] = _kernel_lines(search)
    return _lines[search.identity]


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
) -> list[npt.NDArray[Any]]:
    """Any expressions (numbers or conditions) over some rows, by numpy: nothing is compiled."""
    key = (search.identity, *wanted)
    if key not in _array_codes:
        _array_codes[key] = _array_code(search, wanted)
    code, names = _array_codes[key]
    per_event = _event_beams(columns, beams)
    beam = beams.total if per_event is None else per_event
    space: dict[str, Any] = {
        **_ARRAY_NAMES,
        **dict(zip(("b_x", "b_y", "b_z", "b_e"), beam, strict=True)),
        **dict(zip(("e_x", "e_y", "e_z"), beams.electron_direction, strict=True)),
        **{v: np.asarray(columns[c], np.float64) for c, v in names.items()},
    }
    with np.errstate(all="ignore"):
        exec(code, space)  # noqa: S102  our own text, checked
    n = row_count(columns)
    return [np.broadcast_to(np.asarray(value), (n,)) for value in space["found"]]


_array_codes: dict[tuple[str, ...], tuple[CodeType, dict[str, str]]] = {}


def _array_code(search: Search, wanted: Sequence[str]) -> tuple[CodeType, dict[str, str]]:
    """The code that leaves its results in `found`, and the variable of each column."""
    expressions = [expression_of(search, text) for text in wanted]
    used = {name for e in expressions for name in e.names}
    w = _Writer(search)
    if search.axis.name in used:
        w.made[search.axis.name] = _one(w.expression(search.parts.axis))
    for f, e in zip(search.features, search.parts.features, strict=True):
        if f.name in used:
            w.made[f.name] = w.call("rounded_", _one(w.expression(e)))
    results = [_text(_one(w.expression(e))) for e in expressions]
    text = "\n".join([*w.fixed, *w.lines, f"found = ({', '.join([*results, ''])})"])
    return compile(text, "<search>", "exec"), w.columns


def expression_of(search: Search, text: str) -> Expression:
    """A further expression in the words of a search, its axis and features among them."""
    known: dict[str, Kind] = dict.fromkeys(search.particles, VECTOR4)
    known |= {name: e.kind for name, e in search.parts.define.items()}
    known |= {search.axis.name: NUMBER, **dict.fromkeys(search.feature_names, NUMBER)}
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
