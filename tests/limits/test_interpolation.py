"""The smooth curve: exact for parabolas, honest in its errors."""

import numpy as np
import pytest

from limits.interpolation import smooth

X = np.arange(0.1, 9, 0.1)
AT = np.linspace(0.1, 8.9, 57)


def test_a_parabola_is_its_own_curve():
    y = 3 - 0.7 * X + 0.06 * X**2
    value, _ = smooth(AT, X, y, np.full(len(X), 0.1))
    assert value == pytest.approx(3 - 0.7 * AT + 0.06 * AT**2, abs=1e-9)


def test_two_points_give_their_line_and_one_a_constant():
    value, _ = smooth(
        np.array([1.0, 1.5, 2.0]), np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.ones(2)
    )
    assert value == pytest.approx([3, 4, 5])
    value, error = smooth(np.array([1.0, 7.0]), np.array([1.0]), np.array([3.0]), np.array([0.2]))
    assert value == pytest.approx([3, 3])
    assert error == pytest.approx([0.2, 0.2])


def test_the_error_is_the_scatter_of_the_curve_and_smaller_than_that_of_a_point():
    rng = np.random.default_rng(1)
    truth, error = 2 + np.sin(X / 2), 0.1 + 0.02 * X
    made = [smooth(AT, X, truth + rng.normal(0, error), error) for _ in range(400)]
    values, errors = (np.array(part) for part in zip(*made, strict=True))
    scatter = values.std(axis=0)
    assert scatter / errors.mean(axis=0) == pytest.approx(1, abs=0.25)
    assert np.median(errors) < 0.8 * np.median(error)
    # what is left of the shape of the curve is smaller than its error
    assert np.abs(values.mean(axis=0) - 2 - np.sin(AT / 2)).max() < 0.5 * errors.mean(axis=0).min()


def test_points_that_scatter_more_than_they_say_enlarge_the_error():
    rng = np.random.default_rng(2)
    said = np.full(len(X), 0.01)
    wild = smooth(AT, X, 1 + rng.normal(0, 0.1, len(X)), said)[1]
    tame = smooth(AT, X, 1 + rng.normal(0, 0.01, len(X)), said)[1]
    assert np.median(wild) > 5 * np.median(tame)


def test_a_point_without_an_error_is_refused():
    with pytest.raises(ValueError, match="positive error"):
        smooth(AT, X, X, np.zeros(len(X)))
