"""`punzi train`: windows from the signal, then many networks, each saved as it finishes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis.config import Configuration
from analysis.console import progress
from analysis.executors import dask_client
from analysis.runs import RunFolder, code_digest, digest, provenance, write_json
from analysis.samples import Data
from analysis.select import Execution, Selection
from analysis.skim import read_table
from analysis.windows_file import fit_windows, load_windows, save_windows
from models.ensemble import train_ensemble
from models.trained import Conditions, from_network, save_model
from models.training import Progress, TrainedNetworks
from models.training_set import TrainingSet, training_sets
from selection.table import EventTable, FloatArray
from selection.windows import MassWindows

log = logging.getLogger(__name__)

WINDOWS = "windows.json"


class TrainError(Exception):
    """Training cannot start; the message says what is missing."""


@dataclass(frozen=True)
class Prepared:
    """The simulated events of a run and their windows."""

    table: EventTable
    windows: MassWindows

    def trained_windows(self, train_every: int) -> MassWindows:
        return self.windows.take(slice(0, None, train_every))


def simulated_events(config: Configuration, selection: Selection) -> EventTable:
    """Signal and background of the skim; data never enter training or evaluation."""
    data = {name for name, sample in config.samples.items() if isinstance(sample, Data)}
    parts = [part for part in selection.parts if part.sample not in data]
    if all(np.isfinite(part.mass_gev) for part in parts):
        msg = "the configuration has no background sample; training needs signal and background"
        raise TrainError(msg)
    return read_table(parts)


def prepare(run: RunFolder, config: Configuration, selection: Selection) -> Prepared:
    """Event table and windows; the windows are fitted when they are out of date."""
    table = simulated_events(config, selection)
    settings, masses = config.settings.windows, config.signal[1].masses
    shards = [part.shard.name for part in selection.parts if np.isfinite(part.mass_gev)]
    stamp = digest(shards, settings, masses, code_digest("selection"))
    path = run / WINDOWS
    if not run.is_current("windows", stamp):
        save_windows(path, *fit_windows(table, masses, settings))
        run.finish("windows", stamp, [path])
    return Prepared(table, load_windows(path))


def split_sets(config: Configuration, ready: Prepared) -> tuple[TrainingSet, TrainingSet]:
    """Training and validation part of the events in the windows of the trained masses."""
    return training_sets(
        ready.table,
        ready.trained_windows(config.settings.windows.train_every),
        luminosity_inv_fb=config.luminosity_inv_fb,
        validation_fraction=config.settings.training.validation_fraction,
    )


def model_path(run: RunFolder, classifier: str, network: int) -> Path:
    """`models/net-00.safetensors` for the Punzi-net, `models/bce-00.safetensors` beside it."""
    stem = "net" if classifier == "punzi" else classifier
    return run / "models" / f"{stem}-{network:02d}.safetensors"


def history_path(run: RunFolder, network: int) -> Path:
    return run / "models" / f"history-{network:02d}.json"


def train(run: RunFolder, config: Configuration, ready: Prepared, how: Execution) -> list[Path]:
    """Train the networks that are missing or out of date; the Punzi-nets' files in order."""
    section = config.settings.training
    sets = split_sets(config, ready)
    settings = config.settings.training_settings()
    weights = settings.hypothesis_weights
    if weights is not None and len(weights) != sets[0].n_masses:
        msg = f"training.hypothesis_weights has {len(weights)} values for {sets[0].n_masses} masses"
        raise TrainError(msg)
    stamp = digest(
        [part.fingerprint for part in sets], asdict(settings), code_digest("models", "selection")
    )
    numbers = {section.seed + i: i for i in range(section.networks)}
    missing = [s for s, i in numbers.items() if not run.is_current(f"train-{i:02d}", f"{stamp}{s}")]
    _describe(sets[0], sets[1], len(missing), section.networks)
    origin = provenance(config.model_dump(mode="json"), {"training_set": sets[0].fingerprint})

    def finished(result: TrainedNetworks) -> None:
        i = numbers[result.seed]
        files = _save(run, config, ready, result, network=i, origin=origin)
        run.finish(f"train-{i:02d}", f"{stamp}{result.seed}", files)
        log.info("network %d (seed %d): %s", i, result.seed, result.status)

    if missing:
        total = len(missing) * sum(stage.epochs for stage in settings.stages)
        on_dask = dask_client(workers=how.workers, cluster=how.cluster)
        with (
            progress("train", total) as advance,
            on_dask if how.executor == "dask" else nullcontext() as client,
        ):
            train_ensemble(
                *sets,
                settings,
                seeds=missing,
                workers=how.workers,
                finished=finished,
                progress=_epoch_reporter(advance),
                checkpoints=run / "models" / "checkpoints",
                client=client,
            )
    _remove_surplus(run, section.networks)
    return [model_path(run, "punzi", i) for i in range(section.networks)]


def _describe(train: TrainingSet, validation: TrainingSet, missing: int, networks: int) -> None:
    signal = int(train.group_start[train.n_masses])
    log.info(
        "train: %d events (%d signal) at %d masses, %d held out; %d of %d networks to train",
        len(train),
        signal,
        train.n_masses,
        len(validation),
        missing,
        networks,
    )


def _epoch_reporter(advance: Callable[..., None]) -> Callable[[Progress], None]:
    def report(state: Progress) -> None:
        left = f"{state.seconds_left:.0f} s left" if state.seconds_left < 1e6 else ""
        advance(
            1,
            f"seed {state.seed} {state.stage} loss {state.train_loss:.4g} "
            f"{state.epochs_per_second:.0f} epochs/s {left}",
        )

    return report


def _save(
    run: RunFolder,
    config: Configuration,
    ready: Prepared,
    result: TrainedNetworks,
    *,
    network: int,
    origin: dict[str, Any],
) -> list[Path]:
    """Punzi-net, BCE net and history of one training; all or, after an interrupt, none."""
    every = config.settings.windows.train_every
    trained = np.arange(len(ready.windows)) % every == 0
    cut = config.settings.evaluation.single_cut
    files = []
    for classifier, net in (("bce", result.bce), ("punzi", result.punzi)):
        if net is None:
            continue
        conditions = Conditions(
            classifier=classifier,
            cut=0.5 if cut == "optimal" else cut,
            sqrt_s_gev=config.beams.sqrt_s_gev,
            luminosity_inv_fb=config.luminosity_inv_fb,
            beams=asdict(config.beams),
            preselection=asdict(config.settings.preselection),
            training={"settings": asdict(result.settings), "seed": result.seed},
            provenance=origin,
        )
        path = model_path(run, classifier, network)
        model = from_network(net, windows=ready.windows, trained=trained, conditions=conditions)
        save_model(model, path)
        files.append(path)
    history = {name: column.tolist() for name, column in vars(result.history).items()}
    about = {
        "seed": result.seed,
        "status": result.status,
        "reasons": result.reasons,
        "notes": result.notes,
        "stages": [stage.name for stage in result.settings.stages],
        "log_loss": result.settings.log_loss,
        "history": history,
    }
    write_json(history_path(run, network), about)
    return [*files, history_path(run, network)]


def _remove_surplus(run: RunFolder, networks: int) -> None:
    """Files of networks that an earlier, larger ensemble left behind."""
    for pattern in ("net-*.safetensors", "bce-*.safetensors", "history-*.json"):
        for path in (run / "models").glob(pattern):
            if int(path.stem.rsplit("-", 1)[1]) >= networks:
                path.unlink()


def load_history(run: RunFolder, network: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(history_path(run, network).read_text())
    return content


def trained_masses(ready: Prepared, train_every: int) -> FloatArray:
    return ready.trained_windows(train_every).mass_gev


def failed_networks(run: RunFolder, networks: Sequence[int]) -> dict[int, list[str]]:
    """Networks whose training failed, with the reasons."""
    found = {i: load_history(run, i) for i in networks}
    return {i: about["reasons"] for i, about in found.items() if about["status"] == "failed"}
