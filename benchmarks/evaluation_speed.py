"""Evaluation at paper scale: ten networks of five folds, three classifiers each, and XGBoost.

    python benchmarks/evaluation_speed.py [--events 3100000] [--networks 10] [--threads 2]

Synthetic events in the published windows of 89 masses; networks are made, not trained: scores cost
the same. Timed is what `punzi evaluate` does with them: the events of all windows once, then of
every network the scores of all folds, the best cuts of training and judged events, the figures of
merit; and boosted trees, trained once per fold. The limit of the scores is one pass over the events
per network; beside the whole stands the time of XGBoost alone, which is not ours. Wanted: < 180 s.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from cut_scan import synthetic

from models.evaluation.baselines import train_boosted_trees
from models.evaluation.figures_of_merit import Quoting, figures_of_merit, split_events
from models.layers import layers_of
from models.network import PunziNet
from models.scoring import network_scores
from models.sensitivity import PunziFormula
from models.training.training_set import training_sets
from selection.table import EventTable, Folds
from selection.windows import MassWindows

FOLDS = Folds(5)
CLASSIFIERS = ("punzi", "bce", "bce_equal")


def events_of(n: int) -> tuple[EventTable, MassWindows]:
    """Signal a little apart from background in four features; identities as a hash gives them."""
    rng = np.random.default_rng(1)
    table, windows = synthetic(n, 89, rng)
    features = rng.normal(0.5 * table.is_signal[:, None], 1.0, (n, 4)).astype(np.float32)
    identity = rng.integers(0, 2**32, n, dtype=np.uint32)
    return replace(table, features=features, identity=identity), windows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=3_100_000)
    parser.add_argument("--networks", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    table, windows = events_of(options.events)
    quoting = Quoting(PunziFormula(50.0), threads=options.threads)
    low, high = np.full(4, -4.0), np.full(4, 4.0)
    spent = dict.fromkeys(("windows", "scores", "cuts and figures", "XGBoost"), 0.0)

    begin = time.perf_counter()
    splits = split_events(table, windows, trained=np.arange(89) % 2 == 0, folds=FOLDS)
    spent["windows"] = time.perf_counter() - begin
    for network in range(options.networks):
        for kind, name in enumerate(CLASSIFIERS):
            begin = time.perf_counter()
            scores = []
            for fold in range(FOLDS.count):
                seed = 1 + fold + 5 * (network + options.networks * kind)
                parts = layers_of(PunziNet(low, high, seed=seed)).parts
                scores.append(network_scores(table.features, *parts))
            middle = time.perf_counter()
            figures_of_merit(splits, scores, classifier=name, network=network, quoting=quoting)
            spent["scores"] += middle - begin
            spent["cuts and figures"] += time.perf_counter() - middle
    begin = time.perf_counter()
    scores = []
    for fold in range(FOLDS.count):
        train, _ = training_sets(table, windows, luminosity_inv_fb=50.0, folds=FOLDS, fold=fold)
        trees = train_boosted_trees(train, seed=1, threads=options.threads)
        scores.append(trees.scores(table.features))
    spent["XGBoost"] = time.perf_counter() - begin
    figures_of_merit(splits, scores, classifier="xgboost", network=0, quoting=quoting)
    for part, seconds in spent.items():
        print(f"{part:18s} {seconds:7.1f} s")
    print(f"{'all':18s} {sum(spent.values()):7.1f} s   wanted below 180 s")


if __name__ == "__main__":
    main()
