"""Laws of the losses."""

import numpy as np
import pytest
import torch

from models.losses import bce_loss, class_weights, efficiency_and_background, punzi_loss
from models.sensitivity import PunziFormula, punzi_sensitivity

FORMULA = PunziFormula(luminosity_inv_fb=50.0)


def half_accepted(data, seed=1):
    share = np.random.default_rng(seed).uniform(0.1, 0.9, data.n_groups)
    return torch.tensor(data.group_weight * share, requires_grad=True)


@pytest.mark.parametrize("power", [None, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("weighted", [True, False])
def test_closed_gradient_is_that_of_autograd(toy_sets, power, weighted):
    data, _ = toy_sets()
    v = np.arange(1.0, 7.0) if weighted else None
    sums = half_accepted(data)
    log = power is not None
    loss = punzi_loss(sums, data, FORMULA, log=log, power=power or 0.0, hypothesis_weight=v)
    (gradient,) = torch.autograd.grad(loss, sums)
    reach = punzi_sensitivity(*efficiency_and_background(sums, data), FORMULA)
    value = {None: reach, 0.0: torch.log(reach)}.get(power, reach ** (power or 1))
    plain = value.mean() if v is None else (torch.from_numpy(v) * value).sum() / v.sum()
    if power:
        plain = torch.log(plain) / power
    assert loss.item() == pytest.approx(plain.item(), rel=1e-12)
    assert np.allclose(gradient, torch.autograd.grad(plain, sums)[0], rtol=1e-10)


def test_the_power_mean_passes_from_the_mean_of_logs_to_the_log_of_the_mean(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data).detach()
    losses = [float(punzi_loss(sums, data, FORMULA, log=True, power=p)) for p in (0, 1e-6, 0.3, 1)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    assert losses == sorted(losses)
    assert np.exp(losses[3]) == pytest.approx(float(punzi_loss(sums, data, FORMULA, log=False)))


def test_a_mass_without_efficiency_is_left_out_and_the_others_count_as_before(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data).detach()
    sums[2] = 0
    sums.requires_grad_()
    reach = punzi_sensitivity(*efficiency_and_background(sums, data), FORMULA)
    loss = punzi_loss(sums, data, FORMULA, log=False)
    loss.backward()
    assert loss.item() == pytest.approx(float(reach.detach()[torch.arange(6) != 2].mean()))
    assert sums.grad[2] == 0
    assert torch.isfinite(sums.grad).all()


def test_with_no_efficiency_at_all_the_loss_is_nan(toy_sets):
    data, _ = toy_sets()
    assert torch.isnan(punzi_loss(torch.zeros(data.n_groups).double(), data, FORMULA, log=True))


def test_weight_of_one_hypothesis_only_gives_its_reach(toy_sets):
    data, _ = toy_sets()
    sums = half_accepted(data).detach()
    reach = punzi_sensitivity(*efficiency_and_background(sums, data), FORMULA)
    only = np.eye(6)[4]
    loss = punzi_loss(sums, data, FORMULA, log=False, hypothesis_weight=only)
    assert float(loss) == pytest.approx(float(reach[4]))


def test_both_classes_weigh_the_same_in_the_bce(toy_sets):
    data, _ = toy_sets()
    weight = class_weights(data) * data.group_weight
    assert weight[: data.n_masses].sum() == pytest.approx(weight[data.n_masses :].sum())
    # a network that knows nothing: -log(1/2) for everyone
    sums = torch.from_numpy(data.group_weight * np.log(2))
    assert float(bce_loss(sums, data)) == pytest.approx(np.log(2))
