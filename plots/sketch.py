"""The network as a drawing: inputs, hidden layers, output.

Lines are the weights: red pulls towards signal (> 0), blue away (< 0), thickness and opacity grow
with |w| / max |w| of the layer. Without weights all lines are the same grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from plots.axes import Given, pt
from plots.style import BLUE, RED, SLATE, in_style, panels


@in_style
def network_sketch(
    features: Sequence[str],
    hidden: Sequence[int] = (8, 4),
    *,
    weights: Sequence[npt.NDArray[np.floating]] | None = None,
    axes: Given = None,
) -> Figure:
    """features: texts of the inputs; hidden: widths; weights: per layer (n_out, n_in) or None."""
    figure, panel = panels(height_in=2.3, axes=axes)
    ax: Axes = panel[0, 0]
    ax.axis("off")
    widths = (len(features), *hidden, 1)
    tallest = max(widths)
    places = [np.arange(n)[::-1] - (n - 1) / 2 for n in widths]
    for layer, (left, right) in enumerate(pairwise(places)):
        strength = np.zeros((len(right), len(left))) if weights is None else weights[layer]
        _connect(ax, layer, left, right, strength)
    for layer, ys in enumerate(places):
        colour = "white" if layer in (0, len(widths) - 1) else "#dfe5ea"
        ax.scatter(
            np.full(len(ys), layer), ys, s=pt(58**0.5) ** 2, color=colour, edgecolor="black",
            linewidth=pt(0.7), zorder=3,
        )  # fmt: skip
    for name, y in zip(features, places[0], strict=True):
        ax.text(-0.16, y, name, ha="right", va="center", fontsize=pt(7.5))
    ax.text(len(widths) - 1 + 0.16, 0, "score\nin [0, 1]", ha="left", va="center", fontsize=pt(7))
    titles = ["scaled inputs", *[f"{n} tanh" for n in hidden], "sigmoid"]
    for layer, title in enumerate(titles):
        ax.text(layer, -tallest / 2 - 0.35, title, ha="center", va="top", fontsize=pt(7))
    ax.set_xlim(-0.95, len(widths) - 1 + 0.65)
    ax.set_ylim(-tallest / 2 - 1.0, tallest / 2 + 0.1)
    return figure


def _connect(
    ax: Axes,
    layer: int,
    left: npt.NDArray[np.floating],
    right: npt.NDArray[np.floating],
    strength: npt.NDArray[np.floating],
) -> None:
    top = float(np.abs(strength).max())
    lines, colours, thick = [], [], []
    for j, i in np.ndindex(len(right), len(left)):
        share = abs(float(strength[j, i])) / top if top > 0 else 0.35
        base = SLATE if top == 0 else (RED if strength[j, i] > 0 else BLUE)
        lines.append(np.array([[layer, left[i]], [layer + 1, right[j]]]))
        colours.append(to_rgba(base, 0.15 + 0.85 * share))
        thick.append(0.3 + 1.3 * share)
    ax.add_collection(LineCollection(lines, colors=colours, linewidths=thick, zorder=1))
