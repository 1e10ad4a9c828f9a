"""Matrix elements against traces of explicit 4x4 Dirac matrices, Ward identities and limits."""

import numpy as np
import pytest

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from simulation import eemumu, mumugamma, signal
from simulation.couplings import ALPHA

M = MUON_MASS_GEV
E2 = 4 * np.pi * ALPHA
METRIC = np.diag([-1.0, -1.0, -1.0, 1.0])  # order (x, y, z, t)


def dirac_matrices():
    """gamma^mu (x, y, z, t) in the Dirac basis: not the basis of the kernels."""
    one, none = np.eye(2), np.zeros((2, 2))
    pauli = np.array([[[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]])
    space = [np.block([[none, s], [-s, none]]) for s in pauli]
    return np.array([*space, np.block([[one, none], [none, -one]])])


G = dirac_matrices()
ONE = np.eye(4)


def sl(a):
    return np.einsum("m,mij->ij", METRIC @ np.asarray(a), G)


def bar(matrix):
    return G[3] @ matrix.conj().T @ G[3]


def dot(a, b):
    return float(np.asarray(a) @ METRIC @ np.asarray(b))


def boosted(p, velocity):
    gamma = 1 / np.sqrt(1 - velocity @ velocity)
    bp = velocity @ p[:3]
    space = p[:3] + velocity * (gamma**2 / (gamma + 1) * bp + gamma * p[3])
    return np.array([*space, gamma * (p[3] + bp)])


def two_body(rng, total, m1, m2):
    w2 = dot(total, total)
    w = np.sqrt(w2)
    e = (w2 + m1**2 - m2**2) / (2 * w)
    n = rng.normal(size=3)
    p = np.sqrt(e**2 - m1**2) * n / np.linalg.norm(n)
    velocity = total[:3] / total[3]
    return boosted(np.array([*p, e]), velocity), boosted(np.array([*-p, w - e]), velocity)


def mumu_and(rng, s, mass):
    """Random k1, k2, q in the rest frame of s: q of the given mass."""
    pair_mass = rng.uniform(2.1 * M, np.sqrt(s) - mass - 0.1)
    pair, q = two_body(rng, np.array([0, 0, 0, np.sqrt(s)]), pair_mass, mass)
    k1, k2 = two_body(rng, pair, M, M)
    return k1, k2, q


def emission(k1, k2, q):
    """Gamma^{a m}: vector a off an outgoing muon line made by vector m."""
    one, two = sl(k1 + q) + M * ONE, -sl(k2 + q) + M * ONE
    d1, d2 = dot(k1 + q, k1 + q) - M**2, dot(k2 + q, k2 + q) - M**2
    return np.array([[a @ one @ m / d1 + m @ two @ a / d2 for m in G] for a in G])


def signal_by_traces(k1, k2, q, s, g):
    half = np.sqrt(s) / 2
    p1, p2 = np.array([0, 0, half, half]), np.array([0, 0, -half, half])
    gamma = emission(k1, k2, q)
    left, right = sl(k1) + M * ONE, sl(k2) - M * ONE
    total = 0
    for m in range(4):
        for n in range(4):
            beams = np.trace(sl(p2) @ G[m] @ sl(p1) @ G[n]) * METRIC[m, m] * METRIC[n, n]
            for a in range(4):
                muons = np.trace(left @ gamma[a, m] @ right @ bar(gamma[a, n]))
                total -= METRIC[a, a] * beams * muons
    return (E2**2 * g**2 / s**2 * total).real


def mumugamma_by_traces(k1, k2, k, s):
    half = np.sqrt(s) / 2
    p1, p2 = np.array([0, 0, half, half]), np.array([0, 0, -half, half])
    pair = k1 + k2
    gamma = emission(k1, k2, k)
    d1, d2 = -2 * dot(p1, k), -2 * dot(p2, k)
    beam = [[m @ sl(p1 - k) @ a / d1 + a @ sl(k - p2) @ m / d2 for m in G] for a in G]
    left, right = sl(k1) + M * ONE, sl(k2) - M * ONE
    total = 0
    for a in range(4):
        # M_a = sum over terms (beam matrix) x (muon matrix)
        terms = [(beam[a][m], G[m] * METRIC[m, m] / dot(pair, pair)) for m in range(4)]
        terms += [(G[m] * METRIC[m, m] / s, gamma[a, m]) for m in range(4)]
        for x, y in terms:
            for xx, yy in terms:
                beams = np.trace(sl(p2) @ x @ sl(p1) @ bar(xx))
                total -= METRIC[a, a] * beams * np.trace(left @ y @ right @ bar(yy))
    return (E2**3 * total).real


def eemumu_by_traces(k1, k2, legs):
    """legs: (p, p_out) of both; lepton tensors without any shift."""
    tensors, photons = [], []
    m_e = ELECTRON_MASS_GEV
    for p, p_out in legs:
        incoming, outgoing = sl(p) + m_e * ONE, sl(p_out) + m_e * ONE
        tensors.append(np.array([[np.trace(outgoing @ a @ incoming @ b) for b in G] for a in G]))
        photons.append(p - p_out)
    q1, q2 = photons
    a, b = k1 - q1, k1 - q2
    fa, fb = (sl(a) + M * ONE) / (dot(a, a) - M**2), (sl(b) + M * ONE) / (dot(b, b) - M**2)
    gamma = np.array([[m @ fa @ n + n @ fb @ m for n in G] for m in G])
    left, right = sl(k1) + M * ONE, sl(k2) - M * ONE
    half = np.einsum("ij,mnjk,kl->mnil", left, gamma, right)
    conj = np.array([[bar(gamma[m, n]) for n in range(4)] for m in range(4)])
    muons = np.einsum("mnij,abji->mnab", half, conj)
    lower = [METRIC @ t @ METRIC for t in tensors]
    total = np.einsum("ma,nb,mnab->", lower[0], lower[1], muons)
    return (E2**4 * total / (dot(q1, q1) * dot(q2, q2)) ** 2).real


def tup(*vectors):
    return tuple(tuple(float(c) for c in v) for v in vectors)


def test_signal_amplitude_agrees_with_traces_to_1e_10():
    rng = np.random.default_rng(1)
    for mass in (0.1, 2.0, 5.0, 8.9):
        for _ in range(3):
            k1, k2, q = mumu_and(rng, 111.9, mass)
            expected = signal_by_traces(k1, k2, q, 111.9, 0.1)
            assert signal.squared_amplitude(*tup(k1, k2, q), 111.9, 0.1) == pytest.approx(
                expected, rel=1e-10
            )


def test_signal_current_is_conserved():
    rng = np.random.default_rng(2)
    j = (1 + 0j, 1j, 0j, 0j)
    for mass in (0.1, 4.0):
        k1, k2, q = mumu_and(rng, 111.9, mass)
        typical = signal.squared_current(*tup(k1, k2, q), j, (1.0, 0.0, 0.0, 0.0)) * q[3] ** 2
        assert signal.squared_current(*tup(k1, k2, q), j, tup(q)[0]) < 1e-20 * typical


def test_signal_scales_with_the_square_of_the_coupling():
    k = tup(*mumu_and(np.random.default_rng(3), 111.9, 2.0))
    one, two = (signal.squared_amplitude(*k, 111.9, g) for g in (0.1, 0.3))
    assert two == pytest.approx(9 * one, rel=1e-12)


@pytest.mark.parametrize(("x1", "x2"), [(0.7, 0.8), (0.9, 0.5), (0.6, 0.65)])
def test_light_vector_is_the_final_state_photon_of_qed(x1, x2):
    """dsigma/dx1 dx2 = sigma_0 a'/(2 pi) (x1^2 + x2^2) / ((1-x1)(1-x2)) for massless fermions."""
    s = 111.9
    e1, e2 = x1 * np.sqrt(s) / 2, x2 * np.sqrt(s) / 2
    p1, p2 = np.sqrt(e1**2 - M**2), np.sqrt(e2**2 - M**2)
    e3 = np.sqrt(s) - e1 - e2
    c12 = (e3**2 - p1**2 - p2**2) / (2 * p1 * p2)
    plane = np.array([[0, 0, p1], [p2 * np.sqrt(1 - c12**2), 0, p2 * c12]])
    nodes, weights = np.polynomial.legendre.leggauss(4)
    total = 0.0
    for c, w in zip(nodes, weights, strict=True):
        for turn in np.arange(6) * np.pi / 3:  # quadratic in the beam's direction: exact
            st = np.sqrt(1 - c * c)
            about_y = np.array([[c, 0, st], [0, 1, 0], [-st, 0, c]])
            ct, sn = np.cos(turn), np.sin(turn)
            about_z = np.array([[ct, -sn, 0], [sn, ct, 0], [0, 0, 1]])
            a, b = plane @ (about_y @ about_z).T
            k = tup([*a, e1], [*b, e2], [*-(a + b), e3])
            total += w / 12 * signal.squared_amplitude(*k, s, 0.1)
    born = 4 * np.pi * ALPHA**2 / (3 * s)
    coupling = 0.1**2 / (4 * np.pi)
    expected = born * coupling / (2 * np.pi) * (x1**2 + x2**2) / ((1 - x1) * (1 - x2))
    assert total / (2 * s) / 4 * s / (128 * np.pi**3) == pytest.approx(expected, rel=0.01)


def test_soft_vector_couples_to_the_classical_current():
    s, half = 111.9, np.sqrt(111.9) / 2
    direction = np.array([0.6, 0.0, 0.8]) * np.sqrt(half**2 - M**2)
    k1, k2 = np.array([*direction, half]), np.array([*-direction, half])
    n = np.array([0.0, 0.6, -0.8])
    q = 1e-5 * np.array([*n, 1.0])
    eikonal = k1 / dot(k1, q) - k2 / dot(k2, q)
    gamma2 = half**2 / M**2
    born = 4 * E2**2 * (1 + 0.8**2 + (1 - 0.8**2) / gamma2)  # sum over spins of |M(mu mu)|^2
    expected = born * 0.1**2 * -dot(eikonal, eikonal)
    found = signal.squared_amplitude(*tup(k1, k2, q), s, 0.1)
    assert found == pytest.approx(expected, rel=1e-4)


def test_mumugamma_amplitude_agrees_with_traces_to_1e_9():
    rng = np.random.default_rng(4)
    for s in (111.9, 40.0):
        for _ in range(3):
            k1, k2, k = mumu_and(rng, s, 0.0)
            expected = mumugamma_by_traces(k1, k2, k, s)
            assert mumugamma.squared_amplitude(*tup(k1, k2, k), s) == pytest.approx(
                expected, rel=1e-9
            )


def test_beams_and_muons_radiate_gauge_invariantly_each_for_itself():
    rng = np.random.default_rng(5)
    k1, k2, k = mumu_and(rng, 111.9, 0.0)
    for photons in ((1.0, 0.0), (0.0, 1.0), (0.7, 0.3)):  # off the beams, off the muons, both
        typical = mumugamma.contracted(*tup(k1, k2, k), 111.9, (1.0, 0.0, 0.0, 0.0), photons)
        found = mumugamma.contracted(*tup(k1, k2, k), 111.9, tup(k)[0], photons)
        assert found < 1e-20 * typical * k[3] ** 2


def eemumu_point(rng, least_versine):
    energy = 5.29
    w = rng.uniform(0.5, 3, size=2)
    t = [eemumu.log_t(rng.random(), w_leg, energy, least_versine, 2.0)[0] for w_leg in w]
    one = eemumu.leg_at(t[0], w[0], rng.uniform(0, 6), energy)
    two = eemumu.leg_at(t[1], w[1], rng.uniform(0, 6), energy)
    q1, q2 = np.array(one[1]), np.array(eemumu.mirrored(two[1]))
    shifted = one[2], (two[2][0], -two[2][1], -two[2][2])
    outgoing = np.array(one[3]), np.array(eemumu.mirrored(two[3]))
    total = q1 + q2
    if dot(total, total) < 4.1 * M**2:
        return eemumu_point(rng, least_versine)
    k1, k2 = two_body(rng, total, M, M)
    return k1, k2, (q1, q2), shifted, (one[0], two[0]), outgoing


def test_eemumu_amplitude_agrees_with_traces_without_the_shift():
    rng = np.random.default_rng(6)
    p = np.sqrt(5.29**2 - ELECTRON_MASS_GEV**2)
    beams = np.array([0, 0, p, 5.29]), np.array([0, 0, -p, 5.29])
    for _ in range(6):
        k1, k2, q, shifted, t, out = eemumu_point(rng, 1e-3)
        expected = eemumu_by_traces(k1, k2, list(zip(beams, out, strict=True)))
        found = eemumu.squared_amplitude(*tup(k1, k2, *q), *shifted, *t)
        assert found == pytest.approx(expected, rel=1e-6)


def test_muon_tensor_is_gauge_invariant_for_both_photons():
    rng = np.random.default_rng(7)
    k1, k2, q, _, _, _ = eemumu_point(rng, 1e-3)
    tensor = np.zeros((4, 4), complex)
    for spins in ((0, 0), (0, 1), (1, 0), (1, 1)):
        eemumu.muon_tensor(*tup(k1, k2, *q), spins, tensor)
        size = np.abs(tensor).max()
        assert np.abs((METRIC @ q[0]) @ tensor).max() < 1e-11 * size * q[0][3]
        assert np.abs(tensor @ (METRIC @ q[1])).max() < 1e-11 * size * q[1][3]


def test_quasi_real_photons_give_the_flux_formula():
    """As t -> 0 one leg's |M|^2 / (t-independent) goes as the transverse photon flux: finite t |M|^2.

    8 PP + 2 t g has size t: |M|^2 ~ 1/t, not 1/t^2, so t |M|^2 of a leg is constant for
    m_e^2 << t << m_mu^2.
    """
    k = []
    for versine in (1e-6, 1e-7):
        t1, t2 = (eemumu.log_t(0.0, w, 5.29, versine, 2.0)[0] for w in (2.0, 1.5))
        one, two = eemumu.leg_at(t1, 2.0, 0.3, 5.29), eemumu.leg_at(t2, 1.5, 1.0, 5.29)
        q1, q2 = np.array(one[1]), np.array(eemumu.mirrored(two[1]))
        k1, k2 = two_body(np.random.default_rng(8), q1 + q2, M, M)
        p2 = (two[2][0], -two[2][1], -two[2][2])
        amplitude = eemumu.squared_amplitude(*tup(k1, k2, q1, q2), one[2], p2, -t1, -t2)
        k.append(amplitude * t1 * t2)
    assert k[0] == pytest.approx(k[1], rel=0.05)
