"""The trained networks of a run as models: seeds averaged before the sigmoid, all folds together.

A Punzi-net leaves out the seeds that failed in a fold, unless all did; the BCE nets of those seeds
did not fail and stay in. The model says which seeds are in it and which were left out, and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.train.outcome import averaged, left_out_seeds, trainings
from models.layers import mean_network
from models.trained import TrainedModel, joined_folds, load_model

if TYPE_CHECKING:
    from analysis.config.settings import TrainingSection
    from analysis.run.folder import RunFolder

NETWORKS = ("punzi", "bce", "bce_equal")
Name = tuple[str, int]  # classifier and number of a network


def trained_networks(run: RunFolder, section: TrainingSection) -> Iterator[Name]:
    """Every trained network, Punzi-nets first."""
    for classifier in NETWORKS:
        for i in range(section.networks):
            if all(path.exists() for path in network_files(run, section, (classifier, i))):
                yield classifier, i


def network_files(run: RunFolder, section: TrainingSection, name: Name) -> list[Path]:
    """Of all its seeds and folds."""
    classifier, number = name
    return [
        run.network(classifier, j, fold)
        for fold in range(section.folds)
        for j in trainings(number, section)
    ]


def network_model(run: RunFolder, section: TrainingSection, name: Name) -> TrainedModel:
    """All folds of one network, without a cut."""
    classifier, number = name
    folds, seeds = [], []
    for fold in range(section.folds):
        every = trainings(number, section)
        used = averaged(run, number, fold, section) if classifier == "punzi" else every
        models = [load_model(run.network(classifier, j, fold)) for j in used]
        mean = mean_network([model.networks[0] for model in models])
        folds.append(replace(models[0], networks=(mean,)))
        seeds.append([section.seed + j for j in used])
    whole = joined_folds(folds)
    left_out = left_out_seeds(run, section).get(number, []) if classifier == "punzi" else []
    training = {
        **whole.conditions.training,
        "seed": section.seed + trainings(number, section)[0],
        "seeds_of_folds": seeds,
        "left_out_seeds": left_out,
    }
    return replace(whole, conditions=replace(whole.conditions, training=training))
