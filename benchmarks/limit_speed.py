"""Limits with bands, p-values and toys of a whole scan; pyhf on a few of its masses beside them.

    python benchmarks/limit_speed.py [--masses 550] [--toys 100000] [--pyhf 3]

Four processes with rows of 0.51, 0.09, 0.35 and 0.2 events, normalisations known to 5 %, the signal
to 5 %; 0.5 to 900 events in a window, as in the demo; windows of two widths either side in steps of
one. Processor seconds of one core, compiled code in its cache, and the largest memory of the
process. pyhf (numpy, asymptotic formulas, toms748_scan: observed and expected limits) solves an
easier problem, without any sum over counts; its model has the same nuisances.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from memory import peak_gb

from limits.asymptotic import asymptotic_limits
from limits.expectation import Expectation
from limits.significance import best_signal, local_p_values
from limits.trials import elementary_intervals, interval_spans, scan_toys
from limits.upper import bayesian_limits, expected_limits, upper_limits
from models.results import Floats

WEIGHT = np.array([0.51, 0.09, 0.35, 0.2])
WIDTH_GEV2 = ([0.1, 1.6, 4.1, 6.1, 7.6, 8.6, 8.9], [0.23, 0.31, 0.27, 0.19, 0.10, 0.066, 0.06])
AT_GEV = np.array([0.1, 0.9, 1.7, 2.5, 3.3, 4.1, 4.9, 5.7, 6.5, 7.3, 8.1, 8.9])
EVENTS = np.array(
    [[44, 850, 3.9, 2], [54, 230, 3, 2], [0.5, 9.5, 0.6, 1], [0.1, 2.7, 0.3, 0.5],
     [0.05, 0.7, 0.2, 0.2], [0.05, 0.4, 0.2, 0.1], [0.1, 1.2, 0.3, 0.1], [0.2, 4.7, 0.6, 0.2],
     [2, 7.3, 3.9, 0.5], [3, 6.5, 19, 1], [1, 1.2, 62, 1], [0.5, 3.6, 140, 1]]
)  # fmt: skip


def scan(n: int) -> tuple[Expectation, tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Expectation of n windows, their edges [GeV^2], rows and weights of elementary intervals."""
    fine = np.linspace(0.01, 79.0, 10_000)
    widths = np.cumsum(1 / np.interp(np.sqrt(fine), *WIDTH_GEV2))  # in local widths, up to a factor
    mass2 = np.interp(np.linspace(widths[0], widths[-1], n), widths, fine)
    width = np.gradient(mass2)
    low, high = mass2 - 2 * width, mass2 + 2 * width
    edges = elementary_intervals(low, high)
    middle = np.sqrt(((edges[1:] + edges[:-1]) / 2).clip(min=0.01))
    logs = [np.interp(middle, AT_GEV, np.log(column)) for column in EVENTS.T]
    share = np.diff(edges) / (4 * np.interp(middle**2, mass2, width))
    events = np.exp(np.stack(logs, axis=1)) * share[:, None]
    rows = np.random.default_rng(1).poisson(events / WEIGHT) * 1.0
    spans = interval_spans(low, high)
    running = np.concatenate([np.zeros((1, 4)), np.cumsum(rows, axis=0)])
    inside = running[spans[:, 1]] - running[spans[:, 0]]
    weight = np.broadcast_to(WEIGHT, inside.shape)
    b = Expectation(inside, weight, np.full(4, 0.05), np.full(n, 0.05))
    return b, (low, high), (rows, np.broadcast_to(WEIGHT, rows.shape))


def seconds(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def pyhf_limits(b: Expectation, mass: int, observed: int, scale: float) -> None:
    """`scale` signal events at POI 1: the limit must lie below the bound of 10."""
    import pyhf

    background = [
        {
            "name": f"b{p}",
            "data": [b.by_process[mass, p]],
            "modifiers": [
                {"name": f"rows{p}", "type": "shapesys",
                 "data": [b.by_process[mass, p] / b.shape[mass, p] ** 0.5]},
                {"name": f"norm{p}", "type": "normsys", "data": {"hi": 1.05, "lo": 1 / 1.05}},
            ],
        }
        for p in range(b.rows.shape[1])
    ]  # fmt: skip
    signal = {
        "name": "signal",
        "data": [scale],
        "modifiers": [
            {"name": "mu", "type": "normfactor", "data": None},
            {"name": "eff", "type": "normsys", "data": {"hi": 1.05, "lo": 1 / 1.05}},
        ],
    }
    spec = {"channels": [{"name": "window", "samples": [signal, *background]}]}
    model = pyhf.Model(spec, poi_name="mu")
    data = [observed, *model.config.auxdata]
    scanned = pyhf.infer.intervals.upper_limits.toms748_scan
    scanned(data, model, 0.02, 10.0, level=0.1)  # at 0 it may divide 0 by 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--masses", type=int, default=550)
    parser.add_argument("--toys", type=int, default=100_000)
    parser.add_argument("--pyhf", type=int, default=3, help="masses; 0: not at all")
    options = parser.parse_args()
    b, windows, intervals = scan(options.masses)
    data = np.random.default_rng(2).poisson(b.mean)

    def toys(n: int) -> object:
        return scan_toys(b, windows, intervals, n_toys=n, seed=1)

    def limits() -> Floats:
        return expected_limits(b).median + upper_limits(b, data)

    work: dict[str, Callable[[], object]] = {
        "expected limits and bands, observed limits": limits,
        "flat-prior limits": lambda: bayesian_limits(b, data),
        "asymptotic limits and bands": lambda: asymptotic_limits(b, data),
        "p0 and best signal": lambda: (local_p_values(b, data), best_signal(b, data)),
        f"{options.toys} toy scans": lambda: toys(options.toys),
    }
    limits()  # compiles
    asymptotic_limits(b, data)
    toys(1)
    print(f"{options.masses} masses, {b.mean.min():.2g} to {b.mean.max():.3g} events expected")
    taken = {name: seconds(call) for name, call in work.items()}
    for name, t in taken.items():
        print(f"{name:45}{t:9.2f} s")
    print(f"{'largest memory':45}{1e3 * peak_gb():9.0f} MB")
    if options.pyhf:
        median = expected_limits(b).median
        some = np.linspace(0, options.masses - 1, options.pyhf).astype(int)
        each = [
            seconds(lambda i=i: pyhf_limits(b, i, int(data[i]), float(median[i]) / 2)) for i in some
        ]
        ours = taken["expected limits and bands, observed limits"] / options.masses
        print(f"pyhf, per mass (of {options.pyhf}){np.mean(each):29.2f} s")
        print(f"{'ours, per mass':45}{ours:9.4f} s: {np.mean(each) / ours:.0f} times faster")


if __name__ == "__main__":
    main()
