"""Asymptotic limits: against pyhf, against the exact ones, and the fit beneath them."""

import numpy as np
import pyhf
import pytest
from scipy import optimize, stats

from limits.asymptotic import asymptotic_limits, one_bin
from limits.expectation import Expectation, known_background
from limits.likelihood import Model, asimov, best_fits, fit_at, seen
from limits.profile import log_likelihood
from limits.upper import expected_limits, upper_limits

EXPECTATION = Expectation(
    np.array([[3.0, 8.0], [20.0, 100.0], [0.0, 2.0]]),
    np.array([[0.5, 0.1], [0.5, 0.3], [2.0, 0.3]]),
    np.array([0.1, 0.3]),
    np.full(3, 0.05),
)
COUNTS = np.array([4, 30, 2])
OF_PYHF = pytest.mark.filterwarnings("ignore:jsonschema.RefResolver")


def pyhf_model(b, mass, scale):
    def normsys(name, u):
        return {"name": name, "type": "normsys", "data": {"hi": 1 + u, "lo": 1 / (1 + u)}}

    samples = [
        {
            "name": "signal",
            "data": [scale],
            "modifiers": [
                {"name": "mu", "type": "normfactor", "data": None},
                normsys("signal_scale", b.signal_uncertainty[mass]),
            ],
        }
    ]
    for p, events in enumerate(b.by_process[mass]):
        error = events / b.shape[mass, p] ** 0.5
        rows = {"name": f"rows{p}", "type": "shapesys", "data": [error]}
        samples.append(
            {"name": f"b{p}", "data": [events],
             "modifiers": [rows, normsys(f"norm{p}", b.normalisation[p])]}
        )  # fmt: skip
    return pyhf.Model({"channels": [{"name": "window", "samples": samples}]}, poi_name="mu")


@OF_PYHF
def test_expected_limits_and_bands_are_those_of_pyhf():
    ours = asymptotic_limits(EXPECTATION, COUNTS, level=0.90)
    scale = ours.median[0] / 2  # pyhf bounds mu by 10
    model = pyhf_model(EXPECTATION, 0, scale)
    data = [EXPECTATION.by_process[0].sum(), *model.config.auxdata]
    scan = pyhf.infer.intervals.upper_limits.toms748_scan  # upper_limit(level=) alone uses 0.05
    observed, expected = scan(data, model, 0.2, 8, level=0.1, rtol=3e-4)
    bands = [ours.minus2[0], ours.minus1[0], ours.median[0], ours.plus1[0], ours.plus2[0]]
    assert bands == pytest.approx(np.array(expected) * scale, rel=1e-3)
    assert ours.median[0] == pytest.approx(float(observed) * scale, rel=1e-3)


@OF_PYHF
@pytest.mark.parametrize("mass", [0, 1, 2])
@pytest.mark.parametrize("level", [0.90, 0.95])
def test_pyhf_finds_one_minus_the_level_at_our_observed_limit(mass, level):
    ours = asymptotic_limits(EXPECTATION, COUNTS, level=level)
    model = pyhf_model(EXPECTATION, mass, ours.observed[mass])
    data = [COUNTS[mass], *model.config.auxdata]
    cls = pyhf.infer.hypotest(1.0, data, model, test_stat="qtilde")
    assert float(cls) == pytest.approx(1 - level, rel=1e-3)


def test_asymptotic_limits_are_too_strong_by_what_is_known():
    b = np.array([0.01, 0.1, 0.5, 1, 5, 10, 60])
    ratio = asymptotic_limits(known_background(b), None).median
    ratio /= expected_limits(known_background(b)).median
    assert ratio == pytest.approx([0.61, 0.71, 0.95, 0.81, 0.90, 0.93, 0.97], abs=0.005)


def test_with_many_events_they_are_the_exact_limits():
    b = known_background([3000.0, 3000.0])
    found = asymptotic_limits(b, [2900, 3100])
    assert found.observed == pytest.approx(upper_limits(b, [2900, 3100]), rel=0.01)
    assert found.median == pytest.approx(expected_limits(b).asimov, rel=0.01)


def test_without_data_there_is_no_observed_limit():
    assert asymptotic_limits(EXPECTATION, None).observed is None


def test_no_event_from_no_background_is_a_plain_poisson_likelihood():
    """ln L = -s: sqrt(2 s) sigmas, and q = q_A."""
    found = asymptotic_limits(known_background([0.0]), [0])
    s = found.observed[0]
    assert s == pytest.approx(stats.norm.isf(0.05) ** 2 / 2, rel=1e-6)
    assert found.median[0] == pytest.approx(s, rel=1e-6)


def bins(n_bins=4, n_processes=2):
    rng = np.random.default_rng(1)
    events = rng.uniform(0.5, 6, (1, n_bins, n_processes))
    shape = rng.dirichlet(np.ones(n_bins))[None]
    rows = rng.uniform(0.4, 9, events.shape)
    return Model(shape, events, rows, np.array([[0.1, 0.2, 0.3]])), rng.poisson(8, (1, n_bins))


def full_log_likelihood(model, n, s, alpha, gamma):
    """Every parameter, written out."""
    scale = np.exp(model.kappa[0] * alpha)
    rate = s * scale[0] * model.shape[0] + (gamma * model.events[0] * scale[1:]).sum(axis=1)
    value = (n * np.log(rate) - rate).sum() - (alpha**2).sum() / 2
    return value + (model.rows[0] * (np.log(gamma) - gamma)).sum()


def test_the_fit_is_the_maximum_over_every_parameter():
    model, n = bins()

    def minus(x):
        gamma = np.exp(x[4:]).reshape(4, 2)
        return -full_log_likelihood(model, n[0], np.exp(x[0]), x[1:4], gamma)

    found = optimize.minimize(minus, np.zeros(12), tol=1e-10)
    _, best = best_fits(model, seen(model, n))
    assert best.signal[0] == pytest.approx(np.exp(found.x[0]), rel=1e-3)
    assert best.theta[0, 1:] == pytest.approx(found.x[1:4], abs=1e-3)
    assert best.gamma[0].ravel() == pytest.approx(np.exp(found.x[4:]), rel=1e-3)
    ours = full_log_likelihood(model, n[0], best.signal[0], best.theta[0, 1:], best.gamma[0])
    assert ours >= -found.fun - 1e-9


def evaluated(model, data, theta):
    D = len(theta)
    slope, curvature = np.empty(D), np.empty((D, D))
    value = log_likelihood(
        theta, (data.n[0], data.rows[0], data.centre[0]),
        (model.shape[0], model.events[0], model.rows[0], model.kappa[0]),
        slope, curvature, np.empty(model.events[0].shape),
    )  # fmt: skip
    return value, slope, curvature


def test_slopes_and_curvatures_are_finite_differences():
    model, n = bins()
    n[0, 1] = 0
    data = seen(model, n)
    theta, h = np.array([4.0, 0.3, -0.5, 0.7]), 1e-5
    _, slope, curvature = evaluated(model, data, theta)
    for a in range(4):
        step = h * np.eye(4)[a]
        up, down = evaluated(model, data, theta + step), evaluated(model, data, theta - step)
        assert slope[a] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-6)
        assert curvature[a] == pytest.approx((up[1] - down[1]) / (2 * h), rel=1e-5, abs=1e-8)


def test_asimov_data_fit_their_own_nuisances_without_signal():
    model, n = bins()
    none, _ = best_fits(model, seen(model, n))
    data = asimov(model, none)
    again = fit_at(model, data, np.zeros(1))
    assert again.theta == pytest.approx(none.theta, abs=1e-9)
    assert again.gamma == pytest.approx(none.gamma, rel=1e-9)
    assert again.slope[0] == pytest.approx(0.0, abs=1e-9)


def test_a_deficit_has_no_negative_signal():
    model, n = bins()
    none, best = best_fits(model, seen(model, np.zeros_like(n)))
    assert best.signal[0] == 0
    assert best.value[0] == none.value[0]


def test_events_without_background_are_all_signal():
    model = Model(np.ones((1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 2)))
    none, best = best_fits(model, seen(model, [[5.0]]))
    assert none.value[0] == -np.inf
    assert best.signal[0] == pytest.approx(5.0)
    assert best.error[0] == pytest.approx(5**0.5)


def test_one_bin_has_the_mean_of_the_gammas():
    model = one_bin(EXPECTATION)
    assert model.events[:, 0] == pytest.approx(EXPECTATION.by_process)
    assert model.rows[0, 0] == pytest.approx([3 + 1 / 3, 8 + 1 / 3])
