"""Best cut per window: the exact scan against 200 steps with sparse matrices.

    python benchmarks/cut_scan.py [--events 5400000] [--windows 45] [--threads 2]

The 200-step scan is the straightforward one: a sparse (n_windows, n_events) matrix of weights,
built once and not timed, times the 0/1 columns of passing events at 200 cuts, 20 cuts at a time;
as torch COO (the published way) and as scipy CSR, one cut at a time (the fastest form of the same
idea we found). The torch form is timed on 40 of the 200 cuts and multiplied by five.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
import torch
from scipy import sparse

from models.evaluation.cuts import optimal_cuts
from models.evaluation.window_events import WindowEvents, window_events, window_sums
from models.sensitivity import PunziFormula, punzi_sensitivity
from selection.table import EventTable
from selection.windows import MassWindows

STEPS = np.linspace(0, 1, 200, endpoint=False)
SIGMA_MIN = partial(punzi_sensitivity, formula=PunziFormula(50.0))


def synthetic(n: int, n_windows: int, rng: np.random.Generator) -> tuple[EventTable, MassWindows]:
    """Events in windows of the published widths; 2.5 % signal, as in the paper."""
    mass = np.linspace(0.1, 8.9, n_windows)
    sigma = np.interp(
        mass, [0.1, 1.6, 4.1, 6.1, 7.6, 8.6, 8.9], [0.23, 0.31, 0.27, 0.19, 0.10, 0.066, 0.06]
    )
    windows = MassWindows(mass, sigma, 2.0, squared=True)
    is_signal = rng.random(n) < 0.025
    own = rng.integers(0, n_windows, n)
    inside = rng.uniform(-2, 2, n) * sigma[own]
    table = EventTable(
        features=np.zeros((n, 4), np.float32),
        axis=mass[own] ** 2 + inside,
        weight=np.where(is_signal, 1 / 20_000, rng.choice([0.05, 0.111, 0.0167], n)),
        signal_mass_gev=np.where(is_signal, mass[own], np.nan),
        sample=np.zeros(n, np.int16),
        key=np.zeros(n, np.uint64),
        identity=np.zeros(n, np.uint32),
        sample_names=("synthetic",),
        feature_names=("a", "b", "c", "d"),
    )
    return table, windows


def matrices(events: WindowEvents, n: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    span = (events.background_stop - events.background_first).astype(np.int64)
    entry = np.repeat(np.arange(len(span)), span)
    offset = np.arange(len(entry)) - np.repeat(np.cumsum(span) - span, span)
    shape = (events.n_windows, n)
    background = sparse.csr_array(
        (
            events.background_weight[entry].astype(np.float32),
            (events.background_first[entry] + offset, events.background_row[entry]),
        ),
        shape=shape,
    )
    own = np.repeat(np.arange(events.n_windows), np.diff(events.signal_start))
    signal = sparse.csr_array(
        (events.signal_weight.astype(np.float32), (own, events.signal_row)), shape=shape
    )
    return signal, background


def torch_coo(matrix: sparse.csr_array) -> torch.Tensor:
    coo = matrix.tocoo()
    index = torch.from_numpy(np.stack(coo.coords).astype(np.int64))
    return torch.sparse_coo_tensor(
        index, torch.from_numpy(coo.data), coo.shape, check_invariants=False
    ).coalesce()


def best_of(cuts: np.ndarray, yields, at_once: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Smallest sigma_min (n_windows,) over the cuts; yields(cuts) -> two (n_windows, n) arrays."""
    sigma = [SIGMA_MIN(*yields(some)) for some in np.split(cuts, len(cuts) // at_once)]
    return np.concatenate(sigma, axis=1).min(axis=1)


def seconds(call, repeat: int) -> tuple[float, np.ndarray]:  # type: ignore[no-untyped-def]
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - begin)
    return min(times), result


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=5_400_000)
    parser.add_argument("--windows", type=int, default=45)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rng = np.random.default_rng(1)
    table, windows = synthetic(options.events, options.windows, rng)
    centre = np.where(table.is_signal, 3.0, -4.0)
    score = (1 / (1 + np.exp(-rng.normal(centre, 3.0)))).astype(np.float32)
    events = window_events(table, windows)
    signal, background = matrices(events, len(table))
    pairs = background.nnz / len(events.background_row)
    print(f"{len(table):,} events, {len(windows)} windows, {pairs:.2f} windows per event")

    def exact(of: WindowEvents) -> np.ndarray:
        return optimal_cuts(of, score, sigma_min=SIGMA_MIN, threads=options.threads)

    exact(events)  # compiles
    t_exact, cuts = seconds(lambda: exact(events), 5)
    sums = window_sums(events, score, cuts)
    best = SIGMA_MIN(sums.signal, sums.background)

    s_coo, b_coo = torch_coo(signal), torch_coo(background)

    def by_torch(cut: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        passed = torch.from_numpy(score)[:, None] >= torch.from_numpy(cut.astype(np.float32))
        return tuple(torch.sparse.mm(m, passed.float()).double().numpy() for m in (s_coo, b_coo))

    def by_scipy(cut: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        passed = (score[:, None] >= cut).astype(np.float32)
        return tuple((m @ passed).astype(float) for m in (signal, background))

    negative = events.background_weight.copy()
    negative[0] = -1e-9
    general = WindowEvents(**{**vars(events), "background_weight": negative})
    t_general, _ = seconds(lambda: exact(general), 1)
    rows = [("exact, weights >= 0", t_exact, best), ("exact, any weights", t_general, best)]
    t_csr, csr = seconds(lambda: best_of(STEPS, by_scipy, 1), 1)
    t_coo, _ = seconds(lambda: best_of(STEPS[80:120], by_torch, 20), 1)
    rows += [("200 steps, scipy CSR", t_csr, csr), ("200 steps, torch COO", 5 * t_coo, csr)]
    print(f"{'scan':24}{'seconds':>10}{'ratio':>8}   sigma_min over exact")
    for name, t, sigma in rows:
        print(f"{name:24}{t:10.3f}{t / t_exact:8.1f}   {np.exp(np.mean(np.log(sigma / best))):.4f}")


if __name__ == "__main__":
    main()
