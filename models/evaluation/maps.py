"""Numbers for two views of a network: output against mass, and its decision surface.

    score map:  sum of weights in bins of (z, M),  z = ln[y / (1 - y)],  M: the axis, or its root
    boundary:   y on a grid of up to three features, the others fixed; the surface is y = cut

M2 < 0 (resolution) is shown at M = 0. Weights of signal are 1/n_generated: every mass
counts the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.results import DecisionBoundary, FigureOfMerit, Floats, ScoreMap
from models.trained import TrainedModel
from selection.masses import one_of, same_mass, signed_root
from selection.table import BoolArray, EventTable, FloatArray


@dataclass(frozen=True)
class MapBins:
    """Bins of a score map."""

    n_logit: int = 100
    n_mass: int = 60
    mass_max_gev: float = 10.0
    logit_range: tuple[float, float] | None = None  # None: 0.1 % and 99.9 % quantiles decide


def score_maps(
    table: EventTable, logits: FloatArray, cuts: FigureOfMerit, *, bins: MapBins, squared: bool
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
    mass = np.maximum(signed_root(table.axis) if squared else table.axis, 0)

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
    free: Sequence[str],
    max_points: int = 200,
    n_grid: int = 40,
) -> DecisionBoundary:
    """The first fold on a grid of the free features, with up to `max_points` events of each mass.

    The other features are fixed at their medians over the signal shown, rounded; points are events
    near those (within a quarter of the spread of each), the first in order of the event key: the
    same for any order of the table. The grid spans what the points reach.
    """
    at = [model.features.index(name) for name in free]
    others = [i for i in range(len(model.features)) if i not in at]
    shown = table.features[one_of(table.signal_mass_gev, mass_gev)]
    middle = np.array([_rounded(shown[:, i]) for i in others])
    reach = np.array([_spread(shown[:, i]) for i in others])
    near = (np.abs(table.features[:, others] - middle) <= reach).all(axis=1)
    points, of_mass = [np.empty((0, len(at)))], [np.empty(0)]
    for mass in mass_gev:
        rows = np.flatnonzero(near & same_mass(table.signal_mass_gev, mass))
        rows = rows[np.argsort(table.key[rows], kind="stable")][:max_points]
        points.append(table.features[rows][:, at].astype(np.float64))
        of_mass.append(np.full(len(rows), mass))
    network = model.networks[0]
    low, high = network.feature_min[at], network.feature_max[at]
    everywhere = np.concatenate(points)
    if len(everywhere) > 1:
        margin = 0.1 * np.ptp(everywhere, axis=0)
        low = np.maximum(low, everywhere.min(axis=0) - margin)
        high = np.minimum(high, everywhere.max(axis=0) + margin)
    axes = np.array([np.linspace(a, b, n_grid) for a, b in zip(low, high, strict=True)])
    grid = np.empty((n_grid,) * len(at) + (len(model.features),), np.float32)  # as events are
    grid[..., at] = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    grid[..., others] = middle
    flat = grid.reshape(-1, len(model.features))
    score = model.score(flat, np.zeros(len(flat), np.int8)).reshape(grid.shape[:-1])
    return DecisionBoundary(
        free=tuple(free),
        fixed=tuple(model.features[i] for i in others),
        fixed_value=middle,
        cut=model.cut,
        grid=axes,
        score=score.astype(np.float64),
        mass_gev=np.asarray(mass_gev, dtype=np.float64),
        point_mass_gev=np.concatenate(of_mass),
        point=everywhere,
    )


def _spread(values: FloatArray) -> float:
    """A quarter of the range that holds the middle 68 % of the values."""
    low, high = np.quantile(values, [0.16, 0.84]) if len(values) else (0.0, 0.0)
    return float(0.25 * (high - low))


def _rounded(values: FloatArray) -> float:
    """The median, to two digits of the span: what stands in the figure is what was used."""
    middle, span = (float(np.median(values)), float(np.ptp(values))) if len(values) else (0.0, 0.0)
    return round(middle, 1 - math.floor(math.log10(span))) if span > 0 else middle
