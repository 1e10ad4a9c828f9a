"""The scan: windows without holes, and what signal and background leave in each.

    mass      m_0, m_1, ...: the peak moves by step_sigma widths from one to the next
    signal    efficiency in the own window at every simulated mass, smoothed in between
    background   rows of each sample in the window: effective number (sum w)^2 / sum w^2, weight of
                 one sum w^2 / sum w; where none passes, that of its rows nearby before the cut

Every event is judged by a network that was not trained on it (`passing.parquet`). The simulation is
too small for a limit where one unseen row of each process would matter,

    sum_p w_p / 3 > 0.2 sqrt(B + 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow.parquet as pq

from analysis.evaluate.passing import row_weight
from analysis.limit.normalisation import factors_of
from analysis.run.folder import RunFolder, read_json, write_csv, write_json
from limits.interpolation import smooth
from limits.trials import elementary_intervals
from models.results import Floats, Scan, from_json, to_json
from models.sensitivity import PunziFormula, punzi_sensitivity
from selection.errors import UserError
from selection.table import EventTable, IntArray
from selection.windows import MassWindows, hypothesis_index, in_own_window

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.train.stage import SimulatedEvents

SMALL = 0.2  # of sqrt(B + 1), that unseen rows may add
UNSEEN = 1 / 3  # rows of each process that may have been missed


class ScanError(UserError):
    """No scan can be made; the message says what is missing."""


class Widths(Protocol):
    """Width of the peak at any mass, in the unit of the axis."""

    def sigma(self, mass_gev: Floats) -> Floats: ...


def scan_windows(
    curve: Widths, simulated: MassWindows, *, masses_gev: Floats | None, step_sigma: float
) -> MassWindows:
    """Windows of the scan, from the first to the last simulated mass."""
    first, last = float(simulated.mass_gev[0]), float(simulated.mass_gev[-1])
    if masses_gev is None:
        masses = _by_widths(curve, first, last, step_sigma, squared=simulated.squared)
    else:
        masses = np.unique(masses_gev)
        outside = masses[(masses < first) | (masses > last)]
        if outside.size:
            msg = (
                f"limit.masses_gev: {outside[0]:g} GeV lies outside the simulated signal, "
                f"{first:g} to {last:g} GeV; an efficiency cannot be guessed there"
            )
            raise ScanError(msg)
    return MassWindows(masses, curve.sigma(masses), simulated.n_sigma, simulated.squared)


def _by_widths(
    curve: Widths, first: float, last: float, step_sigma: float, *, squared: bool
) -> Floats:
    """Masses whose peaks lie step_sigma widths apart; the last interval may be shorter."""
    masses = [first]
    while masses[-1] < last:
        m = masses[-1]
        step = step_sigma * float(curve.sigma(np.array([m]))[0])
        masses.append(float(np.sqrt(m**2 + step)) if squared else m + step)
    return np.array([*masses[:-1], last])


@dataclass(frozen=True)
class Running:
    """Events in order of the axis, with running sums of weights: any window is two look-ups."""

    axis: Floats
    sums: Floats  # (n + 1,) of w
    squares: Floats  # (n + 1,) of w^2

    def within(self, low: Floats, high: Floats) -> tuple[IntArray, Floats, Floats]:
        """Rows, sum w and sum w^2 (n_windows,); edges are exclusive, as everywhere."""
        a = np.searchsorted(self.axis, low, side="right")
        b = np.maximum(np.searchsorted(self.axis, high, side="left"), a)
        rows = b - a
        some = rows > 0  # what is nothing is 0, not the rounding of a difference
        return (
            rows,
            np.where(some, self.sums[b] - self.sums[a], 0),
            np.where(some, self.squares[b] - self.squares[a], 0),
        )


def running(axis: Floats, weight: Floats) -> Running:
    order = np.argsort(axis, kind="stable")
    w = weight[order].astype(np.float64)
    return Running(
        axis[order], np.concatenate([[0], np.cumsum(w)]), np.concatenate([[0], np.cumsum(w**2)])
    )


def make_scan(
    run: RunFolder,
    config: Configuration,
    simulated: SimulatedEvents,
    windows: MassWindows,
    *,
    network: int,
    luminosity_inv_fb: float,
) -> Scan:
    """Count what passes the single cut of one network in all windows of the scan."""
    table, folds = simulated.table, config.settings.folds
    s = config.settings.sensitivity
    return counted_scan(
        passing_columns(run, network),
        table.take((folds.of(table.identity) >= 0) & ~table.is_signal),
        (windows, simulated.windows),
        formula=PunziFormula(luminosity_inv_fb, s.a, s.b, s.formula),
        scales=(luminosity_inv_fb / config.luminosity_inv_fb, 1 / folds.judged_share),
        network=network,
    )


def counted_scan(
    passing: Mapping[str, Any],
    background: EventTable,
    windows: tuple[MassWindows, MassWindows],
    *,
    formula: PunziFormula,
    scales: tuple[float, float],
    network: int,
) -> Scan:
    """passing: columns of what passes; background: events that are judged, before the cut;
    windows: of the scan, and of the simulated masses; scales: of the luminosity, and of judged
    events to all, which those that pass have in their weights already.
    """
    at, simulated = windows
    efficiency, error = _efficiency(passing, simulated, at)
    scale, of_all = scales[0], scales[0] * scales[1]
    samples = tuple(
        name for i, name in enumerate(background.sample_names) if (background.sample == i).any()
    )
    everything = running(background.axis, background.weight * of_all)
    _, total, total_squares = everything.within(at.low, at.high)
    added = np.divide(total_squares, total, out=np.zeros(len(at)), where=total > 0)

    found = []
    for name in samples:
        own = background.sample == background.sample_names.index(name)
        nearby = row_weight(background.axis[own], background.weight[own] * of_all, at.peak)
        _, w, w2 = passing_of(passing, name, scale).within(at.low, at.high)
        found.append((*effective_rows(w, w2, nearby), w, w2))
    rows, one, events, squares = np.array(found).transpose(1, 0, 2)
    expected = events.sum(axis=0)
    return Scan(
        network=network,
        luminosity_inv_fb=formula.luminosity_inv_fb,
        samples=samples,
        mass_gev=at.mass_gev,
        low=at.low,
        high=at.high,
        efficiency=efficiency,
        efficiency_error=error,
        background=expected,
        background_error=np.sqrt(squares.sum(axis=0)),
        added_background=added,
        sigma_min_fb=punzi_sensitivity(efficiency, expected + added, formula),
        too_small=UNSEEN * one.sum(axis=0) > SMALL * np.sqrt(expected + 1),
        rows=rows,
        events=events,
        row_weight=one,
    )


def passing_of(passing: Mapping[str, Any], sample: str, scale: float) -> Running:
    """What passes of a background."""
    own = (passing["sample"] == sample) & np.isnan(passing["signal_mass_gev"])
    return running(passing["axis"][own], passing["weight"][own] * scale)


def interval_rows(run: RunFolder, config: Configuration, scan: Scan) -> tuple[Floats, Floats]:
    """Rows and weight of a row (n_intervals, n_samples) between neighbouring edges of windows."""
    edges = elementary_intervals(scan.low, scan.high)
    passing = passing_columns(run, scan.network)
    scale = scan.luminosity_inv_fb / config.luminosity_inv_fb
    middle = (scan.low + scan.high) / 2
    found = []
    for i, name in enumerate(scan.samples):
        _, w, w2 = passing_of(passing, name, scale).within(edges[:-1], edges[1:])
        nearby = np.interp((edges[1:] + edges[:-1]) / 2, middle, scan.row_weight[i])
        found.append(effective_rows(w, w2, nearby))
    rows, one = np.array(found).transpose(1, 2, 0)
    return rows, one


def effective_rows(w: Floats, w2: Floats, nearby: Floats) -> tuple[Floats, Floats]:
    """(sum w)^2 / sum w^2 rows of weight sum w^2 / sum w; of nothing, 0 of the weight `nearby`."""
    some = w > 0
    rows = np.divide(w**2, w2, out=np.zeros(w.shape), where=some)
    return rows, np.divide(w2, w, out=nearby.copy(), where=some)


def passing_columns(run: RunFolder, network: int) -> dict[str, Any]:
    """Columns of `passing.parquet`, for one network, with fitted factors in the weights."""
    table = pq.read_table(run.passing)
    if table.num_columns == 0:
        msg = (
            "no network has a single cut that leaves signal at every mass, so nothing was kept to "
            "count; set evaluation.single_cut to a number"
        )
        raise ScanError(msg)
    own = table.filter(table["network"].to_numpy() == network)
    columns = {name: own[name].to_numpy(zero_copy_only=False) for name in own.column_names}
    for sample, factor in factors_of(run).items():
        rows = columns["sample"] == sample
        columns["weight"] = np.where(rows, columns["weight"] * factor, columns["weight"])
    return columns


def _efficiency(
    passing: Mapping[str, Any], simulated: MassWindows, scan: MassWindows
) -> tuple[Floats, Floats]:
    """Efficiency and its error at the scan masses, from those of the simulated ones."""
    sums = own_window_sums(passing, simulated)
    return smoothed_efficiency(scan.mass_gev, simulated.mass_gev, *sums)


def smoothed_efficiency(
    at_gev: Floats, simulated_gev: Floats, value: Floats, squares: Floats
) -> tuple[Floats, Floats]:
    """Efficiency and error (n_at,) between masses with sums of weights and of their squares."""
    found, error = smooth(at_gev, simulated_gev, value, efficiency_error(value, squares))
    return np.maximum(found, 0), error


def own_window_sums(passing: Mapping[str, Any], windows: MassWindows) -> tuple[Floats, Floats]:
    """Sum of weights, the efficiency, and of their squares of each mass in its own window."""
    mass = passing["signal_mass_gev"]
    inside = in_own_window(windows, passing["axis"], mass)
    own, w = hypothesis_index(windows, mass[inside]), passing["weight"][inside]
    value: Floats = np.bincount(own, w, minlength=len(windows)).astype(np.float64)
    return value, np.bincount(own, w**2, minlength=len(windows)).astype(np.float64)


def efficiency_error(value: Floats, squares: Floats) -> Floats:
    """Binomial; where nothing passes, that of one event of the others."""
    one = float(np.max(squares[value > 0] / value[value > 0], initial=1e-6))
    return np.sqrt(np.where(squares > 0, squares * np.clip(1 - value, 0.01, 1), one**2))


def write_scan(run: RunFolder, scan: Scan) -> None:
    write_json(run.scan, to_json(scan))
    columns: dict[str, Floats] = {
        name: getattr(scan, name)
        for name in (
            *("mass_gev", "low", "high", "efficiency", "efficiency_error"),
            *("background", "background_error", "added_background", "sigma_min_fb", "too_small"),
        )
    }
    for i, sample in enumerate(scan.samples):
        columns[f"rows_{sample}"] = scan.rows[i]
        columns[f"events_{sample}"] = scan.events[i]
        columns[f"error_{sample}"] = scan.events[i] / np.sqrt(np.maximum(scan.rows[i], 1e-300))
        columns[f"row_weight_{sample}"] = scan.row_weight[i]
    plain = [v.tolist() for v in columns.values()]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*plain, strict=True)]
    write_csv(run.scan_csv, rows)


def load_scan(run: RunFolder) -> Scan:
    found: Scan = from_json(read_json(run.scan))
    return found
