"""Who may know which events: cuts are chosen on one part and quoted on the other."""

from dataclasses import replace

import numpy as np
import pytest

from models.evaluation.figures_of_merit import Quoting, figures_of_merit, quote, split_events
from models.sensitivity import PunziFormula
from selection.table import Folds

A, B_CL, LUMINOSITY_INV_FB, HELD_OUT = 3.0, 1.28155, 50.0, 0.3
FORMULA = PunziFormula(LUMINOSITY_INV_FB, A, B_CL)
FOLDS = Folds(1, HELD_OUT)
FREE = Quoting(FORMULA, single_cut=None)


def events_needed(background):
    """N(B) of the paper, written out again."""
    root = np.sqrt(B_CL**2 + 4 * A * np.sqrt(background) + 4 * background)
    return B_CL**2 / 2 + A * np.sqrt(background) + B_CL / 2 * root


@pytest.fixture(scope="module")
def table(toy_table):
    return toy_table(n_background=6000, n_signal=200, seed=8)


@pytest.fixture(scope="module")
def score(table):
    """Signal above background, moderately."""
    return 1 / (1 + np.exp(2 - table.features[:, 3].astype(float)))


@pytest.fixture(scope="module")
def held_out(table):
    return FOLDS.of(table.identity) == 0


@pytest.fixture(scope="module")
def split(table, toy_windows):
    trained = np.arange(len(toy_windows)) % 2 == 0
    return split_events(table, toy_windows, trained=trained, folds=FOLDS)


def figures(split, score, quoting=FREE):
    found = figures_of_merit(split, [score], classifier="punzi", network=3, quoting=quoting)
    return {(f.selection, f.quoted_on): f for f in found}


def spoiled(score, rows):
    """Scores that say nothing, of some of the events."""
    return np.where(rows, np.random.default_rng(1).uniform(0, 1, len(score)), score)


def test_cuts_do_not_know_the_events_they_are_quoted_on(split, score, held_out):
    before, after = figures(split, score), figures(split, spoiled(score, held_out))
    for selection in ("best_cut", "single_cut"):
        for part in ("validation", "training"):
            assert np.array_equal(before[selection, part].cut, after[selection, part].cut)
        one, other = before[selection, "training"], after[selection, "training"]
        assert np.array_equal(one.sigma_min_fb, other.sigma_min_fb)
        one, other = before[selection, "validation"], after[selection, "validation"]
        assert (one.sigma_min_fb < other.sigma_min_fb).all()


def test_cuts_depend_on_the_training_events(split, score, held_out):
    before, after = figures(split, score), figures(split, spoiled(score, ~held_out))
    for selection in ("best_cut", "single_cut"):
        assert (before[selection, "validation"].cut != after[selection, "validation"].cut).any()


def test_the_maximum_achievable_knows_nothing_but_the_quoted_events(split, score, held_out):
    before, after = figures(split, score), figures(split, spoiled(score, ~held_out))
    name = ("maximum_achievable", "validation")
    assert np.array_equal(before[name].cut, after[name].cut)
    assert np.array_equal(before[name].sigma_min_fb, after[name].sigma_min_fb)
    other = figures(split, spoiled(score, held_out))[name]
    assert (before[name].cut != other.cut).any()


def test_every_record_says_what_it_is(split, score):
    found = figures(split, score)
    assert set(found) == {
        ("best_cut", "validation"), ("single_cut", "validation"),
        ("maximum_achievable", "validation"), ("best_cut", "training"), ("single_cut", "training"),
    }  # fmt: skip
    for f in found.values():
        assert (f.classifier, f.network, f.luminosity_inv_fb) == ("punzi", 3, LUMINOSITY_INV_FB)
        assert np.array_equal(f.mass_gev, split[0].mass_gev)
        assert f.trained.tolist() == [True, False] * 3
    given = figures(split, score, replace(FREE, single_cut=0.37))
    assert set(given["single_cut", "validation"].cut) == {0.37}


def test_each_split_holds_its_events_and_stands_for_all(table, toy_windows, split, held_out):
    mass2 = table.axis
    for part, rows, share in (
        ("training", ~held_out, 1 - HELD_OUT),
        ("judged", held_out, HELD_OUT),
    ):
        events = getattr(split[0], part)
        inside = (toy_windows.low[:, None] < mass2) & (mass2 < toy_windows.high[:, None])
        seen = rows & ~table.is_signal & inside.any(axis=0)
        assert sorted(events.background_row) == np.flatnonzero(seen).tolist()
        assert events.background_weight == pytest.approx(
            table.weight[events.background_row] / share
        )
        assert rows[events.signal_row].all()
        assert events.signal_weight == pytest.approx(table.weight[events.signal_row] / share)


def by_hand(table, windows, rows, share):
    """w1 = sum w^2 / sum w of the background of each window, scaled for the split."""
    mass2 = table.axis
    inside = (windows.low[:, None] < mass2) & (mass2 < windows.high[:, None])
    weight = np.where(inside & rows & ~table.is_signal, table.weight / share, 0.0)
    return (weight**2).sum(axis=1) / weight.sum(axis=1)


@pytest.mark.parametrize("part", ["training", "validation"])
def test_one_more_event_is_one_of_the_held_out_events_for_both_parts(
    table, toy_windows, split, score, held_out, part
):
    """An event of the training part weighs less: it must not look like less background."""
    f = figures(split, score)["single_cut", part]
    wanted = by_hand(table, toy_windows, held_out, HELD_OUT)
    other = by_hand(table, toy_windows, ~held_out, 1 - HELD_OUT)
    assert f.added_background == pytest.approx(wanted, rel=1e-9)
    assert (np.abs(wanted / other - 1) > 0.5).all()


def test_cuts_are_chosen_with_one_more_event_of_the_part_they_are_chosen_on(
    table, toy_windows, split, score, held_out
):
    """At no cut of the training events is N(B + w1) / eps smaller than at the chosen one."""
    w1 = by_hand(table, toy_windows, ~held_out, 1 - HELD_OUT)
    best = figures(split, score)["best_cut", "training"]
    mass2, weight = table.axis, table.weight / (1 - HELD_OUT)
    for k, mass in enumerate(toy_windows.mass_gev):
        inside = (toy_windows.low[k] < mass2) & (mass2 < toy_windows.high[k]) & ~held_out
        signal = inside & (table.signal_mass_gev == mass)
        background = inside & ~table.is_signal
        reach = [
            events_needed(weight[background & (score >= c)].sum() + w1[k])
            / weight[signal & (score >= c)].sum()
            for c in np.unique(score[signal])
        ]
        assert best.cut[k] == np.unique(score[signal])[np.argmin(reach)]


@pytest.mark.parametrize("part", ["training", "validation"])
def test_the_error_holds_the_spread_of_signal_background_and_of_the_one_event(split, score, part):
    cut = np.quantile(score, [0.2, 0.5, 0.7, 0.9, 0.95, 0.98])  # from much background to little
    f = quote(
        split, [score], cut[None], name=("x", 0, "s"), quoted_on=part, quoting=Quoting(FORMULA)
    )
    used = f.background + f.added_background
    assert f.sigma_min_fb == pytest.approx(
        events_needed(used) / (f.efficiency * LUMINOSITY_INV_FB), rel=1e-9
    )
    step = 1e-4 * used
    slope = (events_needed(used + step) - events_needed(used - step)) / (2 * step)
    of_signal = f.efficiency_error / f.efficiency
    of_background = slope / events_needed(used) * np.hypot(f.background_error, f.added_background)
    expected = f.sigma_min_fb * np.hypot(of_signal, of_background)
    assert f.sigma_min_error_fb == pytest.approx(expected, rel=1e-6)
    without = f.sigma_min_fb * np.hypot(of_signal, slope / events_needed(used) * f.background_error)
    assert (expected / without).max() > 1.01  # the one event is seen here


@pytest.mark.parametrize("part", ["training", "validation"])
def test_the_error_of_an_efficiency_is_binomial_in_the_generated_events(
    table, split, score, held_out, part
):
    """n generated, share f in the part: eps f n pass, with variance n f eps (1 - f eps)."""
    cut = np.full(6, 0.3)
    f = quote(
        split, [score], cut[None], name=("x", 0, "s"), quoted_on=part, quoting=Quoting(FORMULA)
    )
    share = HELD_OUT if part == "validation" else 1 - HELD_OUT
    n = 1 / table.weight[table.is_signal][0]
    passed = f.efficiency * share * n
    assert f.efficiency_error == pytest.approx(np.sqrt(passed * (1 - passed / n)) / (share * n))
    assert f.n_eff_signal == pytest.approx(passed)
    assert f.background_error == pytest.approx(f.background / np.sqrt(f.n_eff_background))


def test_without_the_one_event_nothing_is_added(split, score):
    plain = Quoting(FORMULA, single_cut=None, add_one_event=False)
    found = figures(split, score, plain)
    for f in found.values():
        assert (f.added_background == 0).all()
        assert f.sigma_min_fb == pytest.approx(
            events_needed(f.background) / (f.efficiency * LUMINOSITY_INV_FB), rel=1e-9
        )


def test_a_share_outside_of_0_to_1_is_no_split(table, toy_windows):
    for fraction, words in (
        (0.0, "must lie between 0 and 1"),
        (1.0, r"fraction in \[0, 1\)"),
        (-0.2, r"fraction in \[0, 1\)"),
    ):
        with pytest.raises(ValueError, match=words):
            split_events(table, toy_windows, trained=np.ones(6, bool), folds=Folds(1, fraction))
