"""The fused sweep against float64 torch, and the laws of sums over groups.

Tolerances are relative to what is added up, not to what is left after cancellation: a sum against
the weight of its group, a gradient against sum_g |dL/dS_g| |dS_g/dtheta|. At a trained network the
gradient is zero but for rounding, and no float32 arithmetic knows its digits.
"""

import copy
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
import torch

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.batches import Batch, random_batches, shuffled_in_groups, stratified_batches
from models.training.group_sums import fused_sums, group_sums, packed
from models.training.loop import train_network
from models.training.losses import bce_loss, punzi_loss
from models.training.settings import Stage, TrainingSettings
from models.training.threads import shared_map
from models.training.training_set import GroupedEvents

FORMULA = PunziFormula(luminosity_inv_fb=50.0)


def network_for(data, *, hidden=(8, 4), seed=3, scale=1.0):
    network = PunziNet(
        data.features.min(axis=1), data.features.max(axis=1), hidden=hidden, seed=seed
    )
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(scale)
    return network


def loss_of(sums, data, quantity, *, log=False):
    punzi = punzi_loss(FORMULA, power=0.0 if log else None)
    return (bce_loss() if quantity == "bce" else punzi).of(sums, data)


def gradient_of(network, data, quantity, by, **options):
    network.zero_grad()
    sums = group_sums(network, data.whole, quantity=quantity, by=by)
    sums.retain_grad()
    loss = loss_of(sums, data, quantity, **options)
    loss.backward()
    gradient = np.concatenate([p.grad.double().numpy().ravel() for p in network.parameters()])
    return sums.detach().numpy(), float(loss.detach()), gradient, np.abs(sums.grad.numpy())


def assert_agrees_with_float64(network, data, quantity, **options):
    oracle = copy.deepcopy(network).double()
    sums, loss, gradient, _ = gradient_of(network, data, quantity, "fused", **options)
    sums64, loss64, gradient64, pull = gradient_of(oracle, data, quantity, "torch", **options)
    scale = np.maximum(data.group_weight, np.abs(sums64)) + 1e-30
    assert np.max(np.abs(sums - sums64) / scale) < 1e-6
    # an absolute step of the log loss is a relative step of sigma_min
    log = options.get("log", False)
    assert loss == pytest.approx(loss64, abs=1e-6 if log else 1e-6 * loss64)
    theta = packed(list(network.parameters()))
    jacobian = fused_sums(theta, network, data.whole, quantity, gradient=True)[1]
    if network.hidden == (8, 4):  # no padding
        added_up = pull @ np.abs(jacobian)
        assert np.linalg.norm(gradient - gradient64) < 1e-5 * np.linalg.norm(added_up)
    else:
        assert np.linalg.norm(gradient - gradient64) < 1e-5 * np.linalg.norm(gradient64)


@pytest.fixture(scope="module")
def trained(toy_sets):
    """A network with large weights and scores near 0 and 1."""
    stages = (
        Stage(name="bce", loss="bce", epochs=20, learning_rate=0.05),
        Stage(name="punzi", loss="punzi", epochs=200, learning_rate=0.05),
    )
    return train_network(*toy_sets(), TrainingSettings(stages), seed=1).final


@pytest.mark.parametrize("quantity", ["score", "bce"])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_fused_agrees_with_float64_autograd_at_random_weights(toy_sets, quantity, scale):
    data, _ = toy_sets(n_background=30_000)
    network = network_for(data, scale=scale)
    assert_agrees_with_float64(network, data, quantity)
    gradient, wanted = (
        gradient_of(n, data, quantity, by)[2]
        for n, by in ((network, "fused"), (copy.deepcopy(network).double(), "torch"))
    )
    assert np.linalg.norm(gradient - wanted) < 1e-5 * np.linalg.norm(wanted)


@pytest.mark.parametrize("quantity", ["score", "bce"])
@pytest.mark.parametrize("log", [True, False])
def test_fused_agrees_with_float64_autograd_at_trained_weights(toy_sets, trained, quantity, log):
    assert_agrees_with_float64(trained, toy_sets()[0], quantity, log=log)


@pytest.mark.parametrize("options", [{"n_signal": 3}, {"n_background": 12}, {"n_signal": 1}])
def test_fused_agrees_where_masses_or_windows_have_few_or_no_events(toy_sets, options, trained):
    data, _ = toy_sets(seed=5, **options)
    for network in (network_for(data), trained):
        assert_agrees_with_float64(network, data, "score")


def test_fused_agrees_with_zero_and_negative_weights(toy_sets):
    data, _ = toy_sets()
    weight = data.weight.copy()
    weight[::3] = 0
    weight[::50] *= -0.1
    data = replace(data, weight=weight)
    assert_agrees_with_float64(network_for(data), data, "score")


def test_an_empty_window_gives_finite_gradients(toy_sets, toy_table):
    table = toy_table()
    in_gap = ~table.is_signal & (table.axis > 8) & (table.axis < 10)
    data, _ = toy_sets(table.take(~in_gap))  # no background around 3 GeV
    assert (data.in_window @ data.group_weight[data.n_masses :])[-1] == 0
    assert_agrees_with_float64(network_for(data), data, "score")
    assert np.isfinite(gradient_of(network_for(data), data, "score", "fused")[2]).all()


def test_any_two_hidden_widths_are_fused(toy_sets):
    data, _ = toy_sets()
    assert_agrees_with_float64(network_for(data, hidden=(5, 3)), data, "score")


@pytest.mark.parametrize("hidden", [(6,), (8, 4, 3)])
def test_other_architectures_use_the_torch_form_without_complaint(toy_sets, hidden):
    data, _ = toy_sets()
    network = network_for(data, hidden=hidden)
    automatic = group_sums(network, data.whole)
    assert torch.equal(automatic, group_sums(network, data.whole, by="torch"))
    with pytest.raises(ValueError, match="two hidden layers"):
        group_sums(network, data.whole, by="fused")


@pytest.mark.parametrize("quantity", ["score", "bce"])
def test_gradient_agrees_with_finite_differences(toy_sets, quantity):
    data, _ = toy_sets()
    network = network_for(data)
    gradient = gradient_of(network, data, quantity, "fused")[2]
    oracle = copy.deepcopy(network).double()
    flat = torch.nn.utils.parameters_to_vector(oracle.parameters()).detach()
    rng = np.random.default_rng(1)
    for _ in range(5):
        direction = torch.from_numpy(rng.normal(size=len(flat)))
        values = []
        for step in (1e-5, -1e-5):
            torch.nn.utils.vector_to_parameters(flat + step * direction, oracle.parameters())
            with torch.no_grad():
                sums = group_sums(oracle, data.whole, quantity=quantity, by="torch")
                values.append(float(loss_of(sums, data, quantity)))
        slope = (values[0] - values[1]) / 2e-5
        size = np.linalg.norm(gradient) * np.linalg.norm(direction)
        assert gradient @ direction.numpy() == pytest.approx(slope, abs=1e-5 * size)


@pytest.mark.parametrize("by", ["fused", "torch"])
def test_exchange_of_events_leaves_the_sums_unchanged(toy_sets, by):
    data, _ = toy_sets()
    network = network_for(data)
    mixed = shuffled_in_groups(data, (7,))
    assert not np.array_equal(mixed.features, data.features)
    before, after = (group_sums(network, d.whole, by=by) for d in (data, mixed))
    assert np.allclose(before.detach(), after.detach(), rtol=1e-6)


def test_sums_and_gradients_of_chunks_add_up(toy_sets):
    data, _ = toy_sets()
    network = network_for(data)
    theta = packed(list(network.parameters()))
    whole = data.whole
    middle = whole.start + (whole.stop - whole.start) // 3
    halves = (replace(whole, stop=middle), replace(whole, start=middle))
    total = fused_sums(theta, network, whole, "score", gradient=True)
    parts = [fused_sums(theta, network, half, "score", gradient=True) for half in halves]
    for at in (0, 1):
        assert np.allclose(parts[0][at] + parts[1][at], total[at], rtol=1e-5, atol=1e-9)


def test_processes_that_hold_a_share_of_the_events_each_give_the_gradient_of_all(toy_sets):
    """Events that do not fit one machine: only S and dS/dtheta travel, 90 kB."""
    data, _ = toy_sets()
    network = network_for(data)
    theta = packed(list(network.parameters()))
    length = data.whole.stop - data.whole.start
    shares = []
    for i in range(3):
        events = [np.arange(a, b) for a, b in zip(data.whole.start + length * i // 3,
                                                  data.whole.start + length * (i + 1) // 3, strict=True)]  # fmt: skip
        rows, stop = np.concatenate(events), np.cumsum([len(e) for e in events])
        shares.append(
            GroupedEvents(
                np.ascontiguousarray(data.features[:, rows]), data.weight[rows], data.whole.group,
                np.concatenate([[0], stop[:-1]]), stop, data.target,
            )
        )  # fmt: skip
    assert sum(len(share.weight) for share in shares) == len(data)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        jobs = [
            pool.submit(fused_sums, theta, network, share, "score", gradient=True)
            for share in shares
        ]
        parts = [job.result() for job in jobs]
    sums, jacobian = (sum(part[at] for part in parts) for at in (0, 1))
    reduced = torch.from_numpy(sums).requires_grad_()
    punzi_loss(FORMULA, power=0.0).of(reduced, data).backward()
    _, _, whole, pull = gradient_of(network, data, "score", "fused", log=True)
    found = reduced.grad.numpy() @ jacobian
    assert np.linalg.norm(found - whole) < 1e-6 * np.linalg.norm(pull @ np.abs(jacobian))


@pytest.mark.parametrize("quantity", ["score", "bce", "accepted"])
def test_sums_have_the_same_bits_with_and_without_their_gradient(toy_sets, quantity):
    data, _ = toy_sets(n_background=30_000)
    network = network_for(data)
    with torch.no_grad():
        plain = group_sums(network, data.whole, quantity=quantity)
    assert not plain.requires_grad
    with_gradient = group_sums(network, data.whole, quantity=quantity)
    assert with_gradient.requires_grad
    assert torch.equal(plain, with_gradient)


def test_threads_do_not_change_a_bit(toy_sets):
    data, _ = toy_sets(n_background=60_000)
    network = network_for(data)
    theta = packed(list(network.parameters()))
    one = fused_sums(theta, network, data.whole, "score", gradient=True)
    for threads in (2, 3):
        with shared_map(threads) as over:
            many = fused_sums(theta, network, data.whole, "score", gradient=True, over=over)
        assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))


def test_results_do_not_depend_on_where_the_memory_is(toy_sets):
    # loops that test for overlapping arrays at run time round differently on their two ways; with
    # scratch arrays allocated one by one, up to one call in a hundred gave other bits here
    data, _ = toy_sets(n_background=600, n_signal=40)
    network = network_for(data)
    theta = packed(list(network.parameters()))
    rng = np.random.default_rng(1)
    results = set()
    for _ in range(6000):
        blocks = [np.empty(size, np.uint8) for size in rng.integers(16, 3000, 40)]
        events = replace(data.whole, features=data.features.copy(), weight=data.weight.copy())
        blocks = blocks[rng.integers(2) :: 2]  # every second block is freed: holes for the scratch
        sums, jacobian = fused_sums(theta.copy(), network, events, "score", gradient=True)
        results.add(sums.tobytes() + jacobian.tobytes())
    assert len(results) == 1


def test_one_batch_of_everything_is_the_mono_batch(toy_sets):
    data, _ = toy_sets()
    network = network_for(data)
    mono = group_sums(network, data.whole).detach()
    everything: list[Batch] = [
        *random_batches(data, len(data), (1,)),
        *stratified_batches(shuffled_in_groups(data, (1,)), len(data), (2,)),
    ]
    assert len(everything) == 2
    for batch in everything:
        sums = group_sums(network, batch.events).detach() * torch.from_numpy(batch.scale)
        assert np.allclose(sums, mono, rtol=1e-6)


def test_accepted_counts_the_events_above_one_half(toy_sets, trained):
    data, _ = toy_sets()
    accepted = [
        group_sums(trained, data.whole, quantity="accepted", by=by) for by in ("fused", "torch")
    ]
    assert np.allclose(*[a.detach() for a in accepted], rtol=1e-4)
    assert 0 < accepted[0].sum() < data.group_weight.sum()


def test_weights_that_are_not_finite_give_nan_and_not_a_number(toy_sets):
    data, _ = toy_sets()
    network = network_for(data)
    with torch.no_grad():
        next(network.parameters())[0, 0] = float("nan")
    present = data.group_weight != 0
    assert torch.isnan(group_sums(network, data.whole)[torch.from_numpy(present)]).all()


def test_unknown_form_is_refused(toy_sets):
    data, _ = toy_sets()
    with pytest.raises(ValueError, match="by 'fast' are not known; choose"):
        group_sums(network_for(data), data.whole, by="fast")
