"""The look at every row of a chunk, from the bits that the kernel of the search found on its way.

    conditions of analysis/inputs/rows.py -> flags of the kernel -> counts of its bits
    columns with a range                  -> rows outside; their extremes only where there are any

The counts are those of `look_at`, which goes over a few rows by numpy.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Columns
from analysis.inputs.rows import (
    RowCounts,
    momentum_counts,
    other_counts,
    physical_range,
    row_conditions,
    with_slack,
)
from selection.beams import Beams
from selection.kernel import row_count
from selection.search import Search


def look_by_flags(
    columns: Columns, beams: Beams, search: Search, flags: npt.NDArray[np.unsignedinteger]
) -> RowCounts:
    """flags (n,): bit i tells where the i-th condition of `row_conditions` holds."""
    names = row_conditions(columns, search)
    counts = {name: int(_ones(flags, flags.dtype.type(bit))) for bit, name in enumerate(names)}
    kept = {n: v for n, v in columns.items() if not _is_inside(n, v, beams, search)}
    found = momentum_counts(counts, row_count(columns))
    return found + other_counts(kept or columns, beams, search)


def _is_inside(name: str, values: npt.NDArray[Any], beams: Beams, search: Search) -> bool:
    """A column with a range that no row leaves: nothing to say of it."""
    span = physical_range(search, name, beams.sqrt_s_gev)
    if span is None or values.dtype.kind != "f":
        return False
    low, high = with_slack(span)
    return int(_outside(values, values.dtype.type(low), values.dtype.type(high))) == 0


@nb.njit(nogil=True, cache=True)
def _ones(flags, bit):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(len(flags)):
        found += (flags[i] >> bit) & 1
    return found


@nb.njit(nogil=True, cache=True)
def _outside(values, low, high):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(len(values)):
        found += (values[i] < low) | (values[i] > high)
    return found
