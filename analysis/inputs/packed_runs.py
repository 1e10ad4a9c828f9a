"""Whole numbers of few bits as parquet writes them, compiled.

run = varint 2 n,     one number            the same number n times
      varint 2 n + 1, n * width bytes       8 n numbers of `width` bits each, the lowest first
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np


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
            bits, held, byte = np.int64(0), np.int64(0), at
            mask = (np.int64(1) << width) - 1
            stop = min(n + 8 * (run >> 1), end)
            for i in range(n, stop):
                while held < width:
                    bits |= np.int64(data[byte]) << held
                    byte += 1
                    held += 8
                value = bits & mask
                most = max(most, value)
                out[i] = value
                bits >>= width
                held -= width
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
