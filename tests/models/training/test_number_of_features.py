"""The compiled training for other numbers of features than four, against plain torch."""

import copy

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.batches import (
    random_batches,
    shuffled_in_groups,
    stratified_batches,
)
from models.training.bce_epoch import bce_rows, bce_weights, eager_bce_losses, fused_bce_epoch
from models.training.deal import random_order
from models.training.group_sums import fused_sums, group_sums, packed, unpacked
from models.training.losses import punzi_loss
from models.training.punzi_epoch import fused_punzi_epoch
from models.training.threads import shared_map
from models.training.training_set import TrainingSet

NUMBERS = [1, 5]  # each is compiled
LOSS = punzi_loss(PunziFormula(luminosity_inv_fb=50.0), power=0.0)
BATCH = 700


@pytest.fixture
def events():
    """Makes a set of three masses and five intervals; signal has a larger last feature."""

    def make(n_features, *, per_group=500, seed=1):
        rng = np.random.default_rng(seed)
        count = rng.integers(per_group // 2, per_group, 8)
        start = np.concatenate([[0], np.cumsum(count)])
        features = rng.normal(1, 2, (n_features, start[-1])).astype(np.float32)
        features[-1, : start[3]] += 3
        near = np.abs(np.arange(5) - np.arange(3)[:, None] * 2) < 2
        weight = rng.exponential(0.5 / per_group, start[-1])
        weight[start[3] :] *= 3000
        return TrainingSet(
            features=features,
            weight=weight.astype(np.float32),
            group_start=start.astype(np.int64),
            in_window=near.astype(np.float64),
            mass_gev=np.arange(1.0, 4.0),
            luminosity_inv_fb=50.0,
        )

    return make


def network_for(data, hidden=(8, 4)):
    low, high = data.features.min(axis=1), data.features.max(axis=1)
    return PunziNet(low, high, hidden=hidden, seed=2)


def weights(network):
    return np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])


def dealt(data, kind, epoch):
    if kind == "random":
        return random_batches(data, BATCH, (1, epoch))
    return stratified_batches(shuffled_in_groups(data, (1,)), BATCH, (1, epoch))


def punzi_epochs(network, data, *, kind="random", threads=1, rate=0.3):
    for epoch in range(3):
        fused_punzi_epoch(
            network, dealt(data, kind, epoch), lambda sums: LOSS.slopes(sums, data),
            learning_rate=rate, threads=threads,
        )  # fmt: skip


@pytest.mark.parametrize("n_features", NUMBERS)
@pytest.mark.parametrize("quantity", ["score", "bce"])
def test_sums_and_their_gradients_agree_with_float64_torch(events, n_features, quantity):
    data = events(n_features)
    for hidden in ((8, 4), (5, 3)):  # both compile to the same widths
        network = network_for(data, hidden)
        oracle = copy.deepcopy(network).double()
        pull = torch.linspace(-1, 2, data.n_groups, dtype=torch.float64)
        found, wanted = (
            group_sums(net, data.whole, quantity=quantity, by=by)
            for net, by in ((network, "fused"), (oracle, "torch"))
        )
        assert np.allclose(found.detach(), wanted.detach(), rtol=1e-6)
        for sums in (found, wanted):
            (sums * pull).sum().backward()
        for parameter, right in zip(network.parameters(), oracle.parameters(), strict=True):
            scale = right.grad.abs().max()
            assert torch.allclose(parameter.grad.double(), right.grad, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("n_features", NUMBERS)
def test_bce_epochs_end_where_eager_sgd_ends(events, n_features):
    data = events(n_features)
    eager = network_for(data)
    fused, before = copy.deepcopy(eager), weights(eager)
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.2)
    rows, weight = bce_rows(data, fused), bce_weights(data)
    for epoch in range(3):
        order = random_order(len(data), (1, epoch))
        fused_bce_epoch(fused, rows, order, batch_size=100, learning_rate=0.2)
        for loss in eager_bce_losses(eager, data, weight, order, batch_size=100):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert np.abs(weights(eager) - before).max() > 0.05
    assert np.allclose(weights(fused), weights(eager), rtol=0, atol=2e-5)


@pytest.mark.parametrize("n_features", NUMBERS)
@pytest.mark.parametrize("kind", ["random", "stratified"])
def test_punzi_epochs_end_where_the_general_way_ends(events, n_features, kind):
    data = events(n_features)
    fused = network_for(data)
    eager, before = copy.deepcopy(fused).double(), weights(fused)
    punzi_epochs(fused, data, kind=kind)
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.3)
    for epoch in range(3):
        for batch in dealt(data, kind, epoch):
            sums = group_sums(eager, batch.events, by="torch") * torch.from_numpy(batch.scale)
            optimizer.zero_grad()
            LOSS.of(sums, data).backward()
            optimizer.step()
    assert np.abs(weights(fused) - before).max() > 0.05
    assert np.allclose(weights(fused), weights(eager), rtol=0, atol=2e-5)


@pytest.mark.parametrize("n_features", NUMBERS)
def test_the_number_of_threads_changes_no_bit(events, n_features):
    data = events(n_features, per_group=9000)
    theta = packed(list(network_for(data).parameters()))
    one = fused_sums(theta, network_for(data), data.whole, "score", gradient=True)
    ends = []
    for threads in (1, 2, 5):
        with shared_map(threads) as over:
            many = fused_sums(
                theta, network_for(data), data.whole, "score", gradient=True, over=over
            )
        assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))
        network = network_for(data)
        punzi_epochs(network, data, threads=threads, rate=0.02)
        ends.append(weights(network))
    assert all(np.array_equal(end, ends[0]) for end in ends)


@pytest.mark.parametrize("n_features", [1, 3, 4, 7])
def test_a_feature_that_is_always_zero_and_has_no_weight_changes_nothing(events, n_features):
    wide = events(n_features + 1)
    features = wide.features.copy()
    features[-1] = 0
    wide = TrainingSet(**{**fields(wide), "features": features})
    narrow_features = np.ascontiguousarray(features[:-1])
    data = events(n_features)
    data = TrainingSet(**{**fields(data), **fields(wide), "features": narrow_features})
    network = network_for(data)
    low, high = (np.append(edge.numpy(), edge_of_new) for edge, edge_of_new in
                 ((network.feature_min, 0.0), (network.feature_max, 1.0)))  # fmt: skip
    wider = PunziNet(low, high, seed=1)
    with torch.no_grad():
        for to, parameter in zip(wider.parameters(), network.parameters(), strict=True):
            to.zero_()
            to[tuple(map(slice, parameter.shape))] = parameter
    for net, events_of in ((network, data), (wider, wide)):
        punzi_epochs(net, events_of)
        rows = bce_rows(events_of, net)
        order = random_order(len(rows), (1,))
        fused_bce_epoch(net, rows, order, batch_size=100, learning_rate=0.2)
    first = wider.layers[0].weight.detach()
    assert not first[:, -1].any()
    kept = [first[:, :-1], *list(wider.parameters())[1:]]
    for parameter, right in zip(kept, network.parameters(), strict=True):
        assert torch.allclose(parameter, right, rtol=0, atol=1e-5)


def fields(data):
    return {name: getattr(data, name) for name in data.__dataclass_fields__}


@pytest.mark.parametrize("n_features", NUMBERS)
@pytest.mark.parametrize("hidden", [(8, 4), (5, 3)])
def test_weights_survive_packing_and_what_is_added_is_zero(events, n_features, hidden):
    parameters = list(network_for(events(n_features), hidden).parameters())
    theta = packed(parameters)
    for found, right in zip(
        unpacked(theta, [p.shape for p in parameters]), parameters, strict=True
    ):
        assert torch.equal(found, right)
    assert np.count_nonzero(theta) == sum(p.numel() for p in parameters)


@pytest.mark.parametrize(("n_features", "row"), [(1, 8), (4, 8), (5, 16), (14, 24), (32, 40)])
def test_rows_of_bce_are_whole_halves_of_cache_lines(events, n_features, row):
    data = events(n_features)
    rows = bce_rows(data, network_for(data))
    assert rows.shape == (len(data), row)
    assert rows.ctypes.data % 64 == 0
    assert rows.flags.c_contiguous


def test_events_with_other_features_than_the_network_are_refused(events):
    network = network_for(events(5))
    data = events(6)
    theta = packed(list(network.parameters()))
    with pytest.raises(ValueError, match="events have 6 features, the network 5; make the"):
        fused_sums(theta, network, data.whole, "score", gradient=True)
    with pytest.raises(ValueError, match="events have 6 features"):
        bce_rows(data, network)
    with pytest.raises(ValueError, match="events have 6 features"):
        punzi_epochs(network, data)
