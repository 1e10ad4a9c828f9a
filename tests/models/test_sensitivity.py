"""Laws of the figure of merit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.sensitivity import (
    BACKGROUND_FLOOR,
    PunziFormula,
    punzi_sensitivity,
    punzi_sensitivity_array,
    signal_over_root_background,
    signal_over_root_total,
)

FORMULA = PunziFormula(luminosity_inv_fb=50.0)
REFINED = PunziFormula(luminosity_inv_fb=50.0, form="refined")


@pytest.mark.parametrize("formula", [FORMULA, REFINED])
@given(efficiency=st.floats(1e-4, 1), background=st.floats(0.01, 1e5))
def test_closed_derivatives_agree_with_finite_differences(formula, efficiency, background):
    point = torch.tensor([efficiency, background], dtype=torch.float64, requires_grad=True)
    punzi_sensitivity(point[:1], point[1:], formula).sum().backward()
    for i in range(2):
        here = np.array([efficiency, background])
        step = here * (np.arange(2) == i) * 1e-5
        up, down = here + step, here - step
        difference = punzi_sensitivity_array(*up, formula) - punzi_sensitivity_array(*down, formula)
        assert float(point.grad[i]) == pytest.approx(difference / (2 * step[i]), rel=1e-5)


def test_discovery_at_a_sigmas_is_excluded_at_b_sigmas_by_the_defining_equation():
    # Punzi's condition in the Gaussian limit: N = a sqrt(B) + b sqrt(B + N)
    B = np.array([0.0, 1.0, 30.0, 4e4])
    N = punzi_sensitivity_array(1.0, B, FORMULA) * FORMULA.luminosity_inv_fb
    assert pytest.approx(FORMULA.a * np.sqrt(B) + FORMULA.b * np.sqrt(B + N)) == N


@given(
    st.floats(1e-4, 0.5), st.floats(0, 1e4), st.sampled_from([FORMULA, REFINED]), st.floats(1.01, 9)
)
def test_reach_improves_with_efficiency_and_luminosity_and_worsens_with_background(
    efficiency, background, formula, factor
):
    here = punzi_sensitivity_array(efficiency, background, formula)
    assert punzi_sensitivity_array(efficiency * factor, background, formula) < here
    assert punzi_sensitivity_array(efficiency, background + factor, formula) > here
    more = PunziFormula(50.0 * factor, form=formula.form)
    # the same process at a higher luminosity: more background as well
    assert punzi_sensitivity_array(efficiency, background * factor, more) < here


def test_without_background_the_paper_form_needs_b_squared_events():
    assert punzi_sensitivity_array(0.5, 0.0, FORMULA) == pytest.approx(1.28155**2 / (0.5 * 50))
    assert punzi_sensitivity_array(0.5, -3.0, FORMULA) == punzi_sensitivity_array(0.5, 0, FORMULA)


def test_edges_have_finite_gradients_and_their_stated_values():
    efficiency = torch.tensor([0.0, 0.1, 0.1], dtype=torch.float64, requires_grad=True)
    background = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    reach = punzi_sensitivity(efficiency, background, FORMULA)
    assert torch.isinf(reach[0])
    reach.sum().backward()
    assert efficiency.grad[0] == 0
    assert background.grad[0] == 0
    assert torch.isfinite(efficiency.grad).all()
    assert 0 < background.grad[1] < 3 / np.sqrt(BACKGROUND_FLOOR)
    numpy_reach = punzi_sensitivity_array(efficiency.detach(), background.detach(), FORMULA)
    assert np.array_equal(numpy_reach, reach.detach().numpy())


def test_other_figures_of_merit():
    assert signal_over_root_background(6.0, 4.0) == 3.0
    assert signal_over_root_total(6.0, 3.0) == 2.0
    assert np.array_equal(signal_over_root_background([1.0, 0.0], 0.0), [np.inf, 0.0])
    assert np.array_equal(signal_over_root_total([4.0, 0.0], 0.0), [2.0, 0.0])


@pytest.mark.parametrize(
    "change", [{"luminosity_inv_fb": 0.0}, {"b": 0.0}, {"a": -1.0}, {"form": "other"}]
)
def test_senseless_constants_are_refused(change):
    with pytest.raises(ValueError, match=r"found|choose"):
        PunziFormula(**({"luminosity_inv_fb": 50.0} | change))
