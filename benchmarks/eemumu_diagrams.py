"""What the two-photon diagrams of e+ e- mu+ mu- leave out: all twelve at accepted points.

    python benchmarks/eemumu_diagrams.py [rows]

    lines     t: p1 -> p1', -p2' -> -p2          s: p1 -> -p2, -p2' -> p1'        s with a minus
    diagrams  of t, and the same of s:
              two photons: each line emits one, the muons take both (2 orders)
              one photon:  a line emits the muons' photon and takes that of the other line (4)

Spinors as they are, without the shift of momenta of simulation.eemumu: a second amplitude for it.
Rows are drawn by weight from those that pass the loose preselection; the mean of the ratio of both
|M|^2 is what the rate would change by, where the two-photon diagrams draw points at all.
"""

from __future__ import annotations

import sys

import numba
import numpy as np
import numpy.typing as npt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV, SUPERKEKB
from simulation import eemumu
from simulation.detector import reconstruct, smeared_sqrt_s
from simulation.frames import lab_matrix
from simulation.recipe import Recipe
from simulation.samples import adapted_grid, setup_of

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

POINTS = 300_000
METRIC = np.array([-1.0, -1.0, -1.0, 1.0])  # order (x, y, z, t)


def _gamma() -> ComplexArray:
    none, one = np.zeros((2, 2)), np.eye(2)
    pauli = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    space = [np.block([[none, s], [-s, none]]) for s in pauli]
    return np.array([*space, np.block([[none, one], [one, none]])])


GAMMA = _gamma()


def dot(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray((a * b) @ METRIC)


def slash(a: npt.NDArray[np.inexact]) -> ComplexArray:
    return np.asarray(np.einsum("nm,mij->nij", a * METRIC, GAMMA))


def spinor(p: FloatArray, m: float, spin: int, sign: int) -> ComplexArray:
    """u (sign 1) or v (sign -1) of momenta (n, 4)."""
    x, y, z, e = p.T
    if spin == 0:
        parts = (e + m - z, -x - 1j * y, sign * (e + m + z), sign * (x + 1j * y))
    else:
        parts = (-x + 1j * y, e + m + z, sign * (x - 1j * y), sign * (e + m - z))
    return np.stack([c + 0j for c in parts], axis=-1) / np.sqrt(2 * (e + m))[:, None]


def propagator(p: FloatArray, denominator: FloatArray, m: float) -> ComplexArray:
    return (slash(p) + m * np.eye(4)) / denominator[:, None, None]


def between(left: ComplexArray, middle: list[ComplexArray], right: ComplexArray) -> ComplexArray:
    """left_bar . matrices . right (n,)."""
    for matrix in reversed(middle):
        right = np.einsum("nij,nj->ni", matrix, right)
    return np.asarray(((left.conj() @ GAMMA[3]) * right).sum(axis=-1))


def photon(left: ComplexArray, right: ComplexArray, q2: FloatArray) -> ComplexArray:
    """Slash of the current left_bar gamma right over q2."""
    current = np.einsum("ni,mij,nj->nm", left.conj() @ GAMMA[3], GAMMA, right)
    return slash(current / q2[:, None])


def momentum_transfer(p: FloatArray, out: FloatArray, sign: int) -> FloatArray:
    """q2 of a beam along sign * z, also where the electron leaves along it."""
    m, e, beam = ELECTRON_MASS_GEV, p[:, 3], np.abs(p[:, 2])
    length, along = np.linalg.norm(out[:, :3], axis=1), sign * out[:, 2]
    pt2 = out[:, 0] ** 2 + out[:, 1] ** 2
    versine = np.where(along > 0, pt2 / (length * (length + np.abs(along))), 1 - along / length)
    least = 2 * m**2 * (e - out[:, 3]) ** 2 / (e * out[:, 3] - m**2 + beam * length)
    return -(least + 2 * beam * length * versine)


def squared(momenta: FloatArray, sqrt_s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums over spins of |M|^2 / e^8 (n,): two photons, all six of t, all twelve."""
    m_e, m = ELECTRON_MASS_GEV, MUON_MASS_GEV
    k2, k1, o1, o2 = (momenta[:, i] for i in range(4))  # mu+, mu-, e-, e+
    p1, p2 = np.zeros((2, len(sqrt_s), 4))
    p1[:, 3] = p2[:, 3] = sqrt_s / 2
    p1[:, 2] = np.sqrt(sqrt_s**2 / 4 - m_e**2)
    p2[:, 2] = -p1[:, 2]
    pair = k1 + k2
    pair2 = dot(pair, pair)

    def lines(  # each: momenta at the left and right end, photon it emits, its square
        one: tuple[FloatArray, FloatArray, FloatArray],
        two: tuple[FloatArray, FloatArray, FloatArray],
    ) -> tuple[list[ComplexArray], ...]:
        (r1, q1, t1), (r2, q2, t2) = one, two
        return (
            [
                propagator(k1 - q1, t1 - 2 * dot(k1, q1), m),
                propagator(k1 - q2, t2 - 2 * dot(k1, q2), m),
            ],
            [
                propagator(r1 + q2, t2 + 2 * dot(r1, q2), m_e),
                propagator(r1 - pair, pair2 - 2 * dot(r1, pair), m_e),
            ],
            [
                propagator(r2 + q1, t1 + 2 * dot(r2, q1), m_e),
                propagator(r2 - pair, pair2 - 2 * dot(r2, pair), m_e),
            ],
        )

    t1, t2 = momentum_transfer(p1, o1, 1), momentum_transfer(p2, o2, -1)
    s, s_out = sqrt_s**2, 2 * (m_e**2 + dot(o1, o2))
    through = lines((p1, p1 - o1, t1), (-o2, p2 - o2, t2))
    annihilate = lines((p1, p1 + p2, s), (-o2, -o1 - o2, s_out))

    total = np.zeros((3, len(s)))
    u = spinor(p1, m_e, 0, 1)  # the other spin gives the same by parity
    for spins in np.ndindex(2, 2, 2, 2, 2):
        v = spinor(p2, m_e, spins[0], -1)
        u_out, v_out = spinor(o1, m_e, spins[1], 1), spinor(o2, m_e, spins[2], -1)
        a, b = spinor(k1, m, spins[3], 1), spinor(k2, m, spins[4], -1)
        muons = photon(a, b, pair2)

        def diagrams(
            ends: tuple[ComplexArray, ...],
            photons: tuple[ComplexArray, ComplexArray],
            inner: tuple[list[ComplexArray], ...],
            a: ComplexArray = a,
            b: ComplexArray = b,
            muons: ComplexArray = muons,
        ) -> tuple[ComplexArray, ComplexArray]:
            (l1, r1, l2, r2), (g1, g2), (mu, e1, e2) = ends, photons, inner
            both = between(a, [g1, mu[0], g2], b) + between(a, [g2, mu[1], g1], b)
            first = between(l1, [muons, e1[0], g2], r1) + between(l1, [g2, e1[1], muons], r1)
            second = between(l2, [muons, e2[0], g1], r2) + between(l2, [g1, e2[1], muons], r2)
            return both, first + second

        photons = photon(u_out, u, t1), photon(v, v_out, t2)
        two, one = diagrams((u_out, u, v, v_out), photons, through)
        photons = photon(v, u, s), photon(u_out, v_out, s_out)
        others = sum(diagrams((v, u, u_out, v_out), photons, annihilate))
        total += np.abs(np.array([two, two + one, two + one - others])) ** 2
    return 2 * total[0], 2 * total[1], 2 * total[2]


@numba.njit  # type: ignore[untyped-decorator]
def _draws(x, stratum, sqrt_s, to_lab, momenta, weight):  # type: ignore[no-untyped-def]
    out = np.empty((4, 4))
    for i in range(len(x)):
        weight[i] = eemumu._draw(x[i], stratum, sqrt_s[i], to_lab, out)
        momenta[i] = out


def rows(n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(momenta (n, 4, 4) of mu+, mu-, e-, e+; sqrt_s; M2_rec) of n rows drawn by weight."""
    setup = setup_of(Recipe("eemumu", 1, 1))
    rng, to_lab, beams = np.random.default_rng(1), lab_matrix(SUPERKEKB), np.array(SUPERKEKB.total)
    kept = []
    for index, stratum in enumerate(adapted_grid(setup) if setup else ()):
        points = round(POINTS * stratum.share)
        if points == 0:
            continue
        x, jacobian = stratum.points(rng, points)
        sqrt_s = smeared_sqrt_s(rng, points, beams=SUPERKEKB, spread_gev=0.001)
        momenta, weight = np.zeros((points, 4, 4)), np.zeros(points)
        _draws(x, index, sqrt_s, to_lab, momenta, weight)
        weight *= jacobian / points
        seen = reconstruct(rng, momenta[:, :2].copy(), weight, beams=SUPERKEKB, hit_or_miss=False)
        recoil = beams - seen.seen.sum(axis=1)
        kept.append((seen.weight, momenta[seen.entry], sqrt_s[seen.entry], dot(recoil, recoil)))
    w, momenta, sqrt_s, recoil2 = (np.concatenate(part) for part in zip(*kept, strict=True))
    chosen = rng.choice(len(w), n, p=w / w.sum())
    return momenta[chosen], sqrt_s[chosen], recoil2[chosen]


def main(n: int) -> None:
    momenta, sqrt_s, recoil2 = rows(n)
    two, through, every = squared(momenta, sqrt_s)
    pair = momenta[:, 0] + momenta[:, 1]
    recoil, width = np.sqrt(np.maximum(recoil2, 0)), np.sqrt(dot(pair, pair))
    print(f"{'':<18}{'rows':>6}{'t-channel / two-photon':>26}{'all / two-photon':>24}")
    cuts = [("all", recoil >= 0)]
    for low, high in ((0, 5), (5, 6), (6, 7), (7, 8), (8, 8.5), (8.5, 9.2)):
        cuts.append((f"M_rec {low}-{high}", (recoil >= low) & (recoil < high)))
    for low, high in ((0.2, 0.5), (0.5, 1), (1, 2), (2, 4), (4, 10)):
        cuts.append((f"W {low}-{high}", (width >= low) & (width < high)))
    for name, here in cuts:
        text = f"{name:<18}{here.sum():>6}"
        for part in (through, every):
            ratio = part[here] / two[here]
            text += f"{ratio.mean():>16.4f} +- {ratio.std() / max(len(ratio), 1) ** 0.5:.4f}"
        print(text)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4_000)
