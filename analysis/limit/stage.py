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

import logging
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.config.samples import mass_values
from analysis.limit.blinding import changed_after_unblinding, data_are_shown, note_unblinding
from analysis.limit.cross_sections import reference_cross_section
from analysis.limit.hepdata import write_hepdata
from analysis.limit.methods import (
    METHOD_TEXT,
    asymptotic,
    counting,
    normalisations,
    shape,
    signal_uncertainty,
)
from analysis.limit.normalisation import fit_normalisation, with_errors, with_factors
from analysis.limit.scan import make_scan, scan_windows, write_scan
from analysis.limit.workspace import write_workspaces
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, content_digest, read_json, write_csv, write_json
from analysis.run.stamps import Stamp, stamp_of
from analysis.select.index import load_inputs, load_selection
from analysis.select.recorded import data_events, data_luminosity_inv_fb
from analysis.train.outcome import failed_networks
from analysis.train.stage import SimulatedEvents
from analysis.train.windows import load_fits
from models.results import Floats, Limits, Scan, from_json, to_json, to_rows
from models.scoring import passes
from models.trained import load_model
from selection.windows import MassWindows

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.inputs.datasets import Dataset

log = logging.getLogger(__name__)


def find_limits(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, datasets: Sequence[Dataset]
) -> Limits | None:
    """Bring scan, limits and their files up to date; None where no network has a single cut."""
    network = shown_network(run, config)
    stamp = _stamp(run, config, network)
    has_cut = load_model(run.model("punzi", network)).conditions.cut is not None
    if not has_cut:
        log.warning("limit: network %d has no single cut, so there is nothing to count", network)
    if run.is_current("limit", stamp):
        log.info("limit: up to date")
        return load_limits(run) if has_cut else None
    fit_normalisation(run, config)
    if not has_cut:
        for path in (run.scan, run.scan_csv, run.limits, run.limits_csv, run.workspaces):
            path.unlink(missing_ok=True)  # of an earlier evaluation
        shutil.rmtree(run.hepdata, ignore_errors=True)
        run.finish("limit", stamp, [])
        return None
    scan = make_scan(
        run,
        config,
        with_factors(run, simulated),
        windows_of_scan(run, config, simulated.windows),
        network=network,
        luminosity_inv_fb=limit_luminosity_inv_fb(config),
    )
    write_scan(run, scan)
    if data_are_shown(config):
        note_unblinding(run, config, network=network)
    data = observed_axis(run, config, network)
    config = with_errors(config, run)
    limits = limits_of(run, config, scan, data, (simulated.windows, datasets))
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


def limit_luminosity_inv_fb(config: Configuration) -> float:
    """That of the data, if there are any; of blind data the target, where it is asked for."""
    measured = data_luminosity_inv_fb(config)
    planned = config.settings.limit.expected_for == "target" and not data_are_shown(config)
    return config.luminosity_inv_fb if planned or not measured else measured


def windows_of_scan(run: RunFolder, config: Configuration, simulated: MassWindows) -> MassWindows:
    settings = config.settings.limit
    wanted = settings.masses_gev
    return scan_windows(
        load_fits(run.windows)[1],
        simulated,
        masses_gev=None if wanted is None else np.array(mass_values(wanted)),
        step_sigma=settings.step_sigma,
    )


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


def limits_of(
    run: RunFolder,
    config: Configuration,
    scan: Scan,
    data: Floats | None,
    sources: tuple[MassWindows, Sequence[Dataset]],
) -> Limits:
    """Limits and p-values of a scan; data: axis (n,) of what passes in data that may be seen.

    sources: windows of the simulated masses, and the data sets whose files record cross sections.
    """
    settings = config.settings.limit
    windows, datasets = sources
    if settings.method == "shape":
        columns, lines = shape(run, config, scan, data, windows)
    else:
        method = counting if settings.method == "counting" else asymptotic
        columns, lines = method(run, config, scan, data)
    sigma, reference = reference_cross_section(scan.mass_gev, settings.coupling, datasets)
    return Limits(
        level=settings.level,
        method=METHOD_TEXT[settings.method],
        luminosity_inv_fb=scan.luminosity_inv_fb,
        mass_gev=scan.mass_gev,
        too_small=scan.too_small,
        **columns,
        global_lines=lines,
        cross_section_fb=sigma,
        coupling_reference=reference,
    )


def load_limits(run: RunFolder) -> Limits:
    found: Limits = from_json(read_json(run.limits))
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


def _stamp(run: RunFolder, config: Configuration, network: int) -> Stamp:
    samples = config.samples.items()
    return stamp_of(
        passing_events=content_digest(run.passing),
        windows=content_digest(run.windows),
        model=content_digest(run.model("punzi", network)),
        files={name: list(of_files.items()) for name, of_files in load_inputs(run).items()},
        limit=config.settings.limit,
        sensitivity=config.settings.sensitivity,
        luminosity_inv_fb=config.luminosity_inv_fb,
        data_luminosity_inv_fb=data_luminosity_inv_fb(config),
        uncertainty={name: getattr(sample, "uncertainty", None) for name, sample in samples},
        normalisation=_normalisation_stamp(run, config),
        code=code_digest("analysis.limit"),
    )


def _normalisation_stamp(run: RunFolder, config: Configuration) -> dict[str, str] | None:
    """Events of the regions that are fitted; None where no factors are."""
    wanted = config.normalisation
    if wanted is None:
        return None
    regions = {name: load_selection(run.region(name)).fingerprint for name in wanted.regions}
    return {"settings": str(wanted), **regions}
