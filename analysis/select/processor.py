"""What happens to a chunk of an ntuple: read, select, fill, write.

A chunk carries all that is special to it: its branches, its beams and the names of its shards, one
for each region that is wanted, for files of one data set need not have the same branches. What
comes back is histograms and counts under the name of the shard, never events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.inputs.columns import read_columns, with_event_numbers
from analysis.inputs.tables import open_table
from analysis.select.chunks import Chunk
from analysis.select.events import ChunkCounts, Selected, selected_events
from analysis.select.histogram_sums import Sums, skim_sums
from analysis.select.skim import shard_schema, write_shard
from selection.keys import event_identities
from selection.preselection import PRESELECTION, CandidatePolicy
from selection.search import Search


@dataclass(frozen=True)
class Made:
    """What is known of a shard that was made."""

    sums: Sums  # of its histograms
    counts: ChunkCounts

    def __deepcopy__(self, memo: dict[int, Any]) -> Made:
        """coffea copies what it collects; nobody changes this, and a copy costs 3 ms."""
        return self


@dataclass(frozen=True)
class SelectEvents:
    """Selection of one chunk; plain values, so that it can be sent anywhere."""

    run: str  # the folder
    searches: Mapping[str, Search]  # region -> search with its cuts
    candidates: CandidatePolicy

    def __call__(self, chunk: Chunk) -> dict[str, dict[str, Any]]:
        shards = chunk.shards.values()
        try:
            made = {}
            for region, (columns, counts) in self.selected(chunk).items():
                search = self.searches[region]
                sums = skim_sums(columns, search)
                schema = shard_schema(search.feature_names, tuple(search.cut_variables))
                path = Path(self.run) / chunk.shards[region]
                try:
                    write_shard(path, columns, schema, asdict(counts))
                except OSError as error:  # a full disk is not a bad input file
                    return {shard: {"unwritten": _first_line(error)} for shard in shards}
                made[chunk.shards[region]] = {"made": Made(sums, counts)}
        except Exception as error:  # one bad chunk must be named, not end the others
            return {shard: {"error": _first_line(error)} for shard in shards}
        return made

    def selected(self, chunk: Chunk) -> dict[str, Selected]:
        """Region -> what is selected, of the regions whose shards are wanted."""
        table = open_table(chunk.file, chunk.tree, chunk.fingerprint)
        columns = read_columns(
            lambda name: table.read(name, chunk.start, chunk.stop),
            chunk.branches,
            missing=chunk.missing,
        )
        n = chunk.stop - chunk.start
        wanted = {r: s for r, s in self.searches.items() if r in chunk.shards}
        found = selected_events(
            with_event_numbers(columns, file_number=chunk.file_number, start=chunk.start),
            chunk.dataset,
            identity=event_identities(columns, n, start=chunk.start),
            searches={PRESELECTION: self.searches[PRESELECTION], **wanted},
            beams=chunk.beams,
            candidates=self.candidates,
        )
        return {region: found[region] for region in chunk.shards}


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
