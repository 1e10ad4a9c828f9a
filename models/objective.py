"""The losses a training follows: of all events, and of the batches of one epoch.

    whole(stage)        L(S) of all events, the loss that is reported
    of_batches(stage)   L(scale * S_batch) of one batch after the other
    punzi_epoch(stage)  the same batches with their steps, for gradient descent

S are group sums of scores (Punzi) or of -log P (BCE). Random BCE batches are small and have no
groups: models/bce_epoch.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.batches import (
    Deal,
    random_batches,
    random_order,
    shuffled_in_groups,
    stratified_batches,
)
from models.bce_epoch import bce_rows, bce_weights, eager_bce_losses
from models.group_sums import Form, Map, Quantity, group_sums
from models.losses import bce_loss, punzi_loss, punzi_slopes
from models.network import PunziNet
from models.punzi_epoch import fused_punzi_epoch
from models.sensitivity import PunziFormula
from models.settings import Stage, TrainingSettings
from models.training_set import TrainingSet

SHUFFLE = 1_000_000_007  # in place of an epoch, for the one shuffle of a stage


@dataclass(frozen=True)
class Objective:
    """Events, settings and seed of one training; the rest changes roundings at most."""

    data: TrainingSet
    settings: TrainingSettings
    seed: int
    form: Form = "auto"
    over: Map = map
    threads: int = 1

    @property
    def formula(self) -> PunziFormula:
        s = self.settings
        return PunziFormula(self.data.luminosity_inv_fb, s.a, s.b, s.formula)

    def whole(self, network: PunziNet, stage: Stage, data: TrainingSet) -> Tensor:
        """Loss of all events of `data`, differentiable; nan without events."""
        quantity: Quantity = "bce" if stage.loss == "bce" else "score"
        sums = group_sums(network, data.whole, quantity=quantity, form=self.form, over=self.over)
        return self._loss(stage, sums, data)

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
        size = stage.batch_size or len(self.data)
        if stage.loss == "bce" and stage.batching == "random":
            order = random_order(len(self.data), seed)
            yield from eager_bce_losses(network, self.data, self.bce_weight, order, batch_size=size)
            return
        quantity: Quantity = "bce" if stage.loss == "bce" else "score"
        for batch in self._deal(stage, seed):
            sums = group_sums(
                network, batch.events, quantity=quantity, form=self.form, over=self.over
            )
            if stage.loss == "punzi":
                left_out += sums.detach().numpy()[: self.data.n_masses] <= 0
            yield self._loss(stage, sums * torch.from_numpy(batch.scale), self.data)

    def punzi_epoch(
        self,
        network: PunziNet,
        stage: Stage,
        seed: tuple[int, ...],
        left_out: npt.NDArray[np.int64],
        *,
        learning_rate: float,
    ) -> float:
        """All batches of one epoch of gradient descent; the last loss, or the first not finite."""

        def slopes(sums: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
            left_out[:] += sums[: self.data.n_masses] <= 0
            s = self.settings
            power = s.power if s.log_loss else None
            return punzi_slopes(sums, self.data, self.formula, power, self._hypothesis_weight)

        deal = self._deal(stage, seed)
        return fused_punzi_epoch(
            network, deal, slopes, learning_rate=learning_rate, threads=self.threads
        )

    def _deal(self, stage: Stage, seed: tuple[int, ...]) -> Deal:
        size = stage.batch_size or len(self.data)
        if stage.batching == "random":
            return random_batches(self.data, size, seed)
        return stratified_batches(self.shuffled, size, seed)

    @property
    def _hypothesis_weight(self) -> npt.NDArray[np.float64] | None:
        v = self.settings.hypothesis_weights
        return None if v is None else np.asarray(v, np.float64)

    def _loss(self, stage: Stage, sums: Tensor, data: TrainingSet) -> Tensor:
        if stage.loss == "bce":
            return bce_loss(sums, data)
        return punzi_loss(
            sums,
            data,
            self.formula,
            log=self.settings.log_loss,
            power=self.settings.power,
            hypothesis_weight=self._hypothesis_weight,
        )

    @cached_property
    def shuffled(self) -> TrainingSet:
        """The events in random order inside their groups, for stratified batches."""
        return shuffled_in_groups(self.data, (self.seed, SHUFFLE))

    @cached_property
    def bce_weight(self) -> npt.NDArray[np.float32]:
        return bce_weights(self.data)

    def rows(self, network: PunziNet) -> npt.NDArray[np.float32]:
        """Events as the fused BCE epoch reads them."""
        return bce_rows(self.data, network)

    def fingerprint(self, validation: TrainingSet) -> str:
        """Hash of all that decides the result."""
        parts = [asdict(self.settings), self.seed, self.data.fingerprint, validation.fingerprint]
        return hashlib.blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()
