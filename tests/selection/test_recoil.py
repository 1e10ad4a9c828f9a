"""Laws of the recoil and of the four features."""

import numpy as np
import pytest
import vector
from hypothesis import given
from hypothesis import strategies as st

from selection.beams import MUON_MASS_GEV, SUPERKEKB, Beams, cm_matrix
from selection.kernel import values_of
from selection.ntuple import MOMENTA
from selection.recoil import (
    FEATURES,
    MuonPair,
    momenta,
    recoil,
    reference_features,
    thrust_transverse,
    to_cm,
)
from tests.dimuon import NO_CUTS, event_kinematics

approx = pytest.approx


def random_pair(n=2000, seed=1):
    """Muons of up to 5 GeV in all directions of the lab."""
    rng = np.random.default_rng(seed)

    def muon():
        p = rng.uniform(0.1, 5.0, n)
        cos, phi = rng.uniform(-0.95, 0.95, n), rng.uniform(-np.pi, np.pi, n)
        sin = np.sqrt(1 - cos**2)
        energy = np.hypot(p, MUON_MASS_GEV)
        return momenta(p * sin * np.cos(phi), p * sin * np.sin(phi), p * cos, energy)

    return MuonPair(muon(), muon())


def columns(pair, dtype=np.float64):
    parts = [
        getattr(muon, part) for muon in (pair.plus, pair.minus) for part in ("px", "py", "pz", "E")
    ]
    return {name: np.asarray(part).astype(dtype) for name, part in zip(MOMENTA, parts, strict=True)}


def rotated(pair, angle, beams=SUPERKEKB):
    """The pair turned about the e- axis of the CM frame, back in the lab."""
    matrix = cm_matrix(beams)
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    full = np.linalg.inv(matrix) @ turn @ matrix
    return MuonPair(
        *(momenta(*(full @ np.stack([p.px, p.py, p.pz, p.E]))) for p in (pair.plus, pair.minus))
    )


def test_superkekb_has_the_published_energy_and_boost():
    assert SUPERKEKB.sqrt_s_gev == approx(10.5795, abs=2e-4)
    assert SUPERKEKB.p4.p / SUPERKEKB.sqrt_s_gev == approx(0.287, abs=1e-3)


def test_cm_frame_has_beams_at_rest_and_electron_along_z():
    matrix = cm_matrix(SUPERKEKB)
    assert matrix @ SUPERKEKB.total == approx([0, 0, 0, SUPERKEKB.sqrt_s_gev], abs=1e-12)
    electron = matrix @ (*SUPERKEKB.electron_direction, 1.0)
    assert electron[:3] / electron[3] == approx([0, 0, 1], abs=1e-12)
    metric = np.diag([-1, -1, -1, 1])
    assert matrix.T @ metric @ matrix == approx(metric, abs=1e-12)


def test_symmetric_beams_need_no_boost():
    assert cm_matrix(Beams(5.0, 5.0, 0.0)) == approx(np.eye(4))


def test_recoil_mass_agrees_with_the_centre_of_mass_formula():
    pair = random_pair()
    both, s = pair.plus + pair.minus, SUPERKEKB.p4.mass2
    energy_cm = both.boostCM_of_p4(SUPERKEKB.p4).E
    expected = s + both.mass2 - 2 * np.sqrt(s) * energy_cm
    assert recoil(pair, SUPERKEKB).mass2 == approx(expected, abs=1e-9)
    assert event_kinematics(columns(pair), SUPERKEKB).axis == approx(expected, abs=1e-9)


@pytest.mark.parametrize("mass", [0.0, 0.1, 3.0, 8.9])
def test_a_generated_z_prime_gives_back_its_mass(mass):
    rng = np.random.default_rng(3)
    n = 500
    share = rng.uniform(0.05, 0.95, n)
    m_mumu = 2 * MUON_MASS_GEV + share * (SUPERKEKB.sqrt_s_gev - mass - 2 * MUON_MASS_GEV)
    root_s = SUPERKEKB.sqrt_s_gev
    p = (
        np.sqrt((root_s**2 - (m_mumu + mass) ** 2) * (root_s**2 - (m_mumu - mass) ** 2))
        / 2
        / root_s
    )
    unit = rng.normal(size=(3, n))
    unit /= np.linalg.norm(unit, axis=0)
    pair_cm = momenta(*(p * unit), np.hypot(p, m_mumu))
    k = np.sqrt(m_mumu**2 / 4 - MUON_MASS_GEV**2)
    turn = rng.normal(size=(3, n))
    turn *= k / np.linalg.norm(turn, axis=0)
    plus = momenta(*turn, m_mumu / 2).boost_p4(pair_cm)
    to_lab = np.linalg.inv(cm_matrix(SUPERKEKB))
    plus, both = (momenta(*(to_lab @ np.stack([q.px, q.py, q.pz, q.E]))) for q in (plus, pair_cm))
    pair = MuonPair(plus, both - plus)
    found = event_kinematics(columns(pair), SUPERKEKB).axis
    assert found == approx(np.full(n, mass**2), abs=1e-9)


def test_kernel_equals_the_array_form():
    pair = random_pair()
    found = event_kinematics(columns(pair), SUPERKEKB, feature_type=np.float64)
    expected = reference_features(pair, SUPERKEKB).T
    assert np.abs(found.features / expected - 1).max() < 1e-9
    assert found.axis == approx(recoil(pair, SUPERKEKB).mass2, rel=1e-9, abs=1e-9)
    (costheta,) = values_of(NO_CUTS, columns(pair), SUPERKEKB, ["recoil.costheta"])
    assert costheta == approx(np.cos(recoil(pair, SUPERKEKB).theta), abs=1e-9)


def test_float32_momenta_move_the_features_by_less_than_1e_6_of_the_beam_energy():
    pair = random_pair()
    exact = event_kinematics(columns(pair), SUPERKEKB)
    single = event_kinematics(columns(pair, np.float32), SUPERKEKB)
    scale = SUPERKEKB.sqrt_s_gev
    assert np.abs(single.features - exact.features).max() < 1e-6 * scale
    shift = np.abs(single.axis - exact.axis)
    assert shift.max() < 1e-6 * scale**2


def test_features_do_not_change_when_the_muons_are_exchanged():
    pair = random_pair()
    swapped = MuonPair(pair.minus, pair.plus)
    found, expected = (event_kinematics(columns(p), SUPERKEKB).features for p in (swapped, pair))
    assert found == approx(expected)
    assert reference_features(swapped, SUPERKEKB) == approx(reference_features(pair, SUPERKEKB))


@given(angle=st.floats(-np.pi, np.pi))
def test_features_do_not_change_under_rotation_about_the_beam(angle):
    pair = random_pair(200)
    before = event_kinematics(columns(pair), SUPERKEKB)
    after = event_kinematics(columns(rotated(pair, angle)), SUPERKEKB)
    assert after.features == approx(before.features, rel=1e-6, abs=1e-6)
    assert after.axis == approx(before.axis, abs=1e-9)


def test_a_boost_without_the_rotation_gives_another_pt_mumu():
    """Guards the test above: the axis is off by 5.8 mrad, so pt moves by 5.8e-3 * pz * cos(phi)."""
    pair = random_pair()
    both = to_cm(pair.plus + pair.minus, SUPERKEKB)
    bare = (pair.plus + pair.minus).boostCM_of_p4(SUPERKEKB.p4).rho
    right = reference_features(pair, SUPERKEKB)[:, FEATURES.index("pt_mumu")]
    expected = 5.8e-3 * np.abs(both.pz * np.cos(both.phi))
    assert np.abs(bare - right).mean() == approx(expected.mean(), rel=0.02)


def test_thrust_of_two_particles_is_that_of_the_best_axis():
    rng = np.random.default_rng(5)
    p1, p2 = rng.normal(size=(2, 3))
    axes = rng.normal(size=(400_000, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    thrust = np.abs(axes @ p1) + np.abs(axes @ p2)
    best = axes[thrust.argmax()]
    expected = [np.linalg.norm(np.cross(p, best)) for p in (p1, p2)]
    v1, v2 = (vector.obj(x=p[0], y=p[1], z=p[2]) for p in (p1, p2))
    # the scan's best axis is off by up to its grid spacing, 5 mrad
    assert [thrust_transverse(v1, v2)] * 2 == approx(expected, abs=5e-3 * np.linalg.norm(p1 - p2))


def test_beams_of_the_event_win_over_the_configured_ones():
    pair = random_pair(300)
    other = Beams(7.0, 4.0)
    from_columns = columns(pair) | {
        f"beam_{part}": np.full(300, value)
        for part, value in zip(("px", "py", "pz", "e"), other.total, strict=True)
    }
    found, expected = (
        event_kinematics(from_columns, SUPERKEKB),
        event_kinematics(columns(pair), other),
    )
    assert found.axis == approx(expected.axis, abs=1e-9)
    assert found.features == approx(expected.features, rel=1e-6)


def test_ecms_rescales_the_beams_and_keeps_their_boost():
    pair = random_pair(300)
    scaled = Beams(7.004 * 1.01, 4.002 * 1.01)
    ecms = np.full(300, scaled.sqrt_s_gev)
    found = event_kinematics(columns(pair) | {"ecms": ecms}, SUPERKEKB)
    expected = event_kinematics(columns(pair), scaled)
    assert found.axis == approx(expected.axis, abs=1e-9)


def test_a_nan_stays_in_its_event():
    damaged = columns(random_pair(50))
    damaged["mu_plus_px"][7] = np.nan
    found = event_kinematics(damaged, SUPERKEKB)
    assert np.isnan(found.axis).nonzero()[0].tolist() == [7]
    assert np.isnan(found.features).any(axis=0).nonzero()[0].tolist() == [7]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e200])
def test_an_event_is_finite_if_its_mass_and_all_its_features_are(wrong):
    damaged = columns(random_pair(50))
    damaged["mu_minus_pz"][[3, 40]] = wrong
    with np.errstate(over="ignore"):
        found = event_kinematics(damaged, SUPERKEKB)
    expected = np.isfinite(found.axis) & np.isfinite(found.features).all(axis=0)
    assert np.array_equal(found.finite, expected)
    assert np.flatnonzero(~found.finite).tolist() == [3, 40]


@pytest.mark.parametrize("size", [1, 7, 250, 333])
def test_an_event_has_the_same_bits_wherever_a_chunk_begins(size):
    pair = random_pair(1000)
    whole = event_kinematics(columns(pair), SUPERKEKB)
    for begin in range(0, 1000, size):
        piece = {name: values[begin : begin + size] for name, values in columns(pair).items()}
        found = event_kinematics(piece, SUPERKEKB)
        span = slice(begin, begin + size)
        assert np.array_equal(found.axis, whole.axis[span])
        assert np.array_equal(found.features, whole.features[:, span])
