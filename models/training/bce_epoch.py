"""One epoch of weighted BCE in random batches: the pretraining, and the BCE network itself.

    theta <- theta - r mean over the batch of  w_i d(-log P_i)/dtheta
    mean of w_i over all events = 1, both classes with the same total weight

Batches are consecutive slices of one random order. The fused form runs the whole epoch in compiled
code (SGD is sequential: one core), the eager form is plain torch, any optimiser and network, with
exactly the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from models.network import PunziNet
from models.training.group_sums import packed, padded, padded_widths, put_back, scaling_rows
from models.training.kernels import lines_of_zeros, memory_of, sgd_epoch
from models.training.losses import class_weights
from models.training.training_set import TrainingSet


def bce_weights(data: TrainingSet) -> npt.NDArray[np.float32]:
    """Weight of each event (n,): classes balanced, mean 1."""
    c = class_weights(data)
    c *= len(data) / (c @ data.group_weight)
    return data.weight * np.repeat(c.astype(np.float32), np.diff(data.group_start))


def bce_rows(data: TrainingSet, network: PunziNet) -> npt.NDArray[np.float32]:
    """(n, multiple of 8): scaled features padded to a multiple of four, weight, target, unused.

    What models/training/kernels.py reads: whole halves of cache lines, (n, 8) for four features.
    """
    low, inverse_range = scaling_rows(network, data.features)
    n_in = padded(len(low))
    width = -(-(n_in + 2) // 8) * 8
    rows = lines_of_zeros(len(data) * width).reshape(len(data), width)
    for i in range(len(low)):
        rows[:, i] = (data.features[i] - low[i]) * inverse_range[i]
    rows[:, n_in] = bce_weights(data)
    rows[: data.group_start[data.n_masses], n_in + 1] = 1.0  # signal groups come first
    return rows


def fused_bce_epoch(
    network: PunziNet,
    rows: npt.NDArray[np.float32],
    order: npt.NDArray[np.uint32],
    *,
    batch_size: int,
    learning_rate: float,
    wants_loss: bool = False,
) -> float:
    """SGD over all batches of `order`; changes the weights of the network.

    Returns the mean loss of the batches, each before its step, or 0 where it is not wanted, which
    saves time; nan where the weights are not finite.
    """
    theta, widths = packed(list(network.parameters())), padded_widths(network)
    memory, gradient = memory_of(widths, theta), np.empty(len(theta))
    mean = sgd_epoch(rows, order, batch_size, learning_rate, memory, gradient, widths, wants_loss)
    theta = memory[-len(theta) :]
    put_back(theta, network)
    return float(mean) if np.isfinite(theta).all() else np.nan


def eager_bce_losses(
    network: nn.Module,
    data: TrainingSet,
    weight: npt.NDArray[np.float32],
    order: npt.NDArray[np.uint32],
    *,
    batch_size: int,
) -> Iterator[Tensor]:
    """The loss of each batch of `order`, at the weights the network has when it is asked for."""
    like = next(network.parameters())
    n_signal = data.group_start[data.n_masses]
    for at in range(0, len(order), batch_size):
        rows = order[at : at + batch_size]
        x, w = torch.from_numpy(data.features[:, rows].T).to(like), torch.from_numpy(weight[rows])
        target = torch.from_numpy(rows < n_signal).to(like)
        logits: Tensor = network.logits(x)  # type: ignore[operator]
        yield nn.functional.binary_cross_entropy_with_logits(logits, target, weight=w.to(like))
