"""What makes a sample: process, size, seed. The same recipe gives the same events.

    random stream = SeedSequence(seed, spawn_key=(process, 1e6 mass or part))

so a file never depends on which worker made it, nor on the other files. A signal file holds one
mass and exactly n_generated unweighted events; a background sample may be split into `parts` files
of n_generated tried points each, whose weights add up to the rate of the sample.

`max_rows` thins the rows of a background file to about that many of nearly equal weight: many tries
and few rows keep the largest weight small. An event of three photons has three rows.

`isr` and `fsr`: radiation off the beams, and off the muons of signal and tau pairs. In mu mu gamma
both come together: without isr there is one photon at tree level.

The spread of sqrt(s) widens M2_rec by 2 E_rec delta, E_rec the energy recoiling. SuperKEKB's
5.3 MeV alone would give 0.093 GeV^2 at 8.6 GeV, more than the published width of the Belle II
simulation there (0.066, all effects): those widths leave room for about 1 MeV, our default.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np

from selection.beams import MUON_MASS_GEV, SUPERKEKB, Beams
from selection.errors import UserError

Process = Literal["signal", "taupair", "mumugamma", "eemumu", "alp", "threegamma"]
PROCESS_CODE: dict[Process, int] = {
    "signal": 1,
    "taupair": 2,
    "mumugamma": 3,
    "eemumu": 4,
    "alp": 5,
    "threegamma": 6,
}
SIGNALS: tuple[Process, ...] = ("signal", "alp")
THREE_PHOTONS: tuple[Process, ...] = ("alp", "threegamma")  # the others are two muons


class SimulationError(UserError):
    """A sample that cannot be made as asked: what was found, where, and what to do."""


@dataclass(frozen=True)
class Recipe:
    """All settings of one file."""

    process: Process
    n_generated: int
    seed: int
    part: int = 0
    parts: int = 1
    mass_gev: float | None = None
    isr: bool = True
    fsr: bool = True
    beams: Beams = field(default=SUPERKEKB)
    sqrt_s_spread_gev: float = 0.001
    max_rows: int | None = None

    def __post_init__(self) -> None:
        if self.process not in get_args(Process):
            msg = f"no process {self.process!r}; known: {', '.join(get_args(Process))}"
            raise SimulationError(msg)
        if self.max_rows is not None and (self.max_rows < 1 or self.process in SIGNALS):
            msg = f"{self.process}: max_rows = {self.max_rows} must be positive, none for signal"
            raise SimulationError(msg)
        if self.n_generated < 1 or self.seed < 0 or not 0 <= self.part < self.parts:
            msg = (
                f"{self.process}: n_generated = {self.n_generated} must be positive, seed = "
                f"{self.seed} not negative, part = {self.part} below parts = {self.parts}"
            )
            raise SimulationError(msg)
        if not 0 <= self.sqrt_s_spread_gev < 0.1:
            msg = f"sqrt_s_spread_gev = {self.sqrt_s_spread_gev} must lie between 0 and 0.1 GeV"
            raise SimulationError(msg)
        if self.process in SIGNALS:
            self._check_mass()
        elif self.mass_gev is not None:
            msg = f"{self.process} has no mass_gev (found {self.mass_gev}); only signal has one"
            raise SimulationError(msg)

    def _check_mass(self) -> None:
        beside = 0.0 if self.process in THREE_PHOTONS else 2 * MUON_MASS_GEV
        limit = self.beams.sqrt_s_gev - beside - 6 * self.sqrt_s_spread_gev
        mass = self.mass_gev
        if mass is None or not isfinite(mass) or not 0 < mass < limit:
            msg = (
                f"{self.process} needs 0 < mass_gev < {limit:.2f} GeV (the threshold), found {mass}"
            )
            raise SimulationError(msg)
        if self.parts != 1:
            msg = f"{self.process} has one file per mass; found parts = {self.parts}, set it to 1"
            raise SimulationError(msg)

    @property
    def stream(self) -> int:
        """The mass in keV for signal, else the part: one random stream each."""
        return self.part if self.mass_gev is None else round(self.mass_gev * 1e6)

    @property
    def run(self) -> int:
        """`__run__` of the ntuple: the mass in MeV for signal, else the part."""
        return self.part if self.mass_gev is None else round(self.mass_gev * 1e3)

    def generator(self) -> np.random.Generator:
        """Random numbers of this file and of no other."""
        key = (PROCESS_CODE[self.process], self.stream)
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def settings(self) -> dict[str, Any]:
        """Plain values, as stored in the file."""
        return asdict(self)


def recipe_from(settings: dict[str, Any]) -> Recipe:
    """The recipe of stored settings; unknown or missing names are an error of the file."""
    names = {f.name for f in fields(Recipe)}
    if set(settings) != names:
        msg = f"stored settings {sorted(settings)} are not those of this version: {sorted(names)}"
        raise SimulationError(msg)
    return Recipe(**{**settings, "beams": Beams(**settings["beams"])})
