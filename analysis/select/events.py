"""What is selected of some rows of an ntuple: columns in, columns of the skim and counts out.

    columns -> recoil and features -> preselection -> rows that pass, cutflow, look at all rows

All that decides the content of a shard is here and in what this module imports; the name of a
shard carries the hash of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns
from analysis.inputs.rows import RowCounts, look_at
from selection.beams import Beams
from selection.features import EventKinematics, event_kinematics
from selection.keys import event_keys
from selection.ntuple import KEY_COLUMNS
from selection.preselection import (
    CandidatePolicy,
    Cutflow,
    Preselection,
    candidate_mask,
    cut_values,
    cutflow,
    named_cuts,
)
from selection.table import FEATURES, BoolArray, FloatArray


@dataclass(frozen=True)
class ChunkCounts:
    """What was counted in a chunk; of several chunks it adds up."""

    flow: Cutflow
    look: RowCounts
    emptied: Mapping[str, tuple[float, float]]  # cut that left nothing -> span of its values

    def __add__(self, other: ChunkCounts) -> ChunkCounts:
        flow = self.flow + other.flow
        names = {*self.emptied, *other.emptied}
        spans = {n: [e[n] for e in (self.emptied, other.emptied) if n in e] for n in names}
        emptied = {n: (min(s[0] for s in f), max(s[1] for s in f)) for n, f in spans.items()}
        return ChunkCounts(flow, self.look + other.look, emptied)

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> ChunkCounts:
        """What `asdict` and JSON made of it."""
        flow = Cutflow(**{name: tuple(values) for name, values in stored["flow"].items()})
        look = dict(stored["look"])
        look["extremes"] = {name: tuple(span) for name, span in look["extremes"].items()}
        emptied = {name: tuple(span) for name, span in stored["emptied"].items()}
        return cls(flow, RowCounts(**look), emptied)


def selected_events(
    columns: Columns,
    dataset: str,
    *,
    beams: Beams,
    preselection: Preselection,
    candidates: CandidatePolicy,
) -> tuple[Columns, ChunkCounts]:
    """Columns of the skim for the rows that pass, and what was counted on the way."""
    n = len(columns["mu_plus_px"])
    kinematics = event_kinematics(columns, beams)
    masks = named_cuts(preselection, columns, kinematics)
    valid = {"valid": masks.pop("valid")}
    candidate = {"candidate": candidate_mask(columns, candidates, n)}
    weight = columns.get("weight", np.ones(n))
    wrong = int(np.count_nonzero(~np.isfinite(weight)))
    if wrong:
        msg = f"the weight of {wrong} rows is not a finite number"
        raise ValueError(msg)
    passing, flow = cutflow(valid | candidate | masks, columns.get("weight", 1.0), n)
    emptied = {}
    if 0 in flow.raw[1:] and n:
        emptied = _emptied(valid | candidate | masks, flow, cut_values(columns, kinematics))
    counts = ChunkCounts(flow, look_at(columns, beams), emptied)
    return skim_columns(dataset, columns, kinematics, passing), counts


def _emptied(
    masks: Mapping[str, BoolArray], flow: Cutflow, values: Mapping[str, FloatArray]
) -> dict[str, tuple[float, float]]:
    """Cut that leaves nothing -> least and largest value of what it was given."""
    passing = np.ones(len(next(iter(masks.values()))), bool)
    for before, after, (name, mask) in zip(flow.raw, flow.raw[1:], masks.items(), strict=False):
        if before and not after and name in values:
            found = values[name][passing]
            found = found[np.isfinite(found)]
            return {name: (float(found.min()), float(found.max()))} if len(found) else {}
        passing &= mask
    return {}


def skim_columns(
    dataset: str,
    columns: Mapping[str, npt.NDArray[np.generic]],
    kinematics: EventKinematics,
    passing: npt.NDArray[np.bool_],
) -> Columns:
    """The columns of the skim for the rows that pass."""
    n = int(np.count_nonzero(passing))
    none = np.zeros(n, np.int64)
    keys = {k: columns[k][passing].astype(np.int64) for k in KEY_COLUMNS if k in columns}
    return {
        "recoil_mass2_gev2": kinematics.recoil_mass2_gev2[passing],
        **{name: kinematics.features[i][passing] for i, name in enumerate(FEATURES)},
        "weight": columns["weight"][passing].astype(np.float64)
        if "weight" in columns
        else np.ones(n),
        "key": event_keys(dataset, keys, n),
        **{name: keys.get(name, none) for name in KEY_COLUMNS},
    }
