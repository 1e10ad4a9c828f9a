"""Recoil spectra before and after the cut on the score, of entries that pass the preselection.

    before | after   ->   recoil_mass2, recoil_mass      sum of weights (or entries)
                          recoil_mass2_raw, ..._raw      entries

The axes are those of `punzi select`, so that data and simulation can be laid over each other.
Weights are summed entry by entry in the order of the file: how it was read never shows.
"""

from __future__ import annotations

import json

import hist
import numba as nb
import numpy as np
import uhi.io.json

from analysis.histograms import AXES, Histograms, added
from selection.table import BoolArray, FloatArray

Spectra = dict[str, Histograms]

STAGES = ("before", "after")
QUANTITIES = ("recoil_mass2", "recoil_mass")
BLOCK = 256  # entries


def empty_spectra() -> Spectra:
    """All spectra, nothing in them."""
    raw = {f"{q}_raw": hist.Hist(AXES[q], storage=hist.storage.Int64()) for q in QUANTITIES}
    weighted = {q: hist.Hist(AXES[q], storage=hist.storage.Weight()) for q in QUANTITIES}
    return {stage: {name: h.copy() for name, h in (weighted | raw).items()} for stage in STAGES}


def counted(mass2_gev2: FloatArray, passing: BoolArray) -> Spectra:
    """Spectra of entries of weight 1: mass2 (n,) of preselected entries, passing (n,)."""
    axes = [AXES[name] for name in QUANTITIES]
    edges = [(axis.edges[0], axis.edges[-1]) for axis in axes]
    found = [np.zeros((2, axis.extent), np.int64) for axis in axes]  # failing, passing
    _count(_native(mass2_gev2), passing, *edges, *found)
    spectra = empty_spectra()
    for name, (failing, after) in zip(QUANTITIES, found, strict=True):
        for stage, entries in (("before", failing + after), ("after", after)):
            spectra[stage][f"{name}_raw"].view(flow=True)[...] = entries
            view = spectra[stage][name].view(flow=True)
            view.value = view.variance = entries
    return spectra


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _count(mass2, passing, mass2_edges, mass_edges, by_mass2, by_mass):  # type: ignore[no-untyped-def]
    """Adds to by_mass2 and by_mass, each (2, n_bins + 2), what hist would add.

    Three times as fast: bins are found for several entries at once, and counted afterwards.
    """
    bins, mass_bins = np.empty((2, BLOCK), np.int32)
    for start in range(0, len(mass2), BLOCK):
        n = min(BLOCK, len(mass2) - start)
        for e in range(n):
            m2 = mass2[start + e]
            bins[e] = _bin(m2, mass2_edges, by_mass2.shape[1] - 2)
            mass = np.copysign(np.sqrt(abs(m2)), m2)
            mass_bins[e] = _bin(mass, mass_edges, by_mass.shape[1] - 2)
        for e in range(n):
            stage = int(passing[start + e])
            by_mass2[stage, bins[e]] += 1
            by_mass[stage, mass_bins[e]] += 1


@nb.njit(inline="always", error_model="numpy")
def _bin(value, edges, n):  # type: ignore[no-untyped-def]
    """Bin of a finite value on a regular axis, as boost-histogram rounds; 0 is the underflow."""
    at = np.floor((value - edges[0]) / (edges[1] - edges[0]) * n)
    return np.int32(min(max(at, -1.0), float(n))) + 1


def add_weights(
    spectra: Spectra, mass2_gev2: FloatArray, passing: BoolArray, weight: FloatArray
) -> None:
    """Fill the weighted spectra, in place: one running sum keeps the order of the entries."""
    for stage, values in _values(_native(mass2_gev2), passing).items():
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


def _values(mass2: FloatArray, passing: BoolArray) -> dict[str, dict[str, FloatArray]]:
    # as in analysis.histograms: a negative M_rec2 has no M_rec and goes to the underflow
    mass = np.copysign(np.sqrt(np.abs(mass2)), mass2)
    return {
        "before": {"recoil_mass2": mass2, "recoil_mass": mass},
        "after": {"recoil_mass2": mass2[passing], "recoil_mass": mass[passing]},
    }


def _native(mass2: FloatArray) -> FloatArray:
    """Bytes in the order of this machine; the branches of the friend tree have ROOT's."""
    return np.asarray(mass2, np.float64)
