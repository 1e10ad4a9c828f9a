"""`punzi train`: windows from the signal, then many networks, each saved as it finishes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysis.run.code import code_digest
from analysis.run.executors import dask_client
from analysis.run.folder import RunFolder
from analysis.run.provenance import provenance
from analysis.run.stamps import Stamp, stamp_of
from analysis.select.index import load_inputs
from analysis.select.skim import read_table
from analysis.terminal.console import progress
from analysis.train.outcome import left_out_seeds
from analysis.train.recipes import Recipe, save_mass_network, save_networks
from analysis.train.windows import fit_windows, load_windows, save_windows
from models.mass_input import with_mass
from models.training.ensemble import Member, train_ensemble
from models.training.loop import Progress, TrainedNetworks
from models.training.settings import BCE_MASS, with_epochs, with_mass_input
from models.training.training_set import TrainingSet, training_sets
from selection.errors import UserError
from selection.table import EventTable
from selection.windows import MassWindows, hypothesis_index

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.config.settings import TrainingSection, WindowSettings
    from analysis.run.executors import Execution
    from analysis.select.index import Selection

log = logging.getLogger(__name__)


class TrainError(UserError):
    """Training cannot start; the message says what is missing."""


@dataclass(frozen=True)
class SimulatedEvents:
    """The simulated events of a run and the windows of all its masses."""

    table: EventTable
    windows: MassWindows
    trained: npt.NDArray[np.bool_]  # (n_windows,) is the mass used in training?
    fingerprint: str  # of the selection of simulated events: new data train nothing again


def without_data(config: Configuration, selection: Selection) -> Selection:
    """Signal and background of the skim; data never enter training or evaluation."""
    data = {name for name, sample in config.samples.items() if sample.kind == "data"}
    return replace(selection, parts=tuple(p for p in selection.parts if p.sample not in data))


def simulated_table(config: Configuration, selection: Selection) -> EventTable:
    parts = without_data(config, selection).parts
    if all(np.isfinite(part.mass_gev) for part in parts):
        msg = "the configuration has no background sample; training needs signal and background"
        raise TrainError(msg)
    return read_table(parts)


def simulated_events(
    run: RunFolder, config: Configuration, selection: Selection
) -> SimulatedEvents:
    """Event table and windows; the windows are fitted when they are out of date."""
    table = simulated_table(config, selection)
    settings, masses = config.settings.windows, config.masses_gev
    if not masses:
        msg = "the configuration has no signal sample; training needs signal and background"
        raise TrainError(msg)
    shards = [part.shard.name for part in selection.parts if np.isfinite(part.mass_gev)]
    squared = config.definition.axis.squared
    stamp = stamp_of(
        signal_shards=shards,
        windows=settings,
        masses_gev=masses,
        squared=squared,
        code=code_digest("analysis.train.windows"),
    )
    if not run.is_current("windows", stamp):
        save_windows(run.windows, *fit_windows(table, masses, settings, squared=squared))
        run.finish("windows", stamp, [run.windows])
    windows = load_windows(run.windows)
    trained = trained_masses(table, windows, settings)
    return SimulatedEvents(table, windows, trained, without_data(config, selection).fingerprint)


def trained_masses(
    table: EventTable, windows: MassWindows, settings: WindowSettings
) -> npt.NDArray[np.bool_]:
    """Every n-th mass (n_windows,), but for those with too few events to be learnt from."""
    own = hypothesis_index(windows, table.signal_mass_gev)
    events = np.bincount(own[own >= 0], minlength=len(windows))
    wanted = np.arange(len(windows)) % settings.train_every == 0
    few = wanted & (events < settings.min_events)
    for mass, n in zip(windows.mass_gev[few], events[few], strict=True):
        log.warning(
            "%g GeV has %d selected events, %d are wanted (windows.min_events): not trained on",
            mass,
            n,
            settings.min_events,
        )
    trained: npt.NDArray[np.bool_] = wanted & ~few
    if not trained.any():
        msg = f"no mass has {settings.min_events} selected events (windows.min_events): no training"
        raise TrainError(msg)
    return trained


def split_sets(
    config: Configuration, simulated: SimulatedEvents, *, fold: int
) -> tuple[TrainingSet, TrainingSet]:
    """What the network of a fold is trained on, and what it judges, in the trained windows."""
    return training_sets(
        simulated.table,
        simulated.windows.take(simulated.trained),
        luminosity_inv_fb=config.luminosity_inv_fb,
        folds=config.settings.folds,
        fold=fold,
    )


def train_networks(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, execution: Execution
) -> None:
    """Train the networks that are missing or out of date."""
    section = config.settings.training
    sets = [split_sets(config, simulated, fold=k) for k in range(section.folds)]
    settings = config.settings.training_settings()
    weights, n_masses = settings.hypothesis_weights, sets[0][0].n_masses
    if weights is not None and len(weights) != n_masses:
        msg = f"training.hypothesis_weights has {len(weights)} values for {n_masses} masses"
        raise TrainError(msg)
    inputs = {"training_sets": [pair[0].fingerprint for pair in sets], "files": load_inputs(run)}
    origin = provenance(config.model_dump(mode="json"), inputs)
    save = partial(save_networks, run, config, simulated, origin)
    _train(run, section, Recipe("train", sets, settings, save), execution)
    if section.bce_mass:
        windows = simulated.windows.take(simulated.trained)
        told = replace(simulated, table=with_mass(simulated.table, windows, seed=section.seed))
        sets = [split_sets(config, told, fold=k) for k in range(section.folds)]
        keep = partial(save_mass_network, run)
        recipe = Recipe("train-mass", sets, with_mass_input(settings), keep)
        _train(run, section, recipe, execution)
    for texts in left_out_seeds(run, section).values():
        for text in texts:
            log.warning("left out of the mean over seeds: %s", text)
    kept = {"history", *(s.name for s in settings.stages), *([BCE_MASS] * section.bce_mass)}
    about = {"networks": section.networks, "seeds": section.seeds, "folds": section.folds}
    others = _of_other_ensembles(run, section, kept)
    if not run.is_current("train", stamp_of(**about, to_remove=[path.name for path in others])):
        for path in others:
            path.unlink()
        run.finish("train", stamp_of(**about, to_remove=[]), [])


def _of_other_ensembles(run: RunFolder, section: TrainingSection, kept: set[str]) -> list[Path]:
    """Files that an earlier, larger ensemble left; kept: how names of files begin."""

    def belongs(number: int, fold: int, path: Path) -> bool:
        count = section.networks * (1 if path.parent == run.models else section.seeds)
        stem = path.name.rpartition("-")[0].replace("net", "punzi")
        return number < count and fold < section.folds and stem in kept

    return [found[-1] for found in run.numbered_files() if not belongs(*found)]


def _train(run: RunFolder, section: TrainingSection, recipe: Recipe, execution: Execution) -> None:
    """The trainings of a recipe that are missing or out of date."""
    sets, settings = recipe.sets, recipe.settings
    code = code_digest("analysis.train")
    events = [[p.fingerprint for p in pair] for pair in sets]
    numbers = {section.seed + j: j for j in range(section.networks * section.seeds)}
    members = [Member(seed, fold) for seed in numbers for fold in range(section.folds)]

    def name(member: Member) -> str:
        return f"{recipe.name}-{numbers[member.seed]:02d}.{member.fold}"

    def stamp(member: Member) -> Stamp:
        own = {"events": events[member.fold], "seed": member.seed, "code": code}
        return stamp_of(training=asdict(settings), **own)

    due = run.due({name(member): stamp(member) for member in members})
    missing = [member for member in members if name(member) in due]
    _describe(recipe, len(missing), len(members))

    def finished(member: Member, result: TrainedNetworks) -> None:
        number = numbers[member.seed]
        run.finish(name(member), stamp(member), recipe.save(result, (number, member.fold)))
        log.info(
            "network %d, fold %d (seed %d): %s",
            number // section.seeds,
            member.fold,
            member.seed,
            result.status,
        )

    if not missing:
        return
    lasts = [sum(s.rows for s in with_epochs(settings, len(pair[0])).stages) for pair in sets]
    total = sum(lasts[member.fold] for member in missing)
    on_dask = dask_client(workers=execution.workers, cluster=execution.cluster)
    with (
        progress(recipe.name, total) as advance,
        on_dask if execution.executor == "dask" else nullcontext() as client,
    ):
        train_ensemble(
            sets,
            settings,
            members=missing,
            workers=execution.workers,
            finished=finished,
            progress=_epoch_reporter(advance),
            checkpoints=run.checkpoints,
            client=client,
        )


def _describe(recipe: Recipe, missing: int, networks: int) -> None:
    train, judged = recipe.sets[0]
    log.info(
        "%s: %d events (%d signal) at %d masses, %d judged, in each of %d folds; %d of %d "
        "networks to train",
        recipe.name,
        len(train),
        int(train.group_start[train.n_masses]),
        train.n_masses,
        len(judged),
        len(recipe.sets),
        missing,
        networks,
    )


def _epoch_reporter(advance: Callable[..., None]) -> Callable[[Member, Progress], None]:
    def report(member: Member, state: Progress) -> None:
        left = f"{state.seconds_left:.0f} s left" if state.seconds_left < 1e6 else ""
        advance(
            1,
            f"seed {member.seed} fold {member.fold} {state.stage} loss {state.train_loss:.4g} "
            f"{state.epochs_per_second:.0f} epochs/s {left}",
        )

    return report
