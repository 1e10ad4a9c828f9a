"""The numbers behind the figures of a run, as records and histograms.

signal overlay   n = sigma L eps    per bin, with one stated cross section for all masses
fitted peak      n = N w f(x)       N events in the fit range, w width of a bin, f of
                                    selection.resolution; its core is f without the power-law
                                    tail: both Gaussians, the first as high as the Crystal Ball
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import hist
import numpy as np
from numba_stats import crystalball, norm

from analysis.run.folder import RunFolder
from analysis.select.histograms import AXES
from analysis.train.stage import load_history
from models.results import Floats, LossHistory, PeakFit, WidthsByMass, from_json
from models.training.history import History
from plots.spectrum import SignalOverlay
from selection.masses import same_mass, signed_root
from selection.published_widths import PUBLISHED_WIDTHS
from selection.resolution import TAIL_POWER, WIDTH_RATIO, WidthCurve, WidthFit, peak_density
from selection.table import FEATURES, BoolArray, EventTable
from selection.windows import MassWindows


def nearest_masses(wanted_gev: Sequence[float], masses_gev: Floats) -> tuple[float, ...]:
    """For each wanted mass the nearest simulated one, each once, rising."""
    found = {float(masses_gev[np.abs(masses_gev - m).argmin()]) for m in wanted_gev}
    return tuple(sorted(found))


def histogram(quantity: str, table: EventTable, rows: BoolArray) -> hist.Hist:
    """One spectrum or feature of the rows, weighted; the axes are those of `punzi select`."""
    filled = hist.Hist(AXES[quantity], storage=hist.storage.Weight())
    mass2 = table.recoil_mass2_gev2[rows]
    if quantity == "recoil_mass2":
        value = mass2
    elif quantity == "recoil_mass":
        value = signed_root(mass2)
    else:
        value = table.features[rows, FEATURES.index(quantity)].astype(np.float64)
    return filled.fill(value, weight=table.weight[rows])


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
    low, high = fit.fit_range_gev2
    x = table.recoil_mass2_gev2[signal_rows(table, fit.mass_gev)]
    x = x[(x > low) & (x < high)]
    content, edges = np.histogram(x, int(np.clip(2 * np.sqrt(len(x)), 20, 70)), (low, high))
    m0, s1, q, beta = fit.parameters
    at = np.linspace(low, high, 561)
    scale = len(x) * (edges[1] - edges[0])
    span = np.array([low, high])
    inside = np.diff(crystalball.cdf(2 * m0 - span[::-1], beta, TAIL_POWER, m0, s1))
    height = crystalball.pdf(np.array([m0]), beta, TAIL_POWER, m0, s1) / inside
    wide = norm.pdf(at, m0, WIDTH_RATIO * s1) / np.diff(norm.cdf(span, m0, WIDTH_RATIO * s1))
    core = q * height * np.exp(-0.5 * ((at - m0) / s1) ** 2) + (1 - q) * wide
    k = int(np.abs(windows.mass_gev - fit.mass_gev).argmin())
    return PeakFit(
        mass_gev=fit.mass_gev,
        edges_gev2=edges,
        content=content.astype(np.float64),
        content_error=np.sqrt(content),
        curve_gev2=at,
        curve=scale * peak_density(at, m0, s1, q, beta, span=(low, high)),
        core=scale * core,
        sigma_gev2=fit.sigma_gev2,
        sigma_error_gev2=fit.error_gev2,
        window_low_gev2=float(windows.low_gev2[k]),
        window_high_gev2=float(windows.high_gev2[k]),
    )


def widths_record(fits: Sequence[WidthFit], curve: WidthCurve) -> WidthsByMass:
    """Good fits, the curve between the first and the last mass, and the published widths."""
    good = [fit for fit in fits if not fit.reason]
    at = np.linspace(min(f.mass_gev for f in fits), max(f.mass_gev for f in fits), 200)
    published = np.array(PUBLISHED_WIDTHS).T
    return WidthsByMass(
        mass_gev=np.array([fit.mass_gev for fit in good]),
        sigma_gev2=np.array([fit.sigma_gev2 for fit in good]),
        sigma_error_gev2=np.array([fit.error_gev2 for fit in good]),
        curve_mass_gev=at,
        curve_gev2=curve.sigma_gev2(at),
        reference_mass_gev=published[0],
        reference_gev2=published[1],
        reference_error_gev2=published[2],
    )


def loss_histories(run: RunFolder, networks: int) -> dict[str, list[LossHistory]]:
    """Stage -> one history per network; a stage without epochs is left out."""
    found: dict[str, list[LossHistory]] = {}
    for i in range(networks):
        about = load_history(run, i)
        columns = {name: np.array(column, float) for name, column in about["history"].items()}
        history = History(**columns)
        for number, (stage, loss) in enumerate(zip(about["stages"], about["losses"], strict=True)):
            rows = history.of_stage(number)
            if len(rows) > 1:
                record = LossHistory(
                    stage=stage,
                    label=f"network {i}",
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
    return [from_json(record) for file in files for record in json.loads(file.read_text())]
