"""Cross section of the signal at a known coupling: of the configuration, or of the signal files.

Files of our simulation record `cross_section_fb` and `coupling` in their metadata tree; others get
a table in the configuration (`limit.coupling`). Without either there is no limit on a coupling.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.inputs.file_report import recorded_in
from limits.coupling import branching_ratio, interpolated_cross_section
from models.results import Floats

if TYPE_CHECKING:
    from analysis.config.settings import CouplingSettings
    from analysis.inputs.datasets import Dataset

log = logging.getLogger(__name__)


def reference_cross_section(
    at_gev: Floats, settings: CouplingSettings, datasets: Sequence[Dataset]
) -> tuple[Floats, float]:
    """Cross section times branching ratio (n,) at a coupling, and the coupling; nan: not known."""
    if settings.reference is not None:
        table, reference = dict(settings.cross_sections_fb), settings.reference
    else:
        table, reference = _of_files(datasets)
    if not table:
        return np.full(len(at_gev), np.nan), float("nan")
    mass = np.array(sorted(table))
    sigma = interpolated_cross_section(at_gev, mass, np.array([table[m] for m in mass]))
    return sigma * branching_ratio(at_gev, settings.branching), reference


def _of_files(datasets: Sequence[Dataset]) -> tuple[dict[float, float], float]:
    """Mass -> cross section as the signal files record it, all at one coupling."""
    found: dict[float, tuple[float, float]] = {}
    for ds in datasets:
        if ds.kind == "signal":
            about = recorded_in(ds.files[0])
            sigma, g = about.get("cross_section_fb", 0.0), about.get("coupling", 0.0)
            if sigma > 0 and g > 0:
                found[ds.mass_gev] = (sigma, g)
    references = {g for _, g in found.values()}
    if len(references) != 1:
        log.info(
            "limit: no limit on a coupling, since the signal files record %s; "
            "limit.coupling in the configuration gives cross sections",
            "none" if not references else "several",
        )
        return {}, float("nan")
    return {mass: sigma for mass, (sigma, _) in found.items()}, references.pop()
