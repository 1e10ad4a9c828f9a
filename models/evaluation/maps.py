"""Numbers for two views of a network: output against recoil mass, and its decision surface.

    score map:  sum of weights in bins of (z, M_rec),  z = ln[y / (1 - y)],  M_rec = sqrt(M_rec2)
    boundary:   y on a grid of three features at fixed pt_mumu; the surface is y = cut

M_rec2 < 0 (resolution) is shown at M_rec = 0. Weights of signal are 1/n_generated: every mass
counts the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.results import DecisionBoundary, FigureOfMerit, Floats, ScoreMap
from models.trained import TrainedModel
from selection.masses import same_mass, signed_root
from selection.table import BoolArray, EventTable, FloatArray


@dataclass(frozen=True)
class MapBins:
    """Bins of a score map."""

    n_logit: int = 100
    n_mass: int = 60
    mass_max_gev: float = 10.0
    logit_range: tuple[float, float] | None = None  # None: 0.1 % and 99.9 % quantiles decide


def score_maps(
    table: EventTable, logits: FloatArray, cuts: FigureOfMerit, *, bins: MapBins
) -> tuple[ScoreMap, ScoreMap]:
    """Signal and background on the same axes; logits (n_events,), the line is `cuts.cut`.

    A cut at exactly 0 or 1 has no place on the axis and leaves a gap in the line.
    """
    finite = np.isfinite(logits)
    span = bins.logit_range
    if span is None:
        ends = np.quantile(logits[finite], [0.001, 0.999]) if finite.any() else np.zeros(2)
        span = (float(np.floor(ends[0])) - 0.5, float(np.ceil(ends[1])) + 0.5)
    x_edges = np.linspace(*span, bins.n_logit + 1)
    y_edges = np.linspace(0, bins.mass_max_gev, bins.n_mass + 1)
    mass = np.maximum(signed_root(table.recoil_mass2_gev2), 0)

    def one(component: str, rows: BoolArray) -> ScoreMap:
        shown = np.clip(logits[rows], x_edges[0], x_edges[-1])  # none is lost
        content, _, _ = np.histogram2d(
            shown, mass[rows], (x_edges, y_edges), weights=table.weight[rows]
        )
        return ScoreMap(
            cuts.classifier, component, x_edges, y_edges, content, cuts.mass_gev, logit(cuts.cut)
        )

    signal = table.is_signal
    return one("signal", signal & finite), one("background", ~signal & finite)


def logit(score: FloatArray) -> Floats:
    """ln[y / (1 - y)]; nan at 0, 1 and beyond."""
    y = np.asarray(score, dtype=np.float64)
    z = np.full(y.shape, np.nan)
    inside = (y > 0) & (y < 1)
    z[inside] = np.log(y[inside]) - np.log1p(-y[inside])
    return z


def decision_boundary(
    model: TrainedModel,
    table: EventTable,
    mass_gev: Sequence[float],
    *,
    pt_mumu_gev: float,
    half_width_gev: float = 0.25,
    max_points: int = 200,
    n_grid: int = 40,
) -> DecisionBoundary:
    """The network on a grid at fixed pt_mumu, with up to `max_points` events of each mass near it.

    The grid spans what the events of these masses reach there. Points are the first in order of
    the event key: the same for any order of the table.
    """
    pt_mumu = model.features.index("pt_mumu")
    free = [i for i in range(len(model.features)) if i != pt_mumu]
    near = np.abs(table.features[:, pt_mumu] - pt_mumu_gev) < half_width_gev
    points, of_mass = [np.empty((0, len(free)))], [np.empty(0)]
    for mass in mass_gev:
        rows = np.flatnonzero(near & same_mass(table.signal_mass_gev, mass))
        rows = rows[np.argsort(table.key[rows], kind="stable")][:max_points]
        points.append(table.features[rows][:, free].astype(np.float64))
        of_mass.append(np.full(len(rows), mass))
    low, high = model.feature_min[free], model.feature_max[free]
    everywhere = np.concatenate(points)
    if len(everywhere) > 1:
        margin = 0.1 * np.ptp(everywhere, axis=0)
        low = np.maximum(low, everywhere.min(axis=0) - margin)
        high = np.minimum(high, everywhere.max(axis=0) + margin)
    axes = np.array([np.linspace(a, b, n_grid) for a, b in zip(low, high, strict=True)])
    grid = np.empty((n_grid,) * len(free) + (len(model.features),))
    grid[..., free] = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    grid[..., pt_mumu] = pt_mumu_gev
    score = model.score(grid.reshape(-1, len(model.features))).reshape(grid.shape[:-1])
    return DecisionBoundary(
        pt_mumu_gev=pt_mumu_gev,
        cut=model.cut,
        axis_gev=axes,
        score=score.astype(np.float64),
        mass_gev=np.asarray(mass_gev, dtype=np.float64),
        point_mass_gev=np.concatenate(of_mass),
        point_gev=everywhere,
    )
