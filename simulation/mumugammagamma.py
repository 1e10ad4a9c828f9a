"""e+ e- -> mu+ mu- gamma gamma at tree level: all twenty diagrams, both masses kept.

    a line has ends L_bar(l) ... R(r):  v_bar(p2), l = -p2;  u(p1), r = p1       electrons
                                        u_bar(k1), l = k1;   v(k2), r = -k2      muons
    R_a  = (r - k_a + m) e_a R / ((r - k_a)^2 - m^2)                 one photon off the right end
    R_ab = (r - k_a - k_b + m) (e_b R_a + e_a R_b) / ((r - k_a - k_b)^2 - m^2)           both
    L_a, L_ab: the same with l + k in place of r - k
    J0 = L_bar g R      Ja = L_bar g R_a + L_a_bar g R      Jb likewise
    Jab = L_bar g R_ab + L_a_bar g R_b + L_b_bar g R_a + L_ab_bar g R
    M  = e^4 { Jab.J0' / (k1+k2)^2 + Ja.Jb' / (k1+k2+kb)^2 + Jb.Ja' / (k1+k2+ka)^2 + J0.Jab' / s }

(J: electrons, J': muons). `dressed`: each of the four virtual photons with its vacuum polarisation;
each current is conserved for itself. Polarisations are the two transverse ones of each photon,
never -g_ab: along a beam the four terms of -g_ab cancel to (m_e/E)^2, both photons to its square.
For the same reason (r + m) e R is written as 2 r.e R, and p.k by the transverse momentum. The spin
of the electron is fixed, the other gives the same sum: a trace with one gamma_5 is imaginary here.
"""

from __future__ import annotations

from math import hypot, pi, sqrt

import numpy as np

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA
from simulation.frames import put
from simulation.spinors import FINITE, UP, Spinor, Vector, current, slash, slash_plus_mass, spinor
from simulation.vacuum_polarisation import running

# places of a chain of spinors, and of the currents: none, a with polarisation 0 or 1, b, a and b
NONE, A, B, AB, PLACES = np.int64(0), 1, 3, 5, 9  # not a plain 0, as in spinors


@inner(fastmath=FINITE)
def dot(a: Vector, b: Vector) -> float:
    """a.b"""
    return a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]


@inner(fastmath=FINITE)
def beam_dot(p: float, m: float, sign: float, k: Vector) -> float:
    """p.k of a beam of momentum p along sign * z, also where both are parallel."""
    e = sqrt(p * p + m * m)
    along = sign * k[2]
    if along < 0:
        return e * k[3] - p * along
    return (m * m * k[3] ** 2 + p * p * (k[0] ** 2 + k[1] ** 2)) / (e * k[3] + p * along)


@inner(fastmath=FINITE)
def transverse(k: Vector):  # type: ignore[no-untyped-def]
    """The two polarisations of a photon: orthogonal to k, no time component."""
    pt = hypot(k[0], k[1])
    if pt == 0:
        return (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)
    c, s, x, y = k[2] / k[3], pt / k[3], k[0] / pt, k[1] / pt
    return (c * x, c * y, -s, 0.0), (-y, x, 0.0, 0.0)


@inner(fastmath=FINITE)
def _emitted(end: Spinor, p: Vector, sign: float, k: Vector, e: Vector, d: float) -> Spinor:
    """(2 p.e + sign k e) end d: one photon off an end that obeys (p - m) end = 0."""
    c0, c1, c2, c3 = slash(k, slash(e, end))
    f, g = 2 * dot(p, e) * d, sign * d
    return (f * end[0] + g * c0, f * end[1] + g * c1, f * end[2] + g * c2, f * end[3] + g * c3)


@inner(fastmath=FINITE)
def _row(chain, i: int) -> Spinor:  # type: ignore[no-untyped-def]
    return (chain[i, 0], chain[i, 1], chain[i, 2], chain[i, 3])


@inner(fastmath=FINITE)
def _chain(end, p, m, sign, k, e, d, chain):  # type: ignore[no-untyped-def]
    """End of a line with no, one and two photons into chain (PLACES, 4); sign -1: right, 1: left.

    k, e: of both photons, e with two polarisations each; d: 1 / denominators for a, b, a and b.
    """
    put(chain[0], end)
    for i in range(2):
        put(chain[A + i], _emitted(end, p, sign, k[0], e[0][i], d[0]))
        put(chain[B + i], _emitted(end, p, sign, k[1], e[1][i], d[1]))
    q = (
        p[0] + sign * (k[0][0] + k[1][0]),
        p[1] + sign * (k[0][1] + k[1][1]),
        p[2] + sign * (k[0][2] + k[1][2]),
        p[3] + sign * (k[0][3] + k[1][3]),
    )
    for i in range(2):
        for j in range(2):
            x = slash(e[1][j], _row(chain, A + i))
            y = slash(e[0][i], _row(chain, B + j))
            both = (x[0] + y[0], x[1] + y[1], x[2] + y[2], x[3] + y[3])
            r = slash_plus_mass(q, m, both)
            put(chain[AB + 2 * i + j], (r[0] * d[2], r[1] * d[2], r[2] * d[2], r[3] * d[2]))


@inner(fastmath=FINITE)
def _add(out, place, left, i, right, j):  # type: ignore[no-untyped-def]
    x, y, z, t = current(_row(left, i), _row(right, j))
    out[place, 0] += x
    out[place, 1] += y
    out[place, 2] += z
    out[place, 3] += t


@inner(fastmath=FINITE)
def _currents(left, right, out):  # type: ignore[no-untyped-def]
    """J0, Ja, Jb, Jab of a line into out (PLACES, 4)."""
    out[:] = 0
    _add(out, NONE, left, NONE, right, NONE)
    for i in range(2):
        for place in (A + i, B + i):
            _add(out, place, left, NONE, right, place)
            _add(out, place, left, place, right, NONE)
        for j in range(2):
            place = AB + 2 * i + j
            _add(out, place, left, NONE, right, place)
            _add(out, place, left, A + i, right, B + j)
            _add(out, place, left, B + j, right, A + i)
            _add(out, place, left, place, right, NONE)


@inner(fastmath=FINITE)
def _contract(one, i, two, j) -> complex:  # type: ignore[no-untyped-def]
    return (
        one[i, 3] * two[j, 3]
        - one[i, 0] * two[j, 0]
        - one[i, 1] * two[j, 1]
        - one[i, 2] * two[j, 2]
    )


@inner(fastmath=FINITE)
def polarised(k1: Vector, k2: Vector, k, s: float, e, dressed: bool = False) -> float:  # type: ignore[no-untyped-def]
    """Sum over spins and the four pairs of given polarisations of |M|^2 / e^8.

    Rest frame of the annihilation, beams along z; k: both photons, e: two real vectors for each.
    """
    me, m = ELECTRON_MASS_GEV, MUON_MASS_GEV
    energy = 0.5 * sqrt(s)
    p = sqrt(energy**2 - me * me)
    ka, kb = k
    ab = 2 * dot(ka, kb)
    beam = (beam_dot(p, me, 1.0, ka), beam_dot(p, me, 1.0, kb))
    other = (beam_dot(p, me, -1.0, ka), beam_dot(p, me, -1.0, kb))
    one, two = (dot(k1, ka), dot(k1, kb)), (dot(k2, ka), dot(k2, kb))
    pair = 2 * (m * m + dot(k1, k2))
    with_a, with_b = pair + 2 * (one[0] + two[0]), pair + 2 * (one[1] + two[1])
    f0, fa, fb, f = 1 / pair, 1 / with_a, 1 / with_b, 1 / s
    if dressed:
        f0, f = f0 * running(pair), f * running(s)
        fa, fb = fa * running(with_a), fb * running(with_b)

    chains = np.empty((7, PLACES, 4), np.complex128)  # u; v, v; u_mu, u_mu; v_mu, v_mu
    d = (-0.5 / beam[0], -0.5 / beam[1], 1 / (ab - 2 * (beam[0] + beam[1])))
    beam1, beam2 = (0.0, 0.0, p, energy), (0.0, 0.0, -p, energy)
    _chain(spinor(beam1, me, UP, 1.0), beam1, me, -1.0, k, e, d, chains[0])
    d1 = (-0.5 / other[0], -0.5 / other[1], 1 / (ab - 2 * (other[0] + other[1])))
    f1 = (0.5 / one[0], 0.5 / one[1], 1 / (ab + 2 * (one[0] + one[1])))
    f2 = (0.5 / two[0], 0.5 / two[1], 1 / (ab + 2 * (two[0] + two[1])))
    minus = (-k2[0], -k2[1], -k2[2], -k2[3])
    for spin in range(2):
        v = spinor(beam2, me, spin, -1.0)
        _chain(v, (0.0, 0.0, p, -energy), me, 1.0, k, e, d1, chains[1 + spin])
        _chain(spinor(k1, m, spin, 1.0), k1, m, 1.0, k, e, f1, chains[3 + spin])
        _chain(spinor(k2, m, spin, -1.0), minus, m, -1.0, k, e, f2, chains[5 + spin])

    electrons = np.empty((2, PLACES, 4), np.complex128)
    muons = np.empty((PLACES, 4), np.complex128)
    _currents(chains[1], chains[0], electrons[0])
    _currents(chains[2], chains[0], electrons[1])
    total = 0.0
    for spins in range(4):
        _currents(chains[3 + spins // 2], chains[5 + spins % 2], muons)
        for n in range(2):
            j = electrons[n]
            for a in range(2):
                for b in range(2):
                    both = AB + 2 * a + b
                    amplitude = (
                        f0 * _contract(j, both, muons, NONE)
                        + fb * _contract(j, A + a, muons, B + b)
                        + fa * _contract(j, B + b, muons, A + a)
                        + f * _contract(j, NONE, muons, both)
                    )
                    total += amplitude.real**2 + amplitude.imag**2
    return 2 * total


@inner(fastmath=FINITE)
def squared_amplitude(
    k1: Vector, k2: Vector, ka: Vector, kb: Vector, s: float, dressed: bool = False
) -> float:
    """Sum over all spins and polarisations of |M|^2 [GeV^-4] (k1: mu-, k2: mu+; photons ka, kb)."""
    e = (transverse(ka), transverse(kb))
    return (4 * pi * ALPHA) ** 4 * polarised(k1, k2, (ka, kb), s, e, dressed)
