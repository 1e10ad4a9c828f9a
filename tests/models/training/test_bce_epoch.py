"""The compiled BCE epoch against plain torch with the same batches."""

import copy

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.training.batches import random_order
from models.training.bce_epoch import bce_rows, bce_weights, eager_bce_losses, fused_bce_epoch


@pytest.mark.parametrize("hidden", [(8, 4), (5, 3)])
@pytest.mark.parametrize("batch_size", [2048, 100])
def test_fused_epochs_end_where_eager_sgd_ends(toy_sets, hidden, batch_size):
    data, _ = toy_sets()
    eager = PunziNet(data.features.min(axis=1), data.features.max(axis=1), hidden=hidden, seed=2)
    fused = copy.deepcopy(eager)
    before = copy.deepcopy(eager.state_dict())
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.2)
    rows, weight = bce_rows(data, fused), bce_weights(data)
    for epoch in range(3):
        order = random_order(len(data), (1, epoch))
        fused_bce_epoch(fused, rows, order, batch_size=batch_size, learning_rate=0.2)
        for loss in eager_bce_losses(eager, data, weight, order, batch_size=batch_size):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for name, parameter in fused.named_parameters():
        wanted = eager.state_dict()[name]
        assert not torch.allclose(wanted, before[name], atol=1e-3)
        assert torch.allclose(parameter, wanted, atol=2e-5)


def test_weights_have_mean_one_and_balance_the_classes(toy_sets):
    data, _ = toy_sets()
    weight = bce_weights(data).astype(np.float64)
    n_signal = data.group_start[data.n_masses]
    assert weight.mean() == pytest.approx(1, rel=1e-5)
    assert weight[:n_signal].sum() == pytest.approx(weight[n_signal:].sum(), rel=1e-5)
