"""What `settings.plots` says of style, font and colours: checked where it is written.

A style file becomes its parameters when the configuration is read, so that a run knows what it was
drawn with. matplotlib is loaded only where a name must be looked up: who sets nothing does not wait
for it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.config.yaml_places import Place, unknown_name

if TYPE_CHECKING:
    from analysis.config.samples import Background, Data, Signal
    from analysis.config.settings import PlotSettings

AT: Place = ("settings", "plots")
SUFFIX = ".mplstyle"
HEX = re.compile(r"#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
BEFORE_COMMENT = re.compile(r'(?:[^#"]|"[^"]*")*')
LARGEST = 100_000  # bytes of a style file


def with_style_of_file(plots: PlotSettings, folder: Path) -> PlotSettings:
    """The settings with the parameters of a style file in the place of its name."""
    if not isinstance(plots.style, str) or not plots.style.endswith(SUFFIX):
        return plots
    path = folder / plots.style
    if not path.is_file() or path.stat().st_size > LARGEST:
        return plots  # look_problems says so
    found: dict[str, Any] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        text = BEFORE_COMMENT.match(line)
        name, sign, value = (text.group() if text else "").partition(":")
        if sign:
            found[name.strip()] = value.strip().strip('"')
    return plots.model_copy(update={"style": found})


def look_problems(
    plots: PlotSettings, samples: Mapping[str, Signal | Background | Data]
) -> list[tuple[Place, str]]:
    """Everything that cannot be drawn, as (place in the configuration, what is wrong)."""
    found: list[tuple[Place, str]] = []
    for name, colour in plots.colours.items():
        at = (*AT, "colours", name)
        if name not in samples:
            found.append((at, unknown_name(name, list(samples)).replace("key", "sample")))
        elif samples[name].kind != "background":
            found.append(
                (at, "colours are of backgrounds; signal has one per mass, data are black")
            )
        if problem := _colour_problem(colour):
            found.append((at, problem))
    if isinstance(plots.style, str) and plots.style.endswith(SUFFIX):
        found.append(((*AT, "style"), f"no style file {plots.style} beside the configuration"))
    elif plots.style is not None or plots.font is not None:
        from plots.look import LookError, look_of

        for key, named, font in (("style", plots.style, None), ("font", None, plots.font)):
            try:
                look_of(named, font, None)
            except LookError as error:
                found.append(((*AT, key), str(error)))
    return found


def _colour_problem(colour: str) -> str:
    if HEX.fullmatch(colour):
        return ""
    from matplotlib.colors import get_named_colors_mapping, is_color_like

    if is_color_like(colour):
        return ""
    near = difflib.get_close_matches(colour, list(get_named_colors_mapping()), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "write a name or '#3f90da'"
    return f"matplotlib knows no colour {colour!r}; {hint}"
