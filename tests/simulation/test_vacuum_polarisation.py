"""The running of alpha: limits of the loop, published values, and what it does to the rates."""

from math import log, pi

import numpy as np
import pytest

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV, SUPERKEKB, cm_matrix
from simulation import mumugamma, mumugammagamma
from simulation.couplings import ALPHA, TAU_MASS_GEV
from simulation.lost_photons import N_KINDS, STRATA, lost_photon_draws
from simulation.vacuum_polarisation import of_hadrons, of_lepton, running
from tests.simulation.test_amplitudes import boosted, dot, tup

S = 111.9
LEPTONS = (ELECTRON_MASS_GEV, MUON_MASS_GEV, TAU_MASS_GEV)


@pytest.mark.parametrize("m", LEPTONS)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_heavy_lepton_decouples_as_uehling_and_a_light_one_grows_with_the_logarithm(m, sign):
    for x in (1e-4, 9e-3, 1.1e-2):  # in both ways of writing it
        q2 = sign * x * m**2
        assert of_lepton(q2, m) == pytest.approx(-ALPHA / (15 * pi) * sign * x, rel=0.002)
    q2 = sign * 1e6 * m**2
    assert of_lepton(q2, m) == pytest.approx(ALPHA / (3 * pi) * (log(1e6) - 5 / 3), rel=1e-5)


def test_the_loop_obeys_its_dispersion_relation():
    """D(q2) = (alpha q2 / 3 pi) int ds R(s) / (s (q2 - s)), R = (1 + 2 m^2/s) sqrt(1 - 4 m^2/s)."""
    m = MUON_MASS_GEV
    u = (np.arange(200_000) + 0.5) / 200_000  # sqrt(1 - 4 m^2/s)
    s = 4 * m**2 / (1 - u**2)
    r = (1 + 2 * m**2 / s) * u * 2 * u / (1 - u**2)  # R ds/s
    for q2 in (-3.0, -0.02, 0.03):
        expected = ALPHA * q2 / (3 * pi) * np.mean(r / (q2 - s))
        assert of_lepton(q2, m) == pytest.approx(expected, rel=1e-4)


def test_leptons_at_the_z_are_the_published_one_loop():
    """314.19e-4: M. Steinhauser, Phys. Lett. B429 (1998) 158."""
    assert sum(of_lepton(91.187**2, m) for m in LEPTONS) == pytest.approx(314.19e-4, rel=1e-4)


def test_hadrons_have_their_published_size_at_the_z_and_space_like():
    """0.0277 at the Z (Particle Data Group), 0.00716 at -5 GeV^2 (lattice, arXiv:2203.08676)."""
    assert of_hadrons(91.19**2) == pytest.approx(0.0277, rel=0.04)
    assert of_hadrons(-5.0) == pytest.approx(0.00716, rel=0.03)
    for edge in (0.09, 9.0):
        assert of_hadrons(edge * 0.9999) == pytest.approx(of_hadrons(edge * 1.0001), rel=0.003)


def test_alpha_runs_to_its_values_at_10_gev_and_at_the_z():
    assert 1 / (ALPHA * running(91.19**2)) == pytest.approx(128.9, abs=0.3)
    assert 1 - 1 / running(10.58**2) == pytest.approx(0.0365, abs=0.001)
    assert running(-1e-12) == pytest.approx(1, abs=1e-8)


def with_photons(*photons):
    """Two muons across the beams that balance photons, all as tuples."""
    pair = np.array([0, 0, 0, np.sqrt(S)]) - sum(photons)
    rest = boosted(pair, -pair[:3] / pair[3])
    p = np.sqrt(rest[3] ** 2 / 4 - MUON_MASS_GEV**2)
    muons = [np.array([sign * p * 0.8, sign * p * 0.6, 0, rest[3] / 2]) for sign in (1, -1)]
    return tup(*(boosted(k, pair[:3] / pair[3]) for k in muons), *photons), dot(pair, pair)


def along(energy, angle):
    return energy * np.array([np.sin(angle), 0, np.cos(angle), 1])


def gain(module, k):
    return module.squared_amplitude(*k, S, True) / module.squared_amplitude(*k, S, False)


def test_photons_of_the_beams_leave_the_virtual_one_with_the_mass_of_the_pair():
    one, pair = with_photons(along(3.0, 1e-3))
    assert gain(mumugamma, one) == pytest.approx(running(pair) ** 2, rel=1e-4)
    two, pair = with_photons(along(3.0, 1e-3), along(2.0, np.pi - 1e-3))
    assert gain(mumugammagamma, two) == pytest.approx(running(pair) ** 2, rel=1e-4)


def test_photons_of_the_muons_leave_the_virtual_one_with_all_the_energy():
    """Along a muon of 4 GeV, whose mass is 1.4 % of its energy: radiation off the beams is small."""
    direction = np.array([0.8, 0.6, 0.0])
    one = 1.0 * np.array([*direction, 1])
    k, _ = with_photons(one)
    assert gain(mumugamma, k) == pytest.approx(running(S) ** 2, rel=1e-3)
    k, _ = with_photons(one, 0.5 * np.array([*-direction, 1]))
    assert gain(mumugammagamma, k) == pytest.approx(running(S) ** 2, rel=1e-3)


def test_lost_photons_gain_what_the_photons_of_their_diagrams_gain():
    """One photon in the barrel: between the running at M_mumu and at 10.58 GeV, both squared."""
    x = np.random.default_rng(3).random((3000, 8))
    energy = np.full(len(x), 10.58)
    stratum = 3 * N_KINDS
    assert stratum < STRATA.n_strata
    dressed, bare = (
        lost_photon_draws(
            x, stratum=stratum, sqrt_s_gev=energy, isr=True, to_cm=cm_matrix(SUPERKEKB), dressed=d
        )[1].sum()
        for d in (True, False)
    )
    assert running(1.0) ** 2 < dressed / bare < running(10.58**2) ** 2
