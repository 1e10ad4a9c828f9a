"""The result as a HEPData submission: `submission.yaml` and one YAML file per table.

Both bands are columns of their own, as HEPData asks; what is not known (observed limits of blind
data, a limit where nothing can pass) is "-". Checked offline by hepdata-validator in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from limits.coupling import coupling
from models.results import Floats, Limits, Scan
from selection.whole_files import write_text

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

BANDS = {
    "median_fb": "expected (median)",
    "minus1_fb": "expected, lower edge of the 68 % band",
    "plus1_fb": "expected, upper edge of the 68 % band",
    "minus2_fb": "expected, lower edge of the 95 % band",
    "plus2_fb": "expected, upper edge of the 95 % band",
    "mean_fb": "expected (mean)",
}


@dataclass(frozen=True)
class _Column:
    name: str
    units: str
    values: Floats
    errors: Floats | None = None


@dataclass(frozen=True)
class _Table:
    stem: str
    title: str
    text: str
    observable: str
    columns: Sequence[_Column] = field(default_factory=tuple)


def write_hepdata(folder: Path, config: Configuration, scan: Scan, limits: Limits) -> list[Path]:
    """All files of the submission."""
    tables = [t for t in _tables(config, scan, limits) if t.columns]
    about: list[dict[str, Any]] = [{"comment": _comment(config, limits)}]
    written = []
    for table in tables:
        name = f"{table.stem}.yaml"
        about.append(
            {
                "name": table.title,
                "description": table.text,
                "keywords": [
                    {"name": "observables", "values": [table.observable]},
                    {"name": "cmenergies", "values": [round(config.beams.sqrt_s_gev, 4)]},
                ],
                "data_file": name,
            }
        )
        mass = _Column(f"mass ({config.definition.symbol})", "GEV", limits.mass_gev)
        content = {
            "independent_variables": [_variable(mass)],
            "dependent_variables": [
                _variable(c, _qualifiers(config, limits)) for c in table.columns
            ],
        }
        write_text(folder / name, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
        written.append(folder / name)
    submission = folder / "submission.yaml"
    write_text(submission, yaml.safe_dump_all(about, sort_keys=False, allow_unicode=True))
    return [submission, *written]


def _comment(config: Configuration, limits: Limits) -> str:
    search = config.definition
    return (
        f"{search.title or search.name}: upper limits at {100 * limits.level:g} % confidence "
        f"({limits.method}) for {limits.luminosity_inv_fb:g} inverse femtobarns at "
        f"sqrt(s) = {config.beams.sqrt_s_gev:.4g} GeV."
    )


def _tables(config: Configuration, scan: Scan, limits: Limits) -> list[_Table]:
    level = f"{100 * limits.level:g} %"
    seen = {"observed_fb": "observed"} if np.isfinite(limits.n_observed).any() else {}
    names = {**seen, **BANDS}
    counts = [_Column("observed events", "", limits.n_observed)] if seen else []
    symbol = config.settings.limit.coupling.symbol
    known = np.isfinite(limits.cross_section_fb).any()
    couplings = {
        text: coupling(
            getattr(limits, name), limits.cross_section_fb, reference=limits.coupling_reference
        )
        for name, text in names.items()
    }
    return [
        _Table(
            "limit_cross_section",
            "Upper limits on the cross section",
            f"Upper limits at {level} confidence on the cross section times branching fraction.",
            "SIG",
            [_Column(f"limit, {t}", "FB", getattr(limits, n)) for n, t in names.items()],
        ),
        _Table(
            "limit_coupling",
            "Upper limits on the coupling",
            f"Upper limits at {level} confidence on the coupling {symbol}.",
            "UL",
            [_Column(f"limit on {symbol}, {t}", "", v) for t, v in couplings.items()]
            if known
            else [],
        ),
        _Table(
            "p_values",
            "p-values",
            "Probability of at least as many events without signal: at one mass (local), and "
            "of so small a local value anywhere in the scan (global).",
            "PVALUE",
            [
                _Column("local p-value", "", limits.p_local),
                _Column("local significance", "", limits.significance),
                _Column("global p-value", "", limits.p_global),
                _Column("local p-value, background from sidebands", "", limits.sideband_p),
                _Column("best cross section", "FB", limits.best_fb),
            ]
            if seen
            else [],
        ),
        _Table(
            "efficiency_background",
            "Efficiency and background",
            "Signal efficiency and expected background in the window of each mass, with the "
            "errors of the simulation's size.",
            "EFF",
            [
                *counts,
                _Column("signal efficiency", "", scan.efficiency, scan.efficiency_error),
                _Column("background events", "", scan.background, scan.background_error),
                _Column("lower edge of the window", "", scan.low),
                _Column("upper edge of the window", "", scan.high),
            ],
        ),
    ]


def _qualifiers(config: Configuration, limits: Limits) -> list[dict[str, Any]]:
    return [
        {"name": "SQRT(S)", "units": "GEV", "value": round(config.beams.sqrt_s_gev, 4)},
        {"name": "LUMINOSITY", "units": "FB-1", "value": limits.luminosity_inv_fb},
    ]


def _variable(column: _Column, qualifiers: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    header = {"name": column.name} | ({"units": column.units} if column.units else {})
    errors = [None] * len(column.values) if column.errors is None else column.errors.tolist()
    values = []
    for value, error in zip(column.values.tolist(), errors, strict=True):
        entry: dict[str, Any] = {"value": _number(value)}
        if error is not None and math.isfinite(error) and entry["value"] != "-":
            entry["errors"] = [{"label": "simulation", "symerror": _number(error)}]
        values.append(entry)
    found: dict[str, Any] = {"header": header, "values": values}
    return found | ({"qualifiers": [dict(q) for q in qualifiers]} if qualifiers else {})


def _number(value: float) -> float | str:
    """Six digits: more would pretend."""
    return float(f"{value:.6g}") if math.isfinite(value) else "-"
