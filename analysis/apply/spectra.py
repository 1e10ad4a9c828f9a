"""Step 5 of apply: spectra of preselected entries before and after the cut.

    before | after   ->   the axis and, where it is a square, its root     sum of weights
                          ..._raw                                          entries

The axes are those of `punzi select`, so that data and simulation can be laid over each other.
Weights are summed entry by entry in the order of the file: how it was read never shows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache

import hist
import numpy as np
import numpy.typing as npt
import uhi.io.json

from analysis.apply.places import PASSING, Places, RegularBins, Tally, in_bins, places
from analysis.select.histograms import Histograms, added, quantity_axes
from selection.masses import signed_root
from selection.search import Search
from selection.table import BoolArray, FloatArray
from selection.windows import MassWindows

Spectra = dict[str, Histograms]
Entries = tuple[npt.NDArray[np.int64], ...]  # of axis and mass: (2, n_bins + 2)

STAGES = ("before", "after")


def spectrum_axes(search: Search) -> dict[str, hist.axis.Regular]:
    """The axis and the mass, which are the same where the axis is no square."""
    names = dict.fromkeys((search.axis.name, search.axis.mass_name))
    axes = quantity_axes(search)
    return {name: axes[name] for name in names}


def empty_spectra(search: Search) -> Spectra:
    """All spectra, nothing in them."""
    axes = spectrum_axes(search)
    raw = {f"{q}_raw": hist.Hist(axis, storage=hist.storage.Int64()) for q, axis in axes.items()}
    weighted = {q: hist.Hist(axis, storage=hist.storage.Weight()) for q, axis in axes.items()}
    return {stage: {name: h.copy() for name, h in (weighted | raw).items()} for stage in STAGES}


def places_of(search: Search, windows: MassWindows) -> Places:
    """The windows and bins of every value of the axis."""
    return places(windows, _regular_bins(search))


@lru_cache(maxsize=8)
def _regular_bins(search: Search) -> tuple[RegularBins, ...]:
    return tuple(
        (len(axis), float(axis.edges[0]), float(axis.edges[-1]), name != search.axis.name)
        for name, axis in spectrum_axes(search).items()
    )


def counted(where: Places, tally: Tally) -> Entries:
    """Entries of each bin: those that fail the cut, and those that pass; flagged ones never."""
    return in_bins(where, tally[[0, PASSING]])


def counted_spectra(search: Search, parts: Sequence[Entries]) -> Spectra:
    """Spectra of entries of weight 1, all parts together."""
    spectra = empty_spectra(search)
    for at, name in enumerate(spectrum_axes(search)):
        failing, after = sum((part[at] for part in parts), np.zeros((2, 1), np.int64))
        for stage, entries in (("before", failing + after), ("after", after)):
            spectra[stage][f"{name}_raw"].view(flow=True)[...] = entries
            view = spectra[stage][name].view(flow=True)
            view.value = view.variance = entries
    return spectra


def add_weights(
    search: Search, spectra: Spectra, axis: FloatArray, passing: BoolArray, weight: FloatArray
) -> None:
    """Fill the weighted spectra, in place: one running sum keeps the order of the entries."""
    for stage, values in _values(search, axis, passing).items():
        w = weight if stage == "before" else weight[passing]
        for name, value in values.items():
            spectra[stage][name].fill(value, weight=w)


def with_weights(raw: Spectra, weighted: Spectra) -> Spectra:
    """Entries from one, sums of weights from the other."""
    return {
        stage: {
            name: (raw if name.endswith("_raw") else weighted)[stage][name] for name in raw[stage]
        }
        for stage in STAGES
    }


def summed(left: Spectra, right: Spectra) -> Spectra:
    return {stage: added(left[stage], right[stage]) for stage in STAGES}


def to_json(spectra: Spectra) -> str:
    return json.dumps(spectra, default=uhi.io.json.default, sort_keys=True)


def from_json(text: str) -> Spectra:
    read = json.loads(text, object_hook=uhi.io.json.object_hook)
    return {stage: {name: hist.Hist(h) for name, h in read[stage].items()} for stage in STAGES}


def _values(
    search: Search, axis: FloatArray, passing: BoolArray
) -> dict[str, dict[str, FloatArray]]:
    values: dict[str, FloatArray] = {search.axis.name: axis}
    if search.axis.squared:
        values[search.axis.mass_name] = signed_root(axis)
    return {"before": values, "after": {name: v[passing] for name, v in values.items()}}
