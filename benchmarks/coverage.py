"""Do 90 % limits cover, and are p-values honest, with a simulation of this size?

    python benchmarks/coverage.py [--scan runs/NAME/scan.csv] [--simulations 200] [--level 0.9]

True events b_p per window and process; simulated rows ~ Poisson(b_p/w_p), again and again; data ~
Poisson(sum b_p + s), summed exactly. Coverage: P(s <= limit) at s = sigma_min/2 and sigma_min;
false positives: P(p0 <= alpha)/alpha without signal. Mean over windows, then the worst window.

    pooled        one gamma of (B, N_eff) for all processes together; nothing seen is nothing there
    B + w1        all processes together and exactly known, with one more row of mean weight
    1/3           Gamma(rows_p + 1/3, w_p) for each process: what `limits` does
    known         the true b, as if simulation were endless: the best that whole counts allow

A scan of your own: columns mass_gev and, for each sample S, rows_S, events_S, row_weight_S. Its
events are taken as true; a third of a row where none passes. Without one: numbers like those of
the demo, with its rows and with rows of at most 0.35 events.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.stats import poisson

from limits.counts import table_holding
from limits.expectation import Expectation, known_background
from limits.upper import smallest_allowed
from models.results import Floats
from models.sensitivity import PunziFormula, signal_events_needed

ALPHAS = (1e-2, 1e-3)
FORMULA = PunziFormula(50.0)
# events of tau pairs, mu mu gamma and ee mu mu in twelve windows from 0.1 to 8.9 GeV
DEMO_EVENTS = np.array(
    [[44, 850, 3.9], [54, 230, 3], [0.5, 9.5, 0.6], [0.1, 2.7, 0.3], [0.05, 0.7, 0.2],
     [0.05, 0.4, 0.2], [0.1, 1.2, 0.3], [0.2, 4.7, 0.6], [2, 7.3, 3.9], [3, 6.5, 19],
     [1, 1.2, 62], [0.5, 3.6, 140]]
)  # fmt: skip
DEMO_ROW = np.array([0.51, 0.09, 3.9])


def per_process(rows: Floats, weight: Floats) -> Expectation:
    return Expectation(rows, weight, np.zeros(rows.shape[1]), np.zeros(len(rows)))


def pooled(rows: Floats, weight: Floats) -> Expectation:
    events, squares = (rows * weight).sum(axis=1), (rows * weight**2).sum(axis=1)
    some = events > 0
    n_eff = np.divide(events**2, squares, out=np.zeros_like(events), where=some)
    one = np.divide(squares, events, out=np.zeros_like(events), where=some)
    return Expectation(n_eff[:, None], one[:, None], np.zeros(1), np.zeros(len(rows)), prior=0.0)


def one_more_row(rows: Floats, weight: Floats) -> Expectation:
    mean_weight = (rows * weight**2).sum() / (rows * weight).sum()
    return known_background((rows * weight).sum(axis=1) + mean_weight)


def measured(what: Expectation, b: Floats, n_windows: int, level: float) -> list[Floats]:
    """Coverage at two signals and false positives at two alphas; (n_windows,) each."""
    found = []
    for part in (0.5, 1.0):
        s = part * signal_events_needed(b, FORMULA)
        found.append(poisson.sf(smallest_allowed(what, s, level=level) - 1, b + s))
    tail = table_holding(what, beyond=min(ALPHAS) / 10).tail
    for alpha in ALPHAS:
        reached = (tail > alpha).sum(axis=1)
        found.append(poisson.sf(reached - 1, b) / alpha)
    return [column.reshape(n_windows, -1).mean(axis=1) for column in found]


def table(events: Floats, weight: Floats, n_simulations: int, level: float) -> None:
    """events, weight (n_windows, n_processes)."""
    n = len(events)
    rng = np.random.default_rng(1)
    true, row = (np.repeat(part, n_simulations, axis=0) for part in (events, weight))
    rows = rng.poisson(np.divide(true, row, out=np.zeros_like(true), where=row > 0)) * 1.0
    b = true.sum(axis=1)
    print(f"{'':10}{'coverage s_min/2':>20}{'s_min':>16}{'false 1e-2':>20}{'1e-3':>16}")
    for name, what in (
        ("pooled", pooled(rows, row)),
        ("B + w1", one_more_row(rows, row)),
        ("1/3", per_process(rows, row)),
        ("known", known_background(b)),
    ):
        columns = measured(what, b, n, level)
        worst = [np.min, np.min, np.max, np.max]
        text = [f"{c.mean():8.3f} {pick(c):7.3f}" for c, pick in zip(columns, worst, strict=True)]
        print(f"{name:10}    " + "    ".join(text))


def read_scan(path: Path) -> tuple[Floats, Floats]:
    """True events and row weights (n_masses, n_samples) of a scan.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    samples = [name.removeprefix("rows_") for name in lines[0] if name.startswith("rows_")]
    if not samples:
        msg = f"{path} has no column rows_SAMPLE; columns are {list(lines[0])}"
        raise SystemExit(msg)

    def column(kind: str) -> Floats:
        return np.array([[float(line[f"{kind}_{s}"]) for s in samples] for line in lines])

    weight = column("row_weight")
    return np.where(column("rows") > 0, column("events"), weight / 3), weight


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scan", type=Path)
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--level", type=float, default=0.90)
    options = parser.parse_args()
    if options.scan:
        events, weight = read_scan(options.scan)
        cases = [(f"{options.scan.name}, {len(events)} windows", events, weight)]
    else:
        demo = np.broadcast_to(DEMO_ROW, DEMO_EVENTS.shape)
        cases = [
            ("rows of 0.51, 0.09 and 3.9 events", DEMO_EVENTS, demo),
            ("rows of at most 0.35 events", DEMO_EVENTS, demo.clip(max=0.35)),
        ]
    for text, events, weight in cases:
        print(f"\n{text}; level {options.level}; mean over windows, worst window")
        table(events, weight, options.simulations, options.level)


if __name__ == "__main__":
    main()
