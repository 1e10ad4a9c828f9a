"""Toys of whole scans: windows are sums of intervals, and global p-values are uniform."""

import numpy as np
import pytest
from scipy import stats

from limits.counts import background_counts
from limits.expectation import Expectation
from limits.significance import local_p_values
from limits.trials import (
    ScanToys,
    elementary_intervals,
    global_p_values,
    interval_spans,
    prior_shares,
    scan_toys,
)
from selection.errors import UserError

WEIGHT = np.array([0.5, 0.09, 2.0])


def scan(n_masses=40):
    """Windows of two widths either side in steps of a width that falls with mass, and their rows."""
    width = np.linspace(0.3, 0.1, n_masses)
    centre = np.cumsum(width)
    low, high = centre - 2 * width, centre + 2 * width
    edges = elementary_intervals(low, high)
    density = np.array([4.0, 20.0, 0.5]) * (1 + edges[:-1, None])
    rows = np.random.default_rng(1).poisson(density * np.diff(edges)[:, None] / WEIGHT)
    spans = interval_spans(low, high)
    running = np.concatenate([np.zeros((1, 3)), np.cumsum(rows, axis=0)])
    inside = running[spans[:, 1]] - running[spans[:, 0]]
    weights = np.broadcast_to(WEIGHT, inside.shape)
    b = Expectation(inside, weights, np.array([0.05, 0.2, 0.0]), np.zeros(n_masses))
    return b, (low, high), (rows, np.broadcast_to(WEIGHT, rows.shape))


def test_every_window_is_a_union_of_elementary_intervals():
    low, high = np.array([0.0, 1.0, 1.5, 9.0]), np.array([2.0, 3.0, 2.0, 9.5])
    edges = elementary_intervals(low, high)
    assert edges.tolist() == [0, 1, 1.5, 2, 3, 9, 9.5]
    spans = interval_spans(low, high)
    assert edges[spans[:, 0]].tolist() == low.tolist()
    assert edges[spans[:, 1]].tolist() == high.tolist()


def test_a_window_without_width_is_refused():
    with pytest.raises(ValueError, match="low < high"):
        elementary_intervals(np.array([1.0, 2.0]), np.array([2.0, 2.0]))


def test_the_prior_of_every_window_is_divided_among_its_intervals():
    _, (low, high), _ = scan(300)
    share, spans = prior_shares(low, high), interval_spans(low, high)
    running = np.concatenate([[0.0], np.cumsum(share)])
    assert running[spans[:, 1]] - running[spans[:, 0]] == pytest.approx(1.0, abs=1e-4)
    assert np.all(share >= 0)


def test_a_gap_between_windows_has_no_share():
    share = prior_shares(np.array([0.0, 5.0]), np.array([1.0, 7.0]))
    assert share == pytest.approx([1.0, 0.0, 1.0])


def test_toys_do_not_depend_on_the_chunk_but_on_the_seed():
    parts = scan()
    whole = scan_toys(*parts, n_toys=500, seed=3)
    pieces = scan_toys(*parts, n_toys=500, seed=3, chunk=7)
    assert np.array_equal(whole.smallest_p, pieces.smallest_p)
    assert whole.upcrossings == pieces.upcrossings
    other = scan_toys(*parts, n_toys=500, seed=4)
    assert not np.array_equal(whole.smallest_p, other.smallest_p)


@pytest.mark.parametrize("lighter", [1.0, 8.0], ids=["few", "many"])
def test_a_scan_of_one_window_in_pieces_has_the_local_p_value_of_the_window(lighter):
    """P(smallest p0 <= p) = p at every p that can occur, though the toys add up many intervals."""
    low, high = np.array([0.0, 0.2, 0.5]), np.array([1.0, 0.7, 0.9])
    rows = np.array([[1.0, 0.0], [4.0, 1.0], [0.0, 0.0], [2.0, 0.0], [3.0, 1.0]]) * lighter
    weight = np.broadcast_to([0.5, 2.0], rows.shape) / lighter**0.5
    b = Expectation(rows.sum(axis=0)[None], weight[:1], np.array([0.1, 0.3]), np.zeros(1))
    alone = (low[:1], high[:1])
    toys = scan_toys(
        Expectation(rows.sum(axis=0)[None], weight[:1], b.normalisation, np.zeros(1)),
        alone,
        (rows.sum(axis=0)[None], weight[:1]),
        n_toys=20_000,
        seed=1,
    )
    fine = scan_toys(_as_one(b, rows, weight, (low, high)), (low, high), (rows, weight), n_toys=20_000, seed=2)  # fmt: skip
    counts = np.arange(3, 25)
    p = background_counts(b, np.array([30])).tail[0, counts]
    for found in (toys, fine):
        seen = global_p_values(found, p)
        assert np.abs((seen.p - p) / seen.error).max() < 4.5


def _as_one(b, rows, weight, windows):
    """Two more windows inside the first, in which nothing can be surprising."""
    never = np.full((2, 2), 1e9)
    return Expectation(
        np.concatenate([b.rows, never]),
        np.concatenate([b.row_weight, np.full((2, 2), 1e-8)]),
        b.normalisation,
        np.zeros(3),
    )


def test_global_p_values_are_uniform_under_their_own_toys():
    parts = scan()
    toys = scan_toys(*parts, n_toys=10_000, seed=1)
    fresh = scan_toys(*parts, n_toys=10_000, seed=2)
    p = global_p_values(toys, fresh.smallest_p).p
    for alpha in (0.5, 0.2, 0.1, 0.05, 0.02):
        error = np.sqrt(2 * alpha * (1 - alpha) / 10_000)
        assert (p <= alpha).mean() < alpha + 4 * error
        assert (p <= alpha).mean() > alpha - 4 * error - 0.1 * alpha  # counts are whole numbers


def test_a_global_p_value_is_neither_below_the_local_one_nor_above_the_sum_over_windows():
    parts = scan()
    toys = scan_toys(*parts, n_toys=20_000, seed=1)
    p = stats.norm.sf([2.0, 2.5, 3.0, 3.5])
    found = global_p_values(toys, p)
    assert np.all(found.p + 4 * found.error > p * 0.5)
    assert np.all(found.p - 4 * found.error < 40 * p)
    assert np.all(np.diff(found.p) < 0)
    assert np.all(found.bound + 4 * found.error > found.p)
    assert np.all(found.bound <= 1)


def test_the_bound_is_that_of_gross_and_vitells():
    toys = ScanToys(np.array([0.1, 0.2]), upcrossings=4.0, reference_z=1.0)
    found = global_p_values(toys, [stats.norm.sf(4.0), 0.4])
    assert found.bound[0] == pytest.approx(stats.norm.sf(4.0) + 4 * np.exp(-7.5))
    assert found.bound[1] == 1.0  # below the reference there is nothing to extrapolate


def test_upcrossings_are_counted_from_below_to_above():
    """Windows that share nothing: each is above with its own probability."""
    low = np.arange(200.0)
    b = Expectation(np.full((200, 1), 1e8), np.full((200, 1), 1e-7), np.zeros(1), np.zeros(200))
    parts = (np.full((200, 1), 1e8), np.full((200, 1), 1e-7))
    toys = scan_toys(b, (low, low + 1), parts, n_toys=4000, seed=1, reference_z=1.0)
    above = stats.poisson.sf(np.arange(40) - 1, 10.0)
    q = above[above <= stats.norm.sf(1.0)].max()
    assert toys.upcrossings == pytest.approx(199 * q * (1 - q), rel=0.01)


def test_no_toy_as_extreme_still_has_an_error():
    toys = ScanToys(np.full(1000, 0.01), upcrossings=1.0, reference_z=1.0)
    found = global_p_values(toys, [1e-9])
    assert found.p[0] == 0
    assert 0.5e-3 < found.error[0] < 2e-3


def test_the_same_count_has_the_same_p_value_in_scan_and_toys():
    """The observed p0 comes from another table; rounding must not make it more extreme."""
    b, *_ = scan()
    p = local_p_values(b, np.full(40, 12))
    toys = ScanToys(np.sort(p * (1 + 1e-12)), upcrossings=1.0, reference_z=1.0)
    assert np.all(global_p_values(toys, p).p >= 1 / 40)


def test_shapes_and_numbers_of_toys_are_checked():
    b, windows, (rows, weight) = scan()
    with pytest.raises(ValueError, match="n_intervals, n_processes"):
        scan_toys(b, windows, (rows[1:], weight[1:]), n_toys=5, seed=1)
    with pytest.raises(UserError, match="0 toy scans"):
        scan_toys(b, windows, (rows, weight), n_toys=0, seed=1)
