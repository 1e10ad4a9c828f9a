"""Laws of the network."""

import pytest
import torch

from models.network import PunziNet

LOW, HIGH = [0.0, 1.0, -5.0, 1.0], [5.0, 6.0, 0.0, 5.0]


def test_score_is_the_sigmoid_of_the_logit_and_has_one_number_per_event():
    network = PunziNet(LOW, HIGH, seed=1)
    x = torch.rand(7, 4)
    assert network(x).shape == (7,)
    assert torch.equal(network(x), torch.sigmoid(network.logits(x)))


def test_scaling_is_part_of_the_model():
    network, unit = PunziNet(LOW, HIGH, seed=1), PunziNet([0.0] * 4, [1.0] * 4, seed=1)
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    x = torch.rand(7, 4)
    assert torch.allclose(network(low + x * (high - low)), unit(x), atol=1e-6)
    assert {"feature_min", "feature_max"} <= set(network.state_dict())


def test_weights_depend_on_the_seed_only():
    torch.manual_seed(1)
    first = PunziNet(LOW, HIGH, seed=5).state_dict()
    torch.manual_seed(2)
    second = PunziNet(LOW, HIGH, seed=5).state_dict()
    other = PunziNet(LOW, HIGH, seed=6).state_dict()
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert not torch.equal(first["layers.0.weight"], other["layers.0.weight"])


@pytest.mark.parametrize("n_features", [1, 3, 32])
def test_a_network_has_as_many_inputs_as_the_ranges_it_is_made_from(n_features):
    network = PunziNet([0.0] * n_features, [1.0] * n_features, seed=1)
    assert network.n_features == n_features
    assert network(torch.rand(7, n_features)).shape == (7,)
    assert network.layers[0].weight.abs().max() <= n_features**-0.5


def test_default_has_81_parameters_as_in_the_paper_and_widths_are_free():
    assert sum(p.numel() for p in PunziNet(LOW, HIGH).parameters()) == 81
    assert PunziNet(LOW, HIGH, hidden=(5, 6, 7)).hidden == (5, 6, 7)


@pytest.mark.parametrize(
    ("low", "high", "hidden"),
    [
        (LOW, LOW, (8, 4)),
        ([], [], (8,)),
        ([0.0] * 33, [1.0] * 33, (8,)),
        (LOW, HIGH[:3], (8,)),
        ([LOW], [HIGH], (8,)),
        (LOW, [float("nan")] * 4, (8,)),
        (LOW, HIGH, ()),
    ],
)
def test_senseless_networks_are_refused(low, high, hidden):
    with pytest.raises(ValueError, match=r"found|expected"):
        PunziNet(low, high, hidden=hidden)
