"""Pseudo-data: events as an experiment would record them, from a generation of their own.

    of each background   L points_per_inv_fb points are tried; a row that stands for w events per
                         fb^-1 is kept with probability w L
    of a signal          N ~ Poisson(sigma L) unweighted events at one mass, if asked for

A try is kept with a probability far below one, whatever its weight: the numbers are Poisson. A row
with w L > 1 would have to be kept more than once. There are enough points for such rows to be rare:
what they lack is computed and must stay below 1e-3 of the rate of their process.

The file holds what is measured and no more: no weights, no truth, no process; events of all kinds
are mixed. The random streams are those of no sample of the simulation, also with the same seed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import uproot

from selection.beams import SUPERKEKB, Beams
from selection.ntuple import DEFAULT_BRANCHES, MOMENTA
from selection.whole_files import replacing
from simulation.detector import Reconstructed
from simulation.recipe import Process, Recipe, SimulationError
from simulation.samples import Grid, Setup, adapted_grid, setup_of, simulate

log = logging.getLogger(__name__)

POINTS_PER_INV_FB: dict[Process, int] = {"taupair": 100_000, "mumugamma": 60_000, "eemumu": 500_000}
LACKING = 1e-3  # of the rate of a process, that rows with w L > 1 may lack
EXPERIMENT = 1  # no number of a simulation


@dataclass(frozen=True)
class PseudoData:
    """All settings of one file of pseudo-data."""

    process: ClassVar[str] = "pseudodata"
    luminosity_inv_fb: float
    seed: int
    signal_mass_gev: float | None = None
    signal_cross_section_fb: float = 0.0
    isr: bool = True
    fsr: bool = True
    beams: Beams = field(default=SUPERKEKB)
    sqrt_s_spread_gev: float = 0.001

    @property
    def n_generated(self) -> int:
        return sum(self.recipe(process).n_generated for process in POINTS_PER_INV_FB)

    def recipe(self, process: Process) -> Recipe:
        """Of the sample of one background that the events are taken from."""
        own = np.random.SeedSequence(self.seed, spawn_key=(0,)).generate_state(1)[0]
        return Recipe(
            process=process,
            n_generated=max(1, round(POINTS_PER_INV_FB[process] * self.luminosity_inv_fb)),
            seed=int(own),
            isr=self.isr,
            fsr=self.fsr,
            beams=self.beams,
            sqrt_s_spread_gev=self.sqrt_s_spread_gev,
        )

    @property
    def setups(self) -> tuple[Setup, ...]:
        """What the grids of its backgrounds depend on."""
        found = (setup_of(self.recipe(process)) for process in POINTS_PER_INV_FB)
        return tuple(setup for setup in found if setup is not None)


@dataclass(frozen=True)
class Recorded:
    """Unweighted events, and the weights that they were taken from."""

    rows: Reconstructed
    heaviest: float  # events that the heaviest row stood for
    lacking: float  # largest share of the rate of a process that is not there


def recorded_events(recipe: PseudoData, grids: Mapping[Setup, Grid] | None = None) -> Recorded:
    """The same every time. grids: those of the backgrounds, if they are known."""
    rng = np.random.default_rng(np.random.SeedSequence(recipe.seed, spawn_key=(1,)))
    parts, heaviest, lacking = [], 0.0, 0.0
    for process in POINTS_PER_INV_FB:
        own = recipe.recipe(process)
        setup = setup_of(own)
        grid = None if setup is None else (grids or {}).get(setup) or adapted_grid(setup)
        rows = simulate(own, grid).rows
        expected = rows.weight * recipe.luminosity_inv_fb
        above = float(np.maximum(expected - 1, 0).sum() / max(expected.sum(), 1e-300))
        if above > LACKING:
            msg = (
                f"pseudo-data of {process}: rows that stand for more than one event lack "
                f"{above:.1e} of its rate (allowed {LACKING:g}); take another seed"
            )
            raise SimulationError(msg)
        heaviest, lacking = max(heaviest, float(expected.max(initial=0))), max(lacking, above)
        parts.append(_chosen(rows, np.flatnonzero(rng.random(len(expected)) < expected)))
    parts += _signal(recipe, rng)
    rows = _joined(parts)
    return Recorded(_chosen(rows, rng.permutation(len(rows))), heaviest, lacking)


def _signal(recipe: PseudoData, rng: np.random.Generator) -> list[Reconstructed]:
    if recipe.signal_mass_gev is None:
        return []
    n = int(rng.poisson(recipe.signal_cross_section_fb * recipe.luminosity_inv_fb))
    own = replace(
        recipe.recipe("taupair"),
        process="signal",
        mass_gev=recipe.signal_mass_gev,
        n_generated=max(n, 1),
    )
    rows = simulate(own).rows  # unweighted: all that were seen are kept
    return [_muons(rows)] if n else []


def _muons(rows: Any) -> Reconstructed:
    if not isinstance(rows, Reconstructed):
        msg = f"pseudo-data are muon pairs; found {type(rows).__name__}"
        raise SimulationError(msg)
    return rows


def _chosen(rows: Any, at: npt.NDArray[np.int64]) -> Reconstructed:
    found = _muons(rows)
    return replace(found, **{f.name: getattr(found, f.name)[at] for f in fields(found)})


def _joined(parts: list[Reconstructed]) -> Reconstructed:
    names = [f.name for f in fields(Reconstructed)]
    whole: dict[str, Any] = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    return replace(parts[0], **whole)


def settings_of(recipe: PseudoData) -> dict[str, Any]:
    """Plain values, as stored in the file."""
    return {"process": recipe.process, **asdict(recipe)}


def pseudodata_from(settings: dict[str, Any]) -> PseudoData:
    """The recipe of stored settings; unknown or missing names are an error of the file."""
    names = {"process", *(f.name for f in fields(PseudoData))}
    if set(settings) != names:
        msg = f"stored settings {sorted(settings)} are not those of this version: {sorted(names)}"
        raise SimulationError(msg)
    rest = {name: value for name, value in settings.items() if name != "process"}
    return PseudoData(**{**rest, "beams": Beams(**settings["beams"])})


def write_events(
    recipe: PseudoData, path: Path, names: tuple[str, str], grids: Mapping[Setup, Grid] | None
) -> Recorded:
    """The file, complete or not at all; names: of the trees of events and of metadata."""
    found = recorded_events(recipe, grids)
    columns = _columns(recipe, found.rows)
    about = {
        "process": recipe.process,
        "luminosity_inv_fb": recipe.luminosity_inv_fb,
        "heaviest_row": found.heaviest,
        "lacking_share": found.lacking,
        "seed": recipe.seed,
        "settings": json.dumps(settings_of(recipe), sort_keys=True),
    }
    types = {k: "string" if isinstance(v, str) else type(v) for k, v in about.items()}
    with replacing(path) as temporary, uproot.recreate(temporary) as file:
        file.mktree(names[0], {k: v.dtype for k, v in columns.items()}).extend(columns)
        file.mktree(names[1], types).extend({name: [value] for name, value in about.items()})
    log.info(
        "%s: %d events at %g fb^-1; heaviest row before unweighting %.3g events, %.1e lacking",
        path.name,
        len(found.rows),
        recipe.luminosity_inv_fb,
        found.heaviest,
        found.lacking,
    )
    return found


def _columns(recipe: PseudoData, rows: Reconstructed) -> dict[str, npt.NDArray[Any]]:
    """Identity, beams and what is measured."""
    n = len(rows)
    momenta = rows.seen.reshape(n, 8).T
    measured = {
        **dict(zip(MOMENTA, momenta, strict=True)),
        "mu_plus_id": np.ones(n),
        "mu_minus_id": np.ones(n),
        "extra_energy": rows.extra_energy,
        "recoil_theta": rows.recoil_theta,
        "photon_recoil_angle": rows.photon_recoil_angle,
    }
    beams = dict(zip(("beam_px", "beam_py", "beam_pz", "beam_e"), recipe.beams.total, strict=True))
    return {
        "__experiment__": np.full(n, EXPERIMENT, np.int32),
        "__run__": np.ones(n, np.int32),
        "__event__": np.arange(n, dtype=np.uint32),
        "__candidate__": np.zeros(n, np.int32),
        "__ncandidates__": np.ones(n, np.int32),
        **{name: values.astype(np.float32) for name, values in measured.items()},
        "Ecms": np.full(n, recipe.beams.sqrt_s_gev),
        **{DEFAULT_BRANCHES[name]: np.full(n, value) for name, value in beams.items()},
    }
