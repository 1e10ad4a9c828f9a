"""A training in plain torch, as on a GPU, is the compiled one to rounding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.training.device import DeviceNotAvailable
from models.training.loop import train_network
from models.training.settings import DEFAULT, Stage, TrainingSettings

BATCHES = Stage(name="batches", loss="punzi", epochs=2, learning_rate=0.01, batch_size=800)
SETTINGS = TrainingSettings(
    stages=(
        replace(DEFAULT.stages[0], epochs=2, batch_size=400),
        BATCHES,
        replace(DEFAULT.stages[1], epochs=3, refine=2),
    )
)


def test_the_plain_form_of_another_device_trains_the_network_of_the_compiled_one(toy_sets):
    sets = toy_sets()
    compiled, plain = (
        train_network(*sets, replace(SETTINGS, device=name), seed=2) for name in ("cpu", "cpu:0")
    )
    for column in ("train_loss", "validation_loss"):
        ours, other = getattr(compiled.history, column), getattr(plain.history, column)
        assert np.allclose(ours, other, rtol=1e-4, equal_nan=True)
    assert not np.array_equal(compiled.history.train_loss, plain.history.train_loss)
    assert list(compiled.after) == list(plain.after)
    for name, network in plain.after.items():
        for a, b in zip(network.parameters(), compiled.after[name].parameters(), strict=True):
            assert a.device.type == "cpu"
            assert torch.allclose(a, b, atol=1e-3)


@pytest.mark.parametrize("name", ["meta", "nonsense", "cuda:99"])
def test_a_device_that_cannot_compute_is_refused_by_name(toy_sets, name):
    with pytest.raises(DeviceNotAvailable, match=f"training.device is '{name}'.*There are: cpu"):
        train_network(*toy_sets(), replace(SETTINGS, device=name), seed=1)
