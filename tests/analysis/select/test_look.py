"""The look at every row by the bits of the kernel is the look at a few by numpy."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.inputs.rows import GIVEN, given_numbers, look_at, row_conditions
from analysis.select.look import look_by_flags
from selection.beams import SUPERKEKB
from selection.kernel import Further, event_quantities
from tests.dimuon import SEARCH

N = 40_000  # more than two blocks of numpy


@pytest.fixture(scope="module")
def rows():
    """Everything that can be wrong with some rows."""
    rng = np.random.default_rng(11)
    found = {c: rng.normal(0, 2, N) for c in SEARCH.columns}
    for q in ("plus", "minus"):
        p2 = sum(found[f"mu_{q}_p{x}"] ** 2 for x in "xyz")
        found[f"mu_{q}_e"] = np.sqrt(p2 + 0.1056584**2 + rng.choice([0, 0.019, 0.021, 0.3], N))
        found[f"mu_{q}_e"][::19] *= rng.choice([-1, 4], len(found[f"mu_{q}_e"][::19]))
        found[f"mu_{q}_id"] = rng.uniform(-0.1, 1.1, N)
    found["extra_energy"] = rng.exponential(0.3, N)  # never below zero: nothing to be said
    found["mu_plus_px"][::7] = np.nan
    found["weight"] = rng.choice([-1.0, 0.5, 1.0], N)
    found["candidate"] = rng.integers(0, 3, N)
    return found


@pytest.mark.parametrize(("kind", "energy_told"), [(np.float32, False), (np.float64, True)])
def test_counts_of_the_compiled_look_are_those_of_numpy(rows, kind, energy_told):
    rows = {c: v.astype(kind) if v.dtype.kind == "f" else v for c, v in rows.items()}
    beams = replace(SUPERKEKB, electron_energy_gev=6.5)
    if energy_told:
        rows["ecms"] = np.random.default_rng(2).normal(10.58, 0.02, N).astype(kind)
    conditions = tuple(row_conditions(rows, SEARCH).values())
    further = Further(flags=conditions, given=GIVEN)
    flags = event_quantities(SEARCH, rows, beams, further=further, given=given_numbers(beams)).flags
    found = look_by_flags(rows, beams, SEARCH, flags)
    assert found == look_at(rows, beams, SEARCH)
    assert 0 < min(found.off_shell.values()) < N
    assert 0 < found.energies < found.forward < found.finite < N
    assert set(found.out_of_range) >= {"mu_plus_id", "mu_minus_id"}
    assert "extra_energy" not in found.out_of_range
