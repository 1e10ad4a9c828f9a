"""The smallest cross section within reach, and other figures of merit.

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
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Form = Literal["paper", "refined"]
Numbers = TypeVar("Numbers", Tensor, npt.NDArray[Any])

BACKGROUND_FLOOR = 1e-6  # events; at 50 fb^-1 one simulated event weighs 1e-3 or more


@dataclass(frozen=True)
class PunziFormula:
    """The constants of sigma_min."""

    luminosity_inv_fb: float
    a: float = 3.0
    b: float = 1.28155
    form: Form = "paper"

    def __post_init__(self) -> None:
        if not (self.luminosity_inv_fb > 0 and self.a >= 0 and self.b > 0):
            msg = f"luminosity and b must be positive and a not negative, found {self}"
            raise ValueError(msg)
        if self.form not in ("paper", "refined"):
            msg = f"form of sigma_min is {self.form!r}; choose 'paper' or 'refined'"
            raise ValueError(msg)


def signal_events_needed(background: Numbers, formula: PunziFormula) -> Numbers:
    """N(B): events for a discovery at a sigmas; any shape, arrays or tensors."""
    a, b = formula.a, formula.b
    B = background.clip(min=0.0)
    root = B**0.5
    constant = b**2 / 2 if formula.form == "paper" else a**2 / 8 + 9 * b**2 / 13
    return constant + a * root + (b / 2) * (b**2 + 4 * a * root + 4 * B) ** 0.5


def signal_events_slope(background: Numbers, formula: PunziFormula) -> Numbers:
    """dN/dB, finite everywhere: below BACKGROUND_FLOOR it is the slope at the floor."""
    a, b = formula.a, formula.b
    B = background.clip(min=BACKGROUND_FLOOR)
    slope_of_root = 0.5 * B**-0.5
    inner = (b**2 + 4 * a * B**0.5 + 4 * B) ** 0.5
    return a * slope_of_root + b * (a * slope_of_root + 1) / inner


class _Sensitivity(torch.autograd.Function):
    """sigma_min with the closed-form derivatives of the module's head."""

    @staticmethod
    def forward(ctx: Any, efficiency: Tensor, background: Tensor, formula: PunziFormula) -> Tensor:
        ctx.save_for_backward(efficiency, background)
        ctx.formula = formula
        N = signal_events_needed(background, formula)
        visible = efficiency > 0
        reach = N / (torch.where(visible, efficiency, 1.0) * formula.luminosity_inv_fb)
        return torch.where(visible, reach, torch.inf)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        efficiency, background = ctx.saved_tensors
        (gradient,) = gradients
        visible = efficiency > 0
        exposure = torch.where(visible, efficiency, 1.0) * ctx.formula.luminosity_inv_fb
        N = signal_events_needed(background, ctx.formula)
        by_efficiency = -N / (exposure * torch.where(visible, efficiency, 1.0))
        by_background = signal_events_slope(background, ctx.formula) / exposure
        # where, not a product: an incoming nan or inf times zero would not be zero
        zero = torch.zeros_like(gradient)
        return (
            torch.where(visible, gradient * by_efficiency, zero),
            torch.where(visible, gradient * by_background, zero),
            None,
        )


def punzi_sensitivity(efficiency: Tensor, background: Tensor, formula: PunziFormula) -> Tensor:
    """sigma_min [fb], differentiable; tensors of one shape, for example (n_windows,)."""
    return _Sensitivity.apply(efficiency, background, formula)


def punzi_sensitivity_array(
    efficiency: npt.ArrayLike, background: npt.ArrayLike, formula: PunziFormula
) -> npt.NDArray[np.float64]:
    """sigma_min [fb] of numpy arrays, in float64; the two broadcast against each other."""
    eps, B = np.broadcast_arrays(
        np.asarray(efficiency, np.float64), np.asarray(background, np.float64)
    )
    reach = np.full(eps.shape, np.inf)
    visible = ~(eps <= 0)  # nan stays nan
    N = signal_events_needed(B[visible], formula)
    reach[visible] = N / (eps[visible] * formula.luminosity_inv_fb)
    return reach


def signal_over_root_background(
    signal: npt.ArrayLike, background: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """S/sqrt(B), both in events; inf where B <= 0 < S (its known defect), 0 where S <= 0."""
    return _ratio_to_root(signal, background)


def signal_over_root_total(
    signal: npt.ArrayLike, background: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """S/sqrt(S+B), both in events; 0 where S <= 0."""
    return _ratio_to_root(signal, np.add(signal, np.clip(background, 0, None)))


def _ratio_to_root(signal: npt.ArrayLike, under: npt.ArrayLike) -> npt.NDArray[np.float64]:
    S, under = np.broadcast_arrays(np.clip(signal, 0, None), np.clip(under, 0, None))
    ratio = np.where(S > 0, np.inf, 0.0)
    np.divide(S, np.sqrt(under), out=ratio, where=under > 0)
    return ratio
