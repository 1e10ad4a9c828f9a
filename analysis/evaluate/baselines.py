"""What the Punzi-net is compared with beside the networks of its own training.

    XGBoost             trees on the same events                    evaluation.xgboost
    BCE net (mass)      a network that is told the mass             training.bce_mass
    rectangular cuts    the best box in the features, for each mass evaluation.rectangular_cuts

All are trained or tuned on the training events of a fold and quoted on those it judges. The last
two have a score per event and window (models/evaluation/pairs.py). The net that knows the mass gets
the single cut that is best for it on training events: 0.5 has no meaning for a BCE net.
"""

from __future__ import annotations

import csv
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysis.evaluate.networks import network_files
from analysis.train.outcome import trainings
from analysis.train.stage import SimulatedEvents, split_sets
from models.evaluation.figures_of_merit import Quoting, SplitEvents, figures_of_merit, quote
from models.evaluation.pairs import Pairs, in_pairs
from models.evaluation.rectangles import Boxes, best_boxes
from models.evaluation.window_events import one_more_event
from models.layers import load_layers, mean_network
from models.mass_input import scores_at_mass
from models.results import CHOSEN_ON_TRAINING, FigureOfMerit
from models.sensitivity import punzi_sensitivity
from selection.whole_files import replacing

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.run.folder import RunFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compared:
    """The events that all are compared on, and how."""

    run: RunFolder
    config: Configuration
    simulated: SimulatedEvents
    splits: Sequence[SplitEvents]
    quoting: Quoting


def baseline_figures(c: Compared) -> Iterator[FigureOfMerit]:
    """Figures of merit of those that are switched on."""
    settings = c.config.settings
    if settings.evaluation.xgboost:
        yield from _trees(c)
    pairs: list[Pairs] = []
    if settings.training.bce_mass or settings.evaluation.rectangular_cuts:
        pairs = [in_pairs(split) for split in c.splits]
    if settings.training.bce_mass:
        for number in range(settings.training.networks):
            yield from _mass_network(c, pairs, number)
    c.run.rectangular_cuts.unlink(missing_ok=True)
    if settings.evaluation.rectangular_cuts:
        yield from _boxes(c, pairs)


def _trees(c: Compared) -> Iterator[FigureOfMerit]:
    from models.evaluation.baselines import train_boosted_trees

    n_folds, seed = len(c.splits), c.config.settings.training.seed
    log.info("evaluate: training XGBoost for comparison, %d folds", n_folds)
    interrupted = threading.Event()

    def of_fold(fold: int) -> npt.NDArray[np.float32]:
        train, _ = split_sets(c.config, c.simulated, fold=fold)
        own = max(1, c.quoting.threads // n_folds)  # folds side by side wait less for each other
        trees = train_boosted_trees(train, seed=seed, threads=own, given_up=interrupted.is_set)
        return trees.scores(c.simulated.table.features)

    with ThreadPoolExecutor(c.quoting.threads) as pool:
        try:
            scores = list(pool.map(of_fold, range(n_folds)))
        except BaseException:
            interrupted.set()
            raise
    yield from figures_of_merit(
        c.splits, scores, classifier="xgboost", network=0, quoting=c.quoting
    )


def mass_network_files(run: RunFolder, config: Configuration) -> list[Path]:
    """Files of the networks that are told the mass; none if they are not asked for."""
    section = config.settings.training
    numbers = range(section.networks if section.bce_mass else 0)
    return [file for i in numbers for file in network_files(run, section, ("bce_mass", i))]


def _mass_network(c: Compared, pairs: Sequence[Pairs], number: int) -> Iterator[FigureOfMerit]:
    section, features = c.config.settings.training, c.simulated.table.features
    scores = []
    for fold, own in enumerate(pairs):
        files = [c.run.network("bce_mass", j, fold) for j in trainings(number, section)]
        network = mean_network([load_layers(file) for file in files])
        mass_gev = c.simulated.windows.mass_gev[own.window]
        scores.append(scores_at_mass(network, features, own.row, mass_gev))
    yield from figures_of_merit(
        [own.split for own in pairs],
        scores,
        classifier="bce_mass",
        network=number,
        quoting=replace(c.quoting, single_cut=None),
    )


def _boxes(c: Compared, pairs: Sequence[Pairs]) -> Iterator[FigureOfMerit]:
    log.info("evaluate: rectangular cuts for comparison, %d folds", len(c.splits))
    features = c.simulated.table.features
    sigma_min = partial(punzi_sensitivity, formula=c.quoting.formula)
    found = [
        best_boxes(
            split.training,
            features,
            sigma_min=sigma_min,
            extra_background=one_more_event(split.training),
        )
        for split in c.splits
    ]
    _write_boxes(c, found)
    scores = [
        boxes.inside(features, own.row, own.window) for boxes, own in zip(found, pairs, strict=True)
    ]
    for part in ("validation", "training"):
        yield quote(
            [own.split for own in pairs],
            scores,
            np.full((len(pairs), len(c.simulated.windows)), 0.5),  # inside is 1, outside 0
            name=("rectangular", 0, CHOSEN_ON_TRAINING),
            quoted_on=part,
            quoting=c.quoting,
        )


def _write_boxes(c: Compared, found: Sequence[Boxes]) -> None:
    """A row per fold, mass and feature; an open side is infinite."""
    names, masses = c.simulated.table.feature_names, c.simulated.windows.mass_gev
    with (
        replacing(c.run.rectangular_cuts) as temporary,
        temporary.open("w", newline="") as stream,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["fold", "mass_gev", "feature", "low", "high"])
        for fold, boxes in enumerate(found):
            for k, f in np.ndindex(boxes.low.shape):
                side = (boxes.low[k, f], boxes.high[k, f])
                writer.writerow([fold, masses[k], names[f], *side])
