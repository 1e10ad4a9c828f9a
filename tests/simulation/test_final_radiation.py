"""Radiation off muons: against the exact amplitude, a measured branching fraction, and limits."""

import numba
import numpy as np
import pytest
from scipy.integrate import quad

from selection.beams import MUON_MASS_GEV, SUPERKEKB
from simulation import signal
from simulation.couplings import ALPHA, FB_GEV2
from simulation.final_radiation import (
    decay_exponent,
    muon_radiates,
    pair_exponent,
    pair_radiates,
)
from simulation.recipe import Recipe
from simulation.samples import simulate
from simulation.taudecay import decay

ROOT, M = 10.58, MUON_MASS_GEV


@numba.njit
def pairs(rng, n, energy, boost):
    """Muons (n, 3, 4) of a pair that moves along z, after radiation: -, +, photon."""
    out = np.empty((n, 3, 4))
    p = np.sqrt(energy**2 - M**2)
    gamma = np.sqrt(1 + boost**2)
    for i in range(n):
        k1 = (p, 0.0, boost * energy, gamma * energy)
        k2 = (-p, 0.0, boost * energy, gamma * energy)
        a, b, c = pair_radiates(rng, k1, k2)
        out[i, 0], out[i, 1], out[i, 2] = a, b, c
    return out


@numba.njit
def light_vectors(rng, n, s, mass):
    """(weight, E1, E2) of mu mu and a light vector: with g' = e the photon of QED."""
    out = np.empty((n, 3))
    for i in range(n):
        w, k1, k2 = signal.point(rng, s, mass)
        out[i, 0], out[i, 1], out[i, 2] = w, k1[3], k2[3]
    return out


@numba.njit
def tau_decays(rng, n):
    """Photon energies in the rest frame of the tau."""
    out = np.empty(n)
    for i in range(n):
        p, _ = decay(rng, False, 1.0)
        _, k = muon_radiates(rng, p)
        out[i] = k[3]
    return out


def test_a_pair_that_radiates_keeps_its_momentum_and_its_muons_their_mass():
    p = pairs(np.random.default_rng(1), 20_000, 3.0, 0.4)
    expected = [0, 0, 2 * 0.4 * 3.0, 2 * np.sqrt(1.16) * 3.0]
    assert p.sum(axis=1) == pytest.approx(np.tile(expected, (len(p), 1)), abs=1e-9)
    mass2 = p[..., 3] ** 2 - (p[..., :3] ** 2).sum(-1)
    assert mass2 == pytest.approx(np.tile([M**2, M**2, 0], (len(p), 1)), abs=1e-9)


def test_hard_photons_are_those_of_the_exact_amplitude():
    """Rate and angles of photons above 0.3 of the muon energy, gamma* -> mu mu gamma to order alpha.

    x1, x2 give both: 2 - x1 - x2 = z, x1 - x2 = z c v. What is beyond order alpha in z^b (1 + 3b/4)
    is 2 % or less there.
    """
    exact = light_vectors(np.random.default_rng(2), 400_000, ROOT**2, 1e-3)
    x = 2 * exact[:, 1:] / ROOT
    coupling = 4 * np.pi * ALPHA / signal.G_PRIME**2
    born = FB_GEV2 * 4 * np.pi * ALPHA**2 / (3 * ROOT**2)
    weight = exact[:, 0] * coupling / born / len(x)

    p = pairs(np.random.default_rng(3), 1_000_000, ROOT / 2, 0.0)
    y = 2 * p[:, :2, 3] / ROOT
    for low, high in ((0.3, 0.6), (0.6, 0.95)):
        for wide in (False, True):  # all, or away from both muons

            def inside(x, low=low, high=high, wide=wide):
                z = 2 - x.sum(axis=1)
                apart = np.abs(x[:, 0] - x[:, 1]) < (0.9 if wide else 2.0) * z
                return (z > low) & (z < high) & apart

            rate, found = weight[inside(x)].sum(), inside(y).mean()
            errors = np.hypot(np.sqrt((weight[inside(x)] ** 2).sum()), np.sqrt(found / len(y)))
            assert errors < 0.03 * rate
            assert found == pytest.approx(rate, abs=3 * errors + 0.03 * rate)


def test_soft_photons_are_as_many_as_the_eikonal_says():
    p = pairs(np.random.default_rng(4), 300_000, ROOT / 2, 0.0)
    z = 2 * p[:, 2, 3] / ROOT
    b = 2 * ALPHA / np.pi * (np.log(ROOT**2 / M**2) - 1)
    assert pair_exponent(ROOT**2) == pytest.approx(b, rel=1e-3)
    expected = b * np.log(10)  # times z^b (1 + 3b/4)
    found = np.mean((z > 1e-3) & (z < 1e-2))
    assert found / (10**-2.5) ** b / (1 + 0.75 * b) == pytest.approx(expected, rel=0.03)


def test_exponent_of_a_decay_is_the_eikonal_of_a_muon_and_something_at_rest():
    for v in (0.5, 0.9, 0.999):
        integral, _ = quad(lambda c, v=v: v * v * (1 - c * c) / (1 - v * c) ** 2, -1, 1)
        assert decay_exponent(v) == pytest.approx(ALPHA / (2 * np.pi) * integral, rel=1e-6)


def test_tau_decays_radiate_as_often_as_measured():
    """BR(tau -> mu nu nu gamma, E > 10 MeV) / BR(tau -> mu nu nu) = 3.67e-3 / 0.1739, PDG 2024."""
    energy = tau_decays(np.random.default_rng(5), 300_000)
    assert np.mean(energy > 0.010) == pytest.approx(0.0211, rel=0.06)


@pytest.mark.parametrize("mass", [0.5, 4.0])
def test_radiation_off_the_muons_moves_signal_out_of_its_window_and_leaves_its_rate(mass):
    """An independent estimate: 6 to 11 % of the events within two published widths."""
    sigma = {0.5: 0.262, 4.0: 0.262}[mass]  # arXiv:2110.00810
    share, rate = [], []
    for fsr in (True, False):
        sample = simulate(Recipe("signal", 60_000, 1, mass_gev=mass, fsr=fsr))
        p = np.array(SUPERKEKB.total) - sample.rows.seen.sum(axis=1)
        mass2 = p[:, 3] ** 2 - (p[:, :3] ** 2).sum(1)
        clean = sample.rows.extra_energy < 0.4
        share.append(np.sum(clean & (np.abs(mass2 - mass**2) < 2 * sigma)))
        rate.append((sample.cross_section_fb, sample.cross_section_error_fb))
    error = 1.5 * np.sqrt(1 / share[0] + 1 / share[1])
    assert 0.89 - error < share[0] / share[1] < 0.94 + error
    assert error < 0.025
    assert abs(rate[0][0] - rate[1][0]) < 4 * np.hypot(rate[0][1], rate[1][1])
