"""Calorimeter: resolutions as documented, photons lost as built, the loose preselection."""

import numba
import numpy as np
import pytest

from selection.beams import SUPERKEKB, cm_matrix
from simulation import calorimeter
from simulation.calorimeter import three_photons
from simulation.frames import lab_matrix
from simulation.threegamma import threegamma_draws

TO_CM, TO_LAB = cm_matrix(SUPERKEKB), lab_matrix(SUPERKEKB)


@numba.njit
def repeated(rng, k, n):
    out = np.zeros((n, 3))
    for i in range(n):
        out[i] = calorimeter.measured(rng, k)
    return out


def lab_photon(energy, degrees, phi):
    st, ct = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    return energy * np.array([st * np.cos(phi), st * np.sin(phi), ct, 1.0])


@pytest.mark.parametrize("energy", [0.5, 2.0, 6.0])
def test_energy_resolution_is_as_stated(energy):
    """Gaussian of the stated width, and one photon in ten with an exponential loss of 3 %."""
    rng, n = np.random.default_rng(1), 200_000
    ratio = repeated(rng, lab_photon(energy, 40, 1.0), n)[:, 0] / energy
    gauss2 = (0.00066 / energy) ** 2 + 0.0081**2 / np.sqrt(energy) + 0.0134**2
    variance = gauss2 + 0.1 * 2 * 0.03**2 - 0.003**2
    assert ratio.mean() == pytest.approx(0.997, abs=4 * np.sqrt(variance / n))
    assert ratio.var() == pytest.approx(variance, rel=0.03)
    above = np.mean(ratio > 1 + 2 * np.sqrt(gauss2))
    assert above == pytest.approx(0.9 * 0.02275, rel=0.12)  # no tail on this side
    assert np.mean(ratio < 1 - 4 * np.sqrt(gauss2)) > 0.005


@pytest.mark.parametrize("energy", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("phi", [1.0, -np.pi, np.pi])
def test_angular_resolution_is_as_stated(energy, phi):
    rng, n = np.random.default_rng(2), 50_000
    found = repeated(rng, lab_photon(energy, 30, phi), n)
    width = np.hypot(0.004 / np.sqrt(energy), 0.0015)
    theta = found[:, 1] - np.radians(30)
    turn = np.angle(np.exp(1j * (found[:, 2] - phi)))
    assert abs(found[:, 2]).max() <= np.pi
    for angle, wanted in ((theta, width), (turn, width / np.sin(np.radians(30)))):
        assert angle.mean() == pytest.approx(0, abs=4 * wanted / np.sqrt(n))
        assert angle.std() == pytest.approx(wanted, rel=0.015)


def event(n, *, opening=100.0, radiated=None, degrees=60.0):
    """n times three photons of mass sqrt_s in all, as (n, 4, 4) in the CM frame.

    The first lies at `degrees` in the lab, the other two `opening` degrees apart in the CM frame,
    above and below the plane of the first and the beams.
    """
    axis = TO_CM @ lab_photon(1.0, degrees, 0.4)
    axis = axis[:3] / axis[3]
    side = np.cross(axis, (0.0, 0.0, 1.0))
    side /= np.linalg.norm(side)
    half = np.radians(opening) / 2
    e = 0.5 * SUPERKEKB.sqrt_s_gev / (1 + np.cos(half))
    k = np.zeros((n, 4, 4))
    k[:, 0] = (SUPERKEKB.sqrt_s_gev - 2 * e) * np.array([*axis, 1])
    for j, sign in ((1, 1), (2, -1)):
        k[:, j] = e * np.array([*(sign * np.sin(half) * side - np.cos(half) * axis), 1])
    if radiated is not None:
        k[:, 3] = TO_CM @ radiated
    return k


def seen(k, *, hit_or_miss=False, seed=3):
    one = np.ones(len(k))
    rng = np.random.default_rng(seed)
    return three_photons(rng, k, one, beams=SUPERKEKB, hit_or_miss=hit_or_miss)


@pytest.mark.parametrize(("degrees", "efficiency"), [(60, 0.999**3), (25, 0.995 * 0.999**2)])
def test_an_event_has_the_efficiency_of_its_photons(degrees, efficiency):
    k = event(1_000, degrees=degrees)
    lab = k[0, :3] @ TO_LAB.T
    barrel = np.degrees(np.arccos(lab[1:, 2] / lab[1:, 3]))
    assert np.all((barrel > 32.2) & (barrel < 128.7))
    weight = seen(k).weight
    assert len(weight) > 950  # the rest: low tail of M(3 gamma)
    assert np.unique(weight) == pytest.approx([efficiency])


@pytest.mark.parametrize("degrees", [11.0, 31.8, 129.5, 157.0])
def test_an_event_with_a_photon_in_a_gap_is_lost(degrees):
    assert len(seen(event(50, degrees=degrees))) == 0


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3]])
def test_close_photons_are_one_cluster_whatever_their_names(order):
    for opening, is_seen in ((1.0, False), (8.0, True)):
        k = event(50, opening=opening)
        a, b = (TO_LAB @ k[0, j] for j in (1, 2))
        angle = np.arccos(a[:3] @ b[:3] / (a[3] * b[3]))
        assert (angle > 0.05) == is_seen
        assert (len(seen(k[:, order])) > 0) == is_seen


def test_a_fourth_hard_photon_ends_the_event_unless_it_is_missed():
    hard, soft, lost = (
        lab_photon(e, t, 2.0)
        for e, t in (
            (
                0.6,
                80,
            ),
            (0.4, 80),
            (0.6, 5),
        )
    )
    whole = seen(event(100)).weight.sum()
    assert seen(event(100, radiated=hard)).weight.sum() == pytest.approx(1e-3 * whole)
    assert seen(event(100, radiated=soft)).weight.sum() == pytest.approx(whole)
    assert seen(event(100, radiated=lost)).weight.sum() == pytest.approx(whole)
    assert len(seen(event(100, radiated=hard), hit_or_miss=True)) < 5


@pytest.fixture(scope="module")
def generated():
    """Momenta of 3 gamma events, each taken once whatever its weight."""
    rng, n = np.random.default_rng(4), 150_000
    energy = np.full(n, SUPERKEKB.sqrt_s_gev)
    momenta, weight = threegamma_draws(
        rng.random((n, 8)), stratum=1, sqrt_s_gev=energy, isr=True, to_lab=TO_LAB
    )
    return momenta[weight > 0]


def test_weights_and_hit_or_miss_expect_the_same_events(generated):
    by_weight, by_lot = seen(generated), seen(generated, hit_or_miss=True, seed=5)
    assert len(by_lot) > 10_000
    assert len(by_weight) > len(by_lot)
    assert set(by_lot.weight) == {1.0}
    assert by_weight.weight.sum() == pytest.approx(len(by_lot), abs=4 * np.sqrt(len(by_lot)))


def test_rows_pass_the_loose_preselection_as_documented(generated):
    rows = seen(generated)
    energy, theta, phi = np.moveaxis(rows.seen, 2, 0)
    assert 0.5 < energy.min() < 0.51
    x, y, z = (
        (energy * direction).sum(axis=1)
        for direction in (np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta))
    )
    share = np.sqrt(energy.sum(axis=1) ** 2 - x**2 - y**2 - z**2) / SUPERKEKB.sqrt_s_gev
    assert 0.85 < share.min() < 0.851
    assert 1.02 < share.max() < 1.05
    angle = np.degrees(theta)
    assert angle.min() > 10
    assert angle.max() < 157


def test_photons_are_ordered_by_energy_and_know_their_origin(generated):
    rows = seen(generated)
    assert np.all(np.diff(rows.seen[..., 0], axis=1) <= 0)
    true = np.take_along_axis(generated[rows.entry], rows.origin[..., None], axis=1) @ TO_LAB.T
    assert abs(rows.seen[..., 0] / true[..., 3] - 1).mean() < 0.03
    theta = np.arccos(true[..., 2] / true[..., 3])
    assert abs(rows.seen[..., 1] - theta).max() < 0.05
