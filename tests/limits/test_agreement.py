"""chi^2 of data and simulation follows its distribution, and the largest deviation is found."""

import numpy as np
import pytest

from limits.agreement import LEAST, agreement, joined_bins

RNG = np.random.default_rng(5)
EDGES = np.linspace(0, 20, 21)
TRUE = 400 * np.exp(-np.arange(20) / 3)  # the last bins are nearly empty
WEIGHT = 0.5  # of a simulated row


def toy():
    """Data and simulation of the same truth."""
    rows = RNG.poisson(TRUE / WEIGHT)
    return RNG.poisson(TRUE).astype(float), rows * WEIGHT, rows * WEIGHT**2


def test_p_values_are_uniform_with_the_statistics_of_the_simulation():
    p = np.array([agreement(EDGES, *toy()).p_value for _ in range(2000)])
    assert p.mean() == pytest.approx(0.5, abs=0.03)
    assert (p < 0.1).mean() == pytest.approx(0.1, abs=0.03)


def test_joined_bins_expect_enough_and_lose_nothing():
    _, expected, variance = toy()
    firsts = joined_bins(expected, variance)
    e, v = (np.add.reduceat(x, firsts) for x in (expected, variance))
    assert firsts[0] == 0
    assert (e >= LEAST).all()
    assert (e**2 / v >= LEAST).all()
    assert e.sum() == pytest.approx(expected.sum())


def test_the_largest_deviation_is_where_events_were_added():
    data, expected, variance = toy()
    data[4] += 12 * np.sqrt(expected[4])
    found = agreement(EDGES, data, expected, variance)
    assert (found.low, found.high) == (4, 5)
    assert found.pull > 6
    assert found.n_data == data[4]
    assert found.p_value < 1e-6


def test_too_little_has_no_chi2():
    found = agreement(EDGES, np.ones(20), np.full(20, 0.1), np.full(20, 0.01))
    assert found.ndf == 0
    assert np.isnan(found.chi2)
