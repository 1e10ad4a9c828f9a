"""A run with folds: what is quoted, what is kept and what is applied are the same scores."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import uproot

from analysis.apply.command import apply_model
from analysis.apply.plan import Request
from analysis.config.configuration import load
from analysis.evaluate.passing import passing_events, window_contents, write_passing
from analysis.evaluate.stage import load_figures, write_figures
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import RunFolder, open_run
from analysis.select.skim import read_shard
from analysis.select.stage import select_events
from analysis.train.stage import split_sets
from models.evaluation.comparison import PUNZI_SINGLE, of_curve
from models.evaluation.figures_of_merit import split_events
from models.network import PunziNet
from models.trained import from_network, joined_folds, load_model, save_model, with_cut
from models.training.loop import train_network
from selection.keys import event_identities
from selection.table import Folds

ONE = Execution("iterative")
SMALL_CHUNKS = Execution("iterative", chunk_size=700)


def single_cuts(run):
    """Record of the single cut of every Punzi-net."""
    return {f.network: f for f in of_curve(load_figures(run), PUNZI_SINGLE)}


def inside(windows, axis):
    """(n_windows, n) by the definition: edges are outside."""
    return (windows.low[:, None] < axis) & (axis < windows.high[:, None])


def judged_score(run, network, table):
    model = load_model(run.model("punzi", network))
    return model.score(table.features, model.fold_of(table.identity))


def table_rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


# who judges


def rows_by_features(table):
    """features of an event -> its row; no two selected events have the same."""
    found = {x.tobytes(): i for i, x in enumerate(np.ascontiguousarray(table.features))}
    assert len(found) == len(table)
    return found


def test_no_network_of_a_run_was_trained_on_an_event_it_judges(evaluated):
    _, config, _, simulated = evaluated
    table, row_of = simulated.table, rows_by_features(simulated.table)
    splits = split_events(
        table, simulated.windows, trained=simulated.trained, folds=config.settings.folds
    )
    judged_by = {}
    for k, split in enumerate(splits):
        data, _ = split_sets(config, simulated, fold=k)
        x = np.ascontiguousarray(data.features.T)
        trained = {int(table.identity[row_of[event.tobytes()]]) for event in x}
        rows = np.concatenate([split.judged.signal_row, split.judged.background_row])
        judged = set(table.identity[rows].tolist())
        assert len(trained) > 1000 < len(judged)
        assert not trained & judged
        judged_by[k] = judged
    assert not judged_by[0] & judged_by[1]


def test_the_network_of_a_fold_is_the_one_trained_on_the_other_folds(evaluated):
    """Trained again from the events of the fold, bit for bit; of the other fold it is another."""
    run, config, _, simulated = evaluated
    settings = config.settings.training_settings()
    short = replace(settings, stages=settings.stages[:1])
    for k in (0, 1):
        sets = split_sets(config, simulated, fold=k)
        after = train_network(*sets, short, seed=config.settings.training.seed).after["bce"]
        weights = [layer.weight.detach().numpy() for layer in after.layers]
        own, other = (load_model(run.network("bce", 0, j)).networks[0] for j in (k, 1 - k))
        assert all(np.array_equal(a, b) for a, b in zip(weights, own.weights, strict=True))
        assert not np.array_equal(weights[0], other.weights[0])


@pytest.mark.parametrize("part", ["validation", "training"])
def test_what_is_quoted_are_sums_of_scores_by_the_fold_of_each_event(evaluated, part):
    run, config, _, simulated = evaluated
    table, windows = simulated.table, simulated.windows
    fold, where = config.settings.folds.of(table.identity), inside(windows, table.axis)
    for number, f in single_cuts(run).items():
        model = load_model(run.model("punzi", number))
        scores = [model.score(table.features, np.full(len(table), k)) for k in (0, 1)]
        judging = fold if part == "validation" else 1 - fold  # of two folds: the one that knows it
        passing = np.choose(judging, scores).astype(float) >= f.cut[0]
        (quoted,) = (
            g for g in of_curve(load_figures(run), PUNZI_SINGLE, part) if g.network == number
        )
        background = where & passing & ~table.is_signal
        assert quoted.background == pytest.approx(background @ table.weight, rel=1e-9)
        own = where & passing & (table.signal_mass_gev == windows.mass_gev[:, None])
        assert quoted.efficiency == pytest.approx(own @ table.weight, rel=1e-9)
        assert quoted.background.sum() > 0


# what is applied


def applied(run, number, files, out, execution=ONE):
    apply_model(Request((run.model("punzi", number),), tuple(map(str, files)), out), execution)
    found = {}
    for file in files:
        with uproot.open(out / f"{Path(file).stem}.friend.root") as opened:
            found[Path(file).stem] = opened["punzi"].arrays(library="np")
    return found


def passing_background(windows, files, friends):
    """Sum of weights (n_windows,) of what passes, and the number of rows."""
    background, rows = np.zeros(len(windows)), 0
    for path in files:
        with uproot.open(path) as file:
            weight = file["variables"]["weight"].array(library="np") * 50  # to the luminosity
        friend = friends[path.stem]
        in_windows = inside(windows, friend["recoil_mass2"]) & friend["pass"]
        background += in_windows @ weight
        rows += in_windows.sum()
    return background, rows


def test_a_run_applied_to_its_own_files_passes_what_was_quoted(evaluated, tmp_path):
    run, config, _, simulated = evaluated
    assert config.luminosity_inv_fb == 50
    table, windows, folder = simulated.table, simulated.windows, run.path.parent
    names = [f"signal_{m}" for m in range(1, 6)] + ["background_0", "background_1"]
    files = [folder / f"{name}.root" for name in names]
    for number, f in single_cuts(run).items():
        friends = applied(run, number, files, tmp_path / str(number), SMALL_CHUNKS)
        background, counted = passing_background(windows, files[5:], friends)
        assert background == pytest.approx(f.background, rel=1e-9)
        assert counted > 100
        for i, name in enumerate(names[:5]):
            friend = friends[name]
            own = inside(windows, friend["recoil_mass2"])[i] & friend["pass"]
            assert own.sum() / 1200 == pytest.approx(f.efficiency[i], rel=1e-9)
        score = judged_score(run, number, table)
        fold = load_model(run.model("punzi", number)).fold_of(table.identity)
        found = {"score": score, "fold": fold, "recoil_mass2": table.axis}
        for name, values in found.items():
            each = [friends[n][name][friends[n]["flag"] == 0] for n in names]
            at_mass = [values[table.signal_mass_gev == m] for m in range(1, 6)]
            wanted = np.concatenate([*at_mass, values[~table.is_signal]])
            assert np.array_equal(np.concatenate(each), wanted)
        assert set(fold) == {0, 1}


def test_of_the_wrong_folds_other_events_would_pass(evaluated, tmp_path):
    """The comparison above sees a model whose folds are exchanged."""
    run, _, _, simulated = evaluated
    f, model = single_cuts(run)[0], load_model(run.model("punzi", 0))
    swapped = replace(model, networks=model.networks[::-1])
    other = RunFolder(tmp_path / "swapped")
    other.model("punzi", 0).parent.mkdir(parents=True)
    save_model(swapped, other.model("punzi", 0))
    files = [run.path.parent / f"background_{i}.root" for i in (0, 1)]
    friends = applied(other, 0, files, tmp_path / "out")
    background, _ = passing_background(simulated.windows, files, friends)
    assert background == pytest.approx(f.background, rel=0.5)  # not far off, and yet not the same
    assert (np.abs(background / f.background - 1) > 1e-6).all()


# what is kept


@pytest.mark.parametrize("name", ["events", "rows"])
def test_the_samples_of_a_window_add_up_to_its_background(evaluated, name):
    run, _, _, simulated = evaluated
    rows = table_rows(run.processes)
    assert {row["sample"] for row in rows} == {"background"}
    quoted = {
        (int(row["network"]), float(row["mass_gev"])): float(row["background"])
        for row in table_rows(run.figures_of_merit_csv)
        if (row["classifier"], row["selection"], row["quoted_on"]) == (*PUNZI_SINGLE, "validation")
    }
    assert len(quoted) == len(rows) == 10
    table, where = simulated.table, inside(simulated.windows, simulated.table.axis)
    for row in rows:
        place = int(row["network"]), float(row["mass_gev"])
        if name == "events":
            assert float(row["events"]) == pytest.approx(quoted[place], rel=1e-5)
            continue
        passing = (
            judged_score(run, place[0], table).astype(float) >= single_cuts(run)[place[0]].cut[0]
        )
        (k,) = np.flatnonzero(simulated.windows.mass_gev == place[1])
        w = table.weight[where[k] & passing & ~table.is_signal]
        assert float(row["rows"]) == len(w) > 0
        assert float(row["squares"]) == pytest.approx(w @ w, rel=1e-5)
        assert float(row["largest"]) == pytest.approx(w.max(), rel=1e-5)
        wanted = weight_of_a_row(table, ~table.is_signal, simulated.windows.peak[k])
        assert float(row["row_weight"]) == pytest.approx(wanted, rel=1e-5)


def weight_of_a_row(table, rows, peak):
    """sum w^2 / sum w of the fifty rows on either side of a point of the axis, before the cut."""
    axis, w = table.axis[rows], table.weight[rows]
    below, above = np.flatnonzero(axis < peak), np.flatnonzero(axis >= peak)
    assert min(len(below), len(above)) >= 50
    near = [*below[np.argsort(axis[below])][-50:], *above[np.argsort(axis[above])][:50]]
    return (w[near] @ w[near]) / w[near].sum()


@pytest.fixture(scope="module")
def of_three(evaluated, tmp_path_factory):
    """The background as three samples, the last of which leaves nothing after the cut of net 0."""
    run, config, _, simulated = evaluated
    table = simulated.table
    passing = judged_score(run, 0, table).astype(float) >= single_cuts(run)[0].cut[0]
    blocked = ~table.is_signal & ~passing & (table.identity % 2 == 0)
    names = (*table.sample_names, "odd", "blocked")
    sample = table.sample.copy()
    sample[~table.is_signal & (table.identity % 2 == 1)] = names.index("odd")
    sample[blocked] = names.index("blocked")
    other = replace(simulated, table=replace(table, sample=sample, sample_names=names))
    figures = load_figures(run)
    found = passing_events(run, config, other, figures)
    with open_run(tmp_path_factory.mktemp("three") / "run") as own:
        write_figures(own, figures, {}, window_contents(other, found))
        write_passing(own, other.table, found)
    return own, other


def test_several_samples_add_up_to_the_background_at_every_mass(evaluated, of_three):
    run, (own, other) = evaluated[0], of_three
    rows = table_rows(own.processes)
    assert {row["sample"] for row in rows} == {"background", "odd", "blocked"}
    assert len(rows) == 2 * 3 * 5
    for number, f in single_cuts(run).items():
        for mass, background in zip(f.mass_gev, f.background, strict=True):
            here = [
                row
                for row in rows
                if (int(row["network"]), float(row["mass_gev"])) == (number, mass)
            ]
            assert len({row["sample"] for row in here}) == len(here) == 3
            assert sum(float(row["events"]) for row in here) == pytest.approx(background, rel=1e-5)
    assert other.windows.mass_gev.tolist() == sorted({float(row["mass_gev"]) for row in rows})


def test_a_sample_that_leaves_nothing_keeps_its_row_and_the_weight_of_one_event(of_three):
    own, other = of_three
    blocked = other.table.sample == other.table.sample_names.index("blocked")
    rows = [
        row for row in table_rows(own.processes)
        if (row["sample"], int(row["network"])) == ("blocked", 0)
    ]  # fmt: skip
    assert len(rows) == 5
    for row, peak in zip(rows, other.windows.peak, strict=True):
        assert (float(row["rows"]), float(row["events"]), float(row["largest"])) == (0, 0, 0)
        wanted = weight_of_a_row(other.table, blocked, peak)
        assert float(row["row_weight"]) == pytest.approx(wanted, rel=1e-5)
        assert float(row["row_weight"]) > 0


def test_the_events_that_pass_are_kept_and_can_be_counted_in_any_window(evaluated, of_three):
    run, (own, other) = evaluated[0], of_three
    table, windows = other.table, other.windows
    fold = Folds(2).of(table.identity)
    kept = pq.read_table(own.passing).to_pandas()
    for number, f in single_cuts(run).items():
        mine = kept[kept["network"] == number]
        passing = judged_score(run, number, table).astype(float) >= f.cut[0]
        assert len(mine) == passing.sum()
        assert np.array_equal(mine["fold"], fold[passing])
        assert np.array_equal(mine["signal_mass_gev"], table.signal_mass_gev[passing],
                              equal_nan=True)  # fmt: skip
        signal = np.isfinite(mine["signal_mass_gev"].to_numpy())
        where, w = inside(windows, mine["axis"].to_numpy()), mine["weight"].to_numpy()
        assert (where & ~signal) @ w == pytest.approx(f.background, rel=1e-9)
        own_mass = mine["signal_mass_gev"].to_numpy() == windows.mass_gev[:, None]
        assert (where & own_mass) @ w == pytest.approx(f.efficiency, rel=1e-9)
    rows = [r for r in table_rows(own.processes) if r["sample"] == "odd"]
    for row in rows:
        mine = kept[(kept["network"] == int(row["network"])) & (kept["sample"] == "odd")]
        (k,) = np.flatnonzero(windows.mass_gev == float(row["mass_gev"]))
        here = inside(windows, mine["axis"].to_numpy())[k]
        assert here.sum() == float(row["rows"])
        assert mine["weight"].to_numpy()[here].sum() == pytest.approx(
            float(row["events"]), rel=1e-5
        )


def test_the_run_keeps_the_same_events(evaluated):
    run, _, _, simulated = evaluated
    kept = pq.read_table(run.passing)
    table = simulated.table
    assert set(kept["sample"].to_pylist()) == set(table.sample_names)
    passing = [
        judged_score(run, i, table).astype(float) >= f.cut[0] for i, f in single_cuts(run).items()
    ]
    assert len(kept) == sum(p.sum() for p in passing)
    assert kept["axis"].to_numpy() == pytest.approx(
        np.concatenate([table.axis[p] for p in passing])
    )


# which fold


def selected_identities(folder, changes=(), *, execution=ONE, run="run"):
    """(run, event) -> identity of every selected background event."""
    config = load(folder / "datasets.yaml", changes)
    with open_run(folder / run) as opened:
        selection = select_events(opened, config, datasets(config, folder=folder), execution)
    found = {}
    for part in selection.parts:
        if not np.isfinite(part.mass_gev):
            shard = read_shard(part.shard)
            columns = [shard[name].to_pylist() for name in ("run", "event", "identity")]
            for number, event, identity in zip(*columns, strict=True):
                assert found.setdefault((number, event), identity) == identity
    return found


def test_the_identity_knows_neither_data_set_nor_chunk_nor_file(own_inputs, save):
    before = selected_identities(own_inputs)
    assert len(before) > 1000
    assert selected_identities(own_inputs, execution=SMALL_CHUNKS, run="chunks") == before
    text = (own_inputs / "datasets.yaml").read_text()
    (own_inputs / "datasets.yaml").write_text(text.replace("  background:", "  another_name:"))
    assert selected_identities(own_inputs, run="name") == before
    with uproot.open(own_inputs / "background_0.root") as file:
        columns = file["variables"].arrays(library="np")
    (own_inputs / "background_0.root").unlink()
    rows = {"background_7.root": slice(0, 999), "background_a.root": slice(999, None)}
    for name, part in rows.items():  # in other files, under other names
        save(own_inputs / name, {k: v[part] for k, v in columns.items()})
    assert selected_identities(own_inputs, run="files") == before


@pytest.fixture
def without_numbers(own_inputs):
    """The same files without any event numbers."""
    for path in own_inputs.glob("*.root"):
        with uproot.open(path) as file:
            columns = file["variables"].arrays(library="np")
        for name in ("experiment", "run", "event", "production", "candidate"):
            del columns[f"__{name}__"]
        with uproot.recreate(path) as file:
            file.mktree("variables", {k: v.dtype for k, v in columns.items()}).extend(columns)
    return own_inputs


@pytest.mark.parametrize("execution", [ONE, SMALL_CHUNKS], ids=["one chunk", "chunks"])
def test_without_event_numbers_selection_and_apply_agree_on_the_entry(
    without_numbers, saved_model, tmp_path, execution, caplog
):
    chosen = selected_identities(without_numbers, execution=execution)
    n = 12_345
    wanted = event_identities({"event": np.arange(n)}, n)
    assert {number for number, _ in chosen} == {0, 1}
    for (_, entry), identity in chosen.items():
        assert identity == wanted[entry]
    alone = load_model(saved_model)
    nets = []
    for seed in (1, 2, 3):
        net = PunziNet(np.array([0, 0, -6, 0.0]), np.array([5, 6, 2, 5.0]), seed=seed)
        nets.append(
            from_network(
                net, search=alone.search, windows=alone.windows, trained=alone.trained,
                conditions=alone.conditions,
            )
        )  # fmt: skip
    model = with_cut(joined_folds(nets), 0.5)
    own = RunFolder(tmp_path / "made")
    own.model("punzi", 0).parent.mkdir(parents=True)
    save_model(model, own.model("punzi", 0))
    files = [without_numbers / f"background_{i}.root" for i in (0, 1)]
    friends = applied(own, 0, files, tmp_path / "out", execution)
    assert caplog.text.count("has no event numbers: the entry in the file decides") == 2
    for name, friend in friends.items():
        assert np.array_equal(friend["fold"], Folds(3).of(wanted)), name
        x = np.column_stack([friend[f] for f in model.features])
        good = friend["flag"] == 0
        assert good.sum() > 1000
        assert np.array_equal(friend["score"][good], model.score(x[good], friend["fold"][good]))


def test_the_friend_of_one_network_has_no_fold(own_inputs, saved_model, tmp_path):
    own = RunFolder(tmp_path / "made")
    own.model("punzi", 0).parent.mkdir(parents=True)
    save_model(load_model(saved_model), own.model("punzi", 0))
    found = applied(own, 0, [own_inputs / "background_0.root"], tmp_path / "out")
    assert "fold" not in found["background_0"]
