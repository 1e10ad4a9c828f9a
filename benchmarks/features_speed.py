"""Features per second on one core: the numba kernel against vector's own arrays.

    python benchmarks/features_speed.py [--events 2000000]

Both compute recoil and four features from the same momenta, interleaved; the best of the rounds
counts, because other work on the machine only ever makes them slower. The limit is a loop of the
same reads and writes without arithmetic: 32 bytes in (float32), 32 bytes out per event.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba as nb
import numpy as np

from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.features import event_kinematics
from selection.ntuple import MOMENTA
from selection.recoil import MuonPair, momenta, recoil, reference_features


def random_momenta(n: int, dtype: type[np.floating]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    p = rng.normal(0, 2, (2, 3, n))
    e = np.sqrt((p**2).sum(axis=1) + MUON_MASS_GEV**2)
    rows = [*p[0], e[0], *p[1], e[1]]
    return {name: row.astype(dtype) for name, row in zip(MOMENTA, rows, strict=True)}


@nb.njit(nogil=True)
def copy_only(p, out, features):  # type: ignore[no-untyped-def]
    for i in range(len(p[0])):
        out[0, i] = p[0][i] + p[4][i]
        out[1, i] = p[1][i] + p[5][i]
        features[0, i] = p[2][i]
        features[1, i] = p[3][i]
        features[2, i] = p[6][i]
        features[3, i] = p[7][i]


def best_seconds(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Shortest time of each piece of work, taking turns."""
    best = dict.fromkeys(work, np.inf)
    for _ in range(rounds):
        for name, call in work.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    n = options.events
    print(f"recoil and four features of {n:,} events, one core")
    for dtype in (np.float32, np.float64):
        columns = random_momenta(n, dtype)
        pair = MuonPair(
            momenta(*(columns[name] for name in MOMENTA[:4])),
            momenta(*(columns[name] for name in MOMENTA[4:])),
        )
        p = tuple(columns.values())
        out, features = np.empty((2, n)), np.empty((4, n), np.float32)

        def arrays(pair: MuonPair = pair) -> None:
            _ = recoil(pair, SUPERKEKB).mass2
            reference_features(pair, SUPERKEKB)

        work: dict[str, Callable[[], object]] = {
            "kernel": lambda columns=columns: event_kinematics(columns, SUPERKEKB),
            "vector arrays": arrays,
            "copy only (limit)": lambda p=p, o=out, f=features: copy_only(p, o, f),
        }
        for call in work.values():
            call()  # compiles
        rate = {name: n / t / 1e6 for name, t in best_seconds(work, options.rounds).items()}
        for name, value in rate.items():
            print(f"  {np.dtype(dtype).name}  {name:18s} {value:8.1f} M events/s")
        print(
            f"  kernel / arrays = {rate['kernel'] / rate['vector arrays']:.1f}, "
            f"kernel / copy = {rate['kernel'] / rate['copy only (limit)']:.2f}"
        )


if __name__ == "__main__":
    main()
