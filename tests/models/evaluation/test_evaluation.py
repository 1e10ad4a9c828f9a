from dataclasses import replace

import numpy as np
import pytest

from models.evaluation.comparison import (
    BCE_BEST,
    BCE_SINGLE,
    BOXES_BEST,
    COMPARED,
    EQUAL_BEST,
    MASS_BEST,
    MASS_SINGLE,
    PUNZI_BEST,
    PUNZI_SINGLE,
    TREES_BEST,
    compare,
    geometric_mean,
    log_ratios,
    of_curve,
    ratio_in_bins,
    share_within,
    untrained_over_trained,
)
from models.evaluation.figures_of_merit import (
    Quoting,
    figures_of_merit,
    over_networks,
    quote,
    split_events,
)
from models.sensitivity import PunziFormula, punzi_sensitivity
from selection.table import EventTable, Folds
from selection.windows import MassWindows

FORMULA = PunziFormula(50.0)
QUOTING = Quoting(FORMULA)
WINDOWS = MassWindows(np.arange(1.0, 3.01, 0.25), np.full(9, 0.25), 2.0, squared=True)
N_GENERATED = 4000
ONE = Folds(1, 0.2)


def sample(rng, *, efficiency=0.5, background=30_000):
    """Gaussian signal peaks on a flat background; scores separate them moderately."""
    n_signal = rng.binomial(N_GENERATED, efficiency, len(WINDOWS))
    mass = np.concatenate([np.repeat(WINDOWS.mass_gev, n_signal), np.full(background, np.nan)])
    signal = np.isfinite(mass)
    n = len(mass)
    mass2 = np.where(signal, mass**2 + rng.uniform(-0.45, 0.45, n), rng.uniform(0, 10, n))
    weight = np.where(signal, 1 / N_GENERATED, rng.choice([0.05, 0.1], n))
    key = rng.integers(0, 2**64, n, dtype=np.uint64)
    table = EventTable(
        features=np.zeros((n, 4), np.float32),
        axis=mass2,
        weight=weight,
        signal_mass_gev=mass,
        sample=np.zeros(n, np.int16),
        key=key,
        identity=(key >> np.uint64(32)).astype(np.uint32),
        sample_names=("all",),
        feature_names=("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min", "pt_mumu"),
    )
    score = 1 / (1 + np.exp(-rng.normal(np.where(signal, 1.5, -1.5), 1.5)))
    return table, score.astype(np.float32)


def split(table, folds=ONE):
    trained = np.arange(len(WINDOWS)) % 2 == 0
    return split_events(table, WINDOWS, trained=trained, folds=folds)


@pytest.fixture(scope="module")
def evaluated():
    table, score = sample(np.random.default_rng(1))
    parts = split(table)
    return figures_of_merit(parts, [score], classifier="punzi", network=0, quoting=QUOTING)


def test_a_split_stands_for_the_whole():
    table, score = sample(np.random.default_rng(2))
    whole = {
        part: quote(
            split(table),
            [score],
            np.zeros((1, 9)),
            name=("x", 0, "s"),
            quoted_on=part,
            quoting=QUOTING,
        )
        for part in ("training", "validation")
    }
    for f in whole.values():
        assert f.efficiency == pytest.approx(0.5, abs=5 * f.efficiency_error.max())
        expected = 0.1 * 30_000 * 0.075  # share of a window of 1 GeV^2 in 10, times mean weight
        assert f.background == pytest.approx(expected, abs=5 * f.background_error.max())
    assert (whole["validation"].efficiency_error > whole["training"].efficiency_error).all()


@pytest.mark.parametrize("folds", [ONE, Folds(4)], ids=["one", "four"])
@pytest.mark.parametrize("part", ["training", "validation"])
def test_errors_are_the_spread_of_repeated_simulations(part, folds):
    """At an efficiency of 0.9 the binomial error of the training split is half the Poisson one."""
    rng = np.random.default_rng(3)
    cut, quoting = np.full((folds.count, 9), 0.02), Quoting(FORMULA, add_one_event=False)
    figures = []
    for _ in range(60):
        table, score = sample(rng, efficiency=0.9, background=rng.poisson(6000))
        figures.append(
            quote(
                split(table, folds),
                [score] * folds.count,
                cut,
                name=("x", 0, "s"),
                quoted_on=part,
                quoting=quoting,
            )
        )
    for name in ("efficiency", "background", "sigma_min"):
        unit = "_fb" if name == "sigma_min" else ""
        values = np.array([getattr(f, name + unit) for f in figures])
        claimed = np.array([getattr(f, f"{name}_error{unit}") for f in figures])
        spread = values.std(axis=0, ddof=1)
        assert spread.mean() == pytest.approx(claimed.mean(), rel=0.12)


def test_the_maximum_achievable_is_never_worse_than_honest_cuts(evaluated):
    best, single, maximum, *_ = evaluated
    assert [f.selection for f in evaluated[:3]] == ["best_cut", "single_cut", "maximum_achievable"]
    assert (maximum.sigma_min_fb <= best.sigma_min_fb * (1 + 1e-12)).all()
    assert (maximum.sigma_min_fb <= single.sigma_min_fb * (1 + 1e-12)).all()


def test_honest_cuts_are_the_best_on_the_events_they_were_chosen_on(evaluated):
    *_, best, single = evaluated
    assert best.quoted_on == single.quoted_on == "training"
    assert (best.sigma_min_fb <= single.sigma_min_fb * (1 + 1e-12)).all()


def test_a_window_emptied_by_the_cut_is_not_free_of_background():
    table, score = sample(np.random.default_rng(4))
    score = np.where(table.is_signal, score, 0.0)
    f = quote(
        split(table), [score], np.full((1, 9), 0.5), name=("x", 0, "s"), quoted_on="validation",
        quoting=QUOTING,
    )  # fmt: skip
    mean_weight = (0.05**2 + 0.1**2) / 0.15
    assert (f.background == 0).all()
    assert f.added_background == pytest.approx(5 * mean_weight, rel=0.05)  # a fifth of the events
    expected = punzi_sensitivity(f.efficiency, f.added_background, FORMULA)
    assert f.sigma_min_fb == pytest.approx(expected)
    assert (f.sigma_min_error_fb > 0).all()


def test_a_mass_without_signal_leaves_the_others_untouched(evaluated):
    table, score = sample(np.random.default_rng(1))
    keep = ~(np.abs(table.signal_mass_gev - 1.5) < 1e-6)
    poorer = figures_of_merit(
        split(table.take(keep)), [score[keep]], classifier="punzi", network=0, quoting=QUOTING
    )
    others = WINDOWS.mass_gev != 1.5
    for full, poor in zip(evaluated, poorer, strict=True):
        assert np.array_equal(full.sigma_min_fb[others], poor.sigma_min_fb[others])
        assert np.isinf(poor.sigma_min_fb[~others]).all()
        assert poor.fom_inv_fb[~others] == 0


def test_the_chosen_single_cut_is_at_least_as_good_as_one_half_where_it_is_chosen():
    table, score = sample(np.random.default_rng(5))
    free = Quoting(FORMULA, single_cut=None)
    chosen, half = (
        figures_of_merit(split(table), [score], classifier="p", network=0, quoting=q)[-1]
        for q in (free, QUOTING)
    )
    assert np.log(chosen.sigma_min_fb).mean() <= np.log(half.sigma_min_fb).mean()
    assert len(np.unique(chosen.cut)) == 1


def test_without_held_out_events_nothing_is_quoted():
    table, _ = sample(np.random.default_rng(6))
    with pytest.raises(ValueError, match="held out of training"):
        split(table, Folds(1, 0.0))


def test_ensemble_mean_and_standard_error(evaluated):
    one = evaluated[1]
    networks = [replace(one, network=i, sigma_min_fb=one.sigma_min_fb * s) for i, s in
                enumerate((0.9, 1.0, 1.1))]  # fmt: skip
    mean = over_networks(networks)
    assert mean.sigma_min_fb == pytest.approx(one.sigma_min_fb)
    assert mean.sigma_min_error_fb == pytest.approx(0.1 * one.sigma_min_fb / np.sqrt(3))
    assert np.isnan(over_networks(networks[:1]).sigma_min_error_fb).all()
    with pytest.raises(ValueError, match="one classifier"):
        over_networks([one, evaluated[0]])


def test_ratios_of_a_record_to_itself_are_one_and_scale(evaluated):
    one = of_curve(evaluated, PUNZI_SINGLE)
    worse = [replace(f, sigma_min_fb=1.3 * f.sigma_min_fb) for f in one]
    logs = log_ratios(worse, one)
    assert geometric_mean(logs) == pytest.approx(1.3)
    assert ratio_in_bins(WINDOWS.mass_gev, logs, (0, 2, 4)) == pytest.approx([1.3, 1.3])
    assert share_within(logs, 0.2) == 0
    assert share_within(logs, 0.31) == 1
    with pytest.raises(ValueError, match="cannot be paired"):
        log_ratios(one, [replace(one[0], network=1), replace(one[0], network=2)])


def test_a_smooth_curve_shows_no_difference_of_untrained_masses(evaluated):
    smooth = replace(evaluated[0], sigma_min_fb=np.exp(0.3 * WINDOWS.mass_gev))
    assert untrained_over_trained([smooth]) == pytest.approx(1)
    bumpy = replace(smooth, sigma_min_fb=smooth.sigma_min_fb * np.where(smooth.trained, 1, 1.2))
    assert untrained_over_trained([bumpy]) == pytest.approx(1.2)


def ensemble_of(evaluated, reach):
    """Three networks; reach: curve -> sigma_min in units of that of the first record."""
    one = evaluated[0].sigma_min_fb
    networks = [0] if reach.keys() <= {TREES_BEST, BOXES_BEST} else [0, 1, 2]
    return [
        replace(
            evaluated[0], classifier=curve[0], selection=curve[1], quoted_on=part, network=i,
            sigma_min_fb=factor * one,
        )
        for curve, factor in reach.items() for i in networks for part in ("validation", "training")
    ]  # fmt: skip


REACH = {PUNZI_SINGLE: 0.8, PUNZI_BEST: 0.7, BCE_SINGLE: 1.5, BCE_BEST: 1.0, EQUAL_BEST: 0.9}
ASKED_FOR = {MASS_BEST: 0.4, MASS_SINGLE: 0.5}
ONE_FOR_ALL_NETWORKS = {TREES_BEST: 0.5, BOXES_BEST: 2.0}


def test_a_comparison_holds_the_ratios_of_its_curves(evaluated):
    figures = ensemble_of(evaluated, REACH | ASKED_FOR)
    figures += ensemble_of(evaluated, ONE_FOR_ALL_NETWORKS)
    found = compare(figures)
    assert [(r.top, r.bottom) for r in found.ratios] == list(COMPARED)
    ratios = (0.8, 0.8 / 0.9, 2.0, 1.6, 1.6, 0.4, 1.5)
    for top, bottom, wanted in zip(*zip(*COMPARED, strict=True), ratios, strict=True):
        by_bin = np.array(found.ratio(top, bottom).by_bin)
        assert len(by_bin) == len(found.mass_bins_gev) - 1
        there = np.isfinite(by_bin)
        assert there.tolist() == [False, True, False, False, False]  # masses of 1 to 3 GeV
        assert by_bin[there] == pytest.approx(wanted)
    assert found.over_bce_1500_to_4500_mev == pytest.approx(0.8)
    assert found.over_best_bce_network_1_to_4_gev == pytest.approx(0.8)
    assert found.single_over_best_cut == pytest.approx(0.8 / 0.7)
    assert found.share_within_20_percent == 1
    assert found.validation_over_training == pytest.approx(1)
    assert found.mass_bins_gev[-1] == WINDOWS.mass_gev.max()


def test_what_was_not_asked_for_is_no_row(evaluated):
    found = compare(ensemble_of(evaluated, REACH) + ensemble_of(evaluated, {TREES_BEST: 0.5}))
    classifiers = [r.bottom[0] for r in found.ratios]
    assert classifiers == ["bce", "bce_equal", "xgboost", "bce"]


def test_the_best_bce_network_is_the_one_with_the_smallest_reach_at_low_masses(evaluated):
    figures = ensemble_of(evaluated, REACH)
    better = [
        replace(f, sigma_min_fb=0.5 * f.sigma_min_fb)
        if (f.network, f.classifier, f.selection) == (1, *BCE_BEST)
        else f
        for f in figures
    ]
    found = compare(better)
    assert found.over_best_bce_network_1_to_4_gev == pytest.approx(1.6)
    assert found.over_bce_1500_to_4500_mev == pytest.approx(0.8 * 2 ** (1 / 3))


def test_failed_networks_are_left_out_of_a_comparison_and_trees_never_are(evaluated):
    figures = ensemble_of(evaluated, REACH) + ensemble_of(evaluated, {TREES_BEST: 0.5})
    spoiled = [
        replace(f, sigma_min_fb=100 * f.sigma_min_fb)
        if (f.network, f.classifier) == (0, "punzi")
        else f
        for f in figures
    ]
    kept = compare(spoiled, failed=[0])
    assert repr(kept) == repr(compare(figures, failed=[0]))  # by repr: nan is not nan
    assert repr(compare(spoiled)) != repr(compare(figures))
    assert kept.ratio(PUNZI_SINGLE, TREES_BEST) is not None
    assert compare(figures, failed=[0, 1, 2]) is None
    assert compare([]) is None


def test_what_cannot_be_compared_is_nan_and_has_no_ratio(evaluated):
    alone = compare(ensemble_of(evaluated, {PUNZI_SINGLE: 0.8, PUNZI_BEST: 0.7}))
    assert alone.ratios == ()
    assert alone.ratio(PUNZI_SINGLE, BCE_BEST) is None
    assert np.isnan(alone.over_bce_1500_to_4500_mev)
    assert np.isnan(alone.over_best_bce_network_1_to_4_gev)
    assert alone.single_over_best_cut == pytest.approx(0.8 / 0.7)


def test_records_of_a_curve_come_in_the_order_of_networks_and_of_one_split(evaluated):
    figures = ensemble_of(evaluated, REACH)[::-1]
    found = of_curve(figures, BCE_BEST)
    assert [f.network for f in found] == [0, 1, 2]
    assert {(f.classifier, f.selection, f.quoted_on) for f in found} == {(*BCE_BEST, "validation")}
    assert {f.quoted_on for f in of_curve(figures, BCE_BEST, "training")} == {"training"}
