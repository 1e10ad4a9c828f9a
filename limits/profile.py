"""Binned likelihood with everything but the signal profiled away: compiled.

    lambda_j = s e^(kappa_s alpha_s) t_j + sum_p gamma_jp b_jp e^(kappa_p alpha_p)
    ln L = sum_j [n_j ln lambda_j - lambda_j + sum_p (a_jp ln gamma_jp - tau_jp gamma_jp)]
           - sum (alpha - alpha_0)^2 / 2

s: signal events; t_j: their share in bin j; gamma: simulation statistics, one per bin and process,
with a = tau = k of the gamma in real data; alpha: normalisations. (HistFactory: shapesys, normsys.)

gamma is solved for in closed form but for one number per bin, xi = 1 - n/lambda:
    gamma_p = a_p/(tau_p + beta_p xi),   lambda(xi) = n/(1 - xi)        one root, G falls with xi
so that Newton's method works on s and the few alphas only, with exact second derivatives.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from models.results import Floats
from selection.compiled import inner

STEPS = 100


@inner()
def log_ratio(y: float) -> float:
    """y/(1+y) - ln(1+y): what a gamma that moves from its best value costs; -y^2/2 for small y."""
    if abs(y) < 1e-3:
        return y * y * (-0.5 + y * (2.0 / 3.0 + y * (-0.75 + 0.8 * y)))
    return y / (1.0 + y) - math.log1p(y)


@inner()
def solved_xi(n: float, signal: float, beta: Floats, tau: Floats, aux: Floats) -> float:
    """Root of G = signal + sum a beta/(tau + beta xi) - n/(1 - xi); nan if n > 0 cannot come."""
    if n == 0.0:
        return 1.0
    low, high, events = -np.inf, 1.0, 0.0
    for p in range(len(beta)):
        if beta[p] > 0.0:
            low = max(low, -tau[p] / beta[p])
            events += beta[p]
    if low == -np.inf:
        return 1.0 - n / signal if signal > 0.0 else np.nan
    xi = max(1.0 - n / (signal + events), 0.5 * low)
    for _ in range(STEPS):
        g, slope = signal - n / (1.0 - xi), -n / (1.0 - xi) ** 2
        for p in range(len(beta)):
            if beta[p] > 0.0:
                part = tau[p] + beta[p] * xi
                g += aux[p] * beta[p] / part
                slope -= aux[p] * (beta[p] / part) ** 2
        if g > 0.0:
            low = xi
        else:
            high = xi
        new = xi - g / slope
        if abs(new - xi) <= 1e-14 * (1.0 - xi):
            return new
        xi = new if low < new < high else 0.5 * (low + high)
    return xi


@inner()
def log_likelihood(
    theta: Floats,
    data: tuple[Floats, Floats, Floats],
    model: tuple[Floats, Floats, Floats, Floats],
    slope: Floats,
    curvature: Floats,
    gamma: Floats,
) -> float:
    """ln L but for a constant of the data; fills slope (D,), curvature (D, D), gamma (bins, P).

    theta: s, alpha_s, alpha_p. data: n (bins,), aux (bins, P), alpha_0 (1 + P,). model: t (bins,),
    b, tau (bins, P), kappa (1 + P,).
    """
    n, aux, centre = data
    shape, b, tau, kappa = model
    n_bins, n_processes = b.shape
    D = len(theta)
    value = 0.0
    slope[:] = 0.0
    curvature[:, :] = 0.0
    beta, direct, moved = np.empty(n_processes), np.empty(D), np.empty(D)
    scale = math.exp(kappa[0] * theta[1])
    for j in range(n_bins):
        signal = theta[0] * scale * shape[j]
        for p in range(n_processes):
            beta[p] = b[j, p] * math.exp(kappa[p + 1] * theta[p + 2])
        xi = solved_xi(n[j], signal, beta, tau[j], aux[j])
        if xi != xi:
            return -np.inf
        direct[0], direct[1] = scale * shape[j], kappa[0] * signal  # d lambda/d theta, gamma fixed
        moved[0], moved[1] = direct[0], direct[1]  # dG/d theta
        rate, fall = signal, -n[j] / (1.0 - xi) ** 2 if n[j] > 0.0 else -np.inf
        for p in range(n_processes):
            part = tau[j, p] + beta[p] * xi
            gamma[j, p] = aux[j, p] / part if beta[p] > 0.0 else 1.0
            events = beta[p] * gamma[j, p]
            rate += events
            direct[p + 2] = kappa[p + 1] * events
            moved[p + 2] = direct[p + 2] * (tau[j, p] / part if beta[p] > 0.0 else 1.0)
            if beta[p] > 0.0:
                fall -= aux[j, p] * (beta[p] / part) ** 2
                value += aux[j, p] * log_ratio(beta[p] * xi / tau[j, p])
                curvature[p + 2, p + 2] -= xi * kappa[p + 1] * moved[p + 2]
        value += (n[j] * math.log(rate) if n[j] > 0.0 else 0.0) - rate
        curvature[1, 1] -= xi * kappa[0] * direct[1]
        curvature[0, 1] -= xi * kappa[0] * direct[0]
        curvature[1, 0] -= xi * kappa[0] * direct[0]
        for a in range(D):
            slope[a] -= xi * direct[a]
            for c in range(D):
                curvature[a, c] += moved[a] * moved[c] / fall
    for a in range(1, D):
        value -= 0.5 * (theta[a] - centre[a - 1]) ** 2
        slope[a] -= theta[a] - centre[a - 1]
        curvature[a, a] -= 1.0
    return value


@inner()
def newton_step(slope: Floats, curvature: Floats, first: int) -> Floats:
    """-curvature^-1 slope of the parameters from `first` on, by Cholesky; a ridge if need be."""
    D = len(slope)
    step, root = np.zeros(D), np.zeros((D, D))
    ridge = 0.0
    while True:
        good = True
        for a in range(first, D):
            for c in range(first, a + 1):
                total = -curvature[a, c]
                if a == c:
                    total += ridge * abs(total) + ridge
                for m in range(first, c):
                    total -= root[a, m] * root[c, m]
                if a == c:
                    good = good and total > 1e-14
                    root[a, a] = math.sqrt(max(total, 1e-14))
                else:
                    root[a, c] = total / root[c, c]
        if good:
            break
        ridge = max(1e-6, 10.0 * ridge)
    for a in range(first, D):
        total = slope[a]
        for c in range(first, a):
            total -= root[a, c] * step[c]
        step[a] = total / root[a, a]
    for a in range(D - 1, first - 1, -1):
        for c in range(a + 1, D):
            step[a] -= root[c, a] * step[c]
        step[a] /= root[a, a]
    return step


@njit(cache=True, nogil=True, error_model="numpy")
def fill_fits(
    theta: Floats,
    free: np.ndarray,
    data: tuple[Floats, Floats, Floats],
    model: tuple[Floats, Floats, Floats, Floats],
    found: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Moves theta (n_masses, D) to the largest ln L; found: ln L, slope, curvature, gamma there.

    free (n_masses,): is the signal fitted, or fixed? A free one stays positive: it loses at most
    half of itself in a step. ln L = -inf where events were seen that cannot come.
    """
    D = theta.shape[1]
    trial, step = np.empty(D), np.empty(D)
    for i in range(len(theta)):
        first = 0 if free[i] else 1
        here = (data[0][i], data[1][i], data[2][i])
        law = (model[0][i], model[1][i], model[2][i], model[3][i])
        slope, curvature, gamma = found[1][i], found[2][i], found[3][i]
        value, length = -np.inf, 1.0
        trial[:] = theta[i]
        for _ in range(STEPS):
            new = log_likelihood(trial, here, law, slope, curvature, gamma)
            if new == -np.inf and value == -np.inf:
                break
            if new < value - 1e-12 * abs(value):
                length *= 0.5
            else:
                value = new
                theta[i] = trial
                step[:] = newton_step(slope, curvature, first)
                gain, length = 0.0, 1.0
                for a in range(first, D):
                    gain += step[a] * slope[a]
                if not gain > 1e-13:
                    break
                if first == 0 and theta[i, 0] + step[0] < 0.5 * theta[i, 0]:
                    length = -0.5 * theta[i, 0] / step[0]
            for a in range(D):
                trial[a] = theta[i, a] + length * step[a]
        found[0][i] = value
