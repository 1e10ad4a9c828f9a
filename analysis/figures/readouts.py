"""Numbers of a mass for the pointer on a figure, in words, and where the figure has that mass.

    frame   left, right, top, bottom of the panels, as shares of the picture
    x       masses in GeV at left and right; the axis is linear

The report turns the place of the pointer into a mass and shows the row of the nearest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.run_results import Readout
from models.results import EnsembleFigureOfMerit, Floats, Limits, curve_text

DIGITS = 4  # of a number, 2 of its error


def reach_readout(curves: Sequence[EnsembleFigureOfMerit]) -> Readout:
    """sigma_min of every curve, with the error that its bar shows."""
    masses = curves[0].mass_gev.tolist()
    several = [c.n_networks > 1 for c in curves]
    rows = [
        [
            with_error(
                c.sigma_min_fb[i], (c.sigma_min_error_fb if n else c.sigma_min_mc_error_fb)[i]
            )
            for c, n in zip(curves, several, strict=True)
        ]
        for i in range(len(masses))
    ]
    heads = [f"{curve_text((c.classifier, c.selection))} [fb]" for c in curves]
    return Readout(heads, masses, rows)


def limit_readout(limits: Limits) -> Readout:
    """Expected limits with their bands; observed where data may be seen."""
    heads = {"median_fb": "Expected [fb]", "observed_fb": "Observed [fb]"}
    bands = {"68 %": ("minus1_fb", "plus1_fb"), "95 %": ("minus2_fb", "plus2_fb")}
    shown = [name for name in heads if np.isfinite(getattr(limits, name)).any()]
    rows = []
    for i in range(len(limits.mass_gev)):
        values = [number(getattr(limits, name)[i]) for name in shown]
        values += [
            f"{number(getattr(limits, low)[i])} to {number(getattr(limits, high)[i])}"
            for low, high in bands.values()
        ]
        rows.append(values)
    return Readout([*(heads[n] for n in shown), *bands], limits.mass_gev.tolist(), rows)


def coupling_readout(limits: Limits, values: dict[str, Floats]) -> Readout:
    """The same on the coupling; values: name of the quantile -> (n_masses,)."""
    heads = {"median": "Expected", "observed": "Observed"}
    shown = [name for name in heads if np.isfinite(values[name]).any()]
    rows = [
        [
            *(number(values[name][i]) for name in shown),
            f"{number(values['minus1'][i])} to {number(values['plus1'][i])}",
            f"{number(values['minus2'][i])} to {number(values['plus2'][i])}",
        ]
        for i in range(len(limits.mass_gev))
    ]
    return Readout([*(heads[n] for n in shown), "68 %", "95 %"], limits.mass_gev.tolist(), rows)


def number(value: float, digits: int = DIGITS) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:.{digits}g}" if np.isfinite(value) else "∞"


def with_error(value: float, error: float) -> str:
    if not (np.isfinite(value) and np.isfinite(error)):
        return number(value)
    return f"{number(value)} ± {number(error, 2)}"


def placed(readout: Readout, figure: Figure) -> dict[str, Any]:
    """As `figures.json` holds it; the layout of the figure is final."""
    boxes = [ax.get_position() for ax in figure.axes]
    low, high = figure.axes[0].get_xlim()
    frame = [
        min(b.x0 for b in boxes),
        max(b.x1 for b in boxes),
        1 - max(b.y1 for b in boxes),
        1 - min(b.y0 for b in boxes),
    ]
    return {
        "heads": list(readout.heads),
        "mass": [float(f"{m:.6g}") for m in readout.mass_gev],
        "rows": [list(row) for row in readout.rows],
        "frame": [round(float(share), 5) for share in frame],
        "x": [float(low), float(high)],
    }
