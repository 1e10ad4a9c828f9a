"""Windows from the signal of a run, and their file `windows.json`."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.run.folder import write_json
from selection.masses import same_mass
from selection.resolution import WidthCurve, WidthFit, fit_width, smooth_widths
from selection.table import EventTable
from selection.windows import MassWindows, in_own_window

if TYPE_CHECKING:
    from analysis.config.settings import WindowSettings

log = logging.getLogger(__name__)


def fit_windows(
    table: EventTable, masses_gev: tuple[float, ...], settings: WindowSettings
) -> tuple[MassWindows, tuple[WidthFit, ...], WidthCurve]:
    """One window per mass from the smooth width curve."""
    fits = tuple(
        fit_width(m, table.recoil_mass2_gev2[rows], min_events=settings.min_events)
        for m in masses_gev
        for rows in [same_mass(table.signal_mass_gev, m)]
    )
    curve = smooth_widths(fits)
    masses = np.array(masses_gev)
    windows = MassWindows(masses, curve.sigma_gev2(masses), settings.n_sigma)
    inside = in_own_window(windows, table.recoil_mass2_gev2, table.signal_mass_gev)
    log.info(
        "windows: sigma(M2) from %.3f to %.3f GeV^2, %.1f %% of the selected signal inside",
        windows.sigma_gev2.min(),
        windows.sigma_gev2.max(),
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
            "mass_gev": windows.mass_gev.tolist(),
            "sigma_gev2": windows.sigma_gev2.tolist(),
            "sigma_error_gev2": curve.error_gev2(windows.mass_gev).tolist(),
            "low_gev2": windows.low_gev2.tolist(),
            "high_gev2": windows.high_gev2.tolist(),
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
    stored = json.loads(path.read_text())
    return MassWindows(
        np.array(stored["mass_gev"]), np.array(stored["sigma_gev2"]), stored["n_sigma"]
    )


def load_fits(path: Path) -> tuple[tuple[WidthFit, ...], WidthCurve]:
    """The fits behind the windows, for figures."""
    stored = json.loads(path.read_text())
    fits = tuple(
        WidthFit(
            **{
                **fit,
                "parameters": tuple(fit["parameters"]),
                "fit_range_gev2": tuple(fit["fit_range_gev2"]),
            }
        )
        for fit in stored["fits"]
    )
    c = stored["curve"]
    curve = WidthCurve(
        np.array(c["coefficients"]), np.array(c["covariance"]), c["centre_gev"], c["half_range_gev"]
    )
    return fits, curve
