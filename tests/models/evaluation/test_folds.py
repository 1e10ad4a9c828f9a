"""Folds: nobody judges what it was trained on, and together they judge everything once."""

import sys
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from models.evaluation.figures_of_merit import Quoting, figures_of_merit, quote, split_events
from models.export import basf2_recipe, export_onnx, fold_path
from models.network import PunziNet
from models.scoring import mean_and_spread
from models.sensitivity import PunziFormula
from models.trained import (
    Conditions,
    from_network,
    joined_folds,
    load_model,
    save_model,
    scores_of,
    with_cut,
)
from models.training import loop
from models.training.ensemble import Member, checkpoint_path, train_ensemble
from models.training.loop import train_network
from models.training.settings import DEFAULT, TrainingSettings, with_equal_budget
from models.training.training_set import training_sets
from selection.keys import event_identities
from selection.table import EventTable, Folds
from selection.windows import MassWindows
from tests.dimuon import SEARCH

CANDIDATES = 3
FORMULA = PunziFormula(50.0)
PLAIN = Quoting(FORMULA, add_one_event=False)
SOME = [Folds(1, 0.3), Folds(2), Folds(5)]
SEVERAL = [Folds(2), Folds(5)]


def name_of(folds):
    return f"{folds.count} folds"


@pytest.fixture(scope="module")
def table(toy_windows):
    """Three candidates per event; the first feature is the number of the row."""
    rng = np.random.default_rng(4)
    n_events = 2000
    columns = {
        "run": np.repeat(rng.integers(0, 9, n_events), CANDIDATES),
        "event": np.repeat(np.arange(n_events), CANDIDATES),
    }
    n = n_events * CANDIDATES
    mass = np.repeat(rng.choice([np.nan, np.nan, *toy_windows.mass_gev], n_events), CANDIDATES)
    signal = np.isfinite(mass)
    features = rng.normal(0, 1, (n, 4))
    features[:, 3] += 2 * signal
    features[:, 0] = np.arange(n)
    return EventTable(
        features=features.astype(np.float32),
        axis=np.where(signal, mass**2 + rng.normal(0, 0.3, n), rng.uniform(-1, 11, n)),
        weight=np.where(signal, 1e-3, rng.exponential(0.5, n)),
        signal_mass_gev=mass,
        sample=(~signal).astype(np.int16),
        key=np.arange(n, dtype=np.uint64),
        identity=event_identities(columns, n),
        sample_names=("signal", "background"),
        feature_names=SEARCH.feature_names,
    )


def trained_rows(table, windows, folds):
    """Rows of the table that the network of each fold is trained on."""
    return [
        training_sets(table, windows, luminosity_inv_fb=50.0, folds=folds, fold=k)[0].features[0]
        for k in range(folds.count)
    ]


def splits_of(table, windows, folds):
    return split_events(table, windows, trained=np.ones(len(windows), bool), folds=folds)


def rows_of(events):
    return np.concatenate([events.signal_row, events.background_row])


def judged_rows(table, windows, folds):
    return [rows_of(split.judged) for split in splits_of(table, windows, folds)]


def known_events(table, trained, judged):
    """Identities that a fold judges although its network was trained on one of their candidates."""
    return {
        (k, int(event))
        for k, (own, others) in enumerate(zip(trained, judged, strict=True))
        for event in np.intersect1d(table.identity[own.astype(int)], table.identity[others])
    }


@pytest.mark.parametrize("folds", SOME, ids=name_of)
def test_no_event_is_judged_by_a_network_that_was_trained_on_a_candidate_of_it(
    table, toy_windows, folds
):
    trained = trained_rows(table, toy_windows, folds)
    judged = judged_rows(table, toy_windows, folds)
    assert all(len(rows) for rows in (*trained, *judged))
    assert known_events(table, trained, judged) == set()


@pytest.mark.parametrize("folds", SOME, ids=name_of)
def test_cuts_are_chosen_on_events_that_the_fold_does_not_judge(table, toy_windows, folds):
    splits = splits_of(table, toy_windows, folds)
    chosen_on = [rows_of(split.training) for split in splits]
    assert known_events(table, chosen_on, [rows_of(split.judged) for split in splits]) == set()


def test_a_network_of_the_wrong_fold_would_be_seen(table, toy_windows):
    folds = Folds(5)
    trained = trained_rows(table, toy_windows, folds)
    judged = judged_rows(table, toy_windows, folds)
    trained[3] = trained[2]
    found = known_events(table, trained, judged)
    assert {k for k, _ in found} == {3}
    assert {event for _, event in found} == set(table.identity[judged[3]].tolist())


def test_a_single_candidate_that_strays_into_the_training_would_be_seen(table, toy_windows):
    folds = Folds(5)
    judged = judged_rows(table, toy_windows, folds)
    stray = int(judged[1][0])  # with other candidates that stay
    identity = table.identity.copy()
    identity[stray] = identity[judged[0][0]]
    trained = trained_rows(replace(table, identity=identity), toy_windows, folds)
    assert known_events(table, trained, judged) == {(1, int(table.identity[stray]))}


@pytest.mark.parametrize("folds", SEVERAL, ids=name_of)
def test_the_folds_judge_every_event_exactly_once(table, toy_windows, folds):
    (whole,) = splits_of(table, toy_windows, Folds(1, 0.3))
    everything = np.sort(np.concatenate([rows_of(whole.training), rows_of(whole.judged)]))
    judged = np.sort(np.concatenate(judged_rows(table, toy_windows, folds)))
    assert np.array_equal(judged, everything)


@pytest.mark.parametrize("folds", SEVERAL, ids=name_of)
def test_of_a_constant_score_the_folds_add_up_to_all_weights(table, toy_windows, folds):
    splits = splits_of(table, toy_windows, folds)
    scores, cuts = [np.full(len(table), 0.5)] * folds.count, np.full((folds.count, 6), 0.5)
    f = quote(splits, scores, cuts, name=("x", 0, "s"), quoted_on="validation", quoting=PLAIN)
    inside = (toy_windows.low[:, None] < table.axis) & (table.axis < toy_windows.high[:, None])
    own = inside & (table.signal_mass_gev == toy_windows.mass_gev[:, None])
    assert f.efficiency == pytest.approx(own @ table.weight, rel=1e-12)
    background = inside & ~table.is_signal
    assert f.background == pytest.approx(background @ table.weight, rel=1e-12)
    assert f.background_error**2 == pytest.approx(background @ table.weight**2, rel=1e-12)
    n = 1 / 1e-3
    eps = f.efficiency
    assert f.efficiency_error == pytest.approx(np.sqrt(eps * (1 - eps) / n), rel=1e-9)


@pytest.mark.parametrize("folds", SEVERAL, ids=name_of)
def test_one_more_event_is_that_of_all_folds_together(table, toy_windows, folds):
    splits = splits_of(table, toy_windows, folds)
    scores, cuts = [np.full(len(table), 0.5)] * folds.count, np.full((folds.count, 6), 0.5)
    inside = (toy_windows.low[:, None] < table.axis) & (table.axis < toy_windows.high[:, None])
    w = (inside & ~table.is_signal) * table.weight
    for part in ("validation", "training"):
        f = quote(
            splits, scores, cuts, name=("x", 0, "s"), quoted_on=part, quoting=Quoting(FORMULA)
        )
        assert f.added_background == pytest.approx((w**2).sum(axis=1) / w.sum(axis=1), rel=1e-12)


def test_each_fold_has_its_own_cut_and_the_record_holds_them_all(table, toy_windows):
    folds = Folds(2)
    splits = splits_of(table, toy_windows, folds)
    score = np.where(folds.of(table.identity) == 0, 0.3, 0.6)
    cuts = np.array([np.full(6, 0.2), np.full(6, 0.7)])  # all of the first fold, none of the second
    f = quote(splits, [score] * 2, cuts, name=("x", 0, "s"), quoted_on="validation", quoting=PLAIN)
    assert np.array_equal(f.fold_cuts, cuts)
    assert f.cut == pytest.approx(np.full(6, 0.45))
    alone = quote(
        splits, [score] * 2, np.zeros((2, 6)), name=("x", 0, "s"), quoted_on="validation",
        quoting=PLAIN,
    )  # fmt: skip
    assert (f.background > 0).all()
    assert (f.background < alone.background).all()
    inside = (toy_windows.low[:, None] < table.axis) & (table.axis < toy_windows.high[:, None])
    rows = (folds.of(table.identity) == 0) & ~table.is_signal
    assert f.background == pytest.approx((inside & rows) @ table.weight, rel=1e-12)


def memories(table, folds):
    """Networks that know every event they were trained on, and nothing of any other."""
    fold = folds.of(table.identity)
    return [
        np.where(fold == k, 0.5, np.where(table.is_signal, 1.0, 0.0)) for k in range(folds.count)
    ]


@pytest.mark.parametrize("folds", SOME, ids=name_of)
def test_a_memory_of_the_training_has_no_benefit(table, toy_windows, folds):
    splits, n = splits_of(table, toy_windows, folds), folds.count
    quoting = replace(PLAIN, single_cut=0.5)

    def quoted(scores):
        made = figures_of_merit(splits, scores, classifier="punzi", network=0, quoting=quoting)
        return {(f.selection, f.quoted_on): f for f in made}

    memory, nothing = quoted(memories(table, folds)), quoted([np.full(len(table), 0.5)] * n)
    one = ("single_cut", "validation")
    for name in ("efficiency", "background", "sigma_min_fb"):
        assert np.array_equal(getattr(memory[one], name), getattr(nothing[one], name))
    assert (memory["single_cut", "training"].background == 0).all()  # it does remember
    assert np.isinf(memory["best_cut", "validation"].sigma_min_fb).all()
    if n > 1:  # judged by one that knows them, the same events look free of background
        known = quoted(np.roll(memories(table, folds), 1, axis=0))
        assert (known[one].background == 0).all()
        assert (known[one].sigma_min_fb < memory[one].sigma_min_fb).all()


def test_the_fold_of_an_event_knows_neither_candidate_nor_order_nor_piece():
    rng = np.random.default_rng(3)
    n = 3000
    columns = {
        "experiment": np.full(n, 7), "run": rng.integers(0, 50, n),
        "event": rng.permutation(n), "production": rng.integers(0, 3, n),
        "candidate": rng.integers(0, 4, n),
    }  # fmt: skip
    whole = event_identities(columns, n)
    assert np.array_equal(event_identities(columns | {"candidate": np.zeros(n, int)}, n), whole)
    order = rng.permutation(n)
    shuffled = event_identities({k: v[order] for k, v in columns.items()}, n)
    assert np.array_equal(shuffled, whole[order])
    pieces = [
        event_identities({k: v[a:b] for k, v in columns.items()}, b - a, start=a)
        for a, b in ((0, 1), (1, 1234), (1234, n))
    ]
    assert np.array_equal(np.concatenate(pieces), whole)
    for name in ("experiment", "run", "event", "production"):
        other = event_identities(columns | {name: columns[name] + 10_000}, n)
        assert (other != whole).mean() > 0.999
    counts = np.bincount(Folds(5).of(whole), minlength=5)
    assert counts == pytest.approx(np.full(5, n / 5), abs=5 * np.sqrt(n * 0.16))


def test_without_event_numbers_the_entry_in_the_file_stands_for_them():
    whole = event_identities({"run": np.full(500, 3)}, 500)
    assert len(np.unique(whole)) == 500
    pieces = [event_identities({}, b - a, start=a) for a, b in ((0, 99), (99, 100), (100, 500))]
    assert np.array_equal(np.concatenate(pieces), whole)
    assert np.array_equal(whole, event_identities({"event": np.arange(500)}, 500))


LOW, HIGH = np.array([0, 0, -6, 1.0]), np.array([5, 6, 2, 5.0])
CONDITIONS = Conditions("punzi", None, 10.58, 50.0, {}, {"seed": 3}, {})


def fold_models(n_folds, *, hidden=(8, 4), seed=1):
    """Steep networks with different scalings, one per fold."""
    windows = MassWindows(np.array([1.0, 2.0]), np.array([0.2, 0.2]), 2.0, squared=True)
    made = []
    for k in range(n_folds):
        net = PunziNet(LOW - 0.1 * k, HIGH + 0.2 * k, hidden=hidden, seed=seed + 10 * k)
        for parameter in net.parameters():
            parameter.data.mul_(4)
        made.append(
            from_network(
                net, search=SEARCH, windows=windows, trained=np.ones(2, bool), conditions=CONDITIONS
            )
        )
    return made


def inputs(n, n_folds, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(LOW, HIGH, (n, 4)).astype(np.float32), rng.integers(0, n_folds, n)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_an_event_has_the_score_of_the_network_of_its_fold(n_folds):
    alone = fold_models(n_folds)
    whole, (x, fold) = with_cut(joined_folds(alone), 0.6), inputs(2000, n_folds)
    wanted = np.choose(fold, [m.score(x) for m in alone])
    assert np.array_equal(whole.score(x, fold), wanted)
    assert np.array_equal(whole.logits(x, fold), np.choose(fold, [m.logits(x) for m in alone]))
    assert np.array_equal(whole.passes(x, fold), wanted.astype(float) >= 0.6)
    assert len({float(m.score(x)[0]) for m in alone}) == n_folds
    order = np.random.default_rng(1).permutation(2000)
    assert np.array_equal(whole.score(x[order], fold[order]), wanted[order])


def test_a_model_with_folds_comes_back_whole(tmp_path):
    sent = with_cut(joined_folds(fold_models(3)), 0.7)
    save_model(sent, tmp_path / "net")
    back, (x, fold) = load_model(tmp_path / "net"), inputs(500, 3)
    assert (back.n_folds, back.cut) == (3, 0.7)
    assert back.conditions == sent.conditions
    assert np.array_equal(back.score(x, fold), sent.score(x, fold))
    for one, other in zip(back.networks, sent.networks, strict=True):
        for a, b in zip((*one.weights, *one.biases), (*other.weights, *other.biases), strict=True):
            assert np.array_equal(a, b)
        assert np.array_equal(one.feature_min, other.feature_min)
        assert np.array_equal(one.feature_max, other.feature_max)
    save_model(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "net").read_bytes()


@pytest.mark.parametrize("fold", [None, np.zeros(9, np.int8), 0], ids=["none", "another n", "one"])
def test_a_model_asked_without_folds_says_what_to_give(fold):
    whole, (x, _) = joined_folds(fold_models(3)), inputs(10, 3)
    for ask in (whole.score, whole.logits, with_cut(whole, 0.5).passes):
        with pytest.raises(ValueError, match=r"3 networks, one per fold: .*model\.fold_of"):
            ask(x, fold)


def test_the_folds_of_a_model_are_those_of_the_training():
    identity = np.random.default_rng(2).integers(0, 2**32, 5000, dtype=np.uint32)
    for n in (2, 5):
        model = joined_folds(fold_models(n))
        assert np.array_equal(model.fold_of(identity), Folds(n).of(identity))
    (single,) = fold_models(1)
    assert (single.fold_of(identity) == 0).all()
    x, _ = inputs(20, 1)
    assert np.array_equal(single.score(x), single.score(x, single.fold_of(identity[:20])))


def test_an_ensemble_of_folds_has_the_mean_and_spread_of_its_members():
    members = [joined_folds(fold_models(3, seed=s)) for s in (1, 2, 3)]
    x, fold = inputs(300, 3)
    scores = np.array([m.score(x, fold) for m in members], float)
    mean, spread = mean_and_spread(scores_of(members, x, fold))
    assert mean == pytest.approx(scores.mean(axis=0), abs=1e-7)
    assert spread == pytest.approx(scores.std(axis=0, ddof=1), abs=1e-7)


@pytest.mark.parametrize(("n_folds", "hidden"), [(2, (8, 4)), (5, (8, 4)), (3, (5,))])
def test_one_graph_gives_the_scores_of_all_folds(n_folds, hidden, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    whole = with_cut(joined_folds(fold_models(n_folds, hidden=hidden)), 0.5)
    written = export_onnx(whole, tmp_path / "net.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    x, fold = inputs(3000, n_folds)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    (entry,) = session.get_inputs()
    assert entry.shape == ["n", 5]
    (score,) = session.run(None, {entry.name: np.column_stack([x, fold]).astype(np.float32)})
    assert np.abs(score[:, 0] - whole.score(x, fold)).max() < 1e-6
    for k in range(n_folds):
        alone = onnxruntime.InferenceSession(fold_path(tmp_path / "net.onnx", k))
        assert alone.get_inputs()[0].shape == ["n", 4]
        (score,) = alone.run(None, {entry.name: x})
        assert np.abs(score[:, 0] - whole.score(x, np.full(len(x), k))).max() < 1e-6


class Store:
    """Stands for a StoreObj of basf2."""

    def __init__(self, content=None):
        self.content = content

    def registerInDataStore(self):  # noqa: N802  (basf2's name)
        pass

    def isValid(self):  # noqa: N802
        return self.content is not None

    def create(self):
        self.content = SimpleNamespace(found={})
        self.content.setExtraInfo = self.content.found.__setitem__

    def obj(self):
        return self.content


@pytest.mark.parametrize("n_folds", [2, 5])
def test_the_module_for_basf2_finds_the_same_folds(n_folds, monkeypatch):
    """The lines of the recipe themselves, with event numbers of the full range."""
    recipe = basf2_recipe(with_cut(joined_folds(fold_models(n_folds)), 0.5), "net.onnx")
    assert '"eventExtraInfo(fold)"]' in recipe
    begin, end = recipe.index("import basf2\n"), recipe.index("weightfile =")
    stores = {}
    for name, words in {
        "basf2": {"Module": object},
        "ROOT": {"Belle2": SimpleNamespace(PyStoreObj=lambda name: stores[name])},
    }.items():
        module = ModuleType(name)
        vars(module).update(words)
        monkeypatch.setitem(sys.modules, name, module)
    place = {}
    exec(recipe[begin:end], place)  # noqa: S102
    rng = np.random.default_rng(6)
    n = 400
    columns = {
        "experiment": rng.choice([0, 7, 1003], n), "run": rng.integers(0, 2**14, n),
        "event": rng.integers(0, 2**32, n), "production": rng.integers(0, 2**32, n),
    }  # fmt: skip
    found = []
    for i in range(n):
        about = SimpleNamespace(
            **{f"get{k.title()}": lambda v=int(v[i]): v for k, v in columns.items()}
        )
        stores |= {"EventMetaData": Store(about), "EventExtraInfo": Store()}
        module = place["Fold"]()
        module.initialize()
        module.event()
        found.append(stores["EventExtraInfo"].content.found["fold"])
    assert found == Folds(n_folds).of(event_identities(columns, n)).tolist()
    assert set(found) == set(range(n_folds))


BCE, PUNZI = DEFAULT.stages
SETTINGS = TrainingSettings(
    stages=(replace(BCE, epochs=3, batch_size=256), replace(PUNZI, epochs=5, refine=3))
)
EQUAL = with_equal_budget(SETTINGS)


def weights(network):
    return torch.nn.utils.parameters_to_vector(network.parameters())


def test_the_equal_budget_is_that_of_the_punzi_stage_from_the_network_after_bce():
    first, punzi, equal = EQUAL.stages
    assert (first, punzi) == SETTINGS.stages
    assert equal == replace(punzi, name="bce_equal", loss="bce", begins_with="bce")
    assert (EQUAL.outcome, SETTINGS.outcome) == ("punzi", "punzi")


def test_the_equal_budget_starts_from_the_network_after_bce(toy_sets):
    without = replace(
        EQUAL, stages=(*SETTINGS.stages, replace(EQUAL.stages[2], epochs=0, refine=0))
    )
    result = train_network(*toy_sets(), without, seed=2)
    assert torch.equal(weights(result.after["bce_equal"]), weights(result.after["bce"]))
    assert not torch.equal(weights(result.after["bce"]), weights(result.after["punzi"]))
    whole = train_network(*toy_sets(), EQUAL, seed=2)
    assert not torch.equal(weights(whole.after["bce_equal"]), weights(whole.after["bce"]))
    rows = whole.history
    end, begin = (
        rows.validation_loss[np.flatnonzero(rows.stage == stage)[at]]
        for stage, at in ((0, -1), (2, 0))
    )
    assert begin == pytest.approx(end, rel=1e-6)


def test_the_punzi_net_is_the_same_with_and_without_the_equal_budget(toy_sets):
    with_it, without = (train_network(*toy_sets(), s, seed=2) for s in (EQUAL, SETTINGS))
    for name in ("bce", "punzi"):
        assert torch.equal(weights(with_it.after[name]), weights(without.after[name]))
    assert torch.equal(weights(with_it.final), weights(without.after["punzi"]))
    assert (with_it.status, with_it.reasons) == (without.status, without.reasons)


def test_a_stage_can_begin_with_an_earlier_one_only():
    late = replace(BCE, begins_with="punzi")
    for stages in ((late, PUNZI), (replace(BCE, begins_with="bce"),)):
        with pytest.raises(ValueError, match="no earlier stage"):
            TrainingSettings(stages=stages)


TWO = Folds(2)
MEMBERS = [Member(seed, fold) for seed in (1, 2) for fold in (0, 1)]


@pytest.fixture(scope="module")
def two_folds(toy_sets, toy_table):
    events = toy_table(n_background=1500, n_signal=100)
    return [toy_sets(events, folds=TWO, fold=k) for k in (0, 1)]


@pytest.fixture(scope="module")
def alone(two_folds):
    """Every network, trained on its own."""
    return {m: train_network(*two_folds[m.fold], EQUAL, seed=m.seed) for m in MEMBERS}


def assert_same(found, wanted):
    for name in ("bce", "punzi", "bce_equal"):
        assert torch.equal(weights(found.after[name]), weights(wanted.after[name]))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 0, 2, 1]])
def test_networks_do_not_know_their_order_nor_their_workers(two_folds, alone, order, workers):
    members, saved = [MEMBERS[i] for i in order], {}
    found = train_ensemble(
        two_folds, EQUAL, members=members, workers=workers, finished=saved.__setitem__
    )
    assert set(saved) == set(MEMBERS)
    for member, result in zip(members, found, strict=True):
        assert_same(result, alone[member])
        assert_same(saved[member], alone[member])
    first, second = (alone[Member(1, k)].final for k in (0, 1))
    assert not torch.equal(weights(first), weights(second))


@pytest.mark.parametrize("stage", ["bce", "punzi", "bce_equal"])
def test_an_interrupt_inside_a_fold_changes_nothing(two_folds, alone, stage, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    saved, broken = {}, Member(1, 1)

    def interrupt(member, state):
        if member == broken and state.stage == stage and state.epoch == 2:
            raise KeyboardInterrupt

    options = {"workers": 1, "checkpoints": tmp_path, "finished": saved.__setitem__}
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(two_folds, EQUAL, members=MEMBERS, progress=interrupt, **options)
    assert set(saved) == {Member(1, 0)}
    assert checkpoint_path(tmp_path, broken).exists()
    seen = []
    left = [m for m in MEMBERS if m not in saved]
    train_ensemble(
        two_folds, EQUAL, members=left, progress=lambda *state: seen.append(state), **options
    )
    again = [state.epoch for member, state in seen if member == broken and state.stage == stage]
    assert 1 not in again  # it went on where it was
    assert set(saved) == set(MEMBERS)
    for member in MEMBERS:
        assert_same(saved[member], alone[member])
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_another_fold_is_not_taken(two_folds, alone, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)

    def interrupt(member, state):
        if state.stage == "punzi" and state.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_ensemble(
            two_folds, EQUAL, members=[Member(1, 0)], progress=interrupt, checkpoints=tmp_path
        )
    (left,) = tmp_path.iterdir()
    left.rename(checkpoint_path(tmp_path, Member(1, 1)))
    (found,) = train_ensemble(two_folds, EQUAL, members=[Member(1, 1)], checkpoints=tmp_path)
    assert_same(found, alone[Member(1, 1)])
