"""`punzi init`: looks into files and writes a first configuration; never over one that is there."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files as resources
from pathlib import Path

import numpy as np

from analysis.config.searches import plain_search
from analysis.inputs.file_report import NOT_EVENTS, header_problem, recorded_in
from analysis.inputs.tables import Table, is_parquet, open_file
from analysis.start.branch_names import Words, families, words_of
from analysis.start.column_map import ColumnMap, propose
from analysis.start.file_groups import Group, grouped
from analysis.start.template import FILL_IN, Sample, configuration_text
from analysis.terminal import console
from selection.definition import search_from
from selection.errors import UserError
from selection.search import Search
from selection.whole_files import write_text

NAME = "datasets.yaml"
DEMO = "demo.yaml"
LOOK_ROWS = 1000
CHARGE_WORDS = ({"q"}, {"charge"})


class InitError(UserError):
    """The configuration cannot be written, or a file not be looked into."""


def write_demo(folder: Path) -> Path:
    """The configuration of the demo, whose files `punzi simulate` makes."""
    path = _free_path(folder)
    write_text(path, (resources("analysis") / "start" / DEMO).read_text("utf-8"))
    return path


def write_first(folder: Path, files: Sequence[str], *, search: str) -> Path:
    """The configuration for these ntuples; without any, one to fill in."""
    path = _free_path(folder)
    files = [found for file in files for found in expanded(file)]
    refuse_damaged(files)
    definition = search_from(plain_search(search, folder=folder))
    groups = grouped(files)
    looks = [look_into(group.files[0], definition) for group in groups]
    # data have fewer branches than simulation: they say least
    telling = sorted(zip(groups, looks, strict=True), key=lambda pair: pair[0].kind == "data")
    tree, found = telling[0][1] if telling else (None, None)
    samples = [
        Sample(_anchored(group, folder), group.kind == "signal" and _all_record(group), *look)
        for group, look in zip(groups, looks, strict=True)
    ]
    write_text(path, configuration_text(str(path), (search, definition), tree, found, samples))
    _tell(path, found)
    return path


def _free_path(folder: Path) -> Path:
    path = folder / NAME
    if path.exists() or path.is_symlink():
        msg = f"{path} is there already and is kept; choose another folder, or remove it first"
        raise InitError(msg)
    if folder.exists() and not folder.is_dir():
        msg = f"{folder} is a file; give the folder in which {NAME} shall be written"
        raise InitError(msg)
    return path


def expanded(file: str) -> list[str]:
    """The files of a pattern that the shell has left as it is; else the file."""
    if "://" in file or Path(file).exists():
        return [file]
    return sorted(glob.glob(file)) or [file]  # noqa: PTH207  absolute patterns


def refuse_damaged(files: Sequence[str]) -> None:
    """Files that are missing, empty, cut off or no ntuples: all of them at once."""
    problems = []
    for file in files:
        if "://" not in file:
            problem, _ = header_problem(Path(file), parquet=is_parquet(file))
            hint = f"; give its files, {file.rstrip('/')}/*.root" if Path(file).is_dir() else ""
            problems += [f"{file}: {problem}{hint}"] if problem else []
    if problems:
        more = f"\n  and {len(problems) - 10} more" if len(problems) > 10 else ""
        msg = "files that cannot be looked into:\n  " + "\n  ".join(problems[:10]) + more
        raise InitError(msg)


def look_into(file: str, search: Search) -> tuple[str | None, ColumnMap]:
    """The tree of events (None of a parquet file) and a proposal for its columns."""
    try:
        with open_file(file) as opened:
            trees = [t for t in opened.tables if t.rsplit("/", 1)[-1] not in NOT_EVENTS]
            if not trees:
                msg = f"{file} has no TTree or RNTuple with events; it holds {list(opened.content)}"
                raise InitError(msg)
            proposals = {name: _proposal(opened.table(name), search) for name in trees}
    except InitError:
        raise
    except Exception as error:  # a damaged file may raise anything inside uproot
        reason = str(error).strip().partition("\n")[0][:160]
        msg = f"{file} cannot be read: {type(error).__name__}: {reason}"
        raise InitError(msg) from None
    best = max(proposals, key=lambda name: -len(proposals[name].missing))
    return (None if is_parquet(file) else best), proposals[best]


def _proposal(table: Table, search: Search) -> ColumnMap:
    numbers = [name for name in dict.fromkeys(table.names) if table.problem(name) is None]
    return propose(search, numbers, charges_of(table, numbers))


def charges_of(table: Table, branches: Sequence[str]) -> Mapping[Words, int | None]:
    """Sign of the charge of every object that has one in all of the first rows."""
    objects = {family.words for family in families(branches)}
    found: dict[Words, int | None] = {}
    for branch in branches:
        words = words_of(branch)
        for telling in CHARGE_WORDS:
            rest = tuple(word for word in words if word not in telling)
            if telling <= set(words) and rest in objects:
                signs = np.unique(np.sign(table.read(branch, 0, min(LOOK_ROWS, table.n_entries))))
                found[rest] = int(signs[0]) if len(signs) == 1 and signs[0] else None
    return found


def _anchored(group: Group, folder: Path) -> Group:
    """Paths as the configuration wants them: relative to its folder, unless they were full."""
    patterns = tuple(
        p if "://" in p or Path(p).is_absolute() else os.path.relpath(p, folder)
        for p in group.patterns
    )
    return replace(group, patterns=patterns)


def _all_record(group: Group) -> bool:
    return all("n_generated" in recorded_in(file) for file in group.files)


def _tell(path: Path, found: ColumnMap | None) -> None:
    console.stdout.print(f"wrote {path}", soft_wrap=True, markup=False)
    if found is not None:
        for column, branch in found.columns.items():
            console.stdout.print(f"  {column}: {branch}", soft_wrap=True, markup=False)
        if found.missing:
            text = f"  no branch found for {', '.join(found.missing)}"
            console.stdout.print(text, soft_wrap=True, markup=False)
    text = f"look at the lines marked `{FILL_IN}`, then: punzi check -c {path}"
    console.stdout.print(text, soft_wrap=True, markup=False)
