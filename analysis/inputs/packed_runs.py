"""Numbers of the pages of a parquet file, compiled.

    page   = marks, if rows may be missing    4 bytes of their size, runs of one bit per row
             numbers, or                      as they lie in memory
             places in a list                 a byte of their width, runs
    run    = varint 2 n,     one number       the same number n times
             varint 2 n + 1, n * width bytes  8 n numbers of `width` bits each, the lowest first

All pages that are read at once are read in one call: it lets other threads work once.
"""

from __future__ import annotations

import numba as nb
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


@intrinsic
def _eight_bytes(_, data, at):  # type: ignore[no-untyped-def]
    """Those from data[at] on as one number, wherever it stands; they must be there."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return nb.types.uint64(data, at), code


@intrinsic
def _bytes_at(_, address, size):  # type: ignore[no-untyped-def]
    """Those there, as an array that does not own them."""
    kind = nb.types.Array(nb.types.uint8, 1, "C")

    def code(context, builder, _signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(kind)(context, builder)
        data = builder.inttoptr(arguments[0], array.data.type)
        one = context.get_constant(nb.types.intp, 1)
        populate_array(array, data, [arguments[1]], [one], one, None)
        return array._getvalue()

    return kind(address, size), code


@intrinsic
def _copy_bytes(_, address, out):  # type: ignore[no-untyped-def]
    """From there, as many as out has: compiled loops of bytes are ten times as slow."""

    def code(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        source = builder.inttoptr(arguments[0], array.data.type)
        cgutils.raw_memcpy(builder, array.data, source, array.nitems, array.itemsize, align=1)
        return context.get_dummy_value()

    return nb.types.void(address, out), code


@nb.njit(nogil=True, cache=True, error_model="numpy")
def read_pages(pages, listed, room, out):  # type: ignore[no-untyped-def]
    """Numbers of pages to their places in out; False if one is missing or cannot be.

    pages: where its bytes are, how many, its first place (before 0 if it begins before out), its
    numbers, are they plain, does it begin with marks. listed, room (for a page that begins before
    out) and out are whole numbers of one size.
    """
    for k in range(len(pages)):
        address, size, first, n = pages[k, 0], pages[k, 1], pages[k, 2], pages[k, 3]
        body = _bytes_at(address, size)
        at = _after_marks(body, n) if pages[k, 5] else np.int64(0)
        a, b = max(first, 0), min(first + n, len(out))
        if at < 0 or a > b:
            return False
        if pages[k, 4]:
            if at + n * out.itemsize != size:
                return False
            _copy_bytes(address + at + (a - first) * out.itemsize, out[a:b])
        else:
            to = out[a:b] if a == first else room[: b - first]
            if at >= size or not listed_runs(body[at + 1 :], body[at], listed, to):
                return False
            if a > first:
                for i in range(a, b):
                    out[i] = to[i - first]
    return True


@nb.njit(nogil=True, error_model="numpy")
def _after_marks(body, n):  # type: ignore[no-untyped-def]
    """Where the numbers begin; -1 if one of the first n marks is not 1."""
    if len(body) < 4:
        return np.int64(-1)
    size = np.int64(0)
    for i in range(4):
        size |= np.int64(body[i]) << (8 * i)
    end, at = 4 + size, np.int64(4)
    if end > len(body):
        return np.int64(-1)
    while n > 0:
        run, at = _varint(body[:end], at)
        if run < 2:
            return np.int64(-1)
        if run & 1:
            for i in range(min(run >> 1, (n + 7) >> 3)):
                mask = 255 >> max(0, 8 - (n - 8 * i))
                if at + i >= end or ~body[at + i] & mask:
                    return np.int64(-1)
            n, at = n - 8 * (run >> 1), at + (run >> 1)
        else:
            if at >= end or body[at] != 1:
                return np.int64(-1)
            n, at = n - (run >> 1), at + 1
    return end


@nb.njit(nogil=True, error_model="numpy")
def _varint(data, at):  # type: ignore[no-untyped-def]
    """A number of up to 35 bits and where it ends; -1 if there is none."""
    found, shift = np.int64(0), np.int64(0)
    while at < len(data) and shift <= 28:
        found |= np.int64(data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return found, at
        shift += 7
    return np.int64(-1), at


@nb.njit(nogil=True, error_model="numpy")
def listed_runs(data, width, listed, out):  # type: ignore[no-untyped-def]
    """out[i] = listed[place i], of places of `width` bits in runs of equal or of packed ones.

    False if there are fewer places, or one is not in the list, or what there is cannot be.
    """
    at = n = most = np.int64(0)
    end, last = np.int64(len(out)), np.int64(len(listed)) - 1
    if width > 32 or last < 0:
        return False
    while n < end:
        run, at = _varint(data, at)
        size = (run >> 1) * width if run & 1 else np.int64((width + 7) >> 3)
        if run < 2 or at + size > len(data):
            return False
        if run & 1:
            stop = min(n + 8 * (run >> 1), end)
            bits = data[at : at + size]
            most = max(most, _listed_bits(bits, np.int64(width), listed, last, out[n:stop]))
        else:
            place = np.int64(0)
            for i in range(size):
                place |= np.int64(data[at + i]) << (8 * i)
            most = max(most, place)
            stop = min(n + (run >> 1), end)
            out[n:stop] = listed[min(place, last)]
        n = stop
        at += size
    return most <= last


@nb.njit(nogil=True, error_model="numpy")
def _listed_bits(bits, width, listed, last, out):  # type: ignore[no-untyped-def]
    """The same of packed places; the largest of them."""
    mask = (np.int64(1) << width) - 1
    most = np.int64(0)
    n_whole = min(len(out), max(0, len(bits) - 7) * 8 // max(width, 1))  # eight bytes are there
    for i in range(n_whole):
        bit = i * width
        place = (np.int64(_eight_bytes(bits, bit >> 3)) >> (bit & 7)) & mask
        most = max(most, place)
        out[i] = listed[min(place, last)]
    for i in range(n_whole, len(out)):
        bit = i * width
        byte = bit >> 3
        word = np.int64(0)
        for k in range(min(8, len(bits) - byte)):
            word |= np.int64(bits[byte + k]) << (8 * k)
        place = (word >> (bit & 7)) & mask
        most = max(most, place)
        out[i] = listed[min(place, last)]
    return most
