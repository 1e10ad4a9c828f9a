"""Toy scans, compiled: one number per elementary interval, all windows from the same numbers.

    n_i ~ Poisson(sum_p e^(kappa_p z_p) g_ip),  g_ip ~ Gamma(k_ip, w_ip),  z_p ~ N(0, 1) per toy
        = sum_p of Poisson(k_ip ln(1+w)) clusters, each of a logarithmic number of events

The second line is the same distribution (a negative binomial is a Poisson number of such
clusters), and a third of the work where little is expected: most intervals have no cluster.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from models.results import Floats
from selection.compiled import inner

FEW = 2.0  # clusters expected in an interval, below which they are drawn one by one


@inner()
def clustered(rng: np.random.Generator, rate: Floats, log: Floats, total: float) -> int:
    """A sum of negative binomials, as Poisson(k ln(1+w)) clusters of logarithmic size.

    rate (n_processes,) is k ln(1+w), log is ln(1+w). Size: Kemp's second accelerated generator
    (Appl. Stat. 30 (1981) 249).
    """
    n = 0
    for _ in range(rng.poisson(total)):
        at, p = rng.random() * total, 0
        while p < len(rate) - 1 and at >= rate[p]:
            at -= rate[p]
            p += 1
        v = rng.random()
        if v >= -math.expm1(-log[p]):  # x = w/(1+w)
            n += 1
            continue
        q = -math.expm1(-log[p] * rng.random())
        if v <= q * q:
            n += int(1.0 + math.log(v) / math.log(q)) if v > 0.0 else 1
        else:
            n += 1 if v > q else 2
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def fill_toys(
    rng: np.random.Generator,
    model: tuple[Floats, Floats, Floats],
    spans: np.ndarray,
    tail: Floats,
    limits: np.ndarray,
    found: Floats,
) -> None:
    """found (n_toys, 2): smallest P(>= n) of a scan, and how often it rises to the reference level.

    model: k, w (n_intervals, n_processes) and kappa (n_processes,). spans (n_masses, 2): intervals
    [first, stop) of each window. limits (n_masses, 2): counts in its row of the table, and the
    count that reaches the level. Toys are drawn one after the other from one stream of random
    numbers: it does not matter in how many calls.
    """
    k, w, kappa = model
    n_intervals, n_processes = k.shape
    before = np.zeros(n_intervals + 1, dtype=np.int64)  # events below each edge
    scale, rate = np.empty(n_processes), np.empty(n_processes)
    weight, log = np.empty(n_processes), np.empty(n_processes)
    for toy in range(len(found)):
        for p in range(n_processes):
            scale[p] = math.exp(kappa[p] * rng.standard_normal())
            weight[p] = -1.0
        for i in range(n_intervals):
            total = 0.0
            for p in range(n_processes):
                if w[i, p] != weight[p]:  # mostly one weight for all intervals of a process
                    weight[p] = w[i, p]
                    log[p] = math.log1p(scale[p] * w[i, p])
                rate[p] = k[i, p] * log[p]
                total += rate[p]
            if total < FEW:
                n = clustered(rng, rate, log, total)
            else:
                mean = 0.0
                for p in range(n_processes):
                    if k[i, p] > 0.0:
                        mean += scale[p] * w[i, p] * rng.standard_gamma(k[i, p])
                n = rng.poisson(mean)
            before[i + 1] = before[i] + n
        smallest, crossings, was_above = 1.0, 0, True
        for mass in range(len(spans)):
            n = before[spans[mass, 1]] - before[spans[mass, 0]]
            smallest = min(smallest, tail[mass, min(n, limits[mass, 0] - 1)])
            is_above = n >= limits[mass, 1]
            crossings += is_above and not was_above
            was_above = is_above
        found[toy, 0], found[toy, 1] = smallest, crossings
