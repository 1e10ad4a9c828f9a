"""One input file: everything that can be known of it before its events are processed.

Only the header, the tree's own description and the recorded metadata are read and, where a look at
the physics is wanted, the first few thousand rows of the wanted columns. A file whose header
promises more bytes than the file has is truncated; no need to read to its end.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import uproot

from analysis.inputs.columns import Columns, Wanted, read_columns
from analysis.inputs.fingerprint import file_fingerprint
from analysis.inputs.rows import RowCounts, likely_cause, look_at, recoil_mass2
from selection.beams import Beams
from selection.ntuple import MOMENTA, find_branch, nearest

NO_FILE = "no such file"
LOOK_ROWS = 4000
NOT_EVENTS = ("persistent", "metadata")  # trees beside that of the events


@dataclass(frozen=True)
class Look:
    """How the rows of a file are looked at."""

    beams: Beams
    missing: float | None
    recoil: bool  # of signal: where it piles up


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
    recoil_mass2_gev2: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    cause: str = ""  # what most probably is wrong with the momenta, if anything is


def inspect_file(file: str, wanted: Wanted, look: Look | None = None) -> FileReport:
    """Look at one file; never raises for a bad file, but reports what is wrong with it."""
    size = 0
    if "://" not in file:
        problem, size = _header_problem(Path(file))
        if problem:
            return FileReport(file, size_bytes=size, problems=(problem,))
    try:
        with uproot.open(file) as opened:
            return _inspect_open(opened, file, size, wanted, look)
    except Exception as error:  # a damaged file may raise anything inside uproot
        reason = str(error).strip().split("\n")[0][:160]
        text = f"cannot be read: {type(error).__name__}: {reason}"
        return FileReport(file, size_bytes=size, problems=(text,))


def _header_problem(path: Path) -> tuple[str | None, int]:
    """Missing, not ROOT, or shorter than its own header says."""
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
    if head[:4] != b"root" or len(head) < 20:
        return f"is not a ROOT file (begins with {head[:4]!r})", size
    version = struct.unpack(">i", head[4:8])[0]
    end = struct.unpack(
        ">q" if version >= 1_000_000 else ">i", head[12 : 20 if version >= 1_000_000 else 16]
    )[0]
    if end > size:
        return f"is truncated: {size} bytes of {end}; copy or make it again", size
    return None, size


def _inspect_open(
    opened: uproot.ReadOnlyDirectory, file: str, size: int, wanted: Wanted, look: Look | None
) -> FileReport:
    trees = list(dict.fromkeys(opened.keys(cycle=False, filter_classname="TTree")))
    name = wanted.tree
    if name is None:
        candidates = [t for t in trees if t.rsplit("/", 1)[-1] not in NOT_EVENTS]
        if len(candidates) != 1:
            text = f"has {len(candidates)} TTrees {candidates}; name the right one with `tree:`"
            if not candidates:
                text = f"has no TTree; it holds {_content(opened)}"
            return FileReport(file, size_bytes=size, problems=(text,))
        name = candidates[0]
    elif name not in trees:
        near = nearest(name, trees) or trees
        text = f"has no TTree {name!r} (found: {', '.join(near) or _content(opened)})"
        return FileReport(file, size_bytes=size, problems=(text,))
    tree = opened[name]
    found, problems = _match_branches(tree, wanted)
    rows: Columns = {}
    unreadable = ""
    if tree.num_entries == 0:
        problems.append("has zero entries")
    elif look is not None and not problems:
        rows, unreadable = _first_rows(tree, found, look.missing)
        problems += _nan_problems(rows) if rows else []
    counts, recoil, cause = _looked_at(rows, look)
    return FileReport(
        file=file,
        tree=name,
        n_entries=int(tree.num_entries),
        fingerprint=file_fingerprint(file, str(opened.file.uuid), int(tree.num_entries)),
        size_bytes=size,
        branches=found,
        recorded=_recorded(opened, trees),
        problems=tuple(problems),
        unreadable=unreadable,
        look=counts,
        recoil_mass2_gev2=recoil,
        cause=cause,
    )


def _content(opened: uproot.ReadOnlyDirectory) -> str:
    """`an RNTuple 'events'`, or the first objects with their classes."""
    kinds = opened.classnames(recursive=False, cycle=False)
    found = [f"an {kind.split('::')[-1]} {name!r}" for name, kind in kinds.items()][:4]
    return ", ".join(found) or "nothing"


def _first_rows(
    tree: uproot.TTree, branches: Mapping[str, str], missing: float | None
) -> tuple[Columns, str]:
    """The columns of the first rows, or why they cannot be read."""
    stop = min(LOOK_ROWS, tree.num_entries)

    def read(name: str) -> npt.NDArray[np.generic]:
        values: npt.NDArray[np.generic] = tree[name].array(entry_stop=stop, library="np")
        return values

    try:
        return read_columns(read, branches, missing=missing), ""
    except Exception as error:  # damaged data may raise anything inside uproot
        return {}, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:160]}"


def _looked_at(rows: Columns, look: Look | None) -> tuple[RowCounts, npt.NDArray[np.float64], str]:
    if look is None or not rows:
        return RowCounts(), np.empty(0), ""
    counts = look_at(rows, look.beams)
    recoil = recoil_mass2(rows, look.beams) if look.recoil else np.empty(0)
    odd = counts.energies or any(counts.off_shell.values())
    return counts, recoil, likely_cause(rows, look.beams) if odd else ""


def _match_branches(tree: uproot.TTree, wanted: Wanted) -> tuple[dict[str, str], list[str]]:
    present = tree.keys(recursive=False)
    found: dict[str, str] = {}
    problems: list[str] = []
    for column, name in {**wanted.optional, **wanted.required}.items():
        branch = find_branch(name, present)
        if branch is None:
            if column in wanted.required:
                close = ", ".join(nearest(name, present)) or "none"
                problems.append(f"has no branch {name!r} (nearest: {close})")
            continue
        if not _is_number(tree[branch]):
            problems.append(f"branch {branch!r} is {tree[branch].typename}, expected one number")
            continue
        if tree[branch].num_entries != tree.num_entries:  # a plan of rows that are not there
            counts = f"{tree[branch].num_entries} entries, the tree {tree.num_entries}"
            problems.append(f"is damaged: branch {branch!r} has {counts}; copy or make it again")
            continue
        found[column] = branch
    return found, problems


def _is_number(branch: uproot.TBranch) -> bool:
    plain = isinstance(branch.interpretation, uproot.interpretation.numerical.AsDtype)
    if not plain:
        return False
    dtype = branch.interpretation.to_dtype
    return dtype.shape == () and dtype.names is None and dtype.kind in "fiu"


def _nan_problems(rows: Columns) -> list[str]:
    bad = ~np.all([np.isfinite(rows[c]) for c in MOMENTA], axis=0)
    share = np.count_nonzero(bad) / len(bad)
    return [f"{share:.1%} of the first {len(bad)} rows have NaN momenta"] if share > 0.5 else []


def _recorded(opened: uproot.ReadOnlyDirectory, trees: Sequence[str]) -> dict[str, float]:
    """What the file says of itself: our metadata tree, or basf2's FileMetaData (release 09 on)."""
    if "metadata" in trees:
        tree = opened["metadata"]
        names = [b.name for b in tree.branches if _is_number(b)]
        if tree.num_entries == 1:
            return {n: float(a[0]) for n, a in tree.arrays(names, library="np").items()}
    if "persistent" in trees:
        tree = opened["persistent"]
        for key in tree.iterkeys():
            if key.rsplit("/", 1)[-1] == "m_mcEvents":
                events = int(np.sum(tree[key].array(library="np")))
                return {"n_generated": float(events)} if events > 0 else {}
    return {}
