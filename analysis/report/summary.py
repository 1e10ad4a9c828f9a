"""What a run found, in sentences: did it work, how far does it reach, what is to be doubted.

Ratios of sigma_min are geometric means over masses and good networks; below 1 the Punzi-net needs
the smaller cross section. If every network failed, the numbers are those of the failed ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from models.evaluation.comparison import (
    BCE_BEST,
    BOXES_BEST,
    EQUAL_BEST,
    MASS_BEST,
    MASS_SINGLE,
    PUNZI_SINGLE,
    TREES_BEST,
    Comparison,
    compare,
    of_curve,
)
from models.results import EnsembleFigureOfMerit, FigureOfMerit, Floats, WindowContent
from selection.masses import one_of
from selection.resolution import WidthFit

EQUAL = 0.03  # closer than this, two values of sigma_min are called equal
FEW_EVENTS = 10.0  # effective background events below which sqrt(B) is a guess
OVERTRAINED = 1.15
TUNED = "with its cut tuned for each mass"
RIVALS = {
    BCE_BEST: f"the BCE net of the paper's recipe {TUNED}",
    EQUAL_BEST: f"a BCE net of equal budget {TUNED}",
    MASS_BEST: f"a BCE net that is told the mass, {TUNED}",
    MASS_SINGLE: "the same net with one cut for all masses",
    TREES_BEST: f"XGBoost {TUNED}",
    BOXES_BEST: "rectangular cuts tuned for each mass",
}


@dataclass(frozen=True)
class Summary:
    """What a person reads first; texts are plain."""

    state: Literal["good", "warn", "bad"]
    verdict: str
    sentences: tuple[str, ...]
    comparison: Comparison | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """All of a run that its summary is drawn from."""

    figures: Sequence[FigureOfMerit]
    means: Sequence[EnsembleFigureOfMerit]
    failed: Mapping[int, Sequence[str]]
    networks: int
    notes: Mapping[int, Sequence[str]]  # network -> remarks of its training
    fits: Sequence[WidthFit]
    lost: Mapping[str, float]
    findings: Sequence[str]  # of the inputs
    left_out_gev: Sequence[float]  # masses with too few events to be trained on
    contents: Sequence[WindowContent] = ()  # of each sample in each window, after the single cut


def summary_of(outcome: Outcome) -> Summary:
    """Did it work, how far does it reach, what is to be doubted."""
    everything_failed = len(outcome.failed) == outcome.networks
    comparison = compare(outcome.figures, [] if everything_failed else list(outcome.failed))
    doubts = warnings(outcome, comparison)
    good = outcome.networks - len(outcome.failed)
    if everything_failed:
        state, verdict = "bad", "It did not work: no network passed the checks after training."
    elif doubts:
        state, verdict = "warn", f"It worked, with {_count(len(doubts), 'warning')}"
        verdict += f": {good} of {outcome.networks} networks trained well."
    else:
        state, verdict = "good", f"It worked: {good} of {outcome.networks} networks trained well."
    return Summary(
        state=state,  # type: ignore[arg-type]
        verdict=verdict,
        sentences=(*_reach(outcome.means), *(_compared(comparison) if comparison else ())),
        comparison=comparison,
        warnings=doubts,
    )


def _reach(means: Sequence[EnsembleFigureOfMerit]) -> list[str]:
    """How small a cross section the single cut can see, and where."""
    wanted = (*PUNZI_SINGLE, "validation")
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


def _compared(comparison: Comparison) -> list[str]:
    """Where the Punzi-net wins and loses, in words."""
    edges = list(pairwise(comparison.mass_bins_gev))
    sentences = []
    for bottom, rival in RIVALS.items():
        ratio = comparison.ratio(PUNZI_SINGLE, bottom)
        if ratio is None:
            continue
        kinds: dict[str, list[str]] = {"better": [], "equal": [], "worse": []}
        for (low, high), r in zip(edges, ratio.by_bin, strict=True):
            if np.isfinite(r):
                kind = "equal" if abs(r - 1) <= EQUAL else "better" if r < 1 else "worse"
                size = "" if kind == "equal" else f" (σ_min {_change(r)})"
                kinds[kind].append(f"{low:g}–{high:g} GeV{size}")
        told = [f"{kind} at {', '.join(where)}" for kind, where in kinds.items() if where]
        sentences.append(
            f"Against {rival}, the single cut on the Punzi-net is "
            f"{'; '.join(told) or 'not comparable at any mass'}."
        )
    cost, share = comparison.single_over_best_cut, comparison.share_within_20_percent
    if np.isfinite(cost):
        sentences.append(
            f"One cut instead of one per mass makes σ_min of the Punzi-net {_change(cost)} on "
            f"average; {100 * share:.0f} % of the masses lie within 20 % of their own best cut."
        )
    unseen = comparison.untrained_over_trained
    if np.isfinite(unseen):
        sentences.append(
            f"At masses it was not trained on, σ_min is {_change(unseen)} than between the trained "
            f"neighbours."
        )
    return sentences


def warnings(outcome: Outcome, comparison: Comparison | None) -> tuple[str, ...]:
    """Everything that a reader of the results must know before believing them."""
    found = [f"Network {i} failed: {'; '.join(why)}." for i, why in outcome.failed.items()]
    if 0 < len(outcome.failed) < outcome.networks:
        found.append("Failed networks are left out of all means.")
    found += [f"Network {i}: {text}" for i, texts in outcome.notes.items() for text in texts]
    found += [
        f"{name}: {100 * share:.2g} % of the rows were lost; the weights of the rest are corrected."
        for name, share in outcome.lost.items()
    ]
    found += [f"{text[0].upper()}{text[1:]}" for text in outcome.findings]
    if outcome.left_out_gev:
        masses = ", ".join(f"{m:g}" for m in outcome.left_out_gev)
        found.append(f"Not trained on for want of events (windows.min_events): {masses} GeV.")
    found += _statistics(of_curve(outcome.figures, PUNZI_SINGLE))
    found += _empty_windows(outcome.contents)
    unused = [f"{fit.mass_gev:g} GeV ({fit.reason})" for fit in outcome.fits if fit.reason]
    if unused:
        found.append(f"Widths taken from the smooth curve, without a fit: {', '.join(unused)}.")
    shift = comparison.validation_over_training if comparison else 1.0
    if shift > OVERTRAINED:
        found.append(
            f"σ_min on judged events is {_change(shift)} than on training events. Part of it is "
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
        found.append(f"No signal passes the single cut at {mass_ranges(mass, blind)}.")
    n_eff = np.mean([f.n_eff_background for f in figures], axis=0)
    few = n_eff < FEW_EVENTS
    if few.any():
        found.append(
            f"Fewer than {FEW_EVENTS:g} effective background events are left after the single cut "
            f"at {int(few.sum())} of {len(mass)} masses ({mass_ranges(mass, mass[few])}; least "
            f"{n_eff.min():.2g}): the background there is known badly."
        )
    return found


def _empty_windows(contents: Sequence[WindowContent]) -> list[str]:
    """Samples of which no row passes: that is not B = 0, one row more would weigh so much."""
    found = []
    first = min((c.network for c in contents), default=0)
    for c in contents:
        empty = c.rows == 0
        if c.network == first and empty.any():
            found.append(
                f"{c.sample}: no row passes the single cut in {int(empty.sum())} of "
                f"{len(c.mass_gev)} windows; one row stands for up to "
                f"{c.row_weight[empty].max():.2g} events, so its background there is not known to "
                f"be smaller."
            )
    return found


def mass_ranges(all_gev: Floats, chosen_gev: Floats) -> str:
    """`0.1–0.9, 8.5 GeV`: neighbours in the list of masses are joined."""
    at = np.flatnonzero(one_of(all_gev, chosen_gev))
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
