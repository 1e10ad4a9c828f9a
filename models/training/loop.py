"""Training: stages one after the other on the same network.

    for stage in stages:  for epoch in stage:  for batch in epoch:  theta <- theta - step(dL/dtheta)

The stage brings the loss, the batches, the optimiser and the schedule; whatever the batches, the
loss in the history is that of all events at once (of those judged, at every tenth epoch). The
network is kept as each stage left it: that after the BCE stage is the BCE network of the
comparison. Random numbers depend on (seed, stage, epoch) alone, so a training resumes anywhere, and
the number of threads never changes a bit of the result.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.network import PunziNet
from models.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from models.training.checks import failures
from models.training.device import COMPILED, usable_device
from models.training.epochs import CompiledEpoch, Epochs
from models.training.group_sums import SumsBy, group_sums
from models.training.history import History, history_from_rows
from models.training.losses import efficiency_and_background
from models.training.refine import refine
from models.training.schedule import Plateau, after_epoch, learning_rate
from models.training.settings import Stage, TrainingSettings, with_epochs
from models.training.threads import shared_map
from models.training.training_set import TrainingSet
from selection.errors import UserError

log = logging.getLogger(__name__)

CHECKPOINT_SECONDS = 5.0
VALIDATE_EVERY = 10  # epochs; the loss of the judged events decides nothing


class TrainingDiverged(UserError):  # noqa: N818  (the name the house style uses)
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

    status "failed" comes with reasons; notes tell what is worth knowing of any network.
    """

    after: Mapping[str, PunziNet]  # stage -> the network as it left it, in the order of the stages
    history: History
    seed: int
    settings: TrainingSettings
    status: Literal["ok", "failed"]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def final(self) -> PunziNet:
        """The network that the training is for."""
        return self.after[self.settings.outcome]


def train_network(
    data: TrainingSet,
    validation: TrainingSet,
    settings: TrainingSettings,
    *,
    seed: int,
    checkpoint: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    threads: int = 1,
    sums_by: SumsBy = "auto",
) -> TrainedNetworks:
    """Train one network; resumes from `checkpoint` if that file is there and fits.

    `progress` is called after every epoch and may raise to stop. Removing the checkpoint, once the
    result is safe, is left to the caller. Raises TrainingDiverged.
    """
    v = settings.hypothesis_weights
    if v is not None and len(v) != data.n_masses:
        msg = f"{len(v)} hypothesis_weights for {data.n_masses} trained masses"
        raise ValueError(msg)
    if settings.device != COMPILED:
        usable_device(settings.device)
        sums_by = "torch"
    with shared_map(threads) as over:
        epochs = Epochs(data, with_epochs(settings, len(data)), seed, sums_by, over, threads)
        return _train(epochs, validation, checkpoint, progress)


@dataclass
class _State:
    """A training on its way: what a checkpoint holds. The only thing here that changes."""

    network: PunziNet
    optimizer: torch.optim.Optimizer
    stage: int
    epoch: int
    plateau: Plateau
    after: dict[str, dict[str, Tensor]]
    rows: list[list[float]]
    left_out: npt.NDArray[np.int64]


def _train(
    epochs: Epochs,
    validation: TrainingSet,
    path: Path | None,
    progress: Callable[[Progress], None] | None,
) -> TrainedNetworks:
    fingerprint = epochs.fingerprint(validation) if path else ""
    state = _start(epochs, load_checkpoint(path, fingerprint) if path else None)
    saved = time.monotonic()
    stages = epochs.settings.stages
    while state.stage < len(stages):
        stage = stages[state.stage]
        compiled = epochs.compiled(state.network, stage, state.optimizer, state.left_out)
        begun, first = time.monotonic(), state.epoch
        while state.epoch <= stage.epochs:
            _epoch(state, epochs, validation, compiled)
            state.epoch += 1
            if progress and state.epoch <= stage.rows:
                progress(_progress(state, epochs, time.monotonic() - begun, state.epoch - first))
            if path and time.monotonic() - saved > CHECKPOINT_SECONDS:
                save_checkpoint(_checkpoint(state, fingerprint), path)
                saved = time.monotonic()
        if stage.refine:
            if path:  # what follows has no checkpoints of its own
                save_checkpoint(_checkpoint(state, fingerprint), path)
            _refine(state, epochs, validation, progress)
        state.after[stage.name] = copy.deepcopy(state.network.state_dict())
        state.stage, state.epoch, state.plateau = state.stage + 1, 0, Plateau()
        if state.stage < len(stages):
            begins_with = stages[state.stage].begins_with
            if begins_with is not None:
                state.network.load_state_dict(state.after[begins_with])
            state.optimizer = _optimizer(state.network, stages[state.stage])
    return _result(state, epochs)


def _epoch(
    state: _State,
    epochs: Epochs,
    validation: TrainingSet,
    compiled: CompiledEpoch | None,
) -> None:
    """One row of the history, and, but for the last row of a stage, one pass over the events."""
    network, stage = state.network, epochs.settings.stages[state.stage]
    mono, last = stage.batch_size is None, state.epoch == stage.epochs
    with torch.set_grad_enabled(mono and not last):
        loss = epochs.whole(network, stage, epochs.data)
    value, held_out = float(loss.detach()), math.nan
    if len(validation) and (last or state.epoch % VALIDATE_EVERY == 0):
        with torch.no_grad():
            held_out = float(epochs.whole(network, stage, validation))
    by_batches = stage.plateau_on == "epoch_mean" and not mono
    if not by_batches:
        state.plateau = after_epoch(state.plateau, value, stage)
    rate = 0.0 if last else learning_rate(stage, state.epoch, state.plateau)
    _demand_finite(loss, state, epochs, rate)
    state.rows.append([state.stage, state.epoch, rate, value, held_out])
    if last:
        return
    mean = _steps(state, epochs, compiled, loss, rate)
    if by_batches:
        state.plateau = after_epoch(state.plateau, mean, stage)


def _refine(
    state: _State,
    epochs: Epochs,
    validation: TrainingSet,
    progress: Callable[[Progress], None] | None,
) -> None:
    """The iterations after the epochs of a stage, one row of the history each."""
    stage, begun = epochs.settings.stages[state.stage], time.monotonic()

    def held_out() -> float:
        with torch.no_grad():
            return float(epochs.whole(state.network, stage, validation))

    def after(value: float) -> None:
        judged = len(validation) > 0 and state.epoch % VALIDATE_EVERY == 0
        row = [state.stage, state.epoch, 0.0, value, held_out() if judged else math.nan]
        state.rows.append(row)
        state.epoch += 1
        if progress and state.epoch <= stage.rows:
            done = state.epoch - stage.epochs - 1
            progress(_progress(state, epochs, time.monotonic() - begun, done))

    def loss() -> Tensor:
        return epochs.whole(state.network, stage, epochs.data)

    refine(state.network, loss, iterations=stage.refine, after=after)
    if len(validation):
        state.rows[-1][4] = held_out()


def _steps(
    state: _State,
    epochs: Epochs,
    compiled: CompiledEpoch | None,
    whole: Tensor,
    rate: float,
) -> float:
    """One pass over the events, whose loss is `whole`; the mean loss of the batches."""
    stage, seed = epochs.settings.stages[state.stage], (epochs.seed, state.stage, state.epoch)
    if compiled is not None:
        mean = compiled(seed, rate)
        _demand_finite(torch.tensor(mean), state, epochs, rate)
        return mean
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    losses: Iterable[Tensor] = [whole]
    if stage.batch_size is not None:
        losses = epochs.of_batches(state.network, stage, seed, state.left_out)
    values = []
    for batch_loss in losses:
        _demand_finite(batch_loss, state, epochs, rate)
        values.append(float(batch_loss.detach()))
        state.optimizer.zero_grad()
        batch_loss.backward()
        state.optimizer.step()
    return sum(values) / len(values)


def _optimizer(network: PunziNet, stage: Stage) -> torch.optim.Optimizer:
    # foreach, not fused: fused wakes OpenMP for 81 numbers, 20 ms a step on a busy machine
    if stage.optimizer == "sgd":
        return torch.optim.SGD(network.parameters(), lr=stage.learning_rate, foreach=True)
    return torch.optim.Adam(network.parameters(), lr=stage.learning_rate, foreach=True)


def _start(epochs: Epochs, resumed: Checkpoint | None) -> _State:
    data, settings = epochs.data, epochs.settings
    network = PunziNet(
        data.features.min(axis=1),
        data.features.max(axis=1),
        hidden=settings.hidden,
        seed=epochs.seed,
    ).to(settings.device)
    if resumed is None:
        optimizer = _optimizer(network, settings.stages[0])
        return _State(
            network, optimizer, 0, 0, Plateau(), {}, [], np.zeros(data.n_masses, np.int64)
        )
    log.info("seed %d continues at stage %d, epoch %d", epochs.seed, resumed.stage, resumed.epoch)
    network.load_state_dict(resumed.network)
    optimizer = _optimizer(network, settings.stages[resumed.stage])
    for at, parameter in enumerate(network.parameters()):
        memory = {
            name.partition(".")[2]: tensor.to(parameter.device if tensor.ndim else "cpu", copy=True)
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
        after=_by_stage(resumed.after),
        rows=resumed.history.tolist(),
        left_out=resumed.left_out.numpy().copy(),
    )


def _by_stage(weights: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """`<stage>/<name>` -> tensor as stage -> name -> tensor."""
    found: dict[str, dict[str, Tensor]] = {}
    for key, tensor in weights.items():
        stage, _, name = key.partition("/")
        found.setdefault(stage, {})[name] = tensor
    return found


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
        after={
            f"{stage}/{name}": tensor
            for stage, weights in state.after.items()
            for name, tensor in weights.items()
        },
        optimizer=memory,
        history=torch.tensor(state.rows, dtype=torch.float64).reshape(-1, 5),
        left_out=torch.from_numpy(state.left_out),
    )


def _progress(state: _State, epochs: Epochs, seconds: float, done: int) -> Progress:
    stage = epochs.settings.stages[state.stage]
    rate = done / max(seconds, 1e-9)
    return Progress(
        seed=epochs.seed,
        stage=stage.name,
        epoch=state.epoch,
        epochs=stage.rows,
        train_loss=state.rows[-1][3],
        validation_loss=state.rows[-1][4],
        epochs_per_second=rate,
        seconds_left=(stage.rows - state.epoch) / rate,
    )


def _demand_finite(loss: Tensor, state: _State, epochs: Epochs, rate: float) -> None:
    if torch.isfinite(loss):
        return
    data, stage = epochs.data, epochs.settings.stages[state.stage]
    with torch.no_grad():
        sums = group_sums(state.network, data.whole, by=epochs.sums_by).numpy()
    efficiency, background = efficiency_and_background(sums, data)
    bad = ~((efficiency > 0) & np.isfinite(background))
    bad &= data.group_weight[: data.n_masses] > 0
    masses = "all masses" if bad.all() else ", ".join(f"{m:g}" for m in data.mass_gev[bad]) + " GeV"
    msg = (
        f"stage {stage.name!r} of seed {epochs.seed}: loss is {float(loss.detach())} in epoch "
        f"{state.epoch} at learning rate {rate:g}; without usable efficiency or background: "
        f"{masses if bad.any() else 'no mass'}. Lower learning_rate={stage.learning_rate:g}"
    )
    raise TrainingDiverged(msg)


def _result(state: _State, epochs: Epochs) -> TrainedNetworks:
    data, settings = epochs.data, epochs.settings
    after = {stage.name: copy.deepcopy(state.network).cpu() for stage in settings.stages}
    for name, network in after.items():
        network.load_state_dict(state.after[name])
    notes = [f"no training signal at {m:g} GeV: left out" for m in data.masses_without_events]
    seen = data.group_weight[: data.n_masses] > 0
    for mass, n in zip(data.mass_gev[seen], state.left_out[seen], strict=True):
        if n:
            notes.append(f"no efficiency at {mass:g} GeV in {n} batches: left out of them")
    reasons: tuple[str, ...] = ()
    outcome = next(stage for stage in settings.stages if stage.name == settings.outcome)
    if epochs.loss(outcome).quantity == "score":  # else no cut at 0.5 is meant
        reasons = failures(
            after[outcome.name],
            data,
            epochs.formula,
            geometric=settings.log_loss,
            sums_by=epochs.sums_by,
            over=epochs.over,
        )
    for reason in reasons:
        log.warning("seed %d failed: %s", epochs.seed, reason)
    return TrainedNetworks(
        after=after,
        history=history_from_rows(state.rows),
        seed=epochs.seed,
        settings=settings,
        status="failed" if reasons else "ok",
        reasons=reasons,
        notes=tuple(notes),
    )
