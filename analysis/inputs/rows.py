"""A look at rows of an ntuple: what no momentum, energy, angle or weight of a muon pair can be.

    off shell      E^2 - p^2 of a muon outside -0.01 .. 0.03 GeV^2 (e, mu and pi lie inside)
    energies       E of a muon above that of both beams, or negative
    other energy   |sqrt(s) of the row - that of the beams| > 20 MeV, where the row tells
    out of range   an angle outside 0 .. pi, an energy outside 0 .. sqrt(s), an ID outside 0 .. 1
    weights        equal to one, below zero

Only counts and extremes: they add up over chunks, files and machines without rounding, so that
`check` (a few thousand rows) and `select` (all of them) judge by the same numbers. NaN is missing
and never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns
from selection.beams import Beams
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN

Floats = npt.NDArray[np.float64]
Span = tuple[float, float]

BEAM_TOLERANCE_GEV = 0.020  # M_rec2 moves by 2 E_rec times that: half a window
ON_SHELL_GEV2 = (-0.01, 0.03)
ROUNDING = 1e-5  # of E^2, for columns of single precision
BLOCK = 16_384  # rows; the temporary arrays of a block stay in the second-level cache
MUONS = ("mu_plus", "mu_minus")


def physical_range(column: str, sqrt_s_gev: float) -> Span | None:
    """What the column of a cut can be; None for columns without such a range."""
    return {
        "mu_plus_id": (0.0, 1.0),
        "mu_minus_id": (0.0, 1.0),
        "extra_energy": (0.0, sqrt_s_gev),
        "photon_recoil_angle": (0.0, math.pi),
    }.get(column)


@dataclass(frozen=True)
class RowCounts:
    """What a look at some rows found; `+` joins several looks."""

    rows: int = 0
    finite: int = 0  # rows with finite momenta
    first_candidates: int = 0
    off_shell: Mapping[str, int] = field(default_factory=dict)  # muon -> rows
    energies: int = 0
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


def look_at(columns: Columns, beams: Beams) -> RowCounts:
    """Counts of all rows, block by block."""
    n = len(columns["mu_plus_px"])
    found = RowCounts()
    for start in range(0, n, BLOCK):
        part = {name: values[start : start + BLOCK] for name, values in columns.items()}
        found += _look_at_block(part, beams)
    return found


def _look_at_block(columns: Columns, beams: Beams) -> RowCounts:
    n = len(columns["mu_plus_px"])
    off_shell, wrong_energy = {}, np.zeros(n, bool)
    finite = np.ones(n, bool)
    for muon in MUONS:
        energy, mass2 = energy_and_mass2(columns, muon)
        finite &= np.isfinite(mass2)
        slack = ROUNDING * energy**2
        low, high = ON_SHELL_GEV2
        off_shell[muon] = int(np.count_nonzero((mass2 < low - slack) | (mass2 > high + slack)))
        wrong_energy |= (energy < 0) | (energy > beams.total[3])
    sqrt_s = event_sqrt_s(columns)
    told = np.isfinite(sqrt_s) if sqrt_s is not None else np.zeros(n, bool)
    apart = np.abs(sqrt_s - beams.sqrt_s_gev) > BEAM_TOLERANCE_GEV if sqrt_s is not None else told
    outside, extremes = _out_of_range(columns, beams.sqrt_s_gev)
    weight = columns.get("weight", np.empty(0))
    candidate = columns.get("candidate")
    return RowCounts(
        rows=n,
        finite=int(np.count_nonzero(finite)),
        first_candidates=n if candidate is None else int(np.count_nonzero(candidate == 0)),
        off_shell=off_shell,
        energies=int(np.count_nonzero(wrong_energy)),
        energy_told=int(np.count_nonzero(told)),
        other_energy=int(np.count_nonzero(told & apart)),
        out_of_range=outside,
        extremes=extremes,
        weights=len(weight),
        weights_of_one=int(np.count_nonzero(weight == 1)),
        negative_weights=int(np.count_nonzero(weight < 0)),
    )


def energy_and_mass2(columns: Columns, muon: str) -> tuple[Floats, Floats]:
    """E [GeV] and E^2 - p^2 [GeV^2] of one muon, each (n,) in float64."""
    px, py, pz, e = (columns[f"{muon}_{c}"].astype(np.float64) for c in ("px", "py", "pz", "e"))
    with np.errstate(invalid="ignore", over="ignore"):
        return e, e * e - px * px - py * py - pz * pz


def event_sqrt_s(columns: Columns) -> Floats | None:
    """sqrt(s) of each row in GeV, if the ntuple tells: from its beams, else from `ecms`."""
    if all(name in columns for name in BEAM_COLUMNS):
        px, py, pz, e = (columns[name].astype(np.float64) for name in BEAM_COLUMNS)
        return np.sqrt(np.maximum(e * e - px * px - py * py - pz * pz, 0.0))
    found = columns.get(ECMS_COLUMN)
    return None if found is None else found.astype(np.float64)


def _out_of_range(columns: Columns, sqrt_s: float) -> tuple[dict[str, int], dict[str, Span]]:
    counts, extremes = {}, {}
    for name, values in columns.items():
        span = physical_range(name, sqrt_s)
        if span is None:
            continue
        slack = 1e-3 * (span[1] - span[0])
        bad = values[(values < span[0] - slack) | (values > span[1] + slack)]
        if len(bad):
            counts[name], extremes[name] = len(bad), (float(bad.min()), float(bad.max()))
    return counts, extremes


def recoil_mass2(columns: Columns, beams: Beams) -> Floats:
    """M_rec2 (n,) by plain arithmetic: a look needs no compiled code."""
    beam = [np.asarray(part) for part in beams.total]
    if all(name in columns for name in BEAM_COLUMNS):
        beam = [columns[name].astype(np.float64) for name in BEAM_COLUMNS]
    px, py, pz, e = (
        beam[i] - sum(columns[f"{muon}_{c}"].astype(np.float64) for muon in MUONS)
        for i, c in enumerate(("px", "py", "pz", "e"))
    )
    return e * e - px * px - py * py - pz * pz


def likely_cause(columns: Columns, beams: Beams) -> str:
    """What most probably went wrong with momenta that are off shell or too large; may be empty."""
    energy = np.concatenate([columns[f"{muon}_e"] for muon in MUONS]).astype(np.float64)
    energy = energy[np.isfinite(energy)]
    if energy.size and 1e2 < np.median(energy) < 1e3 * beams.total[3]:
        return "the momenta look like MeV; they must be GeV"
    for part in ("px", "py", "pz", "e"):
        swapped = dict(columns)
        names = [f"{muon}_{part}" for muon in MUONS]
        swapped[names[0]], swapped[names[1]] = columns[names[1]], columns[names[0]]
        if _share_off_shell(swapped, beams) < 0.01:
            return f"with {names[0]} and {names[1]} exchanged all is right"
    for muon in MUONS:
        for part in ("px", "py", "pz"):
            if np.array_equal(columns[f"{muon}_e"], columns[f"{muon}_{part}"]):
                return f"{muon}_e and {muon}_{part} hold the same numbers"
    return ""


def _share_off_shell(columns: Columns, beams: Beams) -> float:
    found = look_at(columns, beams)
    return max(found.off_shell.values()) / max(found.rows, 1)


@dataclass(frozen=True)
class Peak:
    """Where rows pile up, and how wide: the length of the shortest interval with 38 % of them."""

    at_gev2: float
    sigma_gev2: float
    n_rows: int


def peak_of(mass2_gev2: Floats, *, min_rows: int = 100) -> Peak | None:
    """The peak of M_rec2 (n,); None with too few rows. Its tail, radiation, does not move it."""
    x = np.sort(mass2_gev2[np.isfinite(mass2_gev2)])
    inside = round(0.3829 * len(x))  # of a Gaussian within half a sigma of its middle
    if len(x) < min_rows or inside < 2:
        return None
    length = x[inside:] - x[:-inside]
    first = int(np.argmin(length))
    middle = 0.5 * (x[first] + x[first + inside])
    return Peak(float(middle), float(length[first]), len(x))
