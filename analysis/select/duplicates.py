"""The same event twice in one data set: an error, with the first of them.

    keys of all rows -> parts by their upper bits -> each part sorted: equal neighbours

Keys are uniform, so that the parts are alike. Those of very many rows wait in temporary files of
the run folder, without names, and memory is that of one part whatever the number of files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysis.run.folder import RunFolder
from analysis.select.chunks import Chunk
from analysis.select.process import SelectionError
from analysis.select.skim import read_shard
from selection.keys import row_keys
from selection.ntuple import KEY_COLUMNS

if TYPE_CHECKING:
    from analysis.inputs.datasets import Dataset

Keys = npt.NDArray[np.uint64]

MOST_KEYS = 1_000_000  # of a part, 8 MB
MOST_PARTS = 64  # open files


def refuse_duplicates(
    run: RunFolder,
    datasets: Sequence[Dataset],
    chunks: Sequence[Chunk],
    region: str,
    *,
    n_rows: Mapping[str, int],
) -> None:
    """n_rows: selected in the region, by data set."""
    for ds in datasets:
        if ds.duplicates_allowed:
            continue
        shards = [run.path / chunk.shards[region] for chunk in chunks if chunk.dataset == ds.name]
        keys = (_row_keys(shard) for shard in shards)
        repeats = repeated(keys, n_rows=n_rows.get(ds.name, 0), folder=run.path)
        if not repeats.size:
            continue
        rows = [
            np.stack([t[name].to_numpy() for name in KEY_COLUMNS], axis=1)[
                np.isin(row_keys(t["key"].to_numpy(), t["candidate"].to_numpy()), repeats)
            ]
            for t in (read_shard(shard, ["key", *KEY_COLUMNS]) for shard in shards)
        ]
        events, times = np.unique(np.concatenate(rows), axis=0, return_counts=True)
        if not (times > 1).any():
            continue  # different events whose hashes agree by chance
        first = [dict(zip(KEY_COLUMNS, map(int, e), strict=True)) for e in events[times > 1][:3]]
        msg = (
            f"{ds.name}: {int((times - 1).sum())} events stand in the selection more than once, "
            f"first {first}; remove the repeated files or set `duplicates: allow` for this sample"
        )
        raise SelectionError(msg)


def _row_keys(shard: Path) -> Keys:
    table = read_shard(shard, ["key", "candidate"])
    return row_keys(table["key"].to_numpy(), table["candidate"].to_numpy())


def repeated(pieces: Iterable[Keys], *, n_rows: int, folder: Path) -> Keys:
    """Keys that stand in the pieces more than once; n_rows: about how many there are."""
    n_parts = min(1 + n_rows // MOST_KEYS, MOST_PARTS)
    parts = [np.concatenate([*pieces, _NONE])] if n_parts == 1 else _parts(pieces, n_parts, folder)
    found = []
    for keys in parts:
        keys.sort()
        found.append(np.unique(keys[1:][keys[1:] == keys[:-1]]))
    return np.concatenate(found)


_NONE = np.empty(0, np.uint64)


def _parts(pieces: Iterable[Keys], n_parts: int, folder: Path) -> Iterator[Keys]:
    """The keys again, equal ones in one part."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(n_parts)]
        for keys in pieces:
            part = ((keys >> np.uint64(32)) * np.uint64(n_parts)) >> np.uint64(32)
            for number, file in enumerate(files):
                file.write(keys[part == number].data)
        for file in files:
            file.seek(0)
            yield np.fromfile(file, np.uint64)
