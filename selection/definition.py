"""From plain values, of YAML or of a model file, to a search: every problem with its place.

    plain values -> form (which entries, of which type) -> names -> expressions -> Search

A definition may come from a stranger: whatever is not known is refused, nothing is guessed, and all
problems are told at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selection.expressions import WORDS, nearest_name
from selection.ntuple import CANDIDATES_COLUMN, KEY_COLUMNS
from selection.search import (
    PEAKS,
    Axis,
    ColumnMeaning,
    Place,
    Plain,
    PublishedWidths,
    Quantity,
    Search,
    SearchError,
)

MOST_FEATURES, MOST_CUTS, MOST_NAMES = 32, 50, 100
# of a particle, and what may stand beside them: a mass beside e is only checked
COORDINATES: tuple[tuple[set[str], set[str]], ...] = (
    ({"px", "py", "pz", "e"}, {"mass"}),
    ({"px", "py", "pz", "mass"}, set()),
    ({"p", "theta", "phi", "mass"}, set()),
    ({"pt", "theta", "phi", "mass"}, set()),
    ({"pt", "eta", "phi", "mass"}, set()),
)
RESERVED = {
    *("axis", "weight", "key", "identity", *KEY_COLUMNS, CANDIDATES_COLUMN),  # of the skim
    *("fold", "score", "score_spread", "pass", "first_window", "last_window", "flag"),  # of apply
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")


def with_changes(plain: Plain, *, features: Plain, cuts: Plain) -> dict[str, Any]:
    """The definition with features and cuts added, replaced or (None) switched off by name."""
    found: dict[str, Any] = dict(plain)
    problems: list[tuple[Place, str]] = []
    for section, changes in (("features", features), ("cuts", cuts)):
        before = found.get(section)
        merged = dict(before) if isinstance(before, Mapping) else {}
        for name, value in changes.items():
            if value is not None:
                merged[name] = value
            elif name in merged:
                del merged[name]
            else:
                near = nearest_name(str(name), merged)
                what = f"there is none to switch off{near or '; there are ' + ', '.join(merged)}"
                problems.append(((section, name), what))
        found[section] = merged
    if problems:
        raise SearchError(problems)
    return found


def search_from(plain: Any) -> Search:
    """The search of plain values; SearchError lists everything that is wrong with them."""
    reader = _Reader()
    search = reader.search(plain)
    if search is not None and not reader.problems:
        reader.problems += _expression_problems(search)
    if reader.problems or search is None:
        raise SearchError(reader.problems)
    return search


_SECTIONS = ("name", "title", "mass", "particles", "columns", "define", "axis", "features", "cuts",
             "basf2")  # fmt: skip
_QUANTITY = ("value", "label", "unit", "bins")


class _Reader:
    """Form only: which entries there are, and of which type."""

    def __init__(self) -> None:
        self.problems: list[tuple[Place, str]] = []

    def search(self, plain: Any) -> Search | None:
        top = self._mapping((), plain)
        self._known((), top, _SECTIONS)
        for needed in ("particles", "axis", "features"):
            if needed not in top or top[needed] == {}:
                self.problems.append(((needed,), "is missing"))
        axis = self._axis(top.get("axis", {}))
        features = self._mapping(("features",), top.get("features", {}))
        quantities = [self._quantity(("features", n), n, v) for n, v in features.items()]
        if not 1 <= len(quantities) <= MOST_FEATURES and "features" in top:
            text = f"{len(quantities)} features; from 1 to {MOST_FEATURES} are possible"
            self.problems.append((("features",), text))
        particles = self._mapping(("particles",), top.get("particles", {}))
        cuts = self._texts(("cuts",), top.get("cuts", {}), MOST_CUTS)
        mass = self._mapping(("mass",), top.get("mass", {}))
        self._known(("mass",), mass, ("symbol", "unit"))
        if mass.get("unit", "GeV/c^2") != "GeV/c^2":
            self.problems.append((("mass", "unit"), "masses are in GeV/c^2"))
        made = Search(
            name=self._text(("name",), top.get("name", "own")),
            title=self._text(("title",), top.get("title", "")),
            symbol=self._text(("mass", "symbol"), mass.get("symbol", "m")),
            particles={n: self._particle(n, v) for n, v in particles.items()},
            define=self._texts(("define",), top.get("define", {}), MOST_NAMES),
            axis=axis,
            features=tuple(quantities),
            cuts=cuts,
            columns_meaning=self._meanings(top.get("columns", {})),
            basf2=self._texts(("basf2",), top.get("basf2", {}), MOST_NAMES),
        )
        self._names(made)
        return made

    def _names(self, search: Search) -> None:
        taken: dict[str, str] = {}
        for section, names in (
            ("particles", search.particles),
            ("define", search.define),
            ("features", search.feature_names),
            ("axis", (search.axis.name,)),
        ):
            for name in names:
                at: Place = (section,) if section == "axis" else (section, name)
                if not _NAME.fullmatch(name):
                    text = f"{name!r} is no name: a letter, then letters, digits and _"
                    self.problems.append((at, text))
                elif name in WORDS:
                    self.problems.append((at, f"{name} is a word of the language; choose another"))
                elif name in RESERVED and section in ("features", "axis"):
                    self.problems.append((at, f"{name} is a column of our own; choose another"))
                elif name in taken:
                    self.problems.append((at, f"{name} is a name in {taken[name]} already"))
                taken.setdefault(name, section)
        for section, found in (("cuts", search.cuts), ("basf2", search.basf2)):
            bad = [name for name in found if not _NAME.fullmatch(name)]
            text = "is no name: a letter, then letters, digits and _"
            self.problems += [((section, name), f"{name!r} {text}") for name in bad]

    def _mapping(self, at: Place, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.problems.append((at or ("search",), f"expected a mapping, found {_short(value)}"))
            return {}
        return {str(k): v for k, v in value.items()}

    def _known(self, at: Place, found: Mapping[str, Any], known: Sequence[str]) -> None:
        for name in found:
            if name not in known:
                near = nearest_name(name, known) or f"; known are {', '.join(known)}"
                self.problems.append(((*at, name), f"unknown entry{near}"))

    def _text(self, at: Place, value: Any) -> str:
        if isinstance(value, str) and len(value) <= 2000:
            return value
        self.problems.append((at, f"expected a text, found {_short(value)}"))
        return ""

    def _texts(self, at: Place, value: Any, most: int) -> dict[str, str]:
        found = self._mapping(at, value)
        if len(found) > most:
            self.problems.append((at, f"{len(found)} entries, at most {most} are possible"))
        return {name: self._text((*at, name), v) for name, v in found.items()}

    def _number(self, at: Place, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problems.append((at, f"expected a number, found {_short(value)}"))
            return 0.0
        if abs(value) > 1e300 or value != value:  # an integer may be too large for a float
            self.problems.append((at, "expected a finite number"))
            return 0.0
        return float(value)

    def _bins(self, at: Place, value: Any) -> tuple[int, float, float] | None:
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) != 3:
            self.problems.append((at, "expected [number of bins, low, high]"))
            return None
        n, low, high = (self._number((*at, i), v) for i, v in enumerate(value))
        if not (1 <= n <= 10_000 and n == int(n) and low < high):
            self.problems.append((at, "expected [number of bins, low, high] with low < high"))
            return None
        return int(n), low, high

    def _quantity(self, at: Place, name: str, value: Any) -> Quantity:
        if isinstance(value, str):
            value = {"value": value}
        found = self._mapping(at, value)
        self._known(at, found, _QUANTITY)
        if "value" not in found:
            self.problems.append((at, "has no value (an expression)"))
        return Quantity(
            name=name,
            value=self._text((*at, "value"), found.get("value", "0")),
            label=self._text((*at, "label"), found.get("label", name.replace("_", " "))),
            unit=self._text((*at, "unit"), found.get("unit", "")),
            bins=self._bins((*at, "bins"), found.get("bins")),
        )

    def _axis(self, value: Any) -> Axis:
        at: Place = ("axis",)
        found = self._mapping(at, value)
        own = ("name", "peak", "root_label", "published")
        self._known(at, found, (*_QUANTITY, *own))
        inner = {k: v for k, v in found.items() if k in _QUANTITY}
        name = self._text((*at, "name"), found.get("name", "axis_value"))
        q = self._quantity(at, name, inner) if found else Quantity(name, "0", "", "", None)
        if found and q.bins is None and "bins" not in found:
            self.problems.append((at, "needs bins: [number, low, high], for its spectra"))
        peak = str(found.get("peak", "")).replace(" ", "")
        if found and peak not in PEAKS:
            text = f"expected mass**2 (a squared mass) or mass, found {_short(found.get('peak'))}"
            self.problems.append(((*at, "peak"), text))
        return Axis(
            q.name, q.value, q.label, q.unit, q.bins,
            squared=PEAKS.get(peak, True),
            root_label=self._text((*at, "root_label"), found.get("root_label", "mass")),
            published=self._published(found.get("published")),
        )  # fmt: skip

    def _published(self, value: Any) -> PublishedWidths | None:
        if value is None:
            return None
        at: Place = ("axis", "published")
        found = self._mapping(at, value)
        names = ("text", "mass_gev", "sigma", "error")
        self._known(at, found, names)
        lists = []
        for name in names[1:]:
            values = found.get(name)
            if not isinstance(values, list | tuple):
                self.problems.append(((*at, name), "expected a list of numbers"))
                return None
            lists.append(tuple(self._number((*at, name, i), v) for i, v in enumerate(values)))
        if len({len(values) for values in lists}) != 1:
            self.problems.append((at, "mass_gev, sigma and error must be equally long"))
        return PublishedWidths(self._text((*at, "text"), found.get("text", "")), *lists)

    def _particle(self, name: str, value: Any) -> dict[str, str | float]:
        at: Place = ("particles", name)
        found = self._mapping(at, value)
        fits = [needed for needed, more in COORDINATES if needed <= set(found) <= needed | more]
        if not fits:
            ways = "; ".join(", ".join(sorted(needed)) for needed, _ in COORDINATES)
            self.problems.append(
                (at, f"has {', '.join(found) or 'nothing'}; wanted is one of {ways}")
            )
        kept: dict[str, str | float] = {}
        for part, given in found.items():
            if part == "mass" and not isinstance(given, str):
                kept[part] = self._number((*at, part), given)
            elif isinstance(given, str) and _NAME.fullmatch(given) and given not in WORDS:
                kept[part] = given
            else:
                text = f"expected the name of a column, found {_short(given)}"
                self.problems.append(((*at, part), text))
        if "e" in found and isinstance(kept.get("mass"), str):
            text = "beside e the mass is a number in GeV, against which E² − p² is checked"
            self.problems.append(((*at, "mass"), text))
        return kept

    def _meanings(self, value: Any) -> dict[str, ColumnMeaning]:
        made = {}
        for name, about in self._mapping(("columns",), value).items():
            at: Place = ("columns", name)
            found = self._mapping(at, about)
            self._known(at, found, ("text", "unit", "range"))
            low, high = self._range((*at, "range"), found.get("range"))
            made[name] = ColumnMeaning(
                self._text((*at, "text"), found.get("text", "")),
                self._text((*at, "unit"), found.get("unit", "")),
                low,
                high,
            )
        return made

    def _range(self, at: Place, value: Any) -> tuple[Any, Any]:
        if value is None:
            return None, None
        ends = value if isinstance(value, list | tuple) and len(value) == 2 else ()
        named = ("pi", "-pi", "sqrt_s")
        good = [v for v in ends if v in named or (_is_number(v) and abs(v) < 1e300)]
        if len(good) != 2:
            self.problems.append((at, "expected [low, high]: numbers, pi or sqrt_s"))
            return None, None
        return good[0], good[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _expression_problems(search: Search) -> Iterator[tuple[Place, str]]:
    """Every expression that cannot be read, each with its place."""
    try:
        _ = search.parts
    except SearchError as error:
        yield from error.problems
