"""What a physicist may rely on when a trained cut meets new ntuples."""

import json
import logging
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import uproot
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from analysis.apply import command as apply_module
from analysis.apply.command import apply_model
from analysis.apply.friend import friend_columns
from analysis.apply.model import BEAM_TOLERANCE_GEV, ApplyError, load_cut
from analysis.apply.places import judged
from analysis.apply.plan import Request, models_and_ntuples
from analysis.apply.spectra import (
    add_weights,
    counted,
    counted_spectra,
    empty_spectra,
    places_of,
)
from analysis.cli import main
from analysis.run.executors import Execution
from analysis.select.histograms import load_json, quantity_axes
from models.model_file import VERSION, ModelFileError, read_model_file, write_model_file
from models.network import PunziNet
from models.trained import Conditions, from_network, load_model, save_model
from selection.beams import SUPERKEKB
from selection.ntuple import MOMENTA
from selection.windows import MassWindows, window_span
from simulation.recipe import Recipe
from simulation.write import write_sample
from tests.dimuon import FEATURES, SEARCH, event_kinematics, with_cuts

LOW, HIGH = np.array([0, 0, -6, 0.0]), np.array([5, 6, 2, 5.0])
MASSES = np.arange(1.0, 9.0)
WINDOWS = MassWindows(MASSES, np.full(8, 0.6), 2.0, squared=True)
ONE = Execution("iterative", 1)


def model(seed=1, search=SEARCH, **changes):
    net = PunziNet(LOW, HIGH, seed=seed)
    for parameter in net.parameters():
        parameter.data.mul_(4)
    values = {
        "classifier": "punzi",
        "cut": 0.5,
        "sqrt_s_gev": SUPERKEKB.sqrt_s_gev,
        "luminosity_inv_fb": 50.0,
        "beams": asdict(SUPERKEKB),
        "training": {},
        "provenance": {},
    }
    return from_network(
        net,
        search=search,
        windows=WINDOWS,
        trained=np.ones(8, bool),
        conditions=Conditions(**(values | changes)),
    )


def median_cut(path, seed=1):
    """A cut that about half of the events pass."""
    score = model(seed).score(event_kinematics(columns(path), SUPERKEKB).features.T)
    return float(np.median(score))


def columns(path, tree="variables"):
    with uproot.open(path) as file:
        return file[tree].arrays(library="np")


def rewritten(source, target, *, change=lambda c: c, tree="variables"):
    """A copy of an ntuple with changed columns; no metadata, no truth."""
    with uproot.open(source) as file:
        values = change(file[file.keys(filter_classname="TTree")[0]].arrays(library="np"))
    with uproot.recreate(target) as file:
        file.mktree(tree, {k: v.dtype for k, v in values.items()}).extend(values)
    return target


def friend(path):
    return columns(path, "punzi")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    paths = [folder / f"signal_{mass:g}.root" for mass in (3.0, 6.5)]
    for path, mass in zip(paths, (3.0, 6.5), strict=True):
        write_sample(Recipe("signal", 900, 7, mass_gev=mass), path)
    return paths


@pytest.fixture(scope="module")
def net(tmp_path_factory, samples):
    path = tmp_path_factory.mktemp("model") / "net-00.safetensors"
    save_model(model(cut=median_cut(samples[0])), path)
    return path


def request(net, files, output, **options):
    return Request((net,), tuple(map(str, files)), output, **options)


def test_scores_are_those_of_the_training(samples, net, tmp_path):
    apply_model(request(net, samples, tmp_path), ONE)
    trained = load_model(net)
    for sample in samples:
        read, found = columns(sample), friend(tmp_path / f"{sample.stem}.friend.root")
        kinematics = event_kinematics(read, SUPERKEKB)
        good = found["flag"] == 0
        assert 0 < np.count_nonzero(good) < len(good)
        score = trained.score(kinematics.features.T)
        assert np.abs(found["score"][good] - score[good]).max() < 1e-6
        assert np.isnan(found["score"][~good]).all()
        assert np.array_equal(found["pass"], good & (score >= trained.cut))
        assert 0 < np.count_nonzero(found["pass"]) < np.count_nonzero(good)
        assert np.array_equal(found["recoil_mass2"], kinematics.axis)
        for name, feature in zip(FEATURES, kinematics.features, strict=True):
            assert np.array_equal(found[name], feature)


def test_the_friend_has_the_entries_of_the_input_in_their_order(samples, net, tmp_path):
    apply_model(request(net, samples, tmp_path, overwrite=True), Execution("threads", 2, None, 100))
    chain = [(s, tmp_path / f"{s.stem}.friend.root") for s in samples]
    for source, result in chain:
        read, found = columns(source), friend(result)
        assert len(found["score"]) == len(read["__event__"])
        momenta = [read[name].astype(float) for name in MOMENTA]
        total = [momenta[i] + momenta[i + 4] for i in range(4)]
        px, py, pz, e = (b - t for b, t in zip(SUPERKEKB.total, total, strict=True))
        assert found["recoil_mass2"] == pytest.approx(e**2 - px**2 - py**2 - pz**2, abs=1e-9)


def test_root_reads_the_friend_of_a_chain(samples, net, tmp_path):
    ROOT = pytest.importorskip("ROOT")
    apply_model(request(net, samples, tmp_path), ONE)
    main, other = ROOT.TChain("variables"), ROOT.TChain("punzi")
    for sample in samples:
        main.Add(str(sample))
        other.Add(str(tmp_path / f"{sample.stem}.friend.root"))
    main.AddFriend(other)
    frame = ROOT.RDataFrame(main).AsNumpy(["mu_plus_px", "punzi.score", "punzi.pass"])
    expected = [friend(tmp_path / f"{s.stem}.friend.root") for s in samples]
    for branch in ("score", "pass"):
        both = np.concatenate([e[branch] for e in expected])
        assert np.array_equal(frame[f"punzi.{branch}"], both, equal_nan=branch == "score")


@given(mass2=arrays(float, st.integers(0, 60), elements=st.floats(-5, 90) | st.just(np.nan)))
def test_windows_of_an_entry_are_the_windows_that_hold_it(mass2):
    edges = np.concatenate([WINDOWS.low, WINDOWS.high])
    mass2 = np.concatenate([mass2, edges, np.nextafter(edges, 0), np.nextafter(edges, 99)])
    flag, score = np.isnan(mass2).astype(np.uint8), np.ones(len(mass2), np.float32)
    found = judged(places_of(SEARCH, WINDOWS), mass2, flag, score, 0.5)
    first, last = found.first_window, found.last_window
    begin, stop = window_span(WINDOWS, mass2)
    assert np.array_equal(first, np.where(begin < stop, begin, -1))
    assert np.array_equal(last, np.where(begin < stop, stop - 1, -1))


def test_data_need_neither_truth_nor_weights_nor_beams(samples, net, tmp_path):
    kept = (*SEARCH.columns, "__ncandidates__")
    data = tmp_path / "data.root"
    rewritten(samples[0], data, change=lambda c: {k: c[k] for k in kept})
    apply_model(request(net, [data, samples[0]], tmp_path / "out"), ONE)
    bare, full = (friend(tmp_path / "out" / f"{s}.friend.root") for s in ("data", samples[0].stem))
    assert np.array_equal(bare["pass"], full["pass"])
    # the ntuple's own beams are the configured ones up to rounding
    assert bare["recoil_mass2"] == pytest.approx(full["recoil_mass2"], abs=1e-9)


def test_entries_are_counted_in_the_bins_of_hist():
    mass2 = np.random.default_rng(1).uniform(-10, 120, 10_000)
    axes = quantity_axes(SEARCH)
    edges = np.concatenate([axes["recoil_mass2"].edges, axes["recoil_mass"].edges ** 2, [-0.0]])
    mass2 = np.concatenate([mass2, edges, np.nextafter(edges, -9), np.nextafter(edges, 999)])
    selected = np.arange(len(mass2)) % 4 > 0
    passing = selected & (np.arange(len(mass2)) % 3 == 0)
    parts = [
        (mass2[rows], selected[rows], passing[rows]) for rows in (slice(999), slice(999, None))
    ]
    unselected = (np.array([np.nan, np.inf, -np.inf]), np.zeros(3, bool), np.zeros(3, bool))
    where = places_of(SEARCH, WINDOWS)
    found = [
        judged(where, m, (~good).astype(np.uint8), keep.astype(np.float32), 0.5)
        for m, good, keep in (*parts, unselected)
    ]
    spectra = counted_spectra(SEARCH, [counted(where, f.tally) for f in found])
    expected = empty_spectra(SEARCH)
    add_weights(SEARCH, expected, mass2[selected], passing[selected], np.ones(selected.sum()))
    for stage in expected:
        for name in ("recoil_mass2", "recoil_mass"):
            entries = expected[stage][name].values(flow=True)
            assert spectra[stage][name] == expected[stage][name]
            assert np.array_equal(spectra[stage][f"{name}_raw"].values(flow=True), entries)


CONFIG = """
luminosity_inv_fb: 50
candidates: {candidates}
tree: tau
columns:
  mu_plus_px: daughter(0, px)
  extra_energy: ECL
{columns}
samples:
  signal: {{kind: signal, files: none.root, masses_gev: [1.0], n_generated: 10}}
{more}
"""


def renamed(c):
    c = {k: v for k, v in c.items() if k not in ("__ncandidates__", "weight")}
    c["daughter__bo0__cm__sppx__bc"] = c.pop("mu_plus_px")
    c["ECL"] = c.pop("extra_energy")
    c["w"] = np.linspace(0.1, 3, len(c["ECL"]))
    return c


@pytest.fixture
def foreign(samples, tmp_path):
    """An ntuple with other names, and how to write its configuration."""
    path = rewritten(samples[0], tmp_path / "foreign.root", change=renamed, tree="tau")

    def config(candidates="all", columns="", more="", beams=""):
        text = CONFIG.format(candidates=candidates, columns=columns, more=more) + beams
        (tmp_path / "own.yaml").write_text(text)
        return tmp_path / "own.yaml"

    return path, config


def test_other_branch_names_come_from_the_configuration(samples, net, foreign, tmp_path):
    path, config = foreign
    apply_model(request(net, [path], tmp_path / "a", config=config()), ONE)
    apply_model(request(net, samples[:1], tmp_path / "b"), ONE)
    here = friend(tmp_path / "a/foreign.friend.root")
    there = friend(tmp_path / f"b/{samples[0].stem}.friend.root")
    for name in there:
        assert np.array_equal(here[name], there[name], equal_nan=name != "pass")


@pytest.mark.parametrize("chunk_size", [10_000, 37])
def test_spectra_hold_the_weights_of_selected_and_of_passing_events(
    net, foreign, tmp_path, chunk_size
):
    path, config = foreign
    weighted = config(columns="  weight: w")
    how = Execution("threads", 2, None, chunk_size)
    apply_model(request(net, [path], tmp_path / "out", config=weighted), how)
    spectra = load_json(tmp_path / "out/spectra.json")
    found, weight = friend(tmp_path / "out/foreign.friend.root"), columns(path, "tau")["w"]
    for stage, rows in (("before", found["flag"] == 0), ("after", found["pass"])):
        h = spectra[stage]["recoil_mass2"]
        expected = h.copy().reset().fill(found["recoil_mass2"][rows], weight=weight[rows])
        assert h == expected, "not even the last bit depends on the chunks"
        assert spectra[stage]["recoil_mass_raw"].sum(flow=True) == np.count_nonzero(rows)
    with uproot.open(tmp_path / "out/spectra.root") as file:
        after = file["after/recoil_mass2"]
        assert np.array_equal(after.values(), spectra["after"]["recoil_mass2"].values())


def test_a_file_of_a_configured_sample_has_the_weight_of_that_sample(net, foreign, tmp_path):
    path, config = foreign
    more = f"  b: {{kind: background, files: {path.name}, weight: w}}"
    apply_model(request(net, [path], tmp_path / "out", config=config(more=more)), ONE)
    before = load_json(tmp_path / "out/spectra.json")["before"]["recoil_mass2"].sum(flow=True)
    good = friend(tmp_path / "out/foreign.friend.root")["flag"] == 0
    assert before.value == pytest.approx(columns(path, "tau")["w"][good].sum())
    plain = rewritten(path, tmp_path / "plain.root", tree="tau")
    ask = request(net, [path, plain], tmp_path / "both", config=config(more=more))
    with pytest.raises(ApplyError, match=r"plain\.root has no weights by the configuration"):
        apply_model(ask, ONE)


def test_a_score_does_not_depend_on_how_many_neighbours_fail(samples, net):
    applied = load_cut((net,), config=None, cut=None)
    whole = columns(samples[0])
    whole["n_candidates"] = whole["__ncandidates__"]
    good = np.flatnonzero(friend_columns(applied, whole)[0]["flag"] == 0)[:100]
    entries = {name: values[good] for name, values in whole.items()}
    clean = friend_columns(applied, entries)[0]["score"]
    assert np.isfinite(clean).all()
    for n_bad in (1, 99):
        bad = np.arange(len(good)) < n_bad
        found, _ = friend_columns(applied, entries | {"extra_energy": np.where(bad, 9.0, 0.0)})
        assert np.array_equal(found["flag"] == 4, bad)
        assert np.isnan(found["score"][bad]).all()
        assert np.array_equal(found["score"][~bad], clean[~bad])


def test_entries_that_fail_are_kept_flagged_and_counted(samples, net, tmp_path):
    def spoil(c):
        c = {k: v.copy() for k, v in c.items()}
        c["mu_plus_px"][0] = np.nan
        c["mu_minus_e"][1] = np.inf
        c["__ncandidates__"][2] = 2
        c["mu_plus_id"][3] = 0.1
        c["Ecms"][4] = c["beamE"][4] = 10.0
        c["extra_energy"][5] = np.nan
        return c

    bad = rewritten(samples[0], tmp_path / "bad.root", change=spoil)
    (result,) = apply_model(request(net, [bad], tmp_path / "out"), ONE)
    found = friend(tmp_path / "out/bad.friend.root")
    clean = apply_model(request(net, samples[:1], tmp_path / "clean"), ONE)[0].counts
    assert list(found["flag"][:2]) == [1, 1]
    assert [found["flag"][i] & bit for i, bit in ((2, 2), (3, 4), (4, 8), (5, 4))] == [2, 4, 8, 4]
    assert not found["pass"][:6].any()
    assert np.isnan(found["score"][:6]).all()
    assert np.isnan(found["recoil_mass2"][0])
    assert found["first_window"][0] == found["last_window"][0] == -1
    assert np.isfinite(found["recoil_mass2"][2:4]).all(), "what can be computed is kept"
    counts = result.counts
    assert (counts.entries, counts.bad_input, counts.candidate, counts.beams) == (
        clean.entries, 2, 1, 1)  # fmt: skip
    assert counts.selected == np.count_nonzero(found["flag"] == 0)
    assert counts.passing == np.count_nonzero(found["pass"])


def test_an_empty_tree_has_an_empty_friend(samples, net, tmp_path):
    empty = tmp_path / "empty.root"
    rewritten(samples[0], empty, change=lambda c: {k: v[:0] for k, v in c.items()})
    (result,) = apply_model(request(net, [empty], tmp_path / "out"), ONE)
    assert result.counts.entries == len(friend(tmp_path / "out/empty.friend.root")["score"]) == 0


@pytest.mark.parametrize(
    "how",
    [
        Execution("iterative", 1, None, 41),
        Execution("threads", 2, None, 100),
        Execution("threads", 3, None, 1),
        pytest.param(Execution("processes", 2, None, 250), marks=pytest.mark.slow),
    ],
    ids=["iterative-41", "threads-100", "threads-1", "processes-250"],
)
def test_chunks_and_executors_never_change_the_content(samples, net, tmp_path, how):
    if how.chunk_size == 1:
        cut = rewritten(
            samples[0], tmp_path / "few.root", change=lambda c: {k: v[:9] for k, v in c.items()}
        )
        samples = [cut]
    apply_model(request(net, samples, tmp_path / "a"), ONE)
    apply_model(request(net, samples, tmp_path / "b"), how)
    for sample in samples:
        a, b = (friend(tmp_path / x / f"{sample.stem}.friend.root") for x in "ab")
        assert all(a[name].tobytes() == b[name].tobytes() for name in a)
    assert (tmp_path / "a/spectra.json").read_bytes() == (tmp_path / "b/spectra.json").read_bytes()


def test_a_saved_model_selects_what_it_selected_in_memory(samples, tmp_path):
    kinematics = event_kinematics(columns(samples[0]), SUPERKEKB)
    score = model().score(kinematics.features.T)
    # a cut equal to the score of an event: one lost bit anywhere would lose the event
    in_memory = model(cut=float(np.sort(score)[len(score) // 2]))
    save_model(in_memory, tmp_path / "net-00.safetensors")
    apply_model(request(tmp_path / "net-00.safetensors", samples[:1], tmp_path / "out"), ONE)
    found = friend(tmp_path / "out" / f"{samples[0].stem}.friend.root")
    good = found["flag"] == 0
    assert np.array_equal(found["pass"], in_memory.passes(kinematics.features.T) & good)


def test_an_ensemble_gives_mean_and_spread(samples, tmp_path):
    (tmp_path / "models").mkdir()
    members = [model(seed) for seed in (1, 2, 3)]
    for i, member in enumerate(members):
        save_model(member, tmp_path / f"models/net-{i:02d}.safetensors")
    save_model(model(9), tmp_path / "models/bce-00.safetensors")
    apply_model(request(tmp_path / "models", samples[:1], tmp_path / "out"), ONE)
    found = friend(tmp_path / "out" / f"{samples[0].stem}.friend.root")
    features = event_kinematics(columns(samples[0]), SUPERKEKB).features.T
    scores = np.stack([member.score(features) for member in members])[:, found["flag"] == 0]
    good = found["flag"] == 0
    assert found["score"][good] == pytest.approx(scores.mean(axis=0), abs=1e-6)
    assert found["score_spread"][good] == pytest.approx(scores.std(axis=0, ddof=1), abs=1e-6)
    listed = [str(tmp_path / f"models/net-{i:02d}.safetensors") for i in range(3)]
    assert models_and_ntuples(Path(listed[0]), [*listed[1:], "x.root"]) == (
        tuple(map(Path, listed)), ("x.root",))  # fmt: skip


def test_a_skim_holds_the_passing_events_with_all_branches(samples, net, tmp_path):
    how = Execution("threads", 2, None, 100)
    apply_model(request(net, samples, tmp_path / "f"), ONE)
    apply_model(request(net, samples, tmp_path / "s", skim=True), how)
    for sample in samples:
        keep = friend(tmp_path / "f" / f"{sample.stem}.friend.root")["pass"]
        read, kept = columns(sample), columns(tmp_path / "s" / f"{sample.stem}.skim.root")
        assert list(read) == list(kept)
        assert all(
            np.array_equal(read[n][keep], kept[n], equal_nan=read[n].dtype.kind == "f")
            for n in read
        )
        with uproot.open(tmp_path / "s" / f"{sample.stem}.skim.root") as file:
            baskets = {branch.num_baskets for branch in file["variables"].branches}
        assert baskets == {1}  # few rows of many pieces are put together
    # a skim is an ntuple again, and all of it passes
    skim = tmp_path / f"s/{samples[0].stem}.skim.root"
    again = apply_model(request(net, [skim], tmp_path / "t"), ONE)
    assert again[0].counts.passing == again[0].counts.entries


def test_a_skim_holds_texts_and_arrays_of_the_passing_events_too(samples, net, tmp_path):
    values, source = columns(samples[0]), tmp_path / "x.root"
    n = len(values["mu_plus_px"])
    words, points = [f"word {i}" for i in range(n)], np.arange(3.0 * n).reshape(n, 3)
    kinds = {k: v.dtype for k, v in values.items()}
    with uproot.recreate(source) as file:
        tree = file.mktree("variables", kinds | {"word": "string", "point": np.dtype("3f8")})
        tree.extend(values | {"word": words, "point": points})
    apply_model(request(net, [source], tmp_path / "f"), ONE)
    pieces = Execution("iterative", 1, None, 100)
    apply_model(request(net, [source], tmp_path / "s", skim=True), pieces)
    keep = friend(tmp_path / "f/x.friend.root")["pass"]
    kept = columns(tmp_path / "s/x.skim.root")
    assert 0 < keep.sum() < n
    assert kept["word"].tolist() == [word for word, kept in zip(words, keep, strict=True) if kept]
    assert np.array_equal(kept["point"], points[keep])


def test_a_second_call_goes_on_where_the_first_was_interrupted(samples, net, tmp_path, monkeypatch):
    real = apply_module.write_applied
    calls = []

    def cut_short(pieces):
        yield next(pieces)
        raise KeyboardInterrupt

    def interrupted(job, applied, pieces):
        calls.append(job.input)  # in the middle of the second file
        return real(job, applied, cut_short(pieces) if len(calls) == 2 else pieces)

    ask = request(net, samples, tmp_path / "out")
    monkeypatch.setattr(apply_module, "write_applied", interrupted)
    with pytest.raises(KeyboardInterrupt):
        apply_model(ask, Execution("threads", 2, None, 100))
    first = tmp_path / f"out/{samples[0].stem}.friend.root"
    assert [p.name for p in (tmp_path / "out").iterdir()] == [first.name]
    monkeypatch.setattr(apply_module, "write_applied", real)
    before = first.stat().st_mtime_ns
    results = apply_model(ask, ONE)
    assert [result.kept for result in results] == [True, False]
    assert first.stat().st_mtime_ns == before
    apply_model(replace(ask, output=tmp_path / "whole"), ONE)
    spectra = [(tmp_path / d / "spectra.json").read_bytes() for d in ("out", "whole")]
    assert spectra[0] == spectra[1]


def test_the_output_tells_how_it_was_made(samples, net, tmp_path):
    apply_model(request(net, samples[:1], tmp_path / "out", cut=0.25), ONE)
    with uproot.open(tmp_path / "out" / f"{samples[0].stem}.friend.root") as file:
        about = json.loads(str(file["provenance"]))
    assert about["input"] == str(samples[0])
    assert about["cut"] == 0.25
    assert list(about["models"]) == [str(net)]
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["models"] == about["models"]
    assert summary["total"] == about["counts"]


def snapshot(folder):
    return {p: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def with_search(source, target, change):
    """A model whose definition of the search somebody changed."""
    content, arrays = read_model_file(source)
    plain = json.loads(content["search"])
    change(plain)
    write_model_file(target, {**content, "search": json.dumps(plain)}, arrays)


REFUSED = {
    "no beams": "does not say for which beams",
    "beams not all stated": r"for which beams it was trained \(half_crossing_angle_rad not stated\)",
    "a broken search": r"is not a usable model: the search cannot be used:\ncuts.pt_mumu: ",
    "an unknown entry of the search": r"is not a usable model: .*\ncolour: unknown entry",
    "a cut not stated": "is not a usable model: its search is not the one it was trained for",
    "an old format": "has format version 1, which does not say how its features and cuts",
    "no cut on the score": "has no cut yet",
    "energy of the model": "was trained at 10.5196 GeV",
    "energy of the configuration": "the configuration has sqrt",
    "damaged model": "damaged or not a model file",
    "truncated file": "is truncated",
    "missing file": "no such file",
    "missing branch": "has no branch 'extra_energy'",
    "mixed ensemble": "no ensemble: they differ in cut",
    "mixed searches": "no ensemble: they differ in search$",
    "clashing names": "would both be written to",
    "existing output": "was not made by this model",
    "foreign output": "was not made by this model",
    "output is a file": "is a file; -o wants a folder",
    "empty folder of models": "holds no model net-",
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_why_and_change_nothing(case, samples, net, foreign, tmp_path):
    path, config = foreign
    ask = request(net, samples, tmp_path / "out")
    own = tmp_path / "net-01.safetensors"
    (tmp_path / "b").mkdir()
    lower = SUPERKEKB.electron_energy_gev * (10.5196 / SUPERKEKB.sqrt_s_gev) ** 2
    low = replace(SUPERKEKB, electron_energy_gev=lower)  # off resonance: 60 MeV less
    if case == "no beams":
        save_model(model(beams={}), own)
    elif case == "beams not all stated":
        stated = asdict(SUPERKEKB)
        del stated["half_crossing_angle_rad"]
        save_model(model(beams=stated), own)
    elif case == "a broken search":
        with_search(net, own, lambda plain: plain["cuts"].update(pt_mumu="pt_mumu >"))
    elif case == "a cut not stated":
        with_search(net, own, lambda plain: plain["cuts"].pop("extra_energy"))
    elif case == "an unknown entry of the search":
        with_search(net, own, lambda plain: plain.update(colour="red"))
    elif case == "an old format":
        now, old = f'\\"version\\": {VERSION}'.encode(), b'\\"version\\": 1'
        assert now in net.read_bytes()
        own.write_bytes(net.read_bytes().replace(now, old))
    elif case == "mixed searches":
        cut = load_model(net).cut
        save_model(model(search=with_cuts(pt_mumu="pt_mumu > 1.1"), cut=cut), own)
        ask = replace(ask, models=(net, own))
    elif case == "no cut on the score":
        save_model(model(cut=None), own)
    elif case == "energy of the model":
        save_model(model(beams=asdict(low), sqrt_s_gev=low.sqrt_s_gev), own)
    elif case == "damaged model":
        own.write_bytes(net.read_bytes()[:-3])
    elif case == "mixed ensemble":
        save_model(model(cut=0.1), own)
        ask = replace(ask, models=(net, own))
    elif case == "energy of the configuration":
        energies = f"beams: {{electron_energy_gev: {low.electron_energy_gev}}}"
        ask = replace(ask, files=(str(path),), config=config(beams=energies))
    elif case == "truncated file":
        (tmp_path / "short.root").write_bytes(samples[0].read_bytes()[:5000])
        ask = replace(ask, files=(str(samples[0]), str(tmp_path / "short.root")))
    elif case == "missing file":
        ask = replace(ask, files=("nowhere.root",))
    elif case == "missing branch":
        ask = replace(ask, files=(str(path),))
    elif case == "clashing names":
        twin = tmp_path / "b" / samples[0].name
        twin.write_bytes(samples[0].read_bytes())
        ask = replace(ask, files=(str(samples[0]), str(twin)))
    elif case == "existing output":
        apply_model(replace(ask, cut=0.1), ONE)
    elif case == "foreign output":
        (tmp_path / "out").mkdir()
        (tmp_path / f"out/{samples[1].stem}.friend.root").write_text("precious")
    elif case == "output is a file":
        (tmp_path / "out").write_text("precious")
    else:
        ask = replace(ask, models=(tmp_path / "b",))
    if own.exists() and len(ask.models) == 1:
        ask = replace(ask, models=(own,))
    before = snapshot(tmp_path)
    with pytest.raises((ApplyError, ModelFileError), match=REFUSED[case]):
        apply_model(ask, ONE)
    assert snapshot(tmp_path) == before


def test_overwrite_replaces_what_is_in_the_way(samples, net, tmp_path):
    ask = request(net, samples[:1], tmp_path / "out")
    apply_model(ask, ONE)
    apply_model(replace(ask, cut=1.0, overwrite=True), ONE)
    assert not friend(tmp_path / "out" / f"{samples[0].stem}.friend.root")["pass"].any()


@pytest.mark.parametrize(("shift", "refused"), [(0.8, False), (1.2, True)])
def test_the_tolerance_on_the_beam_energy_is_the_stated_one(samples, net, tmp_path, shift, refused):
    def other_energy(c):
        c = {k: v for k, v in c.items() if not k.startswith("beam")}
        return c | {"Ecms": c["Ecms"] + shift * BEAM_TOLERANCE_GEV}

    path = rewritten(samples[0], tmp_path / "x.root", change=other_energy)
    if refused:
        with pytest.raises(ApplyError, match="20 MeV apart"):
            apply_model(request(net, [path], tmp_path / "out"), ONE)
    else:
        (result,) = apply_model(request(net, [path], tmp_path / "out"), ONE)
        assert result.counts.beams == 0


@pytest.fixture
def punzi(monkeypatch, capsys):
    """The command in this process: arguments -> exit code, stdout, stderr."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["punzi", *arguments])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)


def test_the_command_prints_counts_and_ends_with_1_when_it_refuses(samples, net, tmp_path, punzi):
    command = ["apply", str(net), str(samples[0]), "-o", str(tmp_path / "out"), "--workers", "1"]
    code, out, err = punzi(*command)
    assert code == 0, err
    total = json.loads((tmp_path / "out/summary.json").read_text())["total"]
    assert str(total["entries"]) in out
    assert str(total["passing"]) in out
    code, _, err = punzi(*command, "--cut", "0.9")
    assert code == 1
    assert "--overwrite" in err
    code, _, err = punzi("apply", str(net), str(net), "-o", str(tmp_path / "x"))
    assert code == 1
    assert "no ntuple given, only models" in err
