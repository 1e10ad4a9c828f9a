"""What happens to a chunk of an ntuple: read, select, fill, write.

The processor is frozen and holds only plain values, so that coffea can send it anywhere. What is
special to a chunk, its branches and the name of its shard, comes with the chunk: files of one data
set need not have the same branches. It returns histograms and counts under the name of the shard it
wrote, never events.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import awkward as ak
from coffea.nanoevents import BaseSchema
from coffea.processor import ProcessorABC

from analysis.inputs.columns import read_columns
from analysis.select.events import selected_events
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
    beams: Beams
    preselection: Preselection
    candidates: CandidatePolicy

    def process(self, events: ak.Array) -> dict[str, dict[str, Any]]:
        # coffea's events refer to themselves, so only the collector frees those of earlier chunks,
        # and it waits for a number of objects, whatever their size: 5 GB for 50 M events
        gc.collect()
        about = events.metadata
        shard: str = about["shard"]
        try:
            columns = read_columns(lambda name: ak.to_numpy(events[name]), about["branches"])
            selected, flow = selected_events(
                columns,
                about["dataset"],
                beams=self.beams,
                preselection=self.preselection,
                candidates=self.candidates,
            )
            histograms = skim_histograms(selected)
            try:
                write_shard(Path(self.skim) / shard, selected, flow)
            except OSError as error:  # coffea would take a full disk for a bad input file
                return {shard: {"unwritten": _first_line(error)}}
        except Exception as error:  # one bad chunk must be named, not end the others
            return {shard: {"error": _first_line(error)}}
        return {shard: {"histograms": histograms, "cutflow": flow}}


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
