"""What happens to a chunk of an ntuple: read, select, fill, write.

The processor is frozen and holds only plain values, so that coffea can send it anywhere. What is
special to a chunk, its branches, beams and the name of its shard, comes with the chunk: files of
one data set need not have the same branches. It returns histograms and counts under the name of the
shard it wrote, never events.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import awkward as ak
from coffea.nanoevents import BaseSchema
from coffea.processor import ProcessorABC

from analysis.inputs.columns import Columns, read_columns, with_event_numbers
from analysis.select.events import ChunkCounts, selected_events
from analysis.select.histograms import skim_histograms
from analysis.select.skim import write_shard
from selection.beams import Beams
from selection.preselection import CandidatePolicy, Preselection


class NtupleSchema(BaseSchema):
    """Flat columns as they are: coffea's default is the NanoAOD schema of another experiment."""


@dataclass(frozen=True)
class SelectEvents(ProcessorABC):
    """Selection of one chunk."""

    skim: str
    preselection: Preselection
    candidates: CandidatePolicy

    def process(self, events: ak.Array) -> dict[str, dict[str, Any]]:
        # coffea's events refer to themselves, so only the collector frees those of earlier chunks,
        # and it waits for a number of objects, whatever their size: 5 GB for 50 M events
        gc.collect()
        chunk = events.metadata["chunk"]
        shard: str = chunk["shard"]
        try:
            selected, counts = self._selected(events, chunk)
            histograms = skim_histograms(selected)
            try:
                write_shard(Path(self.skim) / shard, selected, asdict(counts))
            except OSError as error:  # coffea would take a full disk for a bad input file
                return {shard: {"unwritten": _first_line(error)}}
        except Exception as error:  # one bad chunk must be named, not end the others
            return {shard: {"error": _first_line(error)}}
        return {shard: {"histograms": histograms, "counts": counts}}

    def _selected(self, events: ak.Array, chunk: Mapping[str, Any]) -> tuple[Columns, ChunkCounts]:
        columns = read_columns(
            lambda name: ak.to_numpy(events[name]), chunk["branches"], missing=chunk["missing"]
        )
        return selected_events(
            with_event_numbers(columns, file_number=chunk["file_number"], start=chunk["start"]),
            chunk["dataset"],
            beams=Beams(**chunk["beams"]),
            preselection=self.preselection,
            candidates=self.candidates,
        )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
