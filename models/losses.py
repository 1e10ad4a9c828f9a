"""The losses of the two stages, as functions of the group sums S (models/training_set.py).

    Punzi  L = sum_k v_k sigma_min(eps_k, B_k) / sum_k v_k       fb      ("mean", the paper's)
           L = sum_k v_k log(sigma_min(eps_k, B_k) / 1 fb) / sum_k v_k   ("log", our default)
           eps = S of the signal groups,  B = A @ S of the background groups
    BCE    L = sum_i c_i w_i (-log P_i) / sum_i c_i w_i
           c = 1 for background, and for signal such that both classes have the same total weight

v are the weights of the hypotheses (default equal). A mass with eps <= 0 (in a batch, or without
events) is left out of both sums; infinity is no direction. The mean follows the masses with the
worst reach; the logarithm asks for the same *relative* gain at every mass.
The scale of L sets the scale of the learning rate: sigma_min in fb at the target luminosity.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.sensitivity import PunziFormula, punzi_sensitivity
from models.training_set import TrainingSet


def efficiency_and_background(sums: Tensor, data: TrainingSet) -> tuple[Tensor, Tensor]:
    """eps and B of every hypothesis (n_masses,) from group sums of scores or of accepted events."""
    in_window = torch.from_numpy(data.in_window)
    return sums[: data.n_masses], in_window @ sums[data.n_masses :]


def punzi_loss(
    sums: Tensor,
    data: TrainingSet,
    formula: PunziFormula,
    *,
    log: bool,
    hypothesis_weight: Tensor | None = None,
) -> Tensor:
    """The Punzi-loss of group sums of scores (n_groups,); nan if no mass has any efficiency."""
    efficiency, background = efficiency_and_background(sums, data)
    seen = efficiency > 0
    reach = punzi_sensitivity(efficiency[seen], background[seen], formula)
    value = torch.log(reach) if log else reach
    if hypothesis_weight is None:
        return value.mean()
    v = hypothesis_weight[seen]
    return (v * value).sum() / v.sum()


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
