"""Scan and limits of events in memory: the same counts and formulas as in a run.

    found = scan(model, table)            efficiency, background and sigma_min between the masses
    limits(found, level=0.9)              expected limits in fb; with data also observed ones

Events are judged by the network of their fold. p-values over the whole scan need toys of the run
(`punzi limit`) and stay nan here, as do sidebands and cross sections of a coupling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.inputs.arrays import ColumnsError
from analysis.limit.methods import METHOD_TEXT, counted
from analysis.limit.scan import counted_scan, scan_windows
from limits.expectation import Expectation
from models.results import Floats, Limits, Scan
from models.scoring import passes
from models.sensitivity import PunziFormula
from models.trained import TrainedModel
from selection.table import EventTable


@dataclass(frozen=True, eq=False)
class _InBetween:
    """Widths of a model's windows; between their masses ln sigma is a straight line."""

    mass_gev: Floats
    width: Floats

    def sigma(self, mass_gev: Floats) -> Floats:
        return np.exp(np.interp(mass_gev, self.mass_gev, np.log(self.width)))


def scan(
    model: TrainedModel,
    table: EventTable,
    *,
    masses_gev: Sequence[float] | None = None,
    step_sigma: float = 1.0,
    formula: PunziFormula | None = None,
) -> Scan:
    """Signal and background in windows from the first to the last simulated mass.

    masses_gev: of the scan; without any, peaks lie step_sigma widths apart. table: as the model was
    trained on, or another one with the same masses. formula: of sigma_min, if not the usual one.
    """
    cut = model.conditions.cut
    if cut is None:
        msg = "the model has no cut, so nothing can be counted; give one: models.trained.with_cut"
        raise ColumnsError(msg)
    windows = model.windows
    score = model.score(table.features, model.fold_of(table.identity))
    keep = passes(score, cut)
    names = np.array(table.sample_names)
    passing = {
        "axis": table.axis[keep],
        "weight": table.weight[keep],
        "sample": names[table.sample[keep]],
        "signal_mass_gev": table.signal_mass_gev[keep],
    }
    at = scan_windows(
        _InBetween(windows.mass_gev, windows.sigma),
        windows,
        masses_gev=None if masses_gev is None else np.asarray(masses_gev, np.float64),
        step_sigma=step_sigma,
    )
    return counted_scan(
        passing,
        table.take(~table.is_signal),
        (at, windows),
        formula=formula or PunziFormula(model.conditions.luminosity_inv_fb),
        scales=(1.0, 1.0),
        network=0,
    )


def limits(
    found: Scan,
    *,
    level: float = 0.90,
    uncertainty: Mapping[str, float] | None = None,
    signal_uncertainty: float = 0.0,
    data: Floats | None = None,
) -> Limits:
    """Limits in fb, and of data local p-values, as one count per window gives them.

    uncertainty: relative, of the rate of a background; signal_uncertainty: of efficiency and
    luminosity, that of the simulation's size comes to it. data: axis (n,) of the events that pass,
    of the luminosity of the scan; they are blind until you give them.
    """
    known = dict(uncertainty or {})
    unknown = [name for name in known if name not in found.samples]
    if unknown:
        msg = f"uncertainty of {unknown[0]!r}: the scan has the samples {', '.join(found.samples)}"
        raise ColumnsError(msg)
    seen = found.efficiency > 0
    counted_error = np.divide(
        found.efficiency_error, found.efficiency, out=np.zeros(len(seen)), where=seen
    )
    expectation = Expectation(
        rows=found.rows.T,
        row_weight=found.row_weight.T,
        normalisation=np.array([known.get(name, 0.0) for name in found.samples]),
        signal_uncertainty=np.hypot(counted_error, signal_uncertainty),
    )
    nothing = np.full(len(found.mass_gev), np.nan)
    return Limits(
        level=level,
        method=METHOD_TEXT["counting"],
        luminosity_inv_fb=found.luminosity_inv_fb,
        mass_gev=found.mass_gev,
        too_small=found.too_small,
        **counted(found, expectation, data, level=level),
        global_lines=np.full(3, np.nan),
        cross_section_fb=nothing,
        coupling_reference=np.nan,
    )
