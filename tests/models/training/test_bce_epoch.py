"""The compiled BCE epoch against plain torch with the same batches."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.training.bce_epoch import bce_rows, bce_weights, eager_bce_losses, fused_bce_epoch
from models.training.deal import random_order


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


@pytest.mark.parametrize("n_features_kept", [4, 3])
def test_the_mean_loss_of_the_batches_is_told_without_changing_a_bit(toy_sets, n_features_kept):
    data, _ = toy_sets()
    data = replace(data, features=np.ascontiguousarray(data.features[:n_features_kept]))
    first = PunziNet(data.features.min(axis=1), data.features.max(axis=1), seed=2)
    silent, eager = copy.deepcopy(first), copy.deepcopy(first).double()
    rows, weight, order = bce_rows(data, first), bce_weights(data), random_order(len(data), (1,))
    assert len(data) % 700  # the last batch is smaller and counts as much
    options = {"batch_size": 700, "learning_rate": 0.4}
    told = fused_bce_epoch(first, rows, order, wants_loss=True, **options)
    assert fused_bce_epoch(silent, rows, order, **options) == 0
    for a, b in zip(first.parameters(), silent.parameters(), strict=True):
        assert torch.equal(a, b)
    losses, optimizer = [], torch.optim.SGD(eager.parameters(), lr=0.4)
    for loss in eager_bce_losses(eager, data, weight, order, batch_size=700):
        losses.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert told == pytest.approx(np.mean(losses), rel=1e-5)


def test_weights_that_are_not_finite_have_no_loss(toy_sets):
    data, _ = toy_sets()
    network = PunziNet(data.features.min(axis=1), data.features.max(axis=1), seed=2)
    with torch.no_grad():
        network.layers[1].weight[0, 0] = torch.nan
    order = random_order(len(data), (1,))
    for wanted in (True, False):
        told = fused_bce_epoch(
            network, bce_rows(data, network), order, batch_size=700, learning_rate=0.1,
            wants_loss=wanted,
        )  # fmt: skip
        assert np.isnan(told)


def test_weights_have_mean_one_and_balance_the_classes(toy_sets):
    data, _ = toy_sets()
    weight = bce_weights(data).astype(np.float64)
    n_signal = data.group_start[data.n_masses]
    assert weight.mean() == pytest.approx(1, rel=1e-5)
    assert weight[:n_signal].sum() == pytest.approx(weight[n_signal:].sum(), rel=1e-5)
