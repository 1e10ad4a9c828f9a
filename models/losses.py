"""The losses of the two stages, as functions of the group sums S (models/training_set.py).

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
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.sensitivity import PunziFormula, signal_events_needed, signal_events_slope
from models.training_set import TrainingSet


def efficiency_and_background(sums: Tensor, data: TrainingSet) -> tuple[Tensor, Tensor]:
    """eps and B of every hypothesis (n_masses,) from group sums of scores or of accepted events."""
    in_window = torch.from_numpy(data.in_window)
    return sums[: data.n_masses], in_window @ sums[data.n_masses :]


def punzi_slopes(
    sums: npt.NDArray[np.float64],
    data: TrainingSet,
    formula: PunziFormula,
    power: float | None,
    hypothesis_weight: npt.NDArray[np.float64] | None,
) -> tuple[float, npt.NDArray[np.float64]]:
    """L and dL/dS (n_groups,) in closed form; power None is the plain mean."""
    n = data.n_masses
    efficiency, background = sums[:n], data.in_window @ sums[n:]
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


class _PunziLoss(torch.autograd.Function):
    """S -> L with its closed-form derivatives: one step of autograd instead of twenty."""

    @staticmethod
    def forward(ctx: Any, sums: Tensor, *how: Any) -> Tensor:
        value, ctx.slopes = punzi_slopes(sums.numpy(), *how)
        return torch.tensor(value, dtype=torch.float64)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        return torch.from_numpy(ctx.slopes * float(gradients[0])), None, None, None, None


def punzi_loss(
    sums: Tensor,
    data: TrainingSet,
    formula: PunziFormula,
    *,
    log: bool,
    power: float = 0.0,
    hypothesis_weight: npt.NDArray[np.float64] | None = None,
) -> Tensor:
    """The Punzi-loss of group sums of scores (n_groups,); nan if no mass has any efficiency.

    power is that of the power mean under the logarithm; it has no meaning without `log`.
    """
    loss: Tensor = _PunziLoss.apply(sums, data, formula, power if log else None, hypothesis_weight)
    return loss


def class_weights(data: TrainingSet) -> npt.NDArray[np.float64]:
    """Factor c on the weights of each group (n_groups,): both classes weigh the same in total."""
    signal = data.group_weight[: data.n_masses].sum()
    background = data.group_weight[data.n_masses :].sum()
    c = np.ones(data.n_groups)
    if signal > 0:
        c[: data.n_masses] = background / signal
    return c


def bce_loss(sums: Tensor, data: TrainingSet) -> Tensor:
    """The weighted mean BCE of group sums of -log P (n_groups,)."""
    c = class_weights(data)
    return (torch.from_numpy(c) @ sums) / float(c @ data.group_weight)
