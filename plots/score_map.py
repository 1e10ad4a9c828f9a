"""Where the events lie in network output and mass.

    x: output before the sigmoid, z      y: mass       colour: share of the component per bin area

The sigmoid presses most events into the first and last bin of the score; before it their spread
is seen. The line is the best cut of every mass: straight and vertical means that one cut serves
all masses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from models.results import CLASSIFIER_TEXT, ScoreMap
from plots.axes import Given, legend_beside, pt
from plots.style import Label, in_style, panels, put_label

DECADES = 4


@in_style
def score_map(
    record: ScoreMap, *, single_cut: float | None = None, label: Label, axes: Given = None
) -> Figure:
    """One component of one classifier; single_cut (a score in (0, 1)) adds a dotted line."""
    figure, panel = panels(height_in=2.7, axes=axes)
    ax: Axes = panel[0, 0]
    area = np.outer(np.diff(record.logit_edges), np.diff(record.mass_edges_gev))
    total = record.content.sum()
    density = record.content / (area * total) if total > 0 else record.content
    top = float(density.max()) if total > 0 else 1.0
    mesh = ax.pcolormesh(
        record.logit_edges,
        record.mass_edges_gev,
        np.ma.masked_less_equal(density, 0).T,
        norm=LogNorm(vmin=top * 10.0**-DECADES, vmax=top),
        cmap="cividis",
        rasterized=True,
    )
    bar = figure.colorbar(mesh, ax=ax, pad=0.02, aspect=28)
    bar.set_label(r"Density [$c^2$/GeV]")
    good = np.isfinite(record.cut_logit)
    place = record.cut_logit[good], record.cut_mass_gev[good]
    ax.plot(*place, "o-", color="white", linewidth=pt(1.1), markersize=pt(2.6))
    ax.plot(
        *place,
        "o-",
        color="#bd1f01",
        linewidth=pt(0.4),
        markersize=pt(1.6),
        label="best cut per mass",
    )
    if single_cut is not None:
        z = float(np.log(single_cut / (1 - single_cut)))
        ax.axvline(z, color="black", linestyle=":", label=f"score = {single_cut:g}")
    ax.set_xlim(record.logit_edges[0], record.logit_edges[-1])
    ax.set_ylim(record.mass_edges_gev[0], record.mass_edges_gev[-1])
    ax.set_xlabel("Network output before the sigmoid")
    ax.set_ylabel(f"{label.words.mass_axis} [GeV/$c^2$]")
    name = CLASSIFIER_TEXT.get(record.classifier, record.classifier)
    handles, texts = ax.get_legend_handles_labels()
    legend_beside(
        ax, given=axes is not None, handles=handles, labels=texts, ncols=2,
        title=f"{name}, {record.component}", title_fontsize=pt(7.5),
    )  # fmt: skip
    put_label(ax, replace(label, luminosity_inv_fb=None))  # shares do not depend on it
    return figure
