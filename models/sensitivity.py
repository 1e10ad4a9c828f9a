"""The smallest cross section within reach.

    sigma_min = N(B) / (eps L)                                             fb
    N(B) = c + a sqrt(B) + (b/2) sqrt(b^2 + 4 a sqrt(B) + 4 B)              events
    c = b^2/2            "paper"    Eur. Phys. J. C 82 (2022) 121
    c = a^2/8 + 9 b^2/13 "refined"  Punzi, physics/0308063

B: expected background events at luminosity L; eps: signal efficiency; a: number of sigmas of a
discovery; b: number of sigmas of the exclusion (1.28155: 90 % confidence level, one-sided).
1/sigma_min is Punzi's figure of merit.

At the edges, by rule:
    B <= 0    counts as B = 0: N = c + b^2/2. The slope of sqrt(B) is infinite there; dN/dB is taken
              at B = BACKGROUND_FLOOR for all B below it, so that gradients stay finite.
    eps <= 0  sigma_min = inf (nothing can be seen) with derivatives 0: infinity is a fact to
              report, not a direction to follow. Losses leave such a mass out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

FormulaName = Literal["paper", "refined"]
Floats = npt.NDArray[np.float64]

BACKGROUND_FLOOR = 1e-6  # events; at 50 fb^-1 one simulated event weighs 1e-3 or more


@dataclass(frozen=True)
class PunziFormula:
    """The constants of sigma_min."""

    luminosity_inv_fb: float
    a: float = 3.0
    b: float = 1.28155
    form: FormulaName = "paper"

    def __post_init__(self) -> None:
        if not (self.luminosity_inv_fb > 0 and self.a >= 0 and self.b > 0):
            msg = f"luminosity and b must be positive and a not negative, found {self}"
            raise ValueError(msg)
        if self.form not in get_args(FormulaName):
            msg = f"form of sigma_min is {self.form!r}; choose one of {get_args(FormulaName)}"
            raise ValueError(msg)


def signal_events_needed(background: Floats, formula: PunziFormula) -> Floats:
    """N(B): events for a discovery at a sigmas; any shape."""
    a, b = formula.a, formula.b
    B = background.clip(min=0.0)
    root = B**0.5
    constant = b**2 / 2 if formula.form == "paper" else a**2 / 8 + 9 * b**2 / 13
    return constant + a * root + (b / 2) * (b**2 + 4 * a * root + 4 * B) ** 0.5


def signal_events_slope(background: Floats, formula: PunziFormula) -> Floats:
    """dN/dB, finite everywhere: below BACKGROUND_FLOOR it is the slope at the floor."""
    a, b = formula.a, formula.b
    B = background.clip(min=BACKGROUND_FLOOR)
    slope_of_root = 0.5 * B**-0.5
    inner = (b**2 + 4 * a * B**0.5 + 4 * B) ** 0.5
    return a * slope_of_root + b * (a * slope_of_root + 1) / inner


def punzi_sensitivity(
    efficiency: npt.ArrayLike, background: npt.ArrayLike, formula: PunziFormula
) -> Floats:
    """sigma_min [fb], in float64; the two broadcast against each other."""
    eps, B = np.broadcast_arrays(
        np.asarray(efficiency, np.float64), np.asarray(background, np.float64)
    )
    reach = np.full(eps.shape, np.inf)
    visible = ~(eps <= 0)  # nan stays nan
    N = signal_events_needed(B[visible], formula)
    reach[visible] = N / (eps[visible] * formula.luminosity_inv_fb)
    return reach
