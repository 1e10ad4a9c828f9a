"""The Punzi-net: a small fully connected network that gives every event one number in (0, 1).

    x' = (x - min) / (max - min)                    per feature, over the training sample
    h1 = tanh(W1 x' + b1),  h2 = tanh(W2 h1 + b2)   8 and 4 neurons in the paper
    z  = w3 h2 + b3,        y = sigmoid(z)

The scaling belongs to the model: `feature_min` and `feature_max` are buffers and are saved with
the weights, so a network is applied to raw features, in the order it was trained with: 1 to 32 of
them, as many as the ranges it is made from.
z is kept apart (`logits`): scores cluster at 0 and 1, where float32 y loses what z still tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from selection.table import FloatArray

MAX_FEATURES = 32  # up to which the compiled training is tested and measured


class PunziNet(nn.Module):
    """features (n, n_features) -> score (n,); `hidden` gives the widths of the tanh layers."""

    feature_min: Tensor  # (n_features,)
    feature_max: Tensor  # (n_features,)

    def __init__(
        self,
        feature_min: Sequence[float] | FloatArray,
        feature_max: Sequence[float] | FloatArray,
        *,
        hidden: Sequence[int] = (8, 4),
        seed: int | None = None,
    ) -> None:
        """With a seed the weights are drawn from it alone; without, from torch's global state."""
        super().__init__()
        low, high = np.asarray(feature_min, np.float32), np.asarray(feature_max, np.float32)
        if low.ndim != 1 or not 1 <= len(low) <= MAX_FEATURES or high.shape != low.shape:
            msg = (
                f"feature ranges have shapes {low.shape}, {high.shape}; expected twice the same, "
                f"for 1 to {MAX_FEATURES} features"
            )
            raise ValueError(msg)
        if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
            msg = f"feature ranges must be finite and rising, found min {low} and max {high}"
            raise ValueError(msg)
        if not hidden or min(hidden) < 1:
            msg = f"hidden widths must be at least one positive number, found {tuple(hidden)}"
            raise ValueError(msg)
        self.register_buffer("feature_min", torch.from_numpy(low.copy()))
        self.register_buffer("feature_max", torch.from_numpy(high.copy()))
        widths = (len(low), *hidden, 1)
        self.layers = nn.ModuleList(nn.Linear(n_in, n_out) for n_in, n_out in pairwise(widths))
        if seed is not None:
            self._draw_weights(seed)

    def _draw_weights(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter, bound in zip(self.parameters(), self._bounds(), strict=True):
                parameter.uniform_(-bound, bound, generator=generator)

    def _bounds(self) -> list[float]:
        """1/sqrt(inputs) for weight and bias of each layer: torch's own default for Linear."""
        return [layer.in_features**-0.5 for layer in self._linear() for _ in ("weight", "bias")]

    def _linear(self) -> list[nn.Linear]:
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    @property
    def hidden(self) -> tuple[int, ...]:
        """Widths of the hidden layers."""
        return tuple(layer.out_features for layer in self._linear()[:-1])

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return len(self.feature_min)

    def logits(self, features: Tensor) -> Tensor:
        """Output before the sigmoid: (n, n_features) -> (n,)."""
        x = (features - self.feature_min) / (self.feature_max - self.feature_min)
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        z: Tensor = self.layers[-1](x)
        return z.squeeze(-1)

    def forward(self, features: Tensor) -> Tensor:
        """Score: (n, n_features) -> (n,)."""
        return torch.sigmoid(self.logits(features))
