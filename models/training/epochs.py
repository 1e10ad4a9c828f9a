"""The epochs of one training: the loss of all events, and steps over the batches of an epoch.

    whole          L(S) of all events: the loss that is reported
    of_batches     L(scale * S_batch) of one batch after the other, for any optimiser
    compiled       one epoch, steps and all, in compiled code

S are group sums of what the loss asks for. Random batches of the weighted BCE are small and have no
groups: bce_epoch.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.adam import give_back, memory_of
from models.training.batches import (
    Deal,
    Room,
    random_batches,
    room_for,
    shuffled_in_groups,
    stratified_batches,
)
from models.training.bce_epoch import bce_rows, bce_weights, eager_bce_losses, fused_bce_epoch
from models.training.deal import random_order
from models.training.group_sums import Map, SumsBy, group_sums, is_fusible
from models.training.losses import Loss, loss_of
from models.training.punzi_epoch import fused_punzi_epoch
from models.training.settings import Stage, TrainingSettings
from models.training.training_set import TrainingSet

CompiledEpoch = Callable[[tuple[int, ...], float], float]  # (seed, rate) -> mean loss of batches
SHUFFLE = 1_000_000_007  # in place of an epoch, for the one shuffle of a stage


@dataclass(frozen=True)
class Epochs:
    """Events, settings and seed of one training; the rest changes roundings at most."""

    data: TrainingSet
    settings: TrainingSettings
    seed: int
    sums_by: SumsBy = "auto"
    over: Map = map
    threads: int = 1

    @property
    def formula(self) -> PunziFormula:
        return self.settings.punzi_formula(self.data.luminosity_inv_fb)

    def loss(self, stage: Stage) -> Loss:
        return loss_of(stage, self.settings, luminosity_inv_fb=self.data.luminosity_inv_fb)

    def whole(self, network: PunziNet, stage: Stage, data: TrainingSet) -> Tensor:
        """Loss of all events of `data`, differentiable; nan without events."""
        loss = self.loss(stage)
        sums = group_sums(
            network, data.whole, quantity=loss.quantity, by=self.sums_by, over=self.over
        )
        return loss.of(sums, data)

    def of_batches(
        self,
        network: PunziNet,
        stage: Stage,
        seed: tuple[int, ...],
        left_out: npt.NDArray[np.int64],
    ) -> Iterator[Tensor]:
        """Losses of the batches of one epoch, each at the weights of the moment it is asked for.

        left_out (n_masses,) counts, in place, the batches in which a mass had no efficiency.
        """
        loss, size = self.loss(stage), stage.batch_size or len(self.data)
        if loss.is_weighted_bce and stage.batching == "random":
            order = random_order(len(self.data), seed)
            yield from eager_bce_losses(network, self.data, self.bce_weight, order, batch_size=size)
            return
        for batch in self._deal(stage, seed):
            sums = group_sums(
                network, batch.events, quantity=loss.quantity, by=self.sums_by, over=self.over
            )
            if loss.quantity == "score":
                left_out += sums.detach().numpy()[: self.data.n_masses] <= 0
            yield loss.of(sums * torch.from_numpy(batch.scale), self.data)

    def compiled(
        self,
        network: PunziNet,
        stage: Stage,
        optimizer: torch.optim.Optimizer,
        left_out: npt.NDArray[np.int64],
    ) -> CompiledEpoch | None:
        """One epoch of a stage in compiled code; None where only the general way is open."""
        size, loss = stage.batch_size, self.loss(stage)
        if self.sums_by == "torch" or not is_fusible(network) or size is None:
            return None
        if loss.is_weighted_bce and stage.batching == "random" and stage.optimizer == "sgd":
            return self._by_events(network, stage, size)
        if loss.quantity == "score":
            return self._by_groups(network, stage, optimizer, left_out)
        return None

    def _by_events(self, network: PunziNet, stage: Stage, size: int) -> CompiledEpoch:
        rows, wanted = bce_rows(self.data, network), stage.plateau_on == "epoch_mean"

        def epoch(seed: tuple[int, ...], rate: float) -> float:
            order = random_order(len(self.data), seed)
            return fused_bce_epoch(
                network, rows, order, batch_size=size, learning_rate=rate, wants_loss=wanted
            )

        return epoch

    def _by_groups(
        self,
        network: PunziNet,
        stage: Stage,
        optimizer: torch.optim.Optimizer,
        left_out: npt.NDArray[np.int64],
    ) -> CompiledEpoch:
        loss = self.loss(stage)

        def slopes(sums: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            left_out[:] += sums[: self.data.n_masses] <= 0
            return loss.slopes(sums, self.data)

        def epoch(seed: tuple[int, ...], rate: float) -> float:
            deal = self._deal(stage, seed)
            adam = memory_of(optimizer, network) if stage.optimizer == "adam" else None
            mean = fused_punzi_epoch(
                network, deal, slopes, learning_rate=rate, threads=self.threads, adam=adam
            )
            if adam is not None:
                give_back(adam, optimizer, network)
            return mean

        return epoch

    def _deal(self, stage: Stage, seed: tuple[int, ...]) -> Deal:
        size = stage.batch_size or len(self.data)
        if stage.batching == "random":
            return random_batches(self.data, size, seed, self.room)
        return stratified_batches(self.shuffled, size, seed)

    @cached_property
    def shuffled(self) -> TrainingSet:
        """The events in random order inside their groups, for stratified batches."""
        return shuffled_in_groups(self.data, (self.seed, SHUFFLE))

    @cached_property
    def room(self) -> Room:
        """Where the random batches of every epoch lie."""
        return room_for(self.data)

    @cached_property
    def bce_weight(self) -> npt.NDArray[np.float32]:
        return bce_weights(self.data)

    def fingerprint(self, validation: TrainingSet) -> str:
        """Hash of all that decides the result."""
        parts = [asdict(self.settings), self.seed, self.data.fingerprint, validation.fingerprint]
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
