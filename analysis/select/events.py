"""What is selected of some rows of an ntuple: columns in, columns of the skim and counts out.

    columns -> axis, features and cuts -> rows that pass, cutflow, look at all rows

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
from selection.expressions import compared
from selection.kernel import EventQuantities, event_quantities, row_count, values_of
from selection.keys import event_keys
from selection.ntuple import KEY_COLUMNS
from selection.preselection import (
    CandidatePolicy,
    Codes,
    Cutflow,
    candidate_mask,
    cutflow,
    passing,
    with_candidates,
)
from selection.search import Search


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
    search: Search,
    beams: Beams,
    candidates: CandidatePolicy,
    identity: npt.NDArray[np.uint32],
) -> tuple[Columns, ChunkCounts]:
    """Columns of the skim for the rows that pass, and what was counted on the way."""
    n = row_count(columns)
    found = event_quantities(search, columns, beams)
    code = with_candidates(found.code, candidate_mask(columns, candidates, n))
    weight = columns.get("weight", np.ones(n))
    wrong = int(np.count_nonzero(~np.isfinite(weight)))
    if wrong:
        msg = f"the weight of {wrong} rows is not a finite number"
        raise ValueError(msg)
    flow = cutflow(code, tuple(search.cuts), columns.get("weight", 1.0))
    emptied = _emptied(columns, beams, search, code, flow) if 0 in flow.raw[1:] and n else {}
    counts = ChunkCounts(flow, look_at(columns, beams, search), emptied)
    keep = passing(code, len(search.cuts))
    return skim_columns(dataset, columns, search, found, keep) | {
        "identity": identity[keep]
    }, counts


def _emptied(
    columns: Columns, beams: Beams, search: Search, code: Codes, flow: Cutflow
) -> dict[str, tuple[float, float]]:
    """Cut that leaves nothing -> least and largest value of what it was given."""
    for step, (before, after) in enumerate(zip(flow.raw, flow.raw[1:], strict=False)):
        name = flow.names[step + 1]
        if before and not after and name in search.cuts:
            text = compared(search.parts.cuts[name])
            rows = {c: values[code >= step] for c, values in columns.items()}
            found = values_of(search, rows, beams, [text])[0] if text else np.empty(0)
            found = found[np.isfinite(found)]
            return {name: (float(found.min()), float(found.max()))} if len(found) else {}
    return {}


def skim_columns(
    dataset: str,
    columns: Mapping[str, npt.NDArray[np.generic]],
    search: Search,
    found: EventQuantities,
    keep: npt.NDArray[np.bool_],
) -> Columns:
    """The columns of the skim for the rows that pass."""
    n = int(np.count_nonzero(keep))
    none = np.zeros(n, np.int64)
    keys = {k: columns[k][keep].astype(np.int64) for k in KEY_COLUMNS if k in columns}
    return {
        "axis": found.axis[keep],
        **{name: found.features[i][keep] for i, name in enumerate(search.feature_names)},
        "weight": columns["weight"][keep].astype(np.float64) if "weight" in columns else np.ones(n),
        "key": event_keys(dataset, keys, n),
        **{name: keys.get(name, none) for name in KEY_COLUMNS},
    }
