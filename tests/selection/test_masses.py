"""When two masses are the same, and the mass of a negative mass squared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selection.masses import TOLERANCE_GEV, between, one_of, same_mass, signed_root

TENTHS_OF_MEV = st.integers(0, 100_000)  # masses are written with 0.1 MeV at most


@given(TENTHS_OF_MEV, TENTHS_OF_MEV)
def test_masses_are_the_same_if_they_are_written_the_same(one, other):
    written = float(f"{one / 10_000:.4f}")
    computed = other * 1e-4  # 0.1 + 0.2 is not 0.3
    assert bool(same_mass(written, computed)) is (one == other)
    assert bool(same_mass(computed, written)) is (one == other)


def test_rounding_of_a_float32_makes_no_other_mass():
    mass = np.arange(0.1, 4.0, 0.1)
    assert same_mass(mass.astype(np.float32), mass).all()


def test_nan_is_no_mass():
    assert not same_mass(np.nan, np.nan)
    assert not one_of([np.nan, 1.0], [np.nan, 2.0]).any()
    assert not between(np.nan, 0.0, 10.0)


def test_same_mass_broadcasts():
    found = same_mass(np.array([1.0, 2.0])[:, None], [1.0, 2.0, np.nan])
    assert found.tolist() == [[True, False, False], [False, True, False]]


@given(st.lists(TENTHS_OF_MEV, max_size=8), st.lists(TENTHS_OF_MEV, max_size=8))
def test_a_mass_is_one_of_a_list_if_it_is_the_same_as_any_of_it(masses, listed):
    found = one_of(np.array(masses) * 1e-4, np.array(listed) / 10_000)
    assert found.tolist() == [mass in listed for mass in masses]


def test_one_mass_alone_may_be_asked_for():
    assert one_of(1.0, [0.5, 1.0]).shape == ()
    assert one_of(1.0, [0.5, 1.0])
    assert one_of([1.0, 2.0], 2.0).tolist() == [False, True]


def test_the_ends_lie_between():
    mass = np.array([0.9999, 1.0, 0.1 + 0.9, 2.5, 4.0, 3.9 + 0.1, 4.0001])
    assert between(mass, 1.0, 4.0).tolist() == [False, True, True, True, True, True, False]
    nearly = np.array([1 - 0.5 * TOLERANCE_GEV, 4 + 0.5 * TOLERANCE_GEV])
    assert between(nearly, 1.0, 4.0).all()


@pytest.mark.parametrize("end", [1.0, 4.0])
def test_beyond_an_end_lies_between_only_what_is_that_end(end):
    outward = np.array([0.0, 0.5, 0.999, 1.0, 1.5, 1000]) * (
        TOLERANCE_GEV if end > 2 else -TOLERANCE_GEV
    )
    assert between(end + outward, 1.0, 4.0).tolist() == [True, True, True, False, False, False]


@given(st.floats(-1e4, 1e4))
def test_the_root_squared_with_its_sign_is_the_mass_squared(mass2):
    root = signed_root(mass2)
    assert np.sign(root) * root**2 == pytest.approx(mass2, rel=1e-14, abs=1e-300)


@given(st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=20))
def test_the_root_keeps_the_order(mass2):
    rising = np.sort(mass2)
    assert (np.diff(signed_root(rising)) >= 0).all()
    assert ((signed_root(rising) < 0) == (rising < 0)).all()


def test_the_root_of_nan_is_nan():
    assert np.isnan(signed_root([np.nan, -np.nan])).all()
