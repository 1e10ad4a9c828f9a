"""A trained model: everything needed to score new events, and to know where it came from.

    model = load_model("runs/demo/models/net-00.safetensors")
    score = model.score(features)        # (n, n_features) in the order model.features -> (n,)
    keep  = model.passes(features)       # score >= model.cut

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

from models.model_file import Arrays, ModelFileError, read_model_file, write_model_file
from models.scoring import Float32s, Floats, network_logits, network_scores, passes
from selection.search import Search, search_from
from selection.table import BoolArray, FloatArray
from selection.windows import MassWindows

if TYPE_CHECKING:
    from models.network import PunziNet

__all__ = ["ModelFileError", "TrainedModel", "from_network", "load_model", "save_model"]

_WIDEST = 4096


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
    """A network with its scaling, windows and conditions; checks itself."""

    weights: tuple[Float32s, ...]  # (n_out, n_in) per layer
    biases: tuple[Float32s, ...]  # (n_out,) per layer
    feature_min: Float32s  # (n_features,)
    feature_max: Float32s
    windows: MassWindows  # of all masses
    trained: npt.NDArray[np.bool_]  # (n_windows,) was the mass used in training?
    conditions: Conditions
    search: Search

    def __post_init__(self) -> None:
        n_in = len(self.features)
        if self.feature_min.shape != (n_in,) or self.feature_max.shape != (n_in,):
            msg = f"the scaling has shapes {self.feature_min.shape}, {self.feature_max.shape}"
            raise ValueError(msg)
        if not self.weights or len(self.weights) != len(self.biases):
            msg = f"{len(self.weights)} weight matrices and {len(self.biases)} bias vectors"
            raise ValueError(msg)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            n_out = 1 if i == len(self.weights) - 1 else len(bias)
            if weight.shape != (n_out, n_in) or bias.shape != (n_out,) or not 0 < n_out <= _WIDEST:
                msg = f"layer {i} has shapes {weight.shape}, {bias.shape}; expected {n_in} inputs"
                raise ValueError(msg)
            n_in = n_out
        numbers = (self.feature_min, self.feature_max, *self.weights, *self.biases)
        if not all(np.isfinite(a).all() for a in numbers):
            msg = "weights, biases and scaling must be finite; the training diverged"
            raise ValueError(msg)
        if not (self.feature_min < self.feature_max).all():
            msg = f"the scaling is empty: min {self.feature_min}, max {self.feature_max}"
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
    def cut(self) -> float:
        if self.conditions.cut is None:
            msg = "a network without a cut: `punzi evaluate` chooses one and writes it to models/"
            raise ModelFileError(msg)
        return self.conditions.cut

    def score(self, features: FloatArray) -> Float32s:
        """(n, n_features) -> (n,) in [0, 1]; nan where an input is nan."""
        return network_scores(features, *self._network())

    def logits(self, features: FloatArray) -> Floats:
        """Output before the sigmoid (n,): resolves what the score rounds to 0 or 1."""
        return network_logits(features, *self._network())

    def passes(self, features: FloatArray) -> BoolArray:
        """True where score >= cut; False where an input is nan."""
        return passes(self.score(features), self.cut)

    def _network(self) -> tuple[Sequence[FloatArray], Sequence[FloatArray], FloatArray, FloatArray]:
        return self.weights, self.biases, self.feature_min, self.feature_max


def from_network(
    network: PunziNet,
    *,
    search: Search,
    windows: MassWindows,
    trained: BoolArray,
    conditions: Conditions,
) -> TrainedModel:
    """The model of a trained torch network."""
    state = {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}
    n_layers = len(network.hidden) + 1
    return TrainedModel(
        weights=tuple(state[f"layers.{i}.weight"].copy() for i in range(n_layers)),
        biases=tuple(state[f"layers.{i}.bias"].copy() for i in range(n_layers)),
        feature_min=state["feature_min"].copy(),
        feature_max=state["feature_max"].copy(),
        windows=windows,
        trained=np.asarray(trained, dtype=np.bool_),
        conditions=conditions,
        search=search,
    )


def with_cut(model: TrainedModel, cut: float | None) -> TrainedModel:
    """The same network with another cut."""
    return replace(model, conditions=replace(model.conditions, cut=cut))


def mean_and_spread(
    models: Sequence[TrainedModel], features: FloatArray
) -> tuple[Float32s, Float32s]:
    """Mean score of an ensemble and its standard deviation over the networks, each (n,)."""
    mean, square = np.zeros(len(features)), np.zeros(len(features))
    for count, model in enumerate(models, start=1):  # Welford: no (n_models, n) array
        score = model.score(features).astype(np.float64)
        step = score - mean
        mean += step / count
        square += step * (score - mean)
    spread = np.sqrt(square / max(len(models) - 1, 1))
    return mean.astype(np.float32), spread.astype(np.float32)


def save_model(model: TrainedModel, path: Path | str) -> None:
    """Writes the model's file, all or nothing."""
    content = {
        "search": json.dumps(model.search.plain(), ensure_ascii=False),  # as text: its order counts
        "search_identity": model.search.identity,
        "n_layers": len(model.weights),
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
    layers = range(len(model.weights))
    return {
        **{f"layers.{i}.weight": model.weights[i] for i in layers},
        **{f"layers.{i}.bias": model.biases[i] for i in layers},
        "feature_min": model.feature_min,
        "feature_max": model.feature_max,
        "windows.mass_gev": model.windows.mass_gev,
        "windows.sigma": model.windows.sigma,
        "windows.trained": model.trained,
    }


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
    n_layers = content["n_layers"]
    wanted = 2 * n_layers + 5
    if len(arrays) != wanted:
        msg = f"{len(arrays)} arrays found where {n_layers} layers have {wanted}"
        raise ValueError(msg)

    def array(name: str, kind: type[Any], n_dim: int = 1) -> npt.NDArray[Any]:
        found = arrays[name]
        if found.dtype != kind or found.ndim != n_dim:
            msg = f"{name} is {found.dtype} with shape {found.shape}"
            raise ValueError(msg)
        return found

    mass, sigma = (array(f"windows.{n}", np.float64) for n in ("mass_gev", "sigma"))
    return TrainedModel(
        weights=tuple(array(f"layers.{i}.weight", np.float32, 2) for i in range(n_layers)),
        biases=tuple(array(f"layers.{i}.bias", np.float32) for i in range(n_layers)),
        feature_min=array("feature_min", np.float32),
        feature_max=array("feature_max", np.float32),
        windows=MassWindows(
            mass, sigma, float(content["window_n_sigma"]), bool(content["window_squared"])
        ),
        trained=array("windows.trained", np.bool_),
        conditions=_conditions(content["conditions"]),
        search=_search(content),
    )
