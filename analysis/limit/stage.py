"""`punzi limit`: the scan, upper limits, p-values, and the files of a publication.

    scan.json      window, efficiency, background per sample at every scan mass: all that follows
                   needs nothing else
    limit.json     expected and, of data that may be seen, observed limits; p-values
    hepdata/       a submission
    workspaces.zip a pyhf workspace per mass

With a data sample everything is for its luminosity, else for the target. Data after the cut are
counted only if `limit.unblind` says so.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from analysis.config.samples import mass_values
from analysis.limit.blinding import changed_after_unblinding, data_are_shown, note_unblinding
from analysis.limit.cross_sections import reference_cross_section
from analysis.limit.hepdata import write_hepdata
from analysis.limit.scan import interval_rows, make_scan, scan_windows, write_scan
from analysis.limit.workspace import write_workspaces
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, content_digest, digest, write_csv, write_json
from analysis.select.index import load_inputs
from analysis.select.recorded import data_events, data_luminosity_inv_fb
from analysis.train.outcome import failed_networks
from analysis.train.stage import SimulatedEvents
from analysis.train.windows import load_fits
from limits.expectation import Expectation
from limits.significance import best_signal, local_p_values, significance
from limits.trials import global_p_values, scan_toys
from limits.upper import bayesian_limits, expected_limits, upper_limits
from models.results import Floats, Limits, Scan, from_json, to_json, to_rows
from models.scoring import passes
from models.trained import load_model

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset

log = logging.getLogger(__name__)

METHOD = "CLs, exact Poisson sums"


def find_limits(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, datasets: Sequence[Dataset]
) -> Limits | None:
    """Bring scan, limits and their files up to date; None where no network has a single cut."""
    network = shown_network(run, config)
    if load_model(run.model("punzi", network)).conditions.cut is None:
        log.warning("limit: network %d has no single cut, so there is nothing to count", network)
        return None
    stamp = _stamp(run, config, network)
    if run.is_current("limit", stamp):
        log.info("limit: up to date")
        return load_limits(run)
    luminosity = data_luminosity_inv_fb(config) or config.luminosity_inv_fb
    settings = config.settings.limit
    wanted = settings.masses_gev
    masses = None if wanted is None else np.array(mass_values(wanted))
    windows = scan_windows(
        load_fits(run.windows)[1],
        simulated.windows,
        masses_gev=masses,
        step_sigma=settings.step_sigma,
    )
    scan = make_scan(run, config, simulated, windows, network=network, luminosity_inv_fb=luminosity)
    write_scan(run, scan)
    if data_are_shown(config):
        note_unblinding(run, config, network=network)
    limits = limits_of(run, config, scan, observed_axis(run, config, network), datasets)
    write_json(run.limits, to_json(limits))
    write_csv(run.limits_csv, list(to_rows(limits)))
    shutil.rmtree(run.hepdata, ignore_errors=True)
    files = write_hepdata(run.hepdata, config, scan, limits)
    write_workspaces(
        run.workspaces,
        scan,
        limits,
        normalisation=normalisations(config, scan),
        signal_uncertainty=signal_uncertainty(config, scan),
    )
    outputs = [run.scan, run.scan_csv, run.limits, run.limits_csv, run.workspaces, *files]
    run.finish("limit", stamp, outputs)
    _tell(run, scan, network)
    return limits


def shown_network(run: RunFolder, config: Configuration) -> int:
    """The first whose training did not fail, or 0: the one of the figures."""
    section = config.settings.training
    failed = failed_networks(run, section)
    return next((i for i in range(section.networks) if i not in failed), 0)


def observed_axis(run: RunFolder, config: Configuration, network: int) -> Floats | None:
    """Axis (n,) of the data that pass the single cut; None without data or while they are blind."""
    table = data_events(run, config)
    if table is None or not data_are_shown(config):
        return None
    model = load_model(run.model("punzi", network))
    score = model.score(table.features, model.fold_of(table.identity))
    cut = model.conditions.cut
    return table.axis[passes(score, np.nan if cut is None else cut)]


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


def limits_of(
    run: RunFolder,
    config: Configuration,
    scan: Scan,
    data: Floats | None,
    datasets: Sequence[Dataset],
) -> Limits:
    """Limits and p-values of a scan; data: axis (n,) of what passes in data that may be seen."""
    settings = config.settings.limit
    expectation = Expectation(
        rows=scan.rows.T,
        row_weight=scan.row_weight.T,
        normalisation=normalisations(config, scan),
        signal_uncertainty=signal_uncertainty(config, scan),
    )
    per_fb = scan.efficiency * scan.luminosity_inv_fb
    per_fb = np.where(per_fb > 0, per_fb, np.nan)

    def in_fb(events: Floats) -> Floats:
        """Without efficiency every cross section is allowed."""
        return np.where(np.isnan(per_fb), np.inf, events / per_fb)

    expected = expected_limits(expectation, level=settings.level)
    nothing = np.full(len(scan.mass_gev), np.nan)
    found = dict.fromkeys(
        (
            *("observed_fb", "bayesian_fb", "n_observed", "best_fb", "best_low_fb", "best_high_fb"),
            *("p_local", "significance", "p_global"),
        ),
        nothing,
    )
    lines = np.full(3, np.nan)
    if data is not None:
        n = in_windows(data, scan.low, scan.high)
        best = best_signal(expectation, n)
        p = local_p_values(expectation, n)
        toys = scan_toys(
            expectation,
            (scan.low, scan.high),
            interval_rows(run, config, scan),
            n_toys=settings.toys,
            seed=settings.seed,
        )
        lines = np.quantile(toys.smallest_p, norm.sf([1, 2, 3]))
        found |= {
            "n_observed": n,
            "observed_fb": in_fb(upper_limits(expectation, n, level=settings.level)),
            "bayesian_fb": in_fb(bayesian_limits(expectation, n, level=settings.level)),
            "best_fb": best.signal / per_fb,
            "best_low_fb": best.low / per_fb,
            "best_high_fb": best.high / per_fb,
            "p_local": p,
            "significance": significance(p),
            "p_global": global_p_values(toys, p).p,
        }
    sigma, reference = reference_cross_section(scan.mass_gev, settings.coupling, datasets)
    return Limits(
        level=settings.level,
        method=METHOD,
        luminosity_inv_fb=scan.luminosity_inv_fb,
        mass_gev=scan.mass_gev,
        too_small=scan.too_small,
        **{
            f"{name}_fb": in_fb(getattr(expected, name))
            for name in ("minus2", "minus1", "median", "plus1", "plus2", "mean", "asimov")
        },
        **found,
        global_lines=lines,
        cross_section_fb=sigma,
        coupling_reference=reference,
    )


def in_windows(axis: Floats, low: Floats, high: Floats) -> Floats:
    """Number of events (n_windows,) inside each window; edges are exclusive."""
    ordered = np.sort(axis)
    first = np.searchsorted(ordered, low, side="right")
    return (np.searchsorted(ordered, high, side="left") - first).astype(np.float64)


def load_limits(run: RunFolder) -> Limits:
    found: Limits = from_json(json.loads(run.limits.read_text()))
    return found


def _tell(run: RunFolder, scan: Scan, network: int) -> None:
    log.info(
        "limit: %d scan masses from %.4g to %.4g GeV; simulation too small at %d of them",
        len(scan.mass_gev),
        scan.mass_gev[0],
        scan.mass_gev[-1],
        int(scan.too_small.sum()),
    )
    changed = changed_after_unblinding(run, network=network)
    if changed:
        log.warning("limit: %s", changed)


def _stamp(run: RunFolder, config: Configuration, network: int) -> str:
    samples = config.samples.items()
    return digest(
        content_digest(run.passing),
        content_digest(run.windows),
        content_digest(run.model("punzi", network)),
        load_inputs(run),
        config.settings.limit,
        config.settings.sensitivity,
        config.luminosity_inv_fb,
        data_luminosity_inv_fb(config),
        {name: getattr(sample, "uncertainty", None) for name, sample in samples},
        code_digest("analysis.limit"),
    )
