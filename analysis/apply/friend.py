"""Step 4 of apply, the friend tree: what the model says of every entry, in the same order.

recoil_mass2      the axis, under the name it has in the search; NaN where an input is NaN
pt_thrust ...     the features; NaN where an input is NaN
fold              number of the network that judges the entry, of a model with several folds
score             NaN unless flag == 0: outside the preselection the network knows nothing
score_spread      standard deviation over the networks, for an ensemble only
pass              flag == 0 and score >= cut
first_window      first and last mass window that holds the axis, both included;
last_window       -1 if there is none
flag              0, or the sum of
                    1  axis or a feature is NaN or infinite
                    2  the candidate policy drops the entry
                    4  the preselection drops the entry
                    8  sqrt(s) of the entry is not that of the training
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

from analysis.apply.model import AppliedCut
from analysis.apply.places import PASSING, Tally, judged
from analysis.apply.spectra import places_of
from analysis.inputs.columns import Columns
from analysis.inputs.rows import BEAM_TOLERANCE_GEV, event_sqrt_s
from models.scoring import mean_and_spread
from models.trained import scores_of
from selection.beams import FloatArray
from selection.kernel import FIRST_CUT, INVALID, event_quantities
from selection.keys import event_identities
from selection.preselection import Codes, candidate_mask
from selection.search import Search

INPUT, CANDIDATE, PRESELECTION, BEAMS = (np.uint8(bit) for bit in (1, 2, 4, 8))
TREE = "punzi"


@dataclass(frozen=True)
class Counts:
    """Entries by what became of them; an entry may fail for several reasons."""

    entries: int = 0
    bad_input: int = 0
    candidate: int = 0
    preselection: int = 0
    beams: int = 0
    selected: int = 0  # flag == 0
    passing: int = 0

    def __add__(self, other: Counts) -> Counts:
        names = [f.name for f in fields(self)]
        return Counts(**{n: getattr(self, n) + getattr(other, n) for n in names})


def friend_types(search: Search, n_models: int, n_folds: int) -> dict[str, np.dtype[Any]]:
    """Branch -> type of the friend tree."""
    spread = {"score_spread": np.float32} if n_models > 1 else {}
    fold = {"fold": np.int8} if n_folds > 1 else {}
    kinds = {
        search.axis.name: np.float64,
        **dict.fromkeys(search.feature_names, np.float32),
        **fold,
        "score": np.float32,
        **spread,
        "pass": np.bool_,
        "first_window": np.int16,
        "last_window": np.int16,
        "flag": np.uint8,
    }
    return {name: np.dtype(kind) for name, kind in kinds.items()}


def friend_columns(
    applied: AppliedCut, columns: Mapping[str, FloatArray], *, start: int = 0
) -> tuple[Columns, Tally]:
    """Columns (n,) of the ntuple -> branches (n,) of the friend tree, and the entries by place.

    start: the first entry.
    """
    search = applied.search
    found = event_quantities(search, columns, applied.beams)
    flag = _flags(applied, columns, found.code)
    fold = None
    if applied.n_folds > 1:
        identity = event_identities(columns, len(flag), start=start)
        fold = applied.models[0].fold_of(identity)
    score, *spread = _scores(applied, found.features, flag, fold)
    where = places_of(search, applied.models[0].windows)
    verdict = judged(where, found.axis, flag, score, applied.cut)
    friend = {
        search.axis.name: found.axis,
        **dict(zip(search.feature_names, found.features, strict=True)),
        **({} if fold is None else {"fold": fold}),
        "score": score,
        **dict(zip(("score_spread",), spread, strict=False)),
        "pass": verdict.passing,
        "first_window": verdict.first_window,
        "last_window": verdict.last_window,
        "flag": flag,
    }
    return friend, verdict.tally


def in_root_order(friend: Columns) -> Columns:
    """The same branches with the bytes turned as ROOT wants them, in place.

    Done here by the workers, and not once more by the one writer.
    """
    for values in friend.values():
        if values.itemsize > 1:
            _turn(values.view(f"u{values.itemsize}"))
    return {name: values.view(values.dtype.newbyteorder(">")) for name, values in friend.items()}


@intrinsic
def _turned(_, word):  # type: ignore[no-untyped-def]
    """The processor's own instruction, for many words at once: ten times as fast as numpy."""

    def code(_context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bswap(arguments[0])

    return word(word), code


@nb.njit(nogil=True, cache=True)
def _turn(words):  # type: ignore[no-untyped-def]
    for i in range(len(words)):
        words[i] = _turned(words[i])


def counts(tally: Tally) -> Counts:
    """How many entries have each flag, and how many pass."""
    n = tally.sum(axis=1)
    flags = np.arange(PASSING)
    bad_input, candidate, preselection, beams = (
        int(n[:PASSING][flags & bit > 0].sum()) for bit in (INPUT, CANDIDATE, PRESELECTION, BEAMS)
    )
    return Counts(
        entries=int(n.sum()),
        bad_input=bad_input,
        candidate=candidate,
        preselection=preselection,
        beams=beams,
        selected=int(n[0] + n[PASSING]),
        passing=int(n[PASSING]),
    )


def _flags(
    applied: AppliedCut, columns: Mapping[str, FloatArray], code: Codes
) -> npt.NDArray[np.uint8]:
    kept = candidate_mask(columns, applied.candidates, len(code))
    flag = np.empty(len(code), np.uint8)
    _combine(code, np.uint8(FIRST_CUT + len(applied.search.cuts)), kept, flag)
    sqrt_s = event_sqrt_s(dict(columns))
    if sqrt_s is not None:
        # NaN beams are a bad input already, and no statement about the energy
        flag += (np.abs(sqrt_s - applied.sqrt_s_gev) > BEAM_TOLERANCE_GEV) * BEAMS
    return flag


@nb.njit(nogil=True, cache=True)
def _combine(code, passes, kept, flag):  # type: ignore[no-untyped-def]
    for i in range(len(flag)):
        valid = code[i] != INVALID
        flag[i] = (not valid) * INPUT | (not kept[i]) * CANDIDATE
        flag[i] |= (valid & (code[i] != passes)) * PRESELECTION


def _scores(
    applied: AppliedCut,
    features: FloatArray,
    flag: npt.NDArray[np.uint8],
    fold: npt.NDArray[np.int8] | None,
) -> tuple[npt.NDArray[np.float32], ...]:
    """Mean score (n,) and, for an ensemble, its spread; NaN where an entry is flagged."""
    judged_by = np.empty(len(flag), np.int8)
    _judged_by(flag, judged_by if fold is None else fold, fold is not None, judged_by)
    scores = scores_of(applied.models, features.T, judged_by)
    return (scores[0],) if len(scores) == 1 else mean_and_spread(scores)


@nb.njit(nogil=True, cache=True)
def _judged_by(flag, fold, several, out):  # type: ignore[no-untyped-def]
    """The fold of each entry, -1 of flagged ones."""
    for i in range(len(flag)):
        out[i] = -1 if flag[i] else fold[i] if several else 0
