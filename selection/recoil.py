"""Four-momentum recoiling against the muon pair.

    p_rec  = P_beams - (p_mu+ + p_mu-)      lab frame, GeV
    M_rec2 = p_rec . p_rec                  GeV^2

M_rec2 may be negative: resolution moves light recoils below zero. Windows are therefore cut in
M_rec2, never in M_rec, whose sign is only a convention of vector.

This is the search `dimuon_recoil` in readable form, on vector arrays: the oracle of its tests. What
runs is made from selection/searches/dimuon_recoil.yaml and is many times faster.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import vector

from selection.beams import Beams, FloatArray, cm_matrix

FEATURES = ("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min", "pt_mumu")


@dataclass(frozen=True)
class MuonPair:
    """Lab four-momenta of the two muons, as vector arrays (n_events,)."""

    plus: vector.MomentumNumpy4D
    minus: vector.MomentumNumpy4D


def momenta(px: FloatArray, py: FloatArray, pz: FloatArray, e: FloatArray) -> vector.VectorNumpy4D:
    """Four arrays (n,) in GeV -> one array of four-vectors in float64."""
    columns = {"px": px, "py": py, "pz": pz, "E": e}
    return vector.array({name: np.asarray(a, np.float64) for name, a in columns.items()})


def recoil(pair: MuonPair, beams: Beams) -> vector.MomentumNumpy4D:
    """What the muons leave of the beams, in the lab."""
    return beams.p4 - (pair.plus + pair.minus)


def to_cm(p: vector.MomentumNumpy4D, beams: Beams) -> vector.MomentumNumpy4D:
    """The same vectors in the CM frame with the e- along +z (basf2's convention)."""
    rows = cm_matrix(beams) @ np.stack([p.px, p.py, p.pz, p.E])
    return momenta(*rows)


def thrust_transverse(p1: vector.VectorNumpy3D, p2: vector.VectorNumpy3D) -> FloatArray:
    """pt of either particle to the thrust axis of the two, which is the longer of p1 +- p2."""
    axis_length = np.maximum((p1 + p2).mag, (p1 - p2).mag)
    return p1.cross(p2).mag / axis_length


def reference_features(pair: MuonPair, beams: Beams) -> FloatArray:
    """The four features (n, 4) in the order of FEATURES, GeV."""
    plus, minus = to_cm(pair.plus, beams), to_cm(pair.minus, beams)
    swap = minus.E > plus.E
    hard = vector.array({k: np.where(swap, minus[k], plus[k]) for k in ("x", "y", "z")})
    soft = vector.array({k: np.where(swap, plus[k], minus[k]) for k in ("x", "y", "z")})
    values = {
        "pt_thrust": thrust_transverse(hard, soft),
        "pt_max_wrt_min": hard.cross(soft).mag / soft.mag,
        "pl_max_wrt_min": hard.dot(soft) / soft.mag,
        "pt_mumu": (hard + soft).rho,
    }
    return np.stack([values[name] for name in FEATURES], axis=1)
