"""Compiled arithmetic of the n-h1-h2-1 tanh network: sums over events and their gradients.

    z = w3 tanh(W2 tanh(W1 x' + b1) + b2) + b3,  x' = (x - low) * inverse_range,  y = sigmoid(z)
    piece of events  ->  sum w q(z)  and  d(sum w q)/d theta        theta = W1, b1, W2, b2, w3, b3

    q = y               score       dq/dz = y (1 - y)
    q = -log P(target)  bce         dq/dz = y - target
    q = [z > 0]         accepted    dq/dz = 0

Activations of one block of events stay in the first-level cache and are used at once for the
gradient: nothing is stored per event. float32 inside a block, float64 across blocks. numba does
not vectorise math.tanh or math.exp, so both are written out; with them one event costs about 13 ns
on one core with 4-8-4-1 neurons. Inputs and hidden widths are padded to multiples of four, with
features that are zero and neurons whose weights are zero: their gradients are exactly zero, and
every loop below works on four rows at a time. While a block is computed, the memory of the next is
asked for: with many features each of them is a stream of its own, too short to be guessed.

All compiled code is in this one file: numba's disk cache notices changes of the file a function
is in, not of those it calls. Functions called here are inlined by force: a process that compiles
would else call another copy of them, with other roundings, than one that reads the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from selection.compiled import inner

BLOCK = 256  # events; activations of a block of a 4-8-4-1 network fill 17 kB
LINE = 16  # numbers in a cache line
LANES = 32  # events; what the compiled loops take at once, the rest goes one by one
SPINS = 2000  # looks at a number before the processor is offered to somebody else
SCORE, BCE, ACCEPTED = 0, 1, 2
_FIRST, _NEXT = np.int64(0), np.int64(1)  # for a plain 0 numba would compile once more

_f = np.float32
Float32s = npt.NDArray[np.float32]
_ONE = _f(1.0)
# rational approximation of tanh, absolute error 3e-7 (coefficients: Eigen, ptanh_float)
_CLAMP = _f(7.90531110763549805)
_A1, _A3, _A5, _A7 = (
    _f(4.89352455891786e-03),
    _f(6.37261928875436e-04),
    _f(1.48572235717979e-05),
    _f(5.12229709037114e-08),
)
_A9, _A11, _A13 = _f(-8.60467152213735e-11), _f(2.00018790482477e-13), _f(-2.76076847742355e-16)
_B0, _B2, _B4, _B6 = (
    _f(4.89352518554385e-03),
    _f(2.26843463243900e-03),
    _f(1.18534705686654e-04),
    _f(1.19825839466702e-06),
)
# exp by powers of two and a polynomial, relative error 1e-7 (coefficients: Cephes, expf)
_LOG2E, _LN2_HIGH, _LN2_LOW = _f(1.44269504088896341), _f(0.693359375), _f(-2.12194440e-4)
_E0, _E1, _E2 = _f(5.0000001201e-1), _f(1.6666665459e-1), _f(4.1665795894e-2)
_E3, _E4, _E5 = _f(8.3334519073e-3), _f(1.3981999507e-3), _f(1.9875691500e-4)

_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": True, "error_model": "numpy", "cache": True}


@njit(inline="always", fastmath=True)
def _tanh(v):  # type: ignore[no-untyped-def]
    u = min(max(v, -_CLAMP), _CLAMP)
    u2 = u * u
    u4 = u2 * u2
    # Estrin's order: the terms do not wait for each other (0.44 ns against Horner's 0.60)
    top = (_A1 + u2 * _A3) + u4 * ((_A5 + u2 * _A7) + u4 * ((_A9 + u2 * _A11) + u4 * _A13))
    return u * top / ((_B0 + u2 * _B2) + u4 * (_B4 + u2 * _B6))


@njit(inline="always", fastmath=True)
def _exp(v):  # type: ignore[no-untyped-def]
    u = min(max(v, _f(-87.0)), _f(87.0))
    n = np.floor(u * _LOG2E + _f(0.5))
    r = u - n * _LN2_HIGH - n * _LN2_LOW
    p = ((((_E5 * r + _E4) * r + _E3) * r + _E2) * r + _E1) * r + _E0
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    return (p * r * r + r + _ONE) * power


@njit(inline="always", fastmath=True)
def _log1p(u):  # type: ignore[no-untyped-def]
    # 0 <= u <= 1: 2 atanh(s), s = u/(2+u) <= 1/3; the series left out is below 1e-8
    s = u / (u + _f(2.0))
    s2 = s * s
    tail = _f(1 / 9) + s2 * (_f(1 / 11) + s2 * (_f(1 / 13) + s2 * _f(1 / 15)))
    return _f(2.0) * s * (_ONE + s2 * (_f(1 / 3) + s2 * (_f(1 / 5) + s2 * (_f(1 / 7) + s2 * tail))))


def memory_of(widths: tuple[tuple[int, ...], ...], theta: Float32s) -> Float32s:
    """What a kernel works in: rows of one block, zero, and theta at the end."""
    rows = (sum(map(len, widths)) + 4) * BLOCK
    memory = lines_of_zeros(rows + len(theta))
    memory[rows:] = theta
    return memory


def lines_of_zeros(n: int) -> Float32s:
    """n zeros that begin with a cache line; numpy's memory begins in the middle of one."""
    memory = np.zeros(n + LINE, _f)
    first = -memory.ctypes.data % (4 * LINE) // 4
    return memory[first : first + n]


@njit(inline="always")
def _parts(memory, widths):  # type: ignore[no-untyped-def]
    """x', h1, h2, z, d, w, target of one block, and theta: views of the memory of `memory_of`.

    Compiled loops ask at run time whether their arrays overlap and go another way, with other
    roundings, if they might. Inside one allocation the answer is always the same; inputs are
    therefore copied here before anything is computed from them, or results would depend on where
    the memory happens to be.
    """
    n_in, width1, width2 = len(widths[0]), len(widths[1]), len(widths[2])
    rows = n_in + width1 + width2
    x = memory[: n_in * BLOCK].reshape(n_in, BLOCK)
    h1 = memory[n_in * BLOCK : (n_in + width1) * BLOCK].reshape(width1, BLOCK)
    h2 = memory[(n_in + width1) * BLOCK : rows * BLOCK].reshape(width2, BLOCK)
    z = memory[rows * BLOCK : (rows + 1) * BLOCK]
    d = memory[(rows + 1) * BLOCK : (rows + 2) * BLOCK]
    w = memory[(rows + 2) * BLOCK : (rows + 3) * BLOCK]
    target = memory[(rows + 3) * BLOCK : (rows + 4) * BLOCK]
    return x, h1, h2, z, d, w, target, memory[(rows + 4) * BLOCK :]


@njit(inline="always")
def _offsets(n_in, width1, width2):  # type: ignore[no-untyped-def]
    """Where b1, W2, b2, w3 and b3 begin in theta."""
    b1 = n_in * width1
    w2 = b1 + width1
    b2 = w2 + width1 * width2
    w3 = b2 + width2
    return b1, w2, b2, w3, w3 + width2


def _place(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    """Address of array[at]."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])


@intrinsic
def _prefetch(_, array, at):  # type: ignore[no-untyped-def]
    """Asks for the cache line of array[at], which may lie beyond the end; changes no number."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature, arguments)
        address = builder.bitcast(place, cgutils.voidptr_t)
        hint = [cgutils.int32_t(n) for n in (0, 3, 1)]  # to read, keep in all caches, data
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[cgutils.int32_t] * 3])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        builder.call(prefetch, [address, *hint])
        return context.get_dummy_value()

    return types.void(array, at), code


@inner(fastmath=True, forceinline=True)
def _forward(x, theta, m, h1, h2, z, widths):  # type: ignore[no-untyped-def]
    n_in, width1, width2 = len(widths[0]), len(widths[1]), len(widths[2])
    B1, W2, B2, W3, B3 = _offsets(n_in, width1, width2)
    for j in range(0, width1, 4):
        p, q, r, s = n_in * j, n_in * (j + 1), n_in * (j + 2), n_in * (j + 3)
        p0, p1, p2, p3, pb = theta[p], theta[p + 1], theta[p + 2], theta[p + 3], theta[B1 + j]
        q0, q1, q2, q3, qb = theta[q], theta[q + 1], theta[q + 2], theta[q + 3], theta[B1 + j + 1]
        r0, r1, r2, r3, rb = theta[r], theta[r + 1], theta[r + 2], theta[r + 3], theta[B1 + j + 2]
        s0, s1, s2, s3, sb = theta[s], theta[s + 1], theta[s + 2], theta[s + 3], theta[B1 + j + 3]
        for e in range(m):
            x0, x1, x2, x3 = x[0, e], x[1, e], x[2, e], x[3, e]
            h1[j, e] = pb + p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
            h1[j + 1, e] = qb + q0 * x0 + q1 * x1 + q2 * x2 + q3 * x3
            h1[j + 2, e] = rb + r0 * x0 + r1 * x1 + r2 * x2 + r3 * x3
            h1[j + 3, e] = sb + s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
        for i in range(4, n_in, 4):
            p, q, r, s = p + 4, q + 4, r + 4, s + 4
            p0, p1, p2, p3 = theta[p], theta[p + 1], theta[p + 2], theta[p + 3]
            q0, q1, q2, q3 = theta[q], theta[q + 1], theta[q + 2], theta[q + 3]
            r0, r1, r2, r3 = theta[r], theta[r + 1], theta[r + 2], theta[r + 3]
            s0, s1, s2, s3 = theta[s], theta[s + 1], theta[s + 2], theta[s + 3]
            for e in range(m):
                x0, x1, x2, x3 = x[i, e], x[i + 1, e], x[i + 2, e], x[i + 3, e]
                h1[j, e] += p0 * x0 + p1 * x1 + p2 * x2 + p3 * x3
                h1[j + 1, e] += q0 * x0 + q1 * x1 + q2 * x2 + q3 * x3
                h1[j + 2, e] += r0 * x0 + r1 * x1 + r2 * x2 + r3 * x3
                h1[j + 3, e] += s0 * x0 + s1 * x1 + s2 * x2 + s3 * x3
    for j in range(width1):
        for e in range(m):
            h1[j, e] = _tanh(h1[j, e])
    for k in range(width2):
        bias = theta[B2 + k]
        for e in range(m):
            u = bias
            for j in range(width1):
                u += theta[W2 + k * width1 + j] * h1[j, e]
            h2[k, e] = u
    for k in range(width2):
        for e in range(m):
            h2[k, e] = _tanh(h2[k, e])
    bias = theta[B3]
    for e in range(m):
        u = bias
        for k in range(width2):
            u += theta[W3 + k] * h2[k, e]
        z[e] = u


@inner(fastmath=True, forceinline=True)
def _add_products(a, b, n_a, n_b, m, gradient, at, step_a, step_b):  # type: ignore[no-untyped-def]
    """gradient[at + k step_a + j step_b] += sum over events of a[k] b[j]."""
    for k in range(0, n_a, 4):
        for j in range(0, n_b, 2):
            # 4 x 2 sums at once: six loads for eight multiply-adds
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = _f(0.0)
            for e in range(m):
                u, v = b[j, e], b[j + 1, e]
                d0, d1, d2, d3 = a[k, e], a[k + 1, e], a[k + 2, e], a[k + 3, e]
                a0 += d0 * u
                a1 += d1 * u
                a2 += d2 * u
                a3 += d3 * u
                b0 += d0 * v
                b1 += d1 * v
                b2 += d2 * v
                b3 += d3 * v
            p = at + k * step_a + j * step_b
            q = p + step_b
            gradient[p] += a0
            gradient[q] += b0
            gradient[p + step_a] += a1
            gradient[q + step_a] += b1
            gradient[p + 2 * step_a] += a2
            gradient[q + 2 * step_a] += b2
            gradient[p + 3 * step_a] += a3
            gradient[q + 3 * step_a] += b3


@inner(fastmath=True, forceinline=True)
def _backward(x, theta, m, h1, h2, d, gradient, widths):  # type: ignore[no-untyped-def]
    """Adds to gradient; d = w dq/dz; h2, h1 are overwritten with d/d(input of their layer)."""
    n_in, width1, width2 = len(widths[0]), len(widths[1]), len(widths[2])
    B1, W2, B2, W3, B3 = _offsets(n_in, width1, width2)
    total = _f(0.0)
    for e in range(m):
        total += d[e]
    gradient[B3] += total
    for k in range(width2):
        a = b = _f(0.0)
        w = theta[W3 + k]
        for e in range(m):
            h, t = h2[k, e], d[e]
            a += t * h
            g = t * w * (_ONE - h * h)
            b += g
            h2[k, e] = g
        gradient[W3 + k] += a
        gradient[B2 + k] += b
    _add_products(h2, h1, width2, width1, m, gradient, W2, width1, _NEXT)
    if n_in == 4:
        for j in range(0, width1, 2):
            s0 = s1 = a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = _f(0.0)
            for e in range(m):
                u = v = _f(0.0)
                for k in range(width2):
                    t = h2[k, e]
                    u += t * theta[W2 + k * width1 + j]
                    v += t * theta[W2 + k * width1 + j + 1]
                g, h = h1[j, e], h1[j + 1, e]
                u *= _ONE - g * g
                v *= _ONE - h * h
                x0, x1, x2, x3 = x[0, e], x[1, e], x[2, e], x[3, e]
                s0 += u
                s1 += v
                a0 += u * x0
                a1 += u * x1
                a2 += u * x2
                a3 += u * x3
                b0 += v * x0
                b1 += v * x1
                b2 += v * x2
                b3 += v * x3
            gradient[B1 + j] += s0
            gradient[B1 + j + 1] += s1
            at, to = n_in * j, n_in * (j + 1)
            gradient[at] += a0
            gradient[at + 1] += a1
            gradient[at + 2] += a2
            gradient[at + 3] += a3
            gradient[to] += b0
            gradient[to + 1] += b1
            gradient[to + 2] += b2
            gradient[to + 3] += b3
        return
    # with more inputs, storing and all products in one loop are too much for the vectoriser
    for j in range(0, width1, 2):
        s0 = s1 = _f(0.0)
        for e in range(m):
            u = v = _f(0.0)
            for k in range(width2):
                t = h2[k, e]
                u += t * theta[W2 + k * width1 + j]
                v += t * theta[W2 + k * width1 + j + 1]
            g, h = h1[j, e], h1[j + 1, e]
            u *= _ONE - g * g
            v *= _ONE - h * h
            s0 += u
            s1 += v
            h1[j, e] = u
            h1[j + 1, e] = v
        gradient[B1 + j] += s0
        gradient[B1 + j + 1] += s1
    _add_products(x, h1, n_in, width1, m, gradient, _FIRST, _NEXT, n_in)


@njit(**_OPTIONS)
def piece_sums(features, weight, scaling, pieces, target, quantity, memory, widths, out):  # type: ignore[no-untyped-def]
    """out[p, 0] = sum of w q over piece p; out[p, 1:], if there, = its gradient by theta.

    features (n_features, n), weight (n,), scaling (2, n_features) = low and inverse_range, pieces
    (p, 2) = first event and end, target (p,) 0 or 1, memory of `memory_of`; out (p, 1) or (p, 1 +
    n_parameters). `widths` holds three tuples as long as the padded inputs and hidden layers: numba
    knows the length of a tuple when it compiles, so every network size gets loops of fixed length,
    cached on disk.
    """
    x, h1, h2, z, d, w, _, t = _parts(memory, widths)
    for p in range(len(pieces)):
        out[p] = 0.0
        sign = _ONE - _f(2.0) * target[p]
        for at in range(pieces[p, 0], pieces[p, 1], BLOCK):
            m = min(BLOCK, pieces[p, 1] - at)
            for i in range(len(features)):
                low, inverse_range = scaling[0, i], scaling[1, i]
                for e in range(m):
                    x[i, e] = features[i, at + e]
                for e in range(m):
                    x[i, e] = (x[i, e] - low) * inverse_range
                for e in range(0, BLOCK, LINE):
                    _prefetch(features[i], at + BLOCK + e)
            for e in range(m):
                w[e] = weight[at + e]
            _forward(x, t, m, h1, h2, z, widths)
            total = _f(0.0)
            if quantity == SCORE:
                for e in range(m):
                    y = _ONE / (_ONE + _exp(-z[e]))
                    wy = w[e] * y
                    total += wy
                    d[e] = wy * (_ONE - y)
            elif quantity == BCE:
                for e in range(m):
                    v = sign * z[e]  # the loss is log(1 + exp(v))
                    small = _exp(-abs(v))
                    total += w[e] * (max(v, _f(0.0)) + _log1p(small))
                    d[e] = w[e] * sign * (_ONE if v > 0 else small) / (_ONE + small)
            else:
                for e in range(m):
                    total += w[e] if z[e] > 0 else _f(0.0)
                    d[e] = _f(0.0)
            out[p, 0] += total
            if out.shape[1] > 1:
                _backward(x, t, m, h1, h2, d, out[p, 1:], widths)


@njit(**_OPTIONS)
def sgd_epoch(rows, order, batch_size, learning_rate, memory, gradient, widths, wants_loss):  # type: ignore[no-untyped-def]
    """One epoch of theta -= rate * mean over the batch of w (y - target) dz/dtheta, in memory.

    Returns the mean over the batches of their losses, each at the weights it was met with, or 0 if
    it is not wanted.
    rows (n, multiple of 8): scaled and padded features, weight, target, unused; with four features
    half a cache line, so that picking events in random order costs one memory access each, which is
    asked for one block ahead. order (n,): the batches are its consecutive slices of batch_size.
    memory of `memory_of`, with the new theta afterwards; gradient (n_parameters,) float64 is room.
    """
    x, h1, h2, z, d, w, target, t = _parts(memory, widths)
    n_in = len(widths[0])
    last = len(order) - 1
    losses, n_batches = 0.0, 0
    for batch in range(0, len(order), batch_size):
        end = min(batch + batch_size, len(order))
        gradient[:] = 0.0
        batch_loss = 0.0  # float64: sums of blocks
        for at in range(batch, end, BLOCK):
            m = min(BLOCK, end - at)
            for e in range(m):
                row = rows[order[at + e]]
                for i in range(n_in):
                    x[i, e] = row[i]
                w[e], target[e] = row[n_in], row[n_in + 1]
                soon = rows[order[min(at + m + e, last)]]
                for i in range(0, n_in + 2, LINE):
                    _prefetch(soon, i)
            _forward(x, t, m, h1, h2, z, widths)
            if wants_loss:
                total = _f(0.0)
                for e in range(m):
                    v = (_ONE - _f(2.0) * target[e]) * z[e]
                    total += w[e] * (max(v, _f(0.0)) + _log1p(_exp(-abs(v))))
                batch_loss += float(total)
            for e in range(m):
                d[e] = w[e] * (_ONE / (_ONE + _exp(-z[e])) - target[e])
            _backward(x, t, m, h1, h2, d, gradient, widths)
        losses += batch_loss / (end - batch)
        n_batches += 1
        step = learning_rate / (end - batch)
        for q in range(len(t)):
            t[q] = _f(t[q] - step * gradient[q])
    return losses / max(n_batches, 1)


@inner(fastmath=True, forceinline=True)
def _add_scores(features, weight, scaling, at, m, room, widths, sums):  # type: ignore[no-untyped-def]
    """Adds the m <= BLOCK events from `at` to sums = (sum of w y, its gradient by theta)."""
    x, h1, h2, z, d, w, _, theta = room
    full = (m + LANES - 1) // LANES * LANES  # up to it, events of weight zero
    for i in range(len(features)):
        low, inverse_range = scaling[0, i], scaling[1, i]
        for e in range(m):
            x[i, e] = features[i, at + e]
        for e in range(m, full):
            x[i, e] = low
        for e in range(full):
            x[i, e] = (x[i, e] - low) * inverse_range
        for e in range(0, BLOCK, LINE):
            _prefetch(features[i], at + BLOCK + e)
    for e in range(m):
        w[e] = weight[at + e]
    for e in range(m, full):
        w[e] = _f(0.0)
    _forward(x, theta, full, h1, h2, z, widths)
    total = _f(0.0)
    for e in range(full):
        y = _ONE / (_ONE + _exp(-z[e]))
        wy = w[e] * y
        total += wy
        d[e] = wy * (_ONE - y)
    sums[0] += total
    _backward(x, theta, full, h1, h2, d, sums[1:], widths)


@intrinsic
def _atomic_add(_, array, at, value):  # type: ignore[no-untyped-def]
    """array[at] += value in one step; what was there before."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = _place(context, builder, signature, arguments)
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return types.int64(array, at, value), code


@intrinsic
def _atomic_read(_, array, at):  # type: ignore[no-untyped-def]
    """array[at] as it is now, not as it was in a register."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load_atomic(_place(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, at), code


_yield = types.ExternalFunction("sched_yield", types.int32())


@inner(fastmath=True, forceinline=True)
def _wait(shared, at, least):  # type: ignore[no-untyped-def]
    """Until shared[at] >= least; the others need a microsecond as a rule."""
    n = 0
    while _atomic_read(shared, at) < least:
        n += 1
        if n > SPINS:
            _yield()


@njit(**_OPTIONS)
def share_batches(events, deal, batches, leads, memory, theta, widths, out, shared):  # type: ignore[no-untyped-def]
    """out[g] = sum of w y over group g of a batch, and its gradient by theta, by many threads.

    events = (features, weight, scaling); deal = (start, stop), both (n_batches, n_groups); batches
    = (first, end) of those to do; memory of `memory_of`, of each thread its own; out (n_groups, 1 +
    n_parameters). shared (1 + 2 n_batches,) is 0 before the first batch: batches begun, and for
    each batch the groups taken and the groups done.

    One thread leads: a batch begins with its call and is complete at the end of it, and theta may
    change in between. The others call once for all batches; they wait for each to begin, and end
    when shared[0] is larger than the number of batches. Every group is summed by one thread, in
    this one function: the result does not depend on how many help, nor on who comes late or never.
    """
    features, weight, scaling = events
    start, stop = deal
    room = _parts(memory, widths)
    for batch in range(batches[0], batches[1]):
        if leads:
            _atomic_add(shared, 0, 1)
        else:
            _wait(shared, 0, batch + 1)
            if _atomic_read(shared, 0) > len(start):
                return
        for q in range(len(theta)):
            room[7][q] = theta[q]
        taken, done = 1 + 2 * batch, 2 + 2 * batch
        g = _atomic_add(shared, taken, 1)
        while g < len(out):
            out[g] = 0.0
            for at in range(start[batch, g], stop[batch, g], BLOCK):
                m = min(BLOCK, stop[batch, g] - at)
                _add_scores(features, weight, scaling, at, m, room, widths, out[g])
            _atomic_add(shared, done, 1)
            g = _atomic_add(shared, taken, 1)
        if leads:
            _wait(shared, done, len(out))
