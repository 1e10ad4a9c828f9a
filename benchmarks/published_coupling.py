"""Expected limits on g' of a finished run beside the two published searches of Belle II.

    python benchmarks/published_coupling.py [RUN] [PICTURE]

The scan of the run (default runs/demo) is scaled to 0.276 and 79.7 fb^-1; 90 % limits, statistics
only. Published: PRL 124 (2020) 141801, read at ten masses, and the ends of arXiv:2212.03066. Those
are observed limits of real data with their systematic uncertainties; ours are expected ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from limits.coupling import coupling
from limits.expectation import Expectation
from limits.upper import expected_limits
from models.results import Limits, Scan, from_json
from plots.style import BLUE, RED, Label, SearchWords, in_style, logarithmic_y, panels, put_label

# 0.276 fb^-1: mass [GeV], g'
FIRST = np.array([
    [1.16, 0.051], [1.99, 0.086], [2.57, 0.115], [3.02, 0.144], [3.55, 0.198],
    [3.98, 0.275], [4.47, 0.381], [5.00, 0.520], [5.50, 0.723], [5.97, 0.994],
])  # fmt: skip
SECOND = np.array([[0.1, 3e-3], [8.0, 1.0]])  # 79.7 fb^-1: both ends
LUMINOSITIES = (0.276, 79.7)


def limits_at(scan: Scan, found: Limits, luminosity_inv_fb: float) -> dict[str, np.ndarray]:
    """Expected g' (n_masses,): mean and the 68 % band."""
    scale = luminosity_inv_fb / scan.luminosity_inv_fb
    n = len(scan.mass_gev)
    expectation = Expectation(
        rows=scan.rows.T,
        row_weight=scan.row_weight.T * scale,
        normalisation=np.zeros(len(scan.samples)),
        signal_uncertainty=np.zeros(n),
    )
    events = expected_limits(expectation, level=0.90)
    per_fb = scan.efficiency * luminosity_inv_fb
    return {
        name: coupling(
            getattr(events, name) / per_fb,
            found.cross_section_fb,
            reference=found.coupling_reference,
        )
        for name in ("mean", "minus1", "plus1")
    }


@in_style
def picture(mass: np.ndarray, ours: dict[float, dict[str, np.ndarray]], path: Path) -> None:
    figure, axes = panels(height_in=2.8)
    ax = axes[0, 0]
    for (luminosity, found), colour in zip(ours.items(), (BLUE, RED), strict=True):
        band = {"color": colour, "alpha": 0.25, "linewidth": 0}
        ax.fill_between(mass, found["minus1"], found["plus1"], **band)
        ax.plot(mass, found["mean"], color=colour, label=rf"expected, {luminosity:g} fb$^{{-1}}$")
    style = {"linestyle": "", "markersize": 3, "markeredgecolor": "black", "markeredgewidth": 0.4}
    ax.plot(*FIRST.T, marker="o", color=BLUE, label=r"published, 0.276 fb$^{-1}$", **style)
    ax.plot(*SECOND.T, marker="s", color=RED, label=r"published, 79.7 fb$^{-1}$ (ends)", **style)
    logarithmic_y(ax)
    ax.set_xlim(0, 9.2)
    ax.legend(loc="upper left")
    ax.set_xlabel(r"$m_{Z'}$ [GeV/$c^2$]")
    ax.set_ylabel("90 % CL limit on g'")
    put_label(ax, Label(words=SearchWords()))
    figure.savefig(path, dpi=200)


def main() -> None:
    run = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo")
    try:
        scan: Scan = from_json(json.loads((run / "scan.json").read_text()))
        found: Limits = from_json(json.loads((run / "limit.json").read_text()))
    except FileNotFoundError:
        sys.exit(f"{run} has no limits; `make demo` makes them")
    ours = {L: limits_at(scan, found, L) for L in LUMINOSITIES}
    first = np.interp(FIRST[:, 0], scan.mass_gev, ours[0.276]["mean"])
    print("mass [GeV]  published  expected here  ratio   (0.276 fb^-1)")
    for (mass, g), own in zip(FIRST, first, strict=True):
        print(f"{mass:10.2f} {g:10.3f} {own:14.3f} {own / g:6.2f}")
    print("mass [GeV]  expected here   (79.7 fb^-1; published 3e-3 at low mass, 1 at 8 GeV)")
    for mass in (0.1, 1, 2, 3, 4, 5, 6, 7, 8):
        print(f"{mass:10.2f} {np.interp(mass, scan.mass_gev, ours[79.7]['mean']):14.4g}")
    if len(sys.argv) > 2:
        picture(scan.mass_gev, ours, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
