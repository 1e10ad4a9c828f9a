"""A Punzi-net is compared with the BCE net it started from, not with another one's."""

from itertools import pairwise

import numpy as np
import pytest

from models.evaluation.comparison import (
    BCE_BEST,
    MASS_BINS_GEV,
    PUNZI_BEST,
    PUNZI_SINGLE,
    TREES_BEST,
    compare,
    geometric_mean,
    log_ratios,
    ratio_in_bins,
    share_within,
    untrained_over_trained,
)
from models.results import FigureOfMerit

MASS = np.array([0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 4.5, 5.0, 7.0, 9.0])
SMOOTH = np.exp(0.2 * MASS)


def figure(curve, network, sigma, *, quoted_on="validation", trained=None, mass=MASS):
    nothing = np.zeros(len(mass))
    return FigureOfMerit(
        classifier=curve[0],
        network=network,
        selection=curve[1],
        quoted_on=quoted_on,
        luminosity_inv_fb=50.0,
        mass_gev=mass,
        trained=np.ones(len(mass), bool) if trained is None else trained,
        cut=nothing,
        fold_cuts=nothing[None],
        efficiency=nothing,
        efficiency_error=nothing,
        n_eff_signal=nothing,
        background=nothing,
        background_error=nothing,
        n_eff_background=nothing,
        added_background=nothing,
        sigma_min_fb=np.broadcast_to(sigma, len(mass)).astype(float),
        sigma_min_error_fb=nothing,
    )


def curves(reach):
    """reach: curve -> one factor per network, times the same smooth curve."""
    return [figure(c, i, f * SMOOTH) for c, factors in reach.items() for i, f in enumerate(factors)]


UNEQUAL = (1.0, 3.0, 9.0)  # three BCE nets of very different worth


def test_each_network_is_divided_by_its_own_partner():
    top = [figure(PUNZI_SINGLE, i, 0.5 * f * SMOOTH) for i, f in enumerate(UNEQUAL)]
    bottom = [figure(BCE_BEST, i, f * SMOOTH) for i, f in enumerate(UNEQUAL)]
    assert np.exp(log_ratios(top, bottom)) == pytest.approx(np.full((3, len(MASS)), 0.5))
    one_for_all = np.exp(log_ratios(top, bottom[:1]))
    assert one_for_all[:, 0] == pytest.approx([0.5, 1.5, 4.5])


def test_all_numbers_of_a_comparison_are_of_pairs():
    factors = np.array(UNEQUAL)
    figures = curves({PUNZI_SINGLE: 0.5 * factors, PUNZI_BEST: 0.45 * factors, BCE_BEST: factors})
    figures += [figure(PUNZI_SINGLE, i, 0.4 * f * SMOOTH, quoted_on="training")
                for i, f in enumerate(UNEQUAL)]  # fmt: skip
    found = compare(figures)
    assert found.over_bce_1500_to_4500_mev == pytest.approx(0.5)
    assert found.single_over_best_cut == pytest.approx(0.5 / 0.45)
    assert found.share_within_20_percent == 1  # of every network, against its own best cut
    assert found.validation_over_training == pytest.approx(0.5 / 0.4)
    by_bin = np.array(found.ratio(PUNZI_SINGLE, BCE_BEST).by_bin)
    assert by_bin == pytest.approx(np.full(5, 0.5))
    # of the best BCE net, number 0, there is only one: all three are compared with it
    assert found.over_best_bce_network_1_to_4_gev == pytest.approx(0.5 * 3)


def test_trees_have_one_number_and_serve_all_networks():
    found = compare(curves({PUNZI_SINGLE: UNEQUAL, PUNZI_BEST: UNEQUAL, TREES_BEST: (2.0,)}))
    assert found.ratio(PUNZI_SINGLE, TREES_BEST).by_bin[0] == pytest.approx(3 / 2)


def test_a_lost_network_is_not_replaced_by_its_neighbour():
    top = [figure(PUNZI_SINGLE, i, 1.0) for i in (0, 2, 3)]
    bottom = [figure(BCE_BEST, i, 1.0) for i in (0, 1, 2)]
    with pytest.raises(ValueError, match=r"networks \[0, 2, 3\] cannot be paired with \[0, 1, 2\]"):
        log_ratios(top, bottom)


def test_the_ranges_of_mass_are_those_of_their_names():
    """Reach that differs outside of the range only leaves the number at 1."""
    for name, low, high in (
        ("over_bce_1500_to_4500_mev", 1.5, 4.5),
        ("over_best_bce_network_1_to_4_gev", 1.0, 4.0),
    ):
        inside = (low <= MASS) & (high >= MASS)
        for where, wanted in ((inside, 2.0), (~inside, 1.0)):
            punzi = np.where(where, 2 * SMOOTH, SMOOTH)
            figures = [figure(PUNZI_SINGLE, 0, punzi), figure(PUNZI_BEST, 0, punzi)]
            found = compare([*figures, figure(BCE_BEST, 0, SMOOTH)])
            assert getattr(found, name) == pytest.approx(wanted)


def test_the_best_bce_net_is_the_best_from_1_to_4_gev_and_nowhere_else():
    inside = (MASS >= 1) & (MASS <= 4)
    best_there = np.where(inside, 0.5, 50.0) * SMOOTH
    figures = [figure(c, i, SMOOTH) for c in (PUNZI_SINGLE, PUNZI_BEST) for i in (0, 1)]
    figures += [figure(BCE_BEST, 0, SMOOTH), figure(BCE_BEST, 1, best_there)]
    assert compare(figures).over_best_bce_network_1_to_4_gev == pytest.approx(2.0)


def test_a_mass_on_an_edge_belongs_to_the_bin_above():
    logs = np.log(np.arange(1.0, len(MASS) + 1))[None, :]
    found = ratio_in_bins(MASS, logs, MASS_BINS_GEV)
    members = [(a <= MASS) & (b > MASS) for a, b in pairwise(MASS_BINS_GEV)]
    assert found == pytest.approx([np.exp(logs[0, m].mean()) for m in members])
    assert sum(m.sum() for m in members) == len(MASS)


def test_what_sees_nothing_is_left_out_of_means_and_shares():
    blind = SMOOTH.copy()
    blind[3] = np.inf
    logs = log_ratios([figure(PUNZI_SINGLE, 0, 1.1 * SMOOTH)], [figure(BCE_BEST, 0, blind)])
    assert np.flatnonzero(np.isnan(logs[0])).tolist() == [3]
    assert geometric_mean(logs) == pytest.approx(1.1)
    assert share_within(logs, 0.2) == 1
    assert share_within(logs, 0.05) == 0
    nothing = np.full((1, 3), np.nan)
    assert np.isnan(geometric_mean(nothing))
    assert np.isnan(share_within(nothing, 0.2))


def test_a_ratio_at_the_tolerance_is_within():
    logs = np.log1p(np.array([[0.1, 0.2, 0.2000001, -0.5]]))
    assert share_within(logs, 0.2) == 0.75


def test_masses_not_trained_on_are_compared_with_their_neighbours_only():
    trained = np.arange(len(MASS)) % 2 == 1  # the first and the last have no two neighbours
    factor = np.where(trained, 1.0, 1.3)
    factor[[0, -1]] = 100.0
    bumpy = figure(PUNZI_SINGLE, 0, factor * SMOOTH, trained=trained)
    assert untrained_over_trained([bumpy]) == pytest.approx(1.3)
    blind = bumpy.sigma_min_fb.copy()
    blind[1] = np.inf  # 1 GeV trained, but it sees nothing: 1.25 GeV has no lower neighbour
    other = figure(PUNZI_SINGLE, 1, np.where(MASS == 1.25, 50.0, blind), trained=trained)
    assert untrained_over_trained([bumpy, other]) == pytest.approx(1.3)
    alone = figure(PUNZI_SINGLE, 0, SMOOTH, trained=MASS == 2.0)
    assert np.isnan(untrained_over_trained([alone]))
