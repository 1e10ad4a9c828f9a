"""Samples as a person describes them: signal per mass, background, data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
    with_config,
)

from selection.beams import Beams
from selection.masses import same_mass

with_config(ConfigDict(extra="forbid", allow_inf_nan=False))(Beams)


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MassRange(Strict):
    """Equally spaced masses, both ends included."""

    first: float = Field(gt=0, description="lowest mass, GeV")
    last: float = Field(gt=0, description="highest mass, GeV")
    step: float = Field(gt=0, description="spacing, GeV")

    @model_validator(mode="after")
    def _rising(self) -> MassRange:
        if self.last < self.first:
            msg = f"last={self.last:g} lies below first={self.first:g}"
            raise ValueError(msg)
        if (self.last - self.first) / self.step > 10_000:
            msg = f"more than 10 000 masses from {self.first:g} to {self.last:g} GeV"
            raise ValueError(msg)
        return self

    def values(self) -> tuple[float, ...]:
        count = round((self.last - self.first) / self.step + 1e-6)
        # rounded to 0.1 MeV: 0.1 + 2 * 0.1 must be the mass called 0.3
        return tuple(round(self.first + i * self.step, 4) for i in range(count + 1))


def _mass_form(value: Any) -> str:
    """Which of the two was meant: problems of the other are then not listed."""
    return "range" if isinstance(value, Mapping | MassRange) else "list"


Masses: TypeAlias = Annotated[
    Annotated[MassRange, Tag("range")]
    | Annotated[tuple[float, ...], Field(min_length=1), Tag("list")],
    Discriminator(_mass_form),
]


def mass_values(masses: MassRange | tuple[float, ...]) -> tuple[float, ...]:
    """All masses, rising."""
    return masses.values() if isinstance(masses, MassRange) else tuple(sorted(masses))


Count: TypeAlias = Annotated[int, Field(gt=0)]


def _count_form(value: Any) -> str:
    """One number for all masses, a list in their order, or a mapping by mass."""
    return "mapping" if isinstance(value, Mapping) else "list" if _is_list(value) else "number"


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


Generated: TypeAlias = Annotated[
    Annotated[Count, Tag("number")]
    | Annotated[tuple[Count, ...], Tag("list")]
    | Annotated[dict[float, Count], Tag("mapping")],
    Discriminator(_count_form),
]


SIGNAL_PROCESSES = ("signal", "alp")  # the others are background


class Simulate(Strict):
    """How `punzi simulate` makes the files of this sample."""

    process: Literal["signal", "taupair", "mumugamma", "eemumu", "alp", "threegamma", "pseudodata"]
    seed: int = Field(ge=0, lt=2**31, description="same seed, same events")
    n_generated: int | None = Field(
        None, gt=0, description="points generated over all parts (backgrounds)"
    )
    max_rows: int | None = Field(
        None, gt=0, description="thin the rows to about this many, lightest where few are"
    )
    parts: int = Field(1, gt=0, le=9999, description="number of files; fills {part} in `files`")
    isr: bool = Field(True, description="initial-state radiation")
    fsr: bool = Field(True, description="radiation off the muons of signal and tau decays")
    sqrt_s_spread_gev: float = Field(
        0.001, ge=0, lt=0.1, description="spread of sqrt(s); 0.0053 is SuperKEKB's"
    )
    signal_mass_gev: float | None = Field(
        None, gt=0, description="pseudodata: mass of a signal that is hidden in it"
    )
    signal_cross_section_fb: float = Field(0.0, ge=0, description="pseudodata: its cross section")


class _Sample(Strict):
    files: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="paths, glob patterns or URLs, relative to the configuration file"
    )
    label: str | None = Field(None, description="text for legends; the sample's name if absent")
    tree: str | None = Field(None, description="of this sample, if another than that of the file")
    columns: dict[str, str] = Field(
        default_factory=dict, description="of this sample, on top of those of the file"
    )
    beams: Beams | None = Field(None, description="of this sample, instead of those of the file")
    missing: float | None = Field(
        None, description="number that means missing in this sample, such as -999"
    )
    duplicates: Literal["error", "allow"] = Field("error", description="repeated events")
    simulate: Simulate | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_file_is_a_list_of_one(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and isinstance(data.get("files"), str):
            return {**data, "files": [data["files"]]}
        return data


ScaleFactors: TypeAlias = dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class Signal(_Sample):
    """Signal simulation: files per mass, found by {mass} or {mass_mev} in the pattern."""

    kind: Literal["signal"]
    masses_gev: Masses
    n_generated: Generated | None = Field(
        None,
        description="generated events per mass: a number, a list, a mapping by mass, or absent if "
        "the files record it",
    )
    weight: str | None = Field(
        None, description="branch with a weight per event; its mean over generated events is 1"
    )
    scale_factors: ScaleFactors = Field(
        default_factory=dict, description="named corrections, multiplied into the weight"
    )

    @property
    def masses(self) -> tuple[float, ...]:
        return mass_values(self.masses_gev)

    def n_generated_at(self, mass_gev: float) -> int | None:
        """Generated events of one mass; None where only the files can tell."""
        if isinstance(self.n_generated, dict):
            return next((n for m, n in self.n_generated.items() if same_mass(m, mass_gev)), None)
        if isinstance(self.n_generated, tuple):
            # in the order in which the masses are written
            written = self.masses_gev if isinstance(self.masses_gev, tuple) else self.masses
            return self.n_generated[next(i for i, m in enumerate(written) if m == mass_gev)]
        return self.n_generated


class Background(_Sample):
    """Background simulation, normalised by its luminosity or by a weight per event."""

    kind: Literal["background"]
    luminosity_inv_fb: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="integrated luminosity of the sample, 1/fb"
    )
    weight: str | None = Field(None, description="branch with events per 1/fb")
    uncertainty: float = Field(
        0.0, ge=0, le=1, description="of its normalisation, relative, log-normal; for limits"
    )
    scale_factors: ScaleFactors = Field(
        default_factory=dict, description="named corrections, multiplied into the weight"
    )


class Data(_Sample):
    """Recorded events: no truth, no weights. Simulation beside them is scaled to their size."""

    kind: Literal["data"]
    luminosity_inv_fb: float = Field(gt=0, description="integrated luminosity of the data, 1/fb")


Sample: TypeAlias = Annotated[Signal | Background | Data, Field(discriminator="kind")]
