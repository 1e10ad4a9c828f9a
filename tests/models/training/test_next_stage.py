"""A stage hands on its network, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.training import loop
from models.training.loop import train_network
from models.training.settings import Stage, TrainingSettings

# a rate that changes nothing brings no new best loss: the rate is halved after every second epoch
STUCK = Stage("bce", "bce", 9, 1e-12, optimizer="sgd", schedule="plateau", patience=1)
PLATEAU = Stage("punzi", "punzi", 3, 0.01, schedule="plateau", patience=1)


def test_the_next_stage_begins_with_its_own_full_rate(toy_sets):
    result = train_network(*toy_sets(), TrainingSettings((STUCK, PLATEAU)), seed=1)
    first, second = (result.history.of_stage(i).learning_rate for i in (0, 1))
    wanted = [1e-12 * 0.5**k for k in (0, 0, 1, 1, 2, 2, 3, 3, 4)]
    assert first[:-1] == pytest.approx(wanted, rel=1e-12)
    assert second[:-1] == pytest.approx([0.01] * 3)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_stage_after_one_without_effect_is_the_stage_alone(toy_sets, optimizer):
    """Losses of another kind are not compared, and steps taken before are not remembered."""
    stage = replace(PLATEAU, epochs=6, patience=0, optimizer=optimizer)
    still = replace(STUCK, learning_rate=1e-30, optimizer="sgd")
    alone = train_network(*toy_sets(), TrainingSettings((stage,)), seed=1)
    after = train_network(*toy_sets(), TrainingSettings((still, stage)), seed=1)
    one, two = alone.history.of_stage(0), after.history.of_stage(1)
    assert np.array_equal(one.learning_rate, two.learning_rate)
    assert one.train_loss == pytest.approx(two.train_loss, rel=1e-9)
    for a, b in zip(alone.final.parameters(), after.final.parameters(), strict=True):
        assert torch.allclose(a, b)


def test_adam_begins_every_stage_without_memory(toy_sets):
    """Twice the same stage is not one of twice the length: the first steps are full ones again."""
    stage = replace(PLATEAU, epochs=1, schedule="constant")
    twice = train_network(
        *toy_sets(), TrainingSettings((stage, replace(stage, name="again"))), seed=1
    )
    before, after = (
        torch.cat([p.detach().flatten() for p in net.parameters()]) for net in twice.after.values()
    )
    step = (after - before).abs()
    assert step[step > 0].median() == pytest.approx(stage.learning_rate, rel=1e-3)


def test_a_training_killed_between_its_stages_goes_on_with_the_second(
    toy_sets, tmp_path, monkeypatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    settings, seen = TrainingSettings((STUCK, PLATEAU)), []

    def stop(state):
        seen.append((state.stage, state.epoch))
        if seen[-1] == ("punzi", 2):
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        train_network(*toy_sets(), settings, seed=1, checkpoint=path, progress=stop)
    seen.clear()
    resumed = train_network(*toy_sets(), settings, seed=1, checkpoint=path, progress=stop_not(seen))
    whole = train_network(*toy_sets(), settings, seed=1)
    assert seen[0][0] == "punzi"
    assert np.array_equal(resumed.history.train_loss, whole.history.train_loss)
    assert np.array_equal(resumed.history.learning_rate, whole.history.learning_rate)


def stop_not(seen):
    return lambda state: seen.append((state.stage, state.epoch))
