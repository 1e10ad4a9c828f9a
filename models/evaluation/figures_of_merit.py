"""Figures of merit of a classifier at every mass, on events it was not tuned on.

    eps   = sum w           d_eps = sqrt(sum w^2 (1 - f eps))      f: share of the split
    B     = sum w           d_B   = sqrt(sum w^2)
    sigma = N(B + w1) / (eps L)
    (d_sigma/sigma)^2 = (d_eps/eps)^2 + (N'/N)^2 (d_B^2 + w1^2)

A split that holds the share f of the events stands for all of them: its weights are divided by
f. d_eps is binomial: of n generated events eps f n lie in the split and pass. w1 = sum w^2/sum w
of the window before the cut is one more simulated event: a window left empty by the cut is not
free of background, the simulation only ended there. Cuts are chosen with the same rule.

Choosing a cut and quoting it on the same events flatters by 6 to 16 %. So cuts are chosen on the
training split and quoted on the validation split; the flattering number carries its own name,
"maximum_achievable".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from models.evaluation.cuts import optimal_cuts, optimal_single_cut
from models.evaluation.window_events import WindowEvents, one_more_event, window_events, window_sums
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
from selection.table import BoolArray, EventTable, FloatArray, validation_mask
from selection.windows import MassWindows


@dataclass(frozen=True)
class SplitEvents:
    """The training and the validation events of all windows, each standing for the whole."""

    mass_gev: Floats  # (n_masses,)
    trained: BoolArray  # (n_masses,)
    training: WindowEvents
    validation: WindowEvents
    validation_fraction: float

    def part(self, name: str) -> tuple[WindowEvents, float]:
        """Events and share of "training" or "validation"."""
        if name == "training":
            return self.training, 1 - self.validation_fraction
        return self.validation, self.validation_fraction


def split_events(
    table: EventTable,
    windows: MassWindows,
    *,
    trained: BoolArray,
    validation_fraction: float,
) -> SplitEvents:
    """Both splits of a table, made once and used for every network.

    windows of all masses; trained (n_windows,): is the mass used in training?
    """
    if not 0 < validation_fraction < 1:
        msg = (
            f"validation fraction is {validation_fraction}: figures of merit are quoted on events "
            f"held out of training, so it must lie between 0 and 1 (the paper's is 0.2)"
        )
        raise ValueError(msg)
    held_out = validation_mask(table.key, fraction=validation_fraction)
    training = window_events(table, windows, rows=~held_out)
    validation = window_events(table, windows, rows=held_out)
    return SplitEvents(
        mass_gev=windows.mass_gev,
        trained=trained,
        training=training.scaled(1 / (1 - validation_fraction)),
        validation=validation.scaled(1 / validation_fraction),
        validation_fraction=validation_fraction,
    )


@dataclass(frozen=True)
class Quoting:
    """How figures of merit are quoted."""

    formula: PunziFormula
    single_cut: float | None = 0.5  # None: the one with the smallest mean log sigma_min (training)
    add_one_event: bool = True  # B + w1
    threads: int = 1


def figures_of_merit(
    split: SplitEvents, score: FloatArray, *, classifier: str, network: int, quoting: Quoting
) -> tuple[FigureOfMerit, ...]:
    """Best, single and maximum achievable cut on validation, and the first two on training.

    score (n_events of the table,). Validation over training at the same cuts shows overtraining.
    """
    sigma_min = partial(punzi_sensitivity, formula=quoting.formula)

    def per_mass(name: str) -> Floats:
        events, _ = split.part(name)
        extra = one_more_event(events) if quoting.add_one_event else None
        return optimal_cuts(
            events, score, sigma_min=sigma_min, extra_background=extra, threads=quoting.threads
        )

    best, single = per_mass("training"), quoting.single_cut
    if single is None:
        extra = one_more_event(split.training) if quoting.add_one_event else None
        single = optimal_single_cut(
            split.training, score, sigma_min=sigma_min, extra_background=extra
        )
    one = np.full(len(split.mass_gev), single)
    cases = (
        (CHOSEN_ON_TRAINING, "validation", best),
        (ONE_FOR_ALL, "validation", one),
        (CHOSEN_ON_QUOTED, "validation", per_mass("validation")),
        (CHOSEN_ON_TRAINING, "training", best),
        (ONE_FOR_ALL, "training", one),
    )
    return tuple(
        quote(
            split,
            score,
            cut,
            name=(classifier, network, selection),
            quoted_on=part,
            quoting=quoting,
        )
        for selection, part, cut in cases
    )


def quote(
    split: SplitEvents,
    score: FloatArray,
    cut: Floats,
    *,
    name: tuple[str, int, str],
    quoted_on: str,
    quoting: Quoting,
) -> FigureOfMerit:
    """Figures of merit of given cuts (n_masses,); name = (classifier, network, selection)."""
    events, share = split.part(quoted_on)
    sums = window_sums(events, score, cut)
    # of the validation events for both parts: else the rule itself would look like overtraining
    w1 = one_more_event(split.validation) if quoting.add_one_event else np.zeros(events.n_windows)
    eps, B = sums.signal, sums.background
    eps_error = np.sqrt(sums.signal_w2 * np.clip(1 - share * eps, 0, 1))
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
        mass_gev=split.mass_gev,
        trained=split.trained,
        cut=cut,
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
