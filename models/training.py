"""Training: stages one after the other on the same network.

    for stage in stages:  for epoch in stage:  for batch in epoch:  theta <- theta - step(dL/dtheta)

The stage brings the loss, the batches, the optimiser and the schedule; whatever the batches, the
loss in the history is that of all events at once. Weights after the last BCE stage are kept: they
are the BCE network of the comparison. Random numbers depend on (seed, stage, epoch) alone, so a
training resumes anywhere, and the number of threads never changes a bit of the result.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.batches import random_order
from models.bce_epoch import fused_bce_epoch
from models.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from models.group_sums import Form, group_sums, is_fusible
from models.history import History, history_from_rows
from models.losses import efficiency_and_background
from models.network import PunziNet
from models.objective import Objective
from models.schedule import Plateau, after_epoch, learning_rate
from models.settings import Stage, TrainingSettings
from models.threads import shared_map
from models.training_set import TrainingSet
from models.verdict import failures

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 5.0


class TrainingDiverged(RuntimeError):  # noqa: N818  (the name the house style uses)
    """The loss is not finite; the message says where and what to change."""


@dataclass(frozen=True)
class Progress:
    """Where a training stands; handed to the caller after every epoch."""

    seed: int
    stage: str
    epoch: int  # epochs done in this stage
    epochs: int
    train_loss: float
    validation_loss: float
    epochs_per_second: float
    seconds_left: float  # of this stage


@dataclass(frozen=True)
class TrainedNetworks:
    """The outcome of one training.

    punzi is the network after the last stage, bce the one after the last BCE stage (None without
    one). status "failed" comes with reasons; notes tell what is worth knowing of any network.
    """

    punzi: PunziNet
    bce: PunziNet | None
    history: History
    seed: int
    settings: TrainingSettings
    status: Literal["ok", "failed"]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def train(
    data: TrainingSet,
    validation: TrainingSet,
    settings: TrainingSettings,
    *,
    seed: int,
    checkpoint: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    threads: int = 1,
    form: Form = "auto",
) -> TrainedNetworks:
    """Train one network; resumes from `checkpoint` if that file is there and fits.

    `progress` is called after every epoch and may raise to stop. Removing the checkpoint, once the
    result is safe, is left to the caller. Raises TrainingDiverged.
    """
    v = settings.hypothesis_weights
    if v is not None and len(v) != data.n_masses:
        msg = f"{len(v)} hypothesis_weights for {data.n_masses} trained masses"
        raise ValueError(msg)
    with shared_map(threads) as over:
        objective = Objective(data, settings, seed, form, over, threads)
        return _train(objective, validation, checkpoint, progress)


@dataclass
class _State:
    """A training on its way: what a checkpoint holds. The only thing here that changes."""

    network: PunziNet
    optimizer: torch.optim.Optimizer
    stage: int
    epoch: int
    plateau: Plateau
    after_bce: dict[str, Tensor]
    rows: list[list[float]]
    left_out: npt.NDArray[np.int64]


def _train(
    objective: Objective,
    validation: TrainingSet,
    path: Path | None,
    progress: Callable[[Progress], None] | None,
) -> TrainedNetworks:
    fingerprint = objective.fingerprint(validation) if path else ""
    state = _start(objective, load_checkpoint(path, fingerprint) if path else None)
    saved = time.monotonic()
    stages = objective.settings.stages
    while state.stage < len(stages):
        stage = stages[state.stage]
        fused = _is_fused(state.network, stage, objective)
        rows = objective.rows(state.network) if fused and stage.loss == "bce" else None
        begun, first = time.monotonic(), state.epoch
        while state.epoch <= stage.epochs:
            _epoch(state, objective, validation, fused=fused, rows=rows)
            state.epoch += 1
            if progress and state.epoch <= stage.epochs:
                progress(_progress(state, objective, time.monotonic() - begun, state.epoch - first))
            if path and time.monotonic() - saved > CHECKPOINT_SECONDS:
                save_checkpoint(_checkpoint(state, fingerprint), path)
                saved = time.monotonic()
        if stage.loss == "bce":
            state.after_bce = copy.deepcopy(state.network.state_dict())
        state.stage, state.epoch, state.plateau = state.stage + 1, 0, Plateau()
        if state.stage < len(stages):
            state.optimizer = _optimizer(state.network, stages[state.stage])
    return _result(state, objective)


def _epoch(
    state: _State,
    objective: Objective,
    validation: TrainingSet,
    *,
    fused: bool,
    rows: npt.NDArray[np.float32] | None,
) -> None:
    """One row of the history, and, but for the last row of a stage, one pass over the events."""
    network, stage = state.network, objective.settings.stages[state.stage]
    mono, last = stage.batch_size is None, state.epoch == stage.epochs
    with torch.set_grad_enabled(mono and not last):
        loss = objective.whole(network, stage, objective.data)
    value, held_out = float(loss.detach()), math.nan
    if len(validation):
        with torch.no_grad():
            held_out = float(objective.whole(network, stage, validation))
    state.plateau = after_epoch(state.plateau, value, stage)
    rate = 0.0 if last else learning_rate(stage, state.epoch, state.plateau)
    _demand_finite(loss, state, objective, rate)
    state.rows.append([state.stage, state.epoch, rate, value, held_out])
    if last:
        return
    seed = (objective.seed, state.stage, state.epoch)
    if rows is not None and stage.batch_size is not None:
        order = random_order(len(objective.data), seed)
        fused_bce_epoch(network, rows, order, batch_size=stage.batch_size, learning_rate=rate)
        return
    if fused:
        end = objective.punzi_epoch(network, stage, seed, state.left_out, learning_rate=rate)
        _demand_finite(torch.tensor(end, dtype=torch.float64), state, objective, rate)
        return
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    losses = [loss] if mono else objective.of_batches(network, stage, seed, state.left_out)
    for batch_loss in losses:
        _demand_finite(batch_loss, state, objective, rate)
        state.optimizer.zero_grad()
        batch_loss.backward()
        state.optimizer.step()


def _is_fused(network: PunziNet, stage: Stage, objective: Objective) -> bool:
    """True if the epochs of a stage run in compiled code, steps and all: gradient descent."""
    allowed = objective.form != "torch" and is_fusible(network) and stage.optimizer == "sgd"
    compiled = stage.loss == "punzi" or stage.batching == "random"
    return allowed and compiled and stage.batch_size is not None


def _optimizer(network: PunziNet, stage: Stage) -> torch.optim.Optimizer:
    # foreach, not fused: fused wakes OpenMP for 81 numbers, 20 ms a step on a busy machine
    if stage.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), lr=stage.learning_rate, foreach=True)
    return torch.optim.Adam(network.parameters(), lr=stage.learning_rate, foreach=True)


def _start(objective: Objective, resumed: Checkpoint | None) -> _State:
    data, settings = objective.data, objective.settings
    network = PunziNet(
        data.features.min(axis=1),
        data.features.max(axis=1),
        hidden=settings.hidden,
        seed=objective.seed,
    )
    if resumed is None:
        optimizer = _optimizer(network, settings.stages[0])
        return _State(
            network, optimizer, 0, 0, Plateau(), {}, [], np.zeros(data.n_masses, np.int64)
        )
    log.info(
        "seed %d continues at stage %d, epoch %d", objective.seed, resumed.stage, resumed.epoch
    )
    network.load_state_dict(resumed.network)
    optimizer = _optimizer(network, settings.stages[resumed.stage])
    for at, parameter in enumerate(network.parameters()):
        memory = {
            name.partition(".")[2]: tensor.clone()
            for name, tensor in resumed.optimizer.items()
            if name.startswith(f"{at}.")
        }
        if memory:
            optimizer.state[parameter] = memory
    return _State(
        network=network,
        optimizer=optimizer,
        stage=resumed.stage,
        epoch=resumed.epoch,
        plateau=resumed.plateau,
        after_bce=dict(resumed.after_bce),
        rows=resumed.history.tolist(),
        left_out=resumed.left_out.numpy().copy(),
    )


def _checkpoint(state: _State, fingerprint: str) -> Checkpoint:
    memory = {
        f"{at}.{name}": tensor
        for at, parameter in enumerate(state.network.parameters())
        for name, tensor in state.optimizer.state.get(parameter, {}).items()
        if isinstance(tensor, Tensor)
    }
    return Checkpoint(
        fingerprint=fingerprint,
        stage=state.stage,
        epoch=state.epoch,
        plateau=state.plateau,
        network=state.network.state_dict(),
        after_bce=state.after_bce,
        optimizer=memory,
        history=torch.tensor(state.rows, dtype=torch.float64).reshape(-1, 5),
        left_out=torch.from_numpy(state.left_out),
    )


def _progress(state: _State, objective: Objective, seconds: float, epochs: int) -> Progress:
    stage = objective.settings.stages[state.stage]
    rate = epochs / max(seconds, 1e-9)
    return Progress(
        seed=objective.seed,
        stage=stage.name,
        epoch=state.epoch,
        epochs=stage.epochs,
        train_loss=state.rows[-1][3],
        validation_loss=state.rows[-1][4],
        epochs_per_second=rate,
        seconds_left=(stage.epochs - state.epoch) / rate,
    )


def _demand_finite(loss: Tensor, state: _State, objective: Objective, rate: float) -> None:
    if torch.isfinite(loss):
        return
    data, stage = objective.data, objective.settings.stages[state.stage]
    with torch.no_grad():
        sums = group_sums(state.network, data.whole, form=objective.form)
        efficiency, background = efficiency_and_background(sums, data)
    bad = ~((efficiency > 0) & torch.isfinite(background)).numpy()
    bad &= data.group_weight[: data.n_masses] > 0
    masses = "all masses" if bad.all() else ", ".join(f"{m:g}" for m in data.mass_gev[bad]) + " GeV"
    msg = (
        f"stage {stage.name!r} of seed {objective.seed}: loss is {float(loss.detach())} in epoch "
        f"{state.epoch} at learning rate {rate:g}; without usable efficiency or background: "
        f"{masses if bad.any() else 'no mass'}. Lower learning_rate={stage.learning_rate:g}"
    )
    raise TrainingDiverged(msg)


def _result(state: _State, objective: Objective) -> TrainedNetworks:
    data, settings = objective.data, objective.settings
    bce = None
    if state.after_bce:
        bce = copy.deepcopy(state.network)
        bce.load_state_dict(state.after_bce)
    notes = [f"no training signal at {m:g} GeV: left out" for m in data.masses_without_events]
    seen = data.group_weight[: data.n_masses] > 0
    for mass, n in zip(data.mass_gev[seen], state.left_out[seen], strict=True):
        if n:
            notes.append(f"no efficiency at {mass:g} GeV in {n} batches: left out of them")
    reasons: tuple[str, ...] = ()
    if any(stage.loss == "punzi" for stage in settings.stages):
        reasons = failures(
            state.network,
            data,
            objective.formula,
            log=settings.log_loss,
            form=objective.form,
            over=objective.over,
        )
    for reason in reasons:
        log.warning("seed %d failed: %s", objective.seed, reason)
    return TrainedNetworks(
        punzi=state.network,
        bce=bce,
        history=history_from_rows(state.rows),
        seed=objective.seed,
        settings=settings,
        status="failed" if reasons else "ok",
        reasons=reasons,
        notes=tuple(notes),
    )
