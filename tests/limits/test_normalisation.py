"""Factors of backgrounds: the true ones are found again, with errors that are right."""

import numpy as np
import pytest

from limits.normalisation import Counts, NormalisationError, deviance, fit_factors

TRUE = np.array([1.3, 0.7, 1.0])
EVENTS = np.array([[400.0, 30.0, 50.0], [60.0, 300.0, 40.0], [150.0, 150.0, 80.0]])
WEIGHT = np.array([0.8, 0.4, 0.5])  # of a simulated row of each process
NAMES = ("a", "b", "c")


def toy(rng):
    rows = rng.poisson(EVENTS / WEIGHT)
    data = rng.poisson((EVENTS * TRUE).sum(axis=1)).astype(float)
    return Counts(data, rows * WEIGHT, rows * WEIGHT**2, NAMES)


def test_pulls_have_mean_0_and_width_1():
    rng = np.random.default_rng(3)
    fits = [fit_factors(toy(rng), ("a", "b")) for _ in range(60)]
    pulls = np.array([(fit.value - TRUE[:2]) / fit.error for fit in fits])
    assert pulls.mean(axis=0) == pytest.approx(0, abs=0.4)
    assert pulls.std() == pytest.approx(1, abs=0.2)
    assert fits[0].correlation[0, 1] == pytest.approx(fits[0].correlation[1, 0])
    assert fits[0].correlation[0, 1] < 0
    assert fits[0].ndf == 1


def test_exact_data_give_the_true_factors_and_fit_exactly():
    counts = Counts((EVENTS * TRUE).sum(axis=1), EVENTS, EVENTS * 1e-3, NAMES)
    found = fit_factors(counts, ("a", "b"))
    assert found.value == pytest.approx(TRUE[:2], rel=1e-3)
    assert found.deviance == pytest.approx(0, abs=1e-4)


def test_one_count_is_a_ratio_with_the_error_of_both_samples():
    counts = Counts(np.array([200.0]), np.array([[100.0]]), np.array([[50.0]]), ("a",))
    found = fit_factors(counts, ("a",))  # 200 simulated rows of weight 1/2
    assert found.value[0] == pytest.approx(2, rel=1e-3)
    assert found.error[0] == pytest.approx(2 * np.sqrt(1 / 200 + 1 / 200), rel=0.01)


def test_the_deviance_is_least_over_the_simulated_rows():
    """The one number per bin against a plain search over the true rows."""
    counts = Counts(np.array([30.0]), np.array([[20.0]]), np.array([[10.0]]), ("a",))
    rows = np.linspace(20, 90, 200_001)  # 40 rows of weight 1/2
    mu, n, a = 0.5 * rows, 30.0, 40.0
    plain = 2 * (mu - n + n * np.log(n / mu)) + 2 * (rows - a + a * np.log(a / rows))
    assert deviance(counts, np.array([1.0])) == pytest.approx(plain.min(), abs=1e-6)


@pytest.mark.parametrize(
    ("events", "free", "match"),
    [
        (EVENTS[:1], ("a", "b"), "1 bin of control regions cannot determine 2 factors"),
        (np.outer([1, 2, 3], [50.0, 40, 10]), ("a", "b"), "same mixture"),
        (EVENTS * [1, 0, 1], ("a", "b"), "no event of b"),
    ],
)
def test_what_regions_cannot_tell_is_refused(events, free, match):
    counts = Counts(events.sum(axis=1), events, events / 2, NAMES)
    with pytest.raises(NormalisationError, match=match):
        fit_factors(counts, free)
