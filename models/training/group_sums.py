"""Group sums of a network, differentiable by its weights.

    S_g(theta) = sum over events i of group g of w_i q(z_i(theta))         (n_groups,) float64
    q = y (score), -log P(target) (bce) or [y > 0.5] (accepted, gradient zero)

Two forms of the same function:

    fused   one sweep gives S and J = dS/dtheta (n_groups x 81 numbers at 4-8-4-1); backward is
            dL/dS @ J.
            PunziNet with two hidden layers, float32, on the CPU.
    torch   chunks through any nn.Module with `logits`, on any device and in any precision;
            backward goes through the chunks again with dL/dS as weights. The float64 oracle.

Both keep no activations. Events are added in pieces fixed by the data, and pieces in their order:
the result is the same to the last bit for any number of threads. Sums of parts add up, so files,
processes or machines may each take a share and add S and J.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from models.network import PunziNet
from models.training.kernels import ACCEPTED, BCE, SCORE, memory_of, piece_sums
from models.training.training_set import PIECE, GroupedEvents
from selection.table import IntArray

Quantity = Literal["score", "bce", "accepted"]
SumsBy = Literal["auto", "fused", "torch"]
Map = Callable[..., Iterable[Any]]  # map, or threads.shared_map
Widths = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

CHUNK = 65536  # rows; float32 weight gradients over millions of rows are wrong by percents
TASK = 65536  # events handed to a thread at once


def is_fusible(network: nn.Module) -> bool:
    """True where the fused form applies."""
    if type(network) is not PunziNet or len(network.layers) != 3:
        return False
    like = network.feature_min  # moves with the weights
    return like.dtype == torch.float32 and like.device.type == "cpu"


def group_sums(
    network: nn.Module,
    events: GroupedEvents,
    *,
    quantity: Quantity = "score",
    by: SumsBy = "auto",
    over: Map = map,
) -> Tensor:
    """S (n_groups,) of the module's head. `over` maps tasks (models/training/threads.py)."""
    if by not in get_args(SumsBy):
        msg = f"group sums by {by!r} are not known; choose one of {get_args(SumsBy)}"
        raise ValueError(msg)
    fusible = by != "torch" and is_fusible(network)
    if by == "fused" and not fusible:
        msg = (
            "the fused form is for PunziNet with two hidden layers in float32 on the CPU; "
            "use by='auto' or 'torch' for this network"
        )
        raise ValueError(msg)
    parameters = tuple(network.parameters())
    wanted = torch.is_grad_enabled() and any(p.requires_grad for p in parameters)
    if isinstance(network, PunziNet) and fusible and not wanted:
        # asked here: inside a torch Function, parameters need gradients even where nobody does
        theta = packed(parameters)
        plain = fused_sums(theta, network, events, quantity, gradient=False, over=over)
        return torch.from_numpy(plain[0])
    apply = _Fused.apply if fusible else _Chunked.apply
    sums: Tensor = apply(network, events, quantity, over, *parameters)
    return sums


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        network: PunziNet,
        events: GroupedEvents,
        quantity: Quantity,
        over: Map,
        *parameters: Tensor,
    ) -> Tensor:
        theta = packed(parameters)
        sums, ctx.jacobian = fused_sums(theta, network, events, quantity, gradient=True, over=over)
        ctx.shapes = [p.shape for p in parameters]
        return torch.from_numpy(sums)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        by_theta = gradients[0].detach().numpy() @ ctx.jacobian
        return None, None, None, None, *unpacked(by_theta, ctx.shapes)


def fused_sums(
    theta: npt.NDArray[np.float32],
    network: PunziNet,
    events: GroupedEvents,
    quantity: Quantity,
    *,
    gradient: bool,
    over: Map = map,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """S (n_groups,) and dS/dtheta (n_groups, n_parameters padded; no columns if not asked).

    theta holds the weights (see `packed`), the network the scaling. Both results are sums over
    events: those of several files or machines may simply be added.
    """
    pieces = events.pieces
    code = {"score": SCORE, "bce": BCE, "accepted": ACCEPTED}[quantity]
    out = np.empty((len(pieces.group), 1 + len(theta) * gradient))
    if not np.isfinite(theta).all():
        out[:] = np.nan  # the compiled clamps would turn nan into a plausible number
    else:
        scaling, widths = scaling_rows(network, events.features), padded_widths(network)

        def task(part: slice) -> None:
            piece_sums(
                events.features, events.weight, scaling, pieces.bounds[part], pieces.target[part],
                code, memory_of(widths, theta), widths, out[part],
            )  # fmt: skip

        for _ in over(task, _tasks(pieces.bounds) if over is not map else [slice(None)]):
            pass
    total = out
    if len(pieces.first) < len(out) or len(out) < events.n_groups:
        total = np.zeros((events.n_groups, out.shape[1]))
        if len(out):
            total[pieces.group[pieces.first]] = np.add.reduceat(out, pieces.first, axis=0)
    return np.ascontiguousarray(total[:, 0]), total[:, 1:]


def _tasks(bounds: IntArray) -> list[slice]:
    """Consecutive pieces, about TASK events at a time and at least four tasks."""
    done = np.cumsum(bounds[:, 1] - bounds[:, 0])
    n_tasks = max(4, int(done[-1]) // TASK) if len(done) else 0
    cuts = np.searchsorted(done, np.arange(n_tasks + 1) * (done[-1] / n_tasks)) if n_tasks else []
    edges = [0, *map(int, cuts[1:-1]), len(bounds)] if n_tasks else []
    return [slice(a, b) for a, b in pairwise(edges) if a < b]


def padded(width: int) -> int:
    """The next multiple of four: inputs and neurons are computed four at a time."""
    return -(-width // 4) * 4


def padded_widths(network: PunziNet) -> Widths:
    """Tuples as long as padded inputs and hidden layers (models/training/kernels.py says why)."""
    n_in, first, second = map(padded, (network.n_features, *network.hidden))
    return (0,) * n_in, (0,) * first, (0,) * second


def scaling_rows(network: PunziNet, features: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(2, n_features): minimum and 1/(max - min) of the features (n_features, n) of the events.

    Compiled code asks nothing: events with other features than the network's end here.
    """
    if len(features) != network.n_features:
        msg = (
            f"the events have {len(features)} features, the network {network.n_features}; make the "
            f"network from the minima and maxima of the same features"
        )
        raise ValueError(msg)
    low, high = network.feature_min.numpy(), network.feature_max.numpy()
    return np.stack([low, np.float32(1) / (high - low)])


def _padded_shapes(shapes: Sequence[torch.Size]) -> list[tuple[int, ...]]:
    n_in, first, second = map(padded, (shapes[0][1], shapes[0][0], shapes[2][0]))
    return [(first, n_in), (first,), (second, first), (second,), (1, second), (1,)]


def packed(parameters: Sequence[Tensor]) -> npt.NDArray[np.float32]:
    """W1, b1, W2, b2, w3, b3 as one flat vector, every layer padded with zeros."""
    parts = []
    shapes = _padded_shapes([p.shape for p in parameters])
    for parameter, shape in zip(parameters, shapes, strict=True):
        block = parameter.detach().numpy()
        if block.shape != shape:
            block = np.zeros(shape, np.float32)
            block[tuple(map(slice, parameter.shape))] = parameter.detach().numpy()
        parts.append(block.ravel())
    return np.concatenate(parts)


def unpacked(theta: npt.NDArray[Any], shapes: Sequence[torch.Size]) -> list[Tensor]:
    """A flat padded vector as float32 tensors of the given shapes."""
    flat, parts, at = theta.astype(np.float32), [], 0
    for shape, stored in zip(shapes, _padded_shapes(shapes), strict=True):
        size = math.prod(stored)
        block = flat[at : at + size].reshape(stored)[tuple(map(slice, shape))]
        parts.append(torch.from_numpy(block.copy() if shape != stored else block))
        at += size
    return parts


def put_back(theta: npt.NDArray[np.float32], network: PunziNet) -> None:
    """Give the network the weights of a flat padded vector."""
    parameters = list(network.parameters())
    with torch.no_grad():
        for old, new in zip(
            parameters, unpacked(theta, [p.shape for p in parameters]), strict=True
        ):
            old.copy_(new)


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, network: nn.Module, events: GroupedEvents, quantity: Quantity, _: Map, *__: Tensor
    ) -> Tensor:
        ctx.network, ctx.events, ctx.quantity = network, events, quantity
        sums = torch.zeros(events.n_groups, dtype=torch.float64)
        with torch.no_grad():
            for index, weight, features in _chunks(events, network):
                value = _value(network, features, events.target[index], quantity)
                sums.index_add_(0, torch.from_numpy(index), (weight * value).double().cpu())
        return sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        network, events = ctx.network, ctx.events
        total = [torch.zeros_like(p, dtype=torch.float64) for p in network.parameters()]
        if ctx.quantity != "accepted":
            for index, weight, features in _chunks(events, network):
                with torch.enable_grad():
                    value = _value(network, features, events.target[index], ctx.quantity)
                    pull = weight * gradients[0][torch.from_numpy(index)].to(weight)
                    parts = torch.autograd.grad((pull * value).sum(), list(network.parameters()))
                total = [t + part.double() for t, part in zip(total, parts, strict=True)]
        cast = [t.to(p.dtype) for t, p in zip(total, network.parameters(), strict=True)]
        return None, None, None, None, *cast


def _chunks(
    events: GroupedEvents, network: nn.Module
) -> Iterable[tuple[npt.NDArray[np.int64], Tensor, Tensor]]:
    """Group (m,), weight (m,) and features (m, n_features) of at most CHUNK consecutive events."""
    like = next(network.parameters())
    pieces = events.pieces
    length = pieces.bounds[:, 1] - pieces.bounds[:, 0]
    chunk = (np.cumsum(length) - length) // (CHUNK - PIECE)
    for part in np.split(np.arange(len(length)), np.flatnonzero(np.diff(chunk)) + 1):
        if not len(part):
            continue
        rows = np.concatenate([np.arange(start, stop) for start, stop in pieces.bounds[part]])
        features = torch.from_numpy(np.ascontiguousarray(events.features[:, rows].T))
        index = np.repeat(pieces.group[part], length[part]).astype(np.int64)
        yield index, torch.from_numpy(events.weight[rows]).to(like), features.to(like)


def _value(
    network: nn.Module, features: Tensor, target: npt.NDArray[np.float32], quantity: Quantity
) -> Tensor:
    logits: Tensor = network.logits(features)  # type: ignore[operator]
    if quantity == "score":
        return torch.sigmoid(logits)
    if quantity == "accepted":
        return (logits > 0).to(logits)
    wanted = torch.from_numpy(target).to(logits)
    return nn.functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
