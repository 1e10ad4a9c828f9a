"""The analysis on arrays in memory gives what a run gives, whatever library the arrays are of."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from analysis.inputs.datasets import filled
from analysis.interface import (
    column_names,
    event_table,
    scored_events,
    sensitivity,
    signal_windows,
    trained_model,
)
from models.training.settings import DEFAULT
from selection.errors import UserError
from selection.table import Folds
from tests.conftest import ntuple_columns, save_ntuple

MASSES = (2.0, 3.0, 4.0)
QUICK = replace(
    DEFAULT,
    stages=(
        replace(DEFAULT.stages[0], epochs=60),
        replace(DEFAULT.stages[1], epochs=150, refine=30),
    ),
)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def samples():
    signal = {m: ntuple_columns(1000, seed=int(m), mass_gev=m) for m in MASSES}
    return signal, {"background": ntuple_columns(12_000, seed=50)}


@pytest.fixture(scope="module")
def table(samples):
    return event_table(*samples, n_generated=1200, luminosity_inv_fb=50.0)


@pytest.fixture(scope="module")
def model(table):
    windows = signal_windows(table)
    return trained_model(table, windows, luminosity_inv_fb=50.0, settings=QUICK, folds=2)


def test_weights_of_signal_add_up_to_efficiencies_and_of_background_to_events(table, samples):
    for mass, made in samples[0].items():
        own = table.signal_mass_gev == mass
        assert table.weight[own].sum() == pytest.approx(own.sum() / 1200)
        assert 0.3 * len(made["weight"]) < own.sum() <= len(made["weight"])
    background = ~table.is_signal
    largest = 50 * samples[1]["background"]["weight"].sum()
    assert 0.3 * largest < table.weight[background].sum() <= largest


def test_the_table_is_that_of_a_run_on_the_same_files(evaluated, small_inputs):
    """Features, axis, weights and identities of the selected events of the small run."""
    import uproot

    _, _, _, simulated = evaluated
    read = {p.stem: uproot.open(p)["variables"].arrays(library="np")
            for p in small_inputs.glob("*.root")}  # fmt: skip
    signal = {float(m): read[f"signal_{m}"] for m in range(1, 6)}
    for k in (0, 1):
        found = event_table(
            signal, {"background": read[f"background_{k}"]}, n_generated=1200,
            luminosity_inv_fb=50.0,
        )  # fmt: skip
        of_run = simulated.table
        order, wanted = (np.lexsort((t.axis, t.signal_mass_gev)) for t in (found, of_run))
        ours = found.take(order[np.isin(found.axis[order], of_run.axis)])
        theirs = of_run.take(wanted[np.isin(of_run.axis[wanted], found.axis)])
        assert len(ours) == len(found)
        for name in ("features", "axis", "weight", "identity"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


@pytest.mark.parametrize("kind", ["pandas", "awkward", "our own names"])
def test_any_table_of_columns_gives_the_same_events(samples, table, kind):
    signal, background = samples

    def other(made):
        if kind == "awkward":
            return pytest.importorskip("awkward").Array(made)
        if kind == "pandas":
            return pytest.importorskip("pandas").DataFrame(made)
        return {name.strip("_"): column for name, column in made.items()}

    found = event_table(
        {m: other(c) for m, c in signal.items()},
        {name: other(c) for name, c in background.items()},
        n_generated=dict.fromkeys(signal, 1200),
        luminosity_inv_fb=50.0,
    )
    assert np.array_equal(found.features, table.features)
    assert np.array_equal(found.identity, table.identity)


def test_a_model_judges_each_event_by_a_network_that_has_not_seen_it(model, table, samples):
    figures = sensitivity(model, table)
    single = next(f for f in figures if f.selection == "single_cut" and f.quoted_on == "validation")
    fold = Folds(2).of(table.identity)
    score = np.choose(fold, [model.of_fold(k).score(table.features) for k in (0, 1)])
    for i, mass in enumerate(MASSES):
        inside = (table.axis > model.windows.low[i]) & (table.axis < model.windows.high[i])
        kept = inside & (score >= 0.5)
        own = kept & (table.signal_mass_gev == mass)
        assert single.efficiency[i] == pytest.approx(table.weight[own].sum(), rel=1e-6)
        assert single.background[i] == pytest.approx(table.weight[kept & ~table.is_signal].sum())
    again = scored_events(model, samples[0][2.0])
    own = table.signal_mass_gev == 2.0
    assert again.selected.sum() == own.sum()
    assert np.array_equal(again.score[again.selected], score[own].astype(np.float32))
    assert (again.passes <= again.selected).all()


def test_missing_columns_and_numbers_are_said(samples, table):
    signal, background = samples
    required, optional = column_names()
    assert "mu_plus_px" in required
    assert "event" in optional
    wrong = {n if n != "mu_plus_px" else "mu_plus_pz_": v for n, v in signal[2.0].items()}
    options = {"n_generated": 1200, "luminosity_inv_fb": 50.0}
    with pytest.raises(UserError, match=r"no column 'mu_plus_px' \(nearest: mu_plus_p"):
        event_table({2.0: wrong}, background, **options)
    with pytest.raises(UserError, match="n_generated has no number for 3 GeV"):
        event_table(signal, background, n_generated={2.0: 1200}, luminosity_inv_fb=50.0)
    negative = background["background"] | {"weight": -background["background"]["weight"]}
    with pytest.raises(UserError, match=r"background: 100 % of the weights are negative"):
        event_table(signal, {"background": negative}, **options)
    accepted = event_table(signal, {"background": negative}, accept=["negative_weights"], **options)
    assert accepted.weight[~accepted.is_signal].max() < 0
    one = signal_windows(table)
    trained = trained_model(table, one, luminosity_inv_fb=50.0, settings=QUICK, folds=2)
    with pytest.raises(UserError, match="one fold"):
        sensitivity(trained.of_fold(0), table)


def without_last_rows(columns):
    return columns | {"mu_plus_pz": columns["mu_plus_pz"][:-3]}


def in_mev(columns):
    momenta = [n for n in columns if re.fullmatch(r"mu_(plus|minus)_(px|py|pz|e)", n)]
    return columns | {name: 1000 * columns[name] for name in momenta}


def of_texts(columns):
    return columns | {"mu_plus_px": columns["mu_plus_px"].astype(str)}


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (without_last_rows, "column 'mu_plus_py' has 1000 rows|'mu_plus_pz' has 997 rows"),
        (in_mev, r"look like MeV.*\[off_shell\]"),
        (of_texts, "'mu_plus_px' is .*such as .*wanted one number a row"),
        (lambda columns: {n: c[:0] for n, c in columns.items()}, "has no rows"),
        (lambda columns: list(columns.values()), "has names .*this is list"),
    ],
)
def test_columns_that_cannot_be_right_are_refused_with_the_name_of_their_table(
    samples, model, spoilt, message
):
    signal, background = samples
    options = {"n_generated": 1200, "luminosity_inv_fb": 50.0}
    with pytest.raises(UserError, match=f"signal/2.*({message})"):
        event_table({2.0: spoilt(signal[2.0])}, background, **options)
    with pytest.raises(UserError, match=f"the table.*({message})"):
        scored_events(model, spoilt(signal[2.0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_generated": 0}, "n_generated of 2 GeV is 0"),
        ({"n_generated": 10}, r"signal/2: \d+ rows pass the cuts of 10 events"),
        ({"luminosity_inv_fb": -1.0}, "luminosity_inv_fb is -1"),
    ],
)
def test_numbers_that_no_sample_has_are_refused(samples, changes, message):
    options = {"n_generated": 1200, "luminosity_inv_fb": 50.0} | changes
    with pytest.raises(UserError, match=message):
        event_table(*samples, **options)


def test_a_table_in_the_place_of_a_mapping_is_recognised(samples):
    pandas = pytest.importorskip("pandas")
    signal, background = samples
    options = {"n_generated": 1200, "luminosity_inv_fb": 50.0}
    for wrong in (-2.0, "two"):
        with pytest.raises(UserError, match="mapping from the mass in GeV to its table"):
            event_table({wrong: signal[2.0]}, background, **options)
    with pytest.raises(UserError, match="cannot be called 'signal'"):
        event_table(signal, {"signal": background["background"]}, **options)
    with pytest.raises(UserError, match="a single column"):
        event_table(signal, pandas.DataFrame(background["background"]), **options)


def test_missing_numbers_of_a_data_frame_fail_the_cuts_and_change_nothing_else(samples, table):
    pandas = pytest.importorskip("pandas")
    signal, background = samples
    frame = pandas.DataFrame(signal[2.0]).astype({"mu_plus_px": "Float64"})
    frame.loc[frame.index[:50], "mu_plus_px"] = pandas.NA
    found = event_table(
        {**signal, 2.0: frame}, background, n_generated=1200, luminosity_inv_fb=50.0
    )
    lost = (table.signal_mass_gev == 2.0).sum() - (found.signal_mass_gev == 2.0).sum()
    assert 0 < lost <= 50
    assert np.isin(found.identity, table.identity).all()
    assert np.isfinite(found.features).all()


SMALL = """\
luminosity_inv_fb: 50
samples:
  signal:
    kind: signal
    files: data/demo/signal_{mass}.root
    masses_gev: [2, 3, 4]
    n_generated: 1600
  taupair: {kind: background, files: data/demo/taupair_*.root, weight: weight}
  data: {kind: data, files: data/demo/data.root, luminosity_inv_fb: 3}
settings:
  training: {folds: 2, bce_equal_budget: false, bce: {epochs: 60}, punzi: {epochs: 150, refine: 30}}
  evaluation: {xgboost: false}
  plots: {signal_masses_gev: [3], formats: [], dpi: 60}
"""


def test_the_examples_of_the_page_run_one_after_the_other_as_a_script(tmp_path):
    """Printing what they say they print; processes that they start do not run the script again."""
    pattern = yaml.safe_load((ROOT / "datasets.yaml").read_text())["samples"]["signal"]["files"]
    for mass in (2.0, 3.0, 4.0):
        made = ntuple_columns(1500, seed=int(mass), mass_gev=mass)
        save_ntuple(tmp_path / filled(pattern, mass_gev=mass, part=0), made)
    save_ntuple(tmp_path / "data/demo/taupair_0000.root", ntuple_columns(12_000, seed=9))
    data = ntuple_columns(3000, seed=10)
    save_ntuple(tmp_path / "data/demo/data.root", {n: data[n] for n in data if n != "weight"})
    (tmp_path / "datasets.yaml").write_text(SMALL)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text(), re.S)
    first = examples[0].replace("(1.0, 3.0, 5.0)", "(2.0, 3.0, 4.0)")
    assert len(first.strip().splitlines()) <= 12
    assert first != examples[0]
    (tmp_path / "page.py").write_text("\n".join([first, *examples[1:]]))
    done = subprocess.run(
        [sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, timeout=400,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"Counts\(entries=3000, .*\)\n", done.stdout)
    assert "findfont" not in done.stderr
    made = ("sigma_min.pdf", "limit.pdf", "runs/demo/plots/limit_cross_section.png")
    assert all((tmp_path / name).stat().st_size > 5000 for name in made)
    assert (tmp_path / "scored/data.friend.root").is_file()
    assert "mu_plus_px" in (tmp_path / "passing.csv").read_text().partition("\n")[0]
