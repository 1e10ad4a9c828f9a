"""Histograms of selected events: spectra and features, per data set, weighted and raw.

Every quantity has a `Weight()` histogram (sum of weights and of their squares) and an `Int64` one
with the raw counts of the same bins. Weights here are those of the rows (events per 1/fb, or 1);
normalisation and scale factors are applied by whoever reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hist
import numpy as np
import numpy.typing as npt
import uhi.io.json
import uproot

from selection.masses import signed_root
from selection.table import FEATURES, FloatArray
from selection.whole_files import replacing, write_text

Histograms = dict[str, hist.Hist]  # quantity -> histogram

AXES: Mapping[str, hist.axis.Regular] = {
    "recoil_mass2": hist.axis.Regular(
        180, -5, 85, name="recoil_mass2", label=r"$M^2_\mathrm{rec}$ [GeV$^2$/c$^4$]"
    ),
    "recoil_mass": hist.axis.Regular(
        100, 0, 10, name="recoil_mass", label=r"$M_\mathrm{rec}$ [GeV/c$^2$]"
    ),
    "pt_thrust": hist.axis.Regular(
        60, 0, 6, name="pt_thrust", label=r"$p_\mathrm{T}^\mathrm{thrust}(\mu)$ [GeV/c]"
    ),
    "pt_max_wrt_min": hist.axis.Regular(
        60,
        0,
        6,
        name="pt_max_wrt_min",
        label=r"$p_\mathrm{T}^{\mu_\mathrm{min}}(\mu_\mathrm{max})$ [GeV/c]",
    ),
    "pl_max_wrt_min": hist.axis.Regular(
        60,
        -6,
        6,
        name="pl_max_wrt_min",
        label=r"$p_\mathrm{L}^{\mu_\mathrm{min}}(\mu_\mathrm{max})$ [GeV/c]",
    ),
    "pt_mumu": hist.axis.Regular(60, 0, 6, name="pt_mumu", label=r"$p_\mathrm{T}(\mu\mu)$ [GeV/c]"),
}


def empty_histograms() -> Histograms:
    """Weighted histograms under the name of the quantity, raw counts under `<name>_raw`."""
    weighted = {name: hist.Hist(axis, storage=hist.storage.Weight()) for name, axis in AXES.items()}
    raw = {
        f"{name}_raw": hist.Hist(axis, storage=hist.storage.Int64()) for name, axis in AXES.items()
    }
    return weighted | raw


def filled_histograms(
    mass2_gev2: FloatArray, features: FloatArray, weight: FloatArray
) -> Histograms:
    """mass2 (n,), features (4, n), weight (n,). M_rec2 < 0 is in the underflow of M_rec."""
    filled = empty_histograms()
    values = {
        "recoil_mass2": mass2_gev2,
        "recoil_mass": signed_root(mass2_gev2),
        **dict(zip(FEATURES, features, strict=True)),
    }
    constant = len(weight) > 0 and bool(np.all(weight == weight[0]))
    for name, value in values.items():
        raw = filled[f"{name}_raw"]
        raw.fill(value)
        if constant:  # n times the same weight: no second pass
            view = filled[name].view(flow=True)
            view.value = raw.view(flow=True) * weight[0]
            view.variance = raw.view(flow=True) * weight[0] ** 2
        else:
            filled[name].fill(value, weight=weight)
    return filled


def skim_histograms(skim: Mapping[str, npt.NDArray[Any]]) -> Histograms:
    """Histograms of the columns of a shard."""
    features = np.stack([skim[name] for name in FEATURES])
    return filled_histograms(skim["recoil_mass2_gev2"], features, skim["weight"])


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
