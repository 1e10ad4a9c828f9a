"""The skim: selected events as parquet shards, one per chunk, and the event table made of them.

A shard holds the axis, the features, the weight of the row as the ntuple has it (events per
1/fb, or 1), the event's identity, what its cuts look at (`cut:<name>`) and, in its metadata, what
was counted in the chunk.
Normalisation and scale factors are applied when the table is read: other luminosities need no new
selection.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from selection.errors import UserError
from selection.ntuple import KEY_COLUMNS
from selection.table import EventTable
from selection.whole_files import replacing

COUNTS = "counts"  # in the metadata of a shard
FIRST = [("axis", pa.float64())]
LAST = [
    ("weight", pa.float64()),
    ("key", pa.uint64()),
    ("identity", pa.uint32()),
    *((name, pa.int64()) for name in KEY_COLUMNS),
]
OF_CUT = "cut:"  # no name of a feature has a colon


@lru_cache(maxsize=32)
def shard_schema(features: tuple[str, ...], cuts: tuple[str, ...] = ()) -> pa.Schema:
    """cuts: names of the cuts whose variables are stored."""
    looked_at = [f"{OF_CUT}{name}" for name in cuts]
    single = [[(name, pa.float32()) for name in names] for names in (features, looked_at)]
    return pa.schema([*FIRST, *single[0], *LAST, *single[1]])


def stored_features(table: pa.Table) -> tuple[str, ...]:
    """Features of a shard, by their place between axis and weight."""
    names = table.column_names
    return tuple(names[len(FIRST) : names.index("weight") if "weight" in names else None])


def stored_cuts(table: pa.Table) -> tuple[str, ...]:
    """Cuts whose variables a shard holds."""
    return tuple(n.removeprefix(OF_CUT) for n in table.column_names if n.startswith(OF_CUT))


class SkimError(UserError):
    """A shard is missing or damaged."""


@dataclass(frozen=True)
class Part:
    """One shard in its place in the order of events, with the weight that normalises it."""

    sample: str
    shard: Path
    mass_gev: float  # nan for background and data
    normalisation: float  # times the weight of the row = weight of the table


def write_shard(
    path: Path,
    columns: Mapping[str, npt.NDArray[np.generic]],
    schema: pa.Schema,
    counts: object,
) -> None:
    """The shard is there, complete, or it is not there; `counts` of its chunk, of dataclasses."""
    schema = schema.with_metadata({COUNTS: json.dumps(counts, default=vars)})
    table = pa.table({name: columns[name] for name in schema.names}, schema=schema)
    # floats of a continuous spectrum do not repeat: dictionaries and byte compression cost more
    # time than the bytes they save; nobody asks for statistics; a path is looked up in many
    # file systems
    with replacing(path) as temporary, pa.OSFile(str(temporary), "wb") as file:
        pq.write_table(table, file, compression="lz4", use_dictionary=False, write_statistics=False)


def read_shard(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    try:
        # no memory map: a file cut short by the disk would end the process with SIGBUS; one thread:
        # a third of the processor time of `read_table` for a small shard, half for a large one
        with pa.OSFile(str(path), "rb") as source, pq.ParquetFile(source) as file:
            table = file.read(columns=columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        msg = f"the skim file {path} cannot be read ({error}); delete it and run select again"
        raise SkimError(msg) from None
    if columns is None and not table.schema.equals(
        shard_schema(stored_features(table), stored_cuts(table))
    ):
        msg = (
            f"the skim file {path} has other columns than expected; delete it and run select again"
        )
        raise SkimError(msg)
    return table


def n_rows(path: Path) -> int:
    """Rows of a shard, from its foot."""
    return int(pq.read_metadata(path).num_rows)


def shard_counts(table: pa.Table) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(table.schema.metadata[COUNTS.encode()])
    return found


def _without_cuts(table: pa.Table) -> pa.Table:
    return table.select([n for n in table.column_names if not n.startswith(OF_CUT)])


def read_table(parts: Sequence[Part]) -> EventTable:
    """All events in the order of the parts: the same table for any chunk size and worker count."""
    names = tuple(dict.fromkeys(part.sample for part in parts))
    tables = [_without_cuts(read_shard(part.shard)) for part in parts]
    n = sum(len(table) for table in tables)
    stored = {stored_features(table) for table in tables} or {()}
    if len(stored) > 1:
        msg = f"the skim holds different features, {sorted(stored)}; delete it and run select again"
        raise SkimError(msg)
    (feature_names,) = stored
    features = np.empty((len(feature_names), n), np.float32)
    axis, weight, mass = np.empty(n), np.empty(n), np.empty(n)
    sample, key = np.empty(n, np.int16), np.empty(n, np.uint64)
    identity = np.empty(n, np.uint32)
    begin = 0
    for part, table in zip(parts, tables, strict=True):
        rows = slice(begin, begin + len(table))
        for row, name in zip(features, feature_names, strict=True):
            row[rows] = table[name].to_numpy()
        axis[rows] = table["axis"].to_numpy()
        weight[rows] = table["weight"].to_numpy() * part.normalisation
        mass[rows], sample[rows] = part.mass_gev, names.index(part.sample)
        key[rows] = table["key"].to_numpy()
        identity[rows] = table["identity"].to_numpy()
        begin = rows.stop
    return EventTable(features.T, axis, weight, mass, sample, key, identity, names, feature_names)
