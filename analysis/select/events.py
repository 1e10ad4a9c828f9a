"""What is selected of some rows of an ntuple: columns in, columns of the skim and counts out.

    columns -> recoil and features -> preselection -> rows that pass, cutflow

All that decides the content of a shard is here and in what this module imports; the name of a
shard carries the hash of it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns
from analysis.select.skim import IDENTITY
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


def selected_events(
    columns: Columns,
    dataset: str,
    *,
    beams: Beams,
    preselection: Preselection,
    candidates: CandidatePolicy,
) -> tuple[Columns, Cutflow]:
    """Columns of the skim for the rows that pass, and what each cut leaves."""
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
    return skim_columns(dataset, columns, kinematics, passing), flow


def skim_columns(
    dataset: str,
    columns: Mapping[str, npt.NDArray[np.generic]],
    kinematics: EventKinematics,
    passing: npt.NDArray[np.bool_],
) -> Columns:
    """The columns of the skim for the rows that pass."""
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
