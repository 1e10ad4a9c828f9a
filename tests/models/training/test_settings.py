"""Defaults are those that the documentation gives, with their source."""

import re
from dataclasses import replace

import pytest

from models.training import losses
from models.training.settings import DEFAULT, PRESETS, Stage, TrainingSettings


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
    """But for the batches and epochs of the authors' own programs."""
    stages = {name: settings.stages[0] for name, settings in PRESETS.items()}
    bce = stages["paper"]
    assert stages["default"] == bce
    assert stages["authors"] == replace(bce, epochs=150, batch_size=4096)
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
