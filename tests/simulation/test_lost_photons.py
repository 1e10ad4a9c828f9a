"""mu mu gamma (gamma): fiducial cross sections, the cut-off, no event twice and none lost."""

import numba
import numpy as np
import pytest

from selection.beams import MUON_MASS_GEV, SUPERKEKB, cm_matrix
from simulation import mumugammagamma
from simulation.couplings import FB_GEV2
from simulation.grid import Shape, adapted_strata
from simulation.infrared import soft_factor
from simulation.lost_photons import N_KINDS, NONE, STRATA, lost_photon_draws

SQRT_S = 10.58
COS = {deg: np.cos(np.radians(deg)) for deg in (3, 5, 15, 20, 25)}


def cosines(p):
    return p[:, 2] / np.linalg.norm(p[:, :3], axis=1)


def apart(a, b):
    """Cosine of the angle between three-vectors (n, 4), (n, 4)."""
    lengths = np.linalg.norm(a[:, :3], axis=1) * np.linalg.norm(b[:, :3], axis=1)
    return (a[:, :3] * b[:, :3]).sum(1) / lengths


def clear(p):
    """Dimuon pT > 1 GeV, M > 2 GeV, muons 20 deg from both photons; p (n, 4, 4): +, -, photons."""
    pair = p[:, 0] + p[:, 1]
    inside = (np.hypot(pair[:, 0], pair[:, 1]) > 1) & (
        pair[:, 3] ** 2 - (pair[:, :3] ** 2).sum(1) > 4
    )
    for muon in (0, 1):
        for photon in (2, 3):
            inside &= apart(p[:, muon], p[:, photon]) < COS[20]
    return inside


def both_wide(p):
    """Both photons above 0.5 GeV at 25-155 deg of the beams."""
    a, b = np.abs(cosines(p[:, 2])), np.abs(cosines(p[:, 3]))
    return clear(p) & (p[:, 2:, 3] > 0.5).all(1) & (a < COS[25]) & (b < COS[25])


def one_near(p):
    """One above 1 GeV at 3-15 deg of a beam, the other above 0.5 GeV at 25-155 deg."""
    inside = np.zeros(len(p), bool)
    for near, wide in ((2, 3), (3, 2)):
        a, b = np.abs(cosines(p[:, near])), np.abs(cosines(p[:, wide]))
        inside |= (
            (COS[15] < a)
            & (a < COS[3])
            & (p[:, near, 3] > 1)
            & (p[:, wide, 3] > 0.5)
            & (b < COS[25])
        )
    return clear(p) & inside


def both_near(p):
    """Both above 1 GeV, at 5-25 deg of opposite beams."""
    a, b = cosines(p[:, 2]), cosines(p[:, 3])
    inside = (a * b < 0) & (p[:, 2:, 3] > 1).all(1)
    for c in (np.abs(a), np.abs(b)):
        inside &= (COS[25] < c) & (c < COS[5])
    return clear(p) & inside


REGIONS = {  # with the ranges in which flat phase space is drawn: least energy, |cos| of each photon
    both_wide: ((0.5, 0, COS[25]), (0.5, 0, COS[25])),
    one_near: ((1.0, COS[15], COS[3]), (0.5, 0, COS[25])),
    both_near: ((1.0, COS[25], COS[5]), (1.0, COS[25], COS[5])),
}


def flat_photon(rng, n, least, low, high):
    """Photons (n, 4), uniform in energy and direction, and d^3k / (2w (2 pi)^3) of the range."""
    e, c = rng.uniform(least, SQRT_S / 2, n), rng.uniform(low, high, n) * rng.choice([-1, 1], n)
    phi, st = rng.uniform(0, 2 * np.pi, n), np.sqrt(1 - c * c)
    k = np.column_stack([e * st * np.cos(phi), e * st * np.sin(phi), e * c, e])
    return k, e / 2 * (SQRT_S / 2 - least) * 2 * (high - low) * 2 * np.pi / (2 * np.pi) ** 3


def flat_cross_section(region, n, seed):
    """Photons uniform in energy and direction, muons isotropic: no peak is known to it."""
    rng, m = np.random.default_rng(seed), MUON_MASS_GEV
    photons = [flat_photon(rng, n, *span) for span in REGIONS[region]]
    pair = np.array([0, 0, 0, SQRT_S]) - photons[0][0] - photons[1][0]
    mass2 = pair[:, 3] ** 2 - (pair[:, :3] ** 2).sum(1)
    ok = (mass2 > 4) & (pair[:, 3] > 0)
    mass = np.sqrt(np.where(ok, mass2, 4.0))
    p = np.sqrt(mass**2 / 4 - m**2)
    axis = rng.normal(size=(n, 3))
    axis *= (p / np.linalg.norm(axis, axis=1))[:, None]
    v = np.where(ok[:, None], pair[:, :3] / pair[:, 3:], 0.0)
    gamma = 1 / np.sqrt(1 - (v * v).sum(1))
    va = (v * axis).sum(1)
    space = axis + v * (gamma**2 / (gamma + 1) * va + gamma * mass / 2)[:, None]
    minus = np.column_stack([space, gamma * (mass / 2 + va)])
    events = np.stack([pair - minus, minus, photons[0][0], photons[1][0]], axis=1)
    inside = ok & region(np.where(ok[:, None, None], events, 1.0))
    alike = 1 if region is one_near else 2  # ranges that are the same hold each pair twice
    weight = np.zeros(n)
    weight[inside] = amplitudes(events[inside], SQRT_S**2) * FB_GEV2 / (8 * SQRT_S**2) / alike
    weight *= photons[0][1] * photons[1][1] * p / (4 * np.pi * mass)
    return weight.mean(), weight.std() / np.sqrt(n)


@numba.njit
def amplitudes(p, s):
    out = np.empty(len(p))
    for i in range(len(p)):
        k = p[i]
        out[i] = mumugammagamma.squared_amplitude(
            (k[1, 0], k[1, 1], k[1, 2], k[1, 3]), (k[0, 0], k[0, 1], k[0, 2], k[0, 3]),
            (k[2, 0], k[2, 1], k[2, 2], k[2, 3]), (k[3, 0], k[3, 1], k[3, 2], k[3, 3]), s,
        )  # fmt: skip
    return out


@numba.njit
def soft_factors(p, sqrt_s):
    out = np.empty(len(p))
    for i in range(len(p)):
        k = p[i]
        out[i] = soft_factor(
            (k[1, 0], k[1, 1], k[1, 2], k[1, 3]), (k[0, 0], k[0, 1], k[0, 2], k[0, 3]),
            sqrt_s, k[3, 3],
        )  # fmt: skip
    return out


def draws(x, stratum, **options):
    energy = np.full(len(x), SQRT_S)
    return lost_photon_draws(
        x, stratum=stratum, sqrt_s_gev=energy, isr=True, to_cm=cm_matrix(SUPERKEKB), **options
    )


def tree_weights(x, stratum):
    """Events with two drawn photons, weights without the soft ones."""
    p, w = draws(x, stratum, dressed=False)
    if stratum % N_KINDS == NONE:
        w[:] = 0
    live = np.flatnonzero(w > 0)
    w[live] /= soft_factors(p[live], SQRT_S)
    return np.where(w[:, None, None] > 0, p, 1.0), w


def test_fiducial_cross_sections_are_those_of_flat_phase_space():
    """Both wide, one along a beam, both along beams: photons of all kinds of draws."""
    flat = np.array([flat_cross_section(region, 300_000, 1) for region in REGIONS])

    def inside(_, stratum, x):
        p, w = tree_weights(x, stratum)
        return w * np.array([region(p) for region in REGIONS])

    def integrand(rng, stratum, x):
        return (inside(rng, stratum, x) / flat[:, :1]).sum(axis=0)

    total, variance, rng = np.zeros(3), np.zeros(3), np.random.default_rng(2)
    shape = Shape(STRATA.n_strata, 8, rounds=(1_000, 2_000, 3_000))
    for index, stratum in enumerate(adapted_strata(integrand, shape)):
        if stratum.share > 0:
            x, jacobian = stratum.points(rng, 500 + round(200_000 * stratum.share))
            w = inside(rng, index, x) * jacobian
            total, variance = total + w.mean(axis=1), variance + w.var(axis=1) / len(x)
    error = np.hypot(flat[:, 1], np.sqrt(variance))
    assert (error < 0.03 * flat[:, 0]).all(), (total, flat, error)
    assert (np.abs(total - flat[:, 0]) < 3 * error).all(), (total, flat, error)


def test_the_cut_off_between_drawn_and_soft_photons_drops_out():
    """Dimuon pT > 1 GeV, first photon in 33-124 deg: the second is anywhere, or not drawn."""
    barrel = [i for i in range(STRATA.n_strata) if 3 <= i // N_KINDS <= 5]

    def rate(cut_off):
        def integrand(_, index, x):
            p, w = draws(x, barrel[index], cut_off=cut_off)
            pair = p[:, 0] + p[:, 1]
            return w * (np.hypot(pair[:, 0], pair[:, 1]) > 1)

        total, variance, rng = 0.0, 0.0, np.random.default_rng(3)
        shape = Shape(len(barrel), 8, rounds=(1_000, 2_000))
        for index, stratum in enumerate(adapted_strata(integrand, shape)):
            x, jacobian = stratum.points(rng, 500 + round(60_000 * stratum.share))
            w = integrand(rng, index, x) * jacobian
            total, variance = total + w.mean(), variance + w.var() / len(w)
        return total, variance**0.5

    (low, low_error), (high, high_error) = rate(1e-4), rate(4e-3)
    error = np.hypot(low_error, high_error)
    assert error < 0.01 * low
    assert abs(low - high) < 3 * error


def test_the_second_photon_has_the_smaller_pt_and_momentum_is_conserved():
    rng = np.random.default_rng(4)
    for stratum in range(STRATA.n_strata):
        p, w = draws(rng.random((200, 8)), stratum)
        p = p[w > 0]
        assert p.sum(axis=1) == pytest.approx(np.tile([0, 0, 0, SQRT_S], (len(p), 1)), abs=1e-9)
        mass2 = p[..., 3] ** 2 - (p[..., :3] ** 2).sum(-1)
        assert mass2 == pytest.approx(
            np.tile([MUON_MASS_GEV**2] * 2 + [0] * 2, (len(p), 1)), abs=1e-9
        )
        pt = np.hypot(p[..., 0], p[..., 1])
        assert (pt[:, 2] >= pt[:, 3]).all()
        if stratum % N_KINDS != NONE:
            assert p[:, 3, 3].min(initial=1.0) >= 1e-4 * SQRT_S / 2


def test_without_radiation_there_is_one_photon():
    x = np.random.default_rng(5).random((300, 8))
    energy = np.full(len(x), SQRT_S)
    for stratum in range(STRATA.n_strata):
        p, w = lost_photon_draws(
            x, stratum=stratum, sqrt_s_gev=energy, isr=False, to_cm=cm_matrix(SUPERKEKB)
        )
        assert (w > 0).any() == (stratum % N_KINDS == NONE)
        assert (p[:, 3] == 0).all()
