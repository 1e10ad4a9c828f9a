"""Adam's step in closed form, for epochs in compiled code: torch.optim.Adam to rounding.

    m <- m + (1 - b1) (g - m),   v <- b2 v + (1 - b2) g^2          b1 = 0.9, b2 = 0.999
    theta <- theta - r / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + 1e-8)     t = 1, 2, ...

The memory is taken from torch's optimiser before an epoch and given back after it, so that
checkpoints hold one kind of memory, whoever made the steps. float32 throughout, as torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from models.network import PunziNet
from models.training.group_sums import packed, unpacked

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # torch's defaults, of the paper on Adam (1412.6980)

Flat = npt.NDArray[np.float32]


@dataclass
class AdamMemory:
    """Steps made, and the running means of g and g^2 (flat and padded as theta)."""

    steps: int
    mean: Flat
    square: Flat

    def moved(self, theta: Flat, gradient: npt.NDArray[np.float64], rate: float) -> Flat:
        """theta after one more step, which is remembered."""
        g: Flat = gradient.astype(np.float32)
        self.steps += 1
        self.mean = _single(self.mean + np.float32(1 - BETA1) * (g - self.mean))
        self.square = _single(np.float32(BETA2) * self.square + np.float32(1 - BETA2) * (g * g))
        size = rate / (1 - BETA1**self.steps)
        root = np.sqrt(self.square) / np.float32((1 - BETA2**self.steps) ** 0.5)
        return _single(theta - np.float32(size) * (self.mean / (root + np.float32(EPSILON))))


def _single(values: npt.NDArray[Any]) -> Flat:
    return values.astype(np.float32, copy=False)


def memory_of(optimizer: torch.optim.Optimizer, network: PunziNet) -> AdamMemory:
    """What torch's Adam remembers of the network's parameters; nothing before its first step."""
    parameters = list(network.parameters())
    states = [optimizer.state.get(p, {}) for p in parameters]
    if not all(states):
        zero = packed([torch.zeros_like(p) for p in parameters])
        return AdamMemory(0, zero, zero)
    mean, square = (packed([s[name] for s in states]) for name in ("exp_avg", "exp_avg_sq"))
    return AdamMemory(int(states[0]["step"]), mean, square)


def give_back(memory: AdamMemory, optimizer: torch.optim.Optimizer, network: PunziNet) -> None:
    """torch's Adam goes on from here."""
    parameters = list(network.parameters())
    means, squares = (
        unpacked(flat, [p.shape for p in parameters]) for flat in (memory.mean, memory.square)
    )
    for parameter, mean, square in zip(parameters, means, squares, strict=True):
        steps = torch.tensor(float(memory.steps))
        state: dict[str, Tensor] = {"step": steps, "exp_avg": mean, "exp_avg_sq": square}
        optimizer.state[parameter] = state
