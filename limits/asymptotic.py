"""Limits from asymptotic formulas: for windows with thousands of events, and to compare with pyhf.

One bin; nuisances are profiled (limits/profile.py): Poisson with the mean rows + prior for the
simulation of each process, normal for each log-normal. Formulas: limits/likelihood.py. Observed
limits take their Asimov data from the fit without signal, as pyhf does; bands are those before
data, with b as simulated.

They are too strong where little is expected: 0.61, 0.71, 0.95, 0.81, 0.90, 0.93, 0.97 of the exact
median limit at b = 0.01, 0.1, 0.5, 1, 5, 10, 60. The exact sums of limits/upper.py are the default
everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from limits.expectation import Expectation, whole_counts
from limits.likelihood import Model, expected_signals, observed_signals, seen
from limits.upper import checked_alpha
from models.results import Floats


@dataclass(frozen=True, eq=False)
class AsymptoticLimits:
    """Limits in signal events; (n_masses,)."""

    observed: Floats | None
    median: Floats
    minus2: Floats
    minus1: Floats
    plus1: Floats
    plus2: Floats


def asymptotic_limits(
    expectation: Expectation, observed: npt.ArrayLike | None, *, level: float = 0.90
) -> AsymptoticLimits:
    """Expected limits, and observed ones if counts (n_masses,) are given."""
    alpha, model = checked_alpha(level), one_bin(expectation)
    limits = None
    if observed is not None:
        n = whole_counts(observed, len(expectation.rows))[:, None]
        limits = observed_signals(model, seen(model, n), alpha=alpha)
    bands = expected_signals(model, alpha=alpha).T
    return AsymptoticLimits(limits, *(np.ascontiguousarray(band) for band in bands))


def one_bin(expectation: Expectation) -> Model:
    """The window as a histogram of one bin."""
    n_masses, n_processes = expectation.rows.shape
    kappa = np.empty((n_masses, 1 + n_processes))
    kappa[:, 0], kappa[:, 1:] = expectation.signal_log_width, expectation.log_widths
    return Model(
        shape=np.ones((n_masses, 1)),
        events=expectation.by_process[:, None, :],
        rows=expectation.shape[:, None, :],
        kappa=kappa,
    )
