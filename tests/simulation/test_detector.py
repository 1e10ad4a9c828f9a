"""The detector: widths of the recoil against Belle II's, efficiencies, what is lost and why."""

import numpy as np
import pytest
from numpy.random import default_rng

from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.resolution import fit_width
from simulation import detector
from simulation.frames import lab_matrix
from simulation.recipe import Recipe
from simulation.samples import simulate

# sigma(M2_rec) [GeV^2] published with the Punzi-loss paper (arXiv:2110.00810), mass [GeV]
PUBLISHED = {
    0.1: 0.234, 0.3: 0.243, 0.6: 0.288, 1.1: 0.296, 1.6: 0.312, 2.1: 0.305, 2.6: 0.289, 3.1: 0.268,
    3.6: 0.292, 4.1: 0.271, 4.6: 0.241, 5.1: 0.234, 5.6: 0.222, 6.1: 0.194, 6.6: 0.164, 7.1: 0.144,
    7.6: 0.105, 7.8: 0.108, 8.1: 0.0972, 8.4: 0.0845, 8.6: 0.0658, 8.7: 0.0634, 8.9: 0.0669,
}  # fmt: skip


def recoil_mass2(rows):
    p = np.array(SUPERKEKB.total) - rows.seen.sum(axis=1)
    return p[:, 3] ** 2 - (p[:, :3] ** 2).sum(axis=1)


def test_recoil_width_is_within_a_fifth_of_belle_2_at_every_mass():
    ratio = {}
    for mass, published in PUBLISHED.items():
        n = 100_000 if mass < 0.5 else 20_000  # 1.3 % where the ratio is 1.17, else 1.5-4 %
        rows = simulate(Recipe("signal", n, 1, mass_gev=mass)).rows
        fit = fit_width(
            mass, recoil_mass2(rows)[rows.extra_energy < 0.4], squared=True, min_events=100
        )
        assert not fit.reason, fit
        ratio[mass] = fit.sigma / published
    assert {m: r for m, r in ratio.items() if not 0.8 < r < 1.2} == {}


def test_recoil_of_the_true_muons_without_radiation_is_the_signal_mass():
    recipe = Recipe("signal", 2_000, 1, mass_gev=3.0, isr=False, fsr=False, sqrt_s_spread_gev=0.0)
    p = np.array(SUPERKEKB.total) - simulate(recipe).rows.true.sum(axis=1)
    assert p[:, 3] ** 2 - (p[:, :3] ** 2).sum(axis=1) == pytest.approx(9.0, abs=1e-9)


def test_spread_of_the_collision_energy_shifts_the_recoil_by_twice_its_energy():
    recipe = Recipe(
        "signal", 20_000, 1, mass_gev=8.0, isr=False, fsr=False, sqrt_s_spread_gev=0.005
    )
    rows = simulate(recipe).rows
    p = np.array(SUPERKEKB.total) - rows.true.sum(axis=1)
    mass2 = p[:, 3] ** 2 - (p[:, :3] ** 2).sum(axis=1)
    energy = 8.0**2 / (2 * 10.58) + 10.58 / 2  # of the recoil in the CM frame, M_mumu -> 0
    assert mass2.std() == pytest.approx(2 * energy * 0.005, rel=0.05)


@pytest.mark.parametrize(
    ("energy", "degrees", "missed"),
    [
        (1.0, 60, 1e-3),
        (1.0, 20, 5e-3),
        (1.0, 140, 5e-3),
        (1.0, 90.3, 3e-2),
        (1.0, 31.8, 1.0),
        (1.0, 129.5, 1.0),
        (1.0, 5, 1.0),
        (1.0, 170, 1.0),
        (0.09, 60, 1.0),
    ],
)
def test_photons_are_missed_as_the_calorimeter_is_built(energy, degrees, missed):
    assert detector.photon_missed(energy, np.radians(degrees)) == missed


def test_muon_identification_at_its_turn_on_is_half_the_plateau():
    assert detector.taken_for_muon(0.40, 1.0, False) == pytest.approx(0.99 * 0.43)
    assert detector.taken_for_muon(5.0, 1.0, False) == pytest.approx(0.99 * 0.86)
    assert detector.taken_for_muon(5.0, 0.2, False) == 0
    assert detector.taken_for_muon(5.0, 1.0, True) == pytest.approx(0.99 * 0.04)


def pairs(rng, n):
    """Two muons of 1-4 GeV and a photon of 0.3-3 GeV, all isotropic in the CM frame."""
    out = np.zeros((n, 3, 4))
    for i, (low, high, m) in enumerate(
        ((1, 4, MUON_MASS_GEV), (1, 4, MUON_MASS_GEV), (0.3, 3, 0.0))
    ):
        p, v = rng.uniform(low, high, n), rng.normal(size=(n, 3))
        out[:, i, :3] = v / np.linalg.norm(v, axis=1)[:, None] * p[:, None]
        out[:, i, 3] = np.sqrt(p**2 + m**2)
    return out


def test_weights_and_hit_or_miss_expect_the_same_events():
    """Efficiencies in the weight or by lot, photons seen or lost: one expectation."""
    momenta = pairs(default_rng(1), 300_000)
    one = np.ones(len(momenta))
    lot = detector.reconstruct(default_rng(2), momenta, one, beams=SUPERKEKB, hit_or_miss=True)
    by = detector.reconstruct(default_rng(3), momenta, one, beams=SUPERKEKB, hit_or_miss=False)
    assert len(lot) > 5_000
    assert by.weight.sum() == pytest.approx(len(lot), abs=4 * np.sqrt(len(lot)))
    assert by.weight[by.extra_energy == 0].sum() == pytest.approx(
        (lot.extra_energy == 0).sum(), abs=4 * np.sqrt((lot.extra_energy == 0).sum())
    )


def test_nan_angle_means_exactly_that_no_photon_was_seen():
    momenta = pairs(default_rng(4), 100_000)
    rows = detector.reconstruct(
        default_rng(5), momenta, np.ones(len(momenta)), beams=SUPERKEKB, hit_or_miss=True
    )
    assert np.array_equal(np.isnan(rows.photon_recoil_angle), rows.extra_energy == 0)
    assert (rows.extra_energy > 0).any()
    seen = rows.extra_energy > 0
    k = momenta[rows.entry[seen], 2] @ lab_matrix(SUPERKEKB).T
    recoil = (np.array(SUPERKEKB.total) - rows.seen[seen].sum(axis=1))[:, :3]
    cosine = (k[:, :3] * recoil).sum(1) / k[:, 3] / np.linalg.norm(recoil, axis=1)
    assert np.cos(rows.photon_recoil_angle[seen]) == pytest.approx(cosine)


def test_rows_pass_the_loose_preselection_as_documented():
    rows = simulate(Recipe("taupair", 60_000, 1)).rows
    theta, light = np.degrees(rows.recoil_theta), recoil_mass2(rows) < 8.5
    assert theta[light].min() > 32.5
    assert 24.5 < theta[~light].min() < 25.0  # 25 deg of the analysis lies inside
    assert theta.max() < 125
    assert rows.extra_energy.max() < 0.6
    assert np.all((recoil_mass2(rows) > -3) & (recoil_mass2(rows) < 83))
    angles = np.degrees(np.arccos(rows.true[..., 2] / np.linalg.norm(rows.true[..., :3], axis=-1)))
    assert angles.min() > 17
    assert angles.max() < 150
