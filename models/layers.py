"""One network with its scaling, and the mean of several as one network.

    z = (1/n) sum over seeds of z_s(x),   y = 1 / (1 + e^-z)          mean before the sigmoid

    W1 = W1_1 above W1_2 ...    W2 = W2_1, W2_2 ... along the diagonal    w3 = (w3_1, w3_2 ...) / n

The output before the sigmoid is linear in the last hidden layer: the mean over networks with the
same inputs and scaling is itself such a network, with their hidden layers side by side. Whoever
scores, stores or exports a network takes a mean of seeds without knowing it. Weights divided by n
are rounded to float32 like all others; the mean of one network is that network, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from models.model_file import Arrays, ModelFileError, read_model_file, write_model_file
from models.scoring import Float32s, NetworkParts

if TYPE_CHECKING:
    from models.network import PunziNet

WIDEST = 4096  # neurons in a layer


@dataclass(frozen=True, eq=False)
class Layers:
    """One network with its scaling; checks itself."""

    weights: tuple[Float32s, ...]  # (n_out, n_in) per layer
    biases: tuple[Float32s, ...]  # (n_out,) per layer
    feature_min: Float32s  # (n_features,)
    feature_max: Float32s

    def __post_init__(self) -> None:
        n_in = len(self.feature_min)
        if self.feature_min.shape != (n_in,) or self.feature_max.shape != (n_in,):
            msg = f"the scaling has shapes {self.feature_min.shape}, {self.feature_max.shape}"
            raise ValueError(msg)
        if not self.weights or len(self.weights) != len(self.biases):
            msg = f"{len(self.weights)} weight matrices and {len(self.biases)} bias vectors"
            raise ValueError(msg)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            n_out = 1 if i == len(self.weights) - 1 else len(bias)
            if weight.shape != (n_out, n_in) or bias.shape != (n_out,) or not 0 < n_out <= WIDEST:
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

    @property
    def parts(self) -> NetworkParts:
        return self.weights, self.biases, self.feature_min, self.feature_max


def mean_network(networks: Sequence[Layers]) -> Layers:
    """The network whose output before the sigmoid is the mean of theirs, in their order."""
    first, n = networks[0], len(networks)
    if n == 1:
        return first
    for other in networks:
        same = len(other.weights) == len(first.weights) and all(
            np.array_equal(getattr(other, edge), getattr(first, edge))
            for edge in ("feature_min", "feature_max")
        )
        if not same:
            msg = "a mean is of networks with the same number of layers and the same scaling"
            raise ValueError(msg)
    *hidden, last = range(len(first.weights))
    weights = [_side_by_side([net.weights[i] for net in networks], i == 0) for i in hidden]
    biases = [np.concatenate([net.biases[i] for net in networks]) for i in hidden]
    end = [net.weights[last].astype(np.float64) / n for net in networks]
    joined = np.concatenate(end, axis=1) if hidden else np.sum(end, axis=0)
    bias = np.array([net.biases[last] for net in networks], np.float64).sum(axis=0) / n
    return Layers(
        weights=(*weights, joined.astype(np.float32)),
        biases=(*biases, np.asarray(bias, np.float32)),
        feature_min=first.feature_min,
        feature_max=first.feature_max,
    )


def _side_by_side(weights: Sequence[Float32s], of_inputs: bool) -> Float32s:
    """All see the same inputs; later layers see their own network only."""
    if of_inputs:
        return np.concatenate(weights)
    shapes = np.array([w.shape for w in weights])
    joined: npt.NDArray[np.float32] = np.zeros(shapes.sum(axis=0), np.float32)
    for w, (row, column) in zip(weights, np.cumsum(shapes, axis=0) - shapes, strict=True):
        joined[row : row + w.shape[0], column : column + w.shape[1]] = w
    return joined


def layers_of(network: PunziNet) -> Layers:
    """Of a trained torch network."""
    state = {name: tensor.detach().cpu().numpy() for name, tensor in network.state_dict().items()}
    n_layers = len(network.hidden) + 1
    return Layers(
        weights=tuple(state[f"layers.{i}.weight"].copy() for i in range(n_layers)),
        biases=tuple(state[f"layers.{i}.bias"].copy() for i in range(n_layers)),
        feature_min=state["feature_min"].copy(),
        feature_max=state["feature_max"].copy(),
    )


def layer_arrays(network: Layers, prefix: str = "") -> Arrays:
    """The arrays of a network by the names they have in a file."""
    arrays: Arrays = {}
    for i, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays |= {f"{prefix}layers.{i}.weight": weight, f"{prefix}layers.{i}.bias": bias}
    edges = {"feature_min": network.feature_min, "feature_max": network.feature_max}
    return arrays | {f"{prefix}{name}": edge for name, edge in edges.items()}


def layers_from(arrays: Arrays, n_layers: int, prefix: str = "") -> Layers:
    """The network that `layer_arrays` names; KeyError or ValueError if something is wrong."""
    at = [f"{prefix}layers.{i}" for i in range(n_layers)]
    return Layers(
        weights=tuple(array_of(arrays, f"{name}.weight", np.float32, 2) for name in at),
        biases=tuple(array_of(arrays, f"{name}.bias", np.float32) for name in at),
        feature_min=array_of(arrays, f"{prefix}feature_min", np.float32),
        feature_max=array_of(arrays, f"{prefix}feature_max", np.float32),
    )


def array_of(arrays: Arrays, name: str, kind: type[Any], n_dim: int = 1) -> npt.NDArray[Any]:
    """An array of a file, of the kind it must be."""
    found = arrays[name]
    if found.dtype != kind or found.ndim != n_dim:
        msg = f"{name} is {found.dtype} with shape {found.shape}"
        raise ValueError(msg)
    return found


def save_layers(network: Layers, path: Path, about: Mapping[str, Any]) -> None:
    """A network that is no model of a search, such as one for comparison; all or nothing."""
    write_model_file(path, {"n_layers": len(network.weights), **about}, layer_arrays(network))


def load_layers(path: Path) -> Layers:
    """What `save_layers` wrote."""
    content, arrays = read_model_file(path)
    try:
        return layers_from(arrays, content["n_layers"])
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path} is not a usable network: {error}. Train again."
        raise ModelFileError(msg) from error
