"""The analysis on arrays in memory gives what a run gives, whatever library the arrays are of."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

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
    with pytest.raises(UserError, match="not negative"):
        event_table(signal, {"background": negative}, **options)
    one = signal_windows(table)
    trained = trained_model(table, one, luminosity_inv_fb=50.0, settings=QUICK, folds=2)
    with pytest.raises(UserError, match="one fold"):
        sensitivity(trained.of_fold(0), table)


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    for mass in (2, 3, 4):
        made = ntuple_columns(1500, seed=mass, mass_gev=float(mass))
        save_ntuple(tmp_path / f"data/demo/signal_{mass}.0.root", made)
    save_ntuple(tmp_path / "data/demo/taupair_0000.root", ntuple_columns(12_000, seed=9))
    (example,) = re.findall(r"```python\n(import.*?)```", (ROOT / "docs/api.md").read_text(), re.S)
    assert len(example.strip().splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    space = {}
    exec(example.replace("(1.0, 3.0, 5.0)", "(2.0, 3.0, 4.0)"), space)  # noqa: S102
    assert (tmp_path / "sigma_min.pdf").stat().st_size > 5000
    assert np.isfinite(space["figures"][1].sigma_min_fb).all()
