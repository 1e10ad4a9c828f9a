"""Laws of rectangular cuts: a box is found on its own events, and nothing else passes."""

from functools import partial

import numpy as np
import pytest

from models.evaluation.rectangles import N_EDGES, Boxes, best_boxes
from models.evaluation.window_events import WindowEvents, window_events
from models.sensitivity import PunziFormula, punzi_sensitivity

SIGMA = partial(punzi_sensitivity, formula=PunziFormula(50.0, 3.0, 1.28155, "paper"))


def one_window(signal_weight, background_weight):
    """Signal rows first, all in one window."""
    n, m = len(signal_weight), len(background_weight)
    return WindowEvents(
        signal_row=np.arange(n),
        signal_start=np.array([0, n]),
        signal_weight=np.asarray(signal_weight, float),
        background_row=n + np.arange(m),
        background_first=np.zeros(m, np.int16),
        background_stop=np.ones(m, np.int16),
        background_weight=np.asarray(background_weight, float),
    )


def sigma_of(keep, events, extra):
    n = len(events.signal_weight)
    efficiency = events.signal_weight[keep[:n]].sum()
    background = events.background_weight[keep[n:]].sum()
    return float(SIGMA(np.array([efficiency]), np.array([background + extra]))[0])


def boxes(events, x, extra=0.5):
    return best_boxes(events, x, sigma_min=SIGMA, extra_background=np.full(events.n_windows, extra))


def inside(found, x, window=0):
    return found.inside(x, np.arange(len(x)), np.full(len(x), window)) == 1


def test_in_one_feature_no_interval_between_edges_is_better():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(1, 1, 400), rng.uniform(-6, 6, 900)])[:, None]
    x = x.astype(np.float32)
    events = one_window(np.full(400, 1 / 1000), rng.exponential(0.1, 900))
    edges = np.quantile(x[:400, 0], np.arange(N_EDGES + 1) / N_EDGES, method="nearest")
    edges = np.array([-np.inf, *edges, np.inf])
    tried = [
        sigma_of((low <= x[:, 0]) & (x[:, 0] < high), events, 0.5)
        for i, low in enumerate(edges) for high in edges[i + 1 :]
    ]  # fmt: skip
    found = boxes(events, x)
    assert sigma_of(inside(found, x), events, 0.5) == pytest.approx(min(tried), rel=1e-9)
    assert np.isfinite([found.low, found.high]).all()  # two-sided here


def test_a_box_hidden_in_four_features_is_found_and_idle_sides_stay_open():
    """Signal: above 2 in the first feature, 0 to 1 in the second; the others say nothing."""
    rng = np.random.default_rng(2)
    signal = np.column_stack([
        rng.uniform(2, 4, 500), rng.uniform(0, 1, 500), rng.normal(0, 1, (500, 2))
    ])  # fmt: skip
    background = np.column_stack([
        rng.uniform(-4, 4, 4000), rng.uniform(-5, 5, 4000), rng.normal(0, 1, (4000, 2))
    ])  # fmt: skip
    x = np.concatenate([signal, background]).astype(np.float32)
    events = one_window(np.full(500, 1 / 1000), np.full(4000, 1.0))
    found = boxes(events, x, extra=1.0)
    keep = inside(found, x)
    truth = (x[:, 0] >= 2) & (x[:, 1] >= 0) & (x[:, 1] < 1)
    assert sigma_of(keep, events, 1.0) <= 1.02 * sigma_of(truth, events, 1.0)
    assert found.low[0, 0] == pytest.approx(2, abs=0.3)
    assert found.low[0, 1] == pytest.approx(0, abs=0.1)
    assert found.high[0, 1] == pytest.approx(1, abs=0.1)
    assert keep[:500].mean() > 0.85


def test_a_box_is_never_worse_on_its_own_events_than_no_cut_or_one_cut(toy_table, toy_windows):
    table = toy_table()
    events = window_events(table, toy_windows)
    extra = np.full(6, 2.0)
    found = best_boxes(events, table.features, sigma_min=SIGMA, extra_background=extra)
    in_window = (toy_windows.low[:, None] < table.axis) & (table.axis < toy_windows.high[:, None])

    def sigma(k, keep):
        keep = keep & in_window[k]
        own = table.signal_mass_gev == toy_windows.mass_gev[k]
        background = table.weight[keep & ~table.is_signal].sum() + 2.0
        return float(SIGMA(np.array([table.weight[keep & own].sum()]), np.array([background]))[0])

    for k in range(6):
        best = sigma(k, inside(found, table.features, k))
        own = in_window[k] & (table.signal_mass_gev == toy_windows.mass_gev[k])
        assert best <= sigma(k, np.ones(len(table), bool)) * (1 + 1e-12)
        for f in (0, 3):
            x = table.features[:, f]
            cuts = np.quantile(x[own], np.arange(N_EDGES) / N_EDGES, method="nearest")
            assert best <= min(sigma(k, x >= cut) for cut in cuts) * (1 + 1e-12)


def test_a_window_without_signal_has_no_box_and_leaves_the_others_alone(toy_table, toy_windows):
    table = toy_table()
    gone = table.take(table.signal_mass_gev != 1.5)
    extra = np.full(6, 2.0)
    with_it, without = (
        best_boxes(
            window_events(t, toy_windows), t.features, sigma_min=SIGMA, extra_background=extra
        )
        for t in (table, gone)
    )
    assert np.isnan(without.low[2]).all()
    assert not inside(without, table.features, 2).any()
    others = np.arange(6) != 2
    assert np.array_equal(with_it.low[others], without.low[others])
    assert np.array_equal(with_it.high[others], without.high[others])


def test_the_lower_side_belongs_to_the_box_and_the_upper_does_not_and_nan_never_passes():
    box = Boxes(low=np.array([[0.0, -np.inf]]), high=np.array([[1.0, 2.0]]))
    x = np.array([[0, 0], [1, 0], [0.5, 2], [0.5, -9], [np.nan, 0], [0.5, np.nan]], np.float32)
    assert inside(box, x).tolist() == [True, False, False, True, False, False]


def test_the_order_of_the_events_does_not_matter(toy_table, toy_windows):
    table = toy_table()
    mixed = table.take(np.random.default_rng(4).permutation(len(table)))
    a, b = (
        best_boxes(
            window_events(t, toy_windows), t.features, sigma_min=SIGMA,
            extra_background=np.full(6, 2.0),
        )
        for t in (table, mixed)
    )  # fmt: skip
    assert np.array_equal(a.low, b.low)
    assert np.array_equal(a.high, b.high)
