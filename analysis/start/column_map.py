"""Which branch is which column of a search: by names, and by charges where a file has them.

A particle needs an object that has its momentum. Of all ways to give each particle an object of
its own, the one with the most points is proposed:

    same charge  +4      other charge  never      charge of one unknown  0
    same kind    +2      other kind    -2
    right order  +0.1    the first object for the first particle
    similar name up to 1 (difflib)      no energy  -1

Other columns are known by words that Belle II uses (`WORDS`), else by a very similar name.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from analysis.start.branch_names import (
    Family,
    Words,
    charge_of,
    families,
    is_lab_measurement,
    words_of,
)
from selection.ntuple import (
    CANDIDATES_COLUMN,
    DEFAULT_BRANCHES,
    KEY_COLUMNS,
    WEIGHT_BRANCH,
    find_branch,
)
from selection.search import Search

MOST_OBJECTS = 8  # compared with the particles
SIMILAR = 0.85  # of two names, from 0 to 1

# words in the name of a branch, the most telling first; all words of one entry must be there
WORDS: Mapping[str, tuple[Words, ...]] = {
    "id": (("muon", "id"), ("mu", "id"), ("pid",), ("id",)),
    "extra_energy": (
        *(("neextra",), ("eextra",), ("extra", "energy"), ("e", "extra"), ("extra", "e")),
    ),
    "photon_recoil_angle": (("angle", "closest"), ("photon", "recoil", "angle")),
}
NAMES: Mapping[str, frozenset[str]] = {  # whole names, without case and underscores
    "experiment": frozenset({"experiment", "exp", "expno", "expnum"}),
    "run": frozenset({"run", "runno", "runnum", "runnumber", "irun"}),
    "event": frozenset({"event", "evt", "evtno", "evtnum", "eventnumber", "eventno", "ievt"}),
    "production": frozenset({"production", "prodid", "productionid"}),
    "candidate": frozenset({"candidate", "cand", "icand", "candidatenumber"}),
    CANDIDATES_COLUMN: frozenset({"ncandidates", "ncand", "ncands", "numcand"}),
    "beam_px": frozenset({"beampx"}),
    "beam_py": frozenset({"beampy"}),
    "beam_pz": frozenset({"beampz"}),
    "beam_e": frozenset({"beame", "beamenergy"}),
    "ecms": frozenset({"ecms", "sqrts"}),
    "weight": frozenset({"weight", "evtweight", "eventweight", "lumiweight"}),
}


@dataclass(frozen=True)
class ColumnMap:
    """A proposal: our column -> branch where they differ, and what a person must look at."""

    columns: Mapping[str, str]
    why: Mapping[str, str]  # particle -> what its branches were chosen by
    present: frozenset[str]  # our columns that the file has, under whatever name
    missing: tuple[str, ...]  # columns of the search that no branch was found for
    weight: str | None  # branch that may be a weight per event


def propose(
    search: Search, branches: Collection[str], charges: Mapping[Words, int | None]
) -> ColumnMap:
    """branches: of numbers only; charges: of objects whose charge is the same in all rows."""
    found: dict[str, str] = {}
    wanted = _particle_columns(search)
    objects, why = _objects(search, branches, charges)
    for particle, columns in wanted.items():
        for quantity, column in columns.items():
            own = find_branch(column, branches)
            chosen = objects.get(particle)
            if own is not None:
                found[column] = own
            elif chosen is not None and quantity in chosen.branches:
                found[column] = chosen.branches[quantity]
    momenta = {column for columns in wanted.values() for column in columns.values()}
    for column in search.columns:
        if column not in momenta:
            branch = find_branch(column, branches) or _by_words(column, search, branches, objects)
            found |= {} if branch is None else {column: branch}
    for column in (*KEY_COLUMNS, CANDIDATES_COLUMN, *BEAMS):
        branch = find_branch(DEFAULT_BRANCHES[column], branches) or _by_name(column, branches)
        found |= {} if branch is None else {column: branch}
    usual = {**{name: name for name in search.columns}, **DEFAULT_BRANCHES}
    return ColumnMap(
        columns={c: b for c, b in found.items() if find_branch(usual[c], branches) != b},
        why={particle: text for particle, text in why.items() if particle in objects},
        present=frozenset(found),
        missing=tuple(column for column in search.columns if column not in found),
        weight=_by_name("weight", [b for b in branches if b != WEIGHT_BRANCH]),
    )


BEAMS = ("beam_px", "beam_py", "beam_pz", "beam_e", "ecms")


def _particle_columns(search: Search) -> dict[str, dict[str, str]]:
    """Particle -> quantity -> column; what the search gives as a number needs none."""
    return {
        name: {quantity: c for quantity, c in how.items() if isinstance(c, str)}
        for name, how in search.particles.items()
    }


def _objects(
    search: Search, branches: Collection[str], charges: Mapping[Words, int | None]
) -> tuple[dict[str, Family], dict[str, str]]:
    """The object of each particle, and what it was chosen by; empty if there are too few."""
    wanted = _particle_columns(search)
    needed = set().union(*(set(columns) for columns in wanted.values())) - {"e"}
    complete = [f for f in families(branches) if needed <= set(f.branches)]
    complete = sorted(complete, key=lambda f: -_best(f, list(wanted)))[:MOST_OBJECTS]
    if len(complete) < len(wanted):
        return {}, {}
    in_order = sorted(complete, key=lambda f: (f.number is None, f.number or 0, f.words))
    best: tuple[float, tuple[Family, ...]] = (-1e9, ())
    for chosen in itertools.permutations(in_order, len(wanted)):
        points = sum(
            _points(particle, family, _charge(family, charges))
            for particle, family in zip(wanted, chosen, strict=True)
        )
        ordered = [in_order.index(family) for family in chosen]
        points += 0.1 * sum(a < b for a, b in itertools.pairwise(ordered))
        best = max(best, (points, chosen), key=lambda found: found[0])
    if best[0] < -100:  # only with a wrong charge
        return {}, {}
    pairs = dict(zip(wanted, best[1], strict=True))
    return pairs, {p: _reason(p, f, _charge(f, charges)) for p, f in pairs.items()}


def _best(family: Family, particles: Sequence[str]) -> float:
    return max(_points(particle, family, family.charge) for particle in particles)


def _charge(family: Family, charges: Mapping[Words, int | None]) -> int | None:
    """Of the rows of the file, else of the name."""
    found = charges.get(family.words)
    return family.charge if found is None else found


def _points(particle: str, family: Family, charge: int | None) -> float:
    words = words_of(particle)
    own = Family(words, {})
    wanted = charge_of(words)
    points = -1.0 if "e" not in family.branches else 0.0
    points += difflib.SequenceMatcher(None, " ".join(words), " ".join(family.words)).ratio()
    if wanted is not None and charge is not None:
        points += 4 if wanted == charge else -1000
    if own.kind is not None and family.kind is not None:
        points += 2 if own.kind == family.kind else -2
    return points


def _reason(particle: str, family: Family, charge: int | None) -> str:
    if charge is not None and charge == charge_of(words_of(particle)):
        return "by charge"
    if family.words == words_of(particle):
        return "by name"
    return "by order; which is which is a guess"


def _by_words(
    column: str, search: Search, branches: Collection[str], objects: Mapping[str, Family]
) -> str | None:
    """A column of a particle, `mu_plus_id`, among the branches of its object; else by its words."""
    candidates = {b: words_of(b) for b in branches}
    candidates = {b: words for b, words in candidates.items() if is_lab_measurement(words)}
    own, quantity = words_of(column), column
    for particle in search.particles:
        words = words_of(particle)
        if own[: len(words)] == words and len(own) > len(words):
            if particle not in objects:
                return None
            quantity, mine = "_".join(own[len(words) :]), objects[particle].words
            left = {b: _without(words_, mine) for b, words_ in candidates.items()}
            candidates = {b: rest for b, rest in left.items() if rest is not None}
    for telling in WORDS.get(quantity, ()):
        found = [b for b, words in candidates.items() if set(telling) <= set(words)]
        if found:
            return min(found, key=lambda b: (len(candidates[b]), b))
    names = {"".join(words): b for b, words in candidates.items()}
    close = difflib.get_close_matches("".join(words_of(quantity)), names, n=1, cutoff=SIMILAR)
    return names[close[0]] if close else None


def _without(words: Words, some: Words) -> Words | None:
    """The words that are left when some are taken away; None if not all of these are there."""
    left = list(words)
    for word in some:
        if word not in left:
            return None
        left.remove(word)
    return tuple(left)


def _by_name(column: str, branches: Collection[str]) -> str | None:
    return next((b for b in branches if b.replace("_", "").casefold() in NAMES[column]), None)
