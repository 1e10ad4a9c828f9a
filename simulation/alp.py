"""e+ e- -> gamma a, a -> gamma gamma: an axion-like particle that couples to photons alone.

    L        = -(g/4) a F F_dual
    sigma    = (g^2 alpha / 24) (1 - m_a^2 / s)^3        Dolan et al., arXiv:1709.00009
    dsigma/dcos ~ 1 + cos^2                              of the photon to the beams
    a -> gamma gamma isotropic;   E = (s - m_a^2) / (2 sqrt_s) of the recoil photon

sigma goes as g^2 exactly; the samples are made for g = 1e-3 / GeV, 118 fb at small masses. The
width g^2 m^3 / (64 pi) is then below 1e-5 GeV and the flight from 0.2 GeV on below 1 mm: no effect.
Radiation off the beams goes along s' = s (1 - z) (simulation.radiation), up to s' = m_a^2. Not
modelled: photon fusion e+ e- -> e+ e- a.
"""

from __future__ import annotations

from math import pi, sqrt

import numba
import numpy as np
import numpy.typing as npt

from selection.compiled import inner
from simulation.couplings import ALPHA, FB_GEV2
from simulation.frames import boost, isotropic, polar, put
from simulation.radiation import photon, radiated_share, recoil_velocity

G_INV_GEV = 1e-3
FloatArray = npt.NDArray[np.float64]


@inner()
def cross_section_fb(s: float, mass: float) -> float:
    """sigma at g = 1e-3 / GeV without radiation [fb]."""
    return FB_GEV2 * G_INV_GEV**2 * ALPHA / 24 * (1 - mass * mass / s) ** 3


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _fill(  # type: ignore[no-untyped-def]
    rng: np.random.Generator, sqrt_s: FloatArray, mass: float, isr: bool, out: FloatArray
):
    weight = np.zeros(len(sqrt_s))
    for i in range(len(sqrt_s)):
        s = sqrt_s[i] ** 2
        z, h = radiated_share(rng, s, 1 - mass * mass / s, isr)
        reduced = s * (1 - z)
        if reduced <= mass * mass:
            continue
        c, phi = isotropic(rng)
        weight[i] = h * cross_section_fb(reduced, mass) * 0.75 * (1 + c * c)
        root = sqrt(reduced)
        e = (reduced - mass * mass) / (2 * root)
        x, y, w = polar(e, c, phi)
        flight = (-x / (root - e), -y / (root - e), -w / (root - e))
        c, phi = isotropic(rng)
        one, other = polar(0.5 * mass, c, phi), polar(0.5 * mass, -c, phi + pi)
        gamma = photon(rng, z, s)
        velocity = recoil_velocity(gamma, sqrt_s[i])
        put(out[i, 0], boost((x, y, w, e), velocity))
        put(out[i, 1], boost(boost((one[0], one[1], one[2], 0.5 * mass), flight), velocity))
        put(out[i, 2], boost(boost((other[0], other[1], other[2], 0.5 * mass), flight), velocity))
        put(out[i, 3], gamma)
    return weight


def alp_draws(
    rng: np.random.Generator, *, mass_gev: float, sqrt_s_gev: FloatArray, isr: bool
) -> tuple[FloatArray, FloatArray]:
    """Momenta (n, 4, 4) in the CM frame, and weight [fb] (n,): its mean is sigma at g = 1e-3 / GeV.

    Photons: the recoil, two of the ALP, one radiated off the beams.
    """
    momenta = np.zeros((len(sqrt_s_gev), 4, 4))
    weight = _fill(rng, sqrt_s_gev, mass_gev, isr, momenta)
    return momenta, weight
