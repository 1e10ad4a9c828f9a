"""The numbers behind the figures of a run, as records and histograms.

signal overlay   n = sigma L eps    per bin, with one stated cross section for all masses
fitted peak      n = N w f(x)       N events in the fit range, w width of a bin, f of
                                    selection.resolution; its core is f without the power-law
                                    tail: both Gaussians, the first as high as the Crystal Ball
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import hist
import numpy as np

from analysis.run.folder import RunFolder, read_json
from analysis.select.histograms import quantity_axes, quantity_values
from analysis.train.outcome import load_history
from models.results import Floats, LossHistory, PeakFit, WidthsByMass, from_json
from models.training.history import History
from plots.spectrum import SignalOverlay
from selection.masses import same_mass
from selection.peak_shapes import crystal_ball, crystal_ball_below, gauss, gauss_below
from selection.resolution import TAIL_POWER, WIDTH_RATIO, WidthCurve, WidthFit, peak_density
from selection.search import PublishedWidths, Search
from selection.table import BoolArray, EventTable
from selection.windows import MassWindows

if TYPE_CHECKING:
    from analysis.config.settings import TrainingSection


def nearest_masses(wanted_gev: Sequence[float], masses_gev: Floats) -> tuple[float, ...]:
    """For each wanted mass the nearest simulated one, each once, rising."""
    found = {float(masses_gev[np.abs(masses_gev - m).argmin()]) for m in wanted_gev}
    return tuple(sorted(found))


def shown_axes(search: Search, table: EventTable) -> dict[str, hist.axis.Regular]:
    """Axes of `punzi select`; a feature without bins gets sixty over what its events reach."""
    axes = quantity_axes(search)
    for i, feature in enumerate(search.features):
        if feature.name not in axes:
            values = table.features[:, i]
            low, high = np.quantile(values, [0.001, 0.999]) if len(values) else (0.0, 1.0)
            low, high = (float(low), float(high)) if low < high else (low - 0.5, low + 0.5)
            axes[feature.name] = hist.axis.Regular(
                60, low, high, name=feature.name, label=feature.axis_text
            )
    return axes


def histogram(
    axis: hist.axis.Regular, table: EventTable, rows: BoolArray, search: Search
) -> hist.Hist:
    """One spectrum or feature of the rows, weighted; the axis has the name of the quantity."""
    filled = hist.Hist(axis, storage=hist.storage.Weight())
    columns: dict[str, Any] = {"axis": table.axis[rows]}
    if axis.name in table.feature_names:
        values = table.features[rows, table.feature_names.index(axis.name)]
        columns[axis.name] = values.astype(np.float64)
    return filled.fill(quantity_values(axis.name, search, columns), weight=table.weight[rows])


def background_rows(table: EventTable) -> dict[str, BoolArray]:
    """Rows of every background sample, the smallest sum of weights first."""
    rows = {
        name: (table.sample == i) & ~table.is_signal for i, name in enumerate(table.sample_names)
    }
    filled = {name: chosen for name, chosen in rows.items() if chosen.any()}
    return dict(sorted(filled.items(), key=lambda item: float(table.weight[item[1]].sum())))


def signal_rows(table: EventTable, mass_gev: float) -> BoolArray:
    return same_mass(table.signal_mass_gev, mass_gev)


def overlays(
    signals: Mapping[float, hist.Hist], *, cross_section_fb: float, luminosity_inv_fb: float
) -> tuple[SignalOverlay, ...]:
    """Expected events of each mass; signals: mass -> histogram of efficiency."""
    events = cross_section_fb * luminosity_inv_fb
    return tuple(SignalOverlay(h * events, m, cross_section_fb) for m, h in signals.items())


def visible_cross_section(
    signals: Mapping[float, hist.Hist], backgrounds: Mapping[str, hist.Hist], luminosity: float
) -> float:
    """1, 2 or 5 times a power of ten, in fb: the peaks reach about a tenth of the background."""
    peaks = [float(h.values().max()) for h in signals.values() if h.values().max() > 0]
    top = float(np.sum([h.values() for h in backgrounds.values()], axis=0).max())
    if not peaks or top <= 0:
        return 1.0
    wanted = 0.1 * top / (luminosity * math.exp(float(np.mean(np.log(peaks)))))
    power = 10.0 ** math.floor(math.log10(wanted))
    steps = np.array([1, 2, 5, 10]) * power
    return float(f"{steps[np.abs(np.log(steps / wanted)).argmin()]:.3g}")


def peak_fit_record(fit: WidthFit, windows: MassWindows, table: EventTable) -> PeakFit:
    """The fit of one mass on a histogram of its events."""
    low, high = fit.fit_range
    x = table.axis[signal_rows(table, fit.mass_gev)]
    x = x[(x > low) & (x < high)]
    content, edges = np.histogram(x, int(np.clip(2 * np.sqrt(len(x)), 20, 70)), (low, high))
    m0, s1, q, beta, flat = fit.parameters
    at = np.linspace(low, high, 561)
    scale = len(x) * (edges[1] - edges[0])
    span = np.array([low, high])
    inside = np.diff(crystal_ball_below(2 * m0 - span[::-1], beta, TAIL_POWER, m0, s1))
    height = crystal_ball(np.array([m0]), beta, TAIL_POWER, m0, s1) / inside
    wide = gauss(at, m0, WIDTH_RATIO * s1) / np.diff(gauss_below(span, m0, WIDTH_RATIO * s1))
    core = q * height * np.exp(-0.5 * ((at - m0) / s1) ** 2) + (1 - q) * wide
    k = int(np.abs(windows.mass_gev - fit.mass_gev).argmin())
    return PeakFit(
        mass_gev=fit.mass_gev,
        edges=edges,
        content=content.astype(np.float64),
        content_error=np.sqrt(content),
        curve_at=at,
        curve=scale * peak_density(at, m0, s1, q, beta, flat, span=(low, high)),
        core=scale * (1 - flat) * core,
        sigma=fit.sigma,
        sigma_error=fit.error,
        window_low=float(windows.low[k]),
        window_high=float(windows.high[k]),
    )


def widths_record(fits: Sequence[WidthFit], curve: WidthCurve, search: Search) -> WidthsByMass:
    """Good fits, the curve between the first and the last mass, and the published widths."""
    good = [fit for fit in fits if not fit.reason]
    at = np.linspace(min(f.mass_gev for f in fits), max(f.mass_gev for f in fits), 200)
    published = search.axis.published or PublishedWidths("", (), (), ())
    return WidthsByMass(
        mass_gev=np.array([fit.mass_gev for fit in good]),
        sigma=np.array([fit.sigma for fit in good]),
        sigma_error=np.array([fit.error for fit in good]),
        curve_mass_gev=at,
        curve_sigma=curve.sigma(at),
        reference_text=published.text,
        reference_mass_gev=np.array(published.mass_gev),
        reference_sigma=np.array(published.sigma),
        reference_error=np.array(published.error),
    )


def loss_histories(run: RunFolder, section: TrainingSection) -> dict[str, list[LossHistory]]:
    """Stage -> history of the first fold of each training; a stage without epochs is left out."""
    found: dict[str, list[LossHistory]] = {}
    for j in range(section.networks * section.seeds):
        about = load_history(run, j)
        of_seed = f", seed {about['seed']}" if section.seeds > 1 else ""
        columns = {name: np.array(column, float) for name, column in about["history"].items()}
        history = History(**columns)
        for number, (stage, loss) in enumerate(zip(about["stages"], about["losses"], strict=True)):
            rows = history.of_stage(number)
            if len(rows) > 1:
                record = LossHistory(
                    stage=stage,
                    label=f"network {j // section.seeds}{of_seed}",
                    loss_name=loss,
                    epoch=rows.epoch.astype(np.float64),
                    training=rows.train_loss,
                    validation=rows.validation_loss,
                    learning_rate=rows.learning_rate,
                )
                found.setdefault(stage, []).append(record)
    return found


def batch_study_histories(run: RunFolder) -> list[LossHistory]:
    """Histories of the study of batch sizes, files by name; each file: a list of records."""
    files = sorted(run.batch_study.glob("*.json"))
    return [from_json(record) for file in files for record in read_json(file)]
