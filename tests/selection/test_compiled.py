"""A function for kernels is the same function, whoever calls it."""

import math

import numba
import pytest

from selection.compiled import inner


@inner()
def slope(x, y=2.0):
    return math.sqrt(x) / y


@numba.njit(error_model="numpy")
def kernel(x):
    return slope(x) + slope(x, 1.0)


def test_python_and_a_kernel_get_the_same_from_it():
    assert kernel(9.0) == slope(9.0) + slope(9.0, 1.0) == 4.5


def test_its_options_hold():
    assert slope(9.0, 0.0) == math.inf  # numpy's division


def test_no_entry_is_compiled_that_only_python_or_c_would_need():
    options = slope.function.targetoptions
    assert options["no_cpython_wrapper"]
    assert options["no_cfunc_wrapper"]


@pytest.mark.parametrize("x", [4.0, 16.0])
def test_a_default_is_taken(x):
    assert slope(x) == math.sqrt(x) / 2
