"""A look at rows of an ntuple: what no momentum, energy, angle or weight can be.

    off shell      E^2 - p^2 of a particle more than 0.02 GeV^2 away from its squared mass, where
                   the search states both (mu taken for e or pi lies inside)
    energies       E of a particle above that of both beams, or negative
    forward        visible momentum forward in the centre of mass, p_z > beta_z E: about half of
                   the rows if momenta are those in the lab
    other energy   |sqrt(s) of the row - that of the beams| > 20 MeV, where the row tells
    out of range   a column outside the range that the search states for it
    weights        equal to one, below zero

Only counts and extremes: they add up over chunks, files and machines without rounding, so that
`check` (a few thousand rows) and `select` (all of them) judge by the same numbers. The conditions
are expressions: numpy counts them here, the search's kernel there. NaN is missing, never wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns
from selection.beams import Beams
from selection.kernel import row_count, values_of
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN
from selection.search import Search

Floats = npt.NDArray[np.float64]
Span = tuple[float, float]

BEAM_TOLERANCE_GEV = 0.020  # M_rec2 moves by 2 E_rec times that: half a window
ON_SHELL_GEV2 = 0.02
ROUNDING = 1e-5  # of E^2, for columns of single precision
OFF_SHELL = "off_shell of "  # begins the names of these conditions
GIVEN = ("beam_energy_given", "beam_velocity_given")  # names in the conditions
BLOCK = 16_384  # rows; the temporary arrays of a block stay in the second-level cache


def physical_range(search: Search, column: str, sqrt_s_gev: float) -> Span | None:
    """What a column can be; None for those of which the search states no range."""
    meaning = search.columns_meaning.get(column)
    return None if meaning is None else meaning.span(sqrt_s_gev)


def checked_masses(search: Search) -> dict[str, float]:
    """Particles whose energy and mass are both stated -> mass in GeV."""
    return {
        name: float(how["mass"])
        for name, how in search.particles.items()
        if "e" in how and "mass" in how
    }


@dataclass(frozen=True)
class RowCounts:
    """What a look at some rows found; `+` joins several looks."""

    rows: int = 0
    finite: int = 0  # rows with finite momenta of all particles
    first_candidates: int = 0
    off_shell: Mapping[str, int] = field(default_factory=dict)  # particle -> rows
    energies: int = 0
    forward: int = 0
    energy_told: int = 0  # rows that tell their sqrt(s)
    other_energy: int = 0
    out_of_range: Mapping[str, int] = field(default_factory=dict)  # column -> rows
    extremes: Mapping[str, Span] = field(default_factory=dict)  # column -> of those rows
    weights: int = 0
    weights_of_one: int = 0
    negative_weights: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        joined: dict[str, object] = {}
        for f in fields(self):
            a, b = getattr(self, f.name), getattr(other, f.name)
            if f.name == "extremes":
                joined[f.name] = {k: _wider(a.get(k), b.get(k)) for k in {**a, **b}}
            elif isinstance(a, Mapping):
                joined[f.name] = {k: a.get(k, 0) + b.get(k, 0) for k in {**a, **b}}
            else:
                joined[f.name] = a + b
        return RowCounts(**joined)  # type: ignore[arg-type]


def _wider(a: Span | None, b: Span | None) -> Span:
    spans = [span for span in (a, b) if span is not None]
    return min(s[0] for s in spans), max(s[1] for s in spans)


def look_at(columns: Columns, beams: Beams, search: Search) -> RowCounts:
    """Counts of all rows, block by block."""
    n = row_count(columns)
    found = RowCounts()
    for start in range(0, n, BLOCK):
        part = {name: values[start : start + BLOCK] for name, values in columns.items()}
        found += _look_at_block(part, beams, search)
    return found


def _look_at_block(columns: Columns, beams: Beams, search: Search) -> RowCounts:
    conditions = row_conditions(columns, search)
    given = dict(zip(GIVEN, given_numbers(beams), strict=True))
    holds = values_of(search, columns, beams, list(conditions.values()), given=given)
    counts = {name: int(np.count_nonzero(h)) for name, h in zip(conditions, holds, strict=True)}
    return momentum_counts(counts, row_count(columns)) + other_counts(columns, beams, search)


def row_conditions(columns: Columns, search: Search) -> dict[str, str]:
    """What is counted of the momenta of a row -> its condition, in the words of the search.

    Particles are named by their columns: only those that are there can be looked at.
    """
    names = _particles(columns, search)
    if not names:
        return {}
    energy, velocity = GIVEN
    found = {
        "finite": " and ".join(f"isfinite({n}.mass2)" for n in names),
        "energies": " or ".join(f"{n}.E < 0 or {n}.E > {energy}" for n in names),
        "forward": " + ".join(f"({n}.pz - {velocity} * {n}.E)" for n in names) + " > 0",
    }
    for n, mass in checked_masses(search).items():
        if n in names:
            allowed = f"{ON_SHELL_GEV2!r} + {ROUNDING!r} * {n}.E ** 2"
            found[f"{OFF_SHELL}{n}"] = f"abs({n}.mass2 - {mass**2!r}) > {allowed}"
    return found


def given_numbers(beams: Beams) -> tuple[float, float]:
    """Those of `GIVEN`: of the configured beams, whatever the row says."""
    return float(beams.total[3]), float(beams.total[2] / beams.total[3])


def momentum_counts(counts: Mapping[str, int], n: int) -> RowCounts:
    """counts: rows for which the conditions of `row_conditions` hold, of n."""
    off_shell = {
        name.removeprefix(OFF_SHELL): count
        for name, count in counts.items()
        if name.startswith(OFF_SHELL)
    }
    return RowCounts(
        finite=counts.get("finite", n),
        off_shell=off_shell,
        energies=counts.get("energies", 0),
        forward=counts.get("forward", 0),
    )


def other_counts(columns: Columns, beams: Beams, search: Search) -> RowCounts:
    """All that is counted but of the momenta."""
    n = row_count(columns)
    sqrt_s = event_sqrt_s(columns)
    told = np.isfinite(sqrt_s) if sqrt_s is not None else np.zeros(0, bool)
    apart = np.abs(sqrt_s - beams.sqrt_s_gev) > BEAM_TOLERANCE_GEV if sqrt_s is not None else told
    outside, extremes = _out_of_range(columns, beams.sqrt_s_gev, search)
    weight = columns.get("weight", np.empty(0))
    candidate = columns.get("candidate")
    return RowCounts(
        rows=n,
        first_candidates=n if candidate is None else int(np.count_nonzero(candidate == 0)),
        energy_told=int(np.count_nonzero(told)),
        other_energy=int(np.count_nonzero(told & apart)),
        out_of_range=outside,
        extremes=extremes,
        weights=len(weight),
        weights_of_one=int(np.count_nonzero(weight == 1)),
        negative_weights=int(np.count_nonzero(weight < 0)),
    )


def _particles(columns: Columns, search: Search) -> list[str]:
    """Those whose columns are there."""
    return [
        name
        for name, how in search.particles.items()
        if all(c in columns for c in how.values() if isinstance(c, str))
    ]


def energies_and_masses(
    columns: Columns, beams: Beams, search: Search
) -> list[tuple[str, Floats, Floats, Floats]]:
    """Particle, E, E^2 - p^2 and p_z (GeV), each (n,), of those whose columns are there."""
    names = _particles(columns, search)
    parts = [f"{n}.{x}" for n in names for x in ("E", "mass2", "pz")]
    found = values_of(search, columns, beams, parts)
    return list(zip(names, found[::3], found[1::3], found[2::3], strict=True))


def event_sqrt_s(columns: Columns) -> Floats | None:
    """sqrt(s) of each row in GeV, if the ntuple tells: from its beams, else from `ecms`."""
    if all(name in columns for name in BEAM_COLUMNS):
        px, py, pz, e = (columns[name].astype(np.float64) for name in BEAM_COLUMNS)
        return np.sqrt(np.maximum(e * e - px * px - py * py - pz * pz, 0.0))
    found = columns.get(ECMS_COLUMN)
    return None if found is None else found.astype(np.float64)


def _out_of_range(
    columns: Columns, sqrt_s: float, search: Search
) -> tuple[dict[str, int], dict[str, Span]]:
    counts, extremes = {}, {}
    for name, values in columns.items():
        span = physical_range(search, name, sqrt_s)
        if span is None:
            continue
        low, high = with_slack(span)
        bad = values[(values < low) | (values > high)]
        if len(bad):
            counts[name], extremes[name] = len(bad), (float(bad.min()), float(bad.max()))
    return counts, extremes


def with_slack(span: Span) -> Span:
    """A range that a rounded number does not leave."""
    slack = 1e-3 * (span[1] - span[0])
    return span[0] - slack, span[1] + slack


def axis_values(columns: Columns, beams: Beams, search: Search) -> Floats:
    """The axis (n,) of some rows; a look needs no compiled code."""
    return values_of(search, columns, beams, [search.axis.name])[0]


def likely_cause(columns: Columns, beams: Beams, search: Search) -> str:
    """What most probably went wrong with momenta that are off shell or too large; may be empty."""
    energy = np.concatenate([e for _, e, *_ in energies_and_masses(columns, beams, search)])
    energy = energy[np.isfinite(energy)]
    if energy.size and 1e2 < np.median(energy) < 1e3 * beams.total[3]:
        return "the momenta look like MeV; they must be GeV"
    checked = [search.particles[name] for name in checked_masses(search)]
    for one, other in itertools.combinations(checked, 2):
        for part in ("px", "py", "pz", "e"):
            a, b = str(one[part]), str(other[part])
            swapped = {**columns, a: columns[b], b: columns[a]}
            if _share_off_shell(swapped, beams, search) < 0.01:
                return f"with {a} and {b} exchanged all is right"
    for how in checked:
        for part in ("px", "py", "pz"):
            e, p = str(how["e"]), str(how[part])
            if np.array_equal(columns[e], columns[p]):
                return f"{e} and {p} hold the same numbers"
    return ""


def _share_off_shell(columns: Columns, beams: Beams, search: Search) -> float:
    found = look_at(columns, beams, search)
    return max(found.off_shell.values()) / max(found.rows, 1)


@dataclass(frozen=True)
class Peak:
    """Where rows pile up, and how wide: the length of the shortest interval with 38 % of them."""

    at: float
    sigma: float
    n_rows: int


def peak_of(axis: Floats, *, per_event: float = 1.0, min_rows: int = 100) -> Peak | None:
    """The peak of the axis (n,); None with too few rows. Its tail, radiation, does not move it.

    per_event: candidates of an event, of which one is the right one.
    """
    x = np.sort(axis[np.isfinite(axis)])
    inside = round(0.3829 * len(x) / per_event)  # of a Gaussian within half a sigma of its middle
    if len(x) < min_rows or inside < 2:
        return None
    length = x[inside:] - x[:-inside]
    first = int(np.argmin(length))
    middle = 0.5 * (x[first] + x[first + inside])
    return Peak(float(middle), float(length[first]), len(x))
