"""Figures of the result: limits on cross section and coupling, p-values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analysis.figures.readouts import coupling_readout, limit_readout
from analysis.figures.run_results import Drawing, RunResults, drawable
from analysis.figures.spectra import data_label
from limits.coupling import coupling
from models.results import Floats, Limits, to_rows
from plots.limits import limit_on_coupling, limit_on_cross_section, p_values

GUIDES = 3  # couplings whose cross section is drawn beside the limits


def limits(m: RunResults) -> Iterator[Drawing]:
    """Nothing where no limit was found."""
    found = m.limits
    if found is None:
        return
    seen = np.isfinite(found.n_observed).any()
    label = replace(data_label(m) if seen else m.label, luminosity_inv_fb=found.luminosity_inv_fb)
    rows = list(to_rows(found))
    small = int(found.too_small.sum())
    about = (
        f"{found.method}, {100 * found.level:g} % confidence, {len(found.mass_gev)} scan masses; "
        f"bands: 68 and 95 % of what is expected without signal."
        + (f" Red below: simulation too small, at {small} masses." if small else "")
    )
    symbol = drawable(f"${m.config.settings.limit.coupling.symbol}$").strip("$")
    known = np.isfinite(found.cross_section_fb).any()
    yield Drawing(
        "limit_cross_section",
        "Upper limits on the cross section",
        f"{about}" + (" Broken grey lines: cross section of some couplings." if known else ""),
        limit_on_cross_section(found, couplings=guides(found, symbol), label=label),
        rows,
        readout=limit_readout(found),
    )
    if known:
        names = [f"{n}_fb" for n in ("minus2", "minus1", "median", "plus1", "plus2", "observed")]
        values = {
            n.removesuffix("_fb"): coupling(
                getattr(found, n), found.cross_section_fb, reference=found.coupling_reference
            )
            for n in names
        }
        yield Drawing(
            "limit_coupling",
            "Upper limits on the coupling",
            about,
            limit_on_coupling(found, symbol=symbol, label=label),
            [
                {"mass_gev": mass, **{n: v[i] for n, v in values.items()}}
                for i, mass in enumerate(found.mass_gev.tolist())
            ],
            readout=coupling_readout(found, values),
        )
    if np.isfinite(found.p_local).any():
        yield Drawing(
            "p_values",
            "p-values",
            "Probability of at least as many events without signal, at each mass. Dotted: local "
            "significance; broken red lines: what it takes anywhere in the scan (global).",
            p_values(found, label=label),
            rows,
        )


def guides(found: Limits, symbol: str) -> list[tuple[str, Floats]]:
    """Text and cross section of powers of ten of the coupling that cross the limits."""
    g = coupling(found.median_fb, found.cross_section_fb, reference=found.coupling_reference)
    g = g[np.isfinite(g)]
    if not g.size:
        return []
    powers = np.arange(np.ceil(np.log10(g.min())), np.floor(np.log10(g.max())) + 1)
    return [
        (
            rf"${symbol}$ = $10^{{{int(p)}}}$",
            found.cross_section_fb * (10.0**p / found.coupling_reference) ** 2,
        )
        for p in powers[:GUIDES]
    ]
