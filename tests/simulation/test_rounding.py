"""A simulated row is the same to its last bit whatever else was compiled in the process.

Where LLVM may contract a product and a sum, or change the order of sums, it does so as it likes in
each copy of a function: compiled here, or read from the cache of an earlier process.
"""

import pkgutil
from importlib import import_module

import pytest
from numba.core.dispatcher import Dispatcher

import simulation
from selection.compiled import Inner

ROUNDS_AS_WRITTEN = {"nnan", "ninf", "nsz"}
MODULES = [m.name for m in pkgutil.iter_modules(simulation.__path__)]


def compiled(module):
    """Name -> compiled function of a module of the simulation."""
    found = vars(import_module(f"simulation.{module}"))
    inside = {n: f.function if isinstance(f, Inner) else f for n, f in found.items()}
    return {n: f for n, f in inside.items() if isinstance(f, Dispatcher)}


@pytest.mark.parametrize("module", MODULES)
def test_no_kernel_leaves_its_rounding_to_the_compiler(module):
    flags = {n: f.targetoptions.get("fastmath", False) for n, f in compiled(module).items()}
    assert {n: given for n, given in flags.items() if not allowed(given)} == {}


def allowed(fastmath):
    return fastmath is False or (fastmath is not True and set(fastmath) <= ROUNDS_AS_WRITTEN)


def test_kernels_are_found():
    assert {"muon_tensor", "squared_amplitude"} <= set(compiled("eemumu"))
