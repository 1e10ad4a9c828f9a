"""Nothing is lost and nothing is counted twice without a word.

planned rows = selected or rejected rows + lost rows        lost rows: named, refused or corrected
rows of a control region in the search region: none, unless they are wanted
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from analysis.inputs.check import wanted_branches
from analysis.inputs.file_report import inspect_file
from analysis.select.chunks import Chunk
from analysis.select.gathered import Totals
from analysis.select.process import SelectionError

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset

log = logging.getLogger(__name__)


def lost_shares(
    chunks: Sequence[Chunk],
    errors: Mapping[str, str],
    config: Configuration,
    datasets: Sequence[Dataset],
    *,
    allow_lost: bool,
) -> dict[str, float]:
    """Share of rows lost per data set; without `allow_lost` any loss stops the run."""
    gone = lost_chunks(chunks, errors)
    if not gone:
        return {}
    rows = {ds.name: [0, 0] for ds in datasets}
    for chunk in chunks:
        rows[chunk.dataset][0] += chunk.stop - chunk.start
    for chunk in gone:
        rows[chunk.dataset][1] += chunk.stop - chunk.start
    lost = {name: missing / total for name, (total, missing) in rows.items() if missing}
    by_name = {ds.name: ds for ds in datasets}
    details = []
    for chunk in gone[:10]:
        problems = inspect_file(
            chunk.file, wanted_branches(config, by_name[chunk.dataset])
        ).problems
        why = "; ".join(problems) or next(errors[s] for s in chunk.shards.values() if s in errors)
        details.append(f"  {chunk.dataset}: {chunk.file} rows {chunk.start}-{chunk.stop}: {why}")
    text = f"{len(gone)} of {len(chunks)} chunks were lost:\n" + "\n".join(details)
    if not allow_lost or any(share == 1 for share in lost.values()):
        msg = f"{text}\nMend the files and run again, or accept the loss with --allow-lost"
        raise SelectionError(msg)
    log.warning("%s", text)
    for name, share in lost.items():
        log.warning(
            "%s: %.2f %% of the rows are lost; its weights are corrected", name, 100 * share
        )
    return lost


def lost_chunks(chunks: Sequence[Chunk], errors: Mapping[str, str]) -> list[Chunk]:
    """Those of which a shard could not be made: rows are lost in all regions or in none."""
    return [chunk for chunk in chunks if any(s in errors for s in chunk.shards.values())]


def refuse_overlap(config: Configuration, totals: Totals) -> None:
    """Rows of a control region that are in the search region too, unless they are wanted."""
    problems = []
    for name, region in config.regions.items():
        if region.overlap != "error":
            continue
        found = {ds: counts for (r, ds), (_, counts) in totals.items() if r == name}
        rows = {ds: (counts.overlap, counts.flow.raw[-1]) for ds, counts in found.items()}
        worst = max(rows.items(), key=lambda item: item[1][0], default=("", (0, 0)))
        if worst[1][0]:
            both, of = worst[1]
            more = sum(both > 0 for both, _ in rows.values()) - 1
            problems.append(
                f"  regions.{name}: {both} of {of} rows of {worst[0]}"
                + (f", and rows of {more} more data sets" if more else "")
            )
    if problems:
        msg = (
            "a control region overlaps the search region, whose data are blind:\n"
            + "\n".join(problems)
            + "\nChange its cuts so that no event passes both, or say `overlap: allow` there"
        )
        raise SelectionError(msg)
