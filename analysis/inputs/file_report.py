"""One input file: everything that can be known of it before its events are processed.

Only the header, the tree's own description and the recorded metadata are read and, where a look at
the physics is wanted, the first few thousand rows of the wanted columns. A file whose header
promises more bytes than the file has is truncated; no need to read to its end.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns, Wanted, read_columns
from analysis.inputs.fingerprint import file_fingerprint
from analysis.inputs.rows import RowCounts, axis_values, likely_cause, look_at
from analysis.inputs.tables import File, Table, generated_by_basf2, is_parquet, open_file
from selection.beams import Beams
from selection.kernel import row_count
from selection.ntuple import find_branch, nearest
from selection.search import Search

NO_FILE = "no such file"
LOOK_ROWS = 4000
NOT_EVENTS = ("persistent", "metadata")  # trees beside that of the events


@dataclass(frozen=True)
class Look:
    """How the rows of a file are looked at."""

    search: Search
    beams: Beams
    missing: float | None
    signal: bool  # where it piles up


@dataclass(frozen=True)
class FileReport:
    """What was found in one file."""

    file: str
    tree: str = ""
    n_entries: int = 0
    fingerprint: str = ""
    size_bytes: int = 0
    branches: Mapping[str, str] = field(default_factory=dict)  # our column -> branch
    recorded: Mapping[str, float] = field(default_factory=dict)  # from metadata or basf2
    problems: tuple[str, ...] = ()
    unreadable: str = ""  # why the rows cannot be looked at
    look: RowCounts = field(default_factory=RowCounts)  # of the first rows
    axis: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    cause: str = ""  # what most probably is wrong with the momenta, if anything is
    swapped: str = ""  # particles that truth tells to be exchanged, and how often


def inspect_file(file: str, wanted: Wanted, look: Look | None = None) -> FileReport:
    """Look at one file; never raises for a bad file, but reports what is wrong with it."""
    size = 0
    if "://" not in file:
        problem, size = header_problem(Path(file), parquet=is_parquet(file))
        if problem:
            return FileReport(file, size_bytes=size, problems=(problem,))
    try:
        with open_file(file) as opened:
            return _inspect_open(opened, file, size, wanted, look)
    except Exception as error:  # a damaged file may raise anything inside uproot
        reason = str(error).strip().split("\n")[0][:160]
        text = f"cannot be read: {type(error).__name__}: {reason}"
        return FileReport(file, size_bytes=size, problems=(text,))


def header_problem(path: Path, *, parquet: bool) -> tuple[str | None, int]:
    """Missing, not ROOT or parquet, or shorter than its own header says."""
    try:
        size = path.stat().st_size
        if path.is_dir():
            return "is a folder, not a file", 0
        with path.open("rb") as stream:
            head = stream.read(20)
    except FileNotFoundError:
        if any(c in path.name for c in "*?["):
            return "no file matches this pattern", 0
        return NO_FILE, 0
    except OSError as error:
        return f"cannot be opened: {error.strerror}", 0
    if size == 0:
        return "is empty (0 bytes)", 0
    if parquet:
        good = head[:4] == b"PAR1" and _last_bytes(path, 4) == b"PAR1"
        return (None if good else "is no whole parquet file; copy or make it again"), size
    if head[:4] != b"root" or len(head) < 20:
        return f"is not a ROOT file (begins with {head[:4]!r})", size
    version = struct.unpack(">i", head[4:8])[0]
    end = struct.unpack(
        ">q" if version >= 1_000_000 else ">i", head[12 : 20 if version >= 1_000_000 else 16]
    )[0]
    if end > size:
        return f"is truncated: {size} bytes of {end}; copy or make it again", size
    return None, size


def _last_bytes(path: Path, n: int) -> bytes:
    with path.open("rb") as stream:
        stream.seek(-n, 2)
        return stream.read(n)


def _inspect_open(
    opened: File, file: str, size: int, wanted: Wanted, look: Look | None
) -> FileReport:
    trees = list(opened.tables)
    name = None if is_parquet(file) else wanted.tree  # it has one table without a name
    if name is None:
        candidates = [t for t in trees if t.rsplit("/", 1)[-1] not in NOT_EVENTS]
        if len(candidates) != 1:
            text = f"has {len(candidates)} tables {candidates}; name the right one with `tree:`"
            if not candidates:
                text = f"has no TTree or RNTuple; it holds {_content(opened)}"
            return FileReport(file, size_bytes=size, problems=(text,))
        name = candidates[0]
    elif name not in trees:
        near = nearest(name, trees) or trees
        text = f"has no tree {name!r} (found: {', '.join(near) or _content(opened)})"
        return FileReport(file, size_bytes=size, problems=(text,))
    tree = opened.table(name)
    found, problems = _match_branches(tree, wanted)
    rows: Columns = {}
    unreadable = ""
    if tree.n_entries == 0:
        problems.append("has zero entries")
    elif look is not None and not problems:
        rows, unreadable = _first_rows(tree, found, look.missing)
        problems += _nan_problems(rows, look.search) + _weight_problems(rows) if rows else []
    counts, axis, cause = _looked_at(rows, look)
    return FileReport(
        file=file,
        tree=name,
        n_entries=tree.n_entries,
        fingerprint=file_fingerprint(file, opened.uuid, tree.n_entries),
        size_bytes=size,
        branches=found,
        recorded=_recorded(opened),
        problems=tuple(problems),
        unreadable=unreadable,
        look=counts,
        axis=axis,
        cause=cause,
        swapped=_swapped(tree, rows, look) if look is not None and rows else "",
    )


def _content(opened: File) -> str:
    """The first objects with their classes."""
    found = [f"a {kind.split('::')[-1]} {name!r}" for name, kind in opened.content.items()][:4]
    return ", ".join(found) or "nothing"


def _first_rows(
    tree: Table, branches: Mapping[str, str], missing: float | None
) -> tuple[Columns, str]:
    """The columns of the first rows, or why they cannot be read."""
    stop = min(LOOK_ROWS, tree.n_entries)
    try:
        return read_columns(lambda n: tree.read(n, 0, stop), branches, missing=missing), ""
    except Exception as error:  # damaged data may raise anything inside uproot
        return {}, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:160]}"


def _looked_at(rows: Columns, look: Look | None) -> tuple[RowCounts, npt.NDArray[np.float64], str]:
    if look is None or not rows:
        return RowCounts(), np.empty(0), ""
    counts = look_at(rows, look.beams, look.search)
    axis = axis_values(rows, look.beams, look.search) if look.signal else np.empty(0)
    odd = counts.energies or any(counts.off_shell.values())
    return counts, axis, likely_cause(rows, look.beams, look.search) if odd else ""


def _swapped(tree: Table, rows: Columns, look: Look) -> str:
    """Two particles whose momenta lie nearer to the truth of the other, where the file has it.

    Truth of a column is the branch `true_<column>`, whatever branch the column is read from.
    """
    cartesian = {
        n: how for n, how in look.search.particles.items() if {"px", "py", "pz"} <= set(how)
    }
    for (a, one), (b, other) in itertools.combinations(cartesian.items(), 2):
        columns = [str(how[x]) for how in (one, other) for x in ("px", "py", "pz")]
        truth = [f"true_{column}" for column in columns]
        if all(c in rows for c in columns) and set(truth) <= set(tree.names):
            seen = np.stack([rows[c] for c in columns]).reshape(2, 3, -1)
            true = np.stack([tree.read(t, 0, seen.shape[2]) for t in truth]).reshape(2, 3, -1)
            own, exchanged = (((seen - t) ** 2).sum(axis=(0, 1)) for t in (true, true[::-1]))
            share = float(np.mean(exchanged < own))
            if share > 0.5:
                return f"{a} and {b} in {100 * share:.0f} % of the first rows"
    return ""


def _match_branches(tree: Table, wanted: Wanted) -> tuple[dict[str, str], list[str]]:
    present = tree.names
    found: dict[str, str] = {}
    problems: list[str] = []
    for column, name in {**wanted.optional, **wanted.required}.items():
        branch = find_branch(name, present)
        if branch is None:
            if column in wanted.required:
                close = ", ".join(nearest(name, present)) or "none"
                problems.append(f"has no branch {name!r} (nearest: {close})")
            continue
        problem = tree.problem(branch)
        if problem is not None:
            problems.append(problem)
            continue
        found[column] = branch
    return found, problems


def _nan_problems(rows: Columns, search: Search) -> list[str]:
    momenta = [c for how in search.particles.values() for c in how.values() if isinstance(c, str)]
    bad = np.zeros(row_count(rows), bool)
    for column in momenta:
        bad |= ~np.isfinite(rows[column]) if column in rows else False
    share = np.count_nonzero(bad) / max(len(bad), 1)
    return [f"{share:.1%} of the first {len(bad)} rows have NaN momenta"] if share > 0.5 else []


def _weight_problems(rows: Columns) -> list[str]:
    weight = rows.get("weight", np.empty(0))
    bad = np.count_nonzero(~np.isfinite(weight))
    return [f"the weight of {bad} of the first {len(weight)} rows is not a number"] if bad else []


def recorded_in(file: str) -> dict[str, float]:
    """What a file says of itself; empty of a file that cannot be read or says nothing."""
    try:
        with open_file(file) as opened:
            return _recorded(opened)
    except Exception:  # a damaged file may raise anything inside uproot
        return {}


def _recorded(opened: File) -> dict[str, float]:
    """What the file says of itself: our metadata tree, or basf2's FileMetaData (release 09 on)."""
    if "metadata" in opened.tables:
        tree = opened.table("metadata")
        names = [name for name in tree.names if tree.problem(name) is None]
        if tree.n_entries == 1:
            return {name: float(tree.read(name, 0, 1)[0]) for name in names}
    if "persistent" in opened.tables:
        events = generated_by_basf2(opened, "persistent")
        return {"n_generated": float(events)} if events > 0 else {}
    return {}
