"""Every mistake in a configuration is named with its line, what was wanted and the nearest name."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from analysis.config.configuration import ConfigError, Configuration, as_yaml, load, parse
from analysis.config.samples import MassRange
from analysis.inputs.datasets import datasets, filled, matching_files
from models.training.settings import PRESETS, with_equal_budget

GOOD = """\
luminosity_inv_fb: 50
samples:
  signal:
    kind: signal
    files: signal_{mass}.root
    masses_gev: {first: 0.1, last: 8.9, step: 0.1}
    n_generated: 3000
  taupair:
    kind: background
    files: [tau_1.root, tau_2.root]
    luminosity_inv_fb: 450
  measured:
    kind: data
    files: data.root
    luminosity_inv_fb: 5
settings:
  windows: {n_sigma: 2}
"""

MISTAKES = [
    (
        "luminosity_inv_fb: 50",
        "luminosity: 50",
        r"line 1: luminosity: no such key; did you mean 'lum",
    ),
    ("luminosity_inv_fb: 50", "luminosity_inv_fb: -3", r"line 1: .*greater than 0, found -3"),
    ("luminosity_inv_fb: 50", "luminosity_inv_fb: fifty", r"line 1: .*valid number.*'fifty'"),
    ("n_generated: 3000", "n_generatd: 3000", r"line 7: .*n_generatd: .* mean 'n_generated'\?"),
    ("n_generated: 3000", "n_generated: 2.5", r"line 7: samples\.signal\.n_generated: .*integer"),
    (
        "last: 8.9",
        "last: 10.9",
        r"line 6: .*10\.6 GeV is out of range: expected 0 < mass < 10\.580",
    ),
    ("last: 8.9", "last: 0.01", r"line 6: .*last=0\.01 lies below first=0\.1"),
    ("first: 0.1", "first: 0", r"line 6: .*greater than 0"),
    ("{first: 0.1, last: 8.9, step: 0.1}", "[1, 2, 2]", r"line 6: .*listed twice"),
    (
        "files: signal_{mass}.root",
        "files: signal.root",
        r"line 5: .*needs \{mass\} or \{mass_mev\}",
    ),
    ("signal_{mass}.root", "signal_{mas}.root", r"line 5: .*\{mas\} has no meaning"),
    ("signal_{mass}.root", "signal_{mass.__class__}", r"line 5: .*has no meaning"),
    ("files: [tau_1.root, tau_2.root]", "files: []", r"line 10: .*at least 1 item"),
    ("    files: data.root\n", "", r"line 12: samples\.measured\.files: is required and missing"),
    (
        "    luminosity_inv_fb: 450\n",
        "",
        r"line 8: .*luminosity_inv_fb or weight.*neither is given",
    ),
    ("luminosity_inv_fb: 450", "luminosity_inv_fb: 450\n    weight: w", r"both are given"),
    ("  taupair:", "  signal:", r"line 8: 'signal' is given twice"),
    ("  taupair:", "  ../taupair:", r"letters, digits, - and _ only"),
    ("kind: background", "kind: backgruond", r"line 8: .*'signal', 'background', 'data'"),
    ("kind: data", "kind: signal", r"is required and missing"),
    ("{n_sigma: 2}", "{nsigma: 2}", r"line 17: settings\.windows\.nsigma: .* mean 'n_sigma'\?"),
    ("{n_sigma: 2}", "2", r"line 17: settings\.windows: "),
    ("windows:", "window:", r"line 17: settings\.window: no such key; did you mean 'windows'\?"),
    ("settings:", "settings: 3\nmore:", r"settings"),
    ("samples:", "columns: {mu_plus_pxx: px}\nsamples:", r"line 2: .* mean 'mu_plus_px'\?"),
    ("samples:", "candidates: best\nsamples:", r"line 2: candidates: .*'unique', 'first' or 'all'"),
    ("samples:", "beams: {electron_energy: 7}\nsamples:", r"line 2: .*'electron_energy_gev'"),
    ("samples:", "beams: {electron_energy_gev: -7}\nsamples:", r"line 2: .*must be positive"),
    (GOOD, "", r"must hold a mapping"),
    (GOOD, "- a\n- b\n", r"must hold a mapping"),
    (GOOD, "a: [1, 2\n", r"is not valid YAML"),
    (GOOD, "!!python/object/apply:os.system ['true']", r"is not valid YAML"),
    (
        "kind: data",
        "kind: data\n    simulate: {process: taupair, seed: 1}",
        r"does not fit kind data",
    ),
    (
        "luminosity_inv_fb: 450",
        "weight: w\n    simulate: {process: alp, seed: 1, n_generated: 5}",
        r"process alp does not fit kind background",
    ),
    (
        "luminosity_inv_fb: 450",
        "weight: w\n    simulate: {process: taupair, seed: 1, n_generated: 5, parts: 2}",
        r"one local path",
    ),
]


@pytest.mark.parametrize(("good", "bad", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_place(good, bad, message):
    assert good in GOOD
    with pytest.raises(ConfigError, match=message) as caught:
        parse(GOOD.replace(good, bad, 1), where="my.yaml")
    assert "my.yaml" in str(caught.value)


def test_all_mistakes_are_reported_at_once():
    text = GOOD.replace("n_generated", "n_gen").replace("luminosity_inv_fb: 450", "lumi: 1")
    with pytest.raises(ConfigError, match="has 2 problems"):
        parse(text, where="my.yaml")


def test_a_missing_file_says_how_to_give_one(tmp_path):
    with pytest.raises(ConfigError, match=r"no configuration file .*nothere\.yaml; .*--config"):
        load(tmp_path / "nothere.yaml")


def test_overrides_reach_the_settings_and_are_checked():
    changed = parse(GOOD, where="y", overrides=["windows.n_sigma=3", "training.punzi.epochs=7"])
    assert changed.settings.windows.n_sigma == 3
    assert changed.settings.training.punzi.epochs == 7
    with pytest.raises(ConfigError, match="did you mean 'epochs'"):
        parse(GOOD, where="y", overrides=["training.punzi.epoch=7"])
    with pytest.raises(ConfigError, match=r"must read section\.key=value"):
        parse(GOOD, where="y", overrides=["windows.n_sigma"])


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_what_the_models_say_and_can_be_changed(name):
    config = parse(GOOD, where="y", overrides=[f"preset={name}"])
    assert config.settings.training_settings() == with_equal_budget(PRESETS[name])
    alone = [f"preset={name}", "training.bce_equal_budget=false"]
    config = parse(GOOD, where="y", overrides=alone)
    assert config.settings.training_settings() == PRESETS[name]
    changed = parse(GOOD, where="y", overrides=[f"preset={name}", "sensitivity.a=5"])
    assert changed.settings.training_settings().a == 5
    assert changed.settings.training_settings().stages[:2] == PRESETS[name].stages


def test_a_stage_counts_epochs_or_steps_and_a_person_replaces_the_count_of_the_preset():
    changed = parse(GOOD, where="y", overrides=["training.bce.steps=200000"]).settings
    assert (changed.training.bce.epochs, changed.training.bce.steps) == (None, 200_000)
    assert changed.training.punzi.epochs == PRESETS["default"].stages[1].epochs
    first, _, equal = changed.training_settings().stages
    assert (first.epochs, first.steps) == (0, 200_000)
    assert equal.steps is None
    both = ["training.bce.steps=200000", "training.bce.epochs=7"]
    with pytest.raises(ConfigError, match="epochs = 7 and steps = 200000; give one of them"):
        parse(GOOD, where="y", overrides=both)
    with pytest.raises(ConfigError, match="give one of them"):
        parse(GOOD, where="y", overrides=["training.bce.epochs=null"])


def test_a_resolved_configuration_with_steps_can_be_read_again():
    config = parse(GOOD, where="y", overrides=["training.punzi.steps=77", "preset=authors"])
    again = parse(as_yaml(config), where="again")
    assert again.settings == config.settings
    assert again.settings.training.bce.plateau_on == "epoch_mean"


def test_the_masses_of_a_range_are_round_numbers():
    masses = MassRange(first=0.1, last=8.9, step=0.1).values()
    assert len(masses) == 89
    assert masses[2] == 0.3
    assert masses[-1] == 8.9


def test_patterns_know_three_names_and_nothing_else():
    assert filled("s_{mass}_{mass_mev}_{part}", mass_gev=0.3, part=7) == "s_0.3_300_0007"
    assert filled("{part.__class__}", mass_gev=None, part=0) == "{part.__class__}"


def test_globs_are_sorted_and_a_missing_match_is_kept_to_be_reported(tmp_path):
    for name in ("b.root", "a.root"):
        (tmp_path / name).touch()
    sample = parse(GOOD.replace("data.root", "['*.root', 'x_*.root']"), where="y").samples[
        "measured"
    ]
    found = matching_files(sample, tmp_path)
    assert [f.removeprefix(str(tmp_path)) for f in found] == ["/a.root", "/b.root", "/x_*.root"]


def test_weights_of_the_data_sets():
    text = GOOD.replace("n_generated: 3000", "n_generated: 3000\n    scale_factors: {trigger: 0.9}")
    sets = {ds.name: ds for ds in datasets(parse(text, where="y"), folder=Path())}
    signal = sets["signal/0.3"]
    assert signal.constant_weight * signal.scale == pytest.approx(0.9 / 3000)
    assert sets["taupair"].constant_weight == pytest.approx(50 / 450)
    assert sets["measured"].constant_weight == 1


words = st.sampled_from(
    [
        "luminosity_inv_fb",
        "samples",
        "kind",
        "signal",
        "files",
        "data",
        "settings",
        "windows",
        "x",
        "",
    ]
)
plain = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=5)
trees = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(trees)
def test_any_yaml_is_a_configuration_or_a_clear_error(tree):
    text = yaml.safe_dump(tree)
    try:
        assert isinstance(parse(text, where="fuzz.yaml"), Configuration)
    except ConfigError as error:
        assert "fuzz.yaml" in str(error)


@given(st.text(max_size=60))
def test_any_text_is_a_clear_error(text):
    with pytest.raises(ConfigError, match=r"fuzz\.yaml"):
        parse(text, where="fuzz.yaml")


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("{}[]:-!&*#\"'\n \tx0"))
def test_one_wrong_character_is_never_a_traceback(at, character):
    try:
        parse(GOOD[:at] + character + GOOD[at + 1 :], where="fuzz.yaml")
    except ConfigError as error:
        assert "fuzz.yaml" in str(error)


def test_a_misspelt_key_of_a_range_of_masses_is_named_with_its_nearest():
    text = GOOD.replace("step", "stepp")
    assert text != GOOD
    with pytest.raises(
        ConfigError, match=r"masses_gev\.stepp: no such key; did you mean 'step'"
    ) as e:
        parse(text, where="test")
    assert "function" not in str(e.value)
    assert "tuple" not in str(e.value)


REGION = "regions: {{sideband: {{cuts: {{{}}}}}}}\n"
WRONG_REGIONS = [
    ('extra_energi: "extra_energy > 0.4"', r"line 1: regions\.sideband\.cuts\.extra_energi: no such "
     r"key; did you mean 'extra_energy'\?; a region changes cuts of the search"),
    ('extra_energy: "extra_energy >"', r"line 1: regions\.sideband\.cuts\.extra_energy: "),
    ('extra_energy: "recoil.masss < 1"', r"line 1: regions\..*did you mean mass"),
    ("extra_energy: null", r"line 1: regions\.sideband\.cuts: holds the whole search region"),
    ('extra_energy: "extra_energy < 0.4"', r"holds the whole search region: turn a cut round"),
    ("", r"line 1: regions\.sideband\.cuts: .*at least 1 item"),
    ("extra_energy: 3", r"regions\.sideband\.cuts\.extra_energy: .*valid string"),
]  # fmt: skip


@pytest.mark.parametrize(("cuts", "message"), WRONG_REGIONS)
def test_a_wrong_region_is_named_with_its_place(cuts, message):
    with pytest.raises(ConfigError, match=message):
        parse(REGION.format(cuts) + GOOD, where="my.yaml")


def test_regions_have_names_of_their_own():
    text = REGION.format('pt_mumu: "pt_mumu < 1"') + GOOD
    for name in ("preselection", "../side", "a b"):
        with pytest.raises(ConfigError, match=f"line 1: regions\\.{name}: "):
            parse(text.replace("sideband", f"'{name}'"), where="my.yaml")


def test_a_region_changes_the_cuts_that_the_configuration_has_changed():
    """`cuts:` of the file first; what is written out again says the same."""
    text = REGION.format('own: "extra_energy > 0.2"') + GOOD
    with pytest.raises(ConfigError, match="no such key"):
        parse(text, where="my.yaml")
    config = parse(text + "cuts: {own: extra_energy < 0.2, pt_mumu: null}\n", where="my.yaml")
    found = config.region_searches["sideband"]
    assert found.cuts == config.definition.cuts | {"own": "extra_energy > 0.2"}
    assert "pt_mumu" not in found.cuts
    again = parse(as_yaml(config), where="again")
    assert again.region_searches["sideband"].identity == found.identity


def test_columns_of_a_region_may_be_mapped():
    text = REGION.format('pt_mumu: "abs(t0) < 1"') + "columns: {t0: timing}\n" + GOOD
    with pytest.raises(ConfigError, match=r"line 2: columns\.t0"):
        parse(text.partition("\n")[2].replace("columns", "\ncolumns", 1), where="my.yaml")
    assert parse(text, where="my.yaml").columns == {"t0": "timing"}
