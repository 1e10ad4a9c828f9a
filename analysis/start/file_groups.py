"""Files that belong together, by their names: a sample is a group whose names differ in one number.

    signal_0.5.root signal_1.root signal_2.5.root   ->  signal_{mass}.root, masses 0.5, 1, 2.5
    zp_0500_a.root zp_1000_a.root                   ->  zp_{mass_mev:04d}_a.root, masses 0.5, 1
    taupair_0.root taupair_1.root                   ->  taupair_*.root, if these are all it finds

What a sample is, signal, background or data, is told by words in the name; a person looks again.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from analysis.inputs.datasets import filled

Kind = Literal["signal", "background", "data"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?!\d)")
SIGNAL_WORDS = ("signal", "sig", "zprime", "zp", "alp", "darkphoton", "mass")
DATA_WORDS = ("data", "exp", "recorded", "offres", "onres")
FORMATS = ("{mass}", "{mass:.1f}", "{mass:.2f}", "{mass:.3f}")
MEV_FORMATS = ("{mass_mev}", "{mass_mev:04d}", "{mass_mev:05d}")
HIGHEST_GEV = 10.5  # a larger number is in MeV


@dataclass(frozen=True)
class Group:
    """The files of one sample: what to write in the configuration, and the files themselves."""

    name: str
    kind: Kind
    patterns: tuple[str, ...]
    masses_gev: tuple[float, ...]  # of signal; empty if the names do not tell
    files: tuple[str, ...]


def grouped(files: Sequence[str]) -> list[Group]:
    """Every file once, in the order in which the groups appear."""
    stems: dict[tuple[str, str], list[str]] = {}
    for file in dict.fromkeys(files):
        folder, _, name = file.rpartition("/")
        stems.setdefault((folder, _NUMBER.sub("#", name)), []).append(file)
    groups: list[Group] = []
    for (_, shape), members in stems.items():
        kind = _kind(shape)
        pattern, masses = _by_mass(members) if kind == "signal" else (None, ())
        patterns = (pattern,) if pattern else _globbed(members)
        name = _sample_name(shape, {g.name for g in groups})
        groups.append(Group(name, kind, patterns, masses, tuple(members)))
    return groups


def _kind(shape: str) -> Kind:
    words = re.findall(r"[a-z]+", shape.lower())
    if any(word.startswith(SIGNAL_WORDS) for word in words):
        return "signal"
    return "data" if any(word in DATA_WORDS for word in words) else "background"


def _sample_name(shape: str, taken: set[str]) -> str:
    stem = shape.partition(".")[0] if shape.count(".") else shape
    words = re.findall(r"[A-Za-z]+", stem) or ["sample"]
    name = "_".join(words)[:60]
    return next(n for n in (name, *(f"{name}_{i}" for i in range(2, 10_000))) if n not in taken)


def _by_mass(members: list[str]) -> tuple[str | None, tuple[float, ...]]:
    """The pattern that makes exactly these names of their masses; None if there is none."""
    folder, _, first = members[0].rpartition("/")
    names = [member.rpartition("/")[2] for member in members]
    for place in range(len(_NUMBER.findall(first))):
        values = [float(_NUMBER.findall(name)[place]) for name in names]
        in_mev = max(values) > HIGHEST_GEV
        masses = [value / 1000 if in_mev else value for value in values]
        if len(set(masses)) < len(masses) or not 0 < min(masses) <= max(masses) < HIGHEST_GEV:
            continue
        for form in MEV_FORMATS if in_mev else FORMATS:
            found = list(_NUMBER.finditer(first))[place]
            pattern = first[: found.start()] + form + first[found.end() :]
            if [filled(pattern, mass_gev=mass, part=0) for mass in masses] == names:
                return (f"{folder}/{pattern}" if folder else pattern), tuple(sorted(masses))
    return None, ()


def _globbed(members: list[str]) -> tuple[str, ...]:
    """A few files as they are; many as a pattern, if it finds these and no others."""
    as_they_are = tuple(glob.escape(member) for member in members)
    if len(members) < 3:
        return as_they_are
    folder, _, first = members[0].rpartition("/")
    pattern = _NUMBER.sub("*", first)
    here = Path(folder or ".")
    if {str(path) for path in here.glob(pattern)} == {str(Path(member)) for member in members}:
        return (f"{folder}/{pattern}" if folder else pattern,)
    return as_they_are
