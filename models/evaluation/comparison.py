"""What the figures of merit say, in a few numbers.

    r(m) = exp( mean over networks of ln[ sigma_top(m) / sigma_bottom(m) ] )

Ratios of sigma_min are averaged geometrically, so that a ratio and its inverse tell the same.
Below 1 the first is better. Networks are paired by their number: a Punzi-net is compared with
the BCE net it started from. Masses where either side sees nothing are nan and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.results import (
    CHOSEN_ON_TRAINING,
    ONE_FOR_ALL,
    Bools,
    Curve,
    FigureOfMerit,
    Floats,
)
from selection.masses import between

MASS_BINS_GEV = (0.0, 1.0, 4.0, 6.0, 8.0, np.inf)
PUNZI_SINGLE: Curve = ("punzi", ONE_FOR_ALL)
PUNZI_BEST: Curve = ("punzi", CHOSEN_ON_TRAINING)
BCE_SINGLE: Curve = ("bce", ONE_FOR_ALL)
BCE_BEST: Curve = ("bce", CHOSEN_ON_TRAINING)
TREES_BEST: Curve = ("xgboost", CHOSEN_ON_TRAINING)
EQUAL_BEST: Curve = ("bce_equal", CHOSEN_ON_TRAINING)
MASS_SINGLE: Curve = ("bce_mass", ONE_FOR_ALL)
MASS_BEST: Curve = ("bce_mass", CHOSEN_ON_TRAINING)
BOXES_BEST: Curve = ("rectangular", CHOSEN_ON_TRAINING)
COMPARED = (
    (PUNZI_SINGLE, BCE_BEST),
    (PUNZI_SINGLE, EQUAL_BEST),
    (PUNZI_SINGLE, MASS_BEST),
    (PUNZI_SINGLE, MASS_SINGLE),
    (PUNZI_SINGLE, TREES_BEST),
    (PUNZI_SINGLE, BOXES_BEST),
    (BCE_SINGLE, BCE_BEST),
)
WITHOUT_NETWORKS = ("xgboost", "rectangular")  # one for all networks


@dataclass(frozen=True)
class Ratio:
    """sigma_min of one curve over that of another, one number per mass bin."""

    top: Curve
    bottom: Curve
    by_bin: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """The numbers of the comparison, below 1 = better; nan where nothing can be compared."""

    mass_bins_gev: tuple[float, ...]  # edges
    ratios: tuple[Ratio, ...]  # of COMPARED, where both are there
    over_bce_1500_to_4500_mev: float  # Punzi-net, single cut / BCE net, best cut per mass
    over_best_bce_network_1_to_4_gev: float  # the same, against the best of the BCE nets there
    single_over_best_cut: float  # of the Punzi-net
    share_within_20_percent: float  # of the masses, for the same ratio
    untrained_over_trained: float
    validation_over_training: float

    def ratio(self, top: Curve, bottom: Curve) -> Ratio | None:
        return next((r for r in self.ratios if (r.top, r.bottom) == (top, bottom)), None)


def compare(figures: Sequence[FigureOfMerit], failed: Sequence[int] = ()) -> Comparison | None:
    """All of it, geometric means over masses and the networks that did not fail; None without."""
    good = [f for f in figures if f.classifier in WITHOUT_NETWORKS or f.network not in failed]
    punzi, bce = of_curve(good, PUNZI_SINGLE), of_curve(good, BCE_BEST)
    if not punzi:
        return None
    mass = punzi[0].mass_gev
    low, lower = between(mass, 1.0, 4.0), between(mass, 1.5, 4.5)
    best_bce = sorted(bce, key=lambda f: float(np.sum(np.log(f.sigma_min_fb[low]))))[:1]
    single = log_ratios(punzi, of_curve(good, PUNZI_BEST))
    ratios = []
    for top, bottom in COMPARED:
        above, below = of_curve(good, top), of_curve(good, bottom)
        if above and below:
            by_bin = ratio_in_bins(mass, log_ratios(above, below), MASS_BINS_GEV)
            ratios.append(Ratio(top, bottom, tuple(map(float, by_bin))))
    return Comparison(
        mass_bins_gev=(*MASS_BINS_GEV[:-1], float(mass.max())),
        ratios=tuple(ratios),
        over_bce_1500_to_4500_mev=_mean_ratio(punzi, bce, lower),
        over_best_bce_network_1_to_4_gev=_mean_ratio(punzi, best_bce, low),
        single_over_best_cut=geometric_mean(single),
        share_within_20_percent=share_within(single, 0.2),
        untrained_over_trained=untrained_over_trained(punzi),
        validation_over_training=_mean_ratio(punzi, of_curve(good, PUNZI_SINGLE, "training")),
    )


def _mean_ratio(
    top: Sequence[FigureOfMerit], bottom: Sequence[FigureOfMerit], masses: Bools | None = None
) -> float:
    if not bottom:
        return float("nan")
    logs = log_ratios(top, bottom)
    return geometric_mean(logs if masses is None else logs[:, masses])


def of_curve(
    figures: Sequence[FigureOfMerit], curve: Curve, quoted_on: str = "validation"
) -> tuple[FigureOfMerit, ...]:
    """The records of one classifier and selection, in order of network."""
    wanted = (*curve, quoted_on)
    found = [f for f in figures if (f.classifier, f.selection, f.quoted_on) == wanted]
    return tuple(sorted(found, key=lambda f: f.network))


def log_ratios(top: Sequence[FigureOfMerit], bottom: Sequence[FigureOfMerit]) -> Floats:
    """ln(sigma_top / sigma_bottom) (n_networks, n_masses); a single bottom serves all networks."""
    if len(bottom) == 1:
        bottom = tuple(bottom) * len(top)
    elif [f.network for f in top] != [f.network for f in bottom]:
        msg = (
            f"networks {[f.network for f in top]} cannot be paired with "
            f"{[f.network for f in bottom]}; evaluate the same networks for both"
        )
        raise ValueError(msg)
    pairs = zip(top, bottom, strict=True)
    logs = np.array([_log_sigma(t) - _log_sigma(b) for t, b in pairs])
    return np.where(np.isfinite(logs), logs, np.nan)


def _log_sigma(figure: FigureOfMerit) -> Floats:
    return np.where(np.isfinite(figure.sigma_min_fb), np.log(figure.sigma_min_fb), np.nan)


def geometric_mean(log_ratio: Floats) -> float:
    """exp of the mean over everything finite; nan if nothing is."""
    good = log_ratio[np.isfinite(log_ratio)]
    return float(np.exp(good.mean())) if good.size else float("nan")


def ratio_in_bins(mass_gev: Floats, log_ratio: Floats, edges_gev: Sequence[float]) -> Floats:
    """Geometric mean ratio in mass bins [edge, next edge); log_ratio (n_networks, n_masses)."""
    bins = np.digitize(mass_gev, edges_gev) - 1
    return np.array([geometric_mean(log_ratio[:, bins == i]) for i in range(len(edges_gev) - 1)])


def share_within(log_ratio: Floats, tolerance: float) -> float:
    """Share of (network, mass) pairs whose ratio is at most 1 + tolerance."""
    good = log_ratio[np.isfinite(log_ratio)]
    return float(np.mean(good <= np.log1p(tolerance))) if good.size else float("nan")


def untrained_over_trained(figures: Sequence[FigureOfMerit]) -> float:
    """sigma_min at masses not trained on over that expected from their trained neighbours.

    Expected: ln sigma_min interpolated in mass between the two trained masses around. A smooth
    curve gives 1; masses outside the trained range do not count.
    """
    logs: list[npt.NDArray[np.float64]] = []
    for f in figures:
        log_sigma = _log_sigma(f)
        known = f.trained & np.isfinite(log_sigma)
        if known.sum() < 2:
            continue
        inside = (f.mass_gev > f.mass_gev[known].min()) & (f.mass_gev < f.mass_gev[known].max())
        new = ~f.trained & inside
        expected = np.interp(f.mass_gev[new], f.mass_gev[known], log_sigma[known])
        logs.append(log_sigma[new] - expected)
    return geometric_mean(np.concatenate(logs)) if logs else float("nan")
