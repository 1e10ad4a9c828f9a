"""What came back of the chunks, added up in the order of the plan as soon as that order is known.

    sums of a data set = ((s_0 + s_1) + s_2) + ...       s_i of its i-th chunk, to the last bit

Chunks come back in any order. The first ones without a gap are added and forgotten, the others
wait, so that memory grows with the data sets and not with their files. To join two of these is
associative and commutative: an executor may do it anywhere and in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analysis.select.events import ChunkCounts
from analysis.select.histogram_sums import Sums

Result = tuple[Sums, ChunkCounts]
Totals = Mapping[tuple[str, str], Result]  # (region, data set) -> of its chunks together


@dataclass(frozen=True)
class Outcome:
    """Of one chunk: what was found in each region, or why nothing was."""

    dataset: str = ""
    results: Mapping[str, Result] = field(default_factory=dict)  # by region
    error: str = ""
    unwritten: str = ""  # why a shard could not be written: no loss of events
    damaged: tuple[str, ...] = ()  # shards that were there and had to be made again


@dataclass(frozen=True)
class Gathered:
    """Outcomes of some chunks, by their numbers in the plan."""

    waiting: Mapping[int, Outcome] = field(default_factory=dict)
    first: int = 0  # all chunks before this one are in the totals
    totals: Totals = field(default_factory=dict)
    failed: Mapping[int, Outcome] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()

    def __add__(self, other: Gathered) -> Gathered:
        further, behind = (self, other) if self.first >= other.first else (other, self)
        waiting = {**self.waiting, **other.waiting}
        totals, failed = dict(further.totals), {**self.failed, **other.failed}
        first, damaged = further.first, list(further.damaged + behind.damaged)
        while first in waiting:
            outcome = waiting.pop(first)
            damaged += outcome.damaged
            if outcome.error or outcome.unwritten:
                failed[first] = outcome
            for region, (sums, counts) in outcome.results.items():
                place = region, outcome.dataset
                if place in totals:
                    sums, counts = totals[place][0] + sums, totals[place][1] + counts
                totals[place] = sums, counts
            first += 1
        return Gathered(waiting, first, totals, failed, tuple(damaged))

    def complete(self, n_chunks: int, *, otherwise: str) -> Gathered:
        """All chunks of the plan in the totals; `otherwise`: the error of those that never came."""
        gone = (n for n in range(self.first, n_chunks) if n not in self.waiting)
        return self + Gathered({n: Outcome(error=otherwise) for n in gone})
