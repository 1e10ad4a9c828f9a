"""Laws of the losses."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch

from models.sensitivity import PunziFormula, punzi_sensitivity
from models.training.losses import (
    LOSSES,
    bce_loss,
    class_weights,
    efficiency_and_background,
    loss_of,
    punzi_loss,
)
from models.training.settings import DEFAULT, LossName

FORMULA = PunziFormula(luminosity_inv_fb=50.0)
REFINED = PunziFormula(luminosity_inv_fb=50.0, form="refined")
POWERS = [None, 0.0, 0.3, 1.0]


def half_accepted(data, seed=1):
    share = np.random.default_rng(seed).uniform(0.1, 0.9, data.n_groups)
    return torch.tensor(data.group_weight * share, requires_grad=True)


def sigma_min(sums, data, formula):
    """sigma_min (n_masses,) of group sums, for autograd: the formula, written out once more."""
    efficiency = sums[: data.n_masses]
    B = torch.from_numpy(data.in_window) @ sums[data.n_masses :]
    a, b = formula.a, formula.b
    constant = {"paper": b**2 / 2, "refined": a**2 / 8 + 9 * b**2 / 13}[formula.form]
    inner = torch.sqrt(b**2 + 4 * a * torch.sqrt(B) + 4 * B)
    events = constant + a * torch.sqrt(B) + b / 2 * inner
    return events / (efficiency * formula.luminosity_inv_fb)


def reach_of(sums, data):
    return punzi_sensitivity(*efficiency_and_background(sums, data), FORMULA)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("formula", [FORMULA, REFINED], ids=lambda f: f.form)
def test_closed_gradient_is_that_of_autograd(toy_sets, power, weighted, formula):
    data, _ = toy_sets()
    v = np.arange(1.0, 7.0) if weighted else None
    sums = half_accepted(data)
    loss = punzi_loss(formula, power=power, hypothesis_weight=v).of(sums, data)
    (gradient,) = torch.autograd.grad(loss, sums)
    reach = sigma_min(sums, data, formula)
    value = {None: reach, 0.0: torch.log(reach)}.get(power, reach ** (power or 1))
    plain = value.mean() if v is None else (torch.from_numpy(v) * value).sum() / v.sum()
    if power:
        plain = torch.log(plain) / power
    assert loss.item() == pytest.approx(plain.item(), rel=1e-12)
    assert np.allclose(gradient, torch.autograd.grad(plain, sums)[0], rtol=1e-10)


def test_closed_gradient_of_the_bce_is_that_of_autograd(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data)
    loss = bce_loss().of(sums, data)
    (gradient,) = torch.autograd.grad(loss, sums)
    c = torch.from_numpy(class_weights(data))
    plain = (c @ sums) / (c @ torch.from_numpy(data.group_weight))
    assert loss.item() == pytest.approx(plain.item(), rel=1e-12)
    assert np.allclose(gradient, torch.autograd.grad(plain, sums)[0], rtol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_tensor_loss_has_the_value_and_the_slopes_of_the_closed_form(toy_sets, name):
    data, _ = toy_sets()
    loss = LOSSES[name](DEFAULT, 50.0)
    sums = half_accepted(data)
    found = loss.of(sums, data)
    (gradient,) = torch.autograd.grad(3 * found, sums)
    value, slopes = loss.slopes(sums.detach().numpy(), data)
    assert found.item() == value
    assert np.allclose(gradient, 3 * slopes, rtol=1e-15)


def test_the_power_mean_passes_from_the_mean_of_logs_to_the_log_of_the_mean(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data).detach()
    losses = [float(punzi_loss(FORMULA, power=p).of(sums, data)) for p in (0, 1e-6, 0.3, 1)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    assert losses == sorted(losses)
    mean = punzi_loss(FORMULA, power=None).of(sums, data)
    assert np.exp(losses[3]) == pytest.approx(float(mean))


def test_a_mass_without_efficiency_is_left_out_and_the_others_count_as_before(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data).detach()
    sums[2] = 0
    reach = reach_of(sums.numpy(), data)
    assert np.isinf(reach[2])
    sums.requires_grad_()
    loss = punzi_loss(FORMULA, power=None).of(sums, data)
    loss.backward()
    assert loss.item() == pytest.approx(float(reach[np.arange(6) != 2].mean()))
    assert sums.grad[2] == 0
    assert torch.isfinite(sums.grad).all()


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("formula", [FORMULA, REFINED], ids=lambda f: f.form)
def test_slopes_are_finite_without_background_and_without_efficiency(toy_sets, power, formula):
    data, _ = toy_sets()
    n = data.n_masses
    sums = half_accepted(data).detach().numpy()
    sums[0] = 0.0  # no efficiency at the first mass
    sums[n:][data.in_window[3] > 0] = 0.0  # no background in the window of the fourth
    value, slopes = punzi_loss(formula, power=power).slopes(sums, data)
    assert np.isfinite(value)
    assert np.isfinite(slopes).all()
    assert slopes[0] == 0  # infinity is no direction
    of_the_first_alone = (data.in_window[0] > 0) & (data.in_window[1:] == 0).all(axis=0)
    assert of_the_first_alone.any()
    assert (slopes[n:][of_the_first_alone] == 0).all()
    assert (slopes[n:][data.in_window[3] > 0] > 0).all()


def test_with_no_efficiency_at_all_the_loss_is_nan(toy_sets):
    data, _ = toy_sets()
    nothing = torch.zeros(data.n_groups).double()
    assert torch.isnan(punzi_loss(FORMULA, power=0.0).of(nothing, data))


def test_weight_of_one_hypothesis_only_gives_its_reach(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data).detach()
    reach = reach_of(sums.numpy(), data)
    loss = punzi_loss(FORMULA, power=None, hypothesis_weight=np.eye(6)[4])
    assert float(loss.of(sums, data)) == pytest.approx(float(reach[4]))


def test_both_classes_weigh_the_same_in_the_bce(toy_sets):
    data, _ = toy_sets()
    weight = class_weights(data) * data.group_weight
    assert weight[: data.n_masses].sum() == pytest.approx(weight[data.n_masses :].sum())
    # a network that knows nothing: -log(1/2) for everyone
    sums = torch.from_numpy(data.group_weight * np.log(2))
    assert float(bce_loss().of(sums, data)) == pytest.approx(np.log(2))


def test_every_name_of_a_loss_has_its_record_and_no_other():
    assert set(LOSSES) == set(get_args(LossName))
    assert {LOSSES[name](DEFAULT, 50.0).name for name in LOSSES} == set(LOSSES)


def test_the_loss_of_a_stage_is_the_one_it_names_with_the_settings_of_the_training(toy_sets):
    data, _ = toy_sets()
    bce, punzi = DEFAULT.stages
    sums = half_accepted(data).detach().numpy()
    v = np.arange(1.0, 7.0)
    settings = replace(DEFAULT, formula="refined", hypothesis_weights=tuple(v))
    for log_loss, power in ((True, DEFAULT.power), (False, None)):
        changed = replace(settings, log_loss=log_loss)
        found = loss_of(punzi, changed, luminosity_inv_fb=50.0)
        wanted = punzi_loss(REFINED, power=power, hypothesis_weight=v)
        assert found.text == wanted.text
        assert found.slopes(sums, data)[0] == wanted.slopes(sums, data)[0]
    found = loss_of(bce, settings, luminosity_inv_fb=50.0)
    assert found.slopes(sums, data)[0] == bce_loss().slopes(sums, data)[0]
