"""Background of a window from the data beside it."""

import numpy as np
import pytest
from scipy import optimize, stats

from limits.expectation import Expectation
from limits.sideband import BESIDE, CENTRE, WINDOW, as_expectation, sideband_background
from limits.significance import local_p_values
from selection.errors import UserError

MASS = np.array([3.0])
TRUE = 30 * np.exp(-0.08 * CENTRE + 0.004 * CENTRE**2)  # (n_bins,)


def test_a_smooth_spectrum_is_found_again():
    found = sideband_background(TRUE[None], MASS)
    assert found.background[0] == pytest.approx(TRUE[WINDOW].sum(), rel=1e-9)
    assert found.curve[0] == pytest.approx(TRUE, rel=1e-9)
    assert found.deviance[0] == pytest.approx(0.0, abs=1e-9)
    assert found.freedom == 7


def test_what_lies_in_the_window_and_next_to_it_changes_nothing():
    other = TRUE.copy()
    other[~BESIDE] = 1000.0
    plain, changed = sideband_background(TRUE[None], MASS), sideband_background(other[None], MASS)
    assert changed.background[0] == plain.background[0]
    assert np.all(np.abs(CENTRE[~BESIDE]) < 3)


def test_the_fit_is_the_largest_poisson_likelihood():
    n = np.random.default_rng(1).poisson(TRUE)

    def minus(c):
        rate = np.exp(c[0] + c[1] * CENTRE + c[2] * CENTRE**2)[BESIDE]
        return (rate - n[BESIDE] * np.log(rate)).sum()

    c = optimize.minimize(minus, [3.0, 0.0, 0.0], tol=1e-12).x
    wanted = np.exp(c[0] + c[1] * CENTRE + c[2] * CENTRE**2)[WINDOW].sum()
    found = sideband_background(n[None], MASS)
    assert found.background[0] == pytest.approx(wanted, rel=1e-4)


def test_its_error_is_the_spread_of_many_and_its_deviance_a_chi_square():
    n = np.random.default_rng(2).poisson(TRUE, (2000, 16))
    found = sideband_background(n, np.full(2000, 3.0))
    pull = (found.background - TRUE[WINDOW].sum()) / found.error
    assert abs(pull.mean()) < 0.1
    assert pull.std() == pytest.approx(1.0, abs=0.08)
    assert found.deviance.mean() == pytest.approx(found.freedom, rel=0.05)


def test_p_values_from_sidebands_are_honest():
    n = np.random.default_rng(3).poisson(TRUE, (4000, 16))
    found = sideband_background(n, np.full(4000, 3.0))
    p = local_p_values(as_expectation(found, np.zeros(4000)), n[:, WINDOW].sum(axis=1))
    for alpha in (0.1, 0.01):
        assert (p <= alpha).mean() < alpha + 4 * np.sqrt(alpha / 4000)
        assert (p <= alpha).mean() > 0.4 * alpha


def test_the_gamma_has_mean_and_error_of_the_curve():
    found = sideband_background(TRUE[None], MASS)
    b = as_expectation(found, np.zeros(1))
    assert isinstance(b, Expectation)
    assert b.mean == pytest.approx(found.background)
    assert np.sqrt(b.variance) == pytest.approx(found.error)


def test_light_masses_and_empty_sidebands_have_no_background():
    few = np.zeros(16)
    few[BESIDE] = 1.0  # ten events
    found = sideband_background(np.stack([TRUE, TRUE, few]), np.array([3.0, 1.4, 3.0]))
    assert np.isnan(found.background).tolist() == [False, True, True]
    with pytest.raises(UserError, match=r"2 of 3 masses have no sidebands"):
        as_expectation(found, np.zeros(3))


def test_events_on_one_side_or_in_the_last_bins_only_say_nothing_about_the_window():
    n = np.zeros((3, 16))
    n[0, :5] = 5.0
    n[1, [0, 15]] = 25.0
    n[2, [0, 2, 4, 11, 15]] = 6.0
    found = sideband_background(n, np.full(3, 3.0))
    assert np.isnan(found.background).tolist() == [True, True, False]


def test_counts_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"wanted \(1, 16\)"):
        sideband_background(np.ones((1, 4)), MASS)
    with pytest.raises(ValueError, match="not negative"):
        sideband_background(-np.ones((1, 16)), MASS)


def test_the_critical_value_of_the_deviance_is_that_of_chi_square():
    """A step in the background is seen by the fit itself."""
    step = TRUE + np.where(CENTRE > 4, 60.0, 0.0)
    found = sideband_background(step[None], MASS)
    assert found.deviance[0] > stats.chi2.isf(0.01, found.freedom)
