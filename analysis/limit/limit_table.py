"""Limits in words: the same rows on the terminal and in the report."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from analysis.limit.blinding import unblindings
from analysis.limit.stage import load_limits
from analysis.run.folder import RunFolder
from analysis.terminal import console
from limits.coupling import coupling
from models.results import Limits

SHOWN = 12  # masses of the short table
MOST_SIGNIFICANT = 3
HEADS = ("m [GeV]", "expected [fb]", "68 % band", "observed [fb]", "coupling", "p local", "sigma")


def limit_rows(limits: Limits) -> list[list[str]]:
    """One row per mass, as HEADS; the coupling is the observed one, else the expected."""
    seen = np.isfinite(limits.n_observed)
    best = np.where(seen, limits.observed_fb, limits.median_fb)
    g = coupling(best, limits.cross_section_fb, reference=limits.coupling_reference)
    return [
        [
            f"{limits.mass_gev[i]:.3f}",
            _number(limits.median_fb[i]),
            f"{_number(limits.minus1_fb[i])}–{_number(limits.plus1_fb[i])}",
            _number(limits.observed_fb[i]),
            _number(g[i], 2),
            _number(limits.p_local[i], 2),
            _number(limits.significance[i], 2),
        ]
        for i in range(len(limits.mass_gev))
    ]


def shown_rows(limits: Limits) -> list[list[str]]:
    """Rows of a few masses, evenly spaced."""
    mass, rows = limits.mass_gev, limit_rows(limits)
    wanted = np.linspace(mass[0], mass[-1], SHOWN)
    return [rows[i] for i in np.unique(np.abs(mass[:, None] - wanted).argmin(axis=0))]


def significant_lines(limits: Limits) -> list[str]:
    """The most significant masses, each at least one window away from the others."""
    if not np.isfinite(limits.p_local).any():
        return []
    found: list[int] = []
    for i in np.argsort(np.nan_to_num(limits.p_local, nan=2.0)):
        apart = all(abs(int(i) - j) > 4 for j in found)  # windows are four widths, steps one
        if apart and np.isfinite(limits.p_local[i]):
            found.append(int(i))
        if len(found) == MOST_SIGNIFICANT:
            break
    return [
        f"{limits.mass_gev[i]:.3f} GeV: {limits.n_observed[i]:.0f} events, local p = "
        f"{limits.p_local[i]:.2g} ({limits.significance[i]:.1f} sigma), global p = "
        f"{limits.p_global[i]:.2g} (upcrossings: at most {limits.p_global_bound[i]:.2g}), best "
        f"cross section {limits.best_fb[i]:.3g} fb ({limits.best_low_fb[i]:.3g} to "
        f"{limits.best_high_fb[i]:.3g}){_beside(limits, i)}"
        for i in found
    ]


def _beside(limits: Limits, i: int) -> str:
    """What the data beside a window say of it."""
    if np.isnan(limits.sideband_p[i]):
        return "; too few data beside it for a check"
    return (
        f"; by the data beside it {limits.sideband_background[i]:.3g} ± "
        f"{limits.sideband_error[i]:.2g} events, local p = {limits.sideband_p[i]:.2g}"
    )


def notes(run: RunFolder, limits: Limits) -> list[str]:
    """What a reader must know: data, and where the simulation is too small."""
    small, n = int(limits.too_small.sum()), len(limits.mass_gev)
    told = []
    if not np.isfinite(limits.n_observed).any():
        told.append("no observed limits: there are no data, or they are blind (limit.unblind)")
    told += [
        f"data unblinded on {u['date'][:10]}, model {u['model'][:8]}" for u in unblindings(run)
    ]
    if small:
        told.append(
            f"the simulation is too small at {small} of {n} scan masses: one unseen row of each "
            "process would matter there (more, or lighter, rows help)"
        )
    return told


def print_limits(run: RunFolder) -> None:
    limits = load_limits(run)
    title = (
        f"upper limits at {100 * limits.level:g} % ({limits.method}), "
        f"{limits.luminosity_inv_fb:g} fb⁻¹; all {len(limits.mass_gev)} masses: {run.limits_csv}"
    )
    table = Table(title=title, title_justify="left")
    for head in HEADS:
        table.add_column(head, justify="right")
    for row in shown_rows(limits):
        table.add_row(*row)
    console.stdout.print(table)
    for text in (*significant_lines(limits), *notes(run, limits)):
        console.stdout.print(text)


def _number(value: float, digits: int = 3) -> str:
    if not np.isfinite(value):
        return "∞" if value > 0 else "–"
    return f"{value:.{digits}g}"
