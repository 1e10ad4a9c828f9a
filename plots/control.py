"""Data over stacked simulation with what their comparison gave.

    upper panel   stacked backgrounds +- sqrt(sum w^2), data with their Poisson interval
    lower panel   data / simulation, band: relative error of the simulation

The panel is as plots/spectrum.py draws it, without signal. The region stands in the axes with
chi^2, its degrees of freedom and p-value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import hist
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.axes import pt
from plots.spectrum import spectrum
from plots.style import OUR_LEGEND, Label, Legend, in_style

STEEP = 30.0  # highest over typical bin: more than a linear axis can show
LONG = 5000.0  # events beside a linear axis


@dataclass(frozen=True)
class Verdict:
    """Text of a comparison: where, and how well data and simulation agree."""

    region: str
    chi2: float
    ndf: int
    p_value: float

    @property
    def text(self) -> str:
        if self.ndf == 0:
            return self.region
        p = "$<$ 0.0001" if self.p_value < 1e-4 else f"= {self.p_value:.2g}"
        return f"{self.region}\n$\\chi^2$/ndf = {self.chi2:.1f}/{self.ndf}, $p$ {p}"


@in_style
def data_over_simulation(
    backgrounds: Mapping[str, hist.Hist],
    data: hist.Hist,
    verdict: Verdict,
    *,
    label: Label,
    legend: Legend = OUR_LEGEND,
    axes: Sequence[Axes] | None = None,
) -> Figure:
    """backgrounds: sample -> histogram (storage Weight) at the luminosity of the data, the last on
    top; data: counts on the same axis. axes: two to draw on, the ratio below; else a new figure."""
    total = np.sum([h.values() for h in backgrounds.values()], axis=0)
    figure = spectrum(
        backgrounds, data=data, label=label, legend=legend, logarithmic=is_steep(total), axes=axes
    )
    main, below = figure.axes if axes is None else axes
    filled = np.flatnonzero((total > 0) | (data.values() > 0))
    if filled.size:
        edges = data.axes[0].edges
        for ax in (main, below):
            ax.set_xlim(edges[filled[0]], edges[filled[-1] + 1])
    main.text(0.03, 0.965, verdict.text, transform=main.transAxes, va="top", fontsize=pt(6.6))
    return figure


def is_steep(values: np.ndarray) -> bool:
    """Is the typical filled bin hidden at the bottom of a linear axis, or its numbers too long?"""
    filled = values[values > 0]
    if not filled.size:
        return False
    return bool(filled.max() > STEEP * np.median(filled) or filled.max() > LONG)
