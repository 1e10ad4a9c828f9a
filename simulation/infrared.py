"""Photons too soft to be drawn: what all of them below an energy do to a rate, real and virtual.

    b_ij   = -s_i s_j (2 alpha/pi) I_ij,      I_ij = ln((1 + v) p_i.p_j / (m_i m_j)) / v
    b_e    = (2 alpha/pi) (I_e - 1),   b_mu likewise,   b_int = sum of b_ij, electron with muon
    factor = (w/E)^b_e (w/sqrt(E1 E2))^b_mu (their geometric mean)^b_int
             (1 + 3 (b_e + b_mu) / 4 + (2 alpha/pi) (pi^2/3 - 1/2))

w: the energy in the centre of mass, E: a beam, E1, E2: the muons, v: relative velocity of i and j,
s = 1 for mu- and e+, -1 for mu+ and e-. (b_e + b_mu + b_int) / w is the eikonal spectrum of soft
photons, integrated over their direction: I_ij does not depend on the frame. So d(factor)/dw
is the rate with one more photon of energy w and all others softer, and a cut-off between drawn and
soft photons drops out. With muons left out, it is the soft part of simulation.radiation's H(z).
After Yennie, Frautschi and Suura, Ann. Phys. 13 (1961) 379; non-logarithmic terms of the virtual
photons between electrons and muons (alpha/pi) are left out.
"""

from __future__ import annotations

from math import log, pi, sqrt

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from selection.compiled import inner
from simulation.couplings import ALPHA
from simulation.spinors import Vector


@inner()
def dipole(product: float, masses: float) -> float:
    """I_ij of p_i.p_j and m_i m_j."""
    v = sqrt(max(0.0, 1 - (masses / product) ** 2))
    return log((1 + v) * product / masses) / v if v > 1e-6 else 1.0


@inner()
def exponents(k1: Vector, k2: Vector, sqrt_s: float) -> tuple[float, float, float]:
    """(b_e, b_mu, b_int); k1: mu-, k2: mu+, rest frame of the beams, which lie along z."""
    me, m, e = ELECTRON_MASS_GEV, MUON_MASS_GEV, 0.5 * sqrt_s
    p = sqrt(e * e - me * me)
    pair = k1[3] * k2[3] - k1[0] * k2[0] - k1[1] * k2[1] - k1[2] * k2[2]
    cross = (
        dipole(e * k1[3] - p * k1[2], me * m)
        + dipole(e * k2[3] + p * k2[2], me * m)
        - dipole(e * k2[3] - p * k2[2], me * m)
        - dipole(e * k1[3] + p * k1[2], me * m)
    )
    unit = 2 * ALPHA / pi
    return (
        unit * (dipole(e * e + p * p, me * me) - 1),
        unit * (dipole(pair, m * m) - 1),
        unit * cross,
    )


@inner()
def soft_factor(k1: Vector, k2: Vector, sqrt_s: float, w: float) -> float:
    """Rate with all photons below w [GeV] over the rate at tree level."""
    b_e, b_mu, b_int = exponents(k1, k2, sqrt_s)
    beam = min(1.0, 2 * w / sqrt_s)
    muon = min(1.0, w / sqrt(k1[3] * k2[3]))
    virtual = 1 + 0.75 * (b_e + b_mu) + 2 * ALPHA / pi * (pi**2 / 3 - 0.5)
    return virtual * beam ** (b_e + 0.5 * b_int) * muon ** (b_mu + 0.5 * b_int)
