"""From a scan to limits, by the method that the configuration names.

    counting     exact Poisson sums in the window                       limits/upper.py
    asymptotic   the same counts, asymptotic formulas: to compare       limits/asymptotic.py
    shape        template fit in 16 widths around each mass             limits/shape.py

Each returns the columns of a `Limits` record. Events become cross sections by the efficiency: that
of the window for counts, that of the 16 bins for templates; without efficiency every cross section
is allowed. p-values over the whole scan exist for counting alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from analysis.limit.scan import (
    effective_rows,
    interval_rows,
    passing_columns,
    smoothed_efficiency,
)
from limits.asymptotic import asymptotic_limits
from limits.expectation import Expectation
from limits.shape import EDGES, ShapeExpectation, binned_in_widths, mixed_templates, refuse_thin
from limits.shape import shape_limits as fitted_limits
from limits.sideband import sideband_background, sideband_p_values
from limits.significance import best_signal, local_p_values, significance
from limits.trials import global_p_values, scan_toys
from limits.upper import bayesian_limits, expected_limits, upper_limits
from models.results import Floats, Scan
from selection.masses import same_mass
from selection.windows import MassWindows

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.run.folder import RunFolder

METHOD_TEXT = {
    "counting": "CLs, exact Poisson sums",
    "asymptotic": "CLs, asymptotic formulas",
    "shape": "CLs of a template fit, asymptotic formulas",
}
EXPECTED = ("minus2", "minus1", "median", "plus1", "plus2")
OF_DATA = (
    *("observed_fb", "bayesian_fb", "n_observed", "best_fb", "best_low_fb", "best_high_fb"),
    *("p_local", "significance", "p_global", "p_global_bound"),
    *("sideband_background", "sideband_error", "sideband_p"),
)
Columns = dict[str, Floats]


def counting(
    run: RunFolder, config: Configuration, scan: Scan, data: Floats | None
) -> tuple[Columns, Floats]:
    """Columns, and the local p-values that are 1, 2, 3 sigma globally."""
    settings, expectation = config.settings.limit, expectation_of(config, scan)
    if data is None:
        return counted(scan, expectation, None, level=settings.level), np.full(3, np.nan)
    columns = counted(scan, expectation, data, level=settings.level)
    toys = scan_toys(
        expectation,
        (scan.low, scan.high),
        interval_rows(run, config, scan),
        n_toys=settings.toys,
        seed=settings.seed,
    )
    scanned = global_p_values(toys, columns["p_local"])
    return columns | {
        "p_global": np.maximum(scanned.p, 1 / settings.toys),
        "p_global_bound": scanned.bound,
        **sidebands(config, scan, data),
    }, np.quantile(toys.smallest_p, norm.sf([1, 2, 3]))


def counted(scan: Scan, expectation: Expectation, data: Floats | None, *, level: float) -> Columns:
    """Exact limits and local p-values of each window alone; data: axis (n,) of what passes."""
    per_fb = _per_fb(scan, scan.efficiency)
    expected = expected_limits(expectation, level=level)
    columns = _nothing(scan) | {
        f"{name}_fb": _in_fb(getattr(expected, name), per_fb)
        for name in (*EXPECTED, "mean", "asimov")
    }
    if data is None:
        return columns
    n = in_windows(data, scan.low, scan.high)
    best, p = best_signal(expectation, n), local_p_values(expectation, n)
    return columns | {
        "n_observed": n,
        "observed_fb": _in_fb(upper_limits(expectation, n, level=level), per_fb),
        "bayesian_fb": _in_fb(bayesian_limits(expectation, n, level=level), per_fb),
        "best_fb": best.signal / per_fb,
        "best_low_fb": best.low / per_fb,
        "best_high_fb": best.high / per_fb,
        "p_local": p,
        "significance": significance(p),
    }


def asymptotic(
    run: RunFolder, config: Configuration, scan: Scan, data: Floats | None
) -> tuple[Columns, Floats]:
    """Counting, with limits of the asymptotic formulas: too strong where few are expected."""
    columns, lines = counting(run, config, scan, data)
    n = None if data is None else in_windows(data, scan.low, scan.high)
    found = asymptotic_limits(expectation_of(config, scan), n, level=config.settings.limit.level)
    per_fb = _per_fb(scan, scan.efficiency)
    columns |= {f"{name}_fb": _in_fb(getattr(found, name), per_fb) for name in EXPECTED}
    if found.observed is not None:
        columns["observed_fb"] = _in_fb(found.observed, per_fb)
    return columns, lines


def shape(
    run: RunFolder,
    config: Configuration,
    scan: Scan,
    data: Floats | None,
    simulated: MassWindows,
) -> tuple[Columns, Floats]:
    """Template fit; refused, with the numbers, where the simulation does not carry it."""
    peak = (scan.low + scan.high) / 2
    sigma = _width(config, scan)
    expectation, efficiency = _templates(run, config, scan, simulated, peak, sigma)
    refuse_thin(expectation, scan.mass_gev, scan.samples)
    counts = None if data is None else binned_in_widths(data, np.ones(len(data)), peak, sigma)
    found = fitted_limits(expectation, counts, level=config.settings.limit.level)
    per_fb = _per_fb(scan, efficiency)
    columns = {f"{name}_fb": _in_fb(getattr(found, name), per_fb) for name in EXPECTED}
    columns |= {"mean_fb": columns["median_fb"], "asimov_fb": columns["median_fb"]}
    columns |= _nothing(scan)
    limit, p, best, error = found.observed, found.p0, found.signal, found.signal_error
    if data is None or limit is None or p is None or best is None or error is None:
        return columns, np.full(3, np.nan)
    return columns | {
        "n_observed": in_windows(data, scan.low, scan.high),
        "observed_fb": _in_fb(limit, per_fb),
        "best_fb": best / per_fb,
        "best_low_fb": (best - error) / per_fb,
        "best_high_fb": (best + error) / per_fb,
        "p_local": p,
        "significance": significance(p),
        **sidebands(config, scan, data),
    }, np.full(3, np.nan)


def sidebands(config: Configuration, scan: Scan, data: Floats) -> Columns:
    """Background and p-value of each window from the data beside it; nan where they are few."""
    peak, sigma = (scan.low + scan.high) / 2, _width(config, scan)
    counts = binned_in_widths(data, np.ones(len(data)), peak, sigma)
    found = sideband_background(counts, scan.mass_gev)
    return {
        "sideband_background": found.background,
        "sideband_error": found.error,
        "sideband_p": sideband_p_values(found, counts),
    }


def _templates(
    run: RunFolder,
    config: Configuration,
    scan: Scan,
    simulated: MassWindows,
    peak: Floats,
    sigma: Floats,
) -> tuple[ShapeExpectation, Floats]:
    """Templates of signal and background at the scan masses, and the efficiency in their bins."""
    passing = passing_columns(run, scan.network)
    own = [same_mass(passing["signal_mass_gev"], m) for m in simulated.mass_gev]
    signal, squares = (
        np.array([
            binned_in_widths(
                passing["axis"][rows], passing["weight"][rows] ** k,
                simulated.peak[i : i + 1], simulated.sigma[i : i + 1],
            )[0]
            for i, rows in enumerate(own)
        ])
        for k in (1, 2)
    )  # fmt: skip
    scale = scan.luminosity_inv_fb / config.luminosity_inv_fb
    found = []
    for p, name in enumerate(scan.samples):
        background = (passing["sample"] == name) & np.isnan(passing["signal_mass_gev"])
        axis, weight = passing["axis"][background], passing["weight"][background] * scale
        w, w2 = (binned_in_widths(axis, weight**k, peak, sigma) for k in (1, 2))
        nearby = np.repeat(scan.row_weight[p][:, None], len(EDGES) - 1, axis=1)
        empty = binned_in_widths(axis, np.ones(len(axis)), peak, sigma) == 0
        found.append(effective_rows(np.where(empty, 0, w), w2, nearby))  # a sum may leave 1e-17
    rows, one = np.array(found).transpose(1, 2, 3, 0)
    expectation = ShapeExpectation(
        signal=mixed_templates(scan.mass_gev, simulated.mass_gev, signal),
        rows=rows,
        row_weight=one,
        normalisation=normalisations(config, scan),
        signal_uncertainty=signal_uncertainty(config, scan),
    )
    efficiency, _ = smoothed_efficiency(
        scan.mass_gev, simulated.mass_gev, signal.sum(axis=1), squares.sum(axis=1)
    )
    return expectation, efficiency


def expectation_of(config: Configuration, scan: Scan) -> Expectation:
    return Expectation(
        rows=scan.rows.T,
        row_weight=scan.row_weight.T,
        normalisation=normalisations(config, scan),
        signal_uncertainty=signal_uncertainty(config, scan),
    )


def normalisations(config: Configuration, scan: Scan) -> Floats:
    """Relative uncertainty (n_samples,) of each background."""
    return np.array([getattr(config.samples[name], "uncertainty", 0.0) for name in scan.samples])


def signal_uncertainty(config: Configuration, scan: Scan) -> Floats:
    """Relative (n_masses,): simulated signal, efficiency and luminosity."""
    s = config.settings.limit
    counted = np.divide(
        scan.efficiency_error,
        scan.efficiency,
        out=np.zeros(len(scan.mass_gev)),
        where=scan.efficiency > 0,
    )
    return np.sqrt(counted**2 + s.efficiency_uncertainty**2 + s.luminosity_uncertainty**2)


def in_windows(axis: Floats, low: Floats, high: Floats) -> Floats:
    """Number of events (n_windows,) inside each window; edges are exclusive."""
    ordered = np.sort(axis)
    first = np.searchsorted(ordered, low, side="right")
    return (np.searchsorted(ordered, high, side="left") - first).astype(np.float64)


def _width(config: Configuration, scan: Scan) -> Floats:
    """Core width (n_masses,) of the peaks, of which a window is +-n_sigma."""
    return (scan.high - scan.low) / (2 * config.settings.windows.n_sigma)


def _per_fb(scan: Scan, efficiency: Floats) -> Floats:
    """Signal events per fb (n_masses,); nan without efficiency."""
    return np.where(efficiency > 0, efficiency * scan.luminosity_inv_fb, np.nan)


def _in_fb(events: Floats, per_fb: Floats) -> Floats:
    return np.where(np.isnan(per_fb), np.inf, events / per_fb)


def _nothing(scan: Scan) -> Columns:
    """Columns of data, without any."""
    return {name: np.full(len(scan.mass_gev), np.nan) for name in OF_DATA}
