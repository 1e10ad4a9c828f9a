"""Step 6 of apply, one output per input: a friend tree or skim, and how it was made.

    <stem>.friend.root     TTree `punzi`: as many entries as the input, in the same order
    <stem>.skim.root       the input's tree with the entries that pass, all branches
    both                   TObjString `provenance`: JSON with model, cut, input, counts, spectra

The record holds a stamp of everything the content depends on. A file with the right stamp is
finished work of an earlier call and is kept; any other file in the way is never touched unasked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import uproot

from analysis.apply.baskets import write_without_copies
from analysis.apply.friend import TREE, Counts, friend_types
from analysis.apply.model import AppliedCut, ApplyError
from analysis.apply.rows import FileRows, Scored
from analysis.apply.spectra import (
    Entries,
    Spectra,
    add_weights,
    counted_spectra,
    empty_spectra,
    from_json,
    to_json,
    with_weights,
)
from analysis.inputs.tables import Table
from selection.whole_files import replacing

RECORD = "provenance"
ROWS_PER_BASKET = 500_000
METADATA = "metadata"  # of the input, as our simulation writes it


@dataclass(frozen=True)
class FileToApply:
    """One input, its pieces, and where the result goes."""

    input: str
    output: Path
    stamp: str
    pieces: tuple[FileRows, ...]
    tree: str  # name of the output's tree
    types: Mapping[str, Any]  # branch -> type
    recorded: Mapping[str, float]  # what the input says of itself, kept by a skim


@dataclass(frozen=True)
class AppliedFile:
    """What was found in one file."""

    input: str
    output: Path
    counts: Counts
    spectra: Spectra
    kept: bool  # finished by an earlier call


def write_applied(job: FileToApply, cut: AppliedCut, pieces: Iterator[Scored]) -> AppliedFile:
    """Write the pieces in order; the file appears under its name only when complete."""
    total, running = Counts(), empty_spectra(cut.search)
    entries: list[Entries] = []
    weighted = False
    with replacing(job.output) as part, uproot.create(part) as file:
        tree = file.mktree(job.tree, dict(job.types))
        tree.compression = {name: _compression(kind) for name, kind in job.types.items()}
        write_without_copies(tree)
        waiting: list[Mapping[str, Any]] = []  # pieces of a skim may have few rows
        for piece in pieces:
            waiting.append(piece.branches)
            if sum(map(_n_rows, waiting)) >= ROWS_PER_BASKET:
                _write_rows(tree, waiting)
                waiting.clear()
            total = total + piece.counts
            entries.append(piece.entries)
            if piece.weighted is not None:
                weighted = True
                add_weights(cut.search, running, *piece.weighted)
        _write_rows(tree, waiting)
        spectra = counted_spectra(cut.search, entries)
        if weighted:
            spectra = with_weights(spectra, running)
        if job.recorded:
            kinds = dict.fromkeys(job.recorded, np.float64)
            file.mktree(METADATA, kinds).extend({k: [v] for k, v in job.recorded.items()})
        file[RECORD] = json.dumps(_record(job, cut, total, spectra), sort_keys=True)
    return AppliedFile(job.input, job.output, total, spectra, kept=False)


def finished(job: FileToApply) -> AppliedFile | None:
    """The result of an earlier call with the same model, cut, input and code; None if other."""
    try:
        with uproot.open(job.output) as file:
            about = json.loads(str(file[RECORD]))
        if about["stamp"] != job.stamp:
            return None
        counts, spectra = Counts(**about["counts"]), from_json(about["spectra"])
    except Exception:  # a foreign or damaged file may raise anything inside uproot
        return None
    return AppliedFile(job.input, job.output, counts, spectra, kept=True)


def skim_types(table: Table, *, where: str) -> dict[str, Any]:
    """Branch -> type of every branch that is to be copied; one that cannot be is an error."""
    try:
        return table.types()
    except TypeError as error:
        msg = (
            f"{where}: {error}; --skim copies numbers, fixed-size arrays and strings. Use the "
            f"friend tree (without --skim)."
        )
        raise ApplyError(msg) from None


def output_layout(cut: AppliedCut) -> tuple[str, dict[str, Any]]:
    """Name and branches of the friend tree."""
    return TREE, dict(friend_types(cut.search, len(cut.models), cut.n_folds))


def _record(job: FileToApply, cut: AppliedCut, counts: Counts, spectra: Spectra) -> dict[str, Any]:
    return {
        "stamp": job.stamp,
        "input": job.input,
        "models": dict(zip(cut.files, cut.sha256, strict=True)),
        "cut": cut.cut,
        "conditions": cut.identity(),
        "punzi_version": version("punzi"),
        "counts": asdict(counts),
        "spectra": to_json(spectra),
    }


def _n_rows(branches: Mapping[str, Any]) -> int:
    return len(next(iter(branches.values())))


def _write_rows(tree: Any, pieces: Sequence[Mapping[str, Any]]) -> None:
    """In blocks, each one basket per branch: a few MB, which readers take at once."""
    rows = pieces[0] if len(pieces) == 1 else _joined(pieces)
    for start in range(0, _n_rows(rows) if rows else 0, ROWS_PER_BASKET):
        tree.extend({name: v[start : start + ROWS_PER_BASKET] for name, v in rows.items()})


def _joined(pieces: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The rows of all pieces; texts are lists."""
    columns = {name: [piece[name] for piece in pieces] for name in (pieces[0] if pieces else ())}
    return {
        name: list(chain(*parts)) if isinstance(parts[0], list) else np.concatenate(parts)
        for name, parts in columns.items()
    }


def _compression(kind: Any) -> Any:
    """Numbers and flags cost more time than they save; lists and texts of a skim are packed."""
    return None if isinstance(kind, np.dtype) else uproot.LZ4(1)
