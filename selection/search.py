"""A search as data: particles, quantities, the axis, features and cuts, all in words.

    particles   lab four-vectors from columns: (px, py, pz, e), (px, py, pz, mass),
                (p, theta, phi, mass), (pt, eta | theta, phi, mass)
    define      named quantities of any kind; may refer to each other
    axis        the mass-like number; a particle of mass m peaks in it at mass**2 or at mass
    features    1 to 32 numbers, what the network sees
    cuts        named conditions in order; they may name features and the axis

The record is made from plain values by selection/definition.py, which checks everything; `plain`
turns it back. selection/kernel.py makes it run.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from selection.errors import UserError
from selection.expressions import (
    BEAM_NAMES,
    CONDITION,
    NUMBER,
    VECTOR4,
    Expression,
    ExpressionError,
    Kind,
    compared,
    parsed,
)

PEAKS = {"mass**2": True, "mass": False}  # text -> is the axis that of a squared mass?
Place = tuple[str | int, ...]
Plain = Mapping[str, Any]


class SearchError(UserError, ValueError):
    """A definition that cannot be used; `problems` has each with its place."""

    def __init__(self, problems: Sequence[tuple[Place, str]]) -> None:
        self.problems = tuple(problems)
        lines = [f"{'.'.join(map(str, place))}: {text}" for place, text in problems]
        super().__init__("the search cannot be used:\n" + "\n".join(lines))


@dataclass(frozen=True)
class Quantity:
    """A number of each event, and how it is called in figures."""

    name: str
    value: str
    label: str
    unit: str
    bins: tuple[int, float, float] | None  # number, low, high

    @property
    def axis_text(self) -> str:
        """Label with its unit in brackets."""
        return f"{self.label} [{math_unit(self.unit)}]" if self.unit else self.label


@dataclass(frozen=True)
class PublishedWidths:
    """Widths of the peak that others found; for checks and one figure."""

    text: str
    mass_gev: tuple[float, ...]
    sigma: tuple[float, ...]
    error: tuple[float, ...]


@dataclass(frozen=True)
class Axis(Quantity):
    """The mass-like quantity."""

    squared: bool
    root_label: str  # of the mass, where the axis is its square
    published: PublishedWidths | None = None

    @property
    def mass_name(self) -> str:
        """`recoil_mass` of `recoil_mass2`; the axis itself where it is a mass."""
        if not self.squared:
            return self.name
        return self.name.removesuffix("2") if self.name.endswith("2") else f"{self.name}_root"

    def peak(self, mass_gev: float) -> float:
        return mass_gev**2 if self.squared else mass_gev


@dataclass(frozen=True)
class ColumnMeaning:
    """What a column of a cut can be."""

    text: str
    unit: str
    low: float | str | None  # a number, `pi` or `sqrt_s`
    high: float | str | None

    def span(self, sqrt_s_gev: float) -> tuple[float, float] | None:
        if self.low is None or self.high is None:
            return None
        named = {"pi": math.pi, "-pi": -math.pi, "sqrt_s": sqrt_s_gev}
        low, high = (named[v] if isinstance(v, str) else v for v in (self.low, self.high))
        return float(low), float(high)


@dataclass(frozen=True)
class Search:
    """A checked definition; `identity` is that of the numbers it gives, whatever its labels are."""

    name: str
    title: str
    symbol: str  # of the mass, in mathtext without dollars
    particles: Mapping[str, Mapping[str, str | float]]
    define: Mapping[str, str]
    axis: Axis
    features: tuple[Quantity, ...]
    cuts: Mapping[str, str]
    columns_meaning: Mapping[str, ColumnMeaning]
    basf2: Mapping[str, str]  # alias -> expression of basf2 that computes it

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.features)

    def feature(self, name: str) -> Quantity:
        return self.features[self.feature_names.index(name)]

    @cached_property
    def parts(self) -> Parts:
        """All expressions, checked and in an order in which they can be computed."""
        return _parts(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that axis, features and cuts need, in a fixed order."""
        return self.parts.columns

    @cached_property
    def cut_variables(self) -> dict[str, str]:
        """Cut -> the number that it looks at first, each once; axis and features are not in it."""
        found: dict[str, str] = {}
        for name, condition in self.parts.cuts.items():
            text = compared(condition)
            known = {*found.values(), self.axis.name, *self.feature_names}
            if text is not None and text not in known:
                found[name] = text
        return found

    @cached_property
    def identity(self) -> str:
        """Of all that decides a number: two searches with the same one select the same."""
        content = json.dumps(
            [
                {k: dict(v) for k, v in self.particles.items()},
                dict(self.define),
                [self.axis.value, self.axis.squared],
                [[f.name, f.value] for f in self.features],
                list(self.cuts.items()),
            ],
            sort_keys=False,
        )
        return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()

    def __hash__(self) -> int:
        return hash(self.identity)

    def plain(self) -> dict[str, Any]:
        """Plain values for YAML or a model file, from which it can be made again."""
        axis = _plain_quantity(self.axis)
        axis["name"] = self.axis.name
        axis["peak"] = next(text for text, squared in PEAKS.items() if squared == self.axis.squared)
        axis["root_label"] = self.axis.root_label
        if self.axis.published is not None:
            axis["published"] = {k: _listed(v) for k, v in asdict(self.axis.published).items()}
        meaning = {
            name: {"text": c.text, "unit": c.unit}
            | ({} if c.low is None else {"range": [c.low, c.high]})
            for name, c in self.columns_meaning.items()
        }
        return {
            "name": self.name,
            "title": self.title,
            "mass": {"symbol": self.symbol},
            "particles": {name: dict(how) for name, how in self.particles.items()},
            "columns": meaning,
            "define": dict(self.define),
            "axis": axis,
            "features": {f.name: _plain_quantity(f) for f in self.features},
            "cuts": dict(self.cuts),
            "basf2": dict(self.basf2),
        }


@dataclass(frozen=True)
class Parts:
    """The checked expressions of a search."""

    define: Mapping[str, Expression]  # in the order of computation
    axis: Expression
    features: tuple[Expression, ...]
    cuts: Mapping[str, Expression]
    columns: tuple[str, ...]


def math_unit(unit: str) -> str:
    """`GeV^2/c^4` as mathtext."""
    text = re.sub(r"\^(\d+)", r"$^\1$", unit)
    return re.sub(r"\bc(?=$|\$|[^a-zA-Z])", r"$c$", text).replace("$$", "")


def _plain_quantity(q: Quantity) -> dict[str, Any]:
    return {
        "value": q.value,
        "label": q.label,
        "unit": q.unit,
        **({} if q.bins is None else {"bins": list(q.bins)}),
    }


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _parts(search: Search) -> Parts:
    problems: list[tuple[Place, str]] = []
    known: dict[str, Kind] = dict.fromkeys(search.particles, VECTOR4)
    define = _ordered(search.define, known, problems)
    known |= {name: e.kind for name, e in define.items()}
    broken = set(search.define) - set(define)

    def read(at: Place, text: str, wanted: Kind, names: Mapping[str, Kind]) -> Expression | None:
        try:
            found = parsed(text, names, wanted=wanted)
        except ExpressionError as error:
            if not any(name in text for name in broken):  # one message for one mistake
                problems.append((at, str(error)))
            return None
        return found

    axis = read(("axis", "value"), search.axis.value, NUMBER, known)
    features = [
        read(("features", f.name, "value"), f.value, NUMBER, known) for f in search.features
    ]
    stored = {search.axis.name: NUMBER, **dict.fromkeys(search.feature_names, NUMBER)}
    cuts = {
        name: read(("cuts", name), text, CONDITION, {**known, **stored})
        for name, text in search.cuts.items()
    }
    if problems or axis is None:
        raise SearchError(problems)
    good = [e for e in (axis, *features, *cuts.values()) if e is not None]
    columns = _columns(search, define, good, set(stored))
    return Parts(
        define,
        axis,
        tuple(f for f in features if f is not None),
        {name: e for name, e in cuts.items() if e is not None},
        columns,
    )


def _ordered(
    define: Mapping[str, str], known: Mapping[str, Kind], problems: list[tuple[Place, str]]
) -> dict[str, Expression]:
    """The defined quantities, each after those it names."""
    done: dict[str, Expression] = {}
    failed: set[str] = set()
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in done or name in failed:
            return
        if name in open_:
            circle = " -> ".join([*open_[open_.index(name) :], name])
            problems.append((("define", name), f"is defined by itself: {circle}"))
            failed.update(open_[open_.index(name) :])
            return
        open_.append(name)
        words = set(re.findall(r"[A-Za-z_]\w*", define[name]))
        for other in define:
            if other in words:
                visit(other)
        open_.pop()
        if name in failed or failed & words:
            failed.add(name)
            return
        try:
            done[name] = parsed(define[name], {**known, **{n: e.kind for n, e in done.items()}})
        except ExpressionError as error:
            problems.append((("define", name), str(error)))
            failed.add(name)

    for name in define:
        visit(name)
    return done


def _columns(
    search: Search, define: Mapping[str, Expression], used: Sequence[Expression], stored: set[str]
) -> tuple[str, ...]:
    """Columns that `used` needs by way of particles and definitions, particles first."""
    names: set[str] = set()
    waiting = [name for e in used for name in e.names]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += define[name].names if name in define else ()
    of_particles = [
        column
        for particle, how in search.particles.items()
        if particle in names
        for column in how.values()
        if isinstance(column, str)
    ]
    plain = names - set(search.particles) - set(define) - set(BEAM_NAMES) - stored
    return tuple(dict.fromkeys([*of_particles, *sorted(plain)]))
