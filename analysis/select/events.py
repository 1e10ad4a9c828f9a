"""What is selected of some rows of an ntuple: columns in, columns of the skim and counts out.

    columns -> axis, features and cuts -> rows that pass, cutflow, look at all rows
                       cuts of a region -> the same for the region

All that decides the content of a shard is here and in what this module imports; the name of a
shard carries the hash of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns
from analysis.inputs.rows import GIVEN, RowCounts, given_numbers, row_conditions
from analysis.select.look import look_by_flags
from analysis.select.skim import OF_CUT
from selection.beams import Beams
from selection.expressions import compared
from selection.kernel import Further, event_quantities, row_count, values_of
from selection.keys import event_keys
from selection.ntuple import KEY_COLUMNS
from selection.preselection import (
    PRESELECTION,
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
    overlap: int = 0  # rows of a region that are in the search region too

    def __add__(self, other: ChunkCounts) -> ChunkCounts:
        flow = self.flow + other.flow
        names = {*self.emptied, *other.emptied}
        spans = {n: [e[n] for e in (self.emptied, other.emptied) if n in e] for n in names}
        emptied = {n: (min(s[0] for s in f), max(s[1] for s in f)) for n, f in spans.items()}
        return ChunkCounts(flow, self.look + other.look, emptied, self.overlap + other.overlap)

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> ChunkCounts:
        """What `asdict` and JSON made of it."""
        flow = Cutflow(**{name: tuple(values) for name, values in stored["flow"].items()})
        look = dict(stored["look"])
        look["extremes"] = {name: tuple(span) for name, span in look["extremes"].items()}
        emptied = {name: tuple(span) for name, span in stored["emptied"].items()}
        return cls(flow, RowCounts(**look), emptied, stored["overlap"])


Selected = tuple[Columns, ChunkCounts]
Rows = npt.NDArray[np.intp]  # their numbers


def joined(parts: Sequence[Selected]) -> Selected:
    """Of all rows, from what is selected of some of them after the others."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([found[name] for found, _ in parts]) for name in parts[0][0]}
    counts = reduce(add, (counted for _, counted in parts))
    steps = zip(counts.flow.names[1:], counts.flow.raw, counts.flow.raw[1:], strict=False)
    whole = {name for name, before, after in steps if before and not after}
    emptied = {name: span for name, span in counts.emptied.items() if name in whole}
    return columns, replace(counts, emptied=emptied)


def selected_events(
    columns: Columns,
    dataset: str,
    *,
    searches: Mapping[str, Search],
    beams: Beams,
    candidates: CandidatePolicy,
    identities: Callable[[Rows], npt.NDArray[np.uint32]],
) -> dict[str, Selected]:
    """Region -> columns of the skim for the rows that pass, and what was counted on the way.

    searches: that of the search region and those of the other regions that are wanted;
    identities: of rows by their numbers.
    """
    whole = searches[PRESELECTION]
    n = row_count(columns)
    weight = columns.get("weight", np.ones(n))
    wrong = int(np.count_nonzero(~np.isfinite(weight)))
    if wrong:
        msg = f"the weight of {wrong} rows is not a finite number"
        raise ValueError(msg)
    regions = {name: s for name, s in searches.items() if name != PRESELECTION}
    beside = tuple(dict.fromkeys(t for s in searches.values() for t in s.cut_variables.values()))
    conditions = tuple(row_conditions(columns, whole).values())
    further = Further(tuple(regions.values()), beside, conditions, GIVEN)
    found = event_quantities(whole, columns, beams, further=further, given=given_numbers(beams))
    kept = candidate_mask(columns, candidates, n)
    looked_at = dict(zip(beside, found.beside, strict=True))
    stored = {
        "axis": found.axis,
        **dict(zip(whole.feature_names, found.features, strict=True)),
    }

    def chosen(search: Search, code: Codes) -> Columns:
        of_cuts = {f"{OF_CUT}{cut}": looked_at[t] for cut, t in search.cut_variables.items()}
        rows = np.flatnonzero(passing(code, len(search.cuts)))  # a third of the time of a mask
        taken = skim_columns(dataset, columns, stored | of_cuts, rows)
        return taken | {"identity": identities(rows)}

    code = with_candidates(found.code, kept)
    flow = cutflow(code, tuple(whole.cuts), columns.get("weight", 1.0))
    emptied = _emptied(columns, beams, whole, code, flow) if 0 in flow.raw[1:] and n else {}
    counts = ChunkCounts(flow, look_by_flags(columns, beams, whole, found.flags), emptied)
    made = {PRESELECTION: (chosen(whole, code), counts)}
    inside = passing(code, len(whole.cuts))
    for (name, search), region_code in zip(regions.items(), found.region_codes, strict=True):
        code = with_candidates(region_code, kept)
        flow = cutflow(code, tuple(search.cuts), columns.get("weight", 1.0))
        both = int(np.count_nonzero(inside & passing(code, len(search.cuts))))
        made[name] = (chosen(search, code), ChunkCounts(flow, RowCounts(), {}, both))
    return made


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
    computed: Mapping[str, npt.NDArray[Any]],
    rows: Rows,
) -> Columns:
    """The columns of the skim for some rows; computed: what the ntuple does not have."""
    n = len(rows)
    none = np.zeros(n, np.int64)
    weight = columns["weight"].take(rows) if "weight" in columns else np.ones(n)
    keys = {k: columns[k].take(rows).astype(np.int64) for k in KEY_COLUMNS if k in columns}
    return {
        **{name: values.take(rows) for name, values in computed.items()},
        "weight": weight.astype(np.float64, copy=False),
        "key": event_keys(dataset, keys, n),
        **{name: keys.get(name, none) for name in KEY_COLUMNS},
    }
