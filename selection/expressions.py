"""Expressions of a search: arithmetic on numbers and vectors, read from text, never executed.

    text -> Python's own parser -> only what is listed below -> a tree whose every node has a kind

    number        columns, 3.2, + - * / **, min max abs sqrt log log10 exp sin cos tan asin acos
                  atan atan2, where(condition, a, b), properties and methods of vectors
    condition     < <= > >= == !=, and, or, not, isnan, isfinite
    three-vector  v + w, v - w, 2 * v, v / 2, v.cross(w), v.unit(), p.p3, where(...)
    four-vector   particles, beams, p + q, p - q, to_cm(p), p.boost_p4(q), p.boostCM_of_p4(q)

Names are those of the search (particles, defined quantities), `beams`, `pi`, `deg`, `sqrt_s`, or
columns of the ntuple. Whatever is not listed is refused with the expression, a caret under the
place, and the nearest name that would do: a definition comes from a stranger's file.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "condition", "three-vector", "four-vector"]
NUMBER: Kind = "number"
CONDITION: Kind = "condition"
VECTOR3: Kind = "three-vector"
VECTOR4: Kind = "four-vector"

MOST_LETTERS, MOST_NODES, MOST_DEPTH, LARGEST_POWER = 2000, 400, 40, 8

CONSTANTS = {"pi": math.pi, "deg": math.pi / 180}
BEAM_NAMES: Mapping[str, Kind] = {"beams": VECTOR4, "sqrt_s": NUMBER}

_DIRECTION = ("x", "y", "z", "px", "py", "pz", "rho", "pt", "theta", "costheta", "phi", "eta")
PROPERTIES: Mapping[Kind, Mapping[str, Kind]] = {
    VECTOR3: dict.fromkeys((*_DIRECTION, "mag", "mag2", "p"), NUMBER),
    VECTOR4: {
        **dict.fromkeys(
            (*_DIRECTION, "p", "E", "t", "mass", "mass2", "beta", "gamma", "rapidity"), NUMBER
        ),
        "p3": VECTOR3,
    },
}
_ANGLES = ("deltaphi", "deltaeta", "deltaR", "deltaangle")
METHODS: Mapping[Kind, Mapping[str, tuple[tuple[Kind, ...], Kind]]] = {  # arguments, result
    VECTOR3: {
        "dot": ((VECTOR3,), NUMBER),
        "cross": ((VECTOR3,), VECTOR3),
        "unit": ((), VECTOR3),
        **dict.fromkeys(_ANGLES, ((VECTOR3,), NUMBER)),
    },
    VECTOR4: {
        "dot": ((VECTOR4,), NUMBER),
        "boost_p4": ((VECTOR4,), VECTOR4),
        "boostCM_of_p4": ((VECTOR4,), VECTOR4),
        **dict.fromkeys(_ANGLES, ((VECTOR4,), NUMBER)),
    },
}
_ONE = (NUMBER,)
FUNCTIONS: Mapping[str, tuple[tuple[Kind, ...], Kind]] = {
    **dict.fromkeys(
        ("abs", "sqrt", "log", "log10", "exp", "sin", "cos", "tan", "asin", "acos", "atan"),
        (_ONE, NUMBER),
    ),
    "atan2": ((NUMBER, NUMBER), NUMBER),
    "isnan": (_ONE, CONDITION),
    "isfinite": (_ONE, CONDITION),
    "to_cm": ((VECTOR4,), VECTOR4),
}
SPECIAL = ("min", "max", "where")  # of several numbers; of any kind
WORDS = frozenset({*FUNCTIONS, *SPECIAL, *CONSTANTS, *BEAM_NAMES})  # not for names of a search

_NUMBER_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
_HINTS: Mapping[type[ast.AST], str] = {
    ast.BitAnd: "write `and`",
    ast.BitOr: "write `or`",
    ast.Invert: "write `not`",
    ast.BitXor: "powers are written **",
    ast.In: "write two comparisons joined by `and`",
    ast.NotIn: "write two comparisons joined by `or`",
}
_REFUSED: Mapping[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.NamedExpr: "an assignment (:=)",
    ast.JoinedStr: "an f-string",
    ast.Subscript: "an index [ ]",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
    ast.Starred: "a star",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.IfExp: "if ... else: write where(condition, a, b)",
}


class ExpressionError(ValueError):
    """An expression that is not one of ours; the message shows it and where it fails."""


@dataclass(frozen=True, eq=False)
class Expression:
    """A checked expression: its tree holds nothing but what this module lists."""

    text: str
    tree: ast.expr
    kind: Kind
    names: frozenset[str]  # of the search, and columns; functions and constants not
    columns: frozenset[str]  # the names that must be columns of the ntuple


def parsed(text: str, known: Mapping[str, Kind], *, wanted: Kind | None = None) -> Expression:
    """Check a text; `known`: particles and quantities defined before. Other names are columns."""
    reader = _Reader(text, known)
    tree = reader.tree()
    kind = reader.kind(tree, 0)
    if wanted is not None and kind != wanted:
        raise reader.error(tree, f"is a {kind}, a {wanted} is needed")
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - reader.called
    names -= set(CONSTANTS)
    columns = frozenset(names - set(known) - set(BEAM_NAMES))
    return Expression(text, tree, kind, frozenset(names), columns)


def compared(expression: Expression) -> str | None:
    """What the first comparison of a condition looks at, as text; None without one."""
    for node in ast.walk(expression.tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                names = {n.id for n in ast.walk(side) if isinstance(n, ast.Name)}
                if names - set(CONSTANTS) - set(FUNCTIONS) - set(SPECIAL):
                    return ast.unparse(side)
    return None


def nearest_name(wanted: str, present: Collection[str]) -> str:
    """`; did you mean mass2?`, or nothing."""
    close = difflib.get_close_matches(wanted, list(present), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


class _Reader:
    def __init__(self, text: str, known: Mapping[str, Kind]) -> None:
        self.text, self.known = text, {**BEAM_NAMES, **known}
        self.called: set[str] = set()

    def error(self, node: ast.AST | None, text: str) -> ExpressionError:
        at = 0 if node is None else getattr(node, "col_offset", 0)
        if isinstance(node, ast.Attribute):  # under the word behind the dot
            at = (node.end_col_offset or 0) - len(node.attr)
        column = len(self.text.encode()[:at].decode(errors="replace"))
        shown = self.text.replace("\n", " ").replace("\t", " ")
        first = max(0, column - 60)
        line = shown[first : first + 100]
        msg = f"{text}\n    {line}\n    {' ' * (column - first)}^"
        return ExpressionError(msg)

    def tree(self) -> ast.expr:
        if not isinstance(self.text, str) or not self.text.strip():
            msg = f"expected an expression, found {self.text!r}"
            raise ExpressionError(msg)
        if len(self.text) > MOST_LETTERS:
            msg = f"the expression has {len(self.text)} letters, at most {MOST_LETTERS} are read"
            raise ExpressionError(msg)
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except SyntaxError as error:
            msg = f"{error.msg}\n    {self.text.strip()}\n    {' ' * ((error.offset or 1) - 1)}^"
            raise ExpressionError(msg) from None
        except (RecursionError, MemoryError, ValueError) as error:
            msg = f"the expression cannot be read: {error or 'nested too deeply'}"
            raise ExpressionError(msg) from None
        self.text = self.text.strip()
        if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
            raise self.error(
                None, f"more than {MOST_NODES} parts; give parts of it names in `define`"
            )
        return tree

    def kind(self, node: ast.expr, depth: int) -> Kind:
        if depth > MOST_DEPTH:
            raise self.error(
                node, f"nested more than {MOST_DEPTH} deep; give parts names in `define`"
            )
        match node:
            case ast.Constant():
                return self._constant(node)
            case ast.Name(id=name):
                return self._name(node, name)
            case ast.Attribute():
                return self._property(node, depth)
            case ast.Call():
                return self._call(node, depth)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return self._wanted(a, CONDITION, depth)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=a):
                found = self.kind(a, depth + 1)
                if found == CONDITION:
                    raise self.error(a, "is a condition; a sign belongs to a number or vector")
                return found
            case ast.BoolOp(values=values):
                for value in values:
                    self._wanted(value, CONDITION, depth)
                return CONDITION
            case ast.Compare(left=left, ops=ops, comparators=others):
                for op in ops:
                    if isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                        hint = _HINTS.get(type(op), "compare numbers with < <= > >= == !=")
                        raise self.error(node, f"this comparison has no meaning here; {hint}")
                for value in (left, *others):
                    self._wanted(value, NUMBER, depth)
                return CONDITION
            case ast.BinOp():
                return self._operation(node, depth)
        what = _REFUSED.get(type(node), type(node).__name__)
        raise self.error(node, f"{what} has no meaning in an expression")

    def _wanted(self, node: ast.expr, wanted: Kind, depth: int) -> Kind:
        found = self.kind(node, depth + 1)
        if found != wanted:
            raise self.error(node, f"is a {found} where a {wanted} is needed{self._hint(node)}")
        return wanted

    def _hint(self, *nodes: ast.expr) -> str:
        """Names that nobody defined are columns; that may not have been meant."""
        for node in nodes:
            if isinstance(node, ast.Name) and node.id not in {**self.known, **CONSTANTS}:
                return f"; {node.id} is a column{nearest_name(node.id, self.known)}"
        return ""

    def _constant(self, node: ast.Constant) -> Kind:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(node, f"{value!r} is no number")
        if isinstance(value, int) and value.bit_length() > 64:
            raise self.error(node, "this number is too large")
        if not math.isfinite(value):
            raise self.error(node, "this number is not finite")
        return NUMBER

    def _name(self, node: ast.expr, name: str) -> Kind:
        if name in self.known:
            return self.known[name]
        if name in CONSTANTS:
            return NUMBER
        if name in FUNCTIONS or name in SPECIAL:
            raise self.error(node, f"{name} is a function: write {name}(...)")
        if name.startswith("_"):
            raise self.error(
                node, f"{name} is no name of a column; give it a plain one in `columns:`"
            )
        return NUMBER  # a column

    def _property(self, node: ast.Attribute, depth: int) -> Kind:
        found = self.kind(node.value, depth + 1)
        if node.attr in PROPERTIES.get(found, {}):
            return PROPERTIES[found][node.attr]
        if node.attr in METHODS.get(found, {}):
            raise self.error(node, f"{node.attr} is a method: write .{node.attr}(...)")
        return self._no_attribute(node, found)

    def _no_attribute(self, node: ast.Attribute, found: Kind) -> Kind:
        if isinstance(node.value, ast.Name) and node.value.id not in self.known:
            near = nearest_name(node.value.id, self.known)
            name = node.value.id
            text = f"{name} is a column (a number) and has no {node.attr}{near}"
        else:
            near = nearest_name(node.attr, [*PROPERTIES.get(found, {}), *METHODS.get(found, {})])
            text = f"a {found} has no {node.attr}{near}"
        raise self.error(node, text)

    def _call(self, node: ast.Call, depth: int) -> Kind:
        if node.keywords:
            raise self.error(node, "arguments have no names here")
        if isinstance(node.func, ast.Attribute):
            method = node.func
            found = self.kind(method.value, depth + 1)
            if method.attr not in METHODS.get(found, {}):
                if method.attr in PROPERTIES.get(found, {}):
                    raise self.error(node, f"{method.attr} is a property: leave out the brackets")
                return self._no_attribute(method, found)
            return self._arguments(node, *METHODS[found][method.attr], depth)
        if not isinstance(node.func, ast.Name):
            raise self.error(node, "only the listed functions can be called")
        name = node.func.id
        if name in ("min", "max"):
            self.called.add(name)
            if len(node.args) < 2:
                raise self.error(node, f"{name} needs at least two numbers")
            for value in node.args:
                self._wanted(value, NUMBER, depth)
            return NUMBER
        if name == "where":
            self.called.add(name)
            return self._where(node, depth)
        if name not in FUNCTIONS:
            near = nearest_name(name, [*FUNCTIONS, *SPECIAL])
            raise self.error(node, f"there is no function {name}{near}")
        self.called.add(name)
        return self._arguments(node, *FUNCTIONS[name], depth)

    def _arguments(self, node: ast.Call, wanted: Sequence[Kind], result: Kind, depth: int) -> Kind:
        if len(node.args) != len(wanted):
            raise self.error(node, f"{len(node.args)} arguments where {len(wanted)} belong")
        for value, kind in zip(node.args, wanted, strict=True):
            self._wanted(value, kind, depth)
        return result

    def _where(self, node: ast.Call, depth: int) -> Kind:
        if len(node.args) != 3:
            raise self.error(node, "where needs a condition and two values")
        self._wanted(node.args[0], CONDITION, depth)
        found = self.kind(node.args[1], depth + 1)
        return self._wanted(node.args[2], found, depth)

    def _operation(self, node: ast.BinOp, depth: int) -> Kind:
        if not isinstance(node.op, _NUMBER_OPERATORS):
            hint = _HINTS.get(type(node.op), "known are + - * / **")
            raise self.error(node, f"this operator has no meaning here; {hint}")
        a, b = self.kind(node.left, depth + 1), self.kind(node.right, depth + 1)
        if CONDITION in (a, b):
            raise self.error(node, "a condition is no number; use where(condition, 1, 0)")
        if isinstance(node.op, ast.Pow):
            power = node.right.operand if isinstance(node.right, ast.UnaryOp) else node.right
            value = power.value if isinstance(power, ast.Constant) else None
            if a != NUMBER or not isinstance(value, int | float):
                raise self.error(node, "a power is a number ** a written number")
            if abs(value) > LARGEST_POWER:
                raise self.error(power, f"powers go up to {LARGEST_POWER}")
            return NUMBER
        if a == b and (a == NUMBER or isinstance(node.op, ast.Add | ast.Sub)):
            return a
        if isinstance(node.op, ast.Mult) and NUMBER in (a, b):
            return b if a == NUMBER else a
        if isinstance(node.op, ast.Div) and b == NUMBER:
            return a
        hint = " (write .dot or .cross)" if isinstance(node.op, ast.Mult) else ""
        hint += self._hint(node.left, node.right)
        raise self.error(node, f"a {a} and a {b} cannot be joined like this{hint}")
