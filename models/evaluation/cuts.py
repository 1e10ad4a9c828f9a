"""The best cut on the score: exact, for every window, and the best single cut for all of them.

    cut_k = argmin over c of sigma_min(eps_k(c), B_k(c) + extra_k)      pass: score >= c

Between two neighbouring scores nothing changes, so the distinct scores are all the cuts there
are. With weights >= 0 even fewer: raising the cut to the next signal score removes background
and no signal, so only signal scores of the window itself can win. They are the bins of a
histogram of the background, whose reversed running sum is B at every candidate: one sweep, no
sorting of the background. With negative weights (subtracted samples, generator weights) all
scores are candidates: sort and running sum per window.

Of equally good cuts the lowest is taken; a window without signal has no best cut: nan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np

from models.evaluation.window_events import Floats, RowArray, WindowEvents
from selection.table import FloatArray, IntArray

SigmaMin = Callable[[Floats, Floats], Floats]  # (efficiency, background) -> sigma_min
Scan = Iterator[tuple[int, Floats, Floats, Floats]]  # window, candidates, efficiency, background

_CELLS = 2048  # of the lookup grid per window: finds a candidate in one or two steps
_BLOCKS = 8  # fixed, so that the sums do not depend on the number of threads


def optimal_cuts(
    events: WindowEvents,
    score: FloatArray,
    *,
    sigma_min: SigmaMin,
    extra_background: FloatArray | None = None,
    threads: int = 1,
) -> Floats:
    """Cut of each window with the smallest sigma_min; (n_windows,), nan where there is no signal.

    score (n_events of the table,); extra_background (n_windows,) is added to B (see PHYSICS 6:
    one more simulated event).
    """
    scores = np.ascontiguousarray(score, dtype=np.float64)
    extra = np.zeros(events.n_windows) if extra_background is None else extra_background
    scan = _all_scores if events.has_negative_weights else _signal_scores
    cuts = np.full(events.n_windows, np.nan)
    for k, candidates, efficiency, background in scan(events, scores, threads):
        sigma = _sigma(sigma_min, efficiency, background + extra[k])
        if sigma.size and np.isfinite(sigma).any():
            cuts[k] = candidates[np.argmin(sigma)]  # candidates rise: argmin takes the lowest
    return cuts


def optimal_single_cut(
    events: WindowEvents,
    score: FloatArray,
    *,
    sigma_min: SigmaMin,
    extra_background: FloatArray | None = None,
    logarithm: bool = True,
    max_candidates: int = 4096,
) -> float:
    """The one cut with the smallest mean (log) sigma_min over all windows that hold signal.

    Candidates are the signal scores of all windows, thinned evenly by rank to `max_candidates`.
    nan if no cut leaves every such window some signal.
    """
    scores = np.asarray(score, dtype=np.float64)
    pool = scores[events.signal_row]
    pool = np.unique(pool[~np.isnan(pool)])
    if pool.size > max_candidates:
        pool = pool[np.linspace(0, pool.size - 1, max_candidates).round().astype(np.int64)]
    n = events.n_windows
    own = np.repeat(np.arange(n), np.diff(events.signal_start))
    efficiency = _above(pool, scores[events.signal_row], own, own + 1, events.signal_weight, n)
    background = _above(
        pool,
        scores[events.background_row],
        events.background_first,
        events.background_stop,
        events.background_weight,
        n,
    )
    if extra_background is not None:
        background = background + extra_background
    used = np.diff(events.signal_start) > 0
    sigma = _sigma(sigma_min, efficiency[:, used], background[:, used])
    with np.errstate(divide="ignore"):
        mean = (np.log(sigma) if logarithm else sigma).mean(axis=1) if used.any() else np.empty(0)
    return float(pool[np.argmin(mean)]) if np.isfinite(mean).any() else float("nan")


def _sigma(sigma_min: SigmaMin, efficiency: Floats, background: Floats) -> Floats:
    """sigma_min, infinite where no signal is left; negative weights cannot make B negative."""
    sigma = np.full(efficiency.shape, np.inf)
    some = efficiency > 0
    sigma[some] = sigma_min(efficiency[some], np.maximum(background[some], 0.0))
    return sigma


def _above(
    cuts: Floats, score: Floats, first: IntArray, stop: IntArray, weight: Floats, n: int
) -> Floats:
    """Sum of weights with score >= cut in every window, at rising cuts; (n_cuts, n_windows)."""
    good = ~np.isnan(score)
    passed = np.searchsorted(cuts, score[good], side="right")  # how many cuts the event passes
    size = (len(cuts) + 1) * (n + 1)
    at_first = passed * (n + 1) + first[good]
    at_stop = passed * (n + 1) + stop[good]
    steps = np.bincount(at_first, weight[good], size) - np.bincount(at_stop, weight[good], size)
    per_window = np.cumsum(steps.reshape(len(cuts) + 1, n + 1), axis=1)[1:, :n]
    return np.cumsum(per_window[::-1], axis=0)[::-1]


def _signal_scores(events: WindowEvents, score: Floats, threads: int) -> Scan:
    """Signal scores of the window as rising candidates: all that can win with weights >= 0."""
    start = events.signal_start
    raw = score[events.signal_row]
    raw = np.where(np.isnan(raw), -np.inf, raw)  # nan goes to the bottom, below every candidate
    own = np.repeat(np.arange(events.n_windows), np.diff(start))
    order = np.lexsort((raw, own))
    candidates, weight = raw[order], events.signal_weight[order]

    low, inverse, grid = _lookup(start, candidates)
    edges = np.linspace(0, len(events.background_row), _BLOCKS + 1).astype(np.int64)

    def sweep(block: int) -> Floats:
        part, out = slice(edges[block], edges[block + 1]), np.zeros(len(candidates))
        _fill_histogram(
            score,
            events.background_row[part],
            events.background_first[part],
            events.background_stop[part],
            events.background_weight[part],
            candidates,
            low,
            inverse,
            grid,
            out,
        )
        return out

    with ThreadPoolExecutor(threads) as pool:
        histogram = np.sum(list(pool.map(sweep, range(_BLOCKS))), axis=0)
    for k in range(events.n_windows):
        own_part = slice(start[k], start[k + 1])
        yield k, *_running_sums(candidates[own_part], weight[own_part], histogram[own_part])


def _all_scores(events: WindowEvents, score: Floats, _threads: int) -> Scan:
    """Every score of the window as candidate: for weights of any sign."""
    order = np.argsort(events.background_first, kind="stable")
    first, stop = events.background_first[order], events.background_stop[order]
    signal, background = score[events.signal_row], score[events.background_row[order]]
    weight = events.background_weight[order]
    longest = int((stop - first).max(initial=0))
    for k in range(events.n_windows):
        own = slice(events.signal_start[k], events.signal_start[k + 1])
        near = slice(*np.searchsorted(first, (k - longest + 1, k + 1)))
        inside = stop[near] > k
        b_score, b_weight = background[near][inside], weight[near][inside]
        s_score, s_weight = signal[own], events.signal_weight[own]
        scores = np.concatenate([s_score, b_score])
        s = np.concatenate([s_weight, np.zeros(len(b_weight))])
        b = np.concatenate([np.zeros(len(s_weight)), b_weight])
        good = ~np.isnan(scores)
        scores, s, b = scores[good], s[good], b[good]
        rising = np.argsort(scores)
        yield k, *_running_sums(scores[rising], s[rising], b[rising])


def _running_sums(
    candidates: Floats, signal: Floats, background: Floats
) -> tuple[Floats, Floats, Floats]:
    """Distinct rising candidates with the sums of everything at or above each of them."""
    lowest_of_ties = np.ones(len(candidates), dtype=bool)
    lowest_of_ties[1:] = candidates[1:] > candidates[:-1]
    lowest_of_ties &= candidates > -np.inf
    efficiency = np.cumsum(signal[::-1])[::-1]
    above = np.cumsum(background[::-1])[::-1]
    return candidates[lowest_of_ties], efficiency[lowest_of_ties], above[lowest_of_ties]


def _lookup(start: RowArray, candidates: Floats) -> tuple[Floats, Floats, RowArray]:
    """Per window: lowest candidate, cells per unit of score, and where each cell begins."""
    n = len(start) - 1
    low, inverse = np.full(n, np.nan), np.zeros(n)
    grid = np.zeros((n, _CELLS + 1), dtype=np.int64)
    for k in range(n):
        mine = candidates[start[k] : start[k + 1]]
        mine = mine[mine > -np.inf]
        begin = start[k + 1] - len(mine)
        if len(mine) == 0:
            continue
        low[k] = mine[0]
        width = mine[-1] - mine[0]
        with np.errstate(over="ignore", divide="ignore"):
            inverse[k] = (_CELLS - 1) / width if width > 0 else 0.0
        if not np.isfinite(inverse[k]):  # candidates closer than any cell
            inverse[k] = 0.0
        cell = ((mine - low[k]) * inverse[k]).astype(np.int64)
        grid[k] = begin + np.searchsorted(cell, np.arange(_CELLS + 1))
    return low, inverse, grid


@numba.njit(cache=True, nogil=True)
def _fill_histogram(
    score: Floats,
    row: RowArray,
    first: IntArray,
    stop: IntArray,
    weight: Floats,
    candidates: Floats,
    low: Floats,
    inverse: Floats,
    grid: RowArray,
    out: Floats,
) -> None:
    """Adds each event, per window, to the highest candidate at or below its score."""
    top = grid.shape[1] - 2
    for i in range(len(row)):
        s = score[row[i]]
        for k in range(first[i], stop[i]):
            if not s >= low[k]:  # also nan scores, and windows without candidates
                continue
            x = (s - low[k]) * inverse[k]
            cell = top if x >= top else int(x)
            at = grid[k, cell] - 1  # the candidate before the cell is always at or below s
            length = grid[k, cell + 1] - at
            while length > 1:
                half = length >> 1
                if candidates[at + half] <= s:
                    at += half
                length -= half
            out[at] += weight[i]
