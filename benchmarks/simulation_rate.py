"""Events per second of every generator, detector and loose preselection included.

    python benchmarks/simulation_rate.py [scale]

Processor time of one process, after compilation and adaptation of the grids, timed apart.
"""

from __future__ import annotations

import sys
import time

from simulation.recipe import Recipe
from simulation.samples import Sample, simulate

RECIPES = (
    Recipe("signal", 20_000, 1, mass_gev=0.1),
    Recipe("signal", 20_000, 1, mass_gev=4.0),
    Recipe("signal", 20_000, 1, mass_gev=8.9),
    Recipe("taupair", 500_000, 1),
    Recipe("mumugamma", 200_000, 1),
    Recipe("eemumu", 500_000, 1),
    Recipe("alp", 20_000, 1, mass_gev=2.0),
    Recipe("threegamma", 500_000, 1),
)


def timed(recipe: Recipe) -> tuple[float, Sample]:
    start = time.process_time()
    sample = simulate(recipe)
    return time.process_time() - start, sample


def main(scale: float) -> None:
    print(f"{'process':<18}{'first [s]':>10}{'points/s':>12}{'rows/s':>10}{'N_eff/s':>10}")
    for base in RECIPES:
        settings = {**base.settings(), "beams": base.beams}
        first, _ = timed(Recipe(**{**settings, "n_generated": 1_000}))
        n = int(base.n_generated * scale)
        seconds, sample = timed(Recipe(**{**settings, "n_generated": n}))
        w = sample.rows.weight
        n_eff = w.sum() ** 2 / (w**2).sum()
        name = base.process if base.mass_gev is None else f"{base.process} {base.mass_gev} GeV"
        rate = n / seconds, len(w) / seconds, n_eff / seconds
        print(
            f"{name:<18}{first:>10.1f}"
            + "".join(f"{r:>{k}.0f}" for r, k in zip(rate, (12, 10, 10), strict=True))
        )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
