"""The peak of the axis with its fitted shape and window, and the width against mass.

window: peak +- n sigma(m)       grey band in the figure of the fit
pull:   (events - fit) / error  per bin
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from models.results import PeakFit, WidthsByMass
from plots.axes import Given, pt
from plots.style import BLUE, GREY, ORANGE, RED, Label, headroom, in_style, panels, put_label


@in_style
def peak_fit(record: PeakFit, *, label: Label, axes: Given = None) -> Figure:
    """The axis of one signal mass: points, fit, its core, the window, and pulls."""
    figure, both = panels(2, height_in=3.0, heights=(3, 1), axes=axes)
    ax, below = both[:, 0]
    centre = 0.5 * (record.edges[1:] + record.edges[:-1])
    width = float(record.edges[1] - record.edges[0])
    for panel in (ax, below):
        panel.axvspan(
            record.window_low, record.window_high, color=GREY, alpha=0.25, linewidth=0,
            label="window" if panel is ax else None,
        )  # fmt: skip
    ax.plot(record.curve_at, record.curve, color=RED, label="fit")
    ax.plot(record.curve_at, record.core, color=BLUE, linestyle="--", label="core")
    ax.errorbar(
        centre, record.content, yerr=record.content_error, fmt="o", color="black",
        markersize=pt(1.8), elinewidth=pt(0.5), label="signal simulation",
    )  # fmt: skip
    ax.set_ylim(0, 1.08 * float((record.content + record.content_error).max()))
    headroom(ax, 0.05)
    ax.set_ylabel(f"Events / ({width:.3g} {label.words.axis_unit})")
    text = (
        f"{label.words.mass(record.mass_gev)}\n"
        rf"$\sigma$ = ({record.sigma:.4f} $\pm$ {record.sigma_error:.4f}) {label.words.axis_unit}"
    )
    ax.legend(loc="upper right", title=text, title_fontsize=pt(6.6), alignment="left")
    expected = np.interp(centre, record.curve_at, record.curve)
    shown = record.content_error > 0
    pull = (record.content - expected)[shown] / record.content_error[shown]
    below.axhline(0, color=RED, linewidth=pt(0.6))
    below.errorbar(
        centre[shown], pull, yerr=np.ones(len(pull)), fmt="o", color="black", markersize=pt(1.6),
        elinewidth=pt(0.5),
    )  # fmt: skip
    limit = max(3.5, min(6.0, float(np.abs(pull).max(initial=0)) + 1.5))
    below.set_ylim(-limit, limit)
    below.set_ylabel("Pull")
    below.set_xlabel(label.words.axis_text)
    below.set_xlim(record.edges[0], record.edges[-1])
    put_label(ax, label)
    return figure


@in_style
def width_by_mass(record: WidthsByMass, *, label: Label, axes: Given = None) -> Figure:
    """Fitted widths with errors, the smooth curve that makes the windows, published widths."""
    figure, panel = panels(height_in=2.4, axes=axes)
    ax: Axes = panel[0, 0]
    if record.reference_mass_gev.size:
        ax.errorbar(
            record.reference_mass_gev, record.reference_sigma, yerr=record.reference_error,
            fmt="s", color=ORANGE, markersize=pt(2.4), markerfacecolor="white",
            markeredgewidth=pt(0.6), elinewidth=pt(0.5),
            label=f"published ({record.reference_text})",
        )  # fmt: skip
    ax.errorbar(
        record.mass_gev, record.sigma, yerr=record.sigma_error, fmt="o", color=BLUE,
        markersize=pt(2.0), elinewidth=pt(0.5), label="fit of each mass",
    )  # fmt: skip
    ax.plot(record.curve_mass_gev, record.curve_sigma, color=RED, label="smooth curve")
    ax.set_ylim(bottom=0)
    headroom(ax, 0.08)
    ax.set_xlim(left=0)
    ax.set_xlabel(label.words.mass_text)
    ax.set_ylabel(label.words.width_text)
    ax.legend(loc="best")
    put_label(ax, label)
    return figure
