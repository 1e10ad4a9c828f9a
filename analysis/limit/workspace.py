"""The counting experiment of every scan mass as a pyhf workspace, all in one archive.

    signal       events at mu = 1, the median expected limit, so that mu stays near 1
                 normsys   efficiency and luminosity
    background   (rows + 1/3) x weight of a row, of each sample
                 shapesys  simulation: relative 1 / sqrt(rows + 1/3)
                 normsys   its normalisation

Names are identities: samples of one name share one nuisance, whatever the mass. The cross section
of mu = 1 stands in the name of the measurement. The same bytes for the same scan.
"""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from models.results import Floats, Limits, Scan
from selection.whole_files import replacing

CHANNEL = "window"
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # of ZIP: no date in the archive


def write_workspaces(
    path: Path, scan: Scan, limits: Limits, *, normalisation: Floats, signal_uncertainty: Floats
) -> None:
    """One JSON file per mass at which signal can pass."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for i in np.flatnonzero(np.isfinite(limits.median_fb)):
            made = workspace(
                scan,
                limits,
                int(i),
                normalisation=normalisation,
                signal_uncertainty=float(signal_uncertainty[i]),
            )
            entry = zipfile.ZipInfo(workspace_name(scan.mass_gev[i]), FIRST_DAY)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, json.dumps(made, indent=1))


def workspace_name(mass_gev: float) -> str:
    return f"mass_{mass_gev:.4f}_gev.json"


def workspace(
    scan: Scan, limits: Limits, i: int, *, normalisation: Floats, signal_uncertainty: float
) -> dict[str, Any]:
    """The i-th mass; without data the observation is the expected background, rounded."""
    unit_fb = float(limits.median_fb[i])
    events = unit_fb * scan.efficiency[i] * scan.luminosity_inv_fb
    signal = _sample("signal", float(events), _normsys("signal_scale", signal_uncertainty))
    signal["modifiers"].insert(0, {"name": "mu", "type": "normfactor", "data": None})
    samples = [signal]
    for p, name in enumerate(scan.samples):
        rows, weight = scan.rows[p, i] + 1 / 3, scan.row_weight[p, i]
        one = _sample(name, float(rows * weight), _normsys(f"norm_{name}", normalisation[p]))
        statistics = {"name": f"mc_{name}", "type": "shapesys", "data": [math.sqrt(rows) * weight]}
        one["modifiers"].append(statistics)
        samples.append(one)
    n = limits.n_observed[i]
    expected = round(sum(s["data"][0] for s in samples[1:]))
    return {
        "channels": [{"name": CHANNEL, "samples": samples}],
        "observations": [{"name": CHANNEL, "data": [float(n) if math.isfinite(n) else expected]}],
        "measurements": [
            {
                "name": f"mu = 1 is {unit_fb:.9g} fb",
                "config": {
                    "poi": "mu",
                    "parameters": [{"name": "mu", "bounds": [[0.0, 50.0]], "inits": [1.0]}],
                },
            }
        ],
        "version": "1.0.0",
    }


def _sample(name: str, events: float, modifiers: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "data": [events], "modifiers": modifiers}


def _normsys(name: str, relative: float) -> list[dict[str, Any]]:
    if relative <= 0:
        return []
    scale = {"hi": 1 + relative, "lo": 1 / (1 + relative)}
    return [{"name": name, "type": "normsys", "data": scale}]
