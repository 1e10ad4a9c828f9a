"""What the figures of merit say, in a few numbers.

    r(m) = exp( mean over networks of ln[ sigma_top(m) / sigma_bottom(m) ] )

Ratios of sigma_min are averaged geometrically, so that a ratio and its inverse tell the same.
Below 1 the first is better. Networks are paired by their number: a Punzi-net is compared with
the BCE net it started from. Masses where either side sees nothing are nan and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from models.results import FigureOfMerit, Floats


def select(
    figures: Sequence[FigureOfMerit], classifier: str, selection: str, quoted_on: str = "validation"
) -> tuple[FigureOfMerit, ...]:
    """The records of one classifier and selection, in order of network."""
    wanted = (classifier, selection, quoted_on)
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
