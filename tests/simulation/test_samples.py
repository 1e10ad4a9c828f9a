"""Samples: weights that can be trusted, the same events from the same recipe."""

import numpy as np
import pytest

from selection.beams import SUPERKEKB
from simulation import samples
from simulation.grid import Shape, adapted_strata
from simulation.recipe import Recipe, SimulationError, recipe_from
from simulation.samples import simulate

BACKGROUNDS = {"taupair": 60_000, "mumugamma": 40_000, "eemumu": 120_000}


def n_eff(w):
    return w.sum() ** 2 / (w**2).sum()


@pytest.fixture(scope="module")
def backgrounds():
    return {p: simulate(Recipe(p, n, 1)) for p, n in BACKGROUNDS.items()}


@pytest.mark.parametrize("process", BACKGROUNDS)
def test_weights_are_finite_positive_and_none_carries_the_sample(backgrounds, process):
    w = backgrounds[process].rows.weight
    assert len(w) > 5_000
    assert np.isfinite(w).all()
    assert w.min() > 0
    assert n_eff(w) > 0.5 * len(w)
    assert w.max() < 0.01 * w.sum()


@pytest.mark.parametrize("process", BACKGROUNDS)
def test_parts_are_independent_and_add_up_to_the_sample(backgrounds, process):
    n = BACKGROUNDS[process] // 2
    parts = [simulate(Recipe(process, n, 1, part=i, parts=2)).rows.weight for i in range(2)]
    whole = backgrounds[process].rows.weight
    assert len(parts[0]) != len(parts[1])
    total, error = np.concatenate(parts), np.sqrt((whole**2).sum())
    # each error underestimates a heavy tail not yet met: 5 of the combined ones
    assert total.sum() == pytest.approx(
        whole.sum(), abs=5 * np.hypot(error, np.sqrt((total**2).sum()))
    )


def test_thinning_keeps_the_rate_and_leaves_rows_light_where_they_are_few(backgrounds):
    n, rows = BACKGROUNDS["mumugamma"], backgrounds["mumugamma"].rows
    full = rows.weight
    thinned = simulate(Recipe("mumugamma", n, 1, max_rows=3_000)).rows
    thin = thinned.weight
    assert len(thin) == pytest.approx(3_000, abs=4 * np.sqrt(3_000))
    assert thin.sum() == pytest.approx(full.sum(), abs=4 * np.sqrt((thin**2).sum()))
    assert thin.max() >= full.max()  # nothing is clipped
    # a window of the recoil mass holds B events, and a row may weigh a share of sqrt(B)
    edges = np.linspace(-2, 80, 10)
    at, before = (np.digitize(recoil_mass2(r), edges) for r in (thinned, rows))
    rate = np.bincount(before, full, minlength=11)[1:10]
    typical = np.array([np.median(thin[at == i]) for i in range(1, 10)])
    share = typical / np.sqrt(rate)
    assert share.max() / share.min() < 1.5
    assert typical.max() / typical.min() > 1.5  # even weights would not do


def recoil_mass2(rows):
    px, py, pz, e = (np.array(SUPERKEKB.total) - rows.seen.sum(axis=1)).T
    return e**2 - px**2 - py**2 - pz**2


@pytest.mark.parametrize("process", ["signal", *BACKGROUNDS])
def test_same_recipe_same_events_and_another_seed_others(process):
    mass = 2.0 if process == "signal" else None
    first, again, other = (
        simulate(Recipe(process, 3_000, seed, mass_gev=mass)).rows for seed in (1, 1, 2)
    )
    assert np.array_equal(first.seen, again.seen)
    assert np.array_equal(first.weight, again.weight)
    assert not np.array_equal(first.seen[:50], other.seen[:50])


def test_masses_have_streams_of_their_own():
    a, b = (Recipe("signal", 10, 1, mass_gev=m).generator().random(4) for m in (1.0, 1.1))
    assert not np.array_equal(a, b)


def test_signal_is_unweighted_and_exactly_as_many_as_asked():
    sample = simulate(Recipe("signal", 4_321, 1, mass_gev=0.5))
    assert np.ptp(sample.rows.weight) == 0
    assert sample.rows.weight[0] == pytest.approx(sample.cross_section_fb / 4_321)
    assert len(sample.rows) < 4_321
    assert sample.cross_section_error_fb < 0.02 * sample.cross_section_fb


def test_muon_charges_are_treated_alike_up_to_interference():
    """Signal has no charge asymmetry in energy: mean E of mu+ equals that of mu-."""
    rows = simulate(Recipe("signal", 20_000, 1, mass_gev=4.0, isr=False)).rows
    difference = rows.true[:, 0, 3] - rows.true[:, 1, 3]
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(rows))


def test_true_momenta_are_muons_unless_pions_fake_them():
    rows = simulate(Recipe("mumugamma", 20_000, 1)).rows
    mass2 = rows.true[..., 3] ** 2 - (rows.true[..., :3] ** 2).sum(-1)
    assert mass2 == pytest.approx(0.10566**2, abs=1e-5)


def test_adapted_grid_keeps_the_integral_and_lowers_the_variance():
    """A narrow peak in two dimensions, times 1 and 100 in two strata: exact integral known."""

    def peak(_, stratum, x):
        return 100.0**stratum * np.exp(-((x - 0.3) ** 2).sum(1) / (2 * 0.01**2))

    shape = Shape(n_strata=2, n_dim=2, rounds=(20_000, 20_000, 20_000, 20_000))
    strata = adapted_strata(peak, shape)
    rng = np.random.default_rng(1)
    total, variance, flat = 0.0, 0.0, 0.0
    for index, stratum in enumerate(strata):
        x, jacobian = stratum.points(rng, 20_000)
        f = peak(rng, index, x) * jacobian
        total, variance = total + f.mean(), variance + f.var() / len(f)
        flat += peak(rng, index, rng.random((20_000, 2))).var() / 20_000
    exact = 101 * 2 * np.pi * 0.01**2
    assert total == pytest.approx(exact, abs=4 * np.sqrt(variance))
    assert variance < 1e-2 * flat
    assert strata[1].share > 0.9


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"process": "mumu"}, "no process 'mumu'; known: signal"),
        ({"process": "signal"}, "signal needs 0 < mass_gev"),
        ({"process": "signal", "mass_gev": 10.5}, "found 10.5"),
        ({"process": "signal", "mass_gev": float("nan")}, "found nan"),
        ({"process": "signal", "mass_gev": 1.0, "parts": 2}, "one file per mass"),
        ({"process": "taupair", "mass_gev": 1.0}, "only signal has one"),
        ({"process": "taupair", "n_generated": 0}, "n_generated = 0 must be positive"),
        ({"process": "taupair", "part": 2, "parts": 2}, "part = 2 below parts = 2"),
        ({"process": "taupair", "max_rows": 0}, "max_rows = 0 must be positive"),
        ({"process": "taupair", "sqrt_s_spread_gev": 1.0}, "between 0 and 0.1"),
    ],
)
def test_impossible_recipes_say_what_is_wrong(settings, said):
    with pytest.raises(SimulationError, match=said):
        Recipe(**{"n_generated": 10, "seed": 1, **settings})


def test_recipe_survives_storage():
    recipe = Recipe("taupair", 10, 3, part=1, parts=4, isr=False, beams=SUPERKEKB, max_rows=7)
    assert recipe_from(recipe.settings()) == recipe
    with pytest.raises(SimulationError, match="are not those of this version"):
        recipe_from({"process": "taupair"})


def test_one_heavy_row_does_not_lift_the_floor_of_its_file():
    """It would make every other row of the file as heavy as the floor."""
    light = np.random.default_rng(1).uniform(0.5, 1.5, 10_000)
    without = samples._floor(light, 4_000)
    assert samples._floor(np.append(light, 1e6), 4_000) == pytest.approx(without, rel=1e-3)
    # and the floor does what it says: about max_rows stay
    assert np.minimum(1, light / without).sum() == pytest.approx(4_000, rel=1e-3)
