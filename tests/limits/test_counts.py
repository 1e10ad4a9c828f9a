"""Tables of P(n | b) and P(>= n | b) against independent sums."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import integrate, stats

from limits.counts import background_counts, rows_up_to, table_holding
from limits.expectation import Expectation, known_background
from selection.errors import UserError

PROCESSES = ([2.0, 0.0, 7.5], [0.5, 3.9, 0.09])  # rows, weights of a row


def expectation(rows, weight, normalisation=(), *, copies=1, prior=1 / 3):
    u = np.zeros(len(rows))
    u[: len(normalisation)] = normalisation
    return Expectation(
        np.tile(rows, (copies, 1)), np.tile(weight, (copies, 1)), u, np.zeros(copies), prior
    )


def table(b, size):
    return background_counts(b, np.full(len(b.rows), size, dtype=np.int64))


def test_three_processes_are_the_convolution_of_scipys_negative_binomials():
    n = np.arange(200)
    total = np.ones(1)
    for rows, weight in zip(*PROCESSES, strict=True):
        total = np.convolve(total, stats.nbinom.pmf(n, rows + 1 / 3, 1 / (1 + weight)))[:200]
    found = table(expectation(*PROCESSES), 200)
    assert found.pmf[0] == pytest.approx(total, rel=1e-11)
    assert found.tail[0] == pytest.approx(1 - np.cumsum(total) + total, abs=1e-13)


def exact_tail(k1, k2, n):
    """P(>= n) of two negative binomials with w = 1/4 and 1/2, in fractions."""

    def pmf(m, k, w):
        x = w / (1 + w)
        return comb(k + m - 1, m) * x**m * (1 - x) ** k

    below = sum(
        pmf(a, k1, Fraction(1, 4)) * pmf(b, k2, Fraction(1, 2))
        for a in range(n)
        for b in range(n - a)
    )
    return float(1 - below)


@pytest.mark.parametrize("n", [1, 3, 10, 25, 40, 70])
def test_tails_keep_their_digits_however_small(n):
    b = expectation([3.0, 2.0], [0.25, 0.5], prior=0.0)
    wanted = exact_tail(3, 2, n)
    found = table(b, n + 1).tail[0, n]
    assert found == pytest.approx(wanted, rel=1e-11)
    if n == 70:
        assert wanted < 1e-25


@pytest.mark.parametrize("n", [0, 1, 60, 100, 160, 250])
def test_a_known_background_is_poisson_in_both_tails(n):
    found = table(known_background([60.0]), n + 1)
    assert found.pmf[0, n] == pytest.approx(stats.poisson.pmf(n, 60.0), rel=1e-10)
    assert found.tail[0, n] == pytest.approx(stats.poisson.sf(n - 1, 60.0), rel=1e-10)


def test_where_a_table_ends_changes_nothing_in_it():
    b = expectation(*PROCESSES, normalisation=(0.3, 0.0, 0.1))
    short, long = table(b, 12), table(b, 300)
    assert short.pmf == pytest.approx(long.pmf[:, :12], rel=1e-10)
    assert short.tail == pytest.approx(long.tail[:, :12], rel=1e-10)


@pytest.mark.parametrize(
    ("rows", "weight", "u"), [(4.0, 0.5, 0.3), (0.0, 3.9, 1.0), (3000.0, 0.1, 0.3)]
)
def test_the_log_normal_average_is_the_integral(rows, weight, u):
    b = expectation([rows], [weight], (u,))
    mean = (rows + 1 / 3) * weight
    n = int(mean + 6 * u * mean + 6 * mean**0.5) + 2

    z = np.linspace(-10, 10, 2001)
    k, p = rows + 1 / 3, 1 / (1 + weight * (1 + u) ** z)
    found = table(b, n + 1)
    for count in (0, int(mean), n):
        pmf = integrate.simpson(stats.norm.pdf(z) * stats.nbinom.pmf(count, k, p), x=z)
        tail = integrate.simpson(stats.norm.pdf(z) * stats.nbinom.sf(count - 1, k, p), x=z)
        assert found.pmf[0, count] == pytest.approx(pmf, rel=1e-9)
        assert found.tail[0, count] == pytest.approx(tail, rel=1e-9)


def test_the_table_is_what_drawn_rates_and_counts_give():
    rng = np.random.default_rng(7)
    n, u = 1_000_000, (0.2, 0.5, 0.05)
    rates = sum(
        rng.gamma(rows + 1 / 3, weight, n) * (1 + s) ** rng.standard_normal(n)
        for rows, weight, s in zip(*PROCESSES, u, strict=True)
    )
    seen = np.bincount(rng.poisson(rates), minlength=30)[:30]
    wanted = table(expectation(*PROCESSES, normalisation=u), 30).pmf[0] * n
    pulls = (seen - wanted) / np.sqrt(wanted)
    assert np.abs(pulls).max() < 4.5
    assert (pulls**2).sum() < 60


def test_a_table_holds_all_but_what_it_says():
    b = Expectation(
        np.array([[0.0, 0.0], [5.0, 0.0], [1e4, 3.0], [0.0, 0.0]]),
        np.array([[3.9, 0.1], [0.5, 3.9], [0.1, 2.0], [0.0, 0.0]]),
        np.array([0.1, 0.5]),
        np.zeros(4),
    )
    found = table_holding(b, beyond=1e-9)
    for i, n in enumerate(found.size):
        assert table(b, n + 1).tail[i, n] < 1e-9
        assert n == 8 or found.tail[i, n - 1] >= 1e-9
        assert found.pmf[i, :n].sum() == pytest.approx(1.0, abs=2e-9)


def test_masses_do_not_know_of_each_other():
    b = expectation(*PROCESSES, copies=3)
    size = np.array([5, 40, 11])
    found = background_counts(b, size)
    for i, n in enumerate(size):
        alone = table(expectation(*PROCESSES), n)
        assert np.array_equal(found.pmf[i, :n], alone.pmf[0])
        assert not found.pmf[i, n:].any()


def test_without_any_process_nothing_is_counted():
    found = table(expectation([0.0], [0.0]), 5)
    assert found.pmf[0].tolist() == found.tail[0].tolist() == [1, 0, 0, 0, 0]


def test_rows_of_a_deep_deficit_are_the_poisson_ratios():
    """e^-3000 is no number, but P(m)/P(9) is."""
    row = rows_up_to(known_background([3000.0]), np.array([9]))[0]
    wanted = stats.poisson.logpmf(np.arange(10), 3000.0)
    assert np.log(row / row[-1]) == pytest.approx(wanted - wanted[-1], rel=1e-9)


def test_logarithms_are_those_of_the_table():
    b = expectation([400.0, 2.0], [1.0, 3.9], (0.1, 0.2))
    plain = table(b, 31).pmf[0]
    b_far = expectation([4000.0, 2.0], [1.0, 3.9], (0.001, 0.2))
    assert table(b_far, 31).pmf[0].sum() < 1e-250
    row = rows_up_to(b_far, np.array([30]))[0]
    assert np.all(np.diff(np.log(row)) > 0)
    from limits.kernels import log_row

    logs = log_row(b.shape[0], b.row_weight[0], b.log_widths, 30)
    assert logs == pytest.approx(np.log(plain), rel=1e-9)


def test_too_many_counts_are_refused_with_what_to_do():
    with pytest.raises(UserError, match=r"exact sums go up to.*asymptotic"):
        table(known_background([1e6]), 1_000_100)
