import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.evaluation.cuts import optimal_cuts, optimal_single_cut
from models.evaluation.window_events import one_more_event, window_events, window_sums
from models.scoring import passes
from selection.table import EventTable
from selection.windows import MassWindows, in_own_window

LUMINOSITY_INV_FB, A, B_CL = 50.0, 3.0, 1.28155
WINDOWS = MassWindows(
    np.array([1.0, 1.2, 1.4, 2.5]), np.array([0.2, 0.2, 0.25, 0.2]), 2.0, squared=True
)


def sigma_min(efficiency, background):
    """Written out again here: the scan must not depend on how the formula is coded."""
    root = np.sqrt(B_CL**2 + 4 * A * np.sqrt(background) + 4 * background)
    numerator = B_CL**2 / 2 + A * np.sqrt(background) + B_CL / 2 * root
    return numerator / (efficiency * LUMINOSITY_INV_FB)


def event_table(mass2, mass, weight):
    n = len(mass2)
    return EventTable(
        features=np.zeros((n, 4), np.float32),
        axis=np.asarray(mass2, float),
        weight=np.asarray(weight, float),
        signal_mass_gev=np.asarray(mass, float),
        sample=np.zeros(n, np.int16),
        key=np.arange(n, dtype=np.uint64),
        identity=np.arange(n, dtype=np.uint32),
        sample_names=("all",),
        feature_names=("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min", "pt_mumu"),
    )


def brute_force(table, score, cut, extra=0.0):
    """sigma_min of every window at every cut of `cut`, from the definition: (n_cuts, n_windows)."""
    inside = (table.axis > WINDOWS.low[:, None]) & (table.axis < WINDOWS.high[:, None])
    own = inside & (np.abs(table.signal_mass_gev - WINDOWS.mass_gev[:, None]) < 1e-6)
    background = inside & ~table.is_signal
    passed = score >= np.asarray(cut)[:, None]
    efficiency = passed @ (own * table.weight).T
    b = np.maximum(passed @ (background * table.weight).T + extra, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(efficiency > 1e-12, sigma_min(efficiency, b), np.inf)


SCORES = st.one_of(
    st.floats(-3, 3, width=32), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.just(float("nan"))
)
MASSES = st.sampled_from([float("nan"), float("nan"), 1.0, 1.2, 2.5, 7.0])  # 1.4: never signal


def columns_of(rows):
    return tuple(np.array([row[i] for row in rows], float) for i in range(4))


def events(weights):
    row = st.tuples(st.floats(0.2, 7.5), MASSES, weights, SCORES)
    return st.lists(row, max_size=60).map(columns_of)


# multiples of 1/8: every sum is exact, so an equality of sums is an equality in any order
NOT_NEGATIVE = st.integers(0, 16).map(lambda k: k / 8)
ANY_SIGN = st.integers(-8, 16).map(lambda k: k / 8)


@pytest.mark.parametrize("weights", [NOT_NEGATIVE, ANY_SIGN], ids=["weights >= 0", "any sign"])
def test_the_scan_equals_brute_force_over_all_distinct_scores(weights):
    @settings(max_examples=300, deadline=None)
    @given(columns=events(weights), extra=st.sampled_from([0.0, 0.125]))
    def law(columns, extra):
        mass2, mass, weight, score = columns
        table = event_table(mass2, mass, weight)
        candidates = np.unique(score[~np.isnan(score)])
        best = brute_force(table, score, candidates, extra).min(axis=0, initial=np.inf)
        cuts = optimal_cuts(
            window_events(table, WINDOWS),
            score,
            sigma_min=sigma_min,
            extra_background=np.full(4, extra),
        )
        assert np.array_equal(np.isnan(cuts), np.isinf(best))
        found = np.diag(brute_force(table, score, np.nan_to_num(cuts, nan=99.0), extra))
        assert found == pytest.approx(best, rel=1e-12)

    law()


@pytest.mark.parametrize("lowest_weight", [0, -8])
def test_ties_of_signal_and_background_pass_or_fail_together(lowest_weight):
    rng = np.random.default_rng(11)
    for _ in range(300):
        n = 24
        mass = rng.choice([np.nan, 1.0, 1.2], n)
        weight = rng.integers(lowest_weight, 17, n) / 8
        table = event_table(rng.uniform(0.6, 1.9, n), mass, weight)
        score = rng.choice([0.0, 0.25, 0.5, 1.0], n)
        order = rng.permutation(n)  # ties in any order
        table, score = table.take(order), score[order]
        best = brute_force(table, score, np.unique(score)).min(axis=0)
        cuts = optimal_cuts(window_events(table, WINDOWS), score, sigma_min=sigma_min)
        found = np.diag(brute_force(table, score, np.nan_to_num(cuts, nan=99.0)))
        assert found == pytest.approx(best, rel=1e-12)


def random_events(rng, n=4000):
    mass = rng.choice([np.nan] * 6 + [1.0, 1.2, 1.4, 2.5], n)
    signal = np.isfinite(mass)
    mass2 = np.where(signal, mass**2 + rng.normal(0, 0.2, n), rng.uniform(0.2, 7.5, n))
    score = 1 / (1 + np.exp(-rng.normal(np.where(signal, 2, -2), 2)))
    weight = np.where(signal, 1e-3, rng.exponential(0.1, n))
    return event_table(mass2, mass, weight), score.astype(np.float32)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_exact_cut_is_never_worse_than_two_hundred_steps(sign):
    rng = np.random.default_rng(7)
    for _ in range(5):
        table, score = random_events(rng)
        if sign < 0:
            table.weight[::17] *= -1
        steps = np.linspace(0, 1, 200)
        scanned = brute_force(table, score, steps).min(axis=0)
        cuts = optimal_cuts(window_events(table, WINDOWS), score, sigma_min=sigma_min)
        assert (np.diag(brute_force(table, score, cuts)) <= scanned * (1 + 1e-12)).all()


def test_cuts_do_not_depend_on_threads_or_on_the_order_of_events():
    table, score = random_events(np.random.default_rng(3))
    order = np.random.default_rng(4).permutation(len(table))
    one = optimal_cuts(window_events(table, WINDOWS), score, sigma_min=sigma_min)
    two = optimal_cuts(window_events(table, WINDOWS), score, sigma_min=sigma_min, threads=2)
    mixed = window_events(table.take(order), WINDOWS)
    assert np.array_equal(one, two)
    assert np.array_equal(one, optimal_cuts(mixed, score[order], sigma_min=sigma_min))


@pytest.mark.parametrize("logarithm", [True, False])
def test_the_single_cut_is_the_best_of_all_signal_scores(logarithm):
    for digits in (8, 2, 1):  # fewer digits: more ties
        table, score = random_events(np.random.default_rng(5))
        score = score.round(digits)
        sigma = brute_force(table, score, np.unique(score[table.is_signal]))
        mean = (np.log(sigma) if logarithm else sigma).mean(axis=1)
        cut = optimal_single_cut(
            window_events(table, WINDOWS), score, sigma_min=sigma_min, logarithm=logarithm
        )
        at_cut = brute_force(table, score, [cut])
        found = (np.log(at_cut) if logarithm else at_cut).mean()
        assert found == pytest.approx(mean.min(), rel=1e-12)


def test_without_signal_there_is_no_cut():
    table, score = random_events(np.random.default_rng(6))
    background = table.take(~table.is_signal)
    seen = window_events(background, WINDOWS)
    own = score[~table.is_signal]
    assert np.isnan(optimal_cuts(seen, own, sigma_min=sigma_min)).all()
    assert np.isnan(optimal_single_cut(seen, own, sigma_min=sigma_min))


def test_sums_are_those_of_the_definition_and_an_event_at_the_cut_passes():
    table, score = random_events(np.random.default_rng(8))
    cut = np.array([0.1, 0.5, 0.9, float(score[0])])
    sums = window_sums(window_events(table, WINDOWS), score, cut)
    m2 = table.axis
    own = in_own_window(WINDOWS, m2, table.signal_mass_gev)
    for k in range(len(WINDOWS)):
        passed = passes(score, cut[k])
        inside = (WINDOWS.low[k] < m2) & (m2 < WINDOWS.high[k])
        b = table.weight[passed & inside & ~table.is_signal]
        s = table.weight[passed & own & (table.signal_mass_gev == WINDOWS.mass_gev[k])]
        assert sums.background[k] == pytest.approx(b.sum())
        assert sums.background_w2[k] == pytest.approx((b**2).sum())
        assert sums.signal[k] == pytest.approx(s.sum())
        assert sums.signal_w2[k] == pytest.approx((s**2).sum())
    assert passes(score[:1], float(score[0])).all()


def test_one_more_event_weighs_what_equal_weights_weigh():
    table, _ = random_events(np.random.default_rng(9))
    equal = event_table(table.axis, table.signal_mass_gev, np.full(len(table), 0.07))
    assert one_more_event(window_events(equal, WINDOWS)) == pytest.approx(0.07)
