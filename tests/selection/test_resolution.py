"""Width fits give back the width that was put in, whatever the tail; the curve is honest."""

import numpy as np
import pytest

from selection.resolution import (
    ResolutionError,
    WidthFit,
    fit_width,
    peak_density,
    smooth_widths,
)
from selection.windows import MassWindows


def peak(rng, n, m2, sigma, tail_share):
    """A Gaussian core; a share of the events radiates and moves up by an exponential amount."""
    x = rng.normal(m2, sigma, n)
    radiates = rng.uniform(size=n) < tail_share
    return x + np.where(radiates, rng.exponential(8 * sigma, n), 0)


@pytest.mark.parametrize("tail_share", [0.0, 0.3, 0.5])
def test_the_core_width_is_found_under_a_radiative_tail(tail_share):
    x = peak(np.random.default_rng(4), 20_000, 9.0, 0.3, tail_share)
    fit = fit_width(3.0, x, squared=True, min_events=150)
    assert not fit.reason
    assert fit.sigma == pytest.approx(0.3, rel=0.10)
    if tail_share == 0.5:  # what the fit is for: the RMS would be off by far more
        assert x.std() > 3 * 0.3


def test_the_error_of_the_width_is_its_scatter():
    rng = np.random.default_rng(7)
    fits = [
        fit_width(3.0, peak(rng, 2000, 9.0, 0.3, 0.3), squared=True, min_events=150)
        for _ in range(60)
    ]
    widths = np.array([fit.sigma for fit in fits])
    quoted = np.median([fit.error for fit in fits])
    assert 0.7 < widths.std() / quoted < 1.4


def test_the_shape_is_normalised_on_its_range():
    span = (7.0, 12.0)
    x = np.linspace(*span, 20_001)
    density = peak_density(x, 9.0, 0.3, 0.7, 0.8, span=span)
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-6)
    # the tail points upwards
    assert peak_density(np.array([10.5]), 9.0, 0.3, 0.7, 0.8, span=span) > 5 * peak_density(
        np.array([7.5]), 9.0, 0.3, 0.7, 0.8, span=span
    )


def test_too_few_events_are_said_and_the_curve_fills_the_gap(caplog):
    rng = np.random.default_rng(1)
    masses = np.arange(1, 10) * 0.9
    truth = 0.3 - 0.025 * masses
    fits = [
        fit_width(
            m, peak(rng, 30 if m == masses[4] else 4000, m**2, s, 0.3), squared=True, min_events=150
        )
        for m, s in zip(masses, truth, strict=True)
    ]
    assert [bool(fit.reason) for fit in fits].count(True) == 1
    curve = smooth_widths(fits)
    assert f"width at {masses[4]:g} GeV is taken from the smooth curve: 30 events" in caplog.text
    found = curve.sigma(masses)
    assert np.abs(found / truth - 1).max() < 0.12
    assert np.all(curve.error(masses) < 0.1 * found)
    MassWindows(masses, found, 2.0, squared=True)


def test_a_curve_needs_good_fits():
    bad = [WidthFit(m, 10, reason="10 events, 150 needed") for m in (1.0, 2.0, 3.0)]
    with pytest.raises(ResolutionError, match=r"0 of 3 masses .* 2 GeV: 10 events"):
        smooth_widths(bad)


def test_one_mass_alone_gets_its_own_width():
    fit = fit_width(
        3.0, peak(np.random.default_rng(4), 5000, 9.0, 0.3, 0.3), squared=True, min_events=150
    )
    curve = smooth_widths([fit])
    assert curve.sigma(np.array([3.0])) == pytest.approx(fit.sigma)
