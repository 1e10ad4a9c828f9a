"""The friend tree: what the model says of every entry of an ntuple, in the same order.

recoil_mass2      GeV^2; NaN where an input is NaN
pt_thrust ...     the four features, GeV; NaN where an input is NaN
score             NaN unless flag == 0: outside the preselection the network knows nothing
score_spread      standard deviation over the networks, for an ensemble only
pass              flag == 0 and score >= cut
first_window      first and last mass window that holds the recoil, both included;
last_window       -1 if there is none
flag              0, or the sum of
                    1  a momentum or beam is NaN or infinite
                    2  the candidate policy drops the entry
                    4  the preselection drops the entry
                    8  sqrt(s) of the entry is not that of the training
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from analysis.applied_model import BEAM_TOLERANCE_GEV, AppliedModel
from models.trained import mean_and_spread
from models.window_events import passes
from selection.beams import FloatArray
from selection.features import event_kinematics
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN
from selection.preselection import candidate_mask, named_cuts
from selection.table import FEATURES
from selection.windows import MassWindows

Columns = dict[str, npt.NDArray[Any]]

INPUT, CANDIDATE, PRESELECTION, BEAMS = (np.uint8(bit) for bit in (1, 2, 4, 8))
TREE = "punzi"
CELLS = 4096


@dataclass(frozen=True)
class Counts:
    """Entries by what became of them; an entry may fail for several reasons."""

    entries: int = 0
    bad_input: int = 0
    candidate: int = 0
    preselection: int = 0
    beams: int = 0
    selected: int = 0  # flag == 0
    passing: int = 0

    def __add__(self, other: Counts) -> Counts:
        names = [f.name for f in fields(self)]
        return Counts(**{n: getattr(self, n) + getattr(other, n) for n in names})


def friend_types(n_models: int) -> dict[str, np.dtype[Any]]:
    """Branch -> type of the friend tree."""
    spread = {"score_spread": np.float32} if n_models > 1 else {}
    kinds = {
        "recoil_mass2": np.float64,
        **dict.fromkeys(FEATURES, np.float32),
        "score": np.float32,
        **spread,
        "pass": np.bool_,
        "first_window": np.int16,
        "last_window": np.int16,
        "flag": np.uint8,
    }
    return {name: np.dtype(kind) for name, kind in kinds.items()}


def friend_columns(applied: AppliedModel, columns: Mapping[str, FloatArray]) -> Columns:
    """Columns (n,) of the ntuple -> branches (n,) of the friend tree."""
    kinematics = event_kinematics(columns, applied.beams)
    flag = _flags(applied, columns, kinematics)
    mass2 = kinematics.recoil_mass2_gev2
    n_good = len(flag) - int(np.count_nonzero(flag))
    score, *spread = _scores(applied, kinematics.features, flag, n_good)
    first, last = inclusive_span(applied.models[0].windows, mass2)
    return {
        "recoil_mass2": mass2,
        **dict(zip(FEATURES, kinematics.features, strict=True)),
        "score": score,
        **dict(zip(("score_spread",), spread, strict=False)),
        "pass": passes(score, applied.cut),
        "first_window": first,
        "last_window": last,
        "flag": flag,
    }


def counts(friend: Columns) -> Counts:
    """How many entries have each flag, and how many pass."""
    of_flag = np.bincount(friend["flag"], minlength=16)
    values = np.arange(16)

    def having(bit: np.uint8) -> int:
        return int(of_flag[(values & bit) > 0].sum())

    return Counts(
        entries=len(friend["flag"]),
        bad_input=having(INPUT),
        candidate=having(CANDIDATE),
        preselection=having(PRESELECTION),
        beams=having(BEAMS),
        selected=int(of_flag[0]),
        passing=int(np.count_nonzero(friend["pass"])),
    )


def event_sqrt_s(columns: Mapping[str, FloatArray]) -> FloatArray | None:
    """sqrt(s) of each entry in GeV, if the ntuple tells: from its beams, else from `ecms`."""
    if all(name in columns for name in BEAM_COLUMNS):
        px, py, pz, e = (columns[name].astype(np.float64) for name in BEAM_COLUMNS)
        return np.sqrt(np.maximum(e * e - px * px - py * py - pz * pz, 0.0))
    return columns.get(ECMS_COLUMN)


def _flags(
    applied: AppliedModel, columns: Mapping[str, FloatArray], kinematics: Any
) -> npt.NDArray[np.uint8]:
    masks = named_cuts(applied.preselection, columns, kinematics)
    valid = masks.pop("valid")
    selected = np.logical_and.reduce(list(masks.values())) if masks else np.ones_like(valid)
    kept = candidate_mask(columns, applied.candidates, len(valid))
    flag = np.multiply(~valid, INPUT, dtype=np.uint8)
    flag += (valid & ~selected) * PRESELECTION
    flag += ~kept * CANDIDATE
    sqrt_s = event_sqrt_s(columns)
    if sqrt_s is not None:
        # NaN beams are a bad input already, and no statement about the energy
        flag += (np.abs(sqrt_s - applied.sqrt_s_gev) > BEAM_TOLERANCE_GEV) * BEAMS
    return flag


def _scores(
    applied: AppliedModel, features: FloatArray, flag: npt.NDArray[np.uint8], n_good: int
) -> tuple[npt.NDArray[np.float32], ...]:
    """Mean score (n,) and, for an ensemble, its spread; only entries with flag 0 are computed."""
    inputs = np.empty((n_good, len(FEATURES)), features.dtype)
    _gather(features, flag, inputs)
    found = (
        mean_and_spread(applied.models, inputs)
        if len(applied.models) > 1
        else (applied.models[0].score(inputs),)
    )
    everywhere = tuple(np.empty(len(flag), np.float32) for _ in found)
    for values, target in zip(found, everywhere, strict=True):
        _scatter(values, flag, target)
    return everywhere


@nb.njit(nogil=True, cache=True)
def _gather(features, flag, inputs):  # type: ignore[no-untyped-def]
    row = 0
    for i in range(len(flag)):
        if flag[i] == 0:
            for k in range(features.shape[0]):
                inputs[row, k] = features[k, i]
            row += 1


@nb.njit(nogil=True, cache=True)
def _scatter(values, flag, target):  # type: ignore[no-untyped-def]
    row = 0
    for i in range(len(flag)):
        target[i] = np.nan
        if flag[i] == 0:
            target[i] = values[row]
            row += 1


def inclusive_span(
    windows: MassWindows, mass2_gev2: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int16]]:
    """First and last window of each entry, -1 if none: `window_span`, ten times as fast.

    A table over equal cells of M_rec2 says where to begin; comparisons with the edges decide.
    """
    low, high = windows.low_gev2, windows.high_gev2
    first, last = (np.full(len(mass2_gev2), -1, np.int16) for _ in range(2))
    if len(windows) == 0:
        return first, last
    cells = np.linspace(low[0], high[-1], CELLS + 1)
    begin = [np.searchsorted(edges, cells).astype(np.int64) for edges in (high, low)]
    _span(mass2_gev2, low, high, begin[0], begin[1], first, last)
    return first, last


@nb.njit(nogil=True, cache=True)
def _span(mass2, low, high, begin_high, begin_low, first, last):  # type: ignore[no-untyped-def]
    n, scale = len(low), CELLS / (high[-1] - low[0])
    for i in range(len(mass2)):
        m = mass2[i]
        if not low[0] < m < high[-1]:
            continue
        cell = min(int((m - low[0]) * scale), CELLS - 1)
        a, b = begin_high[cell], begin_low[cell]
        while a > 0 and high[a - 1] > m:  # rounding may give the next cell
            a -= 1
        while a < n and high[a] <= m:
            a += 1
        while b > 0 and low[b - 1] >= m:
            b -= 1
        while b < n and low[b] < m:
            b += 1
        if a < b:
            first[i], last[i] = a, b - 1
