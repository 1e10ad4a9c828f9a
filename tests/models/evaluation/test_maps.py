import numpy as np
import pytest

from models.evaluation.figures_of_merit import Quoting, quote, split_events
from models.evaluation.maps import MapBins, decision_boundary, logit, score_maps
from models.network import PunziNet
from models.sensitivity import PunziFormula
from models.trained import Conditions, from_network
from selection.table import EventTable, Folds
from selection.windows import MassWindows
from tests.dimuon import FEATURES, SEARCH

WINDOWS = MassWindows(np.array([1.0, 2.0, 3.0]), np.full(3, 0.3), 2.0, squared=True)
LOW, HIGH = np.array([0, 0, -6, 1.0]), np.array([5, 6, 2, 5.0])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    n = 4000
    mass = rng.choice([np.nan, 1.0, 2.0, 3.0], n)
    return EventTable(
        features=rng.uniform(LOW, HIGH, (n, 4)).astype(np.float32),
        axis=np.where(np.isnan(mass), rng.uniform(-1, 15, n), mass**2),
        weight=rng.uniform(0.1, 1, n),
        signal_mass_gev=mass,
        sample=np.zeros(n, np.int16),
        key=rng.integers(0, 2**63, n, dtype=np.uint64),
        identity=rng.integers(0, 2**32, n, dtype=np.uint32),
        sample_names=("all",),
        feature_names=FEATURES,
    )


@pytest.fixture(scope="module")
def model():
    conditions = Conditions("punzi", 0.5, 10.58, 50.0, {}, {}, {})
    net = PunziNet(LOW, HIGH, seed=3)
    return from_network(
        net, search=SEARCH, windows=WINDOWS, trained=np.ones(3, bool), conditions=conditions
    )


def test_maps_hold_all_the_weight_of_their_component(table, model):
    split = split_events(table, WINDOWS, trained=np.ones(3, bool), folds=Folds(1, 0.5))
    cuts = quote(
        split, [model.score(table.features)], np.array([[0.5, 0.2, 1.0]]),
        name=("punzi", 0, "best_cut"), quoted_on="validation", quoting=Quoting(PunziFormula(50.0)),
    )  # fmt: skip
    signal, background = score_maps(
        table, model.logits(table.features), cuts, bins=MapBins(), squared=True
    )
    assert signal.content.sum() == pytest.approx(table.weight[table.is_signal].sum())
    assert background.content.sum() == pytest.approx(table.weight[~table.is_signal].sum())
    assert signal.cut_logit[:2] == pytest.approx([0, np.log(0.25)])
    assert np.isnan(signal.cut_logit[2])


def test_logit_is_the_inverse_of_the_sigmoid():
    z = np.linspace(-20, 20, 41)
    assert logit(1 / (1 + np.exp(-z))) == pytest.approx(z, rel=1e-6)
    assert np.isnan(logit(np.array([0.0, 1.0, np.nan]))).all()


THREE = FEATURES[:3]


def test_the_grid_of_the_boundary_is_the_network(table, model):
    view = decision_boundary(model, table, (1.0, 3.0), free=THREE, n_grid=5, max_points=50)
    assert (view.free, view.fixed) == (THREE, FEATURES[3:])
    i, j, k = 1, 4, 2
    corner = [view.grid[0, i], view.grid[1, j], view.grid[2, k], view.fixed_value[0]]
    assert view.score[i, j, k] == pytest.approx(model.score(np.array([corner]))[0])
    assert np.array_equal(np.unique(view.point_mass_gev), [1.0, 3.0])
    assert (np.unique(view.point_mass_gev, return_counts=True)[1] <= 50).all()


@pytest.mark.parametrize("free", [("pt_mumu",), ("pt_mumu", "pt_thrust")])
def test_any_features_can_be_free_in_any_order(table, model, free):
    view = decision_boundary(model, table, (1.0, 2.0), free=free, n_grid=4)
    assert view.fixed == tuple(name for name in FEATURES if name not in free)
    assert view.score.shape == (4,) * len(free)
    at = dict(zip(view.fixed, view.fixed_value, strict=True))
    for k in np.ndindex(view.score.shape):
        free_at = {name: view.grid[i, k[i]] for i, name in enumerate(free)}
        point = np.array([[{**at, **free_at}[name] for name in FEATURES]])
        assert view.score[k] == pytest.approx(model.score(point)[0])


def test_what_is_fixed_is_the_median_of_the_signal_shown_rounded(table, model):
    view = decision_boundary(model, table, (1.0,), free=THREE, n_grid=2)
    shown = table.features[table.signal_mass_gev == 1.0, 3]
    assert view.fixed_value[0] == pytest.approx(np.median(shown), abs=0.05)
    assert view.fixed_value[0] == round(view.fixed_value[0], 1)  # spans 4 GeV
    other = decision_boundary(model, table.take(table.features[:, 3] > 4), (1.0,), free=THREE)
    assert other.fixed_value[0] > 4


def test_the_points_do_not_depend_on_the_order_of_the_table(table, model):
    order = np.random.default_rng(2).permutation(len(table))
    one, two = (
        decision_boundary(model, t, (2.0,), free=THREE, n_grid=3, max_points=20)
        for t in (table, table.take(order))
    )
    assert len(one.point) == 20
    assert np.array_equal(one.point, two.point)


def test_a_score_beyond_the_axis_is_shown_at_its_end(table, model):
    """Half of the events far below, half far above: first and last column hold all the weight."""
    above = np.arange(len(table)) % 2 == 0
    cuts = quote(
        split_events(table, WINDOWS, trained=np.ones(3, bool), folds=Folds(1, 0.5)),
        [model.score(table.features)], np.full((1, 3), 0.5), name=("punzi", 0, "best_cut"),
        quoted_on="validation", quoting=Quoting(PunziFormula(50.0)),
    )  # fmt: skip
    bins = MapBins(n_logit=10, n_mass=20, mass_max_gev=5.0, logit_range=(-4.0, 6.0))
    maps = score_maps(table, np.where(above, 99.0, -99.0), cuts, bins=bins, squared=True)
    for found, rows in zip(maps, (table.is_signal, ~table.is_signal), strict=True):
        assert found.content.shape == (10, 20)
        columns = found.content.sum(axis=1)
        assert columns[0] == pytest.approx(table.weight[rows & ~above].sum())
        assert columns[-1] == pytest.approx(table.weight[rows & above].sum())
        assert (columns[1:-1] == 0).all()


def test_an_event_stands_at_its_mass_and_one_below_zero_at_zero(table, model):
    cuts = quote(
        split_events(table, WINDOWS, trained=np.ones(3, bool), folds=Folds(1, 0.5)),
        [model.score(table.features)], np.full((1, 3), 0.5), name=("punzi", 0, "best_cut"),
        quoted_on="validation", quoting=Quoting(PunziFormula(50.0)),
    )  # fmt: skip
    bins = MapBins(n_logit=4, n_mass=8, mass_max_gev=4.0)
    logits = model.logits(table.features)
    signal, background = score_maps(table, logits, cuts, bins=bins, squared=True)
    rows = signal.content.sum(axis=0)
    for mass in (1.0, 2.0, 3.0):  # lower edges of bins of 0.5 GeV
        expected = table.weight[table.signal_mass_gev == mass].sum()
        assert rows[round(mass / 0.5)] == pytest.approx(expected)
    low = ~table.is_signal & (table.axis < 0.25)
    assert (table.axis[low] < 0).any()
    assert background.content.sum(axis=0)[0] == pytest.approx(table.weight[low].sum())
    _, plain = score_maps(table, logits, cuts, bins=bins, squared=False)  # the axis is the mass
    low = ~table.is_signal & (table.axis < 0.5)
    assert plain.content.sum(axis=0)[0] == pytest.approx(table.weight[low].sum())


def test_the_grid_spans_the_points_and_a_tenth_more(table, model):
    view = decision_boundary(model, table, (1.0, 2.0), free=THREE, n_grid=3, max_points=30)
    low, high = view.point.min(axis=0), view.point.max(axis=0)
    margin = 0.1 * (high - low)
    assert view.grid[:, 0] == pytest.approx(np.maximum(low - margin, LOW[:3]))
    assert view.grid[:, -1] == pytest.approx(np.minimum(high + margin, HIGH[:3]))
    assert view.cut == 0.5


def near_the_plane(table, mass_gev, middle):
    """Signal of a mass within a quarter of the middle 68 % of the fourth feature."""
    shown = table.signal_mass_gev == mass_gev
    low, high = np.quantile(table.features[shown, 3], [0.16, 0.84])
    return shown & (np.abs(table.features[:, 3] - middle) <= 0.25 * (high - low))


def test_points_lie_near_the_plane_that_is_shown(table, model):
    view = decision_boundary(model, table, (1.0,), free=THREE, n_grid=2, max_points=10**6)
    near = near_the_plane(table, 1.0, view.fixed_value[0])
    assert len(view.point) == near.sum()
    assert 0 < near.sum() < (table.signal_mass_gev == 1.0).sum() / 2
    order = np.argsort(table.key[near])
    assert np.array_equal(view.point, table.features[near][order][:, :3])


@pytest.mark.parametrize("n", [0, 1, 2])
def test_with_less_than_two_points_the_grid_is_that_of_the_training(table, model, n):
    """All features free: every event is near."""
    few = table.take(np.flatnonzero(table.signal_mass_gev == 1.0)[:n])
    view = decision_boundary(model, few, (1.0,), free=FEATURES, n_grid=2)
    ends = np.stack([view.grid[:, 0], view.grid[:, -1]])
    assert len(view.point) == n
    assert np.allclose(ends, np.stack([LOW, HIGH])) is (n < 2)
