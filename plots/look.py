"""Another look of our figures: a style by name or by its parameters, a font, a width.

    width    of a figure of one column; its height grows with the root of the width
    letters  sizes are shares of the style's `font.size` (plots/axes.py)

A style lies over ours. One that sets `figure.figsize` was made for figures of that width: ours are
enlarged to it as they are, or, where a width is asked for, its letters, lines and markers are
reduced as much as that width is to our column. What decides the geometry and the bytes of files
stays ours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
import mplhep
from matplotlib import font_manager, style

from selection.errors import UserError

COLUMN_IN = 3.4
PAGE_IN = 7.0
GENERIC = ("serif", "sans-serif", "monospace", "cursive", "fantasy")
OURS = ("figure.figsize", "figure.dpi", "savefig.dpi", "savefig.bbox", "figure.autolayout")
OUR_GROUPS = ("figure.constrained_layout", "figure.subplot", "svg.", "pdf.", "backend")
GROUPS = (  # that a file or the configuration may set: looks, no programs and no files
    *("axes", "axes3d", "errorbar", "figure", "font", "grid", "hatch", "image", "legend", "lines"),
    *("markers", "mathtext", "patch", "savefig", "scatter", "text", "xaxis", "xtick", "yaxis"),
    "ytick",
)
LENGTHS = ("size", "width", ".pad", "labelpad", "titlepad")  # ends of names
PROGRAMS = (
    *("figure.hooks", "text.usetex", "text.latex.preamble", "text.latex.engine"),
    "savefig.directory",
)


class LookError(UserError):
    """No such style, font or parameter; the message has the nearest."""


@dataclass(frozen=True)
class Look:
    """Parameters over those of our style, and the width of a figure of one column."""

    parameters: Mapping[Any, Any] = field(default_factory=dict)
    width_in: float = COLUMN_IN
    enlarged: bool = False  # height as width, for a style whose letters are as large

    def size(self, width_in: float, height_in: float) -> tuple[float, float]:
        """Of a figure that is so large in our own look."""
        if self.width_in == COLUMN_IN:
            return width_in, height_in
        if self.enlarged:
            return width_in * self.width_in / COLUMN_IN, height_in * self.width_in / COLUMN_IN
        wide = self.width_in if width_in <= COLUMN_IN else max(width_in, self.width_in)
        return wide, height_in * (wide / width_in) ** 0.5


OUR_LOOK = Look()
LOOK: ContextVar[Look] = ContextVar("look", default=OUR_LOOK)


@contextmanager
def dressed(look: Look) -> Iterator[None]:
    """Figures of ours that are drawn inside have this look."""
    token = LOOK.set(look)
    try:
        yield
    finally:
        LOOK.reset(token)


def look_of(
    named: str | Mapping[str, Any] | None, font: str | None, width_in: float | None
) -> Look:
    """named: a style by name, or its parameters."""
    found = {} if named is None else style_parameters(named)
    kept = {k: v for k, v in found.items() if k not in OURS and not k.startswith(OUR_GROUPS)}
    if font is not None:
        kept |= _font(font)
    if "figure.figsize" in found:
        made_for_in = float(found["figure.figsize"][0])
        if width_in is None:
            return Look(kept, made_for_in, enlarged=True)
        kept = _scaled(kept, COLUMN_IN / made_for_in)
    return Look(kept, COLUMN_IN if width_in is None else width_in)


def _scaled(parameters: Mapping[Any, Any], factor: float) -> dict[str, Any]:
    """All lengths in points times the factor; those of a legend are in units of its letters."""
    return {
        name: value * factor
        if name.endswith(LENGTHS)
        and not name.startswith("legend.border")
        and isinstance(value, int | float)
        else value
        for name, value in parameters.items()
    }


def style_parameters(named: str | Mapping[str, Any]) -> dict[str, Any]:
    """Of a style of mplhep or matplotlib by its name; or checked, if they are given."""
    if isinstance(named, Mapping):
        return _checked(named)
    of_mplhep = {n: v for n, v in vars(mplhep.style).items() if isinstance(v, dict) and n[0] != "_"}
    if named in of_mplhep:
        return dict(of_mplhep[named])
    if named in style.library:
        return {str(name): value for name, value in style.library[named].items()}
    names = [*of_mplhep, *style.available]
    lower = {name.lower(): name for name in names}
    near = [lower[n] for n in difflib.get_close_matches(named.lower(), lower, n=3, cutoff=0.4)]
    hint = f"nearest: {', '.join(near)}" if near else f"there are {', '.join(names)}"
    msg = f"neither mplhep nor matplotlib has a style {named!r} ({hint}); a file ends in .mplstyle"
    raise LookError(msg)


def _checked(parameters: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in parameters.items():
        if name not in mpl.rcParams:
            near = ", ".join(difflib.get_close_matches(name, list(mpl.rcParams), n=3)) or "none"
            msg = f"matplotlib has no parameter {name!r} (nearest: {near})"
            raise LookError(msg)
        unsafe = "__" in str(value)  # a cycle of colours is an expression
        if name.split(".")[0] not in GROUPS or name in PROGRAMS or unsafe:
            msg = f"{name} is not a matter of looks and cannot be set here"
            raise LookError(msg)
        try:
            _validated({name: value})
        except (ValueError, TypeError) as error:
            msg = f"{name}: {error}"
            raise LookError(msg) from None
    return _validated(dict(parameters))


def _validated(parameters: dict[Any, Any]) -> dict[str, Any]:
    """As matplotlib reads them: texts become numbers, colours and cycles."""
    return {str(name): value for name, value in mpl.RcParams(parameters).items()}


def _font(name: str) -> dict[str, Any]:
    """Letters and formulas in one font; ours where it has no sign."""
    known = sorted({font.name for font in font_manager.fontManager.ttflist})
    if name not in (*known, *GENERIC):
        near = ", ".join(difflib.get_close_matches(name, known, n=3, cutoff=0.4)) or "none"
        msg = f"this machine has no font {name!r} (nearest: {near})"
        raise LookError(msg)
    return {
        "font.family": [name, "DejaVu Sans"],
        "mathtext.fontset": "custom",
        "mathtext.rm": name,
        "mathtext.it": f"{name}:italic",
        "mathtext.bf": f"{name}:bold",
        "mathtext.cal": f"{name}:italic",
        "mathtext.tt": name,
    }
