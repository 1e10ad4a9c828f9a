"""`punzi batches`: what the batch size does to the Punzi-loss, one training per size.

All start from the same seed and the same BCE stage; only the batch size of the Punzi stage differs.
The loss in the histories is always that of all events at once. Simple random batches, as published:
their instability at small sizes is what the study shows.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, read_json, write_json
from analysis.run.stamps import stamp_of
from analysis.terminal.console import Advance, progress
from analysis.train.stage import SimulatedEvents, split_sets
from models.results import LossHistory, to_json
from models.training.loop import Progress, TrainingDiverged, train_network
from models.training.losses import loss_of
from models.training.settings import TrainingSettings, with_epochs
from models.training.training_set import TrainingSet

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)

SIZES = (10_000, 50_000, 100_000, 400_000, 1_200_000, None)  # None: all events in one batch


def with_batch_size(settings: TrainingSettings, size: int | None) -> TrainingSettings:
    """The same training with another batch size in its Punzi stage."""
    bce, punzi, *_ = settings.stages
    return replace(settings, stages=(bce, replace(punzi, batch_size=size, batching="random")))


def study_batches(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, *, workers: int
) -> None:
    """Make the histories that are missing or out of date."""
    section = config.settings.training
    sets = split_sets(config, simulated, fold=0)
    base = config.settings.training_settings()
    sizes = [size for size in SIZES if size is None or size < len(sets[0])]
    trainings = [with_epochs(with_batch_size(base, size), len(sets[0])) for size in sizes]
    total = sum(stage.rows for settings in trainings for stage in settings.stages)
    with progress("batches", total) as advance:
        for size in sizes:
            settings = with_batch_size(base, size)
            name = "mono" if size is None else f"{size:07d}"
            path = run.batch_study / f"{name}.json"
            stamp = stamp_of(
                training=asdict(settings),
                seed=section.seed,
                events=sets[0].fingerprint,
                code=code_digest("analysis.train"),
            )
            if run.is_current(f"batches-{name}", stamp):
                continue
            records = _histories(sets, settings, section.seed, run.batch_study, workers, advance)
            write_json(path, [to_json(record) for record in records])
            run.finish(f"batches-{name}", stamp, [path])


def _histories(
    sets: tuple[TrainingSet, TrainingSet],
    settings: TrainingSettings,
    seed: int,
    folder: Path,
    workers: int,
    advance: Advance,
) -> list[LossHistory]:
    """The history of one training, or none if it diverged."""
    size = settings.stages[1].batch_size
    label = "one batch" if size is None else f"{size:.1e}".replace("e+0", "e")

    def report(state: Progress) -> None:
        advance(1, f"{label} {state.stage} loss {state.train_loss:.4g}")

    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / f"{label.replace(' ', '-')}.checkpoint.safetensors"
    data, held_out = sets
    try:
        result = train_network(
            data,
            held_out,
            settings,
            seed=seed,
            threads=workers,
            checkpoint=checkpoint,
            progress=report,
        )
    except TrainingDiverged as error:
        log.warning("batch size %s: %s", label, error)
        return []
    checkpoint.unlink(missing_ok=True)
    rows = result.history.of_stage(1)
    stage = settings.stages[1]
    loss = loss_of(stage, settings, luminosity_inv_fb=data.luminosity_inv_fb)
    if result.status == "failed":
        log.warning("batch size %s failed: %s", label, "; ".join(result.reasons))
        label += " (failed)"
    return [
        LossHistory(
            stage=stage.name,
            label=label,
            loss_name=loss.text,
            epoch=rows.epoch.astype(np.float64),
            training=rows.train_loss,
            validation=rows.validation_loss,
            learning_rate=rows.learning_rate,
        )
    ]


def final_losses(run: RunFolder) -> dict[str, float]:
    """Label -> loss after the last epoch."""
    found = {}
    for file in sorted((run.batch_study).glob("*.json")):
        for record in read_json(file):
            found[record["label"]] = record["training"][-1]
    return found
