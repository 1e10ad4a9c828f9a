"""Data sets: each sample (and each signal mass) with its files and its normalisation.

A row of a data set counts as

    signal       scale / n_generated    times its weight, if any     efficiency
    background   scale * L_target / L_sample    or    scale * L_target * weight[1/fb]
    data         1

where scale is the product of the sample's named scale factors.
"""

from __future__ import annotations

import glob
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from analysis.config.configuration import ConfigError, Configuration
from analysis.config.conflicts import PLACEHOLDER
from analysis.config.samples import Background, Data, Signal

if TYPE_CHECKING:
    from analysis.inputs.file_report import FileReport

Kind = Literal["signal", "background", "data"]


@dataclass(frozen=True)
class Dataset:
    """Files that are normalised together: a background, data, or one signal mass."""

    sample: str
    kind: Kind
    files: tuple[str, ...]
    constant_weight: float  # of every row, without scale factors; times the weight column if any
    weight_branch: str | None = None
    mass_gev: float = math.nan
    n_generated: int | None = None  # of signal; None until the files have told
    luminosity_inv_fb: float | None = None  # configured, for background and data
    scale_factors: dict[str, float] = field(default_factory=dict)
    duplicates_allowed: bool = False

    def __post_init__(self) -> None:
        weight = self.constant_weight * self.scale
        if not 0 < weight < math.inf:
            msg = (
                f"a row of the sample {self.name} would count as {weight:g} events; correct its "
                f"n_generated, luminosity_inv_fb or scale_factors"
            )
            raise ConfigError(msg)

    @property
    def name(self) -> str:
        """`taupair`, or `signal/0.1` for one mass."""
        return self.sample if math.isnan(self.mass_gev) else f"{self.sample}/{self.mass_gev:g}"

    @property
    def scale(self) -> float:
        return math.prod(self.scale_factors.values())


def datasets(config: Configuration, *, folder: Path) -> tuple[Dataset, ...]:
    """All data sets in the order of the configuration, masses rising; `folder` anchors paths."""
    return tuple(ds for name in config.samples for ds in _of_sample(config, name, folder))


def _of_sample(config: Configuration, name: str, folder: Path) -> Iterator[Dataset]:
    sample = config.samples[name]
    allowed = sample.duplicates == "allow"
    if isinstance(sample, Signal):
        for mass in sample.masses:
            yield Dataset(
                sample=name,
                kind="signal",
                files=matching_files(sample, folder, mass_gev=mass),
                constant_weight=1 / (sample.n_generated_at(mass) or 1),
                weight_branch=sample.weight,
                mass_gev=mass,
                n_generated=sample.n_generated_at(mass),
                scale_factors=sample.scale_factors,
                duplicates_allowed=allowed,
            )
    elif isinstance(sample, Background):
        per_fb = 1 / sample.luminosity_inv_fb if sample.luminosity_inv_fb else 1.0
        yield Dataset(
            sample=name,
            kind="background",
            files=matching_files(sample, folder),
            constant_weight=config.luminosity_inv_fb * per_fb,
            weight_branch=sample.weight,
            luminosity_inv_fb=sample.luminosity_inv_fb,
            scale_factors=sample.scale_factors,
            duplicates_allowed=allowed,
        )
    else:
        files = matching_files(sample, folder)
        yield Dataset(
            name,
            "data",
            files,
            1.0,
            luminosity_inv_fb=sample.luminosity_inv_fb,
            duplicates_allowed=allowed,
        )


def matching_files(
    sample: Signal | Background | Data, folder: Path, *, mass_gev: float | None = None
) -> tuple[str, ...]:
    """Files of a sample (of one mass) in a fixed order, globs expanded; missing ones are kept.

    A glob that matches nothing stays as it is, so that `check` can name it.
    """
    parts = sample.simulate.parts if sample.simulate else 1
    names = [
        filled(pattern, mass_gev=mass_gev, part=part)
        for pattern in sample.files
        for part in (range(parts) if "{part" in pattern else (0,))
    ]
    found: list[str] = []
    for name in names:
        if "://" in name:
            found.append(name)
            continue
        try:
            path = str(folder / Path(name).expanduser())
        except RuntimeError:
            msg = f"the file {name} names a home folder that is not known here; write its full path"
            raise ConfigError(msg) from None
        found += sorted(glob.glob(path, recursive=True)) or [path]  # noqa: PTH207  absolute globs
    repeated = [name for name, times in Counter(found).items() if times > 1]
    if repeated:
        msg = f"the file {repeated[0]} is listed twice in one sample; list it once"
        raise ConfigError(msg)
    return tuple(found)


def filled(pattern: str, *, mass_gev: float | None, part: int) -> str:
    """The pattern with {mass}, {mass_mev} and {part} replaced; nothing else is interpreted.

    A format may follow, {mass:.2f} or {mass_mev:04d}; conflicts.py lets no other through.
    """
    values: dict[str, tuple[float, str]] = {"part": (part, "04d")}
    if mass_gev is not None:
        values |= {"mass": (mass_gev, "g"), "mass_mev": (round(mass_gev * 1000), "d")}

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        number, usual = values[found[1]]
        return format(number, found[2] or usual)

    return PLACEHOLDER.sub(value, pattern)


def with_recorded_sizes(
    datasets: Sequence[Dataset], reports: Mapping[str, Sequence[FileReport]]
) -> tuple[Dataset, ...]:
    """Signal whose n_generated only the files know, with what they say; check has seen that."""
    found = []
    for ds in datasets:
        if ds.kind == "signal" and ds.n_generated is None:
            n = round(math.fsum(r.recorded["n_generated"] for r in reports[ds.name]))
            ds = replace(ds, n_generated=n, constant_weight=1 / n)
        found.append(ds)
    return tuple(found)
