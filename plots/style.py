"""How our figures look, and how they are written to disk.

Figures are one column wide (3.4 in) with letters of 7 to 8 points, as they appear in print: what
is readable on the screen at this size is readable on paper. Colours are Petroff's
(arXiv:2107.02270), which stay apart for colour-blind readers; line styles and markers differ as
well. The label says what the figure is made of, and never that a collaboration approved it.
"""

from __future__ import annotations

import csv
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import hist
import matplotlib as mpl
import mplhep
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import ScalarFormatter
from matplotlib.transforms import Bbox

from plots.axes import Given, given_panels, pt
from plots.look import COLUMN_IN, LOOK, OUR_LOOK, Look
from selection.whole_files import replacing

BLUE, ORANGE, RED, GREY, PURPLE = "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"
BROWN, DARK_ORANGE, SAND, SLATE, SKY = "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"
CYCLE = (BLUE, RED, ORANGE, PURPLE, GREY, BROWN, DARK_ORANGE, SAND, SLATE, SKY)

PROCESS_TEXT = {
    "taupair": r"$\tau^+\tau^-$",
    "mumugamma": r"$\mu^+\mu^-(\gamma)$",
    "eemumu": r"$e^+e^-\mu^+\mu^-$",
    "threegamma": r"$\gamma\gamma\gamma$",
}
PROCESS_COLOUR = {"taupair": BLUE, "mumugamma": ORANGE, "eemumu": GREY, "threegamma": BLUE}

STYLE: dict[Any, Any] = {
    **mplhep.style.plothist,
    "font.family": ["TeX Gyre Heros", "DejaVu Sans"],
    "mathtext.fontset": "custom",
    "mathtext.rm": "TeX Gyre Heros",
    "mathtext.it": "TeX Gyre Heros:italic",
    "mathtext.bf": "TeX Gyre Heros:bold",
    "mathtext.cal": "TeX Gyre Heros:italic",
    "mathtext.tt": "TeX Gyre Heros",
    "mathtext.default": "regular",
    "mathtext.fallback": "stixsans",
    "axes.prop_cycle": cycler("color", CYCLE),
    "axes.formatter.use_mathtext": False,  # parsed anew for every number; see plain_numbers
    "axes.linewidth": 0.6,
    "axes.labelpad": 2.5,
    "axes.labelsize": 8,
    "font.size": 8,
    "legend.fontsize": 6.6,
    "legend.title_fontsize": 6.6,
    "legend.handlelength": 1.6,
    "legend.labelspacing": 0.3,
    "legend.columnspacing": 1.0,
    "legend.borderaxespad": 0.4,
    "lines.linewidth": 1.0,
    "lines.markersize": 2.6,
    "patch.linewidth": 0.6,
    "hatch.linewidth": 0.4,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.top": True,
    "ytick.right": True,
    **{f"{x}tick.major.size": 3.5 for x in "xy"},
    **{f"{x}tick.minor.size": 1.8 for x in "xy"},
    **{f"{x}tick.{kind}.width": 0.5 for x in "xy" for kind in ("major", "minor")},
    **{f"{x}tick.major.pad": 2.5 for x in "xy"},
    "figure.constrained_layout.h_pad": 0.02,
    "figure.constrained_layout.w_pad": 0.02,
    "figure.constrained_layout.hspace": 0.0,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.hashsalt": "punzi",
}

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class SearchWords:
    """How a search calls its mass and its axis, in mathtext."""

    symbol: str = "m"  # without dollars
    axis: str = "axis"  # label of the mass-like quantity
    axis_unit: str = ""
    mass_axis: str = "mass"  # the axis as a mass: its root where it is a square

    def mass(self, mass_gev: float) -> str:
        return rf"${self.symbol}$ = {mass_gev:g} GeV/$c^2$"

    @property
    def mass_text(self) -> str:
        """Title of an axis of hypotheses."""
        return rf"${self.symbol}$ [GeV/$c^2$]"

    @property
    def axis_text(self) -> str:
        return f"{self.axis} [{self.axis_unit}]" if self.axis_unit else self.axis

    @property
    def width_text(self) -> str:
        unit = f" [{self.axis_unit}]" if self.axis_unit else ""
        return rf"$\sigma$({self.axis}){unit}"


@dataclass(frozen=True)
class Label:
    """Text above a figure: experiment, what it is, luminosity and energy (None: not shown)."""

    experiment: str = "Belle II"
    text: str = "Simulation (own work)"
    luminosity_inv_fb: float | None = None
    sqrt_s_gev: float | None = 10.58
    words: SearchWords = field(default_factory=SearchWords)  # for the axes


@dataclass(frozen=True)
class Legend:
    """Texts of samples and data; a sample that is not in it has our text for it, or its name."""

    samples: Mapping[str, str] = field(default_factory=dict)
    data: str = "Data"
    colours: Mapping[str, str] = field(default_factory=dict)  # of samples; else ours

    def text(self, sample: str) -> str:
        return self.samples.get(sample) or PROCESS_TEXT.get(sample, sample)


OUR_LEGEND = Legend()


def sample_colours(samples: Iterable[str], legend: Legend = OUR_LEGEND) -> dict[str, str]:
    """By name of the sample: the reader's, ours for our processes, then spare ones in order."""
    spare = iter(CYCLE[5:])
    known = {**PROCESS_COLOUR, **legend.colours}
    return {name: known.get(name) or next(spare, "#cccccc") for name in samples}


def in_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Runs a drawing function in our style, without touching the reader's matplotlib settings.

    Where the reader gives `axes`, the settings are the reader's.
    """

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.get("axes") is not None:
            return draw(*args, **kwargs)
        with mpl.rc_context({**STYLE, **LOOK.get().parameters}):
            return draw(*args, **kwargs)

    return drawn


class StyledFigure(Figure):
    """A figure that is drawn in the style it was made in, wherever a reader shows or saves it.

    Formulas find their fonts only when they are drawn; a function cannot carry that along.
    """

    made_in: dict[Any, Any] | None = None

    def draw(self, renderer: RendererBase) -> None:
        with mpl.rc_context(self.made_in):
            super().draw(renderer)

    def get_tightbbox(self, *args: Any, **kwargs: Any) -> Bbox | None:  # type: ignore[override]
        with mpl.rc_context(self.made_in):
            return super().get_tightbbox(*args, **kwargs)


def new_figure(width_in: float, height_in: float, *, layout: Any = "constrained") -> Figure:
    """Outside pyplot, of the size that our look gives it."""
    figure = StyledFigure(figsize=LOOK.get().size(width_in, height_in), layout=layout)
    figure.made_in = {**STYLE, **LOOK.get().parameters}
    return figure


def panels(
    n_rows: int = 1,
    n_columns: int = 1,
    *,
    width_in: float = COLUMN_IN,
    height_in: float = 2.6,
    heights: Sequence[float] | None = None,
    share_x: bool = True,
    axes: Given = None,
) -> tuple[Figure, Any]:
    """A figure with a (n_rows, n_columns) array of axes, outside pyplot; or `axes` and theirs."""
    if axes is not None:
        return given_panels(axes, n_rows, n_columns, share_x=share_x)
    figure = new_figure(width_in, height_in)
    return figure, figure.subplots(
        n_rows, n_columns, sharex="col" if share_x else "none", squeeze=False,
        height_ratios=heights,
    )  # fmt: skip


def put_label(ax: Axes, label: Label) -> None:
    """The label above the axes: who and what at the left, luminosity and energy at the right."""
    right = []
    if label.luminosity_inv_fb is not None:
        right.append(rf"{label.luminosity_inv_fb:g} fb$^{{-1}}$")
    if label.sqrt_s_gev is not None:
        right.append(f"√s = {label.sqrt_s_gev:.4g} GeV")  # the font has no large root sign
    large, small = (fitting_pt(ax, size) for size in (8, 6.6))
    mplhep.label.exp_label(
        exp=label.experiment, text=label.text, loc=0, ax=ax,
        fontsize=(large, small, small, small),
        rlabel=", ".join(right), data=True, scilocator_adjust=False,
    )  # fmt: skip


def fitting_pt(ax: Axes, size: float) -> float:
    """Letters of lines that just fit into a figure of ours: a style must not make them larger."""
    figure = ax.get_figure(root=True)
    if not isinstance(figure, StyledFigure):
        return pt(size)
    return min(pt(size), size * float(figure.get_size_inches()[0]) / COLUMN_IN)


def headroom(ax: Axes, share: float, *, bottom: float | None = None) -> None:
    """Leaves the upper `share` of the axes free of data, for the legend."""
    low, high = ax.get_ylim()
    low = low if bottom is None else bottom
    if ax.get_yscale() == "log":
        high = 10 ** (np.log10(low) + np.log10(high / low) / (1 - share))
    else:
        high = low + (high - low) / (1 - share)
    ax.set_ylim(low, high)


def logarithmic_y(ax: Axes) -> None:
    """Logarithmic y axis with at least two powers of ten on it: no labels like 6 x 10^0."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if np.floor(np.log10(high)) - np.ceil(np.log10(low)) < 1:
        ax.set_ylim(10.0 ** np.floor(np.log10(low)), 10.0 ** np.ceil(np.log10(high)))


def plain_numbers(figure: Figure) -> None:
    """Powers of ten beside an axis are formulas; its numbers are not, which draws them faster."""
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            formatter = axis.get_major_formatter()
            if isinstance(formatter, ScalarFormatter):
                formatter.set_locs(list(axis.get_majorticklocs()))
                formatter.set_useMathText(bool(formatter.get_offset()))


def per_bin(axis: Any, quantity: str = "Events") -> str:
    """Label of the y axis with the width of the bins: 'Events / (0.1 GeV)'."""
    widths = np.asarray(axis.widths)
    if not np.allclose(widths, widths[0], rtol=1e-6):
        return f"{quantity} / bin"
    label = str(axis.label)
    unit = label[label.rindex("[") + 1 : label.rindex("]")] if "[" in label else ""
    return f"{quantity} / ({widths[0]:.3g} {unit})" if unit else f"{quantity} / {widths[0]:.3g}"


def histogram_rows(histograms: Mapping[str, hist.Hist]) -> list[dict[str, Any]]:
    """The numbers of one-dimensional histograms of one axis, for `save`: a row per bin."""
    edges = np.asarray(next(iter(histograms.values())).axes[0].edges)
    rows: list[dict[str, Any]] = [
        {"low": low, "high": high} for low, high in itertools.pairwise(edges)
    ]
    for name, h in histograms.items():
        errors = np.sqrt(np.asarray(h.variances()))
        for row, value, error in zip(rows, h.values(), errors, strict=True):
            row[name], row[f"{name}_error"] = float(value), float(error)
    return rows


DATE = {
    "pdf": "CreationDate",
    "svg": "Date",
    "png": "Software",
}  # left out: same numbers, same bytes


def save(
    figure: Figure,
    stem: Path,
    numbers: Sequence[Mapping[str, Any]],
    *,
    formats: Sequence[str] = ("pdf",),
    dpi: int = 300,
    look: Look = OUR_LOOK,
) -> tuple[Path, ...]:
    """Writes stem.png, stem.csv and the other formats, each whole or not at all; their paths."""

    def draw(kind: str) -> Callable[[Path], None]:
        nothing: dict[str, Any] = {DATE[kind]: None}
        return lambda path: figure.savefig(path, format=kind, metadata=nothing, dpi=dpi)

    def table(path: Path) -> None:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(k for row in numbers for k in row)))
            writer.writeheader()
            writer.writerows(numbers)

    writers = {kind: draw(kind) for kind in (*formats, "png")} | {"csv": table}
    written = tuple(stem.with_name(f"{stem.name}.{kind}") for kind in writers)
    with mpl.rc_context({**STYLE, **look.parameters}):
        for path, write in zip(written, writers.values(), strict=True):
            with replacing(path) as temporary:
                write(temporary)
    return written
