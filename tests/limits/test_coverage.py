"""Do limits cover, and are p-values honest, when simulation and data both fluctuate?"""

import numpy as np
import pytest
from scipy import stats

from limits.counts import table_holding
from limits.expectation import Expectation
from limits.upper import smallest_allowed
from models.sensitivity import PunziFormula, signal_events_needed

FORMULA = PunziFormula(50.0)


def reach(b):
    """Signal events of sigma_min: what the search is made for."""
    return signal_events_needed(np.atleast_1d(np.asarray(b, float)), FORMULA)


@pytest.mark.parametrize("weight", [0.1, 0.35, 1.0, 2.5])
@pytest.mark.parametrize("b", [0.2, 1.0, 5.0])
def test_a_single_process_covers_by_enumeration(b, weight):
    """Every simulation and every count, with its probability: no toys."""
    rows = np.arange(int(b / weight + 9 * (b / weight) ** 0.5) + 12)
    n = len(rows)
    expectation = Expectation(rows[:, None], np.full((n, 1), weight), np.zeros(1), np.zeros(n))
    share = stats.poisson.pmf(rows, b / weight)
    for part in (0.5, 1.0):
        s = part * reach(b)[0]
        smallest = smallest_allowed(expectation, s, level=0.90)
        assert share @ stats.poisson.sf(smallest - 1, b + s) >= 0.90


# events of four processes in windows from nearly empty to rich, and what a row stands for
TRUTH = np.array([[0.02, 0.3, 0.05, 0.1], [0.2, 1.0, 0.1, 0.0], [0.5, 0.3, 0.9, 2.0],
                  [0.05, 5.0, 0.2, 1.0], [3.0, 12.0, 2.0, 0.5], [0.01, 0.02, 0.03, 0.0]])  # fmt: skip
WEIGHT = np.array([0.25, 0.09, 0.35, 0.3])


@pytest.fixture(scope="module")
def simulations():
    """300 simulations of each window, as masses of one expectation."""
    rng = np.random.default_rng(4)
    true = np.repeat(TRUTH, 300, axis=0)
    present = np.where(true > 0, WEIGHT, 0.0)
    rows = rng.poisson(true / WEIGHT)
    expectation = Expectation(rows, present, np.zeros(4), np.zeros(len(rows)))
    return expectation, true.sum(axis=1)


def test_limits_of_several_processes_cover(simulations):
    expectation, b = simulations
    for part in (0.5, 1.0):
        s = part * reach(b)
        smallest = smallest_allowed(expectation, s, level=0.90)
        covered = stats.poisson.sf(smallest - 1, b + s).reshape(len(TRUTH), -1).mean(axis=1)
        assert 0.90 <= covered.mean() <= 0.97
        assert covered.min() >= 0.88


@pytest.mark.parametrize("alpha", [1e-2, 1e-3])
def test_p_values_are_not_smaller_than_they_should_be(simulations, alpha):
    expectation, b = simulations
    tail = table_holding(expectation, beyond=1e-6).tail
    reached = (tail > alpha).sum(axis=1)
    wrong = stats.poisson.sf(reached - 1, b).reshape(len(TRUTH), -1).mean(axis=1)
    assert wrong.mean() <= alpha
    assert wrong.max() <= 2 * alpha
