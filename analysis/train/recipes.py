"""Kinds of trainings, and what is kept of each.

train        Punzi-net and BCE nets: the network after each stage, and its history
train-mass   the BCE net that is told the mass (models/mass_input.py): the network alone
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.run.folder import RunFolder, write_json
from models.layers import layers_of, save_layers
from models.trained import Conditions, from_network, save_model
from models.training.ensemble import Sets
from models.training.loop import TrainedNetworks
from models.training.losses import loss_of
from models.training.settings import BCE_MASS, TrainingSettings

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.train.stage import SimulatedEvents

Place = tuple[int, int]  # number of a training and fold


@dataclass(frozen=True)
class Recipe:
    """Trainings of one kind: their events in each fold, their settings, and what is kept."""

    name: str  # of their stamps
    sets: Sequence[Sets]
    settings: TrainingSettings
    save: Callable[[TrainedNetworks, Place], list[Path]]


def save_networks(
    run: RunFolder,
    config: Configuration,
    simulated: SimulatedEvents,
    origin: dict[str, Any],
    result: TrainedNetworks,
    place: Place,
) -> list[Path]:
    """The network after each stage, and the history; all or, after an interrupt, none.

    They have no cut yet: choosing and quoting it is the business of the evaluation.
    """
    files = []
    for classifier, net in result.after.items():
        conditions = Conditions(
            classifier=classifier,
            cut=None,
            sqrt_s_gev=config.beams.sqrt_s_gev,
            luminosity_inv_fb=config.luminosity_inv_fb,
            beams=asdict(config.beams),
            training={"settings": asdict(result.settings), "seed": result.seed},
            provenance=origin,
            candidates=config.candidates,
        )
        path = run.network(classifier, *place)
        model = from_network(
            net,
            search=config.definition,
            windows=simulated.windows,
            trained=simulated.trained,
            conditions=conditions,
        )
        save_model(model, path)
        files.append(path)
    write_json(run.history(*place), _history(result, config.luminosity_inv_fb))
    return [*files, run.history(*place)]


def _history(result: TrainedNetworks, luminosity_inv_fb: float) -> dict[str, Any]:
    stages = result.settings.stages
    losses = [loss_of(s, result.settings, luminosity_inv_fb=luminosity_inv_fb) for s in stages]
    return {
        "seed": result.seed,
        "status": result.status,
        "reasons": result.reasons,
        "notes": result.notes,
        "stages": [stage.name for stage in stages],
        "losses": [loss.text for loss in losses],
        "history": {name: column.tolist() for name, column in vars(result.history).items()},
    }


def save_mass_network(run: RunFolder, result: TrainedNetworks, place: Place) -> list[Path]:
    """It is no model of the search, which does not compute its last input: nobody can apply it."""
    path = run.network(BCE_MASS, *place)
    about = {"classifier": BCE_MASS, "seed": result.seed}
    save_layers(layers_of(result.after[BCE_MASS]), path, about)
    return [path]
