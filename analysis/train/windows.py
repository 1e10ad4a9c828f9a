"""Windows from the signal of a run, and their file `windows.json`."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.run.folder import read_json, write_json
from selection.masses import same_mass
from selection.resolution import WidthCurve, WidthFit, fit_width, smooth_widths
from selection.table import EventTable, candidates_per_event
from selection.windows import MassWindows, in_own_window

if TYPE_CHECKING:
    from analysis.config.settings import WindowSettings

log = logging.getLogger(__name__)


def fit_windows(
    table: EventTable, masses_gev: tuple[float, ...], settings: WindowSettings, *, squared: bool
) -> tuple[MassWindows, tuple[WidthFit, ...], WidthCurve]:
    """One window per mass from the smooth width curve."""
    fits = tuple(
        fit_width(
            m,
            table.axis[rows],
            squared=squared,
            per_event=candidates_per_event(table.key[rows]),
            min_events=settings.min_events,
        )
        for m in masses_gev
        for rows in [same_mass(table.signal_mass_gev, m)]
    )
    curve = smooth_widths(fits)
    masses = np.array(masses_gev)
    windows = MassWindows(masses, curve.sigma(masses), settings.n_sigma, squared)
    inside = in_own_window(windows, table.axis, table.signal_mass_gev)
    log.info(
        "windows: sigma of the axis from %.3g to %.3g, %.1f %% of the selected signal inside",
        windows.sigma.min(),
        windows.sigma.max(),
        100 * inside.sum() / max(1, table.is_signal.sum()),
    )
    return windows, fits, curve


def save_windows(
    path: Path, windows: MassWindows, fits: tuple[WidthFit, ...], curve: WidthCurve
) -> None:
    write_json(
        path,
        {
            "n_sigma": windows.n_sigma,
            "squared": windows.squared,
            "mass_gev": windows.mass_gev.tolist(),
            "sigma": windows.sigma.tolist(),
            "sigma_error": curve.error(windows.mass_gev).tolist(),
            "low": windows.low.tolist(),
            "high": windows.high.tolist(),
            "fits": [asdict(fit) for fit in fits],
            "curve": {
                "coefficients": curve.coefficients.tolist(),
                "covariance": curve.covariance.tolist(),
                "centre_gev": curve.centre_gev,
                "half_range_gev": curve.half_range_gev,
            },
        },
    )


def load_windows(path: Path) -> MassWindows:
    stored = read_json(path)
    mass, sigma = np.array(stored["mass_gev"]), np.array(stored["sigma"])
    return MassWindows(mass, sigma, stored["n_sigma"], stored["squared"])


def load_fits(path: Path) -> tuple[tuple[WidthFit, ...], WidthCurve]:
    """The fits behind the windows, for figures."""
    stored = read_json(path)
    fits = tuple(
        WidthFit(
            **{
                **fit,
                "parameters": tuple(fit["parameters"]),
                "fit_range": tuple(fit["fit_range"]),
            }
        )
        for fit in stored["fits"]
    )
    c = stored["curve"]
    curve = WidthCurve(
        np.array(c["coefficients"]), np.array(c["covariance"]), c["centre_gev"], c["half_range_gev"]
    )
    return fits, curve
