"""Recoil spectra before and after the cut on the score, of entries that pass the preselection.

    before | after   ->   recoil_mass2, recoil_mass      sum of weights (or entries)
                          recoil_mass2_raw, ..._raw      entries

The axes are those of `punzi select`, so that data and simulation can be laid over each other.
Weights are summed entry by entry in the order of the file: how it was read never shows.
"""

from __future__ import annotations

import json

import hist
import numpy as np
import uhi.io.json

from analysis.histograms import AXES, Histograms, added
from selection.table import BoolArray, FloatArray

Spectra = dict[str, Histograms]

STAGES = ("before", "after")
QUANTITIES = ("recoil_mass2", "recoil_mass")


def empty_spectra() -> Spectra:
    """All spectra, nothing in them."""
    raw = {f"{q}_raw": hist.Hist(AXES[q], storage=hist.storage.Int64()) for q in QUANTITIES}
    weighted = {q: hist.Hist(AXES[q], storage=hist.storage.Weight()) for q in QUANTITIES}
    return {stage: {name: h.copy() for name, h in (weighted | raw).items()} for stage in STAGES}


def counted(mass2_gev2: FloatArray, passing: BoolArray) -> Spectra:
    """Spectra of entries of weight 1: mass2 (n,) of preselected entries, passing (n,)."""
    spectra = empty_spectra()
    for stage, values in _values(mass2_gev2, passing).items():
        for name, value in values.items():
            raw = spectra[stage][f"{name}_raw"].fill(value).view(flow=True)
            view = spectra[stage][name].view(flow=True)
            view.value = raw
            view.variance = raw
    return spectra


def add_weights(
    spectra: Spectra, mass2_gev2: FloatArray, passing: BoolArray, weight: FloatArray
) -> None:
    """Fill the weighted spectra, in place: one running sum keeps the order of the entries."""
    for stage, values in _values(mass2_gev2, passing).items():
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
