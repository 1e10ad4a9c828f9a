"""Step 3 of apply, one piece of the work: rows [start, stop) of a file in, branches out.

Pieces are computed anywhere and in any order; they carry everything they need and give plain
arrays back. Their borders follow the baskets of the file where those allow it: a basket that two
pieces share is decompressed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.apply.friend import Counts, counts, friend_columns, in_root_order
from analysis.apply.model import AppliedCut, ApplyError
from analysis.apply.spectra import Entries, counted, places_of
from analysis.inputs.columns import Columns, read_columns
from analysis.inputs.tables import open_table


@dataclass(frozen=True)
class FileRows:
    """Rows of a file; `identity` of its content keeps a changed file from being taken for it."""

    file: str
    tree: str
    identity: str
    branches: Mapping[str, str]  # our column -> branch
    start: int
    stop: int
    missing: float | None = None  # number that means missing
    copied: tuple[str, ...] = ()  # branches to hand back for the entries that pass


class Weighted(NamedTuple):
    """Selected entries with their weights, each (n_selected,)."""

    axis: npt.NDArray[np.float64]
    passing: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """What comes back: the friend's branches, or the copied branches of passing entries."""

    counts: Counts
    entries: Entries
    weighted: Weighted | None  # only if there are weights
    branches: dict[str, Any]


@contextmanager
def failure_named(rows: FileRows) -> Iterator[None]:
    """Any failure inside names the file and the rows."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error) else ""
        msg = (
            f"{rows.file}, rows {rows.start} to {rows.stop}: {type(error).__name__}: {reason}. "
            f"Copy or make the file again."
        )
        raise ApplyError(msg) from error


def score_rows(applied: AppliedCut, rows: FileRows) -> Scored:
    """Read, compute, count."""
    with failure_named(rows):
        return _score(applied, rows)


def planned_rows(whole: FileRows, *, chunk_size: int) -> list[FileRows]:
    """Pieces of about chunk_size rows that cover a file, cut at common baskets if there are.

    Half of them are enough, twice as many are not too many: what two pieces share is read twice.
    """
    borders = [whole.start]
    if whole.stop - whole.start > chunk_size:
        table = open_table(whole.file, whole.tree, whole.identity)
        baskets = table.borders(list(whole.branches.values()))
        baskets = baskets[baskets <= whole.stop]
        while whole.stop - borders[-1] > chunk_size:
            borders.append(_border(baskets, borders[-1], chunk_size))
    borders.append(whole.stop)
    return [replace(whole, start=a, stop=b) for a, b in pairwise(borders) if b > a]


def _border(baskets: npt.NDArray[np.int64], start: int, size: int) -> int:
    """Where a piece ends: the last basket within its size, or else the next one."""
    fits = baskets[(baskets > start + size // 2) & (baskets <= start + size)]
    follows = baskets[(baskets > start + size) & (baskets <= start + 2 * size)]
    return int(fits[-1] if fits.size else follows[0] if follows.size else start + size)


def columns_of(rows: FileRows) -> Columns:
    """Our columns of these rows."""
    with failure_named(rows):
        return read_columns(_reader(rows), rows.branches, missing=rows.missing)


def _reader(rows: FileRows) -> Callable[[str], npt.NDArray[Any]]:
    """branch -> its values in these rows."""
    table = open_table(rows.file, rows.tree, rows.identity)
    return lambda branch: table.read(branch, rows.start, rows.stop)


def _score(applied: AppliedCut, rows: FileRows) -> Scored:
    read = _reader(rows)
    found = {branch: read(branch) for branch in sorted(set(rows.branches.values()))}
    columns = read_columns(found.__getitem__, rows.branches, missing=rows.missing)
    friend, tally = friend_columns(applied, columns, start=rows.start)
    axis, passing = friend[applied.search.axis.name], friend["pass"]
    weighted = None
    if "weight" in columns:
        selected = friend["flag"] == 0
        weight = columns["weight"][selected].astype(np.float64)
        if not np.isfinite(weight).all():
            wrong = int(np.count_nonzero(~np.isfinite(weight)))
            msg = f"the weight of {wrong} selected rows is not a finite number"
            raise ValueError(msg)
        weighted = Weighted(axis[selected], passing[selected], weight)
    return Scored(
        counts=counts(tally),
        entries=counted(places_of(applied.search, applied.models[0].windows), tally),
        weighted=weighted,
        branches=_copied(rows, found, passing) if rows.copied else in_root_order(friend),
    )


def _copied(rows: FileRows, found: Columns, keep: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """All branches of the entries that pass; found: those that were read for the score."""
    read, at = _reader(rows), np.flatnonzero(keep)
    kept = {name: (found[name] if name in found else read(name))[at] for name in rows.copied}
    return {n: v.tolist() if v.dtype == object else v for n, v in kept.items()}
