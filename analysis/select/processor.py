"""What happens to a chunk of an ntuple: read, select, fill, write.

A chunk carries all that is special to it: its branches, its beams and the name of its shard, for
files of one data set need not have the same branches. What comes back is histograms and counts
under the name of the shard, never events.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.inputs.columns import Columns, read_columns, with_event_numbers
from analysis.inputs.tables import open_table
from analysis.select.chunks import Chunk
from analysis.select.events import ChunkCounts, selected_events
from analysis.select.histograms import skim_histograms
from analysis.select.skim import write_shard
from selection.keys import event_identities
from selection.preselection import CandidatePolicy
from selection.search import Search


@dataclass(frozen=True)
class SelectEvents:
    """Selection of one chunk; plain values, so that it can be sent anywhere."""

    skim: str
    search: Search
    candidates: CandidatePolicy

    def __call__(self, chunk: Chunk) -> dict[str, dict[str, Any]]:
        try:
            selected, counts = self.selected(chunk)
            histograms = skim_histograms(selected, self.search)
            try:
                write_shard(
                    Path(self.skim) / chunk.shard,
                    selected,
                    self.search.feature_names,
                    asdict(counts),
                )
            except OSError as error:  # a full disk is not a bad input file
                return {chunk.shard: {"unwritten": _first_line(error)}}
        except Exception as error:  # one bad chunk must be named, not end the others
            return {chunk.shard: {"error": _first_line(error)}}
        return {chunk.shard: {"histograms": histograms, "counts": counts}}

    def selected(self, chunk: Chunk) -> tuple[Columns, ChunkCounts]:
        table = open_table(chunk.file, chunk.tree, chunk.fingerprint)
        columns = read_columns(
            lambda name: table.read(name, chunk.start, chunk.stop),
            chunk.branches,
            missing=chunk.missing,
        )
        n = chunk.stop - chunk.start
        return selected_events(
            with_event_numbers(columns, file_number=chunk.file_number, start=chunk.start),
            chunk.dataset,
            identity=event_identities(columns, n, start=chunk.start),
            search=self.search,
            beams=chunk.beams,
            candidates=self.candidates,
        )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
