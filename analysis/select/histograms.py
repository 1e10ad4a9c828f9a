"""Histograms of selected events: spectra and features, per data set, weighted and raw.

Every quantity with bins (the axis, its root where it is a square, features) has a `Weight()`
histogram (sum of weights and of their squares) and an `Int64` one with the raw counts. Weights here
are those of the rows (events per 1/fb, or 1); normalisation and scale factors are applied by
whoever reads them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hist
import numpy.typing as npt
import uhi.io.json
import uproot

from selection.masses import signed_root
from selection.search import Quantity, Search, math_unit
from selection.whole_files import replacing, write_text

Histograms = dict[str, hist.Hist]  # quantity -> histogram


def quantity_axes(search: Search) -> dict[str, hist.axis.Regular]:
    """Quantity -> axis of its histogram: the axis of the search, the mass, features with bins."""
    axis = search.axis
    found = {axis.name: _regular(axis)}
    if axis.squared and axis.bins is not None:
        highest = math.ceil(math.sqrt(max(axis.bins[2], 1.0)))
        label = f"{axis.root_label} [{math_unit('GeV/c^2')}]"
        found[axis.mass_name] = hist.axis.Regular(100, 0, highest, name=axis.mass_name, label=label)
    return found | {f.name: _regular(f) for f in search.features if f.bins is not None}


def _regular(quantity: Quantity) -> hist.axis.Regular:
    if quantity.bins is None:
        msg = f"{quantity.name} has no bins"
        raise ValueError(msg)
    return hist.axis.Regular(*quantity.bins, name=quantity.name, label=quantity.axis_text)


def empty_histograms(search: Search) -> Histograms:
    """Weighted histograms under the name of the quantity, raw counts under `<name>_raw`."""
    axes = quantity_axes(search)
    weighted = {name: hist.Hist(axis, storage=hist.storage.Weight()) for name, axis in axes.items()}
    raw = {
        f"{name}_raw": hist.Hist(axis, storage=hist.storage.Int64()) for name, axis in axes.items()
    }
    return weighted | raw


def quantity_values(
    name: str, search: Search, columns: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Axis, mass or feature of rows whose columns are those of the skim."""
    if name == search.axis.name:
        return columns["axis"]
    if name == search.axis.mass_name:
        return signed_root(columns["axis"])
    return columns[name]


def added(left: Histograms, right: Histograms) -> Histograms:
    """Sum of two sets, quantity by quantity."""
    return {name: left[name] + right[name] for name in left}


def save_json(path: Path, histograms: Mapping[str, Histograms]) -> None:
    """uhi JSON: data set -> quantity -> histogram."""
    plain = {ds: dict(quantities) for ds, quantities in histograms.items()}
    write_text(path, json.dumps(plain, default=uhi.io.json.default, sort_keys=True))


def load_json(path: Path) -> dict[str, Histograms]:
    read = json.loads(path.read_text(), object_hook=uhi.io.json.object_hook)
    return {
        ds: {name: hist.Hist(h) for name, h in quantities.items()}
        for ds, quantities in read.items()
    }


def save_root(path: Path, histograms: Mapping[str, Histograms]) -> None:
    """TH1D per data set and quantity: `signal/0.1/recoil_mass2`, with its axis title."""
    with replacing(path) as temporary, uproot.recreate(temporary) as file:
        for ds, quantities in histograms.items():
            for name, filled in quantities.items():
                file[f"{ds}/{name}"] = _writable(filled, title=f"{ds}: {name}")


def _writable(filled: hist.Hist, *, title: str) -> hist.Hist:
    """A copy with its title; ROOT has no 64-bit integer histogram, doubles hold counts as well."""
    if filled.storage_type is hist.storage.Weight:
        copy = filled.copy()
    else:
        copy = hist.Hist(*filled.axes, storage=hist.storage.Double())
        copy.view(flow=True)[...] = filled.view(flow=True)
    copy.title = title
    return copy
