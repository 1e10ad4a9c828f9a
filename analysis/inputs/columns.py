"""Which columns of an ntuple are wanted, and how they are read: one rule for select and apply.

    our column -> branch or basf2 expression (configured, else our own name) -> branch of the file

What the search needs must be there; beams and event numbers are used where a file has them and must
be there if the configuration names their branches. Which branches are meant is found file by file:
files of one data set need not be alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from selection.kernel import row_count
from selection.ntuple import (
    BEAM_COLUMNS,
    CANDIDATES_COLUMN,
    DEFAULT_BRANCHES,
    ECMS_COLUMN,
    KEY_COLUMNS,
)
from selection.preselection import CandidatePolicy
from selection.search import Search

Columns = dict[str, npt.NDArray[Any]]

BEAMS = (*BEAM_COLUMNS, ECMS_COLUMN)


@dataclass(frozen=True)
class Wanted:
    """What a file must and may hold: our column -> branch or expression."""

    tree: str | None
    required: Mapping[str, str]
    optional: Mapping[str, str]


def wanted_columns(
    mapped: Mapping[str, str],
    *,
    tree: str | None,
    searches: Sequence[Search],
    candidates: CandidatePolicy,
    weight: str | None,
    event_numbers: bool,
) -> Wanted:
    """mapped: `columns:` of the configuration; searches: with the cuts of every region; weight:
    branch, if any; event_numbers: used?
    """
    needed = list(dict.fromkeys(name for search in searches for name in search.columns))
    names = {**{name: name for name in needed}, **DEFAULT_BRANCHES, **mapped}
    maybe = [*BEAMS, *(KEY_COLUMNS if event_numbers else ())]
    if candidates == "unique":
        needed.append(CANDIDATES_COLUMN)
    elif candidates == "first":
        needed.append("candidate")
    needed += [name for name in maybe if name in mapped]
    required = {name: names[name] for name in needed}
    if weight is not None:
        required["weight"] = weight
    optional = {name: names[name] for name in maybe if name not in required}
    return Wanted(tree, required, optional)


def read_columns(
    read: Callable[[str], npt.NDArray[Any]],
    branches: Mapping[str, str],
    *,
    missing: float | None = None,
) -> Columns:
    """Our columns by way of `read(branch)`; each branch is read once, the others never.

    missing: the number that stands for NaN in this file, if any.
    """
    found = {branch: read(branch) for branch in sorted(set(branches.values()))}
    columns = {column: found[branch] for column, branch in branches.items()}
    if missing is None:
        return columns
    measured = [name for name in columns if name not in (*KEY_COLUMNS, CANDIDATES_COLUMN)]
    return columns | {name: _without(columns[name], missing) for name in measured}


def _without(values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
    """The same values, NaN where they are the number that means missing."""
    kind = np.result_type(values.dtype, np.float32)
    return np.where(values == values.dtype.type(missing), np.nan, values).astype(kind)


def with_event_numbers(columns: Columns, *, file_number: int, start: int) -> Columns:
    """The columns with an identity for every row: that of the file, or its entry number."""
    if "event" in columns:
        return columns
    n = row_count(columns)
    return {**columns, "run": np.full(n, file_number), "event": np.arange(start, start + n)}
