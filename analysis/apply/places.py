"""Where an entry lies on the axis: its windows and its bins, found together in one pass.

    window   low < m < high                      first and last window that hold m
    bin      floor((m - a) / (b - a) n)          on the axis, and on its signed root

All of them are steps: numbers that change at certain values of m and nowhere else. The steps, put
in order, cut the axis into places, and everything that is asked of m is known of its place:

    place(m) = number of steps s with s <= m

A step is the first float64 at which its number is another one, found by halving: bins are rounded
as hist rounds them. The range of all steps is cut into equal cells; the cell of m,
int((m - s0) c + 1), never falls as m grows. A table has the number of steps in lower cells; most
cells have no step or one inside, and one comparison, the same for all, does the rest.

Entries are counted by place and by what became of them (the flag, or that they pass), so that one
addition per entry makes the spectra and the counts of the summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from selection.masses import signed_root
from selection.windows import MassWindows

CELLS = 8192
BLOCK = 256  # entries
PASSING = 16  # row of a tally; those below are the values of a flag
ONE = np.int32(1)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Tally = Ints  # (PASSING + 1, n_places) entries
RegularBins = tuple[int, float, float, bool]  # n, a, b, of the signed root?


@dataclass(frozen=True, eq=False)
class Places:
    """Steps in rising order, and what is known between them."""

    steps: Floats  # (n_places,) the last is nan: nothing reaches it
    first: npt.NDArray[np.int16]  # (n_places,) first window, -1 if there is none
    last: npt.NDArray[np.int16]
    bins: tuple[Ints, ...]  # (n_places,) of each spectrum, 0 is the underflow
    cells: npt.NDArray[np.int32]  # (CELLS + 2,) k = steps in lower cells; -1 - k if several inside
    scale: float


@dataclass(frozen=True, eq=False)
class Judged:
    """What a pass over the entries finds."""

    passing: npt.NDArray[np.bool_]
    first_window: npt.NDArray[np.int16]
    last_window: npt.NDArray[np.int16]
    tally: Tally


def places(windows: MassWindows, spectra: Sequence[RegularBins]) -> Places:
    """The places of these windows and spectra."""
    return _places(windows.low.tobytes(), windows.high.tobytes(), tuple(spectra))


def judged(
    where: Places, axis: Floats, flag: npt.NDArray[np.uint8], score: Any, cut: float
) -> Judged:
    """axis, flag and score (n,): an entry passes if its flag is 0 and score >= cut."""
    n = len(axis)
    found = Judged(
        np.empty(n, np.bool_),
        np.empty(n, np.int16),
        np.empty(n, np.int16),
        np.zeros((PASSING + 1, 2, len(where.first)), np.int64),
    )
    table = (where.steps, where.cells, where.scale, where.first, where.last)
    _judge(axis, flag, score, float(cut), table, found.passing, found.first_window,
           found.last_window, found.tally.reshape(-1))  # fmt: skip
    return Judged(found.passing, found.first_window, found.last_window, found.tally.sum(axis=1))


def in_bins(where: Places, entries: Ints) -> tuple[Ints, ...]:
    """Entries (k, n_places) -> (k, n_bins + 2) of each spectrum."""
    found = []
    for bins in where.bins:
        sums = np.zeros((len(entries), int(bins[-1]) + 1), np.int64)
        for row, values in zip(sums, entries, strict=True):
            np.add.at(row, bins, values)
        found.append(sums)
    return tuple(found)


@lru_cache(maxsize=8)
def _places(low: bytes, high: bytes, spectra: tuple[RegularBins, ...]) -> Places:
    lows, highs = np.frombuffer(low), np.frombuffer(high)
    steps = [np.nextafter(lows, np.inf), highs]
    steps += [_bin_steps(*bins) for bins in spectra]
    every = np.unique(np.concatenate(steps))
    inside = np.concatenate([[-np.inf], every])  # the lowest number of each place
    begin = np.searchsorted(highs, inside, side="right")
    stop = np.searchsorted(lows, inside, side="left")
    scale = CELLS / (every[-1] - every[0])
    n_steps = np.bincount(((every - every[0]) * scale + 1).astype(np.int64), minlength=CELLS + 2)
    lower = n_steps.cumsum() - n_steps
    return Places(
        steps=np.append(every, np.nan),
        first=np.where(begin < stop, begin, -1).astype(np.int16),
        last=np.where(begin < stop, stop - 1, -1).astype(np.int16),
        bins=tuple(_bins(inside, *bins) for bins in spectra),
        cells=np.where(n_steps > 1, -1 - lower, lower).astype(np.int32),
        scale=float(scale),
    )


def _bins(m: Floats, n: int, a: float, b: float, root: bool) -> Ints:
    """Bin on a regular axis, as boost-histogram rounds; 0 is the underflow."""
    value = signed_root(m) if root else m
    with np.errstate(over="ignore"):
        at = np.floor((value - a) / (b - a) * n)
    return np.clip(at, -1, n).astype(np.int64) + 1


def _bin_steps(n: int, a: float, b: float, root: bool) -> Floats:
    """The lowest float64 of each bin and of the overflow, by halving."""
    top = np.int64(np.float64(np.finfo(np.float64).max).view(np.int64))
    below, there = np.full(n + 1, -top), np.full(n + 1, top)
    while (below < there - 1).any():
        middle = (below >> 1) + (there >> 1) + (below & there & 1)
        enough = _bins(_in_order(middle), n, a, b, root) > np.arange(n + 1)
        there, below = np.where(enough, middle, there), np.where(enough, below, middle)
    return _in_order(there)


def _in_order(k: Ints) -> Floats:
    """The k-th float64 from zero upwards, -0.0 left out: whole numbers in the order of floats."""
    return np.copysign(np.abs(k).view(np.float64), k)


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _judge(axis, flag, score, cut, table, passing, first, last, tally):  # type: ignore[no-untyped-def]
    """Fills passing, first and last, and adds to tally (PASSING + 1, 2, n_places), flattened.

    Entries with an even and an odd place in the file are counted apart, so that neighbours in one
    place do not wait for each other.
    """
    steps, cells, scale, first_of, last_of = table
    n_places, lowest, most = len(first_of), steps[0], CELLS + 1.0
    cell, row, place = np.empty((3, BLOCK), np.int32)
    for start in range(0, len(axis), BLOCK):
        stop = min(start + BLOCK, len(axis))
        m, f, s, keep = axis[start:stop], flag[start:stop], score[start:stop], passing[start:stop]
        for e in range(len(m)):
            x = (m[e] - lowest) * scale + 1.0
            x = x if x > 0.0 else 0.0  # nan too: in no window, and never counted in a bin
            cell[e] = np.int32(x if x < most else most)
        for e in range(len(m)):
            keep[e] = (f[e] == 0) & (np.float64(s[e]) >= cut)
        for e in range(len(m)):  # 32 bits: numba would count in 64, half as many at once
            row[e] = np.int32(f[e]) + np.int32(keep[e]) * np.int32(PASSING)
        for e in range(len(m)):
            at = cells[np.uint32(cell[e])]
            if at < 0:  # rare, so that it can be guessed
                at = -ONE - at
                while steps[np.uint32(at)] <= m[e]:
                    at += ONE
            place[e] = at + np.int32(steps[np.uint32(at)] <= m[e])
        for e in range(len(m)):
            first[start + e] = first_of[np.uint32(place[e])]
            last[start + e] = last_of[np.uint32(place[e])]
        for e in range(len(m)):
            tally[np.uint32((2 * row[e] + (e & 1)) * n_places + place[e])] += 1
