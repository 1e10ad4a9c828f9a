"""Figures of merit of a classifier at every mass, on events it was not tuned on.

    eps   = sum w           d_eps = sqrt(sum w^2 (1 - f eps))      f: share of the split
    B     = sum w           d_B   = sqrt(sum w^2)
    sigma = N(B + w1) / (eps L)
    (d_sigma/sigma)^2 = (d_eps/eps)^2 + (N'/N)^2 (d_B^2 + w1^2)

An event is judged by the network of its fold, which was not trained on it; sums over all folds give
eps and B. Judged events that are the share f of all (1 with several folds) stand for all of them:
weights are divided by f. d_eps is binomial: of n generated events eps f n are judged and pass. w1 =
sum w^2/sum w of the window before the cut is one more simulated event: a window left empty by the
cut is not free of background, the simulation only ended there. Cuts are chosen with the same rule.

Choosing a cut and quoting it on the same events flatters by 6 to 16 %. So the cuts of a fold are
chosen on the events its network was trained on and quoted on those it judges; the flattering number
carries its own name, "maximum_achievable".
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from models.evaluation.cuts import optimal_cuts, optimal_single_cut
from models.evaluation.window_events import (
    WindowEvents,
    WindowSums,
    one_more_event,
    window_events,
    window_sums,
)
from models.results import (
    CHOSEN_ON_QUOTED,
    CHOSEN_ON_TRAINING,
    ONE_FOR_ALL,
    EnsembleFigureOfMerit,
    FigureOfMerit,
    Floats,
)
from models.sensitivity import (
    PunziFormula,
    punzi_sensitivity,
    signal_events_needed,
    signal_events_slope,
)
from selection.table import BoolArray, EventTable, FloatArray, Folds
from selection.windows import MassWindows


@dataclass(frozen=True)
class SplitEvents:
    """Events of one fold in all windows: what its network was trained on, and what it judges."""

    mass_gev: Floats  # (n_masses,)
    trained: BoolArray  # (n_masses,)
    training: WindowEvents  # standing for all events
    judged: WindowEvents  # those of all folds together stand for all events
    judged_share: float  # of all events, of all folds together


def split_events(
    table: EventTable, windows: MassWindows, *, trained: BoolArray, folds: Folds
) -> tuple[SplitEvents, ...]:
    """The events of every fold, made once and used for every network.

    windows of all masses; trained (n_windows,): is the mass used in training?
    """
    if not 0 < folds.held_out_share < 1:
        msg = (
            f"the validation fraction is {folds.held_out_share}: figures of merit are quoted on "
            f"events held out of training, so it must lie between 0 and 1 (the paper's is 0.2)"
        )
        raise ValueError(msg)
    of_fold = folds.of(table.identity)
    return tuple(
        SplitEvents(
            windows.mass_gev,
            trained,
            window_events(table, windows, rows=of_fold != k).scaled(1 / (1 - folds.held_out_share)),
            window_events(table, windows, rows=of_fold == k).scaled(1 / folds.judged_share),
            folds.judged_share,
        )
        for k in range(folds.count)
    )


@dataclass(frozen=True)
class Quoting:
    """How figures of merit are quoted."""

    formula: PunziFormula
    single_cut: float | None = 0.5  # None: the one with the smallest mean log sigma_min (training)
    add_one_event: bool = True  # B + w1
    threads: int = 1


def figures_of_merit(
    splits: Sequence[SplitEvents],
    scores: Sequence[FloatArray],
    *,
    classifier: str,
    network: int,
    quoting: Quoting,
) -> tuple[FigureOfMerit, ...]:
    """Best, single and maximum achievable cut on judged events, and the first two on training.

    scores: of the network of each fold, (n_events of the table,). Judged over training events at
    the same cuts shows overtraining.
    """
    sigma_min = partial(punzi_sensitivity, formula=quoting.formula)
    scores = [np.asarray(score, np.float64) for score in scores]  # once, not for every sum
    folds = list(zip(splits, scores, strict=True))

    def per_mass(events: WindowEvents, score: FloatArray) -> Floats:
        extra = one_more_event(events) if quoting.add_one_event else None
        return optimal_cuts(
            events, score, sigma_min=sigma_min, extra_background=extra, threads=quoting.threads
        )

    def single(split: SplitEvents, score: FloatArray) -> float:
        extra = one_more_event(split.training) if quoting.add_one_event else None
        return optimal_single_cut(
            split.training, score, sigma_min=sigma_min, extra_background=extra
        )

    n = len(splits[0].mass_gev)
    best = np.array([per_mass(split.training, score) for split, score in folds])
    flattering = np.array([per_mass(split.judged, score) for split, score in folds])
    cut = quoting.single_cut
    if cut is None:  # one cut for all masses and folds: the model has one
        cut = float(np.mean([single(*pair) for pair in folds]))
    one = np.full((len(folds), n), cut)
    cases = (
        (CHOSEN_ON_TRAINING, "validation", best),
        (ONE_FOR_ALL, "validation", one),
        (CHOSEN_ON_QUOTED, "validation", flattering),
        (CHOSEN_ON_TRAINING, "training", best),
        (ONE_FOR_ALL, "training", one),
    )
    return tuple(
        quote(
            splits,
            scores,
            cuts,
            name=(classifier, network, selection),
            quoted_on=part,
            quoting=quoting,
        )
        for selection, part, cuts in cases
    )


def quote(
    splits: Sequence[SplitEvents],
    scores: Sequence[FloatArray],
    cuts: Floats,
    *,
    name: tuple[str, int, str],
    quoted_on: str,
    quoting: Quoting,
) -> FigureOfMerit:
    """Figures of merit of given cuts (n_folds, n_masses); name = (classifier, network, selection).

    Judged events of all folds are added; those of training are averaged over the folds.
    """
    one, n = splits[0], len(splits)
    judged = quoted_on == "validation"
    events = [split.judged if judged else split.training for split in splits]
    with ThreadPoolExecutor(quoting.threads) as pool:
        parts = list(pool.map(window_sums, events, scores, cuts))
    share, copies = (1.0, 1) if judged else (1 / n, max(n - 1, 1))
    sums = total_sums(parts, share=share, copies=copies)
    # of the judged events for both parts: else the rule itself would look like overtraining
    w1 = one_more_of(splits) if quoting.add_one_event else np.zeros(len(one.mass_gev))
    eps, B = sums.signal, sums.background
    of_all = one.judged_share if judged or n > 1 else 1 - one.judged_share
    eps_error = np.sqrt(sums.signal_w2 * np.clip(1 - of_all * eps, 0, 1))
    used = np.maximum(B, 0) + w1
    sigma = punzi_sensitivity(eps, used, quoting.formula)
    slope = signal_events_slope(used, quoting.formula) / signal_events_needed(used, quoting.formula)
    relative = np.hypot(_ratio(eps_error, eps), slope * np.sqrt(sums.background_w2 + w1**2))
    return FigureOfMerit(
        classifier=name[0],
        network=name[1],
        selection=name[2],
        quoted_on=quoted_on,
        luminosity_inv_fb=quoting.formula.luminosity_inv_fb,
        mass_gev=one.mass_gev,
        trained=one.trained,
        cut=_mean_cut(cuts),
        fold_cuts=np.asarray(cuts, np.float64),
        efficiency=eps,
        efficiency_error=eps_error,
        n_eff_signal=_ratio(eps**2, sums.signal_w2),
        background=B,
        background_error=np.sqrt(sums.background_w2),
        n_eff_background=_ratio(B**2, sums.background_w2),
        added_background=w1,
        sigma_min_fb=sigma,
        sigma_min_error_fb=np.where(np.isfinite(sigma), sigma, 0) * relative,
    )


def total_sums(parts: Sequence[WindowSums], *, share: float, copies: int = 1) -> WindowSums:
    """The sums of all parts, each counting for `share`; an event is in so many of them."""
    return WindowSums(
        signal=share * np.sum([p.signal for p in parts], axis=0),
        signal_w2=copies * share**2 * np.sum([p.signal_w2 for p in parts], axis=0),
        background=share * np.sum([p.background for p in parts], axis=0),
        background_w2=copies * share**2 * np.sum([p.background_w2 for p in parts], axis=0),
    )


def one_more_of(splits: Sequence[SplitEvents]) -> Floats:
    """w1 of all judged events together (n_masses,)."""
    sums = total_sums([split.judged.everything for split in splits], share=1.0)
    return _ratio(sums.background_w2, sums.background)


def _mean_cut(cuts: Floats) -> Floats:
    """Over the folds; nan where no fold has one."""
    known = np.isfinite(cuts)
    return np.where(
        known.any(axis=0), np.where(known, cuts, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1),
        np.nan,
    )  # fmt: skip


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """top / bottom, 0 where there is nothing."""
    out = np.zeros_like(top)
    np.divide(top, bottom, out=out, where=bottom > 0)
    return out


def over_networks(figures: Sequence[FigureOfMerit]) -> EnsembleFigureOfMerit:
    """Mean and standard error over the networks of one classifier and selection.

    A network that sees nothing at a mass makes the mean sigma_min infinite there; the mean figure
    of merit counts it as 0.
    """
    one = figures[0]
    same = {(f.classifier, f.selection, f.quoted_on, f.luminosity_inv_fb) for f in figures}
    if len(same) > 1 or any(not np.array_equal(f.mass_gev, one.mass_gev) for f in figures):
        msg = f"an ensemble is of one classifier, selection and list of masses; found {same}"
        raise ValueError(msg)

    def mean(name: str) -> Floats:
        return np.mean([getattr(f, name) for f in figures], axis=0)

    def error(name: str) -> Floats:
        if len(figures) == 1:
            return np.full(len(one.mass_gev), np.nan)
        values = np.array([getattr(f, name) for f in figures])
        values = np.where(np.isinf(values), np.nan, values)  # inf - inf: no spread to speak of
        return np.std(values, axis=0, ddof=1) / np.sqrt(len(figures))

    return EnsembleFigureOfMerit(
        classifier=one.classifier,
        selection=one.selection,
        quoted_on=one.quoted_on,
        luminosity_inv_fb=one.luminosity_inv_fb,
        n_networks=len(figures),
        mass_gev=one.mass_gev,
        trained=one.trained,
        cut=mean("cut"),
        cut_error=error("cut"),
        efficiency=mean("efficiency"),
        efficiency_error=error("efficiency"),
        background=mean("background"),
        background_error=error("background"),
        sigma_min_fb=mean("sigma_min_fb"),
        sigma_min_error_fb=error("sigma_min_fb"),
        sigma_min_mc_error_fb=mean("sigma_min_error_fb"),
        fom_inv_fb=mean("fom_inv_fb"),
        fom_error_inv_fb=error("fom_inv_fb"),
        fom_mc_error_inv_fb=mean("fom_error_inv_fb"),
    )
