"""Tau pairs: decays, spin correlations, and Pythia 8 as an independent witness."""

import numpy as np
import pytest

from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.recoil import MuonPair, momenta, recoil, reference_features
from simulation.couplings import TAU_MASS_GEV
from simulation.frames import lab_matrix
from simulation.taudecay import decay
from simulation.taupair import spin_correlation, tau_pairs, visible_pair


def test_polarised_muon_decay_has_the_michel_spectrum():
    """dN/dx dcos = x^2 [(3 - 2x) + P cos (1 - 2x)] for tau- with spin along z, m_mu -> 0.

    The weight of spin up is 1 + h_z.
    """
    rng = np.random.default_rng(1)
    sample = [decay(rng, False, 1.0) for _ in range(60_000)]
    p, h = (np.array([s[i] for s in sample]) for i in (0, 1))
    x = 2 * p[:, 3] / TAU_MASS_GEV
    c = p[:, 2] / np.linalg.norm(p[:, :3], axis=1)
    weight = 1 + h[:, 2]
    n = np.sqrt(len(x))
    # PDG, muon decay parameters, rho = 3/4, mass kept: E = W y, W = (m^2 + m_mu^2) / 2m
    top = (TAU_MASS_GEV**2 + MUON_MASS_GEV**2) / (2 * TAU_MASS_GEV)
    y0 = MUON_MASS_GEV / top
    y = np.linspace(y0, 1, 20_001)
    density = np.sqrt(y**2 - y0**2) * (y * (1 - y) + (4 * y**2 - 3 * y - y0**2) / 6)
    mean = top * np.average(y, weights=density)
    assert p[:, 3].mean() == pytest.approx(mean, abs=4 * p[:, 3].std() / n)
    # <c> = integral of x^2 (1 - 2x)/3 over integral of x^2 (3 - 2x) = -1/9
    assert (weight * c).mean() == pytest.approx(-1 / 9, abs=4 / n)
    hard = x > 0.8
    up = np.mean(weight[hard] * c[hard]) / np.mean(weight[hard])
    y = np.linspace(0.8, 1, 1001)
    assert up == pytest.approx(
        np.mean(y**2 * (1 - 2 * y)) / 3 / np.mean(y**2 * (3 - 2 * y)), abs=8 / n
    )


def test_pion_follows_the_spin_of_the_tau_minus_and_opposes_that_of_the_tau_plus():
    rng = np.random.default_rng(2)
    for sign in (1.0, -1.0):
        p, h = decay(rng, True, sign)
        assert np.array(p[:3]) @ np.array(h) == pytest.approx(sign * np.linalg.norm(p[:3]))


def test_spin_correlation_at_threshold_is_that_of_a_spin_one_state_along_the_beam():
    """At rest both spins point along the beam: <.> = (b.h-)(b.h+), b the e- direction."""
    rng = np.random.default_rng(3)
    for c in (-0.7, 0.1, 0.9):
        h = rng.normal(size=(2, 3))
        beam = np.array([np.sqrt(1 - c * c), 0, c])
        assert spin_correlation(c, 1.0, tuple(h[0]), tuple(h[1])) == pytest.approx(
            (beam @ h[0]) * (beam @ h[1])
        )


def test_spin_weight_is_never_negative():
    rng = np.random.default_rng(4)
    for _ in range(2000):
        h = rng.normal(size=(2, 3))
        h /= np.linalg.norm(h, axis=1)[:, None]
        value = spin_correlation(rng.uniform(-1, 1), rng.uniform(1, 4), tuple(h[0]), tuple(h[1]))
        assert -1 - 1e-12 < value < 1 + 1e-12


def observables(plus, minus):
    """The four features and M2_rec, (5, n), from momenta (n, 4) in the CM frame."""
    to_lab = lab_matrix(SUPERKEKB)
    pair = MuonPair(momenta(*to_lab @ plus.T), momenta(*to_lab @ minus.T))
    features = reference_features(pair, SUPERKEKB)
    return np.vstack([features.T, recoil(pair, SUPERKEKB).mass2])


def ours(*, pions, spins, n=40_000):
    rng = np.random.default_rng(5)
    s = SUPERKEKB.sqrt_s_gev**2
    pairs = np.array([visible_pair(rng, s, pions, pions, spins) for _ in range(n)])
    return observables(pairs[:, 0], pairs[:, 1])


def pythia(*, pions, n):
    """The same from Pythia 8: spin-correlated decays, no radiation; about 250 events/s."""
    pythia8 = pytest.importorskip("pythia8mc")
    generator = pythia8.Pythia("", False)
    for setting in (
        "Print:quiet = on",
        "Beams:idA = 11",
        "Beams:idB = -11",
        f"Beams:eCM = {SUPERKEKB.sqrt_s_gev}",
        "PDF:lepton = off",
        "WeakSingleBoson:ffbar2gmZ = on",
        "WeakZ0:gmZmode = 1",
        "23:onMode = off",
        "23:onIfAny = 15",
        "23:mMin = 5",
        "PhaseSpace:mHatMin = 5",
        "15:onMode = off",
        "15:onIfMatch = 16 211" if pions else "15:onIfAll = 13 14 16",
        "PartonLevel:ISR = off",
        "PartonLevel:FSR = off",
        "PartonLevel:MPI = off",
        "211:mayDecay = off",
        "Random:setSeed = on",
        "Random:seed = 7",
    ):
        assert generator.readString(setting), setting
    assert generator.init()
    minus = -211 if pions else 13  # Pythia's codes of the negative particle
    found = np.zeros((n, 2, 4))
    for i in range(n):
        assert generator.next()
        for p in generator.event:
            if p.isFinal() and abs(p.id()) == abs(minus):
                found[i, int(p.id() == minus)] = p.px(), p.py(), p.pz(), p.e()
    return observables(found[:, 0], found[:, 1])


def chi2_per_ndf(sample, reference, n_bins=20):
    """Shape of a small sample against a large one, in bins of equal content."""
    edges = np.quantile(reference, np.linspace(0, 1, n_bins + 1))
    edges[[0, -1]] = -np.inf, np.inf
    found, _ = np.histogram(sample, edges)
    expected, _ = np.histogram(reference, edges)
    scale = len(sample) / len(reference)
    return ((found - scale * expected) ** 2 / (scale * expected * (1 + scale))).sum() / (n_bins - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("pions", "n"), [(False, 2_500), (True, 1_500)])
def test_features_agree_with_pythia_only_with_spin_correlations(pions, n):
    """Muons share the tau's spin with two neutrinos; pions show it all, so they test it best."""
    witness = pythia(pions=pions, n=n)
    found = {
        spins: [
            chi2_per_ndf(a, b) for a, b in zip(witness, ours(pions=pions, spins=spins), strict=True)
        ]
        for spins in (True, False)
    }
    assert max(found[True]) < 1.8, found  # 19 degrees of freedom: one sigma is 0.32
    if pions:
        assert max(found[False]) > 3, found


def test_visible_mass_never_exceeds_the_tau_energy_and_momenta_are_on_shell():
    pairs = tau_pairs(np.random.default_rng(6), sqrt_s_gev=np.full(5000, 10.58), isr=True, fsr=True)
    muons = ~pairs.pion.any(axis=1)
    p = pairs.momenta[muons, 0]
    assert p[:, 3] ** 2 - (p[:, :3] ** 2).sum(1) == pytest.approx(MUON_MASS_GEV**2, abs=1e-9)
    assert pairs.momenta[..., 3].sum(axis=1).max() < 10.58
