"""The plan of a selection: which rows of which file make which shard.

The name of a shard is a hash of all it depends on: content of the file, rows, branches, cuts, beams
and code. A shard that is there is therefore right, whichever run made it, and the plan is the same
for any number of workers. Every chunk is accounted for at the end: planned = done + lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from analysis.run.code import code_digest
from analysis.run.folder import digest
from selection.beams import Beams

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset
    from analysis.inputs.file_report import FileReport


@dataclass(frozen=True)
class Chunk:
    """Rows [start, stop) of a file, and the shard that holds what is selected of them."""

    dataset: str
    file: str
    tree: str
    start: int
    stop: int
    shard: str  # relative to the skim folder
    branches: Mapping[str, str]  # of this file: our column -> branch
    file_number: int  # in its data set
    missing: float | None  # number that means missing
    beams: Beams
    fingerprint: str  # of the file's content


def plan_chunks(
    config: Configuration,
    datasets: Sequence[Dataset],
    reports: Mapping[str, Sequence[FileReport]],
    *,
    chunk_size: int,
) -> list[Chunk]:
    """All chunks in the order of events: data set, file, row."""
    code = code_digest("analysis.select.events")
    chunks = []
    for ds in datasets:
        beams, missing = config.beams_of(ds.sample), config.missing_of(ds.sample)
        search = config.definition.identity
        rules = digest(search, asdict(beams), missing, config.candidates, code)
        for index, report in enumerate(reports[ds.name]):
            # with the index, so that a file listed twice is counted twice (and found out)
            content = (index, report.fingerprint)
            for start in range(0, report.n_entries, chunk_size):
                stop = min(start + chunk_size, report.n_entries)
                name = digest(rules, ds.name, content, report.tree, report.branches, start, stop)
                chunks.append(
                    Chunk(
                        dataset=ds.name,
                        file=report.file,
                        tree=report.tree,
                        start=start,
                        stop=stop,
                        shard=f"{ds.sample}/{name}.parquet",
                        branches=dict(report.branches),
                        file_number=index,
                        missing=missing,
                        beams=beams,
                        fingerprint=report.fingerprint,
                    )
                )
    return chunks
