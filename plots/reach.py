"""How far the search reaches, mass by mass: sigma_min, its inverse, and what they are made of.

    curve   mean over the networks, bar: standard error of the mean; for a single network, which
            has none, the error from the size of the simulation
    circle  mass used in training        triangle  mass the network never saw
    ratio   curve / reference curve at the same mass; bars: the curve's own error only; an arrow
            at the upper edge is a ratio beyond it

Masses where a curve sees nothing (sigma_min infinite) are not drawn, and neither is B = 0 on a
logarithmic axis; they are in the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from models.results import CLASSIFIER_TEXT, EnsembleFigureOfMerit
from plots.axes import Given, pt
from plots.style import (
    BLUE,
    BROWN,
    CYCLE,
    DARK_ORANGE,
    ORANGE,
    PURPLE,
    RED,
    SAND,
    SLATE,
    Label,
    fitting_pt,
    headroom,
    in_style,
    logarithmic_y,
    panels,
    put_label,
)

Floats = npt.NDArray[np.float64]
Quantity = Literal["sigma_min_fb", "fom_inv_fb"]

QUANTITY_TEXT = {
    "sigma_min_fb": r"$\sigma_{\mathrm{min}}$ [fb]",
    "fom_inv_fb": r"Punzi figure of merit [fb$^{-1}$]",
    "efficiency": "Signal efficiency",
    "background": "Background events",
    "cut": "Cut on the score",
}
COLOUR = {
    ("bce", "best_cut"): SLATE,
    ("bce", "single_cut"): "#92dadd",
    ("punzi", "best_cut"): BLUE,
    ("punzi", "single_cut"): RED,
    ("punzi", "maximum_achievable"): PURPLE,
    ("xgboost", "best_cut"): ORANGE,
    ("bce_equal", "best_cut"): PURPLE,
    ("bce_mass", "best_cut"): BROWN,
    ("bce_mass", "single_cut"): DARK_ORANGE,
    ("rectangular", "best_cut"): SAND,
}
ERROR = {"sigma_min_fb": "sigma_min_error_fb", "fom_inv_fb": "fom_error_inv_fb"}
MC_ERROR = {"sigma_min_fb": "sigma_min_mc_error_fb", "fom_inv_fb": "fom_mc_error_inv_fb"}
HIGHEST_RATIO = 3.0
SHORT = {"best_cut": "cut per mass", "single_cut": "one cut", "maximum_achievable": "maximum"}
# markers need no long handles; with XGBoost two columns of text just fit into the frame
LEGEND: dict[str, Any] = {
    "loc": "upper left",
    "ncols": 2,
    "handlelength": 0.8,
    "handletextpad": 0.4,
    "columnspacing": 0.6,
}


@in_style
def reach(
    curves: Sequence[EnsembleFigureOfMerit],
    *,
    quantity: Quantity = "sigma_min_fb",
    reference: tuple[str, str] = ("bce", "best_cut"),
    label: Label,
    axes: Given = None,
) -> Figure:
    """sigma_min or the figure of merit against mass, with the ratio to the reference below.

    curves: one record per (classifier, selection), all quoted on the same events; reference names
    one of them. Without it there is no ratio panel.
    """
    base = next((c for c in curves if (c.classifier, c.selection) == reference), None)
    figure, panel = panels(
        1 if base is None else 2,
        height_in=2.6 if base is None else 3.6,
        heights=None if base is None else (2.2, 1),
        axes=axes,
    )
    main: Axes = panel[0, 0]
    for i, curve in enumerate(curves):
        colour = _colour(curve, i)
        error_name = (ERROR if curve.n_networks > 1 else MC_ERROR)[quantity]
        value, error = getattr(curve, quantity), getattr(curve, error_name)
        _draw(main, curve, value, error, colour)
        if base is not None:
            below = getattr(base, quantity)
            below = np.where(np.isfinite(below) & (below > 0), below, np.nan)
            if curve is not base:
                _draw(panel[1, 0], curve, value / below, error / below, colour)
                _arrows(panel[1, 0], curve, value / below, colour)
    logarithmic_y(main)
    headroom(main, _legend_room(curves, 0.24))
    main.set_ylabel(QUANTITY_TEXT[quantity])
    _put_legend(main, curves)
    put_label(main, label)
    if base is not None:
        lower: Axes = panel[1, 0]
        lower.axhline(1, color=_colour(base, list(curves).index(base)), linewidth=pt(0.8))
        lower.set_ylabel(f"Ratio to\n{CLASSIFIER_TEXT.get(reference[0], reference[0])}")
        low, high = lower.get_ylim()
        lower.set_ylim(max(0.0, low), min(high, HIGHEST_RATIO))
    panel[-1, 0].set_xlabel(label.words.mass_text)
    panel[-1, 0].set_xlim(0, 1.03 * max(float(c.mass_gev.max()) for c in curves))
    return figure


@in_style
def efficiency_and_background(
    curves: Sequence[EnsembleFigureOfMerit], *, label: Label, axes: Given = None
) -> Figure:
    """Signal efficiency and background events in each window after the cut, against mass."""
    names = ("efficiency", "background")
    return _two_panels(curves, names, label=label, log_second=True, axes=axes)


@in_style
def cuts_by_mass(
    curves: Sequence[EnsembleFigureOfMerit], *, label: Label, axes: Given = None
) -> Figure:
    """The cut on the score against mass: does one value serve all masses?"""
    figure, panel = panels(height_in=2.3, axes=axes)
    ax: Axes = panel[0, 0]
    for i, curve in enumerate(curves):
        _draw(ax, curve, curve.cut, curve.cut_error, _colour(curve, i))
    ax.set_ylim(-0.03, 1.03)
    headroom(ax, _legend_room(curves, 0.22))
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1.0])
    ax.set_ylabel(QUANTITY_TEXT["cut"])
    ax.set_xlabel(label.words.mass_text)
    _put_legend(ax, curves)
    put_label(ax, label)
    return figure


def _two_panels(
    curves: Sequence[EnsembleFigureOfMerit],
    names: tuple[str, str],
    *,
    label: Label,
    log_second: bool,
    axes: Given,
) -> Figure:
    figure, panel = panels(2, height_in=3.6, axes=axes)
    for ax, name in zip(panel[:, 0], names, strict=True):
        for i, curve in enumerate(curves):
            _draw(
                ax, curve, getattr(curve, name), getattr(curve, f"{name}_error"), _colour(curve, i)
            )
        ax.set_ylabel(QUANTITY_TEXT[name])
    panel[0, 0].set_ylim(bottom=0)
    headroom(panel[0, 0], _legend_room(curves, 0.38))
    if log_second and any((c.background > 0).any() for c in curves):
        logarithmic_y(panel[1, 0])
    _put_legend(panel[0, 0], curves)
    put_label(panel[0, 0], label)
    panel[1, 0].set_xlabel(label.words.mass_text)
    return figure


def _legend_room(curves: Sequence[EnsembleFigureOfMerit], of_four_rows: float) -> float:
    """Share of the panel that the legend needs; more than four rows need more."""
    rows = -(-(len(curves) + 2) // 2)  # two columns; two entries are for the markers
    return of_four_rows * max(rows, 4) / 4


def _colour(curve: EnsembleFigureOfMerit, index: int) -> str:
    return COLOUR.get((curve.classifier, curve.selection), CYCLE[(index + 4) % len(CYCLE)])


def _draw(
    ax: Axes, curve: EnsembleFigureOfMerit, value: Floats, error: Floats, colour: str
) -> None:
    """Points with bars, circles where trained, triangles elsewhere."""
    good = np.isfinite(value)
    for trained, marker in ((True, "o"), (False, "^")):
        shown = good & (curve.trained == trained)
        ax.errorbar(
            curve.mass_gev[shown],
            value[shown],
            yerr=np.nan_to_num(error[shown]),
            fmt=marker,
            color=colour,
            markersize=pt(2.0 if trained else 2.3),
            markerfacecolor=colour if trained else "white",
            markeredgewidth=pt(0.5),
            elinewidth=pt(0.5),
        )


def _arrows(ax: Axes, curve: EnsembleFigureOfMerit, ratio: Floats, colour: str) -> None:
    """Marks the masses whose ratio lies above the panel."""
    beyond = curve.mass_gev[ratio > HIGHEST_RATIO]
    if beyond.size:
        ax.plot(
            beyond, np.full(len(beyond), 0.93), transform=ax.get_xaxis_transform(), linestyle="",
            marker=r"$\uparrow$", markersize=pt(4), color=colour, label="beyond",
        )  # fmt: skip


def _put_legend(ax: Axes, curves: Sequence[EnsembleFigureOfMerit]) -> None:
    """In two columns of text, which just fit."""
    ax.legend(handles=_handles(curves), **LEGEND, fontsize=fitting_pt(ax, 6.6))


def _handles(curves: Sequence[EnsembleFigureOfMerit]) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            color=_colour(c, i),
            marker="o",
            linestyle="",
            label=f"{CLASSIFIER_TEXT.get(c.classifier, c.classifier)}, {SHORT[c.selection]}",
        )
        for i, c in enumerate(curves)
    ]
    marks = (("o", "trained on"), ("^", "not trained on"))
    return handles + [
        Line2D(
            [], [], color="#333333", marker=m, linestyle="", label=text, markeredgewidth=pt(0.5),
            markerfacecolor="#333333" if m == "o" else "white",
        )
        for m, text in marks
    ]  # fmt: skip
