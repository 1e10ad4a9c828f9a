"""Axis, features and cuts per second on one core: the generated kernel against one made by hand.

    python benchmarks/features_speed.py [--events 2000000]

The kernel of the search is generated from its definition. The yardstick is the one that was written
by hand for this very search: recoil, features, then every cut with numpy, each a pass over the
events. Beside them vector's own arrays, without cuts. All compute from the same columns, in turns;
the best of the rounds counts, because other work on the machine only ever makes them slower. The
limit is a loop of the same reads and writes without arithmetic: 48 bytes in (float32), 25 out per
event. The results of both kernels are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping

import numba as nb
import numpy as np
import vector

from analysis.config.searches import shipped_search
from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.kernel import EventQuantities, event_quantities
from selection.ntuple import MOMENTA
from selection.preselection import passing
from selection.recoil import MuonPair, momenta, recoil, reference_features

SEARCH = shipped_search("dimuon_recoil")
Columns = Mapping[str, np.ndarray]


def random_columns(n: int, dtype: type[np.floating]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    p = rng.normal(0, 2, (2, 3, n))
    e = np.sqrt((p**2).sum(axis=1) + MUON_MASS_GEV**2)
    rows = [*p[0], e[0], *p[1], e[1]]
    columns = dict(zip(MOMENTA, rows, strict=True))
    columns |= {name: rng.uniform(0.3, 1, n) for name in ("mu_plus_id", "mu_minus_id")}
    columns["extra_energy"] = rng.exponential(0.2, n)
    columns["photon_recoil_angle"] = np.where(rng.random(n) < 0.5, np.nan, rng.uniform(0, 3, n))
    return {name: row.astype(dtype) for name, row in columns.items()}


# the kernel as it was written by hand


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


def by_hand(columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axis (n,), features (4, n) and the mask (n,) of what passes all cuts."""
    p = tuple(columns[name] for name in MOMENTA)
    n = len(p[0])
    out, features = np.empty((2, n)), np.empty((4, n), np.float32)
    finite = np.empty(n, np.bool_)
    total, electron = SUPERKEKB.total, SUPERKEKB.electron_direction
    _fixed_beams(*p, total, electron, *out, *features, finite)
    costheta = out[1]
    theta = np.ones(n, bool)
    theta &= costheta < np.cos(np.radians(33.0))
    theta &= costheta > np.cos(np.radians(124.0))
    masks = {
        "valid": finite,
        "muon_id": np.minimum(columns["mu_plus_id"], columns["mu_minus_id"]) > 0.5,
        "recoil_theta": theta,
        "pt_mumu": features[3] > 1.0,
        "extra_energy": columns["extra_energy"] < 0.4,
        "photon_veto": ~(columns["photon_recoil_angle"] < np.radians(15.0)),
    }
    passes = np.ones(n, bool)
    for mask in masks.values():
        passes &= mask
    return out[0], features, passes


def generated(columns: Columns) -> EventQuantities:
    return event_quantities(SEARCH, columns, SUPERKEKB)


def compare(columns: Columns) -> None:
    """The same events pass, and their numbers agree: both do the same work."""
    axis, features, passes = by_hand(columns)
    found = generated(columns)
    if not np.array_equal(passing(found.code, len(SEARCH.cuts)), passes):
        msg = "the two kernels do not select the same events"
        raise SystemExit(msg)
    apart = np.abs(found.features / features - 1).max()
    print(
        f"  {passes.mean():.1%} pass in both; axis apart by at most "
        f"{np.abs(found.axis - axis).max():.1e} GeV^2, features by {apart:.1e} of their value"
    )


@nb.njit(nogil=True)
def copy_only(  # type: ignore[no-untyped-def]
    a, b, c, d, e, f, g, h, i1, i2, x, y, axis, f0, f1, f2, f3, code
):
    for i in range(len(a)):
        axis[i] = a[i] + e[i] + b[i]
        f0[i] = c[i] + x[i]
        f1[i] = d[i] + y[i]
        f2[i] = g[i] + i1[i]
        f3[i] = h[i] + i2[i]
        code[i] = f[i] > 0


def best_seconds(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Shortest time of each piece of work, taking turns."""
    best = dict.fromkeys(work, np.inf)
    for _ in range(rounds):
        for name, call in work.items():
            begin = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    n = options.events
    print(f"axis, four features and five cuts of {n:,} events, one core")
    for dtype in (np.float32, np.float64):
        columns = random_columns(n, dtype)
        compare(columns)  # compiles, too
        pair = MuonPair(
            momenta(*(columns[name] for name in MOMENTA[:4])),
            momenta(*(columns[name] for name in MOMENTA[4:])),
        )
        p = tuple(columns.values())
        out = (np.empty(n), *np.empty((4, n), np.float32), np.empty(n, np.uint8))

        def arrays(pair: MuonPair = pair) -> None:
            _ = recoil(pair, SUPERKEKB).mass2
            reference_features(pair, SUPERKEKB)

        work: dict[str, Callable[[], object]] = {
            "generated": lambda columns=columns: generated(columns),
            "by hand": lambda columns=columns: by_hand(columns),
            "vector arrays": arrays,
            "copy only (limit)": lambda p=p, o=out: copy_only(*p, *o),
        }
        for call in work.values():
            call()  # compiles
        rate = {name: n / t / 1e6 for name, t in best_seconds(work, options.rounds).items()}
        for name, value in rate.items():
            print(f"  {np.dtype(dtype).name}  {name:18s} {value:8.1f} M events/s")
        print(
            f"  generated / by hand = {rate['generated'] / rate['by hand']:.2f}, "
            f"generated / arrays = {rate['generated'] / rate['vector arrays']:.1f}, "
            f"generated / copy = {rate['generated'] / rate['copy only (limit)']:.2f}"
        )


if __name__ == "__main__":
    main()
