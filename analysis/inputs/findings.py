"""What looks at the inputs found, in words: each mistake with its numbers and what to do.

    look at rows (rows.py), metadata, fingerprints  ->  findings  ->  refused | accepted | warned

A finding that gives wrong physics stops the run unless the configuration accepts it by name.
Whatever was found, accepted or not, is said on the terminal and stands in the report.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysis.config.mistakes import REFUSED
from analysis.inputs.rows import BEAM_TOLERANCE_GEV, Peak, RowCounts, physical_range
from selection.beams import Beams
from selection.masses import same_mass
from selection.search import Search

if TYPE_CHECKING:
    from analysis.config.mistakes import Mistake
    from analysis.inputs.datasets import Dataset
    from analysis.run.folder import RunFolder

FEW_ROWS = 0.01  # share of rows below which an odd value is an accident
MANY_ROWS, BACKWARD = 1000, 0.35  # rows, and their share below which the frame is in doubt
HEAVY = 0.3  # events at the target luminosity that one row may stand for
PEAK_SIGMAS = 1.0  # how far a peak may lie from its mass, in its own width
NARROW, WIDE = 0.5, 2.0  # of the published width
SAME_EVENTS = 10  # rows with equal contents that are no accident


@dataclass(frozen=True)
class Finding:
    """One mistake in one data set."""

    name: Mistake
    dataset: str
    text: str

    @property
    def stops(self) -> bool:
        return self.name in REFUSED


def row_findings(
    dataset: str, found: RowCounts, beams: Beams, search: Search, *, cause: str
) -> Iterator[Finding]:
    """What the rows of one data set cannot be; `cause`: what most probably went wrong."""
    hint = f"; {cause}" if cause else ""
    for particle, rows in found.off_shell.items():
        if rows > FEW_ROWS * found.finite:
            mass = float(search.particles[particle]["mass"])
            yield Finding(
                "off_shell",
                dataset,
                f"E² − p² of {particle} is not the square of its mass, {mass:.4g} GeV, in "
                f"{_share(rows, found.finite)} of the rows{hint or '; check its four columns'}",
            )
    if found.rows - found.finite > FEW_ROWS * found.rows:
        yield Finding(
            "missing_momenta",
            dataset,
            f"{_share(found.rows - found.finite, found.rows)} of the rows have a momentum that is "
            f"no number; they are dropped, and the efficiency is lower by as much",
        )
    if found.energies > FEW_ROWS * found.finite:
        yield Finding(
            "energies",
            dataset,
            f"a particle has more energy than both beams, {beams.total[3]:.4g} GeV, in "
            f"{_share(found.energies, found.finite)} of the rows{hint}",
        )
    beta_z = beams.total[2] / beams.total[3]
    if found.finite >= MANY_ROWS and beta_z > 0.1 and found.forward < BACKWARD * found.finite:
        yield Finding(
            "frame",
            dataset,
            f"only {_share(found.forward, found.finite)} of the rows move forward in the frame of "
            f"the beams, where about half would: are these momenta in the centre of mass? They "
            f"must be those in the lab",
        )
    if found.other_energy > 0.5 * found.energy_told > 0:
        yield Finding(
            "other_energy",
            dataset,
            f"√s of {_share(found.other_energy, found.energy_told)} of the rows is more than "
            f"{1e3 * BEAM_TOLERANCE_GEV:g} MeV away from {beams.sqrt_s_gev:.4f} GeV of the beams; "
            f"correct `beams:` or leave these files out",
        )
    for column, rows in found.out_of_range.items():
        low, high = physical_range(search, column, beams.sqrt_s_gev) or (math.nan, math.nan)
        least, most = found.extremes[column]
        yield Finding(
            "out_of_range",
            dataset,
            f"{column} is outside {low:.3g} to {high:.4g} in {_share(rows, found.rows)} of the "
            f"rows (from {least:g} to {most:g}); "
            f"{_range_cause(search.columns_meaning[column].unit, least, most)}",
        )
    if found.weights and found.weights_of_one == found.weights:
        yield Finding(
            "weights_of_one",
            dataset,
            "every weight is 1: that is no number of events per 1/fb. Give the sample's "
            "luminosity_inv_fb instead of weight, or the branch with events per 1/fb",
        )
    if found.negative_weights:
        yield Finding(
            "negative_weights",
            dataset,
            f"{_share(found.negative_weights, found.weights)} of the weights are negative; B and ε "
            f"can then be negative in a window, and boosted trees leave these rows out",
        )


def _range_cause(unit: str, least: float, most: float) -> str:
    if least == most or (least < -1 and least == round(least)):
        return f"if {least:g} means that it is missing, say `missing: {least:g}`"
    if unit == "rad":
        return "angles must be in rad, these look like degrees"
    if unit.startswith("GeV"):
        return "energies must be in GeV, these look like MeV"
    return "check its branch"


def peak_findings(
    dataset: str, mass_gev: float, peak: Peak | None, search: Search
) -> Iterator[Finding]:
    """Signal must pile up where its mass says, about as wide as it is known to be."""
    if peak is None:
        return
    axis = search.axis
    expected, unit = axis.peak(mass_gev), axis.unit
    width = published_width(search, mass_gev)
    about = "" if width is None else f" and about {width:.2g}"
    if abs(peak.at - expected) > PEAK_SIGMAS * peak.sigma or (width and peak.sigma > 5 * width):
        yield Finding(
            "peak",
            dataset,
            f"peaks at {axis.name} = {peak.at:.4g} {unit} with a width of {peak.sigma:.2g}, where "
            f"{expected:.4g}{about} are expected for {mass_gev:g} GeV; check the mass in the "
            f"file's name, that the momenta are those in the lab, the order and the crossing angle "
            f"of the beams",
        )
    elif width and peak.sigma < NARROW * width:
        yield Finding(
            "narrow_peak",
            dataset,
            f"the peak of {axis.name} is {peak.sigma:.2g} {unit} wide, {width:.2g} is published: "
            f"are these generated instead of measured momenta?",
        )
    elif width and peak.sigma > WIDE * width:
        yield Finding(
            "wide_peak",
            dataset,
            f"the peak of {axis.name} is {peak.sigma:.2g} {unit} wide, {width:.2g} is published",
        )


def published_width(search: Search, mass_gev: float) -> float | None:
    """Width that others found, between the masses they give; None without any."""
    known = search.axis.published
    if known is None:
        return None
    return float(np.interp(mass_gev, known.mass_gev, known.sigma))


def normalisation_findings(ds: Dataset, rows: float) -> Iterator[Finding]:
    """rows: first candidates in all files of the data set."""
    if ds.n_generated is not None and rows > ds.n_generated:
        yield Finding(
            "rows_over_generated",
            ds.name,
            f"{rows:.0f} events, but n_generated is {ds.n_generated}: the efficiency would be "
            f"{rows / ds.n_generated:.0%}. Give the number of generated events of this mass",
        )


def recorded_findings(ds: Dataset, recorded: Sequence[Mapping[str, float]]) -> Iterator[Finding]:
    """A file of ours says which process and mass it holds."""
    masses = {about["mass_gev"] for about in recorded if "mass_gev" in about}
    for mass in sorted(masses, key=str):
        if ds.kind == "signal" and not same_mass(mass, ds.mass_gev):
            what = "background" if math.isnan(mass) else f"signal of {mass:g} GeV"
            yield Finding("another_process", ds.name, f"a file says that it holds {what}")
        elif ds.kind != "signal" and math.isfinite(mass):
            text = f"a file says that it holds signal of {mass:g} GeV"
            yield Finding("another_process", ds.name, text)


def branch_findings(dataset: str, branches: Mapping[str, str]) -> Iterator[Finding]:
    """Two columns of ours in one branch."""
    columns: dict[str, list[str]] = {}
    for column, branch in branches.items():
        columns.setdefault(branch, []).append(column)
    for branch, names in columns.items():
        if len(names) > 1:
            text = f"branch {branch!r} is read for {' and '.join(names)}; name a branch for each"
            yield Finding("one_branch_twice", dataset, text)


def same_file_findings(
    files: Iterable[tuple[str, str, str]], *, allowed: Collection[str] = ()
) -> Iterator[Finding]:
    """(data set, file, fingerprint) of all files: equal contents would be counted twice.

    allowed: data sets in which the same file may stand more than once.
    """
    seen: dict[str, tuple[str, str]] = {}
    for dataset, file, print_ in files:
        if print_ in seen and seen[print_] != (dataset, file):
            other, first = seen[print_]
            if other == dataset and dataset in allowed:
                continue
            where = f"{first} of {other}" if other != dataset else first
            yield Finding("same_file", dataset, f"{file} has the same content as {where}")
        seen.setdefault(print_, (dataset, file))


def same_event_findings(
    contents: Mapping[str, npt.NDArray[np.uint64]],
) -> Iterator[Finding]:
    """Data set -> 64 bits of the content of each event; the same event in two data sets."""
    names = list(contents)
    if len(names) < 2:
        return
    bits = np.concatenate(list(contents.values()))
    ordered = np.sort(bits)  # a third of the price of the order that says whose they are
    if not (ordered[1:] == ordered[:-1]).any():
        return
    order = np.argsort(bits, kind="stable")
    owner = np.repeat(np.arange(len(names)), [len(found) for found in contents.values()])[order]
    again = (ordered[1:] == ordered[:-1]) & (owner[1:] != owner[:-1])
    times = np.bincount(owner[:-1][again] * len(names) + owner[1:][again])
    for pair in np.flatnonzero(times):
        a, b = divmod(int(pair), len(names))
        if times[pair] >= min(SAME_EVENTS, len(contents[names[a]]), len(contents[names[b]])):
            text = f"{times[pair]} selected events are events of {names[a]} too; each counts twice"
            yield Finding("same_events", names[b], text)


def weight_findings(name: str, largest: float) -> Iterator[Finding]:
    """largest: weight of the heaviest selected row of a background, events at the luminosity."""
    if largest > HEAVY:
        yield Finding(
            "heavy_weights",
            name,
            f"one row stands for up to {largest:.3g} events at the target luminosity (at most "
            f"{HEAVY:g} is wanted): few rows decide the background where they pass",
        )


def grouped(findings: Iterable[Finding]) -> list[str]:
    """One line per kind of problem: the numbers of the first data set, the names of the others."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kind = (finding.name, re.sub(r"[\d.e+−-]+", "#", finding.text))
        alike.setdefault(kind, []).append(finding)
    lines = []
    for first, *others in alike.values():
        names = [f.dataset for f in others if f.dataset != first.dataset]
        more = f"; likewise {joined(names)}" if names else ""
        lines.append(f"{first.dataset}: {first.text} [{first.name}]{more}")
    return lines


def joined(datasets: Sequence[str]) -> str:
    """`taupair`, `signal/1, signal/2`, `signal/0.1, signal/0.2, … (45 data sets)`."""
    names = list(dict.fromkeys(datasets))
    if len(names) <= 3:
        return ", ".join(names)
    return f"{', '.join(names[:2])}, … ({len(names)} data sets)"


def load_findings(run: RunFolder) -> list[Finding]:
    """What `select` found and the configuration accepted, or was only told."""
    from analysis.run.folder import read_json

    return [Finding(**found) for found in read_json(run.findings)]


def _share(part: int, whole: int) -> str:
    share = 100 * part / max(whole, 1)
    return f"{share:.0f} %" if share >= 1 else f"{part} ({share:.2g} %)"
