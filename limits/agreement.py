"""Do data agree with the simulation, bin by bin and as a whole?

    pull_i = (n_i - e_i) / sqrt(e_i + v_i)      n data, e simulation, v = sum of w^2 of its rows
    chi^2  = sum_i pull_i^2                     p = P(>= chi^2 | ndf), ndf = number of bins

Both errors belong to the prediction: data fluctuate as Poisson numbers around e, and e is known to
sqrt(v). Nothing is fitted, so that no degree of freedom is taken away. Neighbouring bins are joined
from the left until each expects LEAST events from LEAST effective rows e^2/v: below, chi^2 does not
follow its distribution. What is left at the right end joins the last bin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2 as chi2_distribution

from models.results import Floats

LEAST = 10.0  # expected events, and effective rows of the simulation, in a joined bin


@dataclass(frozen=True)
class Agreement:
    """chi^2 of a histogram and its largest deviation; nan where too little is expected."""

    chi2: float
    ndf: int
    p_value: float
    low: float  # edges of the joined bin that deviates most
    high: float
    n_data: float  # in it
    n_expected: float
    pull: float


def joined_bins(expected: Floats, variance: Floats, *, least: float = LEAST) -> list[int]:
    """First bins of the joined ones; empty where the whole histogram is too thin."""
    firsts, e, v = [0], 0.0, 0.0
    for i, (more, square) in enumerate(zip(expected, variance, strict=True)):
        e, v = e + more, v + square
        if e >= least and e**2 >= least * v:
            firsts.append(i + 1)
            e = v = 0.0
    return firsts[:-1]  # the last joined bin takes what is left


def agreement(edges: Floats, data: Floats, expected: Floats, variance: Floats) -> Agreement:
    """edges (n + 1,); counts, expected events and their variance (n,) of the simulation."""
    firsts = joined_bins(expected, variance)
    if not firsts:
        nan = np.nan
        return Agreement(nan, 0, nan, float(edges[0]), float(edges[-1]), nan, nan, nan)
    n, e, v = (np.add.reduceat(column, firsts) for column in (data, expected, variance))
    pulls = (n - e) / np.sqrt(e + v)
    chi2 = float((pulls**2).sum())
    worst = int(np.abs(pulls).argmax())
    borders = [*firsts, len(edges) - 1]
    return Agreement(
        chi2=chi2,
        ndf=len(firsts),
        p_value=float(chi2_distribution.sf(chi2, len(firsts))),
        low=_edge(edges[borders[worst]]),
        high=_edge(edges[borders[worst + 1]]),
        n_data=float(n[worst]),
        n_expected=float(e[worst]),
        pull=float(pulls[worst]),
    )


def _edge(value: float) -> float:
    return float(f"{value:.10g}")  # 0.3, not 0.30000000000000004
