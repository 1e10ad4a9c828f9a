"""What happens to a chunk of an ntuple: read, select, fill, write.

A chunk carries all that is special to it: its branches, its beams and the names of its shards, one
for each region that is wanted, for files of one data set need not have the same branches. A
shard that is there is read instead. What comes back is histograms and counts, never events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path

from analysis.inputs.columns import read_columns, with_event_numbers
from analysis.inputs.tables import Table, open_table
from analysis.select.chunks import Chunk
from analysis.select.events import ChunkCounts, Selected, joined, selected_events
from analysis.select.gathered import Gathered, Outcome, Result
from analysis.select.histogram_sums import skim_sums
from analysis.select.skim import SkimError, read_shard, shard_counts, shard_schema, write_shard
from selection.keys import identities_of
from selection.preselection import PRESELECTION, CandidatePolicy
from selection.search import Search

Batch = Sequence[tuple[int, Chunk]]  # chunks and their numbers in the plan
BLOCK = 65_536  # rows


class UnwrittenError(Exception):
    """A shard cannot be written; why."""


@dataclass(frozen=True)
class SelectEvents:
    """Selection of some chunks; plain values, so that it can be sent anywhere."""

    run: str  # the folder
    searches: Mapping[str, Search]  # region -> search with its cuts
    candidates: CandidatePolicy

    def __call__(self, batch: Batch) -> Gathered:
        return reduce(add, (Gathered({n: self.outcome(chunk)}) for n, chunk in batch))

    def outcome(self, chunk: Chunk) -> Outcome:
        """What is known of the shards of a chunk: of those that are there, and of the others."""
        damaged: tuple[str, ...] = ()
        try:
            there, damaged = self._there(chunk)
            made = self._made(chunk, [r for r in chunk.shards if r not in there])
        except UnwrittenError as error:  # a full disk is not a bad input file
            return Outcome(chunk.dataset, unwritten=str(error), damaged=damaged)
        except Exception as error:  # one bad chunk must be named, not end the others
            return Outcome(chunk.dataset, error=_first_line(error), damaged=damaged)
        found = there | made
        return Outcome(chunk.dataset, {r: found[r] for r in chunk.shards}, damaged=damaged)

    def _there(self, chunk: Chunk) -> tuple[dict[str, Result], tuple[str, ...]]:
        """Results of the shards that are there already; damaged ones are named."""
        found, damaged = {}, []
        for region, shard in chunk.shards.items():
            path = Path(self.run) / shard
            if not path.exists():
                continue
            try:
                table = read_shard(path)
                columns = {name: table[name].to_numpy() for name in table.column_names}
                counts = ChunkCounts.from_plain(shard_counts(table))
                found[region] = skim_sums(columns, self.searches[region]), counts
            except (SkimError, KeyError, ValueError, TypeError):
                damaged.append(shard)  # and is replaced when it is written
        return found, tuple(damaged)

    def _made(self, chunk: Chunk, regions: Sequence[str]) -> dict[str, Result]:
        """Shards of these regions are written; what is in them."""
        made: dict[str, Result] = {}
        for region, (columns, counts) in self._selected(chunk, regions).items():
            search = self.searches[region]
            schema = shard_schema(search.feature_names, tuple(search.cut_variables))
            try:
                write_shard(Path(self.run) / chunk.shards[region], columns, schema, counts)
            except OSError as error:
                raise UnwrittenError(_first_line(error)) from None
            made[region] = skim_sums(columns, search), counts
        return made

    def _selected(self, chunk: Chunk, regions: Sequence[str]) -> dict[str, Selected]:
        """Region -> what is selected of the rows of a chunk, block by block."""
        if not regions:
            return {}
        table = open_table(chunk.file, chunk.tree, chunk.fingerprint)
        blocks = blocks_of(table, chunk)
        try:
            parts = [self._of_block(table, block, regions) for block in blocks]
        except Exception:  # what is said of a chunk must not depend on its blocks
            parts = [self._of_block(table, chunk, regions)]
        return {region: joined([part[region] for part in parts]) for region in regions}

    def _of_block(self, table: Table, block: Chunk, regions: Sequence[str]) -> dict[str, Selected]:
        columns = read_columns(
            lambda name: table.read(name, block.start, block.stop),
            block.branches,
            missing=block.missing,
        )
        wanted = {region: self.searches[region] for region in regions}
        return selected_events(
            with_event_numbers(columns, file_number=block.file_number, start=block.start),
            block.dataset,
            identities=lambda rows: identities_of(columns, rows, start=block.start),
            searches={PRESELECTION: self.searches[PRESELECTION], **wanted},
            beams=block.beams,
            candidates=self.candidates,
        )


def blocks_of(table: Table, chunk: Chunk) -> list[Chunk]:
    """A chunk, cut where stored blocks of all its columns begin, in pieces of BLOCK rows or more.

    Arrays of a small block lie in memory that was used before; that of large ones is given back to
    the system and asked for anew, which took a fifth of the time.
    """
    if chunk.stop - chunk.start < 2 * BLOCK:
        return [chunk]
    cuts = [chunk.start]
    for row in map(int, table.borders(sorted(set(chunk.branches.values())))):
        if row - cuts[-1] >= BLOCK and chunk.stop - row >= BLOCK:
            cuts.append(row)
    return [replace(chunk, start=a, stop=b) for a, b in pairwise([*cuts, chunk.stop])]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
