"""The losses of the stages, each a record that the training asks; functions of the group sums S.

    Punzi  L = sum_k v_k sigma_min(eps_k, B_k) / sum_k v_k       fb      ("mean", the paper's)
           L = (1/p) log( sum_k v_k sigma_min(eps_k, B_k)^p / sum_k v_k )  ("log", our default)
           eps = S of the signal groups,  B = A @ S of the background groups
    BCE    L = sum_i c_i w_i (-log P_i) / sum_i c_i w_i
           c = 1 for background, and for signal such that both classes have the same total weight

v are the weights of the hypotheses (default equal). A mass with eps <= 0 (in a batch, or without
events) is left out of both sums; infinity is no direction. The logarithm of the power mean asks
for *relative* gains: of all masses alike for p = 0 (then it is the mean of log sigma_min), more of
those with the worst reach as p grows; p = 1 has the minimum of the paper's mean. Default p = 0.3:
it gives back what p = 0 loses below 1 and above 8 GeV and keeps what it wins between
(docs/training.md).
The scale of L sets the scale of the learning rate: sigma_min in fb at the target luminosity.

A new loss is one more record in `LOSSES`; nothing else in the training knows their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.sensitivity import PunziFormula, signal_events_needed, signal_events_slope
from models.training.training_set import TrainingSet

if TYPE_CHECKING:
    from models.training.group_sums import Quantity
    from models.training.settings import LossName, Stage, TrainingSettings

Floats = npt.NDArray[np.float64]
Slopes = Callable[[Floats, TrainingSet], tuple[float, Floats]]


@dataclass(frozen=True)
class Loss:
    """What a stage minimises: group sums of `quantity` in, the loss and its derivatives out."""

    name: str
    quantity: Quantity  # what is summed over the events of a group
    text: str  # of an axis
    slopes: Slopes  # S (n_groups,) -> L, dL/dS (n_groups,); L is nan where it has no value
    is_weighted_bce: bool = False  # then any handful of events has it: batches need no groups

    def of(self, sums: Tensor, data: TrainingSet) -> Tensor:
        """The loss of group sums (n_groups,), differentiable."""
        loss: Tensor = _OfSums.apply(sums, data, self.slopes)
        return loss


class _OfSums(torch.autograd.Function):
    """S -> L with its closed-form derivatives: one step of autograd instead of twenty."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor, data: TrainingSet, slopes: Slopes) -> Tensor:
        value, ctx.slopes = slopes(sums.numpy(), data)
        return torch.tensor(value, dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return torch.from_numpy(ctx.slopes * float(gradients[0])), None, None


def punzi_loss(
    formula: PunziFormula, *, power: float | None, hypothesis_weight: Floats | None = None
) -> Loss:
    """power of the mean under the logarithm; None: the plain mean, without a logarithm."""

    def slopes(sums: Floats, data: TrainingSet) -> tuple[float, Floats]:
        efficiency, background = efficiency_and_background(sums, data)
        seen = efficiency > 0
        v = np.where(seen, 1.0 if hypothesis_weight is None else hypothesis_weight, 0.0)
        v = v / v.sum() if v.sum() else v * np.nan
        efficiency = np.where(seen, efficiency, 1.0)
        N = signal_events_needed(background, formula)
        sigma = N / (efficiency * formula.luminosity_inv_fb)
        if power is None:
            value, by_log = v @ sigma, v * sigma
        elif power == 0:
            value, by_log = v @ np.log(sigma), v
        else:
            raised = v * sigma**power
            value, by_log = np.log(raised.sum()) / power, raised / raised.sum()
        by_background = by_log * signal_events_slope(background, formula) / N
        return float(value), np.concatenate([-by_log / efficiency, by_background @ data.in_window])

    mean, log_mean = r"mean $\sigma_{min}$ [fb]", r"ln of power mean of $\sigma_{min}$/fb"
    return Loss("punzi", "score", mean if power is None else log_mean, slopes)


def bce_loss() -> Loss:
    """The weighted mean of -log P."""

    def slopes(sums: Floats, data: TrainingSet) -> tuple[float, Floats]:
        c = class_weights(data)
        by_sums = c / float(c @ data.group_weight)
        return float(by_sums @ sums), by_sums

    return Loss("bce", "bce", "Binary cross-entropy", slopes, is_weighted_bce=True)


def _punzi_of_settings(settings: TrainingSettings, luminosity_inv_fb: float) -> Loss:
    v = settings.hypothesis_weights
    return punzi_loss(
        settings.punzi_formula(luminosity_inv_fb),
        power=settings.power if settings.log_loss else None,
        hypothesis_weight=None if v is None else np.asarray(v, np.float64),
    )


LOSSES: Mapping[LossName, Callable[[TrainingSettings, float], Loss]] = {
    "bce": lambda _settings, _luminosity: bce_loss(),
    "punzi": _punzi_of_settings,
}


def loss_of(stage: Stage, settings: TrainingSettings, *, luminosity_inv_fb: float) -> Loss:
    """The loss that a stage names."""
    return LOSSES[stage.loss](settings, luminosity_inv_fb)


def efficiency_and_background(sums: Floats, data: TrainingSet) -> tuple[Floats, Floats]:
    """eps and B of every hypothesis (n_masses,) from group sums of scores or of accepted events."""
    return sums[: data.n_masses], data.in_window @ sums[data.n_masses :]


def class_weights(data: TrainingSet) -> Floats:
    """Factor c on the weights of each group (n_groups,): both classes weigh the same in total."""
    signal = data.group_weight[: data.n_masses].sum()
    background = data.group_weight[data.n_masses :].sum()
    c = np.ones(data.n_groups)
    if signal > 0:
        c[: data.n_masses] = background / signal
    return c
