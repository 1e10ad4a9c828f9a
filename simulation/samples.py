"""From a recipe to the rows of its ntuple: generator, detector, loose preselection.

    signal       accept a draw with probability w / w_max until n_generated are accepted;
                 weight = sigma / n_generated                            events per fb^-1
    background   every draw keeps its weight w / (n_generated parts)     events per fb^-1

w_max is the largest weight of a pilot run, with a margin. What lies above it is counted and must
stay below 1e-3 of the cross section. The weights of the signal are bounded by construction.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from simulation.detector import FloatArray, Reconstructed, joined, reconstruct, smeared_sqrt_s
from simulation.recipe import Recipe, SimulationError
from simulation.signal import signal_draws

log = logging.getLogger(__name__)

BLOCK = 100_000
PILOT = 40_000
MARGIN = 1.15


@dataclass(frozen=True)
class Sample:
    """Rows that pass the loose preselection, and the cross section of what was generated."""

    rows: Reconstructed
    cross_section_fb: float
    cross_section_error_fb: float
    n_tried: int


def simulate(recipe: Recipe) -> Sample:
    """The sample of a recipe; the same every time."""
    if recipe.process == "signal":
        return _signal(recipe)
    msg = f"{recipe.process} is not there yet"
    raise SimulationError(msg)


def _signal(recipe: Recipe) -> Sample:
    rng = recipe.generator()
    mass = recipe.mass_gev
    if mass is None:
        msg = "signal without mass_gev"
        raise SimulationError(msg)

    def draws(n: int):  # type: ignore[no-untyped-def]
        energy = smeared_sqrt_s(rng, n, beams=recipe.beams, spread_gev=recipe.sqrt_s_spread_gev)
        return signal_draws(rng, mass_gev=mass, sqrt_s_gev=energy, isr=recipe.isr)

    pilot = draws(PILOT).weight_fb
    ceiling = MARGIN * pilot.max()
    accepted, kept = 0, []
    tried, total, total2, above = PILOT, pilot.sum(), (pilot**2).sum(), 0.0
    while accepted < recipe.n_generated:
        want = (recipe.n_generated - accepted) * ceiling / pilot.mean()
        events = draws(int(min(BLOCK, 1.1 * want + 100)))
        w = events.weight_fb
        tried, total, total2 = tried + len(w), total + w.sum(), total2 + (w**2).sum()
        above += np.maximum(w - ceiling, 0).sum()
        keep = np.flatnonzero(rng.random(len(w)) * ceiling < w)[: recipe.n_generated - accepted]
        accepted += len(keep)
        kept.append(
            reconstruct(
                rng, events.momenta[keep], np.ones(len(keep)), beams=recipe.beams, hit_or_miss=True
            )
        )
    if above > 1e-3 * total:
        msg = (
            f"signal at {mass} GeV: {above / total:.1e} of the cross section lies above the "
            f"ceiling of the rejection (allowed 1e-3); raise simulation.samples.PILOT or MARGIN"
        )
        raise SimulationError(msg)
    sigma = total / tried
    error = np.sqrt((total2 / tried - sigma**2) / tried)
    rows = joined(kept)
    weight = np.full(len(rows), sigma / recipe.n_generated)
    return Sample(_with_weight(rows, weight), float(sigma), float(error), tried)


def _with_weight(rows: Reconstructed, weight: FloatArray) -> Reconstructed:
    return Reconstructed(
        rows.seen, rows.true, rows.extra_energy, rows.recoil_theta, rows.photon_recoil_angle, weight
    )
