"""What happens to a chunk of an ntuple: read, compute, cut, count, fill, write.

    branches -> columns -> recoil and features -> preselection -> shard, histograms, cutflow

The processor is frozen and holds only plain values, so that coffea can send it anywhere. It returns
histograms and counts under the name of the shard it wrote, never events.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import numpy.typing as npt
from coffea.nanoevents import BaseSchema
from coffea.processor import ProcessorABC

from analysis.histograms import Histograms, filled_histograms
from analysis.skim import IDENTITY, write_shard
from selection.beams import Beams
from selection.features import EventKinematics, event_kinematics
from selection.keys import event_keys
from selection.ntuple import KEY_BRANCHES
from selection.preselection import (
    CandidatePolicy,
    Cutflow,
    Preselection,
    candidate_mask,
    cutflow,
    named_cuts,
)
from selection.table import FEATURES

Columns = dict[str, npt.NDArray[Any]]


class NtupleSchema(BaseSchema):
    """Flat columns as they are: coffea's default is the NanoAOD schema of another experiment."""


@dataclass(frozen=True)
class SelectEvents(ProcessorABC):
    """Selection of one chunk; `branches` are those of its data set (our column -> branch)."""

    skim: str
    beams: Beams
    preselection: Preselection
    candidates: CandidatePolicy
    branches: Mapping[str, Mapping[str, str]]  # by data set

    def process(self, events: ak.Array) -> dict[str, dict[str, Any]]:
        # coffea's events refer to themselves, so only the collector frees those of earlier chunks,
        # and it waits for a number of objects, whatever their size: 5 GB for 50 M events
        gc.collect()
        dataset, shard = events.metadata["dataset"], events.metadata["shard"]
        try:
            selected, flow = self._select(read_columns(events, self.branches[dataset]), dataset)
            histograms = shard_histograms(selected)
            try:
                write_shard(Path(self.skim) / shard, selected, flow)
            except OSError as error:  # coffea would take a full disk for a bad input file
                return {shard: {"unwritten": _first_line(error)}}
        except Exception as error:  # one bad chunk must be named, not end the others
            return {shard: {"error": _first_line(error)}}
        return {shard: {"histograms": histograms, "cutflow": flow}}

    def _select(self, columns: Columns, dataset: str) -> tuple[Columns, Cutflow]:
        n = len(columns["mu_plus_px"])
        kinematics = event_kinematics(columns, self.beams)
        masks = named_cuts(self.preselection, columns, kinematics)
        valid = {"valid": masks.pop("valid")}
        candidate = {"candidate": candidate_mask(columns, self.candidates, n)}
        weight = columns.get("weight", np.ones(n))
        wrong = int(np.count_nonzero(~np.isfinite(weight)))
        if wrong:
            msg = f"the weight of {wrong} rows is not a finite number"
            raise ValueError(msg)
        passing, flow = cutflow(valid | candidate | masks, columns.get("weight", 1.0), n)
        return selected_columns(dataset, columns, kinematics, passing), flow


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"


def read_columns(events: ak.Array, branches: Mapping[str, str]) -> Columns:
    """Only the branches that are needed, each once; the others are never read."""
    read = {branch: ak.to_numpy(events[branch]) for branch in sorted(set(branches.values()))}
    return {column: read[branch] for column, branch in branches.items()}


def selected_columns(
    dataset: str,
    columns: Columns,
    kinematics: EventKinematics,
    passing: npt.NDArray[np.bool_],
) -> Columns:
    """The columns of the skim for the events that pass."""
    n = int(np.count_nonzero(passing))
    none = np.zeros(n, np.int64)
    keys = {b: columns[b][passing].astype(np.int64) for b in KEY_BRANCHES if b in columns}
    return {
        "recoil_mass2_gev2": kinematics.recoil_mass2_gev2[passing],
        **{name: kinematics.features[i][passing] for i, name in enumerate(FEATURES)},
        "weight": columns["weight"][passing].astype(np.float64)
        if "weight" in columns
        else np.ones(n),
        "key": event_keys(dataset, keys, n),
        **{name: keys.get(b, none) for name, b in zip(IDENTITY, KEY_BRANCHES, strict=True)},
    }


def shard_histograms(selected: Mapping[str, npt.NDArray[Any]]) -> Histograms:
    """Histograms of the rows of one shard."""
    features = np.stack([selected[name] for name in FEATURES])
    return filled_histograms(selected["recoil_mass2_gev2"], features, selected["weight"])
