"""Structures in Thrift's compact protocol, as parquet files describe themselves.

    field    = step and type, value        the number of a field is that of the one before + step
    whole    = varint 2 n or -2 n - 1      seven bits a byte, the lowest first
    list     = length and type, values

A structure is a dictionary by the numbers of its fields. Bytes come from strangers: whatever else
stands there, an end that is missing or a number without end, is an error.
"""

from __future__ import annotations

from typing import Any

from analysis.inputs.root_bytes import NotPlainError

TRUE, FALSE, BYTE, WHOLE, BYTES, LIST, STRUCTURE = 1, 2, 3, (4, 5, 6), 8, 9, 12
LONG = 15  # length of a list that stands after it


def fields(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Number -> value of a structure, None for texts, and where it ends."""
    found: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        kind, step = head & 15, head >> 4
        number += step
        if not step:
            msg = "a field of a later version"
            raise NotPlainError(msg)
        if kind in (TRUE, FALSE):  # in a list they would have a byte
            found[number], at = kind == TRUE, at + 1
        else:
            found[number], at = _value(kind, data, at + 1)
    return found, at + 1


def _value(kind: int, data: bytes, at: int) -> tuple[Any, int]:
    if kind in WHOLE:
        n, at = varint(data, at)
        return (n >> 1) ^ -(n & 1), at
    if kind == BYTE:
        return data[at], at + 1
    if kind == BYTES:
        n, at = varint(data, at)
        return None, at + n
    if kind == STRUCTURE:
        return fields(data, at)
    if kind == LIST:
        n, kind, at = data[at] >> 4, data[at] & 15, at + 1
        if n == LONG:
            n, at = varint(data, at)
        found = []
        for _ in range(n):
            one, at = _value(kind, data, at)
            found.append(one)
        return found, at
    msg = f"a value of type {kind}"
    raise NotPlainError(msg)


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A whole number that is not negative, and where it ends."""
    byte = data[at]
    n, shift = byte & 127, 7
    while byte > 127:
        if shift > 63:  # its time would be the square of its length
            msg = "a number of more than 64 bits"
            raise ValueError(msg)
        at += 1
        byte = data[at]
        n |= (byte & 127) << shift
        shift += 7
    return n, at + 1
