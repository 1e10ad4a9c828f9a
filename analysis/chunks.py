"""The plan of a selection: which rows of which file make which shard.

The name of a shard is a hash of all it depends on: content of the file, rows, branches, cuts, beams
and code. A shard that is there is therefore right, whichever run made it, and the plan is the same
for any number of workers. Every chunk is accounted for at the end: planned = done + lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from coffea.processor.executor import WorkItem

from analysis.check import FileReport
from analysis.config import Configuration
from analysis.datasets import Dataset
from analysis.runs import code_digest, digest


@dataclass(frozen=True)
class Chunk:
    """Rows [start, stop) of a file, and the shard that holds what is selected of them."""

    dataset: str
    file: str
    tree: str
    start: int
    stop: int
    shard: str  # relative to the skim folder
    branches: frozenset[str]

    def work_item(self) -> WorkItem:
        return WorkItem(
            self.dataset,
            self.file,
            self.tree,
            self.start,
            self.stop,
            b"",
            usermeta={"shard": self.shard},
            preload=self.branches,
        )


def plan_chunks(
    config: Configuration,
    datasets: Sequence[Dataset],
    reports: Mapping[str, Sequence[FileReport]],
    *,
    chunk_size: int,
) -> list[Chunk]:
    """All chunks in the order of events: data set, file, row."""
    rules = digest(
        asdict(config.settings.preselection),
        asdict(config.beams),
        config.candidates,
        code_digest("selection"),
        *(source_digest(name) for name in ("processors", "skim")),
    )
    chunks = []
    for ds in datasets:
        for index, report in enumerate(reports[ds.name]):
            # with the index, so that a file listed twice is counted twice (and found out)
            content = (index, fingerprint(report))
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
                        branches=frozenset(report.branches.values()),
                    )
                )
    return chunks


def fingerprint(report: FileReport) -> str:
    """Identity of a file's content, without reading it: its head, its tail and its size.

    The tail of a ROOT file holds the directory with the time of every object in it.
    """
    if "://" in report.file:
        return digest(report.uuid, report.n_entries)
    with Path(report.file).open("rb") as stream:
        head = stream.read(1024)
        stream.seek(max(0, report.size_bytes - 65536))
        tail = stream.read()
    return hashlib.blake2b(head + tail, digest_size=16).hexdigest() + f"-{report.size_bytes}"


def source_digest(module: str) -> str:
    """Hash of one module beside this one."""
    text = Path(__file__).with_name(f"{module}.py").read_bytes()
    return hashlib.blake2b(text, digest_size=16).hexdigest()
