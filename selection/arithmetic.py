"""Expressions as lines of arithmetic: vectors become their components, each a variable.

    pair: a + b     ->   v0 = c0 + c4;  v1 = c1 + c5;  v2 = c2 + c6;  v3 = c3 + c7

Every right side is computed once, constants are folded, and lines that depend on the beams alone
are kept apart. Formulas of vectors are those of the library `vector`. A name of a definition never
stands in a line: columns are c0, c1, ..., results v0, v1, ...
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from selection.expressions import CONSTANTS, Expression
from selection.search import Search

Value = str | float  # name of a variable, or a constant
Vector = tuple[Value, ...]  # (x, y, z) or (x, y, z, E)

_FOLDED: Mapping[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": np.divide, "sqrt": np.sqrt, "log": np.log, "log10": np.log10, "exp": np.exp,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "arcsin": np.arcsin, "arccos": np.arccos,
    "arctan": np.arctan, "arctan2": np.arctan2, "abs_": np.abs, "minimum_": np.minimum,
    "maximum_": np.maximum,
}  # fmt: skip
_NUMPY_NAME = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2",
               "abs": "abs_"}  # fmt: skip


@dataclass
class Arithmetic:
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
        return self.let(f"{text_of(a)} {sign} {text_of(b)}", a, b)

    def call(self, name: str, *arguments: Value) -> Value:
        if all(isinstance(a, float) for a in arguments) and name in _FOLDED:
            with np.errstate(all="ignore"):
                return float(_FOLDED[name](*arguments))
        return self.let(f"{name}({', '.join(map(text_of, arguments))})", *arguments)

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
                return self.property(vector_of(self.node(inner)), name)
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=args):
                others = [vector_of(self.node(a)) for a in args]
                return self.method(vector_of(self.node(inner)), name, *others)
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
                return self.let(sign.join(map(text_of, found)), *found)
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
            self.let(f"{text_of(a)} {sign} {text_of(b)}", a, b)
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
            return self.let(f"{text_of(base)} ** {power!r}", base)
        found: Value = 1.0
        for i in range(abs(int(power))):
            found = base if i == 0 else self.op("*", found, base)
        return found if power >= 0 else self.op("/", 1.0, found)

    def function(self, name: str, args: Sequence[ast.expr]) -> Value | Vector:
        values = [self.node(a) for a in args]
        if name == "to_cm":
            return self.to_cm(vector_of(values[0]))
        if name == "where":
            condition = one(values[0])
            if isinstance(values[1], tuple):
                both = zip(values[1], vector_of(values[2]), strict=True)
                return tuple(self.call("where_", condition, a, b) for a, b in both)
            return self.call("where_", condition, one(values[1]), one(values[2]))
        numbers: list[Value] = [v for v in values if not isinstance(v, tuple)]
        if name in ("min", "max"):
            found = numbers[0]
            for other in numbers[1:]:
                found = self.call(f"{name}imum_", found, other)
            return found
        if name == "isnan":
            return self.let(f"{text_of(numbers[0])} != {text_of(numbers[0])}", numbers[0])
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
        phi = self.op("-", one(self.property(v, "phi")), one(self.property(w, "phi")))
        turn = self.op("+", phi, math.pi)
        phi = self.op("-", self.let(f"{text_of(turn)} % {2 * math.pi!r}", turn), math.pi)
        if name == "deltaphi":
            return phi
        eta = self.op("-", one(self.property(v, "eta")), one(self.property(w, "eta")))
        if name == "deltaeta":
            return eta
        square = self.op("+", self.op("*", phi, phi), self.op("*", eta, eta))
        return self.call("sqrt", square)


_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def text_of(value: Value) -> str:
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "np.nan"
    return repr(value) if math.isfinite(value) else f"({'-' if value < 0 else ''}np.inf)"


def vector_of(value: Value | Vector) -> Vector:
    assert isinstance(value, tuple)  # noqa: S101  kinds are checked before
    return value


def one(value: Value | Vector) -> Value:
    assert not isinstance(value, tuple)  # noqa: S101
    return value
