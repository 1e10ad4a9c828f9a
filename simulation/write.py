"""Samples as Belle II-style ROOT ntuples.

    TTree `variables`   events that pass the loose preselection
                        two muons (simulation.detector): one row each
                        three photons (simulation.calorimeter): three rows each, candidate c takes
                        the photon of rank c in energy as the recoil, the other two as the pair
    TTree `metadata`    one entry: process, n_generated, cross section, sum of weights, seed, ...
                        and `settings`, the recipe as JSON

`weight` is in events per fb^-1 of the whole sample, N_eff = (sum w)^2 / sum w^2. muonID is 1 for
every row: identification is part of the loose preselection (in the weight for background). Each
row of an event has the weight of the event; sums and N_eff here count events. A file appears under
its name only when it is complete.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import uproot

from selection.ntuple import DEFAULT_BRANCHES, MOMENTA, WEIGHT_BRANCH
from selection.whole_files import replacing
from simulation.alp import G_INV_GEV
from simulation.calorimeter import ThreePhotons
from simulation.detector import FloatArray, Reconstructed
from simulation.pseudodata import PseudoData, pseudodata_from, write_events
from simulation.recipe import PROCESS_CODE, SIGNALS, Recipe, SimulationError, recipe_from
from simulation.samples import ROWS_PER_EVENT, Grid, Sample, Setup, setup_of, simulate
from simulation.signal import G_PRIME

log = logging.getLogger(__name__)

COUPLING = {"signal": G_PRIME, "alp": G_INV_GEV}  # that the cross section of a signal is for
TREE, METADATA = "variables", "metadata"
EXPERIMENT = 1003  # Belle II's number of run-independent simulation
ROWS_PER_BASKET = 500_000

PHOTONS = tuple(f"{r}_{part}" for r in ("hard", "soft", "recoil") for part in ("p", "theta", "phi"))
ROLES = np.array([[1, 2, 0], [0, 2, 1], [0, 1, 2]])  # candidate -> rank of hard, soft, recoil


@dataclass(frozen=True)
class SampleSummary:
    """What a written file holds; N_eff and largest weight of the events after the loose cuts."""

    path: Path
    rows: int
    cross_section_fb: float
    cross_section_error_fb: float
    n_eff: float
    max_weight_inv_fb: float
    sum_of_weights_inv_fb: float


def setups_of(recipe: Recipe | PseudoData) -> tuple[Setup, ...]:
    """What the grids that a file needs depend on; none for a process without a grid."""
    if isinstance(recipe, PseudoData):
        return recipe.setups
    setup = setup_of(recipe)
    return () if setup is None else (setup,)


def write_sample(
    recipe: Recipe | PseudoData, path: Path, grids: Mapping[Setup, Grid] | None = None
) -> SampleSummary:
    """Make the sample and its file; complete or not at all, also when interrupted.

    grids: those of `setups_of(recipe)`, if they are known.
    """
    if isinstance(recipe, PseudoData):
        found = write_events(recipe, path, (TREE, METADATA), grids)
        n = len(found.rows)
        per_fb = 1 / recipe.luminosity_inv_fb
        return SampleSummary(
            path, n, float("nan"), float("nan"), n, found.heaviest * per_fb, n * per_fb
        )
    sample = simulate(recipe, next((grids[s] for s in setups_of(recipe)), None) if grids else None)
    with replacing(path) as temporary:
        _write(recipe, sample, temporary)
    summary = _summary(sample, path)
    log.info(
        "%s: %d rows, %.6g events/fb^-1, N_eff %.0f, largest weight %.3g, sigma %.5g +- %.2g fb",
        path.name,
        summary.rows,
        summary.sum_of_weights_inv_fb,
        summary.n_eff,
        summary.max_weight_inv_fb,
        summary.cross_section_fb,
        summary.cross_section_error_fb,
    )
    return summary


def recorded_recipe(path: Path) -> Recipe | PseudoData:
    """The recipe stored in a file of ours."""
    try:
        with uproot.open(path) as file:
            settings = json.loads(file[METADATA]["settings"].array(library="np")[0])
    except (OSError, KeyError, ValueError, IndexError, uproot.DeserializationError) as error:
        msg = (
            f"{path} is not a complete file of this simulation ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no detail'}); wanted a ROOT file "
            f"with a tree {METADATA!r} that records its settings. Move it away or overwrite it."
        )
        raise SimulationError(msg) from error
    if settings.get("process") == PseudoData.process:
        return pseudodata_from(settings)
    return recipe_from(settings)


def _write(recipe: Recipe, sample: Sample, path: Path) -> None:
    columns = _columns(recipe, sample)
    about = _metadata(recipe, sample)
    with uproot.recreate(path, compression=uproot.ZSTD(3)) as file:
        tree = file.mktree(TREE, {name: values.dtype for name, values in columns.items()})
        for start in range(0, max(len(columns["__event__"]), 1), ROWS_PER_BASKET):
            block = slice(start, start + ROWS_PER_BASKET)
            tree.extend({name: values[block] for name, values in columns.items()})
        types = {k: "string" if isinstance(v, str) else type(v) for k, v in about.items()}
        file.mktree(METADATA, types).extend({name: [value] for name, value in about.items()})


def _columns(recipe: Recipe, sample: Sample) -> dict[str, npt.NDArray[Any]]:
    """Branch name -> column; float32 for what is measured, float64 for beams and weight."""
    rows, per_event = sample.rows, ROWS_PER_EVENT[type(sample.rows)]
    n = per_event * len(rows)
    mass = np.full(n, np.nan if recipe.mass_gev is None else recipe.mass_gev)
    if isinstance(rows, ThreePhotons):
        single = _photon_columns(rows, mass, is_signal=recipe.process in SIGNALS)
    else:
        single = _muon_columns(rows, mass)
    px, py, pz, energy = recipe.beams.total
    double = {
        "Ecms": np.full(n, recipe.beams.sqrt_s_gev),
        DEFAULT_BRANCHES["beam_e"]: np.full(n, energy),
        DEFAULT_BRANCHES["beam_px"]: np.full(n, px),
        DEFAULT_BRANCHES["beam_py"]: np.full(n, py),
        DEFAULT_BRANCHES["beam_pz"]: np.full(n, pz),
        DEFAULT_BRANCHES["weight"]: np.repeat(rows.weight, per_event),
    }
    code = PROCESS_CODE[recipe.process]
    event, candidate = np.divmod(np.arange(n), per_event)
    return {
        "__experiment__": np.full(n, EXPERIMENT, np.int32),
        "__run__": np.full(n, recipe.run, np.int32),
        "__event__": event.astype(np.uint32),
        "__production__": np.full(n, code, np.uint32),
        "__candidate__": candidate.astype(np.int32),
        "__ncandidates__": np.full(n, per_event, np.int32),
        WEIGHT_BRANCH: np.ones(n, np.float32),
        **{name: values.astype(np.float32) for name, values in single.items()},
        **{name: values.astype(np.float64) for name, values in double.items()},
        "process": np.full(n, code, np.int32),
    }


def _muon_columns(rows: Reconstructed, mass: FloatArray) -> dict[str, FloatArray]:
    n = len(rows)
    seen = dict(zip(MOMENTA, rows.seen.reshape(n, 8).T, strict=True))
    true = {f"true_{k}": v for k, v in zip(MOMENTA, rows.true.reshape(n, 8).T, strict=True)}
    return {
        **seen,
        "mu_plus_id": np.ones(n),
        "mu_minus_id": np.ones(n),
        "extra_energy": rows.extra_energy,
        "recoil_theta": rows.recoil_theta,
        "photon_recoil_angle": rows.photon_recoil_angle,
        "generated_mass": mass,
        **true,
    }


def _photon_columns(
    rows: ThreePhotons, mass: FloatArray, *, is_signal: bool
) -> dict[str, FloatArray]:
    """A row for each photon as the recoil; photon 0 of a generated signal event is the true one."""
    by_role = rows.seen[:, ROLES].reshape(-1, len(PHOTONS))
    right = is_signal & (rows.origin == 0)
    return {
        **dict(zip(PHOTONS, by_role.T, strict=True)),
        "generated_mass": mass,
        "is_right_pair": right.ravel().astype(np.float64),
    }


def _metadata(recipe: Recipe, sample: Sample) -> dict[str, Any]:
    return {
        "process": recipe.process,
        "process_code": PROCESS_CODE[recipe.process],
        "n_generated": recipe.n_generated,
        "n_tried": sample.n_tried,
        "cross_section_fb": sample.cross_section_fb,
        "cross_section_error_fb": sample.cross_section_error_fb,
        "coupling": COUPLING.get(recipe.process, float("nan")),
        "sum_of_weights_inv_fb": float(sample.rows.weight.sum()),
        "seed": recipe.seed,
        "sqrt_s_gev": recipe.beams.sqrt_s_gev,
        "mass_gev": float("nan") if recipe.mass_gev is None else recipe.mass_gev,
        "part": recipe.part,
        "parts": recipe.parts,
        "version": version("punzi"),
        "settings": json.dumps(recipe.settings(), sort_keys=True),
    }


def _summary(sample: Sample, path: Path) -> SampleSummary:
    w = sample.rows.weight
    total = float(w.sum())
    return SampleSummary(
        path=path,
        rows=len(w) * ROWS_PER_EVENT[type(sample.rows)],
        cross_section_fb=sample.cross_section_fb,
        cross_section_error_fb=sample.cross_section_error_fb,
        n_eff=total**2 / float((w**2).sum()) if len(w) else 0.0,
        max_weight_inv_fb=float(w.max(initial=0.0)),
        sum_of_weights_inv_fb=total,
    )
