"""Upper limits: what is known in closed form, and what laws they obey."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import gammaincc

from limits.expectation import Expectation, known_background
from limits.upper import bayesian_limits, expected_limits, smallest_allowed, upper_limits
from selection.errors import UserError

B = np.array([0.01, 0.1, 0.5, 1, 5, 10, 60])


def expectation(rows, weight, *, normalisation=0.0, signal=0.0, prior=1 / 3):
    rows = np.asarray(rows, float)
    return Expectation(
        rows,
        np.broadcast_to(weight, rows.shape),
        np.full(rows.shape[1], normalisation),
        np.full(len(rows), signal),
        prior,
    )


@pytest.mark.parametrize(("level", "limit"), [(0.90, 2.302585), (0.95, 2.995732)])
def test_no_event_gives_the_same_limit_for_every_known_background(level, limit):
    b = known_background([0.0, 1e-3, 0.5, 3.0, 60.0, 500.0, 2000.0, 10_000.0])
    found = upper_limits(b, np.zeros(8), level=level)
    assert found == pytest.approx(limit, rel=1e-6)


def test_no_event_gives_the_same_limit_whatever_is_uncertain_about_the_background():
    b = expectation([[0.0, 3.0], [40.0, 900.0]], [3.9, 1.5], normalisation=0.4)
    assert upper_limits(b, [0, 0], level=0.9) == pytest.approx(np.log(10), rel=1e-9)


def test_three_events_of_three_known():
    assert upper_limits(known_background([3.0]), [3], level=0.9)[0] == pytest.approx(
        4.362, abs=5e-4
    )


def test_the_ratio_of_probabilities_at_the_limit_is_one_minus_the_level():
    b, n = np.array([0.0, 0.3, 7.0, 60.0, 60.0, 1000.0]), np.array([4, 2, 7, 45, 90, 1100])
    s = upper_limits(known_background(b), n, level=0.95)
    assert stats.poisson.cdf(n, s + b) / stats.poisson.cdf(n, b) == pytest.approx(0.05, rel=1e-8)


def test_a_deep_deficit_has_a_limit_between_that_of_none_and_that_of_a_small_one():
    b = known_background([3000.0] * 3)
    none, some, more = upper_limits(b, [0, 5, 2000], level=0.9)
    assert none == pytest.approx(np.log(10))
    assert none < some < more
    # P(m | b) falls by m/b per count: nearly all counts are background
    assert some == pytest.approx(none, rel=5 * 5 / 3000)


def posterior_limit(b, n, level, *, scale=(1.0,), weight=(1.0,)):
    """Flat prior, by adding up the posterior on a fine grid; scale and weight: signal nuisance."""
    s = np.linspace(0, 8 * (n + 10), 100_001)
    like = sum(w * stats.poisson.pmf(n, b + f * s) for f, w in zip(scale, weight, strict=True))
    area = np.concatenate([[0], np.cumsum((like[1:] + like[:-1]) / 2)])
    return np.interp(level, area / area[-1], s)


def test_without_nuisances_cls_is_the_flat_prior_limit():
    b, n = np.array([0.0, 0.5, 3.0, 25.0, 60.0]), np.array([0, 2, 3, 14, 75])
    cls = upper_limits(known_background(b), n, level=0.9)
    bayes = bayesian_limits(known_background(b), n, level=0.9)
    assert bayes == pytest.approx(cls, rel=1e-6)
    wanted = [posterior_limit(*pair, 0.9) for pair in zip(b, n, strict=True)]
    assert cls == pytest.approx(wanted, rel=1e-6)


def test_with_a_signal_uncertainty_the_flat_prior_limit_is_the_integral_of_the_posterior():
    b = known_background([3.0])
    b = Expectation(b.rows, b.row_weight, b.normalisation, np.array([0.25]), b.prior)
    z, weight = np.polynomial.hermite_e.hermegauss(21)
    wanted = posterior_limit(3.0, 5, 0.9, scale=1.25**z, weight=weight)
    assert bayesian_limits(b, [5], level=0.9)[0] == pytest.approx(wanted, rel=1e-4)


def test_the_signal_uncertainty_averages_the_numerator():
    b = known_background([3.0, 0.0])
    b = Expectation(b.rows, b.row_weight, b.normalisation, np.array([0.25, 0.5]), b.prior)
    z, weight = np.polynomial.hermite_e.hermegauss(81)
    weight = weight / weight.sum()
    for limit, known, n, u in zip(upper_limits(b, [5, 0], level=0.9), (3.0, 0.0), (5, 0), (0.25, 0.5), strict=True):  # fmt: skip
        above = weight @ stats.poisson.cdf(n, known + limit * (1 + u) ** z)
        assert above / stats.poisson.cdf(n, known) == pytest.approx(0.1, rel=1e-6)


def test_nuisances_average_numerator_and_denominator():
    """Brute force: drawn backgrounds, Poisson sums of each."""
    b = expectation([[3.0, 0.0]], [0.5, 2.0], normalisation=0.2)
    rng = np.random.default_rng(3)
    n_draws = 200_000
    rates = sum(
        rng.gamma(k, w, n_draws) * 1.2 ** rng.standard_normal(n_draws)
        for k, w in ((3 + 1 / 3, 0.5), (1 / 3, 2.0))
    )
    (s,) = upper_limits(b, [4], level=0.9)
    ratio = stats.poisson.cdf(4, s + rates).mean() / stats.poisson.cdf(4, rates).mean()
    assert ratio == pytest.approx(0.1, rel=0.01)


def test_a_gamma_of_many_rows_is_a_known_background():
    b, n = np.array([0.2, 3.0, 60.0]), np.array([1, 3, 66])
    many = expectation(np.full((3, 1), 1e6), (b / (1e6 + 1 / 3))[:, None])
    found, known = upper_limits(many, n), upper_limits(known_background(b), n)
    assert found == pytest.approx(known, rel=1e-4)
    assert expected_limits(many).mean == pytest.approx(
        expected_limits(known_background(b)).mean, rel=1e-3
    )


@pytest.mark.parametrize(
    ("band", "wanted"),
    [
        ("median", [2.303, 2.303, 2.303, 3.272, 5.151, 6.630, 14.10]),
        ("minus1", [2.30, 2.30, 2.30, 2.30, 3.68, 4.65, 9.65]),
        ("plus1", [2.30, 2.30, 3.51, 4.44, 7.07, 9.33, 20.6]),
    ],
)
def test_expected_limits_at_90_percent_are_the_known_ones(band, wanted):
    found = getattr(expected_limits(known_background(B), level=0.90), band)
    digits = [len(str(value).split(".")[1]) for value in wanted]
    assert [round(v, d) for v, d in zip(found, digits, strict=True)] == wanted


def test_bands_are_limits_at_quantiles_of_the_count():
    b = expectation([[2.0, 0.0], [30.0, 1.0]], [0.5, 2.0], normalisation=0.1, signal=0.1)
    bands = expected_limits(b)
    rng = np.random.default_rng(5)
    for i in range(2):
        rates = sum(
            rng.gamma(k, w, 400_000) * 1.1 ** rng.standard_normal(400_000)
            for k, w in zip(b.rows[i] + 1 / 3, b.row_weight[i], strict=True)
        )
        n = rng.poisson(rates)
        one = Expectation(b.rows[i:i + 1], b.row_weight[i:i + 1], b.normalisation, b.signal_uncertainty[:1])  # fmt: skip
        every = np.concatenate([upper_limits(one, [m]) for m in range(int(n.max()) + 1)])
        for name, z in (("minus2", -2), ("minus1", -1), ("median", 0), ("plus1", 1), ("plus2", 2)):
            count = int(np.quantile(n, stats.norm.cdf(z), method="inverted_cdf"))
            assert getattr(bands, name)[i] == pytest.approx(every[count], rel=1e-9)
        spread = every[n].std() / len(n) ** 0.5
        assert bands.mean[i] == pytest.approx(every[n].mean(), abs=5 * spread)


def test_the_mean_limit_of_many_events_is_the_sum_over_every_count():
    """It is interpolated there; b and n large."""
    b = known_background([1000.0])
    n = np.arange(790, 1215)
    every = upper_limits(known_background(np.full(len(n), 1000.0)), n)
    p = stats.poisson.pmf(n, 1000.0)
    assert expected_limits(b).mean[0] == pytest.approx(p @ every / p.sum(), rel=1e-5)


def test_the_asimov_limit_is_near_that_of_the_continued_poisson_sum():
    wanted = [
        brentq(lambda s, b=b: gammaincc(b + 1, s + b) - 0.1 * gammaincc(b + 1, b), 0, 100)
        for b in B
    ]
    assert expected_limits(known_background(B)).asimov == pytest.approx(wanted, rel=3e-3)


def test_mean_and_asimov_limits_are_smooth_in_the_background_and_the_median_is_not():
    b = np.linspace(0.05, 6, 60)
    found = expected_limits(known_background(b))
    for curve in (found.mean, found.asimov):
        assert np.all(np.diff(curve) > 0)
    assert np.any(np.diff(found.median) < 0)


def test_limits_rise_with_the_count_and_with_the_level_and_fall_with_the_background():
    counts = np.arange(12)
    b = expectation(np.full((12, 2), [1.0, 0.0]), [0.5, 3.9], normalisation=0.1)
    found = upper_limits(b, counts)
    assert np.all(np.diff(found) > 0)
    assert np.all(upper_limits(b, counts, level=0.95) > found)
    more = expectation(np.full((12, 2), [3.0, 0.0]), [0.5, 3.9], normalisation=0.1)
    assert np.all(upper_limits(more, counts)[1:] < found[1:])


@pytest.mark.parametrize("level", [0.90, 0.20])
def test_a_count_covers_a_signal_exactly_if_it_is_not_below_the_smallest_allowed(level):
    rows = np.array([[0.0, 2.0], [4.0, 0.0], [25.0, 10.0]])
    b = expectation(rows, [0.5, 2.0], normalisation=0.1, signal=0.05)
    for s in (0.5, 2.4, 6.0, 15.0):
        smallest = smallest_allowed(b, s, level=level)
        assert np.all(upper_limits(b, smallest, level=level) >= s)
        before = smallest > 0
        less = upper_limits(b, np.maximum(smallest - 1, 0), level=level)
        assert np.all(less[before] < s)


@pytest.mark.parametrize("level", [0.0, 1.0, 90.0, np.nan])
def test_a_level_is_a_probability(level):
    with pytest.raises(UserError, match="confidence level"):
        upper_limits(known_background([1.0]), [1], level=level)
