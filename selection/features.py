"""Recoil and the four features of every event, in one pass over the momenta.

With p_max, p_min the CM three-momenta of the muon with the higher and the lower energy:

    pt_thrust      = |p1 x p2| / max(|p1 + p2|, |p1 - p2|)     pt to the thrust axis of the two
    pt_max_wrt_min = |p_max x p_min| / |p_min|
    pl_max_wrt_min = p_max . p_min / |p_min|                   usually negative: back to back
    pt_mumu        = |(p1 + p2) x n_e|                         n_e: the e- direction in the CM frame

GeV. None of them needs the CM azimuth, so the rotation of the frame enters only through n_e.

The kernel works on `vector` objects inside numba: they compile to plain arithmetic on registers,
and the loop releases the GIL. Inputs may be float32 or float64; arithmetic is float64, because
M_rec2 is a small difference of large squares. A NaN input gives NaN outputs of that event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numba as nb
import numpy as np
import numpy.typing as npt
import vector

from selection.beams import Beams, FloatArray
from selection.ntuple import BEAM_COLUMNS, ECMS_COLUMN, MOMENTA
from selection.table import FEATURES


@dataclass(frozen=True)
class EventKinematics:
    """What the kernel finds for each event; NaN where an input is NaN."""

    recoil_mass2_gev2: npt.NDArray[np.float64]  # (n,)
    recoil_costheta: npt.NDArray[np.float64]  # (n,) polar angle in the lab
    features: FloatArray  # (4, n) in the order of FEATURES: one contiguous row each
    finite: npt.NDArray[np.bool_]  # (n,) recoil mass and all features are finite


@nb.njit(nogil=True, inline="always", error_model="numpy")
def _event(plus, minus, beams, axis):  # type: ignore[no-untyped-def]
    rec = beams - (plus + minus)
    p1, p2 = plus.boostCM_of_p4(beams), minus.boostCM_of_p4(beams)
    a, b = p1.to_Vector3D(), p2.to_Vector3D()
    both = a + b
    cross = np.sqrt(a.cross(b).mag2)
    soft = np.sqrt(a.mag2) if p1.E < p2.E else np.sqrt(b.mag2)
    return (
        rec.E * rec.E - rec.px * rec.px - rec.py * rec.py - rec.pz * rec.pz,
        rec.pz / np.sqrt(rec.px * rec.px + rec.py * rec.py + rec.pz * rec.pz),
        cross / np.sqrt(max(both.mag2, (a - b).mag2)),
        cross / soft,
        a.dot(b) / soft,
        np.sqrt(both.cross(axis).mag2),
    )


@nb.njit(nogil=True, inline="always")
def _p4(px, py, pz, e):  # type: ignore[no-untyped-def]
    return vector.obj(px=np.float64(px), py=np.float64(py), pz=np.float64(pz), E=np.float64(e))


# Every column is an argument of its own: only then LLVM sees that they do not overlap and computes
# several events at once. No fastmath: an event's bits must not depend on its place in a chunk.
@nb.njit(nogil=True, cache=True, error_model="numpy")
def _fixed_beams(  # type: ignore[no-untyped-def]
    ax, ay, az, ae, bx, by, bz, be, beam, electron, mass2, costheta, f0, f1, f2, f3, finite
):
    beams = _p4(beam[0], beam[1], beam[2], beam[3])
    lab = _p4(electron[0], electron[1], electron[2], 1.0)
    axis = lab.boostCM_of_p4(beams).to_Vector3D().unit()
    for i in range(len(ax)):
        plus, minus = _p4(ax[i], ay[i], az[i], ae[i]), _p4(bx[i], by[i], bz[i], be[i])
        mass2[i], costheta[i], f0[i], f1[i], f2[i], f3[i] = _event(plus, minus, beams, axis)
        finite[i] = np.isfinite(mass2[i] + f0[i] + f1[i] + f2[i] + f3[i])


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _event_beams(  # type: ignore[no-untyped-def]
    ax, ay, az, ae, bx, by, bz, be, beam, electron, mass2, costheta, f0, f1, f2, f3, finite
):
    px, py, pz, energy = beam
    lab = _p4(electron[0], electron[1], electron[2], 1.0)
    for i in range(len(ax)):
        beams = _p4(px[i], py[i], pz[i], energy[i])
        axis = lab.boostCM_of_p4(beams).to_Vector3D().unit()
        plus, minus = _p4(ax[i], ay[i], az[i], ae[i]), _p4(bx[i], by[i], bz[i], be[i])
        mass2[i], costheta[i], f0[i], f1[i], f2[i], f3[i] = _event(plus, minus, beams, axis)
        finite[i] = np.isfinite(mass2[i] + f0[i] + f1[i] + f2[i] + f3[i])


def event_kinematics(
    columns: Mapping[str, FloatArray],
    beams: Beams,
    *,
    feature_type: type[np.floating] = np.float32,
) -> EventKinematics:
    """Columns (n,) of the ntuple contract -> recoil and features of each event.

    The beams of the event are, in this order of preference: the four beam columns; the configured
    beams scaled to the column `ecms` (same boost, other energy); the configured beams.
    """
    kind = np.result_type(np.float32, *(columns[name].dtype for name in MOMENTA))
    p = tuple(np.ascontiguousarray(columns[name], kind) for name in MOMENTA)
    n = len(p[0])
    out, features = np.empty((2, n)), np.empty((len(FEATURES), n), feature_type)
    finite = np.empty(n, np.bool_)
    per_event = _beam_columns(columns, beams)
    if per_event is None:
        _fixed_beams(*p, beams.total, beams.electron_direction, *out, *features, finite)
    else:
        _event_beams(*p, per_event, beams.electron_direction, *out, *features, finite)
    return EventKinematics(out[0], out[1], features, finite)


def _beam_columns(
    columns: Mapping[str, FloatArray], beams: Beams
) -> tuple[npt.NDArray[np.float64], ...] | None:
    if all(name in columns for name in BEAM_COLUMNS):
        return tuple(np.ascontiguousarray(columns[name], np.float64) for name in BEAM_COLUMNS)
    if ECMS_COLUMN in columns:
        scale = np.asarray(columns[ECMS_COLUMN], np.float64) / beams.sqrt_s_gev
        return tuple(component * scale for component in beams.total)
    return None
