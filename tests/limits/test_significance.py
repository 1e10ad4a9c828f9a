"""Local p-values, significances, and the signal that fits best."""

import numpy as np
import pytest
from scipy import stats

from limits.expectation import Expectation, known_background
from limits.significance import best_signal, local_p_values, significance


def test_p_values_of_a_known_background_are_poisson_tails_down_to_nothing():
    b, n = np.array([0.0, 0.0, 0.5, 5.0, 60.0, 1000.0]), np.array([0, 1, 12, 40, 160, 1400])
    found = local_p_values(known_background(b), n)
    assert found[:2].tolist() == [1.0, 0.0]
    assert found == pytest.approx(stats.poisson.sf(n - 1, b), rel=1e-9)
    assert found[2:].max() < 1e-12


def test_no_event_is_no_surprise():
    b = Expectation(
        np.array([[0.0, 4.0]]), np.array([[3.9, 0.1]]), np.array([0.1, 0.0]), np.zeros(1)
    )
    assert local_p_values(b, [0])[0] == pytest.approx(1.0, abs=1e-12)


def test_an_empty_simulation_makes_an_event_less_surprising_the_heavier_its_rows():
    weights = np.array([[0.01], [0.1], [0.5], [3.9]])
    b = Expectation(np.zeros((4, 1)), weights, np.zeros(1), np.zeros(4))
    p = local_p_values(b, [1, 1, 1, 1])
    assert np.all(np.diff(p) > 0)
    assert p == pytest.approx(1 - (1 + weights[:, 0]) ** (-1 / 3), rel=1e-12)


def test_significance_is_one_sided():
    assert significance([0.5, 0.8, 1.0]).tolist() == [0, 0, 0]
    assert significance(stats.norm.sf([1.0, 3.0, 5.0, 9.0])) == pytest.approx([1, 3, 5, 9])
    with pytest.raises(ValueError, match="between 0 and 1"):
        significance([1.2])


def test_the_mean_of_the_best_signal_is_the_signal():
    n = np.arange(60)
    known = known_background(np.full(60, 2.0))
    found = best_signal(known, n)
    p = stats.poisson.pmf(n, 2.0 + 5.0)
    assert p @ found.signal == pytest.approx(5.0, rel=1e-9)
    assert found.signal[0] == pytest.approx(-2.0)
    assert np.all(found.low < found.signal)
    assert np.all(found.signal < found.high)


def test_with_b_known_the_interval_is_garwoods_and_covers():
    """Quantiles of chi-square are those of a Poisson mean."""
    n = np.arange(120)
    for b, s in ((0.5, 0.0), (2.0, 5.0), (10.0, 3.0), (30.0, 20.0)):
        found = best_signal(known_background(np.full(len(n), b)), n)
        high = stats.chi2.isf(stats.norm.sf(1), 2 * (n + 1)) / 2 - b
        assert found.high == pytest.approx(high, rel=1e-6, abs=1e-6)
        inside = (found.low <= s) & (s <= found.high)
        assert stats.poisson.pmf(n, b + s) @ inside >= 0.6827


def test_uncertainties_of_background_and_signal_add_in_quadrature():
    b = Expectation(np.array([[25.0]]), np.array([[0.4]]), np.array([0.1]), np.array([0.2]), 0.0)
    plain = best_signal(known_background(b.mean), [40])
    found = best_signal(b, [40])
    more = b.variance[0] + (0.2 * plain.signal[0]) ** 2
    assert (found.high - found.signal) ** 2 == pytest.approx(
        (plain.high - plain.signal) ** 2 + more
    )
    assert (found.low - found.signal) ** 2 == pytest.approx((plain.low - plain.signal) ** 2 + more)
