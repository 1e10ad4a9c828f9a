"""The record of the background: what it refuses, and its moments."""

import numpy as np
import pytest

from limits.expectation import Expectation, known_background, whole_counts
from selection.errors import UserError


def expectation(rows, row_weight, normalisation=0.0, signal=0.0, **more):
    rows = np.atleast_2d(np.asarray(rows, float))
    return Expectation(
        rows,
        np.atleast_2d(np.asarray(row_weight, float)),
        np.full(rows.shape[1], normalisation),
        np.full(len(rows), signal),
        **more,
    )


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("where", ["rows", "row_weight", "normalisation", "signal_uncertainty"])
def test_a_number_that_is_negative_or_none_is_refused_with_its_place(bad, where):
    parts = {
        "rows": np.ones((3, 2)),
        "row_weight": np.ones((3, 2)),
        "normalisation": np.zeros(2),
        "signal_uncertainty": np.zeros(3),
    }
    parts[where][(1,) * parts[where].ndim] = bad
    with pytest.raises(UserError, match=f"{where} is {bad} at"):
        Expectation(**parts)


def test_rows_that_weigh_nothing_are_refused():
    with pytest.raises(UserError, match=r"3 rows of process 1 pass in window 0"):
        expectation([[0.0, 3.0]], [[1.0, 0.0]])


def test_a_negative_prior_is_refused():
    with pytest.raises(UserError, match=r"prior is -0.5"):
        expectation([[1.0]], [[1.0]], prior=-0.5)


@pytest.mark.parametrize(
    "shapes", [((3, 2), (3, 1), 2, 3), ((3, 2), (3, 2), 3, 3), ((3, 2), (3, 2), 2, 2)]
)
def test_shapes_that_do_not_fit_are_refused(shapes):
    rows, weight, n_processes, n_masses = shapes
    with pytest.raises(ValueError, match=r"wanted|must both"):
        Expectation(np.ones(rows), np.ones(weight), np.zeros(n_processes), np.zeros(n_masses))


@pytest.mark.parametrize("bad", [[1.5], [-1], [np.nan], [np.inf]])
def test_data_are_whole_numbers(bad):
    with pytest.raises(UserError, match="whole number"):
        whole_counts(bad, 1)


def test_one_observed_count_per_mass_is_wanted():
    with pytest.raises(ValueError, match=r"wanted \(2,\)"):
        whole_counts([1, 2, 3], 2)


def test_mean_and_variance_are_those_of_drawn_rates():
    b = expectation([[2.0, 0.0, 40.0]], [[0.5, 3.9, 0.1]], 0.3)
    rng = np.random.default_rng(1)
    n = 400_000
    rates = sum(
        rng.gamma(rows + 1 / 3, weight, n) * 1.3 ** rng.standard_normal(n)
        for rows, weight in zip(b.rows[0], b.row_weight[0], strict=True)
    )
    assert b.mean[0] == pytest.approx(rates.mean(), rel=5 * rates.std() / rates.mean() / n**0.5)
    assert b.variance[0] == pytest.approx(rates.var(), rel=0.03)


def test_a_process_of_no_weight_does_not_exist():
    b = expectation([[2.0, 0.0]], [[0.5, 0.0]])
    assert b.shape[0, 1] == 0
    assert b.mean[0] == pytest.approx((2 + 1 / 3) * 0.5)


def test_a_known_background_has_its_mean_and_no_spread():
    b = known_background([0.0, 0.2, 1000.0])
    assert b.mean == pytest.approx([0.0, 0.2, 1000.0])
    assert np.all(b.variance <= 1e-9 * b.mean)
    with pytest.raises(UserError, match="b is -1"):
        known_background([1.0, -1.0])
