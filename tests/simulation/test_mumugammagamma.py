"""The amplitude of two photons: a second one from explicit matrices, Ward identities, limits."""

from itertools import permutations

import numpy as np
import pytest

from selection.beams import ELECTRON_MASS_GEV, MUON_MASS_GEV
from simulation import mumugamma, mumugammagamma, radiation
from simulation.couplings import ALPHA
from simulation.frames import polar
from simulation.infrared import exponents, soft_factor
from tests.simulation.test_amplitudes import (
    E2,
    METRIC,
    ONE,
    G,
    bar,
    boosted,
    dot,
    sl,
    tup,
    two_body,
)

S = 111.9
ROOT = np.sqrt(S)
M, M_E = MUON_MASS_GEV, ELECTRON_MASS_GEV


def point(rng, s=S):
    """Random k1, k2 and two photons in the rest frame of s, none of them soft."""
    root = np.sqrt(s)
    pair_mass = rng.uniform(2.1 * M, root - 1)
    rest, ka = two_body(rng, np.array([0, 0, 0, root]), rng.uniform(pair_mass + 0.3, root - 0.2), 0)
    pair, kb = two_body(rng, rest, pair_mass, 0)
    return *two_body(rng, pair, M, M), ka, kb


def beams(s=S):
    p = np.sqrt(s / 4 - M_E**2)
    return np.array([0, 0, p, np.sqrt(s) / 2]), np.array([0, 0, -p, np.sqrt(s) / 2])


def line(start, end, m, photons):
    """All orders of photons (momentum, matrix) and one vertex g^mu on a line: four matrices.

    start: momentum along the arrow at its begin (right), end: at its end.
    """
    total = np.zeros((4, 4, 4), complex)
    for mu in range(4):
        for order in permutations([(None, G[mu]), *photons]):
            momentum, matrix = start, ONE
            for i, (k, vertex) in enumerate(order):  # from right to left
                matrix = vertex @ matrix
                # what the virtual photon takes is what is left at the end of the line
                momentum = (
                    momentum - k
                    if k is not None
                    else end + sum((q for q, _ in order[i + 1 :]), np.zeros(4))
                )
                if i < len(order) - 1:
                    matrix = (sl(momentum) + m * ONE) @ matrix / (dot(momentum, momentum) - m**2)
            total[mu] += matrix
    return total


def by_matrices(k1, k2, ka, kb, s=S):
    """Sum over spins of |M|^2 from the twenty diagrams, -g_ab for both photons, traces for spins."""
    p1, p2 = beams(s)
    total = 0
    for a in range(4):
        for b in range(4):
            pa, pb = (ka, G[a]), (kb, G[b])
            x, y = [], []
            for on_electrons, on_muons in (
                ((pa, pb), ()), ((pa,), (pb,)), ((pb,), (pa,)), ((), (pa, pb)),
            ):  # fmt: skip
                q = k1 + k2 + sum((k for k, _ in on_muons), np.zeros(4))
                x.append(line(p1, -p2, M_E, on_electrons))
                y.append(METRIC.diagonal()[:, None, None] * line(-k2, k1, M, on_muons) / dot(q, q))
            x, y = np.concatenate(x), np.concatenate(y)
            left = np.einsum("ij,tjk,kl->til", sl(p2) - M_E * ONE, x, sl(p1) + M_E * ONE)
            right = np.einsum("ij,tjk,kl->til", sl(k1) + M * ONE, y, sl(k2) - M * ONE)
            electrons = np.einsum("tij,uji->tu", left, np.array([bar(m) for m in x]))
            muons = np.einsum("tij,uji->tu", right, np.array([bar(m) for m in y]))
            total += METRIC[a, a] * METRIC[b, b] * (electrons * muons).sum()
    return (E2**4 * total).real


def test_amplitude_agrees_with_the_twenty_diagrams_of_explicit_matrices_to_1e_8():
    rng = np.random.default_rng(1)
    for s in (S, 40.0):
        for _ in range(4):
            k = point(rng, s)
            found = mumugammagamma.squared_amplitude(*tup(*k), s)
            assert found == pytest.approx(by_matrices(*k, s), rel=1e-8)


@pytest.mark.parametrize("dressed", [False, True])
def test_both_photons_couple_to_a_conserved_current(dressed):
    rng = np.random.default_rng(2)
    for _ in range(5):
        k1, k2, ka, kb = tup(*point(rng))
        e = mumugammagamma.transverse(ka), mumugammagamma.transverse(kb)
        typical = mumugammagamma.polarised(k1, k2, (ka, kb), S, e, dressed)
        for wrong, energy in ((((ka, ka), e[1]), ka[3]), ((e[0], (kb, kb)), kb[3])):
            found = mumugammagamma.polarised(k1, k2, (ka, kb), S, wrong, dressed)
            assert found < 1e-18 * typical * energy**2


def test_photons_may_be_exchanged():
    k1, k2, ka, kb = tup(*point(np.random.default_rng(3)))
    one, other = (mumugammagamma.squared_amplitude(k1, k2, *k, S) for k in ((ka, kb), (kb, ka)))
    assert one == pytest.approx(other, rel=1e-12)


def soft_point(energy, direction):
    """Two muons and a photon, and a soft second one that the first muon pair gives way to."""
    rng = np.random.default_rng(4)
    kb = energy * np.array([*direction, 1.0])
    rest = np.array([0, 0, 0, ROOT]) - kb
    pair, ka = two_body(rng, rest, 6.0, 0)
    return *two_body(rng, pair, M, M), ka, kb


@pytest.mark.parametrize("direction", [polar(1.0, 0.4, 1.0), polar(1.0, -0.8, 4.0)])
def test_soft_photon_is_the_eikonal_times_one_photon(direction):
    p1, p2 = beams()
    k1, k2, ka, kb = soft_point(1e-6, direction)
    current = sum(s * p / dot(p, kb) for s, p in ((-1, p1), (1, p2), (1, k1), (-1, k2)))
    expected = mumugamma.squared_amplitude(*tup(k1, k2, ka), S) * E2 * -dot(current, current)
    found = mumugammagamma.squared_amplitude(*tup(k1, k2, ka, kb), S)
    assert found == pytest.approx(expected, rel=1e-5)


def test_exponents_are_the_eikonal_integrated_over_the_direction():
    """All four legs, by a sum over directions that are dense about each of them."""
    k1, k2, *_ = soft_point(1e-6, (0, 0, 1))
    charges = list(zip((-1, 1, 1, -1), (*beams(), k1, k2), strict=True))
    total = 0.0
    nodes, weights = np.polynomial.legendre.leggauss(60)
    phi = (np.arange(60) + 0.5) * np.pi / 30
    for _, p in charges:  # partition of the sphere: each leg with its share of the peaks
        axis = p[:3] / np.linalg.norm(p[:3])
        side = np.cross(axis, (0.6, 0.0, 0.8))
        side /= np.linalg.norm(side)
        beta = np.linalg.norm(p[:3]) / p[3]
        span = -np.log1p(-beta) + np.log(2)  # u: 1 - beta c = (1 - beta) e^u
        u = span * (nodes[:, None] + 1) / 2
        c = (1 - (1 - beta) * np.exp(u)) / beta
        st = np.sqrt(np.maximum(0, (1 - c) * (1 + c)))
        n = c[..., None] * axis + st[..., None] * (
            np.cos(phi)[:, None] * side + np.sin(phi)[:, None] * np.cross(axis, side)
        )
        near = [q[3] - n @ q[:3] for _, q in charges]
        inverse = [1 / d for d in near]
        share = (1 / (p[3] - np.linalg.norm(p[:3]) * c)) / sum(inverse)
        j = sum(s * q / d[..., None] for (s, q), d in zip(charges, near, strict=True))
        square = (j[..., :3] ** 2).sum(-1) - j[..., 3] ** 2
        dc = (1 - beta) * np.exp(u) / beta * span / 2 * weights[:, None]
        total += (square * share * dc).sum() * 2 * np.pi / 60
    found = sum(exponents(*tup(k1, k2), ROOT))
    assert found == pytest.approx(ALPHA / (4 * np.pi**2) * total, rel=2e-3)


def test_exponent_of_the_beams_is_that_of_the_radiator():
    k1, k2, *_ = soft_point(1e-6, (0, 0, 1))
    assert exponents(*tup(k1, k2), ROOT)[0] == pytest.approx(radiation.exponent(S), rel=1e-6)


def test_soft_photons_of_the_beams_are_the_soft_part_of_the_radiator():
    """Without the muons (b_mu, b_int taken away) the factor is b z^b (1 + 3b/4 + ...) / b."""
    k1, k2, *_ = soft_point(1e-6, (0, 0, 1))
    b_e, b_mu, b_int = exponents(*tup(k1, k2), ROOT)
    z, unit = 1e-3, ALPHA / np.pi * (np.pi**2 / 3 - 0.5)
    both = soft_factor(*tup(k1, k2), ROOT, z * ROOT / 2)
    muons = (z * ROOT / 2 / np.sqrt(k1[3] * k2[3])) ** (b_mu + b_int / 2) * z ** (b_int / 2)
    virtual = (1 + 0.75 * (b_e + b_mu) + 2 * unit) / (1 + 0.75 * b_e + unit)
    expected = radiation.radiator_norm(z, b_e) + b_e * (z - z**2 / 4)
    assert both / muons / virtual == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("z", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("end", [1, -1])
def test_photon_along_a_beam_is_the_radiator_times_one_photon_at_reduced_energy(z, end):
    """Integrated over angles up to 0.02: alpha/(2 pi) (1 + (1-z)^2)/z [L] |M_1(s')|^2 / (1-z).

    Half of b (1/z - 1 + z/2) is one beam's share of H at order alpha; inside a cone the logarithm
    is that of the cone: ln(1 + (E theta/m)^2) - (1-z)/(...) of the mass term.
    """
    rng, cone = np.random.default_rng(5), 0.02
    energy, w = ROOT / 2, z * ROOT / 2
    gamma = energy / M_E
    # what is left: a beam of (1-z) E against one of E
    rest = np.array([0, 0, -end * w, ROOT - w])
    pair, ka = two_body(rng, rest, 0.6 * np.sqrt(S * (1 - z)), 0)
    k1, k2 = two_body(rng, pair, M, M)
    velocity = -rest[:3] / rest[3]
    born = [boosted(p, velocity) for p in (k1, k2, ka)]
    expected = mumugamma.squared_amplitude(*tup(*born), S * (1 - z)) / (1 - z)
    # sum over a thin cone; the rest of the event is turned back by the small kick of the photon
    u = np.linspace(0, np.log1p((gamma * cone) ** 2), 60)
    theta = np.sqrt(np.expm1(u)) / gamma
    values = [_kicked(t, w, end, rest, (k1, k2, ka)) for t in theta]
    # d^3k / (2 w (2 pi)^3) = w^2 dz/z theta dtheta dphi / (2 (2 pi)^3); theta dtheta = e^u du / 2g^2
    density = np.array(values) * np.exp(u) / (2 * gamma**2)
    found = w**2 / (2 * (2 * np.pi) ** 3) / z * 2 * np.pi * np.trapezoid(density, u)
    log = np.log1p((gamma * cone) ** 2)
    split = (1 + (1 - z) ** 2) / z * log - 2 * (1 - z) / z * (1 - np.exp(-log))
    assert found / expected == pytest.approx(ALPHA / (2 * np.pi) * split, rel=0.02)


def _kicked(theta, w, end, rest, others):
    """|M|^2 averaged over two azimuths; the others as in the collinear limit, moved with the rest."""
    total = 0.0
    for phi in (0.3, 0.3 + np.pi):
        n = polar(1.0, np.cos(theta), phi)
        kb = w * np.array([n[0], n[1], end * n[2], 1.0])
        new = np.array([0, 0, 0, ROOT]) - kb
        moved = [boosted(boosted(p, -rest[:3] / rest[3]), new[:3] / new[3]) for p in others]
        # the masses of rest and new differ by second order in theta: energies scaled to match
        k1, k2, ka = moved
        scale = np.sqrt(dot(new, new) / dot(rest, rest))
        assert abs(scale - 1) < 1e-3
        total += mumugammagamma.squared_amplitude(*tup(k1, k2, ka, kb), S) / 2
    return total
