"""Batches in which a mass has no signal are counted, whatever computes them."""

import re

import numpy as np
import pytest

from models.training.batches import random_batches
from models.training.loop import train_network
from models.training.settings import Stage, TrainingSettings

EPOCHS, SIZE, SEED = 2, 400, 5


@pytest.mark.parametrize("by", ["auto", "torch"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_notes_count_the_batches_without_an_event_of_the_mass(toy_sets, by, optimizer):
    data, validation = toy_sets(n_signal=20)
    stage = Stage(
        "punzi", "punzi", EPOCHS, 1e-9, batch_size=SIZE, batching="random", optimizer=optimizer
    )
    result = train_network(data, validation, TrainingSettings((stage,)), seed=SEED, sums_by=by)
    missing = np.zeros(data.n_masses, int)
    for epoch in range(EPOCHS):
        deal = random_batches(data, SIZE, (SEED, 0, epoch))
        missing += (deal.start == deal.stop)[:, : data.n_masses].sum(axis=0)
    found = [re.findall(r"[\d.]+", note) for note in result.notes]
    assert missing.max() > 0
    assert [(float(mass), int(n)) for mass, n in found] == [
        (mass, n) for mass, n in zip(data.mass_gev, missing, strict=True) if n
    ]
