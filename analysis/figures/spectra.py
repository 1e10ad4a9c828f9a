"""Figures of events: spectra before and after the single cut, features, peaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import hist
import numpy as np

from analysis.figures.agreement import agreement_text, compared
from analysis.figures.numbers import (
    background_rows,
    histogram,
    nearest_masses,
    overlays,
    peak_fit_record,
    signal_rows,
    visible_cross_section,
    widths_record,
)
from analysis.figures.run_results import CsvRows, Drawing, RunResults
from models.results import PeakFit
from plots.inputs import feature_distributions
from plots.resolution import peak_fit, width_by_mass
from plots.spectrum import SignalOverlay, before_and_after, spectrum
from plots.style import Label, histogram_rows
from selection.preselection import PRESELECTION
from selection.search import Axis
from selection.table import BoolArray


@dataclass(frozen=True)
class Spectrum:
    """One quantity at one stage, as drawn: simulation beside data has their luminosity."""

    backgrounds: Mapping[str, hist.Hist]
    signals: tuple[SignalOverlay, ...]
    data: hist.Hist | None

    def rows(self) -> CsvRows:
        """A row per bin: events of each background, of each mass and of the data."""
        signal = {f"signal_{s.mass_gev:g}_gev": s.histogram for s in self.signals}
        data = {} if self.data is None else {"data": self.data}
        return histogram_rows({**self.backgrounds, **signal, **data})


def spectra(m: RunResults) -> Iterator[Drawing]:
    """The mass and its square, if the axis is one; with data also each alone with its ratio."""
    label = data_label(m)
    about = (
        f"Cut: score ≥ {m.single_cut:.3g} of Punzi-net {m.network}; all selected events, "
        f"{m.judged_text}."
    )
    sigma = shown_cross_section(m)
    signal = f"Signal (lines, not stacked) at {sigma:g} fb. " if m.masses_gev else ""
    if m.data is not None:
        signal += f"Simulation is scaled to the {m.shown_luminosity_inv_fb:g} fb⁻¹ of the data. "
        signal += "" if m.data_are_shown else "Data after the cut are blind (limit.unblind). "
    for quantity, title in titles(m.search.axis).items():
        before, after = both_stages(m, quantity, sigma)
        yield Drawing(
            quantity,
            f"{title} before and after the cut",
            f"Stacked backgrounds with their statistical uncertainty. {signal}{about}",
            before_and_after(
                before.backgrounds,
                after.backgrounds,
                signals=(before.signals, after.signals),
                data=(before.data, after.data),
                label=label,
                legend=m.legend,
            ),
            [
                {"stage": stage, **row}
                for stage, spectrum in (("before", before), ("after", after))
                for row in spectrum.rows()
            ],
        )
        for stage, s in (("before", before), ("after", after)):
            if s.data is None:
                continue
            found = compared(s.data, s.backgrounds)
            row = {"region": PRESELECTION, "quantity": quantity, **asdict(found)}
            yield Drawing(
                f"{quantity}_{stage}",
                f"{title} {stage} the cut, with data",
                f"Lower panel: data over simulation; red triangles: above the panel, or data where "
                f"nothing is expected. {agreement_text(found)} {signal}{about}",
                spectrum(
                    s.backgrounds, signals=s.signals, data=s.data, label=label, legend=m.legend
                ),
                s.rows(),
                agreement=row if stage == "before" else None,
            )


def titles(axis: Axis) -> dict[str, str]:
    """Quantity -> title; the mass first, then its square where the axis is one."""
    words = axis.mass_name.replace("_", " ")
    found = {axis.mass_name: words[:1].upper() + words[1:]}
    return found | ({axis.name: f"Squared {words}"} if axis.squared else {})


def both_stages(m: RunResults, quantity: str, cross_section_fb: float) -> tuple[Spectrum, Spectrum]:
    """All selected events, and those that pass the single cut."""
    table, L = m.simulated.table, m.shown_luminosity_inv_fb
    scale = L / m.config.luminosity_inv_fb  # weights of backgrounds are for the target luminosity
    axis = m.axes[quantity]
    passing = m.scores(table) >= m.single_cut

    def filled(keep: BoolArray) -> tuple[dict[str, hist.Hist], dict[float, hist.Hist]]:
        samples = background_rows(table).items()
        stack = {
            name: histogram(axis, table, rows & keep, m.search) * scale * m.factors.get(name, 1.0)
            for name, rows in samples
        }
        masses = {
            mass: histogram(axis, table, signal_rows(table, mass) & keep, m.search)
            for mass in m.masses_gev
        }
        return stack, masses

    data: list[hist.Hist | None] = [None, None]
    if m.data is not None:
        data[0] = histogram(axis, m.data, np.ones(len(m.data), bool), m.search)
        if m.data_are_shown:
            data[1] = histogram(axis, m.data, m.scores(m.data) >= m.single_cut, m.search)
    (stack, masses), (stack_after, masses_after) = filled(np.ones_like(passing)), filled(passing)
    lines = [
        overlays(found, cross_section_fb=cross_section_fb, luminosity_inv_fb=L)
        for found in (masses, masses_after)
    ]
    return Spectrum(stack, lines[0], data[0]), Spectrum(stack_after, lines[1], data[1])


def shown_cross_section(m: RunResults) -> float:
    """One for all masses and figures, from the spectrum of the mass before the cut."""
    table, axis = m.simulated.table, m.axes[m.search.axis.mass_name]
    stack = {n: histogram(axis, table, r, m.search) for n, r in background_rows(table).items()}
    signals = {
        mass: histogram(axis, table, signal_rows(table, mass), m.search) for mass in m.masses_gev
    }
    return visible_cross_section(signals, stack, m.config.luminosity_inv_fb)


def data_label(m: RunResults) -> Label:
    """With data on it, a figure has their luminosity and is no longer a mere "Simulation"."""
    if m.data is None:
        return m.label
    text = "Own work" if m.label.text == "Simulation (own work)" else m.label.text
    return replace(m.label, text=text, luminosity_inv_fb=m.shown_luminosity_inv_fb)


def features(m: RunResults) -> Iterator[Drawing]:
    """Shapes of the inputs."""
    table = m.simulated.table
    rows = background_rows(table)
    rows |= {m.label.words.mass(mass): signal_rows(table, mass) for mass in m.masses_gev}
    shapes = {
        name: {text: histogram(m.axes[name], table, c, m.search) for text, c in rows.items()}
        for name in m.search.feature_names
    }
    plain = [*background_rows(table), *(f"signal_{mass:g}_gev" for mass in m.masses_gev)]
    yield Drawing(
        "features",
        "The inputs of the network",
        "Each histogram is divided by its own sum; events after the preselection.",
        feature_distributions(
            shapes, label=replace(m.label, luminosity_inv_fb=None), legend=m.legend
        ),
        [
            {"feature": name, **row}
            for name, found in shapes.items()
            for row in histogram_rows(dict(zip(plain, found.values(), strict=True)))
        ],
    )


def resolution(m: RunResults) -> Iterator[Drawing]:
    """Fits of the peak for some masses, and the widths of all."""
    label = replace(m.label, luminosity_inv_fb=None)
    good = {fit.mass_gev: fit for fit in m.fits if not fit.reason}
    widths = widths_record(m.fits, m.curve, m.search)
    fitted = zip(widths.mass_gev, widths.sigma, widths.sigma_error, strict=True)
    smooth = m.curve.sigma(widths.mass_gev)
    middle = "m²" if m.search.axis.squared else "m"
    published = " Published widths are for comparison only." if widths.reference_text else ""
    yield Drawing(
        "widths",
        "Width of the peak",
        f"Windows are {middle} ± {m.simulated.windows.n_sigma:g} σ(m) with σ from the smooth "
        f"curve.{published}",
        width_by_mass(widths, label=label),
        [
            {"mass_gev": mass, "sigma": s, "sigma_error": e, "smooth": c}
            for (mass, s, e), c in zip(fitted, smooth, strict=True)
        ],
        widths,
    )
    masses = np.array(sorted(good))
    for mass in nearest_masses([masses[0], *m.masses_gev, masses[-1]], masses):
        record = peak_fit_record(good[mass], m.simulated.windows, m.simulated.table)
        yield Drawing(
            f"peak_fit_{round(1000 * mass):04d}_mev",
            f"Peak at {mass:g} GeV",
            "Axis of the selected signal with its fit; dashed: without the "
            "radiative tail; band: the mass window, from the smooth curve of widths.",
            peak_fit(record, label=label),
            peak_rows(record),
            record,
        )


def peak_rows(record: PeakFit) -> list[dict[str, float]]:
    """A row per bin; the fit at its centre."""
    centre = 0.5 * (record.edges[1:] + record.edges[:-1])
    fit, core = (np.interp(centre, record.curve_at, y) for y in (record.curve, record.core))
    return [
        {"low": low, "high": high, "events": n, "error": e, "fit": f, "core": c}
        for (low, high), n, e, f, c in zip(
            pairwise(record.edges),
            record.content,
            record.content_error,
            fit,
            core,
            strict=True,
        )
    ]
