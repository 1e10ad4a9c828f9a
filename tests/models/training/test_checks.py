"""When a training has failed: thresholds at which the verdict changes."""

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.checks import failures
from models.training.training_set import TrainingSet

FORMULA = PunziFormula(luminosity_inv_fb=50.0)
A, B_CL = 3.0, 1.28155


def events_needed(background):
    root = np.sqrt(B_CL**2 + 4 * A * np.sqrt(background) + 4 * background)
    return B_CL**2 / 2 + A * np.sqrt(background) + B_CL / 2 * root


def judged(signal, background, *, geometric=True):
    """Reasons for a network that accepts an event if its first feature is 1, and not if it is 0.

    signal: accepted and rejected weight per mass; background: accepted and rejected weight.
    """
    parts = [*signal, background]
    weight = np.array([w for part in parts for w in part], np.float32)
    features = np.zeros((4, len(weight)), np.float32)
    features[0] = [1, 0] * len(parts)
    data = TrainingSet(
        features=features,
        weight=weight,
        group_start=np.arange(0, len(weight) + 1, 2),
        in_window=np.ones((len(signal), 1)),
        mass_gev=np.arange(1.0, len(signal) + 1),
        luminosity_inv_fb=50.0,
    )
    return failures(step_at_one_half(), data, FORMULA, geometric=geometric, sums_by="torch")


def step_at_one_half():
    """y = 1 where the first scaled feature is above one half, else 0."""
    network = PunziNet(np.zeros(4), np.ones(4), seed=1)
    x = torch.zeros(2, 4)
    x[1, 0] = 1.0
    with torch.no_grad():
        for layer in network.layers:
            layer.weight.zero_()
            layer.bias.zero_()
            layer.weight[0, 0] = 200.0
            layer.bias[0] = -100.0
        low, high = network(x).tolist()
    assert low < 1e-6
    assert high > 1 - 1e-6
    return network


def background_for(ratio, total=1000.0):
    """(accepted, rejected) of a total such that N(accepted) / N(total) is the ratio."""
    low, high = 0.0, total
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if events_needed(middle) < ratio * events_needed(total)
            else (low, middle)
        )
    return low, total - low


@pytest.mark.parametrize("geometric", [True, False])
@pytest.mark.parametrize(("ratio", "failed"), [(0.85, False), (0.895, False), (0.905, True)])
def test_a_reach_of_nine_tenths_of_accepting_everything_is_the_limit(ratio, failed, geometric):
    reasons = judged([(0.5, 0.0)] * 2, background_for(ratio), geometric=geometric)
    assert any("of accepting every event" in r for r in reasons) is failed
    assert len(reasons) == failed


def test_the_mean_is_geometric_where_the_loss_is_a_logarithm():
    """A lost half of the signal at the worse of two masses: sqrt(2) or nearly 2 in the mean."""
    good, bad = (0.5, 0.0), (0.0005, 0.0005)
    background = background_for(0.6)
    assert judged([good, bad], background, geometric=True) == ()
    (reason,) = judged([good, bad], background, geometric=False)
    assert "of accepting every event" in reason


@pytest.mark.parametrize(
    ("signal", "background", "wanted"),
    [
        ((0.5, 0.0), (1000.0, 0.5), "accepts all"),
        ((0.5, 0.0), (1000.0, 2.0), ""),
        ((0.5, 0.001), (1000.0, 0.0), ""),  # 99.8 % of the signal only
        ((0.0004, 1.0), (0.5, 1000.0), "rejects all"),
        ((0.002, 1.0), (0.5, 1000.0), ""),
    ],
)
def test_all_is_more_than_999_of_1000_and_nothing_less_than_one(signal, background, wanted):
    found = [r for r in judged([signal], background) if r.split(":")[0].endswith("all")]
    assert [r.split(":")[0] for r in found] == ([wanted] if wanted else [])


def test_a_mass_without_accepted_signal_is_named_and_one_without_events_is_not():
    reasons = judged([(0.5, 0.0), (0.0, 0.5), (0.0, 0.0)], background_for(0.3))
    assert [r for r in reasons if "y > 0.5 at" in r] == ["no training signal has y > 0.5 at 2 GeV"]
