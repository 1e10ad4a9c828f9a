"""Laws of the learning rate."""

import math

import pytest

from models.training.schedule import Plateau, after_epoch, learning_rate
from models.training.settings import Stage

STAGE = Stage(name="s", loss="punzi", epochs=100, learning_rate=0.4)


def test_cosine_falls_from_the_full_rate_to_zero_through_the_half():
    rates = [learning_rate(STAGE, epoch, Plateau()) for epoch in (0, 50, 100)]
    assert rates == pytest.approx([0.4, 0.2, 0.0])


def test_plateau_halves_after_patience_epochs_without_a_new_best():
    stage = Stage(name="s", loss="bce", epochs=9, learning_rate=1.0, schedule="plateau", patience=3)
    memory, rates = Plateau(), []
    for epoch, loss in enumerate([5.0, 4.0, 4.0, 4.1, 3.99999, 4.0, 3.0, 3.0]):
        memory = after_epoch(memory, loss, stage)
        rates.append(learning_rate(stage, epoch, memory))
    # a gain of 1e-5 is none: the fourth epoch without a new best halves the rate
    assert rates == [1, 1, 1, 1, 1, 0.5, 0.5, 0.5]


def test_plateau_works_for_losses_below_zero():
    stage = Stage(name="s", loss="punzi", epochs=9, learning_rate=1.0, schedule="plateau")
    memory = Plateau()
    for loss in (-1.0, -1.1, -1.2):
        memory = after_epoch(memory, loss, stage)
        assert memory == Plateau(loss, 0, 0)


def test_constant_is_constant():
    stage = Stage(name="s", loss="bce", epochs=9, learning_rate=0.3, schedule="constant")
    assert learning_rate(stage, 8, Plateau(math.inf, 0, 5)) == 0.3
