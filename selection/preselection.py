"""Preselection: the candidate policy, and the count of what each named cut leaves.

    valid        axis and features are finite
    candidate    the candidate policy: the only one of its event, the first, or all
    ...          the cuts of the search, in their order; NaN fails a comparison

The kernel of the search says for every event which of them is the first that fails
(selection/kernel.py). Weighted counts are kept as integers in units of 2^-40 events, so that sums
are exact and do not depend on how the events were split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from selection.kernel import DROPPED, FIRST_CUT
from selection.ntuple import CANDIDATES_COLUMN
from selection.table import BoolArray, FloatArray

PRESELECTION = "preselection"  # name of the region of the search itself; others have their own cuts
CandidatePolicy = Literal["unique", "first", "all"]
WEIGHT_UNIT = 2.0**-40

Codes = npt.NDArray[np.uint8]


def candidate_mask(
    columns: Mapping[str, npt.NDArray[Any]], policy: CandidatePolicy, n: int
) -> BoolArray:
    """Rows kept by the policy; `first` means candidate 0."""
    if policy == "unique":
        return np.asarray(columns[CANDIDATES_COLUMN] == 1)
    if policy == "first":
        return np.asarray(columns["candidate"] == 0)
    return np.ones(n, bool)


def with_candidates(code: Codes, kept: BoolArray) -> Codes:
    """The codes of the kernel, with the candidate policy before the cuts."""
    return np.where((code > DROPPED) & ~kept, np.uint8(DROPPED), code)


def cut_names(cuts: Sequence[str]) -> tuple[str, ...]:
    """Names of the steps whose numbers the codes are."""
    return ("valid", "candidate", *cuts)


def passing(code: Codes, n_cuts: int) -> BoolArray:
    return code == FIRST_CUT + n_cuts


@dataclass(frozen=True)
class Cutflow:
    """Events left after each named cut; `weighted` in units of 2^-40 events, exact integers."""

    names: tuple[str, ...]
    raw: tuple[int, ...]
    weighted: tuple[int, ...]

    def __add__(self, other: Cutflow) -> Cutflow:
        if self.names != other.names:
            msg = f"cutflows with different cuts cannot be added: {self.names}, {other.names}"
            raise ValueError(msg)
        add = tuple(a + b for a, b in zip(self.raw, other.raw, strict=True))
        weighted = tuple(a + b for a, b in zip(self.weighted, other.weighted, strict=True))
        return Cutflow(self.names, add, weighted)

    @property
    def events(self) -> tuple[float, ...]:
        """Weighted events left after each cut."""
        return tuple(units * WEIGHT_UNIT for units in self.weighted)


def cutflow(code: Codes, cuts: Sequence[str], weight: FloatArray | float) -> Cutflow:
    """The count after each step, starting with `all` events."""
    names = cut_names(cuts)
    # a third of the time of bincount, which makes integers of 64 bits first
    fails = np.array([np.count_nonzero(code == k) for k in range(len(names) + 1)], np.int64)
    raw = _left(fails)
    units = np.rint(np.asarray(weight, np.float64) / WEIGHT_UNIT).astype(np.int64)
    if units.ndim:
        lost = np.zeros(len(names) + 1, np.int64)
        np.add.at(lost, code, units)
        weighted = _left(lost)
    else:
        weighted = tuple(int(units) * count for count in raw)
    return Cutflow(("all", *names), raw, weighted)


def _left(fails: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """What is left before and after each step, from what fails first at each."""
    return tuple(int(n) for n in np.cumsum(fails[::-1])[::-1])
