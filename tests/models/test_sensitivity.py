"""Laws of the figure of merit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.sensitivity import (
    BACKGROUND_FLOOR,
    PunziFormula,
    punzi_sensitivity,
    signal_events_needed,
    signal_events_slope,
)

FORMULA = PunziFormula(luminosity_inv_fb=50.0)
REFINED = PunziFormula(luminosity_inv_fb=50.0, form="refined")


@pytest.mark.parametrize("formula", [FORMULA, REFINED])
@given(efficiency=st.floats(1e-4, 1), background=st.floats(0.01, 1e5))
def test_the_closed_slope_agrees_with_finite_differences(formula, efficiency, background):
    step = 1e-5 * background
    up, down = (punzi_sensitivity(efficiency, background + d, formula) for d in (step, -step))
    slope = signal_events_slope(np.array([background]), formula)
    by_background = slope / (efficiency * formula.luminosity_inv_fb)
    assert by_background == pytest.approx((up - down) / (2 * step), rel=1e-5)


@given(st.floats(1e-4, 1), st.floats(0, 1e5), st.sampled_from([FORMULA, REFINED]))
def test_the_reach_is_the_events_needed_over_efficiency_and_luminosity(
    efficiency, background, formula
):
    N = signal_events_needed(np.array([background]), formula)
    found = punzi_sensitivity(efficiency, background, formula)
    assert found == pytest.approx(N[0] / (efficiency * formula.luminosity_inv_fb), rel=1e-14)


def test_discovery_at_a_sigmas_is_excluded_at_b_sigmas_by_the_defining_equation():
    # Punzi's condition in the Gaussian limit: N = a sqrt(B) + b sqrt(B + N)
    B = np.array([0.0, 1.0, 30.0, 4e4])
    N = punzi_sensitivity(1.0, B, FORMULA) * FORMULA.luminosity_inv_fb
    assert pytest.approx(FORMULA.a * np.sqrt(B) + FORMULA.b * np.sqrt(B + N)) == N


@given(
    st.floats(1e-4, 0.5), st.floats(0, 1e4), st.sampled_from([FORMULA, REFINED]), st.floats(1.01, 9)
)
def test_reach_improves_with_efficiency_and_luminosity_and_worsens_with_background(
    efficiency, background, formula, factor
):
    here = punzi_sensitivity(efficiency, background, formula)
    assert punzi_sensitivity(efficiency * factor, background, formula) < here
    assert punzi_sensitivity(efficiency, background + factor, formula) > here
    more = PunziFormula(50.0 * factor, form=formula.form)
    # the same process at a higher luminosity: more background as well
    assert punzi_sensitivity(efficiency, background * factor, more) < here


def test_without_background_the_paper_form_needs_b_squared_events():
    assert punzi_sensitivity(0.5, 0.0, FORMULA) == pytest.approx(1.28155**2 / (0.5 * 50))
    assert punzi_sensitivity(0.5, -3.0, FORMULA) == punzi_sensitivity(0.5, 0, FORMULA)


def test_without_efficiency_nothing_is_in_reach_and_nan_stays_nan():
    reach = punzi_sensitivity([0.0, -0.1, np.nan, 0.1], [1.0, 1.0, 1.0, 1.0], FORMULA)
    assert np.isinf(reach[:2]).all()
    assert np.isnan(reach[2])
    assert 0 < reach[3] < np.inf


@pytest.mark.parametrize("formula", [FORMULA, REFINED])
def test_the_slope_is_finite_without_background_and_does_not_change_below_the_floor(formula):
    below = signal_events_slope(np.array([-3.0, 0.0, 0.5 * BACKGROUND_FLOOR]), formula)
    at_floor = signal_events_slope(np.array([BACKGROUND_FLOOR]), formula)
    assert (below == at_floor).all()
    assert 0 < at_floor < 3 / np.sqrt(BACKGROUND_FLOOR)


@pytest.mark.parametrize(
    "change", [{"luminosity_inv_fb": 0.0}, {"b": 0.0}, {"a": -1.0}, {"form": "other"}]
)
def test_senseless_constants_are_refused(change):
    with pytest.raises(ValueError, match=r"found|choose"):
        PunziFormula(**({"luminosity_inv_fb": 50.0} | change))
