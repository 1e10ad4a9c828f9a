"""The score of a trained network, fast and exact: numpy in, numpy out, no torch.

    x' = (x - min) / (max - min),  h = tanh(W x' + b) ...,  z = w h + b,  y = 1 / (1 + e^-z)

Inside, everything is float64: a steep network loses up to 1e-5 of the score in float32, and the
same event must pass the same cut wherever it is scored. Only the result is rounded to float32.
numba does not vectorise math.tanh or math.exp, so 2^t is written out: t = n + r with |r| <= 1/2,
a polynomial for 2^r, and n put straight into the exponent bits. About 40 ns per event and core.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, log

import numba
import numpy as np
import numpy.typing as npt

from selection.table import FloatArray

Floats = npt.NDArray[np.float64]
Float32s = npt.NDArray[np.float32]

_BLOCK = 256  # events; the activations of a block stay in the first-level cache
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, held in the low bits
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = (
    log(2) ** k / factorial(k) for k in range(1, 11)
)

# contract only: nan must stay nan, so that an event with missing inputs never passes a cut
_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"contract"}}


def network_scores(
    features: FloatArray,
    weights: Sequence[FloatArray],
    biases: Sequence[FloatArray],
    feature_min: FloatArray,
    feature_max: FloatArray,
) -> Float32s:
    """Score y (n,) of features (n, n_features); nan where a feature is nan.

    weights[i] (n_out, n_in) and biases[i] (n_out,) of each layer, tanh between them.
    """
    return _sigmoid(_run(features, weights, biases, feature_min, feature_max))


def network_logits(
    features: FloatArray,
    weights: Sequence[FloatArray],
    biases: Sequence[FloatArray],
    feature_min: FloatArray,
    feature_max: FloatArray,
) -> Floats:
    """Output before the sigmoid, z (n,); arguments as for network_scores."""
    return _run(features, weights, biases, feature_min, feature_max)


def _run(
    features: FloatArray,
    weights: Sequence[FloatArray],
    biases: Sequence[FloatArray],
    feature_min: FloatArray,
    feature_max: FloatArray,
) -> Floats:
    if features.ndim != 2 or features.shape[1] != len(feature_min):
        msg = f"features have shape {features.shape}, expected (n_events, {len(feature_min)})"
        raise ValueError(msg)
    kind = np.float32 if features.dtype == np.float32 else np.float64
    low = np.asarray(feature_min, dtype=np.float64)
    out = np.empty(len(features))
    _forward(
        np.ascontiguousarray(features, dtype=kind),
        low,
        1 / (np.asarray(feature_max, dtype=np.float64) - low),
        tuple(np.ascontiguousarray(w, dtype=np.float64) for w in weights),
        tuple(np.ascontiguousarray(b, dtype=np.float64) for b in biases),
        out,
    )
    return out


@numba.njit(inline="always", error_model="numpy", fastmath={"contract"})
def _exp2(t: float) -> float:
    u = t + _ROUND
    r = t - (u - _ROUND)
    p = ((((((((_C10 * r + _C9) * r + _C8) * r + _C7) * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2) * r + _C1  # fmt: skip # noqa: E501
    power = np.int64((np.float64(u).view(np.int64) + np.int64(1023)) << np.int64(52))
    return (p * r + 1.0) * power.view(np.float64)


@numba.njit(inline="always", error_model="numpy", fastmath={"contract"})
def _tanh(x: float) -> float:
    t = abs(x) * 2.8853900817779268  # 2 / ln 2
    t = 60.0 if t > 60.0 else t  # a comparison with nan is false: nan goes through
    return np.copysign(1.0 - 2.0 / (_exp2(t) + 1.0), x)


@numba.njit(**_OPTIONS)
def _sigmoid(z: Floats) -> Float32s:
    out = np.empty(len(z), dtype=np.float32)
    for e in range(len(z)):
        t = -z[e] * 1.4426950408889634  # 1 / ln 2
        t = 1000.0 if t > 1000.0 else t
        t = -1000.0 if t < -1000.0 else t
        out[e] = 1.0 / (1.0 + _exp2(t))
    return out


@numba.njit(**_OPTIONS)
def _forward(
    x: FloatArray,
    low: Floats,
    inverse_range: Floats,
    weights: tuple[Floats, ...],
    biases: tuple[Floats, ...],
    out: Floats,
) -> None:
    widest = x.shape[1]
    for w in weights:
        widest = max(widest, w.shape[0])
    a, b = np.zeros((widest, _BLOCK)), np.zeros((widest, _BLOCK))
    for start in range(0, len(x), _BLOCK):
        n = min(_BLOCK, len(x) - start)
        for i in range(x.shape[1]):
            for e in range(n):
                a[i, e] = (np.float64(x[start + e, i]) - low[i]) * inverse_range[i]
        for layer in range(len(weights)):
            w, bias = weights[layer], biases[layer]
            for j in range(w.shape[0]):
                for e in range(_BLOCK):  # always whole blocks: the loops have a fixed length
                    b[j, e] = bias[j]
                for i in range(w.shape[1]):
                    factor = w[j, i]
                    for e in range(_BLOCK):
                        b[j, e] += factor * a[i, e]
                if layer < len(weights) - 1:
                    for e in range(_BLOCK):
                        b[j, e] = _tanh(b[j, e])
            a, b = b, a
        for e in range(n):
            out[start + e] = a[0, e]
