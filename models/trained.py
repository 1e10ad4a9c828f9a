"""A trained model: everything needed to score new events, and to know where it came from.

    model = load_model("runs/demo/models/net-00.safetensors")
    fold  = model.fold_of(identity)      # selection.keys.event_identities
    score = model.score(features, fold)  # (n, n_features) in the order model.features -> (n,)
    keep  = model.passes(features, fold) # score >= model.cut

The network, its scaling, the definition of the search (particles, features, cuts), the windows, the
cut, the beams, the luminosity, the training settings and the provenance travel in one file, so that
a cut can be applied years later without asking anybody. Neither torch nor the training code is
needed to load or score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from models.layers import Layers, array_of, layer_arrays, layers_from, layers_of
from models.model_file import Arrays, ModelFileError, read_model_file, write_model_file
from models.scoring import (
    Float32s,
    Floats,
    NetworkParts,
    networks_logits,
    networks_scores,
    passes,
)
from selection.definition import search_from
from selection.search import Search
from selection.table import BoolArray, FloatArray, Folds, IntArray
from selection.windows import MassWindows

if TYPE_CHECKING:
    from models.network import PunziNet

__all__ = [
    "Layers",
    "ModelFileError",
    "TrainedModel",
    "from_network",
    "load_model",
    "save_model",
]


@dataclass(frozen=True)
class Conditions:
    """What the network was trained for; plain values only, so that they fit into JSON."""

    classifier: str  # "punzi" or "bce"
    cut: float | None  # pass: score >= cut; None before the evaluation has chosen one
    sqrt_s_gev: float
    luminosity_inv_fb: float
    beams: Mapping[str, Any]
    training: Mapping[str, Any]  # settings and seed
    provenance: Mapping[str, Any]  # versions, commit, hashes of inputs
    candidates: str = "unique"  # which candidates of an event were trained on

    def __post_init__(self) -> None:
        for name in ("sqrt_s_gev", "luminosity_inv_fb"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                msg = f"{name} must be positive, found {getattr(self, name)}"
                raise ValueError(msg)
        if self.cut is not None and not 0 <= self.cut <= 1:
            msg = f"the cut on the score must lie in [0, 1], found {self.cut}"
            raise ValueError(msg)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The networks of all folds with their windows and conditions; checks itself.

    An event is judged by the network of the fold its identity falls into (selection.table.Folds):
    the function whose efficiency and background are quoted is the one that is applied.
    """

    networks: tuple[Layers, ...]  # one per fold; of several seeds: their mean (models/layers.py)
    windows: MassWindows  # of all masses
    trained: npt.NDArray[np.bool_]  # (n_windows,) was the mass used in training?
    conditions: Conditions
    search: Search

    def __post_init__(self) -> None:
        wanted = (len(self.features),)
        if not self.networks or any(n.feature_min.shape != wanted for n in self.networks):
            found = [n.feature_min.shape for n in self.networks]
            msg = f"the networks have scalings {found} for {wanted[0]} features"
            raise ValueError(msg)
        if self.windows.squared != self.search.axis.squared:
            msg = "the windows are those of another kind of axis than that of the search"
            raise ValueError(msg)
        if self.trained.shape != self.windows.mass_gev.shape:
            msg = f"{self.trained.shape} marks of trained masses for {len(self.windows)} windows"
            raise ValueError(msg)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the inputs, in their order."""
        return self.search.feature_names

    @property
    def n_folds(self) -> int:
        return len(self.networks)

    def of_fold(self, fold: int) -> TrainedModel:
        """The network of one fold alone, for events of any fold."""
        return replace(self, networks=(self.networks[fold],))

    @property
    def cut(self) -> float:
        if self.conditions.cut is None:
            msg = "a network without a cut: `punzi evaluate` chooses one and writes it to models/"
            raise ModelFileError(msg)
        return self.conditions.cut

    def fold_of(self, identity: npt.NDArray[np.uint32]) -> npt.NDArray[np.int8]:
        """Fold (n,) of each event; 0 for all where there is one network."""
        if self.n_folds == 1:
            return np.zeros(len(identity), np.int8)
        return Folds(self.n_folds).of(identity)

    def score(self, features: FloatArray, fold: IntArray | None = None) -> Float32s:
        """(n, n_features) -> (n,) in [0, 1], by the fold (n,) of each event; nan gives nan."""
        return networks_scores(features, *_judges([self], features, fold))[0]

    def logits(self, features: FloatArray, fold: IntArray | None = None) -> Floats:
        """Output before the sigmoid (n,): resolves what the score rounds to 0 or 1."""
        return networks_logits(features, *_judges([self], features, fold))[0]

    def passes(self, features: FloatArray, fold: IntArray | None = None) -> BoolArray:
        """True where score >= cut; False where an input is nan."""
        return passes(self.score(features, fold), self.cut)


def scores_of(
    models: Sequence[TrainedModel], features: FloatArray, fold: IntArray | None = None
) -> Float32s:
    """Scores (n_models, n) by the models of an ensemble: they have the same folds."""
    return networks_scores(features, *_judges(models, features, fold))


def _judges(
    models: Sequence[TrainedModel], features: FloatArray, fold: IntArray | None
) -> tuple[list[list[NetworkParts]], IntArray | None]:
    """The networks of each model and fold, and the fold of each event, -1 if it has none."""
    n_folds = models[0].n_folds
    fold = None if fold is None else np.asarray(fold)
    if (fold is None and n_folds > 1) or (fold is not None and fold.shape != (len(features),)):
        msg = (
            f"the model has {n_folds} networks, one per fold: give the fold of each event "
            f"(model.fold_of(identity))"
        )
        raise ValueError(msg)
    return [[network.parts for network in model.networks] for model in models], fold


def joined_folds(models: Sequence[TrainedModel]) -> TrainedModel:
    """One model of the networks of its folds, in their order."""
    return replace(models[0], networks=tuple(n for m in models for n in m.networks))


def from_network(
    network: PunziNet,
    *,
    search: Search,
    windows: MassWindows,
    trained: BoolArray,
    conditions: Conditions,
) -> TrainedModel:
    """The model of a trained torch network."""
    return TrainedModel(
        networks=(layers_of(network),),
        windows=windows,
        trained=np.asarray(trained, dtype=np.bool_),
        conditions=conditions,
        search=search,
    )


def with_cut(model: TrainedModel, cut: float | None) -> TrainedModel:
    """The same network with another cut."""
    return replace(model, conditions=replace(model.conditions, cut=cut))


def save_model(model: TrainedModel, path: Path | str) -> None:
    """Writes the model's file, all or nothing."""
    content = {
        "search": json.dumps(model.search.plain(), ensure_ascii=False),  # as text: its order counts
        "search_identity": model.search.identity,
        "n_folds": model.n_folds,
        "n_layers": len(model.networks[0].weights),
        "window_n_sigma": model.windows.n_sigma,
        "window_squared": model.windows.squared,
        "conditions": {**vars(model.conditions)},
    }
    write_model_file(Path(path), content, _arrays(model))


def load_model(path: Path | str) -> TrainedModel:
    """Reads and checks a model; ModelFileError says what is wrong with the file."""
    content, arrays = read_model_file(Path(path))
    try:
        return _model(content, arrays)
    except (
        KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError
    ) as error:  # fmt: skip
        what = f"entry {error} is missing" if isinstance(error, KeyError) else str(error)
        msg = f"{path} is not a usable model: {what}. Train again, or use another model."
        raise ModelFileError(msg) from error


def _arrays(model: TrainedModel) -> Arrays:
    arrays: Arrays = {
        "windows.mass_gev": model.windows.mass_gev,
        "windows.sigma": model.windows.sigma,
        "windows.trained": model.trained,
    }
    for k, network in enumerate(model.networks):
        arrays |= layer_arrays(network, f"fold.{k}.")
    return arrays


def _conditions(stated: Mapping[str, Any]) -> Conditions:
    """Every single one must be stated: a default of today never stands for a missing one."""
    return Conditions(**{f.name: stated[f.name] for f in fields(Conditions)} | dict(stated))


def _search(content: Mapping[str, Any]) -> Search:
    """The definition, read by the rules of any other; its hash is that of the training."""
    found = search_from(json.loads(content["search"]))
    if found.identity != content["search_identity"]:
        msg = "its search is not the one it was trained for"
        raise ValueError(msg)
    return found


def _model(content: Mapping[str, Any], arrays: Arrays) -> TrainedModel:
    n_layers, n_folds = content["n_layers"], content["n_folds"]
    wanted = n_folds * (2 * n_layers + 2) + 3
    if len(arrays) != wanted:
        msg = f"{len(arrays)} arrays found where {n_folds} folds of {n_layers} layers have {wanted}"
        raise ValueError(msg)

    mass, sigma = (array_of(arrays, f"windows.{n}", np.float64) for n in ("mass_gev", "sigma"))
    return TrainedModel(
        networks=tuple(layers_from(arrays, n_layers, f"fold.{k}.") for k in range(n_folds)),
        windows=MassWindows(
            mass, sigma, float(content["window_n_sigma"]), bool(content["window_squared"])
        ),
        trained=array_of(arrays, "windows.trained", np.bool_),
        conditions=_conditions(content["conditions"]),
        search=_search(content),
    )
