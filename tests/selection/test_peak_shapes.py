"""Our Gauss and Crystal Ball are those of scipy, far into their tails."""

import numpy as np
import pytest
from scipy import stats

from selection.peak_shapes import crystal_ball, crystal_ball_below, gauss, gauss_below

X = np.concatenate([np.linspace(-3, 21, 241), [-400.0, 9.0]])  # m0 and far below it
WIDTHS = [(9.0, 0.3), (9.0, 2.0), (-1.0, 0.05)]


@pytest.mark.parametrize(("m0", "s"), WIDTHS)
def test_gauss_is_the_normal_distribution(m0, s):
    expected = stats.norm(m0, s)
    assert gauss(X, m0, s) == pytest.approx(expected.pdf(X), rel=1e-12)
    assert gauss_below(X, m0, s) == pytest.approx(expected.cdf(X), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("m0", "s"), WIDTHS)
@pytest.mark.parametrize(("beta", "power"), [(0.2, 2.0), (1.0, 2.0), (4.9, 2.0), (1.5, 7.0)])
def test_crystal_ball_is_that_of_scipy(beta, power, m0, s):
    expected = stats.crystalball(beta, power, m0, s)
    assert crystal_ball(X, beta, power, m0, s) == pytest.approx(expected.pdf(X), rel=1e-10)
    below = crystal_ball_below(X, beta, power, m0, s)
    assert below == pytest.approx(expected.cdf(X), rel=1e-10, abs=1e-15)


def test_a_power_that_overflows_alone_is_still_a_density():
    density = crystal_ball(X, 0.01, 300.0, 9.0, 0.3)  # (n / beta)^n is beyond every float
    assert np.isfinite(density).all()
    assert density.max() > 0
