"""A second look, at all that was selected: what a few thousand rows could not show.

rows          the look of `check`, now at every row of every file
cuts          one that removes all of a signal mass, with the values it was given
peaks         of the selected signal
same events   in two data sets, whatever their files are called: by the 64 bits of the axis
weights       per background: rows, events per 1/fb, N_eff, the heaviest row
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysis.inputs.findings import (
    Finding,
    peak_findings,
    row_findings,
    same_event_findings,
    weight_findings,
)
from analysis.inputs.rows import peak_of
from analysis.run.folder import RunFolder
from analysis.select.index import Selection, load_selection
from analysis.select.skim import n_rows, read_shard
from selection.table import candidates_per_event

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset
    from analysis.select.events import ChunkCounts

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint64]

MOST_CONTENTS = 2_000_000  # events compared between data sets


@dataclass(frozen=True)
class SampleSize:
    """How much simulation or data is selected of one sample."""

    sample: str
    rows: int
    events: float  # at the target luminosity
    n_eff: float
    largest: float  # weight of the heaviest row, events at the target luminosity


def selected_findings(
    run: RunFolder,
    config: Configuration,
    datasets: Sequence[Dataset],
    counts: Mapping[str, ChunkCounts],
) -> list[Finding]:
    """Everything found in the selected events of a run."""
    found: list[Finding] = []
    selection = load_selection(run)
    search = config.definition
    for ds in datasets:
        if ds.name in counts:
            beams = config.beams_of(ds.sample)
            found += row_findings(ds.name, counts[ds.name].look, beams, search, cause="")
            found += _emptied(ds, counts[ds.name])
    masses = {ds.name: ds.mass_gev for ds in datasets if ds.kind == "signal"}
    for name, shards in shards_by_dataset(selection).items():
        if name in masses:
            axis = np.concatenate([_column(shard, "axis") for shard in shards])
            keys = np.concatenate([_column(shard, "key") for shard in shards])
            peak = peak_of(axis, per_event=candidates_per_event(keys.astype(np.uint64)))
            found += peak_findings(name, masses[name], peak, search)
    found += same_event_findings(contents(selection))
    for size in sample_sizes(selection):
        if config.samples[size.sample].kind == "background":
            found += weight_findings(size.sample, size.largest)
    return found


def _emptied(ds: Dataset, counts: ChunkCounts) -> Iterator[Finding]:
    """A cut that leaves nothing of a signal mass."""
    names, raw = counts.flow.names, counts.flow.raw
    for cut, before, after in zip(names[1:], raw, raw[1:], strict=False):
        if before and not after and ds.kind == "signal":
            span = counts.emptied.get(cut)
            values = f": values {span[0]:.3g} to {span[1]:.3g}" if span else ""
            text = f"cut {cut} removes all {before} events{values}"
            yield Finding("empty_cut", ds.name, text)


def shards_by_dataset(selection: Selection) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for part in selection.parts:
        name = part.sample if np.isnan(part.mass_gev) else f"{part.sample}/{part.mass_gev:g}"
        found.setdefault(name, []).append(part.shard)
    return found


def contents(selection: Selection, *, thinned_by: int | None = None) -> dict[str, Bits]:
    """Data set -> 64 bits that two different events do not share, of its selected events.

    Of very many events only those whose bits are divisible by `thinned_by` are taken: the same ones
    of equal data sets, whatever their order, so that the memory stays flat.
    """
    by = thinning(selection) if thinned_by is None else thinned_by
    found: dict[str, Bits] = {}
    for name, shards in shards_by_dataset(selection).items():
        bits = (_column(shard, "axis").view(np.uint64) for shard in shards)
        found[name] = np.concatenate([b if by == 1 else b[b % np.uint64(by) == 0] for b in bits])
    return found


def thinning(selection: Selection) -> int:
    """One in so many events is enough to see that two data sets are the same."""
    rows = sum(n_rows(part.shard) for part in selection.parts)
    return max(1, rows // MOST_CONTENTS)


def sample_sizes(selection: Selection) -> list[SampleSize]:
    """Of every sample that is not signal, in the order of the configuration."""
    sums: dict[str, list[tuple[int, float, float, float]]] = {}
    for part in selection.parts:
        if np.isnan(part.mass_gev):
            w = _column(part.shard, "weight") * part.normalisation
            found = (
                len(w),
                float(w.sum()),
                float(w @ w),
                max(float(w.max(initial=0.0)), -float(w.min(initial=0.0))),
            )
            sums.setdefault(part.sample, []).append(found)
    sizes = []
    for sample, pieces in sums.items():
        rows, events, squares, largest = zip(*pieces, strict=True)
        n_eff = math.fsum(events) ** 2 / math.fsum(squares) if any(squares) else 0.0
        sizes.append(SampleSize(sample, sum(rows), math.fsum(events), n_eff, max(largest)))
    return sizes


def _column(shard: Path, name: str) -> Floats:
    values: Floats = read_shard(shard, [name])[name].to_numpy()
    return values
