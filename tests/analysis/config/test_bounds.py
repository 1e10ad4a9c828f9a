"""A number outside of its range is refused under its own name."""

import pytest

from analysis.config.configuration import ConfigError, parse

TEXT = """\
luminosity_inv_fb: 50
samples:
  signal: {kind: signal, files: "s_{mass}.root", masses_gev: [1, 2], n_generated: 10}
  taupair:
    {kind: background, files: "t_{part}.root", luminosity_inv_fb: 200,
     simulate: {process: taupair, seed: 1, parts: 2, n_generated: 70}}
"""
POSITIVE, NOT_NEGATIVE = [0, -1], [-1]

SETTINGS = {
    "windows.n_sigma": [*POSITIVE, 10.1],
    "windows.min_events": [19],
    "windows.train_every": POSITIVE,
    "sensitivity.a": [*POSITIVE, 10.1],
    "sensitivity.b": [*POSITIVE, 10.1],
    "training.networks": [*POSITIVE, 1001],
    "training.seed": [*NOT_NEGATIVE, 2**31],
    "training.folds": [*POSITIVE, 21],
    "training.validation_fraction": [*POSITIVE, 1],
    "training.hidden": ["[]", "[0]", "[8, 4097]", str([8] * 11)],
    "training.power": [*NOT_NEGATIVE, 10.1],
    "training.hypothesis_weights": ["[]", "[-1, 2]"],
    "training.bce.epochs": [*NOT_NEGATIVE, 1_000_001],
    "training.punzi.learning_rate": POSITIVE,
    "training.punzi.batch_size": POSITIVE,
    "training.punzi.patience": NOT_NEGATIVE,
    "training.punzi.factor": [*POSITIVE, 1],
    "evaluation.single_cut": [*NOT_NEGATIVE, 1.1, "best"],
}


def test_the_text_without_a_change_is_good():
    assert parse(TEXT, where="here").settings.training.networks == 1


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in SETTINGS.items() for value in values]
)
def test_a_setting_outside_of_its_range_is_named(name, value):
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        parse(TEXT, where="here", overrides=[f"{name}={value}"])


ENDS = {
    "windows.n_sigma": [10],
    "windows.min_events": [20],
    "windows.train_every": [1],
    "training.folds": [1, 20],
    "training.validation_fraction": [0.01, 0.99],
    "training.power": [0, 10],
    "training.seed": [0, 2**31 - 1],
    "training.networks": [1, 1000],
    "training.punzi.epochs": [0, 1_000_000],
    "training.punzi.patience": [0],
    "training.punzi.batch_size": [1],
    "evaluation.single_cut": [0, 1],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in ENDS.items() for value in values]
)
def test_the_ends_of_a_range_belong_to_it(name, value):
    settings = parse(TEXT, where="here", overrides=[f"{name}={value}"]).settings
    for part in name.split("."):
        settings = getattr(settings, part)
    assert settings == value


SAMPLES = {
    "n_generated: 10": ["n_generated: 0", "n_generated: -5"],
    "n_generated: 70": ["n_generated: 0", "n_generated: -5"],
    "parts: 2": ["parts: 0", "parts: -1", "parts: 10000"],
    "seed: 1": ["seed: -1", "seed: 2147483648"],
    "luminosity_inv_fb: 200": ["luminosity_inv_fb: 0", "luminosity_inv_fb: -1"],
    "luminosity_inv_fb: 50": ["luminosity_inv_fb: 0", "luminosity_inv_fb: -1"],
    "masses_gev: [1, 2]": ["masses_gev: []"],
}


@pytest.mark.parametrize(("good", "bad"), [(g, b) for g, bad in SAMPLES.items() for b in bad])
def test_a_number_of_a_sample_outside_of_its_range_is_named(good, bad):
    assert good in TEXT
    with pytest.raises(ConfigError, match=good.split(":")[0]):
        parse(TEXT.replace(good, bad), where="here")
