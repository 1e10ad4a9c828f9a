"""Cross sections against published numbers and against integrations that share no code."""

import numba
import numpy as np
import pytest

from selection.beams import MUON_MASS_GEV, SUPERKEKB, cm_matrix
from simulation import eemumu, lost_photons
from simulation.couplings import ALPHA, FB_GEV2
from simulation.detector import electron_missed
from simulation.frames import lab_matrix
from simulation.grid import Shape, adapted_strata
from simulation.signal import signal_draws
from simulation.taupair import tau_pairs
from simulation.vacuum_polarisation import running

SQRT_S = 10.58


@pytest.mark.parametrize(("mass", "published_fb"), [(0.5, 2026), (2.0, 346), (5.0, 20.2)])
def test_signal_cross_section_without_radiation(mass, published_fb):
    rng = np.random.default_rng(1)
    w = signal_draws(
        rng, mass_gev=mass, sqrt_s_gev=np.full(1_500_000, SQRT_S), isr=False, fsr=False
    ).weight_fb
    w /= running(SQRT_S**2) ** 2  # the published numbers are at tree level
    error = w.std() / np.sqrt(len(w))
    assert error < 0.0025 * published_fb
    assert w.mean() == pytest.approx(published_fb, rel=0.005)
    assert w.max() < 12 * w.mean()  # bounded: plain rejection makes unweighted events


def test_tau_pair_cross_section_is_that_of_belle_2():
    rng = np.random.default_rng(2)
    energy = np.full(200_000, SUPERKEKB.sqrt_s_gev)
    assert tau_pairs(
        rng, sqrt_s_gev=energy, isr=True, fsr=True
    ).cross_section_fb.mean() == pytest.approx(0.919e6, rel=0.02)


def massless_mumugamma(p1, p2, k1, k2, k):
    """Average |M|^2 of F. A. Berends and R. Kleiss, Nucl. Phys. B177 (1981) 237, massless."""

    def dot(a, b):
        return a[..., 3] * b[..., 3] - (a[..., :3] * b[..., :3]).sum(-1)

    s, pair = 2 * dot(p1, p2), 2 * dot(k1, k2)
    t, tt, u, uu = -2 * dot(p1, k1), -2 * dot(p2, k2), -2 * dot(p1, k2), -2 * dot(p2, k1)
    v = sum(sign * p / dot(p, k)[..., None] for sign, p in ((-1, p1), (1, p2), (1, k1), (-1, k2)))
    return (4 * np.pi * ALPHA) ** 3 * -dot(v, v) * (t**2 + tt**2 + u**2 + uu**2) / (s * pair)


def in_mumugamma_region(plus, minus, photon):
    """Photon pT > 1 GeV, dimuon mass > 3 GeV, muons 37 deg from it: m_mu is nothing."""

    def cosine(a, b):
        return (a[:, :3] * b[:, :3]).sum(1) / (
            np.linalg.norm(a[:, :3], axis=1) * np.linalg.norm(b[:, :3], axis=1)
        )

    pt = np.hypot(photon[:, 0], photon[:, 1])
    both = plus + minus
    mass2 = both[:, 3] ** 2 - (both[:, :3] ** 2).sum(1)
    clear = (pt > 1) & (mass2 > 9)
    return clear & (cosine(plus, photon) < 0.8) & (cosine(minus, photon) < 0.8)


def test_mumugamma_cross_section_against_flat_massless_integration():
    rng = np.random.default_rng(3)
    n, s, root = 400_000, SQRT_S**2, SQRT_S
    e1, e2 = rng.random(n) * root / 2, rng.random(n) * root / 2
    e3 = root - e1 - e2
    with np.errstate(all="ignore"):
        c12 = (e3**2 - e1**2 - e2**2) / (2 * e1 * e2)
    ok = np.abs(c12) < 1
    e1, e2, e3, c12 = e1[ok], e2[ok], e3[ok], c12[ok]
    m = len(e1)
    axis = rng.normal(size=(m, 3))
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    side = np.cross(axis, rng.normal(size=(m, 3)))
    side /= np.linalg.norm(side, axis=1)[:, None]
    a = e1[:, None] * axis
    b = e2[:, None] * (c12[:, None] * axis + np.sqrt(1 - c12**2)[:, None] * side)
    k1, k2 = np.column_stack([a, e1]), np.column_stack([b, e2])
    k = np.column_stack([-(a + b), e3])
    p1 = np.broadcast_to([0, 0, root / 2, root / 2], (m, 4))
    p2 = np.broadcast_to([0, 0, -root / 2, root / 2], (m, 4))
    phase_space = (root / 2) ** 2 / (4 * (2 * np.pi) ** 3)
    w = np.zeros(n)
    w[:m] = np.where(
        in_mumugamma_region(k2, k1, k),
        FB_GEV2 / (2 * s) * massless_mumugamma(p1, p2, k1, k2, k) * phase_space,
        0,
    )
    flat, flat_error = w.mean(), w.std() / np.sqrt(n)

    total, variance = 0.0, 0.0
    for stratum in range(lost_photons.STRATA.n_strata):
        x = rng.random((20_000, 8))
        momenta, weight = lost_photons.lost_photon_draws(
            x,
            stratum=stratum,
            sqrt_s_gev=np.full(len(x), root),
            isr=False,
            to_cm=cm_matrix(SUPERKEKB),
            dressed=False,
        )
        inside = (weight > 0) & in_mumugamma_region(
            *(np.where(weight[:, None] > 0, momenta[:, i], 1.0) for i in range(3))
        )
        f = np.where(inside, weight, 0)
        total, variance = total + f.mean(), variance + f.var() / len(f)
    error = np.hypot(flat_error, np.sqrt(variance))
    assert error < 0.02 * flat
    assert abs(total - flat) < 3 * error


def test_eemumu_total_is_that_of_belle_2():
    """Belle II quotes 18.9 nb for W > 0.5 GeV (all diagrams); the two-photon part is most of it."""
    stratum = adapted_strata(
        lambda _, __, x: eemumu.total_weights(x, SQRT_S, 0.5),
        Shape(n_strata=1, n_dim=8, rounds=(20_000, 30_000, 50_000)),
    )[0]
    x, jacobian = stratum.points(np.random.default_rng(4), 200_000)
    w = eemumu.total_weights(x, SQRT_S, 0.5) * jacobian
    assert w.std() / np.sqrt(len(w)) < 0.005 * w.mean()
    assert w.mean() == pytest.approx(18.9e6, rel=0.03)


LOW, HIGH = 1 - np.cos(np.radians(5)), 1 - np.cos(np.radians(17))


def in_eemumu_region(plus, minus):
    """W > 2 GeV and muons more than 37 deg from z: the photons are near z."""
    pair = plus + minus
    mass2 = pair[3] ** 2 - pair[:3] @ pair[:3]
    if mass2 < 4:
        return False
    return abs(plus[2] / np.linalg.norm(plus[:3])) < 0.8 and abs(minus[2]) < 0.8 * np.linalg.norm(
        minus[:3]
    )


def test_eemumu_cross_section_against_equivalent_integration_in_momenta():
    """Both electrons at 5-17 deg: drawn in E' and cos(theta), flat muon angles, no logarithms."""
    rng = np.random.default_rng(5)
    energy = SQRT_S / 2
    own = []
    out = np.empty((4, 4))
    for _ in range(20_000):
        x = rng.random(8)
        w1, w2, weight = eemumu.photon_energies(x[0], x[1], SQRT_S, 0.5)
        t1, weight1 = eemumu.log_t(x[2], w1, energy, LOW, HIGH)
        t2, weight2 = eemumu.log_t(x[4], w2, energy, LOW, HIGH)
        weight *= weight1 * weight2
        if weight > 0:
            one = eemumu.leg_at(t1, w1, 2 * np.pi * x[3], energy)
            two = eemumu.leg_at(t2, w2, 2 * np.pi * x[5], energy)
            weight *= eemumu.muon_pair(x[6:], SQRT_S, one, two, out)
        own.append(weight if weight > 0 and in_eemumu_region(out[0], out[1]) else 0.0)
    other = [_flat_eemumu(rng, energy) for _ in range(50_000)]
    a, b = np.array(own), np.array(other)
    error = np.hypot(a.std() / np.sqrt(len(a)), b.std() / np.sqrt(len(b)))
    assert error < 0.065 * a.mean()
    assert abs(a.mean() - b.mean()) < 3 * error


def _flat_eemumu(rng, energy):
    e = rng.random(2) * energy
    c = 1 - rng.uniform(LOW, HIGH, 2)
    phi = rng.uniform(0, 2 * np.pi, 2)
    st = np.sqrt(1 - c**2)
    one = np.array([e[0] * st[0] * np.cos(phi[0]), e[0] * st[0] * np.sin(phi[0]), e[0] * c[0]])
    two = np.array([e[1] * st[1] * np.cos(phi[1]), e[1] * st[1] * np.sin(phi[1]), -e[1] * c[1]])
    q1 = np.array([*(np.array([0, 0, energy]) - one), energy - e[0]])
    q2 = np.array([*(np.array([0, 0, -energy]) - two), energy - e[1]])
    pair = q1 + q2
    mass2 = pair[3] ** 2 - pair[:3] @ pair[:3]
    if mass2 < 4:
        return 0.0
    beta = np.sqrt(1 - 4 * MUON_MASS_GEV**2 / mass2)
    n = rng.normal(size=3)
    p = np.sqrt(mass2) / 2 * beta * n / np.linalg.norm(n)
    k1, k2 = _lab(p, pair, mass2), _lab(-p, pair, mass2)
    if not in_eemumu_region(k2, k1):
        return 0.0
    t1, t2 = (q[3] ** 2 - q[:3] @ q[:3] for q in (q1, q2))
    # P = p - (E / q0) q as it stands: at these angles nothing cancels
    p1 = np.array([0, 0, energy]) - energy / q1[3] * q1[:3]
    p2 = np.array([0, 0, -energy]) - energy / q2[3] * q2[:3]
    amplitude = eemumu.squared_amplitude(
        *(tuple(map(float, v)) for v in (k1, k2, q1, q2, p1, p2)), t1, t2
    )
    legs = np.prod(e / 2) * (energy * (HIGH - LOW) * 2 * np.pi) ** 2 / (2 * np.pi) ** 6
    return FB_GEV2 / (8 * SQRT_S**2) * amplitude * legs * beta / (8 * np.pi)


def _lab(p, pair, mass2):
    velocity = pair[:3] / pair[3]
    gamma = pair[3] / np.sqrt(mass2)
    e = np.sqrt(mass2) / 2
    bp = velocity @ p
    return np.array([*(p + velocity * (gamma**2 / (gamma + 1) * bp + gamma * e)), gamma * (e + bp)])


@numba.njit
def _plain_eemumu(x, sqrt_s, to_lab):
    """Weights [fb] with nothing but logarithms of energies and t: same region, electrons missed."""
    weight, out = np.zeros(len(x)), np.empty((4, 4))
    for i in range(len(x)):
        w1, w2, w = eemumu.photon_energies(x[i, 0], x[i, 1], sqrt_s, 0.1)
        t1, weight1 = eemumu.log_t(x[i, 2], w1, 0.5 * sqrt_s, 0.0, 1.0)
        t2, weight2 = eemumu.log_t(x[i, 4], w2, 0.5 * sqrt_s, 0.0, 1.0)
        if weight1 <= 0 or weight2 <= 0:
            continue
        one = eemumu.leg_at(t1, w1, 2 * np.pi * x[i, 3], 0.5 * sqrt_s)
        two = eemumu.leg_at(t2, w2, 2 * np.pi * x[i, 5], 0.5 * sqrt_s)
        w *= weight1 * weight2 * eemumu.muon_pair(x[i, 6:], sqrt_s, one, two, out)
        w *= (running(-t1) * running(-t2)) ** 2
        pair = out[0] + out[1]
        if w > 0 and np.hypot(pair[0], pair[1]) > eemumu.MIN_DIMUON_PT_GEV:
            weight[i] = w
            for j in (2, 3):
                p = to_lab @ out[j]
                theta = np.arctan2(np.hypot(p[0], p[1]), p[2])
                weight[i] *= electron_missed(theta)
    return weight


def _rate(integrand, shape, n, seed):
    """(sum over strata, its error), from adapted grids."""
    total, variance, rng = 0.0, 0.0, np.random.default_rng(seed)
    for index, stratum in enumerate(adapted_strata(integrand, shape)):
        if stratum.share > 0:
            x, jacobian = stratum.points(rng, round(n * stratum.share))
            w = integrand(rng, index, x) * jacobian
            total, variance = total + w.mean(), variance + w.var() / len(w)
    return total, variance**0.5


def test_the_strata_of_eemumu_hold_the_rate_of_plain_coordinates():
    """The thresholds, levers and thirds of the sampling change where points go, not the rate."""
    to_lab = lab_matrix(SUPERKEKB)

    def strata(_, index, x):
        energy = np.full(len(x), SQRT_S)
        return eemumu.eemumu_draws(x, stratum=index, sqrt_s_gev=energy, to_lab=to_lab)[1]

    found, error = _rate(strata, eemumu.STRATA, 600_000, 6)
    shape = Shape(n_strata=1, n_dim=8, rounds=(100_000, 200_000, 300_000, 400_000))
    plain, plain_error = _rate(lambda _, __, x: _plain_eemumu(x, SQRT_S, to_lab), shape, 800_000, 7)
    assert np.hypot(error, plain_error) < 0.02 * found
    assert abs(found - plain) < 3 * np.hypot(error, plain_error)


def test_the_least_photon_energy_is_that_of_the_muon_threshold():
    """Four-momenta of both legs at the end of the interval add up to W = 2 m_mu."""
    energy, rng = SQRT_S / 2, np.random.default_rng(9)
    for _ in range(50):
        w_hard, phi, pt = rng.uniform(0.1, 3), rng.uniform(0, 6), rng.uniform(0.02, 0.5)
        t = eemumu.log_t(rng.random(), w_hard, energy, 0.002, 0.02)[0]
        one = eemumu.leg_at(t, w_hard, phi, energy)
        both = np.array([one[3][0] + pt, one[3][1]])
        w, _ = eemumu.beyond_threshold(0.0, pt, both @ both, one[1], energy)
        e = energy - w
        k = np.sqrt(e**2 - eemumu.ELECTRON_MASS_GEV**2 - pt**2)
        pz = one[1][2] - (np.sqrt(energy**2 - eemumu.ELECTRON_MASS_GEV**2) - k)
        W2 = (w_hard + w) ** 2 - both @ both - pz**2
        assert abs(W2 - 4 * MUON_MASS_GEV**2) < 1e-9
