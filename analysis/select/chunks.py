"""The plan of a selection: which rows of which file make which shard.

The name of a shard is a hash of all it depends on: content of the file, rows, branches, cuts, beams
and code. A shard that is there is therefore right, whichever run made it, and the plan is the same
for any number of workers. Every chunk is accounted for at the end: planned = done + lost.

The rows of a chunk are read once and make a shard for the search and one for every region. Names of
the former know nothing of the regions: a new one trains nothing again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from analysis.run.code import code_digest
from analysis.run.folder import digest
from selection.beams import Beams
from selection.ntuple import DEFAULT_BRANCHES
from selection.preselection import PRESELECTION
from selection.search import Search

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset
    from analysis.inputs.file_report import FileReport


@dataclass(frozen=True)
class Chunk:
    """Rows [start, stop) of a file, and the shards that hold what is selected of them."""

    dataset: str
    file: str
    tree: str
    start: int
    stop: int
    shards: Mapping[str, str]  # region -> relative to the run folder
    branches: Mapping[str, str]  # of this file: our column -> branch
    file_number: int  # in its data set
    missing: float | None  # number that means missing
    beams: Beams
    fingerprint: str  # of the file's content

    @property
    def shard(self) -> str:
        """Of the search region."""
        return self.shards[PRESELECTION]


def plan_chunks(
    config: Configuration,
    datasets: Sequence[Dataset],
    reports: Mapping[str, Sequence[FileReport]],
    *,
    chunk_size: int,
) -> list[Chunk]:
    """All chunks in the order of events: data set, file, row."""
    code = code_digest("analysis.select.events")
    whole = config.definition
    searches = {PRESELECTION: whole, **config.region_searches}
    # of a region it is counted too what it shares with the search
    identities = {n: [whole.identity, s.identity][s is whole :] for n, s in searches.items()}
    chunks = []
    for ds in datasets:
        beams, missing = config.beams_of(ds.sample), config.missing_of(ds.sample)
        rules = digest(asdict(beams), missing, config.candidates, code)
        for index, report in enumerate(reports[ds.name]):
            # with the index, so that a file listed twice is counted twice (and found out)
            content = (index, report.fingerprint)
            for start in range(0, report.n_entries, chunk_size):
                stop = min(start + chunk_size, report.n_entries)
                rows = (ds.name, content, report.tree, start, stop)
                shards = {}
                for region, search in searches.items():
                    branches = _branches_of(search, report.branches)
                    name = digest(identities[region], rules, branches, rows)
                    folder = "skim" if region == PRESELECTION else f"regions/{region}/skim"
                    shards[region] = f"{folder}/{ds.sample}/{name}.parquet"
                chunks.append(
                    Chunk(
                        dataset=ds.name,
                        file=report.file,
                        tree=report.tree,
                        start=start,
                        stop=stop,
                        shards=shards,
                        branches=report.branches,
                        file_number=index,
                        missing=missing,
                        beams=beams,
                        fingerprint=report.fingerprint,
                    )
                )
    return chunks


def _branches_of(search: Search, branches: Mapping[str, str]) -> dict[str, str]:
    """Those that this search reads, without what other regions need."""
    wanted = {*search.columns, *DEFAULT_BRANCHES}
    return {column: branch for column, branch in branches.items() if column in wanted}
