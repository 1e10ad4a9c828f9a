"""The score of a trained network, fast and exact: numpy in, numpy out, no torch.

    x' = (x - min) / (max - min),  h = tanh(W x' + b) ...,  z = w h + b,  y = 1 / (1 + e^-z)

    tanh(u) = 1 - 2 s(2 u / ln 2),  y = s(-z / ln 2)        with s(t) = 1 / (1 + 2^t)

Scaling and constants go into the weights before the first event; what is left for every event and
layer, the last one too, is t = W s + b and s(t). numba does not vectorise math.exp, so 2^t is
written out: t = n + r with |r| <= 1/2, a polynomial for 2^r, and n put straight into the exponent
bits. About 6 ns per event and core with 4-8-4-1 neurons: 290 instructions for eight numbers.

Which network judges an event is said by its fold: events are put in order inside spans that stay
in the second-level cache, and all models of an ensemble read an event once.

Inside, everything is float64: a steep network loses up to 1e-5 of the score in float32, and the
same event must pass the same cut wherever it is scored. Only the result is rounded to float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, log

import numba
import numpy as np
import numpy.typing as npt

from selection.table import BoolArray, FloatArray

Floats = npt.NDArray[np.float64]
Float32s = npt.NDArray[np.float32]
Layers = tuple[tuple[Floats, ...], tuple[Floats, ...]]  # W (n_out, n_in) and b (n_out,) of each
# a network as it is stored: weights, biases, least and largest value of each feature
NetworkParts = tuple[Sequence[FloatArray], Sequence[FloatArray], FloatArray, FloatArray]

_BLOCK = 128  # events; the activations of a block stay in the first-level cache
_SPAN = 16  # blocks of each fold, about: a span's last block of each fold is not full
_FOUR = 4  # rows of a layer that are added at once: numbers of neurons are padded to multiples
_LIMIT = 1000.0  # 2^t stays a normal number; s is 0 or 1 in float32 long before
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, held in the low bits
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = (log(2) ** k / factorial(k) for k in range(1, 9))

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
    return networks_scores(features, [[(weights, biases, feature_min, feature_max)]], None)[0]


def networks_scores(
    features: FloatArray,
    models: Sequence[Sequence[NetworkParts]],
    fold: npt.NDArray[np.integer] | None,
) -> Float32s:
    """Scores (n_models, n) by several models, each with one network per fold.

    An event is judged by the networks of its fold (n,), and is nan where there is none; without
    folds a model has one network, for all events.
    """
    out = np.empty((len(models), len(features)), np.float32)
    _run(features, models, fold, out, squash=True)
    return out


def networks_logits(
    features: FloatArray,
    models: Sequence[Sequence[NetworkParts]],
    fold: npt.NDArray[np.integer] | None,
) -> Floats:
    """Output before the sigmoid, z (n_models, n); arguments as for networks_scores.

    As exact as the features: seven digits of float32, all of float64.
    """
    kind = np.result_type(features.dtype, np.float32)
    out: Float32s | Floats = np.empty((len(models), len(features)), kind)
    _run(features, models, fold, out, squash=False)
    return out.astype(np.float64) * -log(2)


def mean_and_spread(scores: Float32s) -> tuple[Float32s, Float32s]:
    """Mean and standard deviation over the models of scores (n_models, n), each (n,)."""
    mean, spread = np.empty((2, scores.shape[1]), np.float32)
    _mean_and_spread(scores, np.empty((2, _BLOCK)), mean, spread)
    return mean, spread


def passes(score: FloatArray, cut: float | FloatArray) -> BoolArray:
    """True where score >= cut, compared in float64 so that a cut read back from a file agrees."""
    result: BoolArray = np.asarray(score, dtype=np.float64) >= np.asarray(cut, dtype=np.float64)
    return result


def _run(
    features: FloatArray,
    models: Sequence[Sequence[NetworkParts]],
    fold: npt.NDArray[np.integer] | None,
    out: Float32s | Floats,
    *,
    squash: bool,
) -> None:
    """Scores into an array, or -z / ln 2."""
    n_folds, n_features = len(models[0]), len(models[0][0][2])
    if features.ndim != 2 or features.shape[1] != n_features:
        msg = f"features have shape {features.shape}, expected (n_events, {n_features})"
        raise ValueError(msg)
    if len({len(weights) for model in models for weights, *_ in model}) > 1:
        for model, row in zip(models, out, strict=True):  # an ensemble of unequal depth
            _run(features, [model], fold, row[None], squash=squash)
        return
    layers = _side_by_side([network for model in models for network in model])
    rows = np.zeros((layers[0][0].shape[2] + sum(b.shape[1] for b in layers[1]), _BLOCK))
    places = np.empty((n_folds + 1, _SPAN * _BLOCK * n_folds), np.uint32)
    folds = np.empty(0, np.int8) if fold is None else np.asarray(fold, np.int8)
    # both float32 or both float64: a kernel for each pair of types is half a second to compile
    kind = np.float32 if features.dtype == out.dtype == np.float32 else np.float64
    whole = out if out.dtype == kind else np.empty(out.shape)
    columns = np.ascontiguousarray(features.T, dtype=kind)
    _forward(columns, folds, places, *layers, rows, whole, squash)
    if whole is not out:
        out[:] = whole


def _side_by_side(networks: Sequence[NetworkParts]) -> Layers:
    """W (n_networks, n_out, n_in) and b (n_networks, n_out) of each layer, filled up with zeros."""
    each = [_layers(*network) for network in networks]
    stacks = []
    for of_layer in zip(*(weights + biases for weights, biases in each), strict=True):
        shape = np.max([array.shape for array in of_layer], axis=0)
        stack = np.zeros((len(each), *shape))
        for row, array in zip(stack, of_layer, strict=True):
            row[tuple(map(slice, array.shape))] = array
        stacks.append(stack)
    return tuple(stacks[: len(stacks) // 2]), tuple(stacks[len(stacks) // 2 :])


def _layers(
    weights: Sequence[FloatArray],
    biases: Sequence[FloatArray],
    feature_min: FloatArray,
    feature_max: FloatArray,
) -> Layers:
    """The same network for s instead of tanh, with the scaling of the features inside."""
    low, high = (np.asarray(edge, np.float64) for edge in (feature_min, feature_max))
    shift, factor = -low / (high - low), 1 / (high - low)  # x' = shift + factor x
    new_weights, new_biases = [], []
    for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        last = i == len(weights) - 1
        scale = -1 / log(2) if last else 2 / log(2)
        w = np.asarray(weight, np.float64)
        b = scale * (np.asarray(bias, np.float64) + w @ shift)
        w = scale * w * factor
        n_out, n_in = 1 if last else _padded(len(w)), _padded(w.shape[1])
        new_weights.append(np.zeros((n_out, n_in)))
        new_biases.append(np.zeros(n_out))
        new_weights[i][: len(w), : w.shape[1]] = w
        new_biases[i][: len(b)] = b
        shift, factor = np.ones(len(b)), np.full(len(b), -2.0)  # tanh = 1 - 2 s
    return tuple(new_weights), tuple(new_biases)


def _padded(n: int) -> int:
    return -(-n // _FOUR) * _FOUR


@numba.njit(inline="always", error_model="numpy", fastmath={"contract"})
def _s(t: float) -> float:
    t = _LIMIT if t > _LIMIT else t  # a comparison with nan is false: nan goes through
    t = -_LIMIT if t < -_LIMIT else t
    u = t + _ROUND
    r = t - (u - _ROUND)
    p = (((((((_C8 * r + _C7) * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r
    power = np.int64((np.float64(u).view(np.int64) + np.int64(1023)) << np.int64(52))
    return 1.0 / ((p + 1.0) * power.view(np.float64) + 1.0)


@numba.njit(**_OPTIONS)
def _mean_and_spread(scores: Float32s, room: Floats, mean: Float32s, spread: Float32s) -> None:
    sums, squares, count = room[0], room[1], float(len(scores))
    for start in range(0, len(mean), _BLOCK):
        n = min(_BLOCK, len(mean) - start)
        sums[:], squares[:] = 0.0, 0.0
        for k in range(len(scores)):
            for e in range(n):
                sums[e] += np.float64(scores[k, start + e])
        for e in range(n):
            sums[e] /= count
            mean[start + e] = sums[e]
        for k in range(len(scores)):
            for e in range(n):
                squares[e] += (np.float64(scores[k, start + e]) - sums[e]) ** 2
        for e in range(n):
            spread[start + e] = np.sqrt(squares[e] / max(count - 1.0, 1.0))


@numba.njit(**_OPTIONS)
def _forward(
    x: FloatArray,
    fold: npt.NDArray[np.int8],
    places: npt.NDArray[np.uint32],  # unsigned: no place counts from the end
    weights: tuple[Floats, ...],
    biases: tuple[Floats, ...],
    rows: Floats,
    out: Float32s | Floats,
    squash: bool,
) -> None:
    """x (n_features, n) -> out (n_models, n), the t of the last layer, or s(t) if to be squashed.

    fold (n,), or empty: all events are of one. places (n_folds + 1, n_span): the events of a span
    by fold, those of none in the first row.
    The activations of all layers are `rows` of one allocation, zero before: compiled loops ask at
    run time whether their arrays overlap, and here the answer, and with it the rounding, is always
    the same.
    """
    n_folds, n_span = len(places) - 1, places.shape[1]
    count = np.zeros(n_folds + 1, np.int64)
    for begin in range(0, out.shape[1], n_span):
        size = min(n_span, out.shape[1] - begin)
        if len(fold):
            _by_fold(fold[begin : begin + size], places, count)
            out[:, begin : begin + size] = np.nan
        else:
            count[1] = size
        for k in range(n_folds):
            for start in range(0, count[k + 1], _BLOCK):
                n = min(_BLOCK, count[k + 1] - start)
                stop = start + n
                place = places[k + 1, start:stop]
                for i in range(len(x)):
                    target = rows[i]
                    if len(fold):
                        source = x[i, begin : begin + size]
                        for e in range(n):
                            target[e] = source[place[e]]
                    else:
                        source = x[i, begin + start : begin + stop]
                        for e in range(n):
                            target[e] = source[e]
                    for e in range(_BLOCK):
                        target[e] += target[e] - target[e]  # infinite becomes nan
                for m in range(len(out)):
                    _block(m * n_folds + k, weights, biases, rows, squash)
                    last = rows[len(rows) - 1]
                    if len(fold):
                        end = out[m, begin : begin + size]
                        for e in range(n):
                            end[place[e]] = last[e]
                    else:
                        end = out[m, begin + start : begin + stop]
                        for e in range(n):
                            end[e] = last[e]


@numba.njit(error_model="numpy")
def _by_fold(
    fold: npt.NDArray[np.int8], places: npt.NDArray[np.uint32], count: npt.NDArray[np.int64]
) -> None:
    """Events of each fold in their order, places[fold + 1, : count]; those of none come first."""
    count[:] = 0
    for e in range(len(fold)):
        row = np.int64(fold[e]) + 1
        row = row if 0 < row < len(places) else np.int64(0)
        places[row, count[row]] = e
        count[row] += 1


@numba.njit(error_model="numpy", fastmath={"contract"})
def _block(
    network: int,
    weights: tuple[Floats, ...],
    biases: tuple[Floats, ...],
    rows: Floats,
    squash: bool,
) -> None:
    """One block through one network: from the first rows to the last."""
    first, to = 0, weights[0].shape[2]  # rows of the layer before, and of this one
    for layer in range(len(weights)):
        w, bias = weights[layer][network], biases[layer][network]
        for j in range(w.shape[0]):
            t, c = rows[to + j], bias[j]
            for i in range(0, w.shape[1], _FOUR):
                k = first + i
                a0, a1, a2, a3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
                w0, w1, w2, w3 = w[j, i], w[j, i + 1], w[j, i + 2], w[j, i + 3]
                if i == 0:
                    for e in range(_BLOCK):  # always whole blocks: loops of fixed length
                        t[e] = c + w0 * a0[e] + w1 * a1[e] + w2 * a2[e] + w3 * a3[e]
                elif not (w0 == 0 and w1 == 0 and w2 == 0 and w3 == 0):  # of another seed
                    for e in range(_BLOCK):
                        t[e] += w0 * a0[e] + w1 * a1[e] + w2 * a2[e] + w3 * a3[e]
            if squash or layer < len(weights) - 1:
                for e in range(_BLOCK):
                    t[e] = _s(t[e])
        first, to = to, to + w.shape[0]
