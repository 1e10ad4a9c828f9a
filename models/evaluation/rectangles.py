"""Best rectangular cuts: the box in the features with the smallest sigma_min, for every window.

    pass   low_f <= x_f < high_f for every feature f          an open side is infinite
    box_k  = argmin of sigma_min(eps_k, B_k + extra_k)        found feature by feature

Edges are quantiles of the signal of the window in each feature. With the others fixed, all
intervals of one feature are tried at once: sums of weights between two edges are differences of a
running sum. Features are taken in turn until none brings a gain. The search begins with no cut at
all and with three boxes around the middle of the signal, and the best end is kept: a local minimum,
what a careful person would cut by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.evaluation.cuts import SigmaMin
from models.evaluation.window_events import Floats, RowArray, WindowEvents
from selection.table import BoolArray, FloatArray, IntArray

N_EDGES = 20  # quantiles of the signal tried in each feature: steps of 5 %; finer ones overtrain
STARTS = (0.05, 0.15, 0.25)  # share of the signal beyond each side of the boxes to begin with
MAX_ROUNDS = 20  # over all features; a round without gain ends the search, after 3 to 6 as a rule

Span = npt.NDArray[np.int64]  # (n_features, 2) of a box: first cell and end in each feature


@dataclass(frozen=True)
class Boxes:
    """A box per window; nan where a window has no signal: nothing passes."""

    low: Floats  # (n_windows, n_features), -inf: open
    high: Floats  # (n_windows, n_features), inf: open

    def inside(
        self, features: FloatArray, row: RowArray, window: RowArray
    ) -> npt.NDArray[np.float32]:
        """1 where the event of a pair (n_pairs,) lies in the box of its window, else 0: a score."""
        keep = np.ones(len(row), bool)
        for f in range(self.low.shape[1]):
            x = features[row, f]
            keep &= (self.low[window, f] <= x) & (x < self.high[window, f])
        return keep.astype(np.float32)


@dataclass(frozen=True)
class _Events:
    """Signal or background of one window: cells (n, n_features) between edges, weights (n,)."""

    cell: IntArray
    weight: Floats


def best_boxes(
    events: WindowEvents,
    features: FloatArray,
    *,
    sigma_min: SigmaMin,
    extra_background: FloatArray,
) -> Boxes:
    """The box of each window; features (n_events of the table, n_features)."""
    low, high = np.full((2, events.n_windows, features.shape[1]), np.nan)
    for k, signal, background in _by_window(events):
        if not len(signal):
            continue
        x = features[events.signal_row[signal]]
        edges = [_edges(column) for column in x.T]
        window = [
            _Events(_cells(edges, features[row[part]]), weight[part])
            for row, weight, part in (
                (events.signal_row, events.signal_weight, signal),
                (events.background_row, events.background_weight, background),
            )
        ]
        extra = float(extra_background[k])
        ends = [_search(window, edges, start, extra, sigma_min) for start in _starts(edges, x)]
        span, _ = min(ends, key=lambda end: end[1])  # of equals the first
        low[k], high[k] = np.array([e[s] for e, s in zip(edges, span, strict=True)]).T
    return Boxes(low, high)


def _by_window(events: WindowEvents) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Each window with the places of its signal and of its background."""
    order = np.argsort(events.background_first, kind="stable")
    first, stop = events.background_first[order], events.background_stop[order]
    longest = int((stop - first).max(initial=0))
    for k in range(events.n_windows):
        near = slice(*np.searchsorted(first, (k - longest + 1, k + 1)))
        own = np.arange(events.signal_start[k], events.signal_start[k + 1])
        yield k, own, order[near][stop[near] > k]


def _edges(x: FloatArray) -> Floats:
    """Rising, from -inf to inf."""
    inner = np.quantile(x, np.linspace(0, 1, N_EDGES + 1), method="nearest")
    return np.unique([-np.inf, *inner.tolist(), np.inf])


def _cells(edges: Sequence[Floats], x: FloatArray) -> IntArray:
    """Cell of each event in each feature, (n, n_features); cell c is [edge c, edge c+1)."""
    cell = np.empty(x.shape, np.int64)
    for f, e in enumerate(edges):
        cell[:, f] = np.searchsorted(e, x[:, f].astype(np.float64), side="right") - 1
    return cell


def _starts(edges: Sequence[Floats], x: FloatArray) -> Iterator[Span]:
    """Boxes to begin with: everything first, then the middle of the signal x."""
    yield np.array([[0, len(e) - 1] for e in edges])
    for beyond in STARTS:
        ends = np.quantile(x, [beyond, 1 - beyond], axis=0).T
        sides = [np.searchsorted(e, ab) for e, ab in zip(edges, ends, strict=True)]
        yield np.array(sides) - np.array([1, 0])  # the edges around the quantiles


def _search(
    window: Sequence[_Events],
    edges: Sequence[Floats],
    start: Span,
    extra: float,
    sigma_min: SigmaMin,
) -> tuple[Span, float]:
    """The box at which no single feature brings a gain, and its sigma_min."""
    span, best = start.copy(), np.inf
    for _ in range(MAX_ROUNDS):
        before = best
        for f, e in enumerate(edges):
            signal, background = (_below_edges(events, span, f, len(e)) for events in window)
            sigma = _of_intervals(signal, background, extra, sigma_min)
            begin, end = np.unravel_index(np.argmin(sigma), sigma.shape)
            if sigma[begin, end] < best:
                span[f], best = (begin, end), float(sigma[begin, end])
        if not best < before:
            break
    return span, best


def _below_edges(events: _Events, span: Span, f: int, n_edges: int) -> Floats:
    """Sum of weights below each edge of feature f, of events that the others let pass."""
    others = np.arange(len(span)) != f
    cell = events.cell[:, others]
    keep: BoolArray = ((span[others, 0] <= cell) & (cell < span[others, 1])).all(axis=1)
    sums = np.bincount(events.cell[keep, f], events.weight[keep], n_edges - 1)
    return np.concatenate([[0.0], np.cumsum(sums)])


def _of_intervals(signal: Floats, background: Floats, extra: float, sigma_min: SigmaMin) -> Floats:
    """sigma_min of every interval (begin, end) of one feature; infinite without signal."""
    efficiency = signal - signal[:, None]
    sigma = np.full(efficiency.shape, np.inf)
    some = np.triu(efficiency > 0, 1)
    inside = np.maximum((background - background[:, None])[some], 0.0)
    sigma[some] = sigma_min(efficiency[some], inside + extra)
    return sigma
