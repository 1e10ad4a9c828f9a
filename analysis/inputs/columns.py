"""Which columns of an ntuple are wanted, and how they are read: one rule for select and apply.

    our column -> branch or basf2 expression (configured, else our own name) -> branch of the file

Momenta and the columns of the cuts that are on must be there; beams are used where a file has them
and must be there if the configuration names their branches. Which branches are meant is found file
by file: files of one data set need not be alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from selection.ntuple import (
    BEAM_COLUMNS,
    CANDIDATES_BRANCH,
    DEFAULT_BRANCHES,
    ECMS_COLUMN,
    KEY_BRANCHES,
    MOMENTA,
)
from selection.preselection import CandidatePolicy, Preselection

Columns = dict[str, npt.NDArray[Any]]

BEAMS = (*BEAM_COLUMNS, ECMS_COLUMN)


@dataclass(frozen=True)
class Wanted:
    """What a file must and may hold: our column -> branch or expression."""

    tree: str | None
    required: Mapping[str, str]
    optional: Mapping[str, str]
    count_nan: bool = False


def wanted_columns(
    mapped: Mapping[str, str],
    *,
    tree: str | None,
    preselection: Preselection,
    candidates: CandidatePolicy,
    weight: str | None,
    event_numbers: bool,
) -> Wanted:
    """mapped: `columns:` of the configuration; weight: branch, if any; event_numbers: needed?"""
    names = {**DEFAULT_BRANCHES, **mapped}
    needed = [*MOMENTA, *preselection.columns, *(name for name in BEAMS if name in mapped)]
    required = {name: names[name] for name in needed}
    optional = {name: names[name] for name in BEAMS if name not in mapped}
    if event_numbers:
        required |= {branch: branch for branch in KEY_BRANCHES[:3]}
        optional |= {branch: branch for branch in KEY_BRANCHES[3:]}
    if candidates == "unique":
        required[CANDIDATES_BRANCH] = CANDIDATES_BRANCH
    elif candidates == "first":
        required["__candidate__"] = "__candidate__"
    if weight is not None:
        required["weight"] = weight
    return Wanted(tree, required, optional)


def read_columns(read: Callable[[str], npt.NDArray[Any]], branches: Mapping[str, str]) -> Columns:
    """Our columns by way of `read(branch)`; each branch is read once, the others never."""
    found = {branch: read(branch) for branch in sorted(set(branches.values()))}
    return {column: found[branch] for column, branch in branches.items()}
