"""What a run found, in sentences: did it work, how far does it reach, what is to be doubted.

Ratios of sigma_min are geometric means over masses and good networks; below 1 the Punzi-net needs
the smaller cross section. If every network failed, the numbers are those of the failed ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from analysis.evaluate import summary
from models import comparison
from models.results import ONE_FOR_ALL, EnsembleFigureOfMerit, FigureOfMerit, Floats
from selection.resolution import WidthFit

EQUAL = 0.03  # closer than this, two values of sigma_min are called equal
FEW_EVENTS = 10.0  # effective background events below which sqrt(B) is a guess
OVERTRAINED = 1.15
RATIO_TEXT = {
    "single_cut_over_bce_best_cut": "Punzi-net, single cut / BCE net, best cut per mass",
    "single_cut_over_xgboost_best_cut": "Punzi-net, single cut / XGBoost, best cut per mass",
    "bce_single_over_best_cut": "BCE net, single cut / BCE net, best cut per mass",
}


@dataclass(frozen=True)
class Findings:
    """The summary of a run; texts are plain, ratios by mass bin."""

    state: Literal["good", "warn", "bad"]
    verdict: str
    sentences: tuple[str, ...]
    bins: tuple[str, ...]
    ratios: Mapping[str, Sequence[float]]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """What the summary is drawn from."""

    figures: Sequence[FigureOfMerit]
    means: Sequence[EnsembleFigureOfMerit]
    failed: Mapping[int, Sequence[str]]
    networks: int
    notes: Mapping[int, Sequence[str]]  # network -> remarks of its training
    fits: Sequence[WidthFit]
    lost: Mapping[str, float]


def findings(e: Evidence) -> Findings:
    """All of the summary."""
    everything_failed = len(e.failed) == e.networks
    numbers = summary(e.figures, [] if everything_failed else list(e.failed))
    doubts = warnings(e, numbers)
    good = e.networks - len(e.failed)
    if everything_failed:
        state, verdict = "bad", "It did not work: no network passed the checks after training."
    elif doubts:
        state, verdict = "warn", f"It worked, with {_count(len(doubts), 'warning')}"
        verdict += f": {good} of {e.networks} networks trained well."
    else:
        state, verdict = "good", f"It worked: {good} of {e.networks} networks trained well."
    edges = numbers.get("mass_bins_gev", [])
    ratios = {text: numbers[name] for name, text in RATIO_TEXT.items() if name in numbers}
    return Findings(
        state=state,  # type: ignore[arg-type]
        verdict=verdict,
        sentences=(*_reach(e.means), *_comparison(numbers)),
        bins=tuple(f"{low:g}–{high:g} GeV" for low, high in pairwise(edges)),
        ratios=ratios,
        warnings=doubts,
    )


def _reach(means: Sequence[EnsembleFigureOfMerit]) -> list[str]:
    """How small a cross section the single cut can see, and where."""
    wanted = ("punzi", ONE_FOR_ALL, "validation")
    curve = next(c for c in means if (c.classifier, c.selection, c.quoted_on) == wanted)
    seen = np.isfinite(curve.sigma_min_fb)
    if not seen.any():
        return ["The single cut on the Punzi-net sees no signal at any mass."]
    best = int(np.nanargmin(np.where(seen, curve.sigma_min_fb, np.nan)))
    sigma, error = curve.sigma_min_fb[best], curve.sigma_min_mc_error_fb[best]
    near = curve.mass_gev[seen & (curve.sigma_min_fb < 2 * sigma)]
    return [
        f"With one cut (score ≥ {curve.cut[best]:.3g}) for all masses, the smallest cross section "
        f"within reach is σ_min = {sigma:.3g} ± {error:.1g} fb (error: size of the simulation) at "
        f"{curve.mass_gev[best]:g} GeV, for {curve.luminosity_inv_fb:g} fb⁻¹; it is within a "
        f"factor two of that at {mass_ranges(curve.mass_gev, near)}."
    ]


def _comparison(numbers: Mapping[str, Any]) -> list[str]:
    """Where the Punzi-net wins and loses, in words."""
    edges = list(pairwise(numbers.get("mass_bins_gev", [])))
    sentences = []
    for name, rival in (
        ("single_cut_over_bce_best_cut", "the BCE net"),
        ("single_cut_over_xgboost_best_cut", "XGBoost"),
    ):
        if name not in numbers:
            continue
        kinds: dict[str, list[str]] = {"better": [], "equal": [], "worse": []}
        for (low, high), r in zip(edges, numbers[name], strict=True):
            if np.isfinite(r):
                kind = "equal" if abs(r - 1) <= EQUAL else "better" if r < 1 else "worse"
                size = "" if kind == "equal" else f" (σ_min {_change(r)})"
                kinds[kind].append(f"{low:g}–{high:g} GeV{size}")
        told = [f"{kind} at {', '.join(where)}" for kind, where in kinds.items() if where]
        sentences.append(
            f"Against {rival} with its cut tuned for each mass, the single cut on the Punzi-net is "
            f"{'; '.join(told) or 'not comparable at any mass'}."
        )
    if "single_over_best_cut" in numbers:
        cost, share = numbers["single_over_best_cut"], numbers["share_of_masses_within_20_percent"]
        sentences.append(
            f"One cut instead of one per mass makes σ_min of the Punzi-net {_change(cost)} on "
            f"average; {100 * share:.0f} % of the masses lie within 20 % of their own best cut."
        )
    unseen = numbers.get("untrained_over_trained", float("nan"))
    if np.isfinite(unseen):
        sentences.append(
            f"At masses it was not trained on, σ_min is {_change(unseen)} than between the trained "
            f"neighbours."
        )
    return sentences


def warnings(e: Evidence, numbers: Mapping[str, Any]) -> tuple[str, ...]:
    """Everything that a reader of the results must know before believing them."""
    found = [f"Network {i} failed: {'; '.join(why)}." for i, why in e.failed.items()]
    if 0 < len(e.failed) < e.networks:
        found.append("Failed networks are left out of all means.")
    found += [f"Network {i}: {text}" for i, texts in e.notes.items() for text in texts]
    found += [
        f"{name}: {100 * share:.2g} % of the rows were lost; the weights of the rest are corrected."
        for name, share in e.lost.items()
    ]
    found += _statistics(comparison.select(e.figures, "punzi", ONE_FOR_ALL))
    unused = [f"{fit.mass_gev:g} GeV ({fit.reason})" for fit in e.fits if fit.reason]
    if unused:
        found.append(f"Widths taken from the smooth curve, without a fit: {', '.join(unused)}.")
    shift = numbers.get("validation_over_training", 1.0)
    if shift > OVERTRAINED:
        found.append(
            f"σ_min on held-out events is {_change(shift)} than on training events. Part of it is "
            f"overtraining, part the one added event, which weighs more in the smaller set; more "
            f"simulation helps against both."
        )
    return tuple(found)


def _statistics(figures: Sequence[FigureOfMerit]) -> list[str]:
    """Masses where too little simulation is left after the single cut (mean over networks)."""
    if not figures:
        return []
    mass = figures[0].mass_gev
    found = []
    blind = mass[np.any([~np.isfinite(f.sigma_min_fb) for f in figures], axis=0)]
    if blind.size:
        found.append(f"No held-out signal passes the single cut at {mass_ranges(mass, blind)}.")
    n_eff = np.mean([f.n_eff_background for f in figures], axis=0)
    few = n_eff < FEW_EVENTS
    if few.any():
        found.append(
            f"Fewer than {FEW_EVENTS:g} effective background events are left after the single cut "
            f"at {int(few.sum())} of {len(mass)} masses ({mass_ranges(mass, mass[few])}; least "
            f"{n_eff.min():.2g}): the background there is known badly."
        )
    return found


def mass_ranges(all_gev: Floats, chosen_gev: Floats) -> str:
    """`0.1–0.9, 8.5 GeV`: neighbours in the list of masses are joined."""
    at = np.flatnonzero(np.isin(all_gev, chosen_gev))
    pieces = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
    texts = [
        f"{all_gev[p[0]]:g}" if len(p) == 1 else f"{all_gev[p[0]]:g}–{all_gev[p[-1]]:g}"
        for p in pieces
        if len(p)
    ]
    return f"{', '.join(texts)} GeV" if texts else "no mass"


def _change(ratio: float) -> str:
    """`12 % smaller`, `4 % larger`, and times where percent would be hard to read."""
    if ratio >= 2:
        return f"{ratio:.2g} times larger"
    return f"{100 * abs(ratio - 1):.0f} % {'smaller' if ratio < 1 else 'larger'}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
