"""How the loss fell, epoch by epoch, in both stages; and what the batch size does to it.

Losses are always those of all events at once, never of batches (batch losses are biased low), so
lines of different batch sizes may be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from models.results import LossHistory
from plots.axes import Given, pt
from plots.style import BLUE, CYCLE, RED, Label, headroom, in_style, panels, put_label

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))


@in_style
def loss_evolution(
    bce: Sequence[LossHistory], punzi: Sequence[LossHistory], *, label: Label, axes: Given = None
) -> Figure:
    """BCE stage above, Punzi stage below; one line per network, training and validation."""
    stages = [stage for stage in (bce, punzi) if stage]
    if not stages:
        msg = "no training history to draw"
        raise ValueError(msg)
    figure, panel = panels(len(stages), height_in=1.9 * len(stages), share_x=False, axes=axes)
    for ax, histories in zip(panel[:, 0], stages, strict=True):
        for h in histories:
            thin = pt(0.9 if len(histories) == 1 else 0.6)
            ax.plot(h.epoch, h.training, color=BLUE, linewidth=thin, alpha=0.8)
            known = np.isfinite(h.validation)
            ax.plot(
                h.epoch[known], h.validation[known], color=RED, linewidth=thin, alpha=0.8,
                linestyle="--",
            )  # fmt: skip
        _finish(ax, histories)
        if np.nanmin([h.training.min() for h in histories]) > 0 and _range(histories) > 20:
            ax.set_yscale("log")
    panel[-1, 0].set_xlabel("Epoch")
    n = len(stages[-1])
    text = f" ({n} networks)" if n > 1 else ""
    handles = [
        Line2D([], [], color=BLUE, label=f"training{text}"),
        Line2D([], [], color=RED, linestyle="--", label="validation"),
    ]
    panel[0, 0].legend(handles=handles, loc="upper right")
    put_label(panel[0, 0], label)
    return figure


@in_style
def batch_size_study(
    histories: Sequence[LossHistory], *, label: Label, axes: Given = None
) -> Figure:
    """Punzi stage, one line per batch size; the legend is each record's own label."""
    figure, panel = panels(height_in=2.5, axes=axes)
    ax: Axes = panel[0, 0]
    for i, h in enumerate(histories):
        ax.plot(
            h.epoch, h.training, color=CYCLE[i % len(CYCLE)], linestyle=LINES[i % len(LINES)],
            label=h.label,
        )  # fmt: skip
    _finish(ax, histories)
    headroom(ax, 0.25)
    ax.set_xlabel("Epoch")
    ax.legend(loc="upper center", ncols=3, title="Events per batch")
    put_label(ax, label)
    return figure


def _finish(ax: Axes, histories: Sequence[LossHistory]) -> None:
    """Axis texts, and a y range that a single bad epoch cannot blow up."""
    ax.set_ylabel(histories[0].loss_name)
    ax.set_xlim(0, max(float(h.epoch.max()) for h in histories))
    values = np.concatenate([np.concatenate([h.training, h.validation]) for h in histories])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(np.quantile(values, 0.995))
    margin = 0.05 * (high - low) or 0.05
    ax.set_ylim(low - margin, high + 2 * margin)


def _range(histories: Sequence[LossHistory]) -> float:
    """Largest over smallest training loss."""
    values = np.concatenate([h.training for h in histories])
    return float(np.nanmax(values) / np.nanmin(values))
