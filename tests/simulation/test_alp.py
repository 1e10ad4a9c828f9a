"""e+ e- -> gamma a, a -> gamma gamma: cross section, angles, mass peak and rows of the ntuple."""

from itertools import permutations
from typing import get_args

import numpy as np
import pytest
import uproot

from analysis.config.samples import SIGNAL_PROCESSES, Simulate
from selection.beams import SUPERKEKB
from simulation.alp import G_INV_GEV, alp_draws, cross_section_fb
from simulation.couplings import ALPHA, FB_GEV2
from simulation.pseudodata import PseudoData
from simulation.radiation import exponent, radiator
from simulation.recipe import SIGNALS, Process, Recipe, SimulationError
from simulation.samples import simulate
from simulation.write import recorded_recipe, write_sample

SQRT_S = 10.58
METRIC = np.array([-1.0, -1.0, -1.0, 1.0])  # order (x, y, z, t)


def levi_civita():
    out = np.zeros((4, 4, 4, 4))
    for order in permutations(range(4)):
        out[order] = np.linalg.det(np.eye(4)[list(order)])
    return out


def by_vertex(s, mass, c):
    """dsigma/dcos [fb] of e g eps(J, eps*, q, k) / s, summed over spins."""
    root = np.sqrt(s)
    e = (s - mass**2) / (2 * root)
    q = METRIC * (0, 0, 0, root)
    k = METRIC * (e * np.sqrt(1 - c**2), 0, e * c, e)
    vertex = np.einsum("mnab,a,b->mn", levi_civita(), q, k)
    # electrons along z: J J* -> 2 s on x and y; photon: sum eps eps* -> -g
    squared = 2 * s * np.einsum("mn,n,mn->", vertex[:2], -METRIC, vertex[:2])
    squared *= 4 * np.pi * ALPHA * G_INV_GEV**2 / s**2
    return FB_GEV2 / (2 * s) / 4 * squared * e / root / (8 * np.pi)


@pytest.mark.parametrize("mass", [0.2, 3.0, 9.0])
def test_cross_section_is_the_integral_of_the_coupling_to_photons(mass):
    node, weight = np.polynomial.legendre.leggauss(4)
    total = sum(w * by_vertex(SQRT_S**2, mass, c) for c, w in zip(node, weight, strict=True))
    assert cross_section_fb(SQRT_S**2, mass) == pytest.approx(total, rel=1e-10)


def draws(mass, *, isr, n=200_000):
    rng = np.random.default_rng(1)
    return alp_draws(rng, mass_gev=mass, sqrt_s_gev=np.full(n, SQRT_S), isr=isr)


def mean(x, weight):
    """Weighted mean and its error."""
    value = (x * weight).sum() / weight.sum()
    return value, np.sqrt(((x - value) ** 2 * weight**2).sum()) / weight.sum()


def test_recoil_photon_goes_as_one_plus_cosine_squared():
    momenta, weight = draws(4.0, isr=False)
    c = momenta[:, 0, 2] / momenta[:, 0, 3]
    error = weight.std() / np.sqrt(len(weight))
    assert weight.mean() == pytest.approx(cross_section_fb(SQRT_S**2, 4.0), abs=4 * error)
    for power in (1, 2, 4):
        exact = (power + 1) % 2 * 0.75 * (1 / (power + 1) + 1 / (power + 3))
        value, error = mean(c**power, weight)
        assert value == pytest.approx(exact, abs=4 * error)


def test_decay_is_isotropic():
    """In the rest frame of the ALP: along its flight, and across the plane of production."""
    mass = 4.0
    momenta, weight = draws(mass, isr=False)
    alp, one = momenta[:, 1] + momenta[:, 2], momenta[:, 1]
    along = (2 * one[:, 3] - alp[:, 3]) / np.linalg.norm(alp[:, :3], axis=1)
    normal = np.cross(alp[:, :3], (0, 0, 1))
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    across = (one[:, :3] * normal).sum(axis=1) / (mass / 2)  # no boost changes it
    for c in (along, across):
        for power, exact in ((1, 0), (2, 1 / 3), (4, 1 / 5)):
            value, error = mean(c**power, weight)
            assert value == pytest.approx(exact, abs=4 * error)
    value, error = mean(along * across, weight)
    assert value == pytest.approx(0, abs=4 * error)


def test_momentum_is_conserved_and_the_pair_has_the_mass_exactly():
    momenta, weight = draws(0.5, isr=True)
    momenta = momenta[weight > 0]
    assert abs(momenta.sum(axis=1) - (0, 0, 0, SQRT_S)).max() < 1e-9
    pair = momenta[:, 1] + momenta[:, 2]
    assert abs((pair**2) @ METRIC - 0.25).max() < 1e-9
    assert abs((momenta**2) @ METRIC).max() < 1e-9
    assert momenta[:, 3, 3].max() > 3  # radiation is there


@pytest.mark.parametrize("mass", [0.5, 8.0])
def test_radiation_folds_the_cross_section_with_the_radiator(mass):
    s, b = SQRT_S**2, exponent(SQRT_S**2)
    u = (np.arange(20_000) + 0.5) / 20_000
    z_max = 1 - mass**2 / s
    z = z_max * u ** (1 / b)
    live = z > 1e-300
    per_u = [radiator(x, b) * x ** (1 - b) * z_max**b / b for x in z[live]]
    folded = (per_u * cross_section_fb(s * (1 - z[live]), mass)).sum() / len(u)
    _, weight = draws(mass, isr=True)
    assert weight.mean() == pytest.approx(folded, abs=4 * weight.std() / np.sqrt(len(weight)))


def pair_mass2(hard, soft):
    """M^2 of two photons (n, 3): p, theta, phi."""
    cosine = np.cos(hard[:, 1]) * np.cos(soft[:, 1])
    cosine += np.sin(hard[:, 1]) * np.sin(soft[:, 1]) * np.cos(hard[:, 2] - soft[:, 2])
    return 2 * hard[:, 0] * soft[:, 0] * (1 - cosine)


N = 20_000


@pytest.fixture(scope="module", params=[0.5, 5.0], ids=lambda m: f"{m} GeV")
def written(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("alp") / "signal.root"
    return write_sample(Recipe("alp", N, 5, mass_gev=request.param), path)


@pytest.fixture(scope="module")
def rows(written):
    return uproot.open(written.path)["variables"].arrays(library="np")


def test_three_rows_share_their_event_and_one_is_right(written, rows):
    n = written.rows // 3
    assert 0.5 * N < n < N
    assert np.array_equal(rows["__event__"], np.repeat(np.arange(n), 3))
    assert np.array_equal(rows["__candidate__"], np.tile([0, 1, 2], n))
    assert set(rows["__ncandidates__"]) == {3}
    assert np.all(rows["is_right_pair"].reshape(n, 3).sum(axis=1) == 1)
    assert np.all(np.diff(rows["recoil_p"].reshape(n, 3), axis=1) <= 0)


def test_right_pairs_peak_at_the_mass_and_wrong_ones_do_not(written, rows):
    mass = recorded_recipe(written.path).mass_gev
    photon = {
        r: np.stack([rows[f"{r}_{x}"] for x in ("p", "theta", "phi")], axis=1).astype(float)
        for r in ("hard", "soft")
    }
    mass2 = pair_mass2(photon["hard"], photon["soft"])
    right = rows["is_right_pair"] == 1
    assert np.median(mass2[right]) == pytest.approx(mass**2, rel=0.01)
    near = abs(mass2 / mass**2 - 1) < 0.1
    assert near[right].mean() > 0.9
    assert near[~right].mean() < 0.1
    assert set(rows["generated_mass"]) == {np.float32(mass)}


def test_weights_of_events_add_up_to_cross_section_times_efficiency(written, rows):
    efficiency = written.rows / 3 / N
    assert written.sum_of_weights_inv_fb == pytest.approx(written.cross_section_fb * efficiency)
    per_event = rows["weight"].reshape(-1, 3)
    assert per_event[:, 0].sum() == pytest.approx(written.sum_of_weights_inv_fb)
    assert np.ptp(rows["weight"]) == 0
    assert written.n_eff == pytest.approx(written.rows / 3)


def test_the_beams_of_the_rows_are_those_of_the_recipe(rows):
    total = np.array([rows[b][0] for b in ("beamPx", "beamPy", "beamPz", "beamE")])
    assert total == pytest.approx(SUPERKEKB.total)
    assert rows["Ecms"][0] == SUPERKEKB.sqrt_s_gev


@pytest.mark.parametrize(("process", "mass"), [("alp", 2.0), ("threegamma", None)])
def test_same_recipe_same_file_and_another_seed_another(tmp_path, process, mass):
    found = []
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        write_sample(Recipe(process, 500, seed, mass_gev=mass), tmp_path / name)
        columns = uproot.open(tmp_path / name)["variables"].arrays(library="np")
        found.append({k: v.tobytes() for k, v in columns.items()})
    assert found[0] == found[1]
    assert found[0]["recoil_p"] != found[2]["recoil_p"]


def test_masses_and_processes_have_streams_of_their_own():
    recipes = [
        Recipe(p, 10, 1, mass_gev=m) for p, m in (("alp", 1.0), ("alp", 1.1), ("signal", 1.0))
    ]
    first = {recipe.generator().random() for recipe in recipes}
    assert len(first) == 3


def test_an_alp_too_heavy_for_three_hard_photons_leaves_no_row():
    sample = simulate(Recipe("alp", 200, 1, mass_gev=10.4))
    assert len(sample.rows) == 0
    assert sample.cross_section_fb > 0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"process": "alp"}, "alp needs 0 < mass_gev < 10.57"),
        ({"process": "alp", "mass_gev": 10.58}, "found 10.58"),
        ({"process": "alp", "mass_gev": 1.0, "parts": 2}, "alp has one file per mass"),
        ({"process": "alp", "mass_gev": 1.0, "max_rows": 9}, "none for signal"),
        ({"process": "threegamma", "mass_gev": 1.0}, "threegamma has no mass_gev"),
    ],
)
def test_impossible_recipes_say_what_is_wrong(settings, said):
    with pytest.raises(SimulationError, match=said):
        Recipe(**{"n_generated": 10, "seed": 1, **settings})


def test_configuration_and_simulation_know_the_same_processes():
    known = get_args(Simulate.model_fields["process"].annotation)
    assert known == (*get_args(Process), PseudoData.process)
    assert SIGNAL_PROCESSES == SIGNALS
