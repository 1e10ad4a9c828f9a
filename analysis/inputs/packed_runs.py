"""Whole numbers of few bits as parquet writes them, compiled.

run = varint 2 n,     one number            the same number n times
      varint 2 n + 1, n * width bytes       8 n numbers of `width` bits each, the lowest first
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def _eight_bytes(_, data, at):  # type: ignore[no-untyped-def]
    """Those from data[at] on as one number, wherever it stands; they must be there."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return nb.types.uint64(data, at), code


@nb.njit(nogil=True, cache=True, error_model="numpy")
def unpacked_runs(data, width, out):  # type: ignore[no-untyped-def]
    """Fills out with numbers of `width` bits, in runs of equal or of packed ones; the largest.

    2^32 if there are fewer, or what there is cannot be.
    """
    wrong = np.int64(1) << 32
    if width > 32:
        return wrong
    at = n = most = np.int64(0)
    end: Any = len(out)
    while n < end:
        run, shift = np.int64(0), np.int64(0)
        more = True
        while more:
            if at >= len(data) or shift > 35:
                return wrong
            run |= np.int64(data[at] & 127) << shift
            more = data[at] > 127
            at += 1
            shift += 7
        size = (run >> 1) * width if run & 1 else np.int64((width + 7) >> 3)
        if run < 2 or at + size > len(data):
            return wrong
        if run & 1:
            mask = (np.int64(1) << width) - 1
            stop = min(n + 8 * (run >> 1), end)
            for i in range(stop - n):
                bit = i * width
                byte = at + (bit >> 3)
                if byte + 8 <= len(data):
                    bits = np.int64(_eight_bytes(data, byte))
                else:
                    bits = np.int64(0)
                    for k in range(len(data) - byte):
                        bits |= np.int64(data[byte + k]) << (8 * k)
                value = (bits >> (bit & 7)) & mask
                most = max(most, value)
                out[n + i] = value
        else:
            value = np.int64(0)
            for i in range(size):
                value |= np.int64(data[at + i]) << (8 * i)
            most = max(most, value)
            stop = min(n + (run >> 1), end)
            for i in range(n, stop):
                out[i] = value
        n = stop
        at += size
    return most
