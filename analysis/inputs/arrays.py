"""Tables of columns in memory: a dictionary of arrays, a pandas data frame, an awkward array.

    name -> column (n,) of numbers;  event numbers and beams also under basf2's names

What cannot be right is refused before anything is computed, in the words that a run has for the
columns of a file: compiled code reads as many rows as the first column has, whatever the others
hold. A missing number is NaN and fails the cut `valid`; NA of a data frame becomes one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from analysis.inputs.columns import Wanted, wanted_columns
from analysis.inputs.findings import row_findings
from analysis.inputs.rows import likely_cause, look_at
from selection.beams import Beams
from selection.errors import UserError
from selection.ntuple import nearest
from selection.search import Search

Arrays = dict[str, npt.NDArray[Any]]


class Columns(Protocol):
    """Gives its names, and a column (n,) by its name."""

    def keys(self) -> Iterable[Any]: ...
    def __getitem__(self, name: Any, /) -> Any: ...


class ColumnsError(UserError):
    """A table of columns that cannot be used; the message names it, and what is wrong."""


def wanted_of(search: Search) -> Wanted:
    """Columns that a table must have, and those that are used where it has them."""
    return wanted_columns(
        {}, tree=None, searches=[search], candidates="all", weight=None, event_numbers=True
    )


def arrays_of(where: str, columns: Columns, search: Search, *, weight: str | None = None) -> Arrays:
    """Columns (n,) by our names, all of one length; `weight` is the name of one more."""
    wanted, present = wanted_of(search), set(_names(where, columns))
    found = {name: _column(where, columns, name) for name in wanted.required}
    for ours, theirs in wanted.optional.items():
        named = [name for name in (ours, theirs) if name in present]
        if named:
            found[ours] = _column(where, columns, named[0])
    if weight is not None:
        found["weight"] = _column(where, columns, weight).astype(np.float64)
    lengths = {name: len(values) for name, values in found.items()}
    first = next(iter(lengths))
    other = next((name for name in lengths if lengths[name] != lengths[first]), None)
    if other is not None:
        msg = (
            f"{where}: column {other!r} has {lengths[other]} rows and {first!r} {lengths[first]}; "
            "all columns must belong to the same events"
        )
        raise ColumnsError(msg)
    return found


def refuse_mistakes(
    where: str, arrays: Arrays, beams: Beams, search: Search, *, accept: Collection[str] = ()
) -> None:
    """What momenta, energies, angles and weights of simulation or data cannot be."""
    found = look_at(arrays, beams, search)
    if found.rows == 0:
        msg = f"{where}: the table has no rows"
        raise ColumnsError(msg)
    cause = likely_cause(arrays, beams, search) if found.energies or found.off_shell else ""
    for finding in row_findings(where, found, beams, search, cause=cause):
        if finding.stops and finding.name not in accept:
            msg = f"{where}: {finding.text} [{finding.name}]"
            raise ColumnsError(msg)


def _column(where: str, columns: Columns, name: str) -> npt.NDArray[Any]:
    present = _names(where, columns)
    if name not in present:
        near = ", ".join(nearest(name, present)) or "none"
        msg = f"{where} has no column {name!r} (nearest: {near}; `column_names` lists all)"
        raise ColumnsError(msg)
    given = columns[name]
    may_be_na = _may_be_na(given)
    values = given.to_numpy(np.float64, na_value=np.nan) if may_be_na else np.asarray(given)
    if values.ndim != 1 or values.dtype.kind not in "fiub":
        example = f", such as {values.flat[0]!r}" if values.dtype.kind in "OSUT" else ""
        msg = (
            f"{where}: column {name!r} is {values.dtype} of shape {values.shape}{example}: "
            "wanted one number a row"
        )
        raise ColumnsError(msg)
    return values


def _may_be_na(given: Any) -> bool:
    """A column of pandas whose numbers may be NA: numpy would make objects of them."""
    dtype = getattr(given, "dtype", None)
    return hasattr(dtype, "na_value") and getattr(dtype, "kind", "O") in "fiub"


def _names(where: str, columns: Columns) -> list[str]:
    """Of an awkward array its fields, of all others their keys."""
    fields = getattr(columns, "fields", None)
    if fields is None and not (hasattr(columns, "keys") and hasattr(columns, "__getitem__")):
        msg = (
            f"{where}: a table of columns has names (a dictionary of arrays, a data frame, an "
            f"awkward array of records); this is {type(columns).__name__}"
        )
        raise ColumnsError(msg)
    return [str(name) for name in (columns.keys() if fields is None else fields)]


def refuse_numbers(
    signal: Mapping[float, Any], made: Mapping[float, int], luminosity: float
) -> None:
    """Masses, generated events and the luminosity must be positive numbers."""
    for mass in signal:
        if not isinstance(mass, int | float | np.number) or not 0 < mass < np.inf:
            msg = f"signal must be a mapping from the mass in GeV to its table; found {mass!r}"
            raise ColumnsError(msg)
        if mass not in made:
            msg = f"n_generated has no number for {mass:g} GeV; it has {list(made)}"
            raise ColumnsError(msg)
        if not made[mass] > 0:
            msg = f"n_generated of {mass:g} GeV is {made[mass]}; it must be above zero"
            raise ColumnsError(msg)
    if not (np.isfinite(luminosity) and luminosity > 0):
        msg = f"luminosity_inv_fb is {luminosity}; it must be above zero"
        raise ColumnsError(msg)
