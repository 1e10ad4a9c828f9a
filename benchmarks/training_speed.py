"""Speed of training: the fused sweep against eager torch, interleaved in one run.

    python benchmarks/training_speed.py [--events 5400000] [--rounds 5] [--threads 2]

Eager is what a physicist writes first: the network on all events, a sparse matrix (windows x
events) of the weights, autograd. It is given every advantage that costs it no lines: its batches of
1e5 and their matrices are made once, before the clock starts. Turns alternate, so that a busy
machine slows both; ratios are of medians, eager with one or all of torch's threads, whichever is
faster. The limit is the time that the tanh and multiply-adds of one sweep take from registers and
first-level cache, with no memory, no sums and no Python. With 8 and 16 features only the fused
forms run, beside those with four: one sweep, one epoch in batches of 1e5 and one of BCE.
"Punzi 1e5" has stratified batches, "random 1e5" the paper's, dealt anew in every epoch.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from memory import status_bytes
from numba import njit
from torch import Tensor, nn

from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.training.adam import memory_of
from models.training.batches import (
    random_batches,
    room_for,
    shuffled_in_groups,
    stratified_batches,
)
from models.training.bce_epoch import bce_rows, bce_weights, fused_bce_epoch
from models.training.deal import random_order
from models.training.ensemble import Member, train_ensemble
from models.training.group_sums import Map, group_sums
from models.training.kernels import _tanh
from models.training.losses import punzi_loss
from models.training.punzi_epoch import fused_punzi_epoch
from models.training.settings import DEFAULT
from models.training.threads import shared_map
from models.training.training_set import TrainingSet, training_sets
from selection.table import EventTable, Folds
from selection.windows import MassWindows

MASSES = np.round(np.arange(0.1, 9.0, 0.2), 1)
WINDOWS = MassWindows(MASSES, 0.30 - 0.025 * MASSES, 2.0, squared=True)
FORMULA = PunziFormula(luminosity_inv_fb=50.0)
LOSS = punzi_loss(FORMULA, power=None)
TURN_SECONDS = 0.5
ENSEMBLE = 4  # networks
TANH_PER_EVENT = 13  # 8 + 4 neurons; sigmoid counted as a tanh
FMA_PER_EVENT, FMA_PER_FEATURE = 108, 16  # 172 with four features: 68 forward, 104 backward
FEATURE_NUMBERS = (4, 8, 16)
TARGETS = {"Punzi mono": 25, "Punzi 1e5": 18, "random 1e5": 10, "Adam 1e5": 18, "BCE 2048": 7}
# eager's batches are random, dealt before the clock starts, and its steps are plain
EAGER = {"random 1e5": "Punzi 1e5", "Adam 1e5": "Punzi 1e5"}


def synthetic_events(n: int) -> TrainingSet:
    """n events in the windows, 2.5 % of them signal, with the separation of a simple toy."""
    rng = np.random.default_rng(1)
    n_signal = n // 40
    mass = np.append(rng.choice(MASSES, n_signal), np.full(n - n_signal, np.nan))
    mass2 = rng.choice(MASSES, n) ** 2 + rng.uniform(-0.1, 0.1, n)
    mass2[:n_signal] = mass[:n_signal] ** 2
    features = rng.random((n, 4), dtype=np.float32) * 5
    features[:n_signal] **= np.float32(0.8)
    weight = np.append(np.full(n_signal, 20.0 / n_signal), rng.exponential(1e5 / n, n - n_signal))
    key = rng.integers(0, 2**64, n, dtype=np.uint64)
    table = EventTable(
        features,
        mass2,
        weight,
        mass,
        np.zeros(n, np.int16),
        key,
        (key >> np.uint64(32)).astype(np.uint32),
        ("toy",),
        tuple("abcd"),
    )
    return training_sets(table, WINDOWS, luminosity_inv_fb=50.0, folds=Folds(1, 0.0))[0]


def window_matrix(data: TrainingSet, rows: np.ndarray, factor: float) -> Tensor:
    """Sparse (2 x n_masses, len(rows)): weights of signal in its own, background in all windows."""
    n = data.n_masses
    group = np.repeat(np.arange(data.n_groups), np.diff(data.group_start))[rows]
    membership = np.zeros((2 * n, data.n_groups), bool)
    membership[:n, :n] = np.eye(n, dtype=bool)
    membership[n:, n:] = data.in_window > 0
    of_group, window = np.nonzero(membership.T)  # windows of each group, one group after the other
    per_group = np.bincount(of_group, minlength=data.n_groups)
    first, count = (np.cumsum(per_group) - per_group)[group], per_group[group]
    column = np.repeat(np.arange(len(rows)), count)
    nth = np.arange(len(column)) - np.repeat(np.cumsum(count) - count, count)
    line = window[np.repeat(first, count) + nth]
    value = torch.from_numpy(np.repeat(data.weight[rows] * factor, count).astype(np.float32))
    index = torch.from_numpy(np.stack([line, column]))
    return torch.sparse_coo_tensor(
        index, value, (2 * n, len(rows)), check_invariants=False
    ).coalesce()


def eager_step(
    network: nn.Module, x: Tensor, matrix: Tensor, optimizer: torch.optim.Optimizer
) -> float:
    sums = torch.sparse.mm(matrix, network(x)[:, None])[:, 0]
    eps, B = sums.chunk(2)
    a, b = FORMULA.a, FORMULA.b
    root = torch.sqrt(B)
    N = b**2 / 2 + a * root + b / 2 * torch.sqrt(b**2 + 4 * a * root + 4 * B)
    loss = torch.mean(N / (eps * FORMULA.luminosity_inv_fb))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def with_features(data: TrainingSet, n_features: int) -> TrainingSet:
    """The same events with more features, which tell nothing."""
    more = n_features - len(data.features)
    noise = np.random.default_rng(2).random((more, len(data)), dtype=np.float32)
    return replace(data, features=np.concatenate([data.features, noise]))


def register_limits(n: int, pool: ThreadPoolExecutor, threads: int) -> dict[int, float]:
    """Number of features -> seconds for tanh and multiply-adds of n events, all threads at work."""

    @njit(nogil=True, fastmath=True, error_model="numpy")
    def tanh_only(x: np.ndarray, y: np.ndarray, repeat: int) -> None:
        for _ in range(repeat):
            for e in range(x.size):
                y[e] = _tanh(x[e])
            x[0] += np.float32(1e-6)

    @njit(nogil=True, fastmath={"contract"}, error_model="numpy")
    def fma_only(x: np.ndarray, y: np.ndarray, repeat: int) -> None:
        for _ in range(repeat):
            for e in range(x.size):
                u, v = x[e], y[e]
                for _ in range(32):
                    v = v * u + np.float32(0.1)
                y[e] = v

    def seconds(work: Callable[..., None], repeat: int) -> float:
        def one(_: int) -> None:
            x = np.linspace(-2, 0.9, 2048, dtype=np.float32)
            work(x, np.zeros_like(x), repeat)

        one(0)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            list(pool.map(one, range(threads)))
            times.append(time.perf_counter() - begin)
        return min(times) / (repeat * 2048 * threads)

    tanh, fma = seconds(tanh_only, 2000), seconds(fma_only, 2000) / 32
    return {
        features: n * (TANH_PER_EVENT * tanh + (FMA_PER_EVENT + FMA_PER_FEATURE * features) * fma)
        for features in FEATURE_NUMBERS
    }


def peak_bytes(work: Callable[[], object]) -> float:
    """Growth of the resident memory while `work` runs (Linux; nan elsewhere)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = status_bytes("VmRSS")
        work()
        return status_bytes("VmHWM") - before
    except OSError:
        return float("nan")


def fresh(data: TrainingSet) -> PunziNet:
    return PunziNet(data.features.min(axis=1), data.features.max(axis=1), seed=1)


def contenders(data: TrainingSet, over: Map, threads: int) -> dict[str, Callable[[], object]]:
    n = len(data)
    nets = {
        name: fresh(data)
        for name in (
            "mono",
            "mono eager",
            "1e5",
            "random",
            "adam",
            "1e5 eager",
            "bce",
            "bce eager",
        )
    }
    sgd = {
        name: torch.optim.SGD(net.parameters(), lr=1e-4, foreach=True) for name, net in nets.items()
    }
    x, matrix = (
        torch.from_numpy(np.ascontiguousarray(data.features.T)),
        window_matrix(data, np.arange(n), 1),
    )
    order = random_order(n, (1,))
    n_batches = max(1, round(n / 1e5))
    fixed = [
        (x[torch.from_numpy(rows.astype(np.int64))], window_matrix(data, rows, n_batches))
        for rows in np.array_split(order, n_batches)
    ]
    shuffled, room = shuffled_in_groups(data, (1,)), room_for(data)
    memory = memory_of(torch.optim.Adam(nets["adam"].parameters()), nets["adam"])
    rows, weight = bce_rows(data, nets["bce"]), torch.from_numpy(bce_weights(data))
    target = torch.from_numpy(np.repeat(data.target, np.diff(data.group_start)))

    def fused_mono() -> None:
        loss = LOSS.of(group_sums(nets["mono"], data.whole, over=over), data)
        sgd["mono"].zero_grad()
        loss.backward()
        sgd["mono"].step()

    def fused_batches() -> None:
        fused_punzi_epoch(
            nets["1e5"],
            stratified_batches(shuffled, 100_000, (1,)),
            lambda sums: LOSS.slopes(sums, data),
            learning_rate=1e-4,
            threads=threads,
        )

    def fused_random() -> None:
        fused_punzi_epoch(
            nets["random"],
            random_batches(data, 100_000, (1,), room),
            lambda sums: LOSS.slopes(sums, data),
            learning_rate=1e-4,
            threads=threads,
        )

    def fused_adam() -> None:
        fused_punzi_epoch(
            nets["adam"],
            stratified_batches(shuffled, 100_000, (1,)),
            lambda sums: LOSS.slopes(sums, data),
            learning_rate=1e-4,
            threads=threads,
            adam=memory,
        )

    def eager_batches() -> None:
        for features, part in fixed:
            eager_step(nets["1e5 eager"], features, part, sgd["1e5 eager"])

    def fused_bce() -> None:
        fused_bce_epoch(
            nets["bce"], rows, random_order(n, (1,)), batch_size=2048, learning_rate=1e-4
        )

    def eager_bce() -> None:
        order = torch.from_numpy(random_order(n, (1,)).astype(np.int64))
        for batch in order.split(2048):
            loss = nn.functional.binary_cross_entropy_with_logits(
                nets["bce eager"].logits(x[batch]), target[batch], weight=weight[batch]
            )
            sgd["bce eager"].zero_grad()
            loss.backward()
            sgd["bce eager"].step()

    return {
        "Punzi mono": fused_mono,
        "Punzi mono, eager": lambda: eager_step(nets["mono eager"], x, matrix, sgd["mono eager"]),
        "Punzi 1e5": fused_batches,
        "random 1e5": fused_random,
        "Adam 1e5": fused_adam,
        "Punzi 1e5, eager": eager_batches,
        "BCE 2048": fused_bce,
        "BCE 2048, eager": eager_bce,
    }


def fused_works(data: TrainingSet, over: Map, threads: int) -> dict[str, Callable[[], object]]:
    """The fused forms alone: sums and gradients of all events, and an epoch of each kind."""
    network, n = fresh(data), len(data)
    shuffled, rows = shuffled_in_groups(data, (1,)), bce_rows(data, network)

    def batches() -> None:
        fused_punzi_epoch(
            network,
            stratified_batches(shuffled, 100_000, (1,)),
            lambda sums: LOSS.slopes(sums, data),
            learning_rate=1e-4,
            threads=threads,
        )

    return {
        "Punzi mono": lambda: LOSS.of(group_sums(network, data.whole, over=over), data).backward(),
        "Punzi 1e5": batches,
        "BCE 2048": lambda: fused_bce_epoch(
            network, rows, random_order(n, (1,)), batch_size=2048, learning_rate=1e-4
        ),
    }


def by_number_of_features(data: TrainingSet, over: Map, options: argparse.Namespace) -> None:
    """Prints seconds of the fused forms for each number of features, in turns, and the limits."""
    works = {
        features: fused_works(with_features(data, features), over, options.threads)
        for features in FEATURE_NUMBERS
    }
    for kinds in works.values():
        for work in kinds.values():
            work()
    times, limits = defaultdict(list), defaultdict(list)
    with ThreadPoolExecutor(options.threads) as pool:
        for _ in range(options.rounds):
            for features, kinds in works.items():
                for name, work in kinds.items():
                    times[features, name].append(epoch_seconds(work))
            for features, limit in register_limits(len(data), pool, options.threads).items():
                limits[features].append(limit)
    names = list(works[FEATURE_NUMBERS[0]])
    print(f"{'features':<10}" + "".join(f"{name + ' [s]':>16}" for name in names) + "  mono/limit")
    for features in FEATURE_NUMBERS:
        middle = [statistics.median(times[features, name]) for name in names]
        share = statistics.median(limits[features]) / middle[0]
        print(f"{features:<10}" + "".join(f"{t:>16.4f}" for t in middle) + f"{share:>12.0%}")


def warm_up() -> None:
    """Compile everything on a few events, so that neither clock nor memory counts the compiler."""
    small = synthetic_events(20_000)
    network = fresh(small)
    LOSS.of(group_sums(network, small.whole), small).backward()
    shuffled_in_groups(small, (1,))
    order = random_order(len(small), (1,))
    rows = bce_rows(small, network)
    fused_bce_epoch(network, rows, order, batch_size=2048, learning_rate=1e-4)


def ensemble_seconds(data: TrainingSet, workers: int) -> tuple[float, float]:
    """Time on the clock and of the processor of networks trained side by side, both stages."""
    bce, punzi = DEFAULT.stages[0], DEFAULT.stages[-1]
    stages = (replace(bce, epochs=2), replace(punzi, epochs=20, refine=0))
    empty = replace(
        data,
        features=data.features[:, :0],
        weight=data.weight[:0],
        group_start=np.zeros_like(data.group_start),
    )
    members = [Member(seed) for seed in range(ENSEMBLE)]
    settings = replace(DEFAULT, stages=stages)
    begin, spent = time.perf_counter(), time.process_time()
    train_ensemble([(data, empty)], settings, members=members, workers=workers)
    return time.perf_counter() - begin, time.process_time() - spent


def epoch_seconds(work: Callable[[], object]) -> float:
    """Mean of epochs that follow each other for half a second, as they do in a training."""
    begin, epochs = time.perf_counter(), 0
    while epochs == 0 or time.perf_counter() - begin < TURN_SECONDS:
        work()
        epochs += 1
    return (time.perf_counter() - begin) / epochs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=5_400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    logging.getLogger("models").setLevel(logging.ERROR)  # four epochs make no good network
    data = synthetic_events(options.events)
    n = len(data)
    print(f"{n} events, {data.n_masses} windows, {data.n_groups} groups, {options.threads} threads")
    with ThreadPoolExecutor(options.threads) as pool, shared_map(options.threads) as over:
        warm_up()
        memory = {
            "Punzi mono": peak_bytes(
                lambda: LOSS.of(group_sums(fresh(data), data.whole, over=over), data).backward()
            ),
            "Punzi 1e5 (with its shuffle)": peak_bytes(lambda: shuffled_in_groups(data, (1,))),
            "BCE 2048 (with its rows)": peak_bytes(
                lambda: fused_bce_epoch(
                    fresh(data), bce_rows(data, fresh(data)), random_order(n, (1,)),
                    batch_size=2048, learning_rate=1e-4,
                )
            ),
        }  # fmt: skip
        for name, peak in memory.items():
            print(f"memory above the data, {name}: {peak / n:.1f} bytes per event")
        works = contenders(data, over, options.threads)
        for name, work in works.items():
            if "eager" not in name:
                work()  # caches warm, threads awake
        times: dict[tuple[str, int], list[float]] = defaultdict(list)
        limits = []
        for _ in range(options.rounds):
            for name, work in works.items():
                # eager has the choice: torch's threads cost more than they bring on busy cores
                for torch_threads in sorted({1, options.threads}) if "eager" in name else [1]:
                    torch.set_num_threads(torch_threads)
                    times[name, torch_threads].append(epoch_seconds(work))
            limits.append(register_limits(n, pool, options.threads)[4])
    print(f"{'epoch':<12}{'fused [s]':>12}{'eager [s]':>12}{'ratio':>8}{'target':>8}")
    for name, target in TARGETS.items():
        fused = statistics.median(times[name, 1])
        rival = f"{EAGER.get(name, name)}, eager"
        eager = min(statistics.median(t) for k, t in times.items() if k[0] == rival)
        print(f"{name:<12}{fused:>12.4f}{eager:>12.3f}{eager / fused:>8.1f}{target:>8}")
    limit, mono = statistics.median(limits), statistics.median(times["Punzi mono", 1])
    print(f"limit of a sweep {limit:.4f} s; mono reaches {limit / mono:.0%} of it (target 60%)")
    with shared_map(options.threads) as over:
        by_number_of_features(data, over, options)
    turns = [
        [ensemble_seconds(data, workers) for workers in (1, options.threads)]
        for _ in range(options.rounds)
    ]
    (clock, spent), (side_clock, side_spent) = np.min(turns, axis=0)
    print(
        f"ensemble of {ENSEMBLE}: {options.threads} side by side reach "
        f"{clock / (options.threads * side_clock):.2f} of the ideal throughput on the clock "
        f"(target 0.9), {spent / side_spent:.2f} by processor time"
    )


if __name__ == "__main__":
    main()
