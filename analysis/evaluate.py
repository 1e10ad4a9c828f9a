"""`punzi evaluate`: cuts and figures of merit of every network, at every mass.

Cuts are chosen on the training events and quoted on the held-out ones. A window with little
simulated background left counts one more event of average weight, B + w1 with
w1 = sum w^2 / sum w: no selection is pretended to be free of background.
"""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from analysis import console
from analysis.config import Configuration
from analysis.runs import RunFolder, code_digest, digest, replacing, write_json
from analysis.train import Prepared, failed_networks, model_path, split_sets, trained_masses
from models import comparison
from models.evaluation import Quoting, SplitEvents, evaluate, over_networks, split_events
from models.results import (
    CHOSEN_ON_QUOTED,
    CHOSEN_ON_TRAINING,
    ONE_FOR_ALL,
    Bools,
    EnsembleFigureOfMerit,
    FigureOfMerit,
    Floats,
    from_json,
    to_json,
    to_rows,
)
from models.sensitivity import PunziFormula
from models.trained import load_model

log = logging.getLogger(__name__)

MASS_BINS_GEV = (0.0, 1.0, 4.0, 6.0, 8.0, np.inf)
BACKGROUND_RULE = "sigma_min from B + w1, w1 = sum w^2 / sum w of the window: one more event"


def evaluate_networks(
    run: RunFolder, config: Configuration, ready: Prepared, *, workers: int
) -> tuple[FigureOfMerit, ...]:
    """Bring fom.json and fom.csv up to date; all figures of merit."""
    n = config.settings.training.networks
    models = [model_path(run, c, i) for i in range(n) for c in ("punzi", "bce")]
    stamp = digest(
        [digest(path.read_bytes().hex()) for path in models if path.exists()],
        config.settings.evaluation,
        config.settings.sensitivity,
        ready.windows.sigma_gev2.tolist(),
        code_digest("models"),
    )
    outputs = [run / "fom.json", run / "fom.csv"]
    if run.is_current("evaluate", stamp):
        log.info("evaluate: up to date")
        return load_figures(run)
    settings = config.settings
    split = split_events(
        ready.table,
        ready.windows,
        trained_mass_gev=trained_masses(ready, settings.windows.train_every),
        validation_fraction=settings.training.validation_fraction,
    )
    s, cut = settings.sensitivity, settings.evaluation.single_cut
    quoting = Quoting(
        PunziFormula(config.luminosity_inv_fb, s.a, s.b, s.formula),
        single_cut=None if cut == "optimal" else cut,
        threads=workers,
    )
    figures = tuple(_all_figures(run, config, ready, split, quoting, workers=workers))
    write_figures(run, figures, failed_networks(run, range(n)))
    run.finish("evaluate", stamp, outputs)
    return figures


def _all_figures(
    run: RunFolder,
    config: Configuration,
    ready: Prepared,
    split: SplitEvents,
    quoting: Quoting,
    *,
    workers: int,
) -> Iterator[FigureOfMerit]:
    n = config.settings.training.networks
    with console.progress("evaluate", 2 * n) as advance:
        for classifier in ("punzi", "bce"):
            for i in range(n):
                path = model_path(run, classifier, i)
                if path.exists():
                    score = load_model(path).score(ready.table.features)
                    yield from evaluate(
                        split, score, classifier=classifier, network=i, quoting=quoting
                    )
                advance()
    if config.settings.evaluation.xgboost:
        from models.baselines import train_boosted_trees

        train, validation = split_sets(config, ready)
        log.info("evaluate: training XGBoost for comparison")
        trees = train_boosted_trees(
            train, validation, seed=config.settings.training.seed, threads=workers
        )
        score = trees.scores(ready.table.features)
        yield from evaluate(split, score, classifier="xgboost", network=0, quoting=quoting)


def ensembles(
    figures: Sequence[FigureOfMerit], failed: Sequence[int]
) -> tuple[EnsembleFigureOfMerit, ...]:
    """Mean and standard error per classifier and selection, over the networks that did not fail."""
    groups: dict[tuple[str, str, str], list[FigureOfMerit]] = {}
    for f in figures:
        if f.classifier != "punzi" or f.network not in failed or len(failed) == _count(figures):
            groups.setdefault((f.classifier, f.selection, f.quoted_on), []).append(f)
    return tuple(over_networks(group) for group in groups.values())


def _count(figures: Sequence[FigureOfMerit]) -> int:
    return len({f.network for f in figures if f.classifier == "punzi"})


def write_figures(
    run: RunFolder, figures: Sequence[FigureOfMerit], failed: dict[int, list[str]]
) -> None:
    means = ensembles(figures, list(failed))
    write_json(
        run / "fom.json",
        {
            "rule_for_background": BACKGROUND_RULE,
            "selections": {
                CHOSEN_ON_TRAINING: "cut per mass chosen on training events",
                ONE_FOR_ALL: "one cut for all masses",
                CHOSEN_ON_QUOTED: "cut per mass chosen on the events it is quoted on (optimistic)",
            },
            "failed_networks": failed,
            "networks": [to_json(f) for f in figures],
            "ensembles": [to_json(m) for m in means],
        },
    )
    rows = [row for f in figures for row in to_rows(f)]
    with replacing(run / "fom.csv") as temporary, temporary.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def load_figures(run: RunFolder) -> tuple[FigureOfMerit, ...]:
    return tuple(from_json(r) for r in _content(run / "fom.json")["networks"])


def load_ensembles(run: RunFolder) -> tuple[EnsembleFigureOfMerit, ...]:
    return tuple(from_json(r) for r in _content(run / "fom.json")["ensembles"])


def _content(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def summary(figures: Sequence[FigureOfMerit], failed: Sequence[int] = ()) -> dict[str, Any]:
    """The numbers of the comparison, below 1 = better; geometric means over masses and networks."""
    good = [f for f in figures if f.classifier not in ("punzi", "bce") or f.network not in failed]
    pick = comparison.select
    punzi = pick(good, "punzi", ONE_FOR_ALL)
    if not punzi:
        return {}
    per_mass = pick(good, "punzi", CHOSEN_ON_TRAINING)
    mass = punzi[0].mass_gev
    found: dict[str, Any] = {"mass_bins_gev": [*MASS_BINS_GEV[:-1], float(mass.max())]}

    def binned(top: Sequence[FigureOfMerit], bottom: Sequence[FigureOfMerit]) -> list[float]:
        ratios = comparison.ratio_in_bins(
            mass, comparison.log_ratios(top, bottom), list(MASS_BINS_GEV)
        )
        return [float(r) for r in ratios]

    bce = pick(good, "bce", CHOSEN_ON_TRAINING)
    if bce:
        found["single_cut_over_bce_best_cut"] = binned(punzi, bce)
        between = (mass >= 1.5 - 1e-6) & (mass <= 4.5 + 1e-6)
        logs = comparison.log_ratios(punzi, bce)
        found["single_cut_over_bce_best_cut_1.5_to_4.5"] = comparison.geometric_mean(
            logs[:, between]
        )
        best = [min(bce, key=lambda f: float(np.sum(np.log(f.sigma_min_fb[_low(mass)]))))]
        low = comparison.log_ratios(punzi, best)[:, _low(mass)]
        found["single_cut_over_best_bce_network_1_to_4"] = comparison.geometric_mean(low)
        found["bce_single_over_best_cut"] = binned(pick(good, "bce", ONE_FOR_ALL), bce)
    trees = pick(good, "xgboost", CHOSEN_ON_TRAINING)
    if trees:
        found["single_cut_over_xgboost_best_cut"] = binned(punzi, trees)
    single = comparison.log_ratios(punzi, per_mass)
    found["single_over_best_cut"] = comparison.geometric_mean(single)
    found["share_of_masses_within_20_percent"] = comparison.share_within(single, 0.2)
    found["untrained_over_trained"] = comparison.untrained_over_trained(punzi)
    on_training = pick(good, "punzi", ONE_FOR_ALL, "training")
    if on_training:
        found["validation_over_training"] = comparison.geometric_mean(
            comparison.log_ratios(punzi, on_training)
        )
    return found


def _low(mass_gev: Floats) -> Bools:
    """Masses from 1 to 4 GeV, where the BCE networks differ most from each other."""
    return (mass_gev >= 1 - 1e-6) & (mass_gev <= 4 + 1e-6)


def print_summary(
    figures: Sequence[FigureOfMerit],
    failed: dict[int, list[str]],
    *,
    events: str = "held-out events",
) -> None:
    """Tables a person reads first."""
    found = summary(figures, list(failed))
    if found:
        edges = found["mass_bins_gev"]
        title = f"sigma_min ratios on {events} (below 1: better)"
        table = Table(title=title, title_justify="left")
        table.add_column("Z' mass [GeV]")
        for low, high in pairwise(edges):
            table.add_column(f"{low:g}-{high:g}", justify="right")
        for name, values in found.items():
            if isinstance(values, list) and name != "mass_bins_gev":
                table.add_row(name.replace("_", " "), *(f"{v:.2f}" for v in values))
        console.stdout.print(table)
        for name, value in found.items():
            if isinstance(value, float):
                console.stdout.print(f"{name.replace('_', ' ')}: {value:.3f}")
    console.stdout.print(BACKGROUND_RULE)
    for i, reasons in failed.items():
        console.stdout.print(f"network {i} FAILED: {'; '.join(reasons)}", style="red")
