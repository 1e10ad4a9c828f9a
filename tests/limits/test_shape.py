"""Template fits: what they find, what they cover, and where they are refused."""

import numpy as np
import pytest
from scipy import stats

from limits.asymptotic import asymptotic_limits
from limits.expectation import Expectation
from limits.shape import (
    BIN_PRIOR,
    EDGES,
    ShapeExpectation,
    binned_in_widths,
    mixed_templates,
    refuse_thin,
    shape_limits,
    thin_bins,
)
from selection.errors import UserError

PEAK = np.diff(stats.norm.cdf(EDGES))
PEAK = PEAK / PEAK.sum()
WEIGHT = np.array([0.5, 0.1])
TRUE = np.array([4.0, 3.0]) * np.exp(np.linspace(-0.5, 0.5, 16))[:, None]  # (n_bins, n_processes)


def expectation(rows, *, normalisation=0.05, prior=BIN_PRIOR):
    n = len(rows)
    return ShapeExpectation(
        np.tile(PEAK, (n, 1)),
        rows,
        np.broadcast_to(WEIGHT, rows.shape),
        np.full(2, normalisation),
        np.zeros(n),
        prior,
    )


def exact_rows(n=1):
    return np.tile(TRUE / WEIGHT, (n, 1, 1))


def test_bins_count_events_in_widths_from_the_peak():
    axis = np.array([0.9, 1.0, 1.05, 2.0, 2.5, 30.0])
    weight = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    peak, sigma = np.array([2.0, 10.0]), np.array([0.5, 2.5])
    found = binned_in_widths(axis, weight, peak, sigma)
    u = (axis - peak[:, None]) / sigma[:, None]
    for i in range(2):
        wanted = [weight[(u[i] >= a) & (u[i] < a + 1)].sum() for a in EDGES[:-1]]
        assert found[i].tolist() == wanted


def test_a_mixed_template_lies_between_its_neighbours():
    simulated = np.array([1.0, 2.0, 4.0])
    templates = np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 5.0]])
    found = mixed_templates(np.array([0.5, 1.0, 1.5, 2.0, 3.5, 9.0]), simulated, templates)
    wanted = [1.0, 1.0, 0.75, 0.5, 0.125, 0.0]
    assert found[:, 0] == pytest.approx(wanted)
    assert found.sum(axis=1) == pytest.approx(1.0)
    only = mixed_templates(np.array([0.5, 3.0]), simulated[:1], templates[:1])
    assert only.tolist() == [[1, 0], [1, 0]]


def test_a_template_without_signal_is_named():
    with pytest.raises(UserError, match=r"no signal passes.*\[2.0\]"):
        mixed_templates(np.array([1.5]), np.array([1.0, 2.0]), np.array([[1.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="must rise"):
        mixed_templates(np.array([1.5]), np.array([2.0, 1.0]), np.ones((2, 2)))


def test_a_shape_is_worth_more_than_its_window():
    b = expectation(exact_rows(), prior=0.0)
    window = slice(6, 10)
    rows = b.rows[:, window].sum(axis=1)
    counting = Expectation(rows, WEIGHT[None], b.normalisation, np.zeros(1), prior=0.0)
    limit = asymptotic_limits(counting, None).median / PEAK[window].sum()
    assert 0.8 < shape_limits(b, None).median[0] / limit[0] < 0.97


def test_expected_data_have_no_signal_and_an_injected_one_is_found():
    b = expectation(exact_rows(2), prior=0.0)
    n = TRUE.sum(axis=1) + np.array([[0.0], [20.0]]) * PEAK
    found = shape_limits(b, n)
    assert found.signal == pytest.approx([0.0, 20.0], abs=1e-4)
    assert found.p0[0] == pytest.approx(0.5, abs=1e-3)
    assert found.p0[1] < 0.01
    assert found.observed[0] == pytest.approx(found.median[0], rel=1e-6)
    assert found.observed[1] > found.signal[1]


def test_limits_cover_and_p_values_are_honest_when_rows_data_and_rates_fluctuate():
    rng = np.random.default_rng(1)
    n_toys, s = 400, 15.0
    rows = rng.poisson(TRUE / WEIGHT, (n_toys, 16, 2)) * 1.0
    rate = (TRUE * 1.05 ** rng.standard_normal((n_toys, 1, 2))).sum(axis=2)
    without = shape_limits(expectation(rows), rng.poisson(rate))
    assert (without.p0 < 0.05).mean() < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_toys)
    with_signal = shape_limits(expectation(rows), rng.poisson(rate + s * PEAK))
    assert (with_signal.observed >= s).mean() > 0.9 - 3 * np.sqrt(0.09 / n_toys)
    pull = (with_signal.signal - s) / with_signal.signal_error
    assert abs(pull.mean()) < 0.2
    assert 0.85 < pull.std() < 1.15


def test_without_the_prior_unseen_rows_make_a_signal_out_of_nothing():
    """Why thin bins are refused: a heavy process, of which few bins have a row."""
    rng = np.random.default_rng(2)
    weight = np.array([0.09, 3.9])
    rows = rng.poisson(np.array([2.0, 5.0]) / weight, (100, 16, 2)) * 1.0
    n = rng.poisson(7.0, (100, 16))
    parts = (np.tile(PEAK, (100, 1)), rows)
    sure = ShapeExpectation(*parts, np.where(rows > 0, weight, 0.0), np.full(2, 0.05), np.zeros(100), 0.0)  # fmt: skip
    ours = ShapeExpectation(*parts, np.broadcast_to(weight, rows.shape), np.full(2, 0.05), np.zeros(100))  # fmt: skip
    assert (shape_limits(sure, n).p0 < 0.01).mean() > 0.1
    assert (shape_limits(ours, n).p0 < 0.01).mean() <= 0.03
    assert len(np.unique(thin_bins(ours).mass)) == 100


def test_a_thin_bin_is_judged_by_the_process_that_makes_it():
    rows = np.full((2, 16, 2), 50.0)
    rows[0, 3] = [3.0, 9.0]  # 1.5 and 0.9 events: made by three rows of the first
    rows[1, 5] = [20.0, 1.0]  # 10 and 0.1 events: enough of what makes it
    thin = thin_bins(expectation(rows))
    assert (thin.mass.tolist(), thin.bin.tolist()) == ([0], [3])
    assert (thin.process.tolist(), thin.rows.tolist()) == ([0], [3.0])
    with pytest.raises(UserError, match=r"1 of 2 masses.*3 rows of tau at 1.5 GeV, -5 to -4 sigma"):
        refuse_thin(expectation(rows), np.array([1.5, 2.5]), ["tau", "mu"])
    refuse_thin(expectation(rows[1:]), np.array([2.5]), ["tau", "mu"])


def test_an_empty_bin_is_thin():
    rows = np.full((1, 16, 2), 50.0)
    rows[0, 0] = 0.0
    assert thin_bins(expectation(rows)).bin.tolist() == [0]


def test_templates_that_are_none_are_refused():
    rows = exact_rows()
    with pytest.raises(ValueError, match="add up to 1"):
        ShapeExpectation(2 * PEAK[None], rows, np.broadcast_to(WEIGHT, rows.shape), np.zeros(2), np.zeros(1))  # fmt: skip
    with pytest.raises(UserError, match="rows of the templates"):
        expectation(-rows)
    with pytest.raises(ValueError, match="masses, bins, processes"):
        ShapeExpectation(PEAK[None], rows[:, :3], rows, np.zeros(2), np.zeros(1))
    with pytest.raises(ValueError, match="observed counts"):
        shape_limits(expectation(rows), np.zeros((1, 3)))
