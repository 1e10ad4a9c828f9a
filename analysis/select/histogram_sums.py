"""Histograms as sums in arrays: filled by compiled code, added by numpy, objects only at the end.

    z = (x - low) / (high - low)     bin 1 + floor(z n) if 0 <= z < 1, 0 below, n + 1 above and NaN
    sums (3, cells)                  rows, their weights, the squares of their weights

The bins of all quantities stand in one row, each with its underflow and overflow. Rule and order of
additions are those of boost-histogram, to the last bit; to make its objects for every small file
took longer than to read and select it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from analysis.select.histograms import (
    Histograms,
    empty_histograms,
    quantity_axes,
    quantity_values,
)
from selection.search import Search

Sums = npt.NDArray[np.float64]  # rows are whole numbers, exact to 2^53

ROWS, WEIGHTS, SQUARES = 0, 1, 2


@lru_cache(maxsize=32)
def _layout(search: Search) -> tuple[tuple[str, int, float, float], ...]:
    """Name, number of bins, low and high edge of every quantity."""
    axes = quantity_axes(search).items()
    return tuple((n, len(a), float(a.edges[0]), float(a.edges[-1])) for n, a in axes)


def no_sums(search: Search) -> Sums:
    """Those of no rows."""
    return np.zeros((3, sum(n + 2 for _, n, *_ in _layout(search))))


def skim_sums(skim: Mapping[str, npt.NDArray[Any]], search: Search) -> Sums:
    """Sums of the columns of a shard. A negative square is in the underflow of its root."""
    found = no_sums(search)
    weight = np.ascontiguousarray(skim["weight"], np.float64)
    constant = len(weight) > 0 and bool(np.all(weight == weight[0]))
    begin = 0
    for name, n, low, high in _layout(search):
        value = np.ascontiguousarray(quantity_values(name, search, skim))
        cells = found[:, begin : begin + n + 2]
        _fill(value, weight[:0] if constant else weight, low, high - low, cells)
        begin += n + 2
    if constant:  # n times the same weight: no sum of many
        found[WEIGHTS] = found[ROWS] * weight[0]
        found[SQUARES] = found[ROWS] * weight[0] ** 2
    return found


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _fill(value, weight, low, width, cells):  # type: ignore[no-untyped-def]
    """Without weights only rows are counted."""
    n = cells.shape[1] - 2
    for i in range(len(value)):
        z = (np.float64(value[i]) - low) / width
        k = n + 1
        if z < 1:
            k = 1 + int(z * n) if z >= 0 else 0
        cells[ROWS, k] += 1
        if len(weight):
            cells[WEIGHTS, k] += weight[i]
            cells[SQUARES, k] += weight[i] * weight[i]


def as_histograms(sums: Sums, search: Search) -> Histograms:
    """The sums as histograms with axes and names."""
    filled = empty_histograms(search)
    begin = 0
    for name, n, *_ in _layout(search):
        cells = sums[:, begin : begin + n + 2]
        filled[f"{name}_raw"].view(flow=True)[...] = cells[ROWS].astype(np.int64)
        view = filled[name].view(flow=True)
        view.value, view.variance = cells[WEIGHTS], cells[SQUARES]
        begin += n + 2
    return filled


def skim_histograms(skim: Mapping[str, npt.NDArray[Any]], search: Search) -> Histograms:
    """Histograms of the columns of a shard."""
    return as_histograms(skim_sums(skim, search), search)
