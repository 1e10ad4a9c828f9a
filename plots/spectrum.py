"""Spectra of the axis: stacked backgrounds, signal on top of nothing, data if there are any.

    band of the simulation:  sum over backgrounds +- sqrt(sum w^2)
    data points:             n with its Poisson interval (68 %)
    ratio:                   data / sum of backgrounds, band: relative error of the simulation

A ratio above the panel, also that of data where nothing is expected, is a red triangle at its edge.
Signal is drawn as lines from zero, not stacked, so that its shape can be seen; its height is the
cross section in the legend. A line ends at the first empty bin on either side of its peak: single
events far out in the tail would be a fence of spikes on a logarithmic axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import hist
import numpy as np
import numpy.typing as npt
from hist.intervals import poisson_interval
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.axes import Given, pt
from plots.style import (
    OUR_LEGEND,
    RED,
    Label,
    Legend,
    SearchWords,
    headroom,
    in_style,
    panels,
    per_bin,
    put_label,
    sample_colours,
)

Floats = npt.NDArray[np.float64]
SIGNAL_LINES = (("#bd1f01", "-"), ("#832db6", "--"), ("#000000", ":"), ("#a96b59", "-."))
HIGHEST_RATIO = 2.0


@dataclass(frozen=True)
class SignalOverlay:
    """Expected signal events at the luminosity of the figure, for one mass and cross section."""

    histogram: hist.Hist  # one axis, storage Weight
    mass_gev: float
    cross_section_fb: float

    def text(self, words: SearchWords) -> str:
        return rf"{words.mass(self.mass_gev)}, $\sigma$ = {self.cross_section_fb:g} fb"


@in_style
def spectrum(
    backgrounds: Mapping[str, hist.Hist],
    *,
    signals: Sequence[SignalOverlay] = (),
    data: hist.Hist | None = None,
    label: Label,
    legend: Legend = OUR_LEGEND,
    logarithmic: bool = True,
    axes: Given = None,
) -> Figure:
    """One spectrum, with a ratio panel if there are data.

    backgrounds: sample -> histogram with one axis (its label is the axis title with its unit in
    brackets) and storage Weight, in events at the luminosity of the figure; the last is drawn on
    top. data: counts on the same axis.
    """
    with_ratio = data is not None
    figure, panel = panels(
        2 if with_ratio else 1,
        height_in=3.1 if with_ratio else 2.5,
        heights=(3, 1) if with_ratio else None,
        axes=axes,
    )
    main: Axes = panel[0, 0]
    total = _stack(main, backgrounds, legend)
    _overlay(main, signals, label.words)
    if data is not None:
        _points(main, data, scale=None, text=legend.data)
        _ratio(panel[1, 0], data, total)
    _finish(main, total, signals, data, logarithmic=logarithmic)
    main.legend(loc="upper right", ncols=2)
    put_label(main, label)
    panel[-1, 0].set_xlabel(total.axes[0].label)
    return figure


@in_style
def before_and_after(
    before: Mapping[str, hist.Hist],
    after: Mapping[str, hist.Hist],
    *,
    signals: tuple[Sequence[SignalOverlay], Sequence[SignalOverlay]] = ((), ()),
    data: tuple[hist.Hist | None, hist.Hist | None] = (None, None),
    label: Label,
    legend: Legend = OUR_LEGEND,
    axes: Given = None,
) -> Figure:
    """Two spectra above each other on the same axis: all selected events, and those that pass.

    Arguments as for `spectrum`, pairs are (before, after).
    """
    figure, panel = panels(2, height_in=3.9, axes=axes)
    blind = ": data blind" if data[0] is not None and data[1] is None else ""
    texts = "before the cut", f"after the cut{blind}"
    for i, (stack, text) in enumerate(zip((before, after), texts, strict=True)):
        ax: Axes = panel[i, 0]
        total = _stack(ax, stack, legend)
        _overlay(ax, signals[i], label.words)
        points = data[i]
        if points is not None:
            _points(ax, points, scale=None, text=legend.data)
        _finish(ax, total, signals[i], points, logarithmic=True, free=0.36 if i == 0 else 0.08)
        ax.text(1.01, 0.5, text, transform=ax.transAxes, rotation=270, va="center",
                fontsize=pt(7.5))  # fmt: skip
        if i == 0:
            ax.legend(loc="upper right", ncols=2)
            put_label(ax, label)
        else:
            ax.set_xlabel(total.axes[0].label)
    return figure


def _stack(ax: Axes, backgrounds: Mapping[str, hist.Hist], legend: Legend) -> hist.Hist:
    """Draws the stack with its error band; returns the sum."""
    if not backgrounds:
        msg = "a spectrum needs at least one background histogram"
        raise ValueError(msg)
    edges = next(iter(backgrounds.values())).axes[0].edges
    floor = np.zeros(len(edges) - 1)
    colours = sample_colours(backgrounds, legend)
    for name, h in backgrounds.items():
        top = floor + h.values()
        ax.stairs(
            top, edges, baseline=floor, fill=True, color=colours[name], label=legend.text(name),
            linewidth=0, rasterized=False,
        )  # fmt: skip
        floor = top
    total = sum(list(backgrounds.values())[1:], start=next(iter(backgrounds.values())).copy())
    error = np.sqrt(total.variances())
    ax.stairs(floor, edges, color="black", linewidth=pt(0.4))
    ax.stairs(
        floor + error, edges, baseline=np.maximum(floor - error, 0), fill=True, facecolor="none",
        edgecolor="#333333", hatch="//////", linewidth=0, label="MC stat. unc.",
    )  # fmt: skip
    return total


def _overlay(ax: Axes, signals: Sequence[SignalOverlay], words: SearchWords) -> None:
    for i, signal in enumerate(signals):
        colour, line = SIGNAL_LINES[i % len(SIGNAL_LINES)]
        h = signal.histogram
        ax.stairs(
            connected(h.values()), h.axes[0].edges, color=colour, linestyle=line, linewidth=pt(1.1),
            label=signal.text(words),
        )  # fmt: skip


def connected(values: Floats) -> Floats:
    """The bins around the highest one up to the first empty bin on either side; nan elsewhere."""
    peak = int(np.argmax(values))
    empty = np.flatnonzero(values <= 0)
    first = empty[empty < peak].max(initial=-1) + 1
    stop = empty[empty > peak].min(initial=len(values))
    shown = np.full(len(values), np.nan)
    shown[first:stop] = values[first:stop]
    return shown


def _points(ax: Axes, data: hist.Hist, *, scale: Floats | None, text: str) -> None:
    """Data with Poisson intervals, divided by `scale` (n_bins,) if given; empty bins not drawn."""
    counts = np.asarray(data.values())
    shown = counts > 0
    unit = np.ones_like(counts) if scale is None else scale
    shown &= unit > 0
    low, high = poisson_interval(counts[shown], counts[shown])
    value, per = counts[shown], unit[shown]
    ax.errorbar(
        data.axes[0].centers[shown],
        value / per,
        yerr=np.array([value - low, high - value]) / per,
        fmt="o",
        color="black",
        markersize=pt(2.0),
        elinewidth=pt(0.6),
        label=text,
    )


def _ratio(ax: Axes, data: hist.Hist, total: hist.Hist) -> None:
    expected = np.asarray(total.values())
    error = np.zeros_like(expected)
    np.divide(np.sqrt(total.variances()), expected, out=error, where=expected > 0)
    ax.stairs(
        1 + error, total.axes[0].edges, baseline=1 - error, fill=True, facecolor="none",
        edgecolor="#333333", hatch="//////", linewidth=0,
    )  # fmt: skip
    ax.axhline(1, color="black", linewidth=pt(0.5))
    _points(ax, data, scale=expected, text="")
    _arrows(ax, data, expected)
    ax.set_ylim(0.0, HIGHEST_RATIO)
    ax.set_ylabel("Data / MC")


def _arrows(ax: Axes, data: hist.Hist, expected: Floats) -> None:
    """Marks the bins whose ratio lies above the panel; without expectation any data do."""
    counts = np.asarray(data.values())
    beyond = data.axes[0].centers[(counts > 0) & (counts > HIGHEST_RATIO * expected)]
    if beyond.size:
        ax.plot(
            beyond, np.full(len(beyond), 0.94), transform=ax.get_xaxis_transform(), linestyle="",
            marker="^", markersize=pt(3.6), markeredgewidth=0, color=RED, label="beyond",
        )  # fmt: skip


def _finish(
    ax: Axes,
    total: hist.Hist,
    signals: Sequence[SignalOverlay],
    data: hist.Hist | None,
    *,
    logarithmic: bool,
    free: float = 0.32,
) -> None:
    axis: Any = total.axes[0]
    everything = [total, *(s.histogram for s in signals), *([] if data is None else [data])]
    highest = max(float(np.max(h.values())) for h in everything)
    positive = np.asarray(total.values())[total.values() > 0]
    ax.set_xlim(axis.edges[0], axis.edges[-1])
    if logarithmic and positive.size:
        ax.set_yscale("log")
        lowest = max(float(np.quantile(positive, 0.05)), highest * 1e-5)
        ax.set_ylim(0.15 * lowest, 1.6 * highest)
        headroom(ax, free)
    else:
        ax.set_ylim(0, 1.1 * highest if highest > 0 else 1)
        headroom(ax, free)
    ax.set_ylabel(per_bin(axis))
