"""Compiled sums over counts: all loops over masses, counts and nodes.

    NB(m; k, w) = Gamma(k+m)/(Gamma(k) m!) x^m (1-x)^k,  x = w/(1+w)   Poisson averaged over a gamma
    average over a log-normal:  sum_j omega_j f(e^(kappa z_j)),  z_j = j h,  omega_j ~ e^(-z_j^2/2)
    P(n) = sum_m P_1(m) P_2(n-m),   P(>= n) = P_1(>= n) + sum_{m<n} P_1(m) P_2(>= n-m)

The trapezoidal rule in z replaces Gauss-Hermite: for a Gaussian times an analytic function its
error is exp(-2 pi^2 s^2/h^2), s the width of the product, at every z alike, so that h = 3 s/4 gives
all digits in the far tail too, where Gauss-Hermite of any fixed order leaves a comb. All terms are
positive: tails keep their relative accuracy however small they are. A table may end at any count,
because P(>= n) needs nothing above n but one continued fraction per process (DLMF 8.17.22).

All of it is in this one file: numba's disk cache notices changes of the file a function is in, not
of those it calls.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from models.results import Floats
from selection.compiled import inner

Z_BACKGROUND = 10.0  # beyond it lies 1e-23 of a Gaussian
Z_SIGNAL = 7.0  # 1e-12: limits are wanted to 1e-9
STEP_BACKGROUND = 0.75  # error 2 exp(-2 pi^2/0.75^2) = 1e-15
STEP_SIGNAL = 1.0  # error 2 exp(-2 pi^2) = 5e-9 of what curves most, far less of a running sum
BIG, LOG_BIG = 1e50, math.log(1e50)


@inner()
def filled(n: int, value: float) -> Floats:
    """n times the same; numpy's functions for it are three for the compiler."""
    out = np.empty(n)
    for i in range(n):
        out[i] = value
    return out


@inner()
def log_normal_nodes(
    kappa: float, curvature: float, step: float, z_max: float
) -> tuple[Floats, Floats]:
    """e^(kappa z_j) and omega_j (sum 1) for functions of -d2(ln f)/d(ln scale)2 <= curvature."""
    if kappa == 0.0:
        return filled(1, 1.0), filled(1, 1.0)
    h = step / math.sqrt(1.0 + kappa * kappa * curvature)
    half = math.ceil(z_max / h)
    scale, omega, total = np.empty(2 * half + 1), np.empty(2 * half + 1), 0.0
    for j in range(2 * half + 1):
        z = h * (j - half)
        scale[j], omega[j] = math.exp(kappa * z), math.exp(-0.5 * z * z)
        total += omega[j]
    for j in range(2 * half + 1):
        omega[j] /= total
    return scale, omega


@inner()
def normalisation_nodes(k: float, w: float, kappa: float, size: int) -> tuple[Floats, Floats]:
    """Nodes for negative binomials up to `size`: -d2 ln NB(m)/d(ln w)2 = (k+m) x (1-x).

    The integrand lives between x of the nominal weight and the x that fits m best.
    """
    nominal, best = w / (1.0 + w), size / (size + k)
    x = min(max(0.5, min(nominal, best)), max(nominal, best))
    return log_normal_nodes(kappa, (k + size) * x * (1.0 - x), STEP_BACKGROUND, Z_BACKGROUND)


@inner()
def tail_over_term(a: float, k: float, x: float) -> float:
    """P(>= a)/P(a) of a negative binomial, a above its mean: continued fraction of I_x(a, k)."""
    tiny = 1e-300
    value, c, d = 1.0, 1.0, 0.0  # modified Lentz: value = 1/(1 + d1/(1 + d2/(1 + ...)))
    for i in range(1, 20_000):
        m = i // 2
        if i % 2 == 1:
            term = -(a + m) * (a + k + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (k - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 + term * d
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = 1.0 + term / c
        c = c if abs(c) > tiny else tiny
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return 1.0 / value


@inner()
def process_counts(k: float, w: float, kappa: float, size: int) -> tuple[Floats, Floats]:
    """P(m) and P(>= m), m < size, of one process."""
    pmf, tail, rise = filled(size, 0.0), np.empty(size), np.empty(size)
    for m in range(size):
        rise[m] = (k + m) / (m + 1)
    scale, omega = normalisation_nodes(k, w, kappa, size)
    above = 0.0  # P(>= size)
    for j in range(len(scale)):
        events = w * scale[j]
        x = events / (1.0 + events)
        log_unit = -k * math.log1p(events)
        unit, term, below = omega[j] * math.exp(log_unit), 1.0, 0.0
        for m in range(size):
            pmf[m] += term * unit
            below += term * unit
            term *= rise[m] * x
            if term > BIG:  # e^-b of many events would be no number
                term /= BIG
                log_unit += LOG_BIG
                unit = omega[j] * math.exp(log_unit)
        if x * (size + k + 2) < size + 1:
            above += term * unit * tail_over_term(size, k, x)
        else:
            above += max(0.0, omega[j] - below)
    for m in range(size - 1, -1, -1):
        above += pmf[m]
        tail[m] = above
    return pmf, tail


@njit(cache=True, nogil=True, error_model="numpy")
def fill_tables(
    k: Floats, w: Floats, kappa: Floats, size: np.ndarray, pmf: Floats, tail: Floats
) -> None:
    """P(n | b) and P(>= n | b) of all processes together, for each mass up to its size."""
    for i in range(len(size)):
        n = size[i]
        total, more = filled(n, 0.0), filled(n, 0.0)
        total[0] = more[0] = 1.0
        empty = True
        for p in range(k.shape[1]):
            if k[i, p] * w[i, p] == 0.0:
                continue
            one, one_more = process_counts(k[i, p], w[i, p], kappa[p], n)
            if empty:
                total, more, empty = one, one_more, False
                continue
            both, both_more = filled(n, 0.0), one_more.copy()
            for m in range(n):
                if one[m] > 0.0:
                    for rest in range(n - m):
                        both[m + rest] += one[m] * total[rest]
                    for rest in range(1, n - m):
                        both_more[m + rest] += one[m] * more[rest]
            total, more = both, both_more
        for m in range(n):
            pmf[i, m], tail[i, m] = total[m], more[m]


@inner()
def log_of_sum(a: float, b: float) -> float:
    if max(a, b) == -np.inf:
        return -np.inf
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(cache=True, nogil=True, error_model="numpy")
def log_row(k: Floats, w: Floats, kappa: Floats, n: int) -> Floats:
    """ln P(m | b), m <= n, of one mass: where P itself is too small for a number."""
    total = filled(n + 1, -np.inf)
    total[0] = 0.0
    for p in range(len(k)):
        if k[p] * w[p] == 0.0:
            continue
        scale, omega = normalisation_nodes(k[p], w[p], kappa[p], n + 1)
        one, both = filled(n + 1, -np.inf), filled(n + 1, -np.inf)
        for j in range(len(scale)):
            events = w[p] * scale[j]
            term = math.log(omega[j]) - k[p] * math.log1p(events)
            for m in range(n + 1):
                one[m] = log_of_sum(one[m], term)
                term += math.log((k[p] + m) / (m + 1) * events / (1.0 + events))
        for m in range(n + 1):
            for rest in range(n + 1 - m):
                both[m + rest] = log_of_sum(both[m + rest], one[m] + total[rest])
        total = both
    return total


@inner()
def up_to(pmf: Floats, n: int) -> tuple[Floats, Floats]:
    """P(m)/P(<= n) and P(<= m)/P(<= n), m <= n; pmf up to a factor."""
    share, below, total = np.empty(n + 1), np.empty(n + 1), 0.0
    for m in range(n + 1):
        total += pmf[m]
        below[m] = total
    for m in range(n + 1):
        share[m], below[m] = pmf[m] / total, below[m] / total
    return share, below


@inner()
def excess_ratio(
    s: float, n: int, share: Floats, below: Floats, scale: Floats, omega: Floats
) -> tuple[float, float]:
    """P(<= n | s+b)/P(<= n | b) and minus its slope in s.

    share (n+1,) is P(m | b)/P(<= n | b), below its running sum: no 0/0 at any deficit.
    """
    ratio, slope = 0.0, 0.0
    for j in range(len(scale)):
        mu = s * scale[j]
        top = min(n, int(mu))
        first = math.exp(top * math.log(mu) - mu - math.lgamma(top + 1.0)) if mu > 0 else 1.0
        part, falling, term = 0.0, 0.0, first
        for signal in range(top, -1, -1):
            part += term * below[n - signal]
            falling += term * share[n - signal]
            if term < 1e-18 * part:
                break
            term *= signal / mu if signal else 0.0
        term = first
        for signal in range(top + 1, n + 1):
            term *= mu / signal
            part += term * below[n - signal]
            falling += term * share[n - signal]
            if term < 1e-18 * part:
                break
        ratio += omega[j] * part
        slope += omega[j] * scale[j] * falling
    return ratio, slope


@inner()
def solved_limit(pmf: Floats, n: int, alpha: float, kappa: float, start: float) -> float:
    """s where the ratio is alpha; pmf (> n,) up to a factor.

    Newton on ln(ratio), which is concave without nuisances, inside a bracket.
    """
    share, below = up_to(pmf, n)
    scale, omega = log_normal_nodes(kappa, n + 10.0, STEP_SIGNAL, Z_SIGNAL)
    low, high, s = 0.0, np.inf, max(start, 1e-3)
    for _ in range(200):
        ratio, slope = excess_ratio(s, n, share, below, scale, omega)
        if ratio > alpha:
            low = s
        else:
            high = s
        new = s + ratio * math.log(ratio / alpha) / slope if ratio > 0 and slope > 0 else -1.0
        if abs(new - s) <= 1e-7 * s:  # the next step would move by 1e-14
            return new
        if not low < new < high:
            new = 2.0 * s + 1.0 if high == np.inf else 0.5 * (low + high)
        s = new
    return s


@inner()
def first_guess(pmf: Floats, n: int) -> float:
    total, mean = 0.0, 0.0
    for m in range(n + 1):
        total += pmf[m]
        mean += m * pmf[m]
    return n - mean / total + 1.3 * math.sqrt(n + 1.0) + 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def fill_limits(
    pmf: Floats, counts: np.ndarray, alpha: float, kappa: Floats, limits: Floats
) -> None:
    """Limit of each mass at its count; rows of pmf up to a factor."""
    for i in range(len(counts)):
        guess = first_guess(pmf[i], counts[i])
        limits[i] = solved_limit(pmf[i], counts[i], alpha, kappa[i], guess)


@inner()
def cubic(x: float, y: Floats) -> float:
    """y at 0, 1, 2, ... continued to x: polynomial through the four points nearest to it."""
    begin = min(max(int(x) - 1, 0), len(y) - 4)
    value = 0.0
    for a in range(4):
        part = y[begin + a]
        for b in range(4):
            if a != b:
                part *= (x - begin - b) / (a - b)
        value += part
    return value


@inner()
def quantile(pmf: Floats, share: float) -> int:
    """Smallest n with P(<= n) >= share."""
    below = 0.0
    for n in range(len(pmf)):
        below += pmf[n]
        if below >= share:
            return n
    return len(pmf) - 1


@njit(cache=True, nogil=True, error_model="numpy")
def fill_expected(
    pmf: Floats, size: np.ndarray, means: Floats, options: Floats, kappa: Floats, found: Floats
) -> None:
    """found (n_masses, 2 + n_quantiles): mean, Asimov, and the limits at quantiles of n.

    options: alpha, probability that may be left out on either side, quantiles. Limits are exact
    at the quantiles and around the mean of n; for the mean limit they are computed every sigma/4
    where sigma is large and joined by cubics.
    """
    alpha, left_out = options[0], options[1]
    for i in range(len(size)):
        row = pmf[i, : size[i]]
        first, last = quantile(row, left_out), quantile(row, 1.0 - left_out)
        stride = max(1, (quantile(row, 0.84) - quantile(row, 0.16)) // 8)
        knots = np.empty(max(4, (last - first + stride - 1) // stride + 1))
        guess = first_guess(row, first)
        for knot in range(len(knots)):
            n = min(first + knot * stride, size[i] - 1)
            knots[knot] = solved_limit(row, n, alpha, kappa[i], guess)
            guess = 2 * knots[knot] - knots[knot - 1] if knot else knots[0]
        total, mean = 0.0, 0.0
        for n in range(first, last + 1):
            total += row[n]
            mean += row[n] * cubic((n - first) / stride, knots)
        found[i, 0] = mean / total
        begin = min(max(int(means[i]) - 1, 0), size[i] - 4)
        near = np.empty(4)
        for n in range(4):
            guess = first_guess(row, begin + n)
            near[n] = solved_limit(row, begin + n, alpha, kappa[i], guess)
        found[i, 1] = cubic(means[i] - begin, near)
        for q in range(2, len(options)):
            n = quantile(row, options[q])
            found[i, q] = solved_limit(row, n, alpha, kappa[i], first_guess(row, n))


@njit(cache=True, nogil=True, error_model="numpy")
def fill_smallest(
    pmf: Floats, size: np.ndarray, signal: Floats, alpha: float, kappa: Floats, found: np.ndarray
) -> None:
    """Smallest n with P(<= n | s+b) >= alpha P(<= n | b), which rises with n."""
    for i in range(len(size)):
        low, high = -1, size[i] - 1  # the last count allows s: the size is chosen so
        while high - low > 1:
            n = (low + high) // 2
            share, below = up_to(pmf[i], n)
            scale, omega = log_normal_nodes(kappa[i], n + 10.0, STEP_SIGNAL, Z_SIGNAL)
            ratio, _ = excess_ratio(signal[i], n, share, below, scale, omega)
            if ratio >= alpha:
                high = n
            else:
                low = n
        found[i] = high
