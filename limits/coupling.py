"""From a cross section to the coupling that gives it.

    sigma(m; g) = (g / g_ref)^2 sigma_ref(m) BR(m)        g = g_ref sqrt(sigma / (sigma_ref BR))

BR is the share of decays that the search sees (here: the invisible ones),

    invisible    1
    lmu_ltau     1 / (1 + f(m_mu) + f(m_tau)),  f(m_l) = (1 + 2 r) sqrt(1 - 4 r), r = m_l^2 / m^2

the latter for a boson that couples to mu, tau and their neutrinos alone: two neutrino flavours of
half a width each, and a charged pair above its threshold.

Cross sections between the given masses: their logarithm, by a monotone cubic.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from selection.beams import MUON_MASS_GEV

Floats = npt.NDArray[np.float64]
Branching = Literal["invisible", "lmu_ltau"]

TAU_MASS_GEV = 1.77693  # PDG 2024


def branching_ratio(mass_gev: Floats, model: Branching) -> Floats:
    if model not in get_args(Branching):
        msg = f"no branching ratio is called {model!r}; choose {get_args(Branching)}"
        raise ValueError(msg)
    if model == "invisible":
        return np.ones(len(mass_gev))
    return 1 / (1 + _charged(mass_gev, MUON_MASS_GEV) + _charged(mass_gev, TAU_MASS_GEV))


def _charged(mass_gev: Floats, lepton_gev: float) -> Floats:
    r = (lepton_gev / mass_gev) ** 2
    return (1 + 2 * r) * np.sqrt(np.maximum(1 - 4 * r, 0))


def interpolated_cross_section(
    at_gev: Floats, mass_gev: Floats, cross_section_fb: Floats
) -> Floats:
    """sigma_ref (n_at,) from a table (n,), masses rising; nan outside it."""
    if len(mass_gev) == 1:
        return np.where(at_gev == mass_gev[0], cross_section_fb[0], np.nan)
    from scipy.interpolate import PchipInterpolator  # only here: configurations import this module

    curve = PchipInterpolator(mass_gev, np.log(cross_section_fb), extrapolate=False)
    return np.exp(curve(at_gev))


def coupling(cross_section_fb: Floats, reference_fb: Floats, *, reference: float) -> Floats:
    """g (n,) of a cross section; reference_fb is sigma_ref BR at the coupling `reference`."""
    return reference * np.sqrt(cross_section_fb / reference_fb)
