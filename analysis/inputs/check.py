"""Inspection of input files: everything that can be known before any event is processed.

Only headers, the tree's own description and the recorded metadata are read, plus the first basket
of the momenta in at most 20 files per data set for the share of NaN. A file whose header promises
more bytes than the file has is truncated; no need to read to its end. `punzi check` prints the
problems, `punzi select` refuses to start while there are any.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import uproot

from analysis.inputs.columns import Wanted, wanted_columns
from analysis.terminal.interrupts import process_pool
from selection.errors import UserError
from selection.ntuple import MOMENTA, find_branch, nearest

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset

NO_FILE = "no such file"
NAN_FILES_PER_DATASET = 20
NAN_ROWS = 10_000
MANY_FILES = 200  # from here on processes pay for their start: parsing headers holds the GIL


class CheckError(UserError):
    """Input files have problems; the message lists them."""


@dataclass(frozen=True)
class FileReport:
    """What was found in one file."""

    file: str
    tree: str = ""
    n_entries: int = 0
    uuid: str = ""
    size_bytes: int = 0
    branches: Mapping[str, str] = field(default_factory=dict)  # our column -> branch
    recorded: Mapping[str, float] = field(default_factory=dict)  # from metadata or basf2
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """One row of the table."""

    dataset: str
    file: str
    text: str


def wanted_branches(config: Configuration, dataset: Dataset) -> Wanted:
    """Columns this configuration needs of a data set, and those used where present."""
    return wanted_columns(
        config.columns,
        tree=config.tree,
        preselection=config.settings.preselection,
        candidates=config.candidates,
        weight=dataset.weight_branch,
        event_numbers=True,
    )


def inspect_file(file: str, wanted: Wanted) -> FileReport:
    """Look at one file; never raises for a bad file, but reports what is wrong with it."""
    size = 0
    if "://" not in file:
        problem, size = _header_problem(Path(file))
        if problem:
            return FileReport(file, size_bytes=size, problems=(problem,))
    try:
        with uproot.open(file) as opened:
            return _inspect_open(opened, file, size, wanted)
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
    opened: uproot.ReadOnlyDirectory, file: str, size: int, wanted: Wanted
) -> FileReport:
    trees = opened.keys(recursive=False, cycle=False, filter_classname="TTree")
    name = wanted.tree
    if name is None:
        candidates = [t for t in dict.fromkeys(trees) if t not in ("persistent", "metadata")]
        if len(candidates) != 1:
            text = f"has {len(candidates)} TTrees {candidates}; name the right one with `tree:`"
            return FileReport(file, size_bytes=size, problems=(text,))
        name = candidates[0]
    elif name not in trees:
        near = nearest(name, trees) or sorted(set(trees))
        text = f"has no TTree {name!r} (found: {', '.join(near) or 'none'})"
        return FileReport(file, size_bytes=size, problems=(text,))
    tree = opened[name]
    found, problems = _match_branches(tree, wanted)
    if tree.num_entries == 0:
        problems.append("has zero entries")
    elif wanted.count_nan and not problems:
        problems += _nan_problems(tree, found)
    return FileReport(
        file=file,
        tree=name,
        n_entries=int(tree.num_entries),
        uuid=str(opened.file.uuid),
        size_bytes=size,
        branches=found,
        recorded=_recorded(opened, trees),
        problems=tuple(problems),
    )


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


def _nan_problems(tree: uproot.TTree, branches: Mapping[str, str]) -> list[str]:
    rows = min(NAN_ROWS, tree.num_entries)
    arrays = tree.arrays([branches[c] for c in MOMENTA], entry_stop=rows, library="np")
    bad = ~np.all([np.isfinite(a) for a in arrays.values()], axis=0)
    share = np.count_nonzero(bad) / rows
    return [f"{share:.1%} of the first {rows} rows have NaN momenta"] if share > 0.5 else []


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


def inspect_all(
    config: Configuration,
    datasets: Sequence[Dataset],
    *,
    workers: int,
    step: Callable[[], None] = lambda: None,
) -> dict[str, list[FileReport]]:
    """Reports of every file, by data set name, in the order of the files."""
    jobs: list[tuple[str, str, Wanted]] = []
    for ds in datasets:
        wanted = wanted_branches(config, ds)
        sampled = replace(wanted, count_nan=True)
        stride = math.ceil(len(ds.files) / NAN_FILES_PER_DATASET) or 1
        jobs += [
            (ds.name, file, wanted if i % stride else sampled) for i, file in enumerate(ds.files)
        ]
    reports: dict[str, list[FileReport]] = {ds.name: [] for ds in datasets}
    with _pool(len(jobs), workers) as pool:
        files, wants = [job[1] for job in jobs], [job[2] for job in jobs]
        for (name, _, _), report in zip(
            jobs, pool.map(inspect_file, files, wants, chunksize=16), strict=True
        ):
            reports[name].append(report)
            step()
    return reports


def _pool(n_files: int, workers: int) -> Executor:
    if n_files >= MANY_FILES and workers > 1:
        return process_pool(workers)
    return ThreadPoolExecutor(max(workers, 1))


def find_problems(
    datasets: Sequence[Dataset], reports: Mapping[str, Sequence[FileReport]]
) -> list[Problem]:
    """All problems of all files, and where recorded and configured normalisation disagree."""
    found: list[Problem] = []
    for ds in datasets:
        of_files = reports[ds.name]
        found += [Problem(ds.name, r.file, text) for r in of_files for text in r.problems]
        if all(not r.problems for r in of_files):
            found += [Problem(ds.name, "all files", t) for t in _normalisation(ds, of_files)]
    return found


def _normalisation(ds: Dataset, reports: Sequence[FileReport]) -> list[str]:
    texts = []
    for name, configured in (
        ("n_generated", ds.n_generated),
        ("luminosity_inv_fb", ds.luminosity_inv_fb),
    ):
        values = [r.recorded.get(name) for r in reports]
        known = [value for value in values if value is not None]
        if configured is None or len(known) < len(values):
            continue
        total = math.fsum(known)
        if not math.isclose(total, configured, rel_tol=1e-6):
            texts.append(f"{name} is {configured:g} in the configuration, {total:g} in the files")
    shares = [r.recorded["parts"] for r in reports if r.recorded.get("parts")]
    if ds.weight_branch and len(shares) == len(reports):
        present = math.fsum(1 / parts for parts in shares)
        if not math.isclose(present, 1.0, rel_tol=1e-6):
            texts.append(f"the files are {present:.4g} of a whole sample; weights assume all parts")
    return texts
