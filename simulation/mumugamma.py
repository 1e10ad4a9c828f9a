"""e+ e- -> mu+ mu- gamma at tree level.

    M_a = e^3 { v_bar(p2) [ g^mu (p1-k)/(-2 p1.k) g_a + g_a (k-p2)/(-2 p2.k) g^mu ] u(p1)
                   . u_bar(k1) g_mu v(k2) / (k1+k2)^2
              + v_bar(p2) g_mu u(p1) . u_bar(k1) [ g_a (k1+k+m)/(2 k1.k) g^mu
                   + g^mu (-k2-k+m)/(2 k2.k) g_a ] v(k2) / s }
    sum |M|^2 = - M_a M^a*                      (both brackets vanish for g_a -> k)

Emission off the beams, off the muons and their interference, muon mass kept, electron mass zero:
the photon is that of simulation.lost_photons, at least half of 0.92 GeV away from the beams.
`dressed`: with vacuum polarisation, a factor for each of 1/(k1+k2)^2 and 1/s. Emission off the
beams and off the muons are conserved each for itself, so the factors may differ.
"""

from __future__ import annotations

from math import pi, sqrt

from selection.beams import MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA
from simulation.spinors import (
    DOWN,
    FINITE,
    UP,
    Vector,
    bar_product,
    current,
    slash,
    slash_plus_mass,
    spinor,
)
from simulation.vacuum_polarisation import running


@inner(fastmath=FINITE)
def contracted(
    k1: Vector, k2: Vector, k: Vector, s: float, eps: Vector, photons: tuple[float, float]
) -> float:
    """Sum over spins of |M_a eps^a|^2 / e^6; beams along z, rest frame of the annihilation.

    photons: factors of emission off the beams and off the muons, 1/(k1+k2)^2 and 1/s.
    """
    m, half = MUON_MASS_GEV, 0.5 * sqrt(s)
    u = spinor((0.0, 0.0, half, half), 0.0, UP, 1.0)
    v = spinor((0.0, 0.0, -half, half), 0.0, DOWN, -1.0)
    j = current(v, u)  # one helicity of the beams; the other gives the same sum
    a = current(v, slash((-k[0], -k[1], half - k[2], half - k[3]), slash(eps, u)))
    b = current(slash((k[0], k[1], half + k[2], k[3] - half), slash(eps, v)), u)
    d1, d2 = -2 * half * (k[3] - k[2]), -2 * half * (k[3] + k[2])  # -2 p.k
    d1, d2 = photons[0] / d1, photons[0] / d2
    isr = (
        a[0] * d1 + b[0] * d2,
        a[1] * d1 + b[1] * d2,
        a[2] * d1 + b[2] * d2,
        a[3] * d1 + b[3] * d2,
    )

    one = (k1[0] + k[0], k1[1] + k[1], k1[2] + k[2], k1[3] + k[3])
    two = (-k2[0] - k[0], -k2[1] - k[1], -k2[2] - k[2], -k2[3] - k[3])
    f1 = 0.5 * photons[1] / (k1[3] * k[3] - k1[0] * k[0] - k1[1] * k[1] - k1[2] * k[2])
    f2 = 0.5 * photons[1] / (k2[3] * k[3] - k2[0] * k[0] - k2[1] * k[1] - k2[2] * k[2])
    total = 0.0
    for spin in range(2):
        w = spinor(k2, m, spin, -1.0)
        i0, i1, i2, i3 = slash(isr, w)
        a0, a1, a2, a3 = slash(eps, slash_plus_mass(one, m, slash(j, w)))
        b0, b1, b2, b3 = slash(j, slash_plus_mass(two, m, slash(eps, w)))
        psi = (
            i0 + a0 * f1 + b0 * f2,
            i1 + a1 * f1 + b1 * f2,
            i2 + a2 * f1 + b2 * f2,
            i3 + a3 * f1 + b3 * f2,
        )
        for other in range(2):
            amplitude = bar_product(spinor(k1, m, other, 1.0), psi)
            total += amplitude.real**2 + amplitude.imag**2
    return 2 * total


@inner(fastmath=FINITE)
def propagators(k1: Vector, k2: Vector, s: float, dressed: bool) -> tuple[float, float]:
    """1/(k1+k2)^2 and 1/s."""
    m = MUON_MASS_GEV
    pair = 2 * (m * m + k1[3] * k2[3] - k1[0] * k2[0] - k1[1] * k2[1] - k1[2] * k2[2])
    return (running(pair) / pair, running(s) / s) if dressed else (1 / pair, 1 / s)


@inner(fastmath=FINITE)
def squared_amplitude(k1: Vector, k2: Vector, k: Vector, s: float, dressed: bool = False) -> float:
    """Sum over all spins and polarisations of |M|^2 (k1: mu-, k2: mu+, k: photon)."""
    photons = propagators(k1, k2, s, dressed)
    total = (
        contracted(k1, k2, k, s, (1.0, 0.0, 0.0, 0.0), photons)
        + contracted(k1, k2, k, s, (0.0, 1.0, 0.0, 0.0), photons)
        + contracted(k1, k2, k, s, (0.0, 0.0, 1.0, 0.0), photons)
        - contracted(k1, k2, k, s, (0.0, 0.0, 0.0, 1.0), photons)
    )
    return (4 * pi * ALPHA) ** 3 * total
