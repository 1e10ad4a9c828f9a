"""The compiled Punzi epoch against plain torch with the same batches."""

import copy
import threading

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.adam import give_back, memory_of
from models.training.batches import random_batches, shuffled_in_groups, stratified_batches
from models.training.group_sums import group_sums, packed, put_back
from models.training.losses import punzi_loss
from models.training.punzi_epoch import fused_punzi_epoch

FORMULA = PunziFormula(luminosity_inv_fb=50.0)


def network_for(data, hidden=(8, 4)):
    low, high = data.features.min(axis=1), data.features.max(axis=1)
    return PunziNet(low, high, hidden=hidden, seed=2)


def deals(data, kind, epoch):
    if kind == "random":
        return random_batches(data, 700, (1, epoch))
    return stratified_batches(shuffled_in_groups(data, (1,)), 700, (1, epoch))


def slopes_for(data, power=None, v=None):
    loss = punzi_loss(FORMULA, power=power, hypothesis_weight=v)
    return lambda sums: loss.slopes(sums, data)


@pytest.mark.parametrize("kind", ["random", "stratified"])
@pytest.mark.parametrize(
    ("hidden", "power", "rate", "adam"),
    [
        ((8, 4), None, 0.02, False),
        ((5, 3), 0.3, 0.5, False),
        ((8, 4), 0.0, 0.5, False),
        ((5, 3), 0.3, 0.01, True),
    ],
)
def test_epochs_end_where_torch_ends_with_the_same_batches(
    toy_sets, kind, hidden, power, rate, adam
):
    data, _ = toy_sets()
    v = np.arange(1.0, 1.0 + data.n_masses)
    fused = network_for(data, hidden)
    eager, before = copy.deepcopy(fused).double(), copy.deepcopy(fused.state_dict())
    optimizer = (torch.optim.Adam if adam else torch.optim.SGD)(eager.parameters(), lr=rate)
    own = torch.optim.Adam(fused.parameters())
    for epoch in range(3):
        deal, losses = deals(data, kind, epoch), []
        memory = memory_of(own, fused) if adam else None
        for batch in deal:
            sums = group_sums(eager, batch.events, by="torch") * torch.from_numpy(batch.scale)
            loss = punzi_loss(FORMULA, power=power, hypothesis_weight=v).of(sums, data)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        mean = fused_punzi_epoch(
            fused, deal, slopes_for(data, power, v), learning_rate=rate, threads=2, adam=memory
        )
        if adam:
            give_back(memory, own, fused)
        assert len(losses) > 1
        assert mean == pytest.approx(np.mean(losses), rel=1e-4)
    moved = [torch.abs(p - before[name]).max() for name, p in fused.named_parameters()]
    assert min(moved) > 1e-3
    for parameter, wanted in zip(fused.parameters(), eager.parameters(), strict=True):
        assert torch.allclose(parameter.double(), wanted, atol=2e-5)
        for name, tensor in own.state[parameter].items():
            assert torch.allclose(
                tensor.double(), optimizer.state[wanted][name].double(), rtol=1e-3, atol=1e-4
            )


def test_a_step_of_adam_is_that_of_torch_and_torch_goes_on_from_it(toy_sets):
    network = network_for(toy_sets()[0], hidden=(5, 3))
    ours = copy.deepcopy(network)
    torchs, rng = torch.optim.Adam(network.parameters()), np.random.default_rng(1)
    mine = torch.optim.Adam(ours.parameters())
    for step in range(60):
        scale, rate = 10.0 ** rng.uniform(-9, 3), rng.uniform(0.001, 0.1)
        for parameter in network.parameters():
            parameter.grad = torch.from_numpy(scale * rng.normal(size=parameter.shape)).float()
        torchs.param_groups[0]["lr"] = mine.param_groups[0]["lr"] = rate
        torchs.step()
        if step % 7 == 6:
            for own, other in zip(ours.parameters(), network.parameters(), strict=True):
                own.grad = other.grad
            mine.step()
        else:
            memory, theta = memory_of(mine, ours), packed(list(ours.parameters()))
            gradient = packed([p.grad for p in network.parameters()]).astype(np.float64)
            put_back(memory.moved(theta, gradient, rate), ours)
            give_back(memory, mine, ours)
    for own, other in zip(ours.parameters(), network.parameters(), strict=True):
        assert torch.allclose(own, other, rtol=1e-5, atol=1e-6)
        for name, tensor in torchs.state[other].items():
            assert torch.allclose(mine.state[own][name], tensor, rtol=1e-5)


def test_the_number_of_threads_changes_no_bit(toy_sets):
    data, _ = toy_sets(n_background=40_000)
    ends = []
    for threads in (1, 2, 3, 7):
        network = network_for(data)
        for epoch in range(4):
            fused_punzi_epoch(
                network, deals(data, "random", epoch), slopes_for(data),
                learning_rate=0.02, threads=threads,
            )  # fmt: skip
        ends.append(np.concatenate([p.detach().numpy().ravel() for p in network.parameters()]))
    assert all(np.array_equal(end, ends[0]) for end in ends)


def test_groups_without_events_add_nothing(toy_table, toy_sets):
    table = toy_table()
    gone = np.flatnonzero(table.signal_mass_gev == 1.5)
    rows = np.delete(np.arange(len(table)), gone)
    data, _ = toy_sets(table=table.take(rows))
    seen = []

    def slopes(sums):
        seen.append(sums[2])
        return slopes_for(data)(sums)

    network = network_for(data)
    end = fused_punzi_epoch(
        network, deals(data, "random", 0), slopes, learning_rate=0.02, threads=2
    )
    assert np.isfinite(end)
    assert seen
    assert not np.any(seen)


@pytest.mark.parametrize("fault", ["value", "step"])
def test_a_loss_that_is_not_finite_ends_the_epoch_and_keeps_the_weights(toy_sets, fault):
    data, _ = toy_sets()
    network, calls = network_for(data), []
    before = copy.deepcopy(network.state_dict())

    def slopes(sums):
        value, by_sums = slopes_for(data)(sums)
        calls.append(value)
        return (np.inf, by_sums) if fault == "value" else (value, by_sums * np.inf)

    deal = deals(data, "random", 0)
    end = fused_punzi_epoch(network, deal, slopes, learning_rate=0.1, threads=3)
    assert not np.isfinite(end)
    assert len(calls) == 1
    assert all(torch.equal(p, before[name]) for name, p in network.state_dict().items())


def test_helpers_go_home_if_one_of_them_cannot_start(toy_sets, monkeypatch):
    data, _ = toy_sets()
    started, start = [], threading.Thread.start

    def failing(thread):
        if started:
            raise KeyboardInterrupt
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", failing)
    with pytest.raises(KeyboardInterrupt):
        fused_punzi_epoch(
            network_for(data), deals(data, "random", 0), slopes_for(data), learning_rate=0.1,
            threads=4,
        )  # fmt: skip
    assert started
    assert not started[0].is_alive()


def test_helpers_go_home_after_an_error(toy_sets):
    data, _ = toy_sets()

    def broken(sums):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        fused_punzi_epoch(
            network_for(data), deals(data, "random", 0), broken, learning_rate=0.1, threads=3
        )
    assert threading.active_count() == before
