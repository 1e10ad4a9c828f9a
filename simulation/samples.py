"""From a recipe to the events of its ntuple: generator, detector, loose preselection.

    signal       a draw is accepted with probability w / w_max until n_generated are accepted;
                 weight = sigma / n_generated                             events per fb^-1
    background   event of stratum k: weight = w / (n_k parts)               events per fb^-1
                 then, below a floor w_0, kept with probability w / w_0 at weight w_0;
                 with max_rows the floor goes as sqrt(d rate / d M_rec2)

w_max is the largest weight of a pilot run, with a margin. What lies above it is counted and must
stay below 1e-3 of the cross section; the weights of the signal are bounded by construction. The
floor removes rows that carry nothing: sums keep their expectation, N_eff per row comes near 1. A
search counts in windows of the recoil mass, where a row may weigh a share of sqrt(B): thinned rows
are light where there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from selection.beams import Beams, cm_matrix
from simulation import eemumu, lost_photons, threegamma
from simulation.alp import alp_draws
from simulation.calorimeter import ThreePhotons, three_photons
from simulation.detector import FloatArray, Reconstructed, reconstruct, smeared_sqrt_s
from simulation.frames import lab_matrix
from simulation.grid import Stratum, adapted_strata
from simulation.recipe import SIGNALS, THREE_PHOTONS, Process, Recipe, SimulationError
from simulation.signal import signal_draws
from simulation.taupair import tau_pairs

BLOCK = 100_000
PILOT = 40_000
MARGIN = 1.15
FLOOR = 0.6  # share of the rate carried by rows that play roulette

STRATA = {
    "eemumu": eemumu.STRATA,
    "mumugamma": lost_photons.STRATA,
    "threegamma": threegamma.STRATA,
}

Rows = Reconstructed | ThreePhotons
ROWS_PER_EVENT = {Reconstructed: 1, ThreePhotons: 3}  # of the ntuple: each photon may be the recoil
Grid = tuple[Stratum, ...]
Draw = Callable[[np.random.Generator, int, FloatArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Setup:
    """What the adapted grid of a process depends on."""

    process: Process
    isr: bool
    beams: Beams
    spread_gev: float


@dataclass(frozen=True)
class Sample:
    """Events that pass the loose preselection, and the cross section of what was generated."""

    rows: Rows
    cross_section_fb: float
    cross_section_error_fb: float
    n_tried: int


def setup_of(recipe: Recipe) -> Setup | None:
    """What its grid depends on; None where there is no grid."""
    if recipe.process not in STRATA:
        return None
    return Setup(recipe.process, recipe.isr, recipe.beams, recipe.sqrt_s_spread_gev)


def simulate(recipe: Recipe, grid: Grid | None = None) -> Sample:
    """The sample of a recipe; the same every time. grid: its `adapted_grid`, if it is known."""
    rng = recipe.generator()
    if recipe.process in SIGNALS:
        return _signal(recipe, rng)
    if recipe.process == "taupair":
        return _tau_pairs(recipe, rng)
    return _stratified(recipe, rng, grid)


def _energies(recipe: Recipe, rng: np.random.Generator, n: int) -> FloatArray:
    return smeared_sqrt_s(rng, n, beams=recipe.beams, spread_gev=recipe.sqrt_s_spread_gev)


def _detector_of(process: Process) -> Callable[..., Rows]:
    return three_photons if process in THREE_PHOTONS else reconstruct


def _signal_draws(
    recipe: Recipe, rng: np.random.Generator, n: int
) -> tuple[FloatArray, FloatArray]:
    mass = recipe.mass_gev or 0.0  # a signal recipe has checked its mass
    energy = _energies(recipe, rng, n)
    if recipe.process == "alp":
        return alp_draws(rng, mass_gev=mass, sqrt_s_gev=energy, isr=recipe.isr)
    events = signal_draws(rng, mass_gev=mass, sqrt_s_gev=energy, isr=recipe.isr, fsr=recipe.fsr)
    return events.momenta, events.weight_fb


def _signal(recipe: Recipe, rng: np.random.Generator) -> Sample:
    pilot = _signal_draws(recipe, rng, PILOT)[1]
    ceiling = MARGIN * pilot.max()
    weights, kept, accepted = [pilot], [], 0
    while accepted < recipe.n_generated:
        missing = recipe.n_generated - accepted
        n = int(min(BLOCK, 1.1 * missing * ceiling / pilot.mean() + 100))
        momenta, w = _signal_draws(recipe, rng, n)
        keep = np.flatnonzero(rng.random(len(w)) * ceiling < w)[:missing]
        accepted += len(keep)
        weights.append(w)
        see = _detector_of(recipe.process)
        one = np.ones(len(keep))
        kept.append(see(rng, momenta[keep], one, beams=recipe.beams, hit_or_miss=True))
    w = np.concatenate(weights)
    above = np.maximum(w - ceiling, 0).sum() / w.sum()
    if above > 1e-3:
        msg = (
            f"{recipe.process} at {recipe.mass_gev} GeV: {above:.1e} of the cross section lies "
            f"above the ceiling of the rejection (allowed 1e-3); raise simulation.samples.PILOT "
            f"or MARGIN"
        )
        raise SimulationError(msg)
    sigma, error = _mean(w)
    rows = _joined(kept)
    rows = replace(rows, weight=np.full(len(rows), sigma / recipe.n_generated))
    return Sample(rows, sigma, error, len(w))


def _tau_pairs(recipe: Recipe, rng: np.random.Generator) -> Sample:
    kept, weights = [], []
    for n in _blocks(recipe.n_generated):
        energy = _energies(recipe, rng, n)
        pairs = tau_pairs(rng, sqrt_s_gev=energy, isr=recipe.isr, fsr=recipe.fsr)
        weight = pairs.weight_fb / (recipe.n_generated * recipe.parts)
        kept.append(
            reconstruct(
                rng, pairs.momenta, weight, beams=recipe.beams, hit_or_miss=False, pion=pairs.pion
            )
        )
        weights.append(pairs.cross_section_fb)
    sigma, error = _mean(np.concatenate(weights))
    return Sample(_roulette(_joined(kept), rng, recipe), sigma, error, recipe.n_generated)


def _draw_of(setup: Setup) -> Draw:
    """The generator of a stratified process, as a function of points in the unit cube."""
    to_cm, to_lab = cm_matrix(setup.beams), lab_matrix(setup.beams)

    def draw(
        rng: np.random.Generator, stratum: int, x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        energy = smeared_sqrt_s(rng, len(x), beams=setup.beams, spread_gev=setup.spread_gev)
        if setup.process == "eemumu":
            return eemumu.eemumu_draws(x, stratum=stratum, sqrt_s_gev=energy, to_lab=to_lab)
        if setup.process == "threegamma":
            return threegamma.threegamma_draws(
                x, stratum=stratum, sqrt_s_gev=energy, isr=setup.isr, to_lab=to_lab
            )
        return lost_photons.lost_photon_draws(
            x, stratum=stratum, sqrt_s_gev=energy, isr=setup.isr, to_cm=to_cm
        )

    return draw


@lru_cache(maxsize=4)  # a pure function of some seconds, the same for all parts of a sample
def adapted_grid(setup: Setup) -> Grid:
    """The grid adapted to what survives the detector."""
    draw, see = _draw_of(setup), _detector_of(setup.process)

    def survivors(rng: np.random.Generator, stratum: int, x: FloatArray) -> FloatArray:
        momenta, weight = draw(rng, stratum, x)
        rows = see(rng, momenta, weight, beams=setup.beams, hit_or_miss=False)
        out = np.zeros(len(x))
        out[rows.entry] = rows.weight
        return out

    return adapted_strata(survivors, STRATA[setup.process])


def _stratified(recipe: Recipe, rng: np.random.Generator, grid: Grid | None) -> Sample:
    """Rows of a generator that draws from the unit cube of each of its strata."""
    setup = Setup(recipe.process, recipe.isr, recipe.beams, recipe.sqrt_s_spread_gev)
    draw, see = _draw_of(setup), _detector_of(recipe.process)
    kept, sigma, variance, tried = [], 0.0, 0.0, 0
    for index, stratum in enumerate(grid or adapted_grid(setup)):
        n_stratum = round(stratum.share * recipe.n_generated)
        weights = [np.zeros(0)]
        for n in _blocks(n_stratum):
            x, jacobian = stratum.points(rng, n)
            momenta, weight = draw(rng, index, x)
            weights.append(weight * jacobian)
            share = weights[-1] / (n_stratum * recipe.parts)
            kept.append(see(rng, momenta, share, beams=recipe.beams, hit_or_miss=False))
        if n_stratum > 0:
            mean, error = _mean(np.concatenate(weights))
            sigma, variance, tried = sigma + mean, variance + error**2, tried + n_stratum
    return Sample(_roulette(_joined(kept), rng, recipe), sigma, variance**0.5, tried)


def _blocks(n: int) -> list[int]:
    return [min(BLOCK, n - start) for start in range(0, n, BLOCK)]


def _mean(w: FloatArray) -> tuple[float, float]:
    return float(w.mean()), float(w.std() / len(w) ** 0.5)


def _floor(weight: FloatArray, max_rows: int | None) -> float:
    """Weight below which rows play roulette: at most max_rows stay, or FLOOR of the rate plays."""
    w = np.sort(weight)
    carried = np.cumsum(w)
    if max_rows is None:
        return float(w[np.searchsorted(carried, FLOOR * carried[-1])])
    # not the share too: one heavy row would carry it, and lift the floor of its whole file
    expected = carried / w + np.arange(len(w))[::-1]  # rows left if the floor is this weight
    at = int(np.searchsorted(-expected, -max_rows))
    if at == 0:
        return float(w[0])
    heavier = len(w) - at  # stay as they are
    return float(carried[at - 1] / (max_rows - heavier))


def _joined(parts: Sequence[Rows]) -> Rows:
    """All events of several blocks, in order."""
    names = [f.name for f in fields(parts[0])]
    whole: dict[str, Any] = {n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    return replace(parts[0], **whole)


def _roulette(rows: Rows, rng: np.random.Generator, recipe: Recipe) -> Rows:
    """Events lighter than the floor survive with probability weight / floor, at the floor."""
    if len(rows) == 0:
        return rows
    most = recipe.max_rows and max(1, recipe.max_rows // ROWS_PER_EVENT[type(rows)])
    tolerance = np.ones(len(rows))
    if most is not None and isinstance(rows, Reconstructed):
        tolerance = _tolerance(_recoil_mass2(rows, recipe.beams), rows.weight)
    w = rows.weight
    floor = tolerance * _floor(w / tolerance, most)
    stay = rng.random(len(w)) * floor < w
    chosen = {f.name: getattr(rows, f.name)[stay] for f in fields(rows)}
    return replace(rows, **{**chosen, "weight": np.maximum(w, floor)[stay]})


def _recoil_mass2(rows: Reconstructed, beams: Beams) -> FloatArray:
    """M_rec2 (n,) of the muons as they were seen [GeV^2]."""
    missing = np.array(beams.total) - rows.seen.sum(axis=1)
    return missing[:, 3] ** 2 - (missing[:, :3] ** 2).sum(axis=1)


def _tolerance(recoil2: FloatArray, weight: FloatArray) -> FloatArray:
    """sqrt of the rate around each row (n,), in bins of 2 GeV^2, mean 1."""
    at = np.floor((recoil2 - recoil2.min()) / 2).astype(np.int64)
    rate = np.bincount(at, weight)
    root = np.sqrt(np.maximum(rate, 1e-6 * rate.max()))[at]
    return root / root.mean()
