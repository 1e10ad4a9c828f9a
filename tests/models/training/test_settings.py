"""Defaults are those that the documentation gives, with their source."""

import re
from dataclasses import replace

import pytest

from models.training import losses
from models.training.batches import random_batches, shuffled_in_groups, stratified_batches
from models.training.settings import DEFAULT, PRESETS, Stage, TrainingSettings, with_epochs


def test_the_default_power_is_that_of_the_losses():
    (written,) = re.findall(r"Default p = ([\d.]+)", losses.__doc__)
    assert float(written) == DEFAULT.power
    assert DEFAULT.log_loss


def test_the_exclusion_is_of_90_percent_and_one_sided():
    from statistics import NormalDist

    for settings in PRESETS.values():
        assert NormalDist().cdf(settings.b) == pytest.approx(0.9, abs=1e-6)
        assert settings.punzi_formula(7.0).luminosity_inv_fb == 7.0
    formula = replace(DEFAULT, a=5.0, b=2.0, formula="refined").punzi_formula(1.0)
    assert (formula.a, formula.b, formula.form) == (5.0, 2.0, "refined")


def test_all_presets_share_the_pretraining_of_the_paper():
    """But for batches, epochs and the loss that is looked at in the authors' own programs."""
    stages = {name: settings.stages[0] for name, settings in PRESETS.items()}
    bce = stages["paper"]
    assert stages["default"] == bce
    assert stages["authors"] == replace(bce, epochs=150, batch_size=4096, plateau_on="epoch_mean")
    assert (bce.name, bce.loss, bce.learning_rate, bce.batch_size) == ("bce", "bce", 1.0, 2048)
    assert (bce.optimizer, bce.schedule, bce.batching, bce.epochs) == (
        "sgd", "plateau", "random", 200,
    )  # fmt: skip


@pytest.mark.parametrize("power", [0.0, 1.0, 10.0])
def test_powers_from_0_to_10_are_accepted(power):
    assert replace(DEFAULT, power=power).power == power
    for wrong in (-0.01, 10.01, float("nan")):
        with pytest.raises(ValueError, match="between 0 and 10"):
            replace(DEFAULT, power=wrong)


@pytest.mark.parametrize("weights", [(0.0, 0.0), (-1.0, 2.0)])
def test_hypothesis_weights_are_not_negative_nor_all_zero(weights):
    with pytest.raises(ValueError, match="must not be negative nor all zero"):
        TrainingSettings(DEFAULT.stages, hypothesis_weights=weights)
    assert TrainingSettings(DEFAULT.stages, hypothesis_weights=(0.0, 1.0))


@pytest.mark.parametrize(
    "change",
    [
        {"batch_size": 0},
        {"patience": -1},
        {"factor": 0.0},
        {"factor": 1.0},
        {"learning_rate": -1.0},
        {"epochs": -1},
        {"steps": 0},
    ],
    ids=str,
)
def test_edges_of_a_stage(change):
    good = Stage("s", "bce", 0, 1e-9, batch_size=1, patience=0, factor=0.999)
    with pytest.raises(ValueError, match="stage 's'"):
        replace(good, **change)


def test_stages_have_different_names():
    with pytest.raises(ValueError, match="different names"):
        TrainingSettings(())
    first = DEFAULT.stages[0]
    with pytest.raises(ValueError, match="different names"):
        TrainingSettings((first, replace(first, epochs=1)))


@pytest.mark.parametrize("size", [1, 7, 800, 2048, 10**6])
def test_the_steps_of_an_epoch_are_its_batches(toy_sets, size):
    data, _ = toy_sets(n_background=500, n_signal=40)
    stage = Stage("s", "punzi", 1, 0.1, batch_size=size, batching="random")
    assert stage.batches(len(data)) == len(random_batches(data, size, (1,)).start)
    strata = replace(stage, batching="stratified")
    deal = stratified_batches(shuffled_in_groups(data, (1,)), size, (1,))
    assert strata.batches(len(data)) == len(deal.start)
    assert replace(stage, batch_size=None).batches(len(data)) == 1


def test_a_stage_that_counts_steps_lasts_as_many_epochs_as_they_need():
    bce, punzi = DEFAULT.stages
    counted = replace(DEFAULT, stages=(replace(bce, epochs=0, steps=1001), punzi))
    found = [with_epochs(counted, n).stages[0].epochs for n in (2048 * 100, 2048 * 10 + 1, 5)]
    assert found == [11, 91, 1001]  # of 100, 11 and 1 batches
    assert with_epochs(counted, 5).stages[1] == punzi
    assert with_epochs(DEFAULT, 12345) == DEFAULT
