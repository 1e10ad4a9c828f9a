"""tau -> rho nu: kinematics, spectrum and the polarimeter; fakes of all channels."""

import numpy as np
import pytest

from simulation import detector
from simulation.couplings import PION_MASS_GEV, TAU_MASS_GEV
from simulation.taudecay import (
    MUON,
    NEUTRAL_PION_MASS_GEV,
    RHO,
    rho_decay,
    rho_spectrum,
)
from simulation.taupair import BRANCHING, tau_pairs, visible_pair


def decays(n, sign=1.0, seed=1):
    rng = np.random.default_rng(seed)
    found = [rho_decay(rng, sign) for _ in range(n)]
    charged, polarimeter, photons = (np.array([f[i] for f in found]) for i in range(3))
    return charged, polarimeter, photons


def mass2(p):
    return p[..., 3] ** 2 - (p[..., :3] ** 2).sum(-1)


def test_rho_decay_is_on_shell_with_a_massless_neutrino():
    charged, _, photons = decays(2_000)
    neutral = photons.sum(axis=1)
    assert mass2(charged) == pytest.approx(PION_MASS_GEV**2, abs=1e-9)
    assert mass2(photons) == pytest.approx(0, abs=1e-9)
    assert mass2(neutral) == pytest.approx(NEUTRAL_PION_MASS_GEV**2, abs=1e-9)
    neutrino = np.array([0, 0, 0, TAU_MASS_GEV]) - charged - neutral
    assert mass2(neutrino) == pytest.approx(0, abs=1e-9)


def test_rho_masses_follow_the_spectrum():
    charged, _, photons = decays(20_000)
    q2 = mass2(charged + photons.sum(axis=1))
    grid = np.linspace((PION_MASS_GEV + NEUTRAL_PION_MASS_GEV) ** 2, TAU_MASS_GEV**2, 100_001)[1:-1]
    density = rho_spectrum(grid)
    for low, high in ((0, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 4)):
        expected = density[(grid > low) & (grid < high)].sum() / density.sum()
        share = np.mean((q2 > low) & (q2 < high))
        assert share == pytest.approx(expected, abs=4 * np.sqrt(expected / len(q2)))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_polarimeter_of_a_rho_has_length_one_and_its_known_mean_along_the_rho(sign):
    """A tau- sends a rho of mass Q along its spin with the asymmetry (m^2 - 2Q^2)/(m^2 + 2Q^2)."""
    charged, h, photons = decays(20_000, sign)
    rho = charged + photons.sum(axis=1)
    assert np.linalg.norm(h, axis=1) == pytest.approx(1)
    along = (h * rho[:, :3]).sum(1) / np.linalg.norm(rho[:, :3], axis=1)
    q2, m2 = mass2(rho), TAU_MASS_GEV**2
    expected = sign * (m2 - 2 * q2) / (m2 + 2 * q2)
    difference = along - expected
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(q2))
    heavy = q2 > 0.8
    assert abs(difference[heavy].mean()) < 4 * difference[heavy].std() / np.sqrt(heavy.sum())


def test_pions_of_the_rho_follow_the_matrix_element():
    """Helicity angle: m^2 cos^2 + Q^2 sin^2, so <cos^2> = (3m^2 + 2Q^2) / (5m^2 + 10Q^2)."""
    charged, _, photons = decays(20_000)
    rho = charged + photons.sum(axis=1)
    # cos from the energy of the pion in the tau's frame: E = (e + v p cos) gamma
    q2 = mass2(rho)
    root = np.sqrt(q2)
    e = (q2 + PION_MASS_GEV**2 - NEUTRAL_PION_MASS_GEV**2) / (2 * root)
    p = np.sqrt(e**2 - PION_MASS_GEV**2)
    velocity = np.linalg.norm(rho[:, :3], axis=1) / rho[:, 3]
    cosine = (charged[:, 3] * root / rho[:, 3] - e) / (velocity * p)
    expected = (3 * TAU_MASS_GEV**2 + 2 * q2) / (5 * TAU_MASS_GEV**2 + 10 * q2)
    difference = cosine**2 - expected
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(q2))


def test_decays_come_with_their_branching_fractions():
    pairs = tau_pairs(
        np.random.default_rng(2), sqrt_s_gev=np.full(100_000, 10.58), isr=False, fsr=False
    )
    sigma = pairs.cross_section_fb.mean()
    for a in range(3):
        for b in range(3):
            w = pairs.weight_fb * ((pairs.mode[:, 0] == a) & (pairs.mode[:, 1] == b))
            error = w.std() / np.sqrt(len(w))
            assert w.mean() == pytest.approx(sigma * BRANCHING[a] * BRANCHING[b], abs=4 * error)


def test_only_a_rho_has_photons_and_they_belong_to_its_side():
    pairs = tau_pairs(
        np.random.default_rng(3), sqrt_s_gev=np.full(3_000, 10.58), isr=False, fsr=False
    )
    energy = pairs.momenta[:, 3:, 3].reshape(-1, 2, 2)  # of tau+, of tau-
    assert np.array_equal((energy > 0).all(axis=2), pairs.mode == RHO)
    rho = pairs.momenta[:, :2] + pairs.momenta[:, 3:].reshape(-1, 2, 2, 4).sum(axis=2)
    assert np.sqrt(mass2(rho)[pairs.mode == RHO]).max() < TAU_MASS_GEV
    assert not pairs.pion[pairs.mode == MUON].any()


def test_spins_correlate_rhos_like_pions():
    """The taus have opposite helicities, so the spectra of both decays are hard or soft together."""
    rng, n = np.random.default_rng(4), 12_000

    def correlation(spins):
        x = np.array([visible_pair(rng, 10.58**2, RHO, RHO, spins) for _ in range(n)])
        plus = x[:, 0, 3] + x[:, 2:4, 3].sum(1)
        minus = x[:, 1, 3] + x[:, 4:, 3].sum(1)
        return np.corrcoef(plus, minus)[0, 1]

    assert abs(correlation(False)) < 3.5 / np.sqrt(n)
    assert correlation(True) > 4 / np.sqrt(n)


def test_a_pion_is_never_identified_where_no_muon_is():
    for p in (0.1, 0.2, 0.3, 0.4, 0.6, 1.0, 3.0):
        muon, pion = (detector.taken_for_muon(p, 1.0, is_pion) for is_pion in (False, True))
        assert pion < 0.35 * muon
