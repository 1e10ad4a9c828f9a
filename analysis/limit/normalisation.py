"""Factors of backgrounds from control regions, and what they change.

    b_p -> f_p b_p,    u_p -> sqrt(u_p^2 + (error_p / f_p)^2)

in the scan, the limits and the figures; training and figures of merit stay as they are. u_p, the
`uncertainty` of the sample, is then what the factor may change from the regions to the search
region. Factors are taken as independent in the limits; their correlations are written down.
Off by default: no file, no factor.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.run.folder import RunFolder, read_json, write_json
from analysis.select.histograms import quantity_axes, quantity_values
from analysis.select.index import load_selection
from analysis.select.recorded import data_luminosity_inv_fb
from analysis.select.skim import read_table
from limits.agreement import joined_bins
from limits.normalisation import Counts, Factors, fit_factors
from models.results import Floats
from selection.table import EventTable

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.train.stage import SimulatedEvents

log = logging.getLogger(__name__)


def fit_normalisation(run: RunFolder, config: Configuration) -> None:
    """Fit, write and tell the factors; without `normalisation` remove those of an earlier run."""
    wanted = config.normalisation
    if wanted is None:
        run.normalisation.unlink(missing_ok=True)
        return
    found = fit_factors(region_counts(run, config), wanted.samples)
    write_json(run.normalisation, _plain(found, wanted.regions))
    for line in factor_lines(run):
        log.info("normalisation: %s", line)


def region_counts(run: RunFolder, config: Configuration) -> Counts:
    """Data and backgrounds at their luminosity, in all bins of all regions one after the other."""
    wanted = config.normalisation
    names = tuple(n for n, sample in config.samples.items() if sample.kind == "background")
    scale = data_luminosity_inv_fb(config) / config.luminosity_inv_fb
    data, events, squares = [], [], []
    for region in wanted.regions if wanted else ():
        selected = load_selection(run.region(region)).parts
        table = read_table([part for part in selected if np.isnan(part.mass_gev)])
        at = _bins(table, config, region)
        samples = np.array(table.sample_names)[table.sample]
        size = int(at.max(initial=0)) + 1

        def summed(name: str, power: int) -> Floats:
            rows = samples == name  # noqa: B023
            w = (table.weight[rows] * scale) ** power  # noqa: B023
            return np.bincount(at[rows], w, minlength=size).astype(np.float64)  # noqa: B023

        e, v = (np.array([summed(n, k) for n in names]).T for k in (1, 2))
        recorded = np.isin(samples, [n for n, s in config.samples.items() if s.kind == "data"])
        n = np.bincount(at[recorded], minlength=size).astype(np.float64)
        firsts = joined_bins(e.sum(axis=1), v.sum(axis=1)) or [0]
        data.append(np.add.reduceat(n, firsts))
        events.append(np.add.reduceat(e, firsts))
        squares.append(np.add.reduceat(v, firsts))
    return Counts(np.concatenate(data), np.concatenate(events), np.concatenate(squares), names)


def _bins(table: EventTable, config: Configuration, region: str) -> Any:
    """Bin of each event (n,) with both flows; all in one without a quantity."""
    quantity = config.normalisation.quantity if config.normalisation else None
    if quantity is None:
        return np.zeros(len(table), np.int64)
    search = config.region_searches[region]
    features = dict(zip(table.feature_names, table.features.T, strict=True))
    values = quantity_values(quantity, search, {"axis": table.axis, **features})
    edges = np.asarray(quantity_axes(search)[quantity].edges)
    return np.digitize(values.astype(np.float64), edges)


def _plain(found: Factors, regions: tuple[str, ...]) -> dict[str, Any]:
    return {
        "regions": list(regions),
        "samples": list(found.names),
        "factor": found.value.tolist(),
        "error": found.error.tolist(),
        "correlation": found.correlation.tolist(),
        "deviance": found.deviance,
        "ndf": found.ndf,
    }


def load_normalisation(run: RunFolder) -> dict[str, Any]:
    """As it was fitted; empty where no factors are."""
    found: dict[str, Any] = {}
    if run.normalisation.exists():
        found = read_json(run.normalisation)
    return found


def factors_of(run: RunFolder) -> dict[str, float]:
    """Sample -> factor of its events; those that are not there have 1."""
    found = load_normalisation(run)
    return dict(zip(found["samples"], found["factor"], strict=True)) if found else {}


def factor_lines(run: RunFolder) -> list[str]:
    """Factors with their errors, correlations and the quality of the fit, for a person."""
    found = load_normalisation(run)
    if not found:
        return []
    names, c = found["samples"], found["correlation"]
    lines = [
        f"{name}: factor {f:.3f} ± {e:.3f}"
        for name, f, e in zip(names, found["factor"], found["error"], strict=True)
    ]
    lines += [
        f"correlation of {names[i]} and {names[j]}: {c[i][j]:+.2f} (taken as 0 in the limits)"
        for j in range(len(names))
        for i in range(j)
    ]
    fit = f"{found['deviance']:.1f} for {found['ndf']} degrees of freedom"
    return [*lines, f"fitted in {', '.join(found['regions'])}; −2 ln L = {fit}"]


def with_errors(config: Configuration, run: RunFolder) -> Configuration:
    """The configuration with the errors of the factors in the `uncertainty` of the samples."""
    found = load_normalisation(run)
    if not found:
        return config
    samples = dict(config.samples)
    for name, f, e in zip(found["samples"], found["factor"], found["error"], strict=True):
        before = getattr(samples[name], "uncertainty", 0.0)
        u = float(np.hypot(before, e / f))
        samples[name] = samples[name].model_copy(update={"uncertainty": u})
    return config.model_copy(update={"samples": samples})


def with_factors(run: RunFolder, simulated: SimulatedEvents) -> SimulatedEvents:
    """Simulated events with the factors in the weights of the backgrounds."""
    factors = factors_of(run)
    if not factors:
        return simulated
    table = simulated.table
    by_sample = np.array([factors.get(name, 1.0) for name in table.sample_names])
    return replace(simulated, table=replace(table, weight=table.weight * by_sample[table.sample]))
