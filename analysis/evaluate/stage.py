"""`punzi evaluate`: cuts and figures of merit of every network, at every mass, and the models.

Cuts are chosen on the training events and quoted on the held-out ones. A window with little
simulated background left counts one more event of average weight, B + w1 with
w1 = sum w^2 / sum w: no selection is pretended to be free of background.

A model is a network with the single cut that is quoted here: `models/` is written together with
`fom.json`, so whoever applies a model applies what was quoted.
"""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.evaluate.comparison_table import BACKGROUND_RULE
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, content_digest, digest, write_json
from analysis.terminal import console
from analysis.train.stage import SimulatedEvents, failed_networks, split_sets
from models.evaluation.comparison import of_curve
from models.evaluation.figures_of_merit import (
    Quoting,
    SplitEvents,
    figures_of_merit,
    over_networks,
    split_events,
)
from models.results import (
    ONE_FOR_ALL,
    SELECTION_MEANING,
    EnsembleFigureOfMerit,
    FigureOfMerit,
    from_json,
    to_json,
    to_rows,
)
from models.sensitivity import PunziFormula
from models.trained import load_model, save_model, with_cut
from selection.whole_files import replacing

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)

NETWORKS = ("punzi", "bce")


def evaluate_networks(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, *, workers: int
) -> tuple[FigureOfMerit, ...]:
    """Bring fom.json, fom.csv and the models up to date; all figures of merit."""
    settings = config.settings
    networks = list(_networks(run, settings.training.networks))
    stamp = digest(
        [content_digest(run.network(*name)) for name in networks],
        simulated.fingerprint,
        settings.evaluation,
        settings.sensitivity,
        simulated.windows.sigma.tolist(),
        code_digest("analysis.evaluate"),
    )
    if run.is_current("evaluate", stamp):
        log.info("evaluate: up to date")
        return load_figures(run)
    split = split_events(
        simulated.table,
        simulated.windows,
        trained=simulated.trained,
        validation_fraction=settings.training.validation_fraction,
    )
    s, cut = settings.sensitivity, settings.evaluation.single_cut
    quoting = Quoting(
        PunziFormula(config.luminosity_inv_fb, s.a, s.b, s.formula),
        single_cut=None if cut == "optimal" else cut,
        threads=workers,
    )
    figures = tuple(_all_figures(run, config, simulated, split, quoting, workers=workers))
    write_figures(run, figures, failed_networks(run, range(settings.training.networks)))
    models = [_save_with_quoted_cut(run, name, figures) for name in networks]
    outputs = [run.figures_of_merit, run.figures_of_merit_csv, *models]
    run.finish("evaluate", stamp, outputs)
    return figures


def _networks(run: RunFolder, n: int) -> Iterator[tuple[str, int]]:
    """Classifier and number of every trained network, Punzi-nets first."""
    for classifier in NETWORKS:
        yield from ((classifier, i) for i in range(n) if run.network(classifier, i).exists())


def _all_figures(
    run: RunFolder,
    config: Configuration,
    simulated: SimulatedEvents,
    split: SplitEvents,
    quoting: Quoting,
    *,
    workers: int,
) -> Iterator[FigureOfMerit]:
    features = simulated.table.features
    names = list(_networks(run, config.settings.training.networks))
    with console.progress("evaluate", len(names)) as advance:
        for classifier, i in names:
            score = load_model(run.network(classifier, i)).score(features)
            yield from figures_of_merit(
                split, score, classifier=classifier, network=i, quoting=quoting
            )
            advance()
    if config.settings.evaluation.xgboost:
        from models.evaluation.baselines import train_boosted_trees

        train, validation = split_sets(config, simulated)
        log.info("evaluate: training XGBoost for comparison")
        trees = train_boosted_trees(
            train, validation, seed=config.settings.training.seed, threads=workers
        )
        yield from figures_of_merit(
            split, trees.scores(features), classifier="xgboost", network=0, quoting=quoting
        )


def _save_with_quoted_cut(
    run: RunFolder, name: tuple[str, int], figures: Sequence[FigureOfMerit]
) -> Path:
    """The model of one network; without a cut where no single cut sees every mass."""
    classifier, number = name
    quoted = of_curve(figures, (classifier, ONE_FOR_ALL))
    cut = float(next(f for f in quoted if f.network == number).cut[0])
    if np.isnan(cut):
        log.warning("no single cut leaves signal at every mass: %s has no cut", run.model(*name))
    model = with_cut(load_model(run.network(*name)), None if np.isnan(cut) else cut)
    save_model(model, run.model(*name))
    return run.model(*name)


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
        run.figures_of_merit,
        {
            "rule_for_background": BACKGROUND_RULE,
            "selections": SELECTION_MEANING,
            "failed_networks": failed,
            "networks": [to_json(f) for f in figures],
            "ensembles": [to_json(m) for m in means],
        },
    )
    rows = [row for f in figures for row in to_rows(f)]
    with (
        replacing(run.figures_of_merit_csv) as temporary,
        temporary.open("w", newline="") as stream,
    ):
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def load_figures(run: RunFolder) -> tuple[FigureOfMerit, ...]:
    return tuple(from_json(r) for r in _content(run.figures_of_merit)["networks"])


def load_ensembles(run: RunFolder) -> tuple[EnsembleFigureOfMerit, ...]:
    return tuple(from_json(r) for r in _content(run.figures_of_merit)["ensembles"])


def _content(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text())
    return content
