"""What the network sees: its features, for every process and some signal masses.

Each histogram is divided by its own sum, so that shapes can be compared:
    height = w_bin / sum of w,   band: sqrt(sum w^2 of the bin) / sum of w
"""

from __future__ import annotations

from collections.abc import Mapping

import hist
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.axes import Given, legend_beside, pt
from plots.look import PAGE_IN
from plots.spectrum import SIGNAL_LINES
from plots.style import (
    OUR_LEGEND,
    PROCESS_TEXT,
    Label,
    Legend,
    headroom,
    in_style,
    panels,
    per_bin,
    put_label,
    sample_colours,
)


@in_style
def feature_distributions(
    features: Mapping[str, Mapping[str, hist.Hist]],
    *,
    label: Label,
    legend: Legend = OUR_LEGEND,
    axes: Given = None,
) -> Figure:
    """Panels in two columns (three from nine features on), one per feature, across the page.

    features: feature -> (sample or signal name -> histogram with one axis, storage Weight).
    Samples of the legend and our processes are filled lightly, other names (such as "1.5 GeV") are
    signal lines.
    """
    columns = min(len(features), 2 if len(features) < 9 else 3)
    columns = columns if axes is None else len(features)  # those that are given are all used
    rows = -(-len(features) // columns)
    figure, panel = panels(
        rows, columns, width_in=PAGE_IN, height_in=2.25 * rows + 0.3, share_x=False, axes=axes
    )
    for ax, histograms in zip(panel.flat, features.values(), strict=False):
        _shapes(ax, histograms, legend)
    for ax in list(panel.flat)[len(features) :]:
        ax.set_visible(False)
    first: Axes = panel[0, 0]
    handles, texts = first.get_legend_handles_labels()
    columns = min(len(texts), 6) if axes is None else 1
    legend_beside(first, given=axes is not None, handles=handles, labels=texts, ncols=columns)
    put_label(first, label)
    return figure


def _populated(histograms: Mapping[str, hist.Hist]) -> tuple[float, float]:
    """Range of the axis that holds all but a thousandth of each histogram."""
    edges = next(iter(histograms.values())).axes[0].edges
    first, last = len(edges) - 1, 0
    for h in histograms.values():
        total = float(h.values().sum())
        if total > 0:
            running = np.cumsum(h.values()) / total
            first = min(first, int(np.searchsorted(running, 0.0005)))
            last = max(last, int(np.searchsorted(running, 0.9995)) + 1)
    last = min(last, len(edges) - 1)
    return (edges[first], edges[last]) if first < last else (edges[0], edges[-1])


def _shapes(ax: Axes, histograms: Mapping[str, hist.Hist], legend: Legend) -> None:
    filled = [name for name in histograms if name in legend.samples or name in PROCESS_TEXT]
    colours = sample_colours(filled, legend)
    signal = 0
    for name, h in histograms.items():
        total = float(h.values().sum())
        if total <= 0:
            continue
        edges = h.axes[0].edges
        height, error = h.values() / total, np.sqrt(h.variances()) / total
        if name in colours:
            colour = colours[name]
            ax.stairs(height, edges, fill=True, color=colour, alpha=0.25, linewidth=0)
            ax.stairs(height, edges, color=colour, linewidth=pt(1.0), label=legend.text(name))
        else:
            colour, line = SIGNAL_LINES[signal % len(SIGNAL_LINES)]
            ax.stairs(height, edges, color=colour, linestyle=line, linewidth=pt(1.0), label=name)
            signal += 1
        low = np.maximum(height - error, 0)
        ax.stairs(height + error, edges, baseline=low, fill=True, color=colour, alpha=0.35,
                  linewidth=0)  # fmt: skip
    axis = next(iter(histograms.values())).axes[0]
    ax.set_xlim(*_populated(histograms))
    ax.set_ylim(bottom=0)
    headroom(ax, 0.03)
    ax.set_xlabel(axis.label)
    ax.set_ylabel(per_bin(axis, "Share of events"))
