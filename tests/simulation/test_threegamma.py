"""e+ e- -> 3 gamma: amplitude, cross section, generated region and rows of the ntuple."""

from itertools import permutations

import numpy as np
import pytest
import uproot

from selection.beams import ELECTRON_MASS_GEV, SUPERKEKB, Beams
from simulation.couplings import ALPHA, FB_GEV2
from simulation.frames import lab_matrix
from simulation.radiation import exponent
from simulation.recipe import Recipe
from simulation.samples import simulate
from simulation.threegamma import STRATA, squared_amplitude, threegamma_draws
from simulation.write import write_sample

S = 10.58**2
E2 = 4 * np.pi * ALPHA
METRIC = np.array([-1.0, -1.0, -1.0, 1.0])  # order (x, y, z, t)


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def flat_points(rng, n, s):
    """Three massless momenta (n, 3, 4), uniform in phase space of volume s / (256 pi^3)."""
    x = np.sort(rng.random((n, 2)), axis=1)
    shares = 1 - np.stack([x[:, 0], x[:, 1] - x[:, 0], 1 - x[:, 1]], axis=1)  # 2 E / sqrt(s)
    e = 0.5 * np.sqrt(s) * shares
    c = (e[:, 2] ** 2 - e[:, 0] ** 2 - e[:, 1] ** 2) / (2 * e[:, 0] * e[:, 1])
    p = np.zeros((n, 3, 3))
    p[:, 0, 2] = e[:, 0]
    p[:, 1, 2] = e[:, 1] * c
    p[:, 1, 0] = e[:, 1] * np.sqrt(np.clip(1 - c**2, 0, None))
    p[:, 2] = -p[:, 0] - p[:, 1]
    first, second = unit(rng.normal(size=(n, 3))), rng.normal(size=(n, 3))
    third = unit(np.cross(first, second))
    turn = np.stack([first, np.cross(third, first), third], axis=1)
    return np.concatenate([p @ turn, e[:, :, None]], axis=2)


def by_dot_products(k, s):
    """The formula of Berends and Kleiss, summed as it is printed; k (n, 3, 4)."""
    half = np.sqrt(s)[..., None] / 2
    a, b = (half * (k[..., 3] + sign * k[..., 2]) for sign in (-1, 1))
    return 4 * E2**3 * s * (a * b * (a**2 + b**2)).sum(axis=1) / (a.prod(axis=1) * b.prod(axis=1))


def flat_fb(k, s):
    """Cross section per flat point (n, 3, 4) at s [fb]."""
    return FB_GEV2 / (2 * s) / 4 / 6 * s / (256 * np.pi**3) * by_dot_products(k, s)


def gamma_matrices():
    one, none = np.eye(2), np.zeros((2, 2))
    pauli = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    space = [np.block([[none, m], [-m, none]]) for m in pauli]
    return np.array([*space, np.block([[one, none], [none, -one]])])


GAMMA = gamma_matrices()


def sl(a):
    return np.einsum("m,mij->ij", METRIC * a, GAMMA)


def spinors(p):
    """Both solutions of slash(p) u = 0, of u as of v; u_bar gamma^0 u = 2 E."""
    n = p[:3] / p[3]
    spin = np.einsum("i,ijk->jk", n, [[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    _, chi = np.linalg.eigh(spin)
    return [np.sqrt(p[3]) * np.concatenate([chi[:, i], spin @ chi[:, i]]) for i in range(2)]


def polarisations(k):
    """Two unit vectors across the momentum."""
    first = unit(np.cross(k[:3], (0.3, -0.5, 0.8)))
    return [np.array([*v, 0.0]) for v in (first, np.cross(k[:3] / k[3], first))]


def by_spinors(k, s):
    """Sum over spins of |M|^2: six diagrams, two spins of each particle."""
    half = np.sqrt(s) / 2
    p1, p2 = np.array([0, 0, half, half]), np.array([0, 0, -half, half])
    total = 0.0
    for choice in np.ndindex(2, 2, 2):
        eps = [sl(polarisations(k[j])[choice[j]]) for j in range(3)]
        line = np.zeros((4, 4), complex)
        for a, b, c in permutations(range(3)):
            one, two = p1 - k[a], p1 - k[a] - k[b]
            line += (
                eps[c]
                @ sl(two)
                @ eps[b]
                @ sl(one)
                @ eps[a]
                / ((METRIC * one @ one) * (METRIC * two @ two))
            )
        for u in spinors(p1):
            for v in spinors(p2):
                total += abs(v.conj() @ GAMMA[3] @ line @ u) ** 2
    return E2**3 * total


def amplitude(k, s):
    return squared_amplitude(*(tuple(map(float, row)) for row in k), s)


def test_amplitude_agrees_with_six_diagrams_of_dirac_spinors():
    for k in flat_points(np.random.default_rng(1), 20, S):
        assert amplitude(k, S) == pytest.approx(by_spinors(k, S), rel=1e-8)


def test_amplitude_does_not_know_the_names_of_photons_or_beams():
    k = flat_points(np.random.default_rng(2), 1, S)[0]
    mirrored = k * (1, 1, -1, 1)
    for order in permutations(range(3)):
        assert amplitude(k[list(order)], S) == pytest.approx(amplitude(k, S), rel=1e-13)
        assert amplitude(mirrored[list(order)], S) == pytest.approx(amplitude(k, S), rel=1e-13)


def test_a_soft_photon_is_emitted_with_the_eikonal_factor():
    """|M_3|^2 -> |M_2|^2 e^2 s / (p1.k p2.k), |M_2|^2 = 8 e^4 (t/u + u/t)."""
    half, e, c, soft_c = np.sqrt(S) / 2, 1e-5, 0.3, -0.6
    soft = e * np.array([0, np.sqrt(1 - soft_c**2), soft_c, 1])
    hard = half * np.array([np.sqrt(1 - c**2), 0, c, 1])
    other = np.array([0, 0, 0, 2 * half]) - soft - hard  # massless up to e / half
    two = 8 * E2**2 * ((1 - c) / (1 + c) + (1 + c) / (1 - c))
    eikonal = E2 * S / (half**2 * (soft[3] ** 2 - soft[2] ** 2))
    assert amplitude(np.array([hard, other, soft]), S) == pytest.approx(two * eikonal, rel=1e-4)


def fiducial(k):
    """E > 1 GeV, 20 < theta < 160 deg and pairs more than 20 deg apart, in the CM frame."""
    n = k[..., :3] / k[..., 3:]
    pairs = np.stack([(n[:, a] * n[:, b]).sum(axis=1) for a, b in ((0, 1), (0, 2), (1, 2))])
    return (
        (k[..., 3] > 1).all(axis=1)
        & (abs(n[..., 2]) < np.cos(np.radians(20))).all(axis=1)
        & (pairs < np.cos(np.radians(20))).all(axis=0)
    )


def test_cross_section_agrees_with_flat_phase_space():
    """In a fiducial region that the calorimeter holds when the beams meet head on."""
    rng, n = np.random.default_rng(3), 600_000
    flat = flat_points(rng, n, S)
    expected_fb = flat_fb(flat, S) * fiducial(flat)
    momenta, drawn_fb = threegamma_draws(
        rng.random((n, 8)),
        stratum=0,
        sqrt_s_gev=np.full(n, np.sqrt(S)),
        isr=False,
        to_lab=lab_matrix(Beams(half_crossing_angle_rad=0.0)),
    )
    live = np.flatnonzero(drawn_fb)
    drawn_fb[live] *= fiducial(momenta[live, :3])
    error = np.hypot(expected_fb.std(), drawn_fb.std()) / np.sqrt(n)
    assert error < 0.004 * expected_fb.mean()
    assert drawn_fb.mean() == pytest.approx(expected_fb.mean(), abs=4 * error)


def in_region(k):
    """The documented region of photons (n, 3, 4) of the CM frame, but for the mass."""
    lab = k @ lab_matrix(SUPERKEKB).T
    theta = np.degrees(np.arccos(lab[..., 2] / lab[..., 3]))
    return ((theta > 12.4) & (theta < 155.1) & (lab[..., 3] > 0.4)).all(axis=1)


def test_radiation_folds_the_cross_section_with_the_radiator():
    """Against flat phase space at s (1 - z), moved along the beam, the radiated pT the lowest.

    Both as ratios to the rate without radiation, by the same points: most of the noise cancels.
    """
    rng, n, b = np.random.default_rng(5), 400_000, exponent(S)
    z_max = 1 - 0.8**2
    z = np.maximum(z_max * rng.random(n) ** (1 / b), 1e-300)
    soft = 1 + 0.75 * b + ALPHA / np.pi * (np.pi**2 / 3 - 0.5)
    radiator = (soft - z ** (1 - b) * (1 - z / 2)) * z_max**b  # H over the drawn z^(b - 1)
    born = flat_points(rng, n, S)
    k = born * np.sqrt(1 - z)[:, None, None]
    beta = (rng.choice([-1, 1], n) * z / (2 - z))[:, None]
    moved = k.copy()
    moved[..., 2] = (k[..., 2] + beta * k[..., 3]) / np.sqrt(1 - beta**2)
    moved[..., 3] = (k[..., 3] + beta * k[..., 2]) / np.sqrt(1 - beta**2)
    beta_e = np.sqrt(1 - 4 * ELECTRON_MASS_GEV**2 / S)
    c = np.tanh(np.arctanh(beta_e) * rng.uniform(-1, 1, n)) / beta_e
    angle = (1 - c**2) / (1 - (beta_e * c) ** 2)  # sin^2 / (1 - beta^2 cos^2)^2 over the drawn
    lowest = np.hypot(k[..., 0], k[..., 1]).min(axis=1)
    softer = z * np.sqrt(S) / 2 * np.sqrt(np.clip(1 - c**2, 0, None)) < lowest
    radiator *= softer * angle / angle.mean()
    flat = (flat_fb(k, S * (1 - z)) * radiator * in_region(moved)).sum()
    flat /= (flat_fb(born, np.full(n, S)) * in_region(born)).sum()
    x, energy, to_lab = rng.random((n, 8)), np.full(n, np.sqrt(S)), lab_matrix(SUPERKEKB)
    without, radiated = (
        sum(
            threegamma_draws(x, stratum=i, sqrt_s_gev=energy, isr=isr, to_lab=to_lab)[1].sum()
            for i in range(STRATA.n_strata)
        )
        for isr in (False, True)
    )
    assert radiated / without < 0.97
    assert radiated / without == pytest.approx(flat, rel=0.007)


@pytest.fixture(scope="module")
def draws():
    rng, n = np.random.default_rng(4), 40_000
    x, energy, to_lab = rng.random((n, 8)), np.full(n, np.sqrt(S)), lab_matrix(SUPERKEKB)
    pieces = [
        threegamma_draws(x, stratum=i, sqrt_s_gev=energy, isr=True, to_lab=to_lab)
        for i in range(STRATA.n_strata)
    ]
    return np.concatenate([momenta[weight > 0] for momenta, weight in pieces])


def test_drawn_photons_are_massless_and_conserve_momentum(draws):
    assert len(draws) > 5_000
    assert abs((draws**2) @ METRIC).max() < 1e-9
    assert abs(draws.sum(axis=1) - (0, 0, 0, np.sqrt(S))).max() < 1e-9


def test_drawn_photons_fill_the_documented_region(draws):
    lab = draws[:, :3] @ lab_matrix(SUPERKEKB).T
    theta = np.degrees(np.arccos(lab[..., 2] / lab[..., 3]))
    assert 12.4 < theta.min() < 12.6
    assert 154.9 < theta.max() < 155.1
    assert 0.4 < lab[..., 3].min() < 0.41
    mass2 = draws[:, :3, 3].sum(axis=1) ** 2 - (draws[:, 3, :3] ** 2).sum(axis=1)
    assert 0.80 < np.sqrt(mass2.min() / S) < 0.82
    pt = np.hypot(draws[..., 0], draws[..., 1])
    assert np.all(pt[:, 3] < pt[:, :3].min(axis=1))
    assert draws[:, 3, 3].max() > 1  # radiation is there


N = 60_000


@pytest.fixture(scope="module")
def whole():
    return simulate(Recipe("threegamma", N, 1))


def test_weights_are_even_and_stay_within_the_cross_section(whole):
    w = whole.rows.weight
    assert len(w) > 0.4 * N
    assert w.min() > 0
    assert w.sum() ** 2 / (w**2).sum() > 0.8 * len(w)
    assert w.max() < 1e-3 * w.sum()
    assert 0.7 < w.sum() / whole.cross_section_fb < 0.9


def test_parts_add_up_to_the_sample(whole):
    parts = [simulate(Recipe("threegamma", N // 2, 1, part=i, parts=2)) for i in range(2)]
    one, two = (p.rows.weight for p in parts)
    assert not np.array_equal(one[:50], two[:50])
    error = np.sqrt(sum((w**2).sum() for w in (one, two, whole.rows.weight)))
    assert one.sum() + two.sum() == pytest.approx(whole.rows.weight.sum(), abs=4 * error)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("threegamma") / "thin.root"
    return write_sample(Recipe("threegamma", N, 1, max_rows=6_000), path)


def test_thinning_counts_rows_and_keeps_the_rate(whole, written):
    assert written.rows == pytest.approx(6_000, abs=3 * 4 * np.sqrt(2_000))
    assert written.rows % 3 == 0
    total = written.sum_of_weights_inv_fb
    assert total == pytest.approx(whole.rows.weight.sum(), abs=4 * total / np.sqrt(2_000))


def test_each_photon_is_the_recoil_once_and_none_is_right(written):
    rows = uproot.open(written.path)["variables"].arrays(library="np")
    assert len(rows["weight"]) == written.rows
    assert np.isnan(rows["generated_mass"]).all()
    assert not rows["is_right_pair"].any()
    assert set(rows["process"]) == {6}
    p = np.stack([rows[f"{r}_p"].reshape(-1, 3) for r in ("hard", "soft", "recoil")], axis=2)
    assert np.all(np.sort(p, axis=2) == np.sort(p[:, :1], axis=2))  # the same three photons
    assert np.all(p[:, :, 0] >= p[:, :, 1])
    assert np.all(np.diff(p[:, :, 2], axis=1) <= 0)  # ordered by the recoil, as measured
    assert rows["weight"].sum() == pytest.approx(3 * written.sum_of_weights_inv_fb)
