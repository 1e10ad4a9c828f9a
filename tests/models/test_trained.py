import json
import os
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.model_file import VERSION, write_model_file
from models.network import PunziNet
from models.scoring import _s, mean_and_spread
from models.trained import (
    Conditions,
    Layers,
    ModelFileError,
    TrainedModel,
    from_network,
    load_model,
    save_model,
    scores_of,
    with_cut,
)
from selection.errors import UserError
from selection.windows import MassWindows
from tests.dimuon import SEARCH, with_cuts

WINDOWS = MassWindows(np.arange(0.5, 5.0, 0.5), np.full(9, 0.2), 2.0, squared=True)
LOW, HIGH = np.array([0, 0, -6, 1.0]), np.array([5, 6, 2, 5.0])
CONDITIONS = Conditions(
    classifier="punzi",
    cut=0.5,
    sqrt_s_gev=10.5796,
    luminosity_inv_fb=50.0,
    beams={"electron_energy_gev": 7.004, "positron_energy_gev": 4.002},
    training={"seed": 3, "stages": ["bce", "punzi"]},
    provenance={"version": "0.1.0", "commit": None},
)


def network(*, hidden=(8, 4), seed=1, steepness=1.0):
    net = PunziNet(LOW, HIGH, hidden=hidden, seed=seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(steepness)
    return net


def model(**options):
    trained = np.arange(len(WINDOWS)) % 2 == 0
    return from_network(
        network(**options), search=SEARCH, windows=WINDOWS, trained=trained, conditions=CONDITIONS
    )


def to_network(model):
    """The torch network of a model."""
    (own,) = model.networks
    hidden = [len(bias) for bias in own.biases[:-1]]
    net = PunziNet(own.feature_min, own.feature_max, hidden=hidden, seed=0)
    with torch.no_grad():
        for layer, weight, bias in zip(net.layers, own.weights, own.biases, strict=True):
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(bias))
    return net


def events(n, seed=0):
    return np.random.default_rng(seed).uniform(LOW, HIGH, (n, 4)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    save_model(model(steepness=5.0), tmp_path / "net.safetensors")
    return tmp_path / "net.safetensors"


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A model file to break, and its good bytes."""
    path = tmp_path_factory.mktemp("broken") / "net.safetensors"
    save_model(model(steepness=5.0), path)
    return path, path.read_bytes()


@pytest.mark.parametrize("hidden", [(8, 4), (3,), (16, 5, 7)])
@pytest.mark.parametrize("steepness", [1.0, 12.0])
def test_scores_are_those_of_torch_in_double_precision(hidden, steepness):
    net = network(hidden=hidden, steepness=steepness)
    ours = from_network(
        net, search=SEARCH, windows=WINDOWS, trained=np.ones(9, bool), conditions=CONDITIONS
    )
    x = events(3001)
    with torch.no_grad():
        exact = net.double()(torch.from_numpy(x).double()).numpy()
        logits = net.logits(torch.from_numpy(x).double()).numpy()
    assert np.abs(ours.score(x) - exact).max() < 1e-7
    assert ours.logits(x.astype(np.float64)) == pytest.approx(logits, abs=1e-8)
    assert ours.logits(x) == pytest.approx(logits, rel=2**-23, abs=1e-8)  # rounded to float32


def test_the_activation_is_exact_to_a_billionth_and_bounded():
    t = np.concatenate([np.linspace(-90, 90, 60_001), [0.0, 1e-300, -1e300, np.inf, -np.inf]])
    ours = np.array([_s(v) for v in t])
    exact = 0.5 - 0.5 * np.tanh(t * np.log(2) / 2)  # 1 / (1 + 2^t)
    assert np.abs(ours - exact).max() < 1e-10
    assert ((ours >= 0) & (ours <= 1)).all()
    assert np.isnan(_s(np.nan))


def test_events_do_not_know_of_each_other():
    x = events(1000)
    whole = model().score(x)
    pieces = [model().score(x[a:b]) for a, b in ((0, 1), (1, 257), (257, 1000))]
    assert np.array_equal(whole, np.concatenate(pieces))
    assert model().score(x[:0]).shape == (0,)
    assert np.array_equal(model().score(np.asfortranarray(x)), whole)


def test_a_missing_input_gives_no_score_and_never_passes():
    x = events(600)
    x[5, 2] = np.nan
    m = model(steepness=5.0)
    assert np.isnan(m.score(x)).nonzero()[0].tolist() == [5]
    assert not m.passes(x)[5]
    assert np.array_equal(m.passes(x)[6:], m.passes(x[6:]))
    x[5, 2] = np.inf
    for hidden in ((8, 4), (5, 3)):  # the second is padded inside
        assert np.isnan(model(hidden=hidden).score(x)).nonzero()[0].tolist() == [5]


def test_save_and_load_select_the_same_events(path):
    x = events(5000)
    before, after = model(steepness=5.0), load_model(path)
    assert np.array_equal(before.score(x), after.score(x))
    assert np.array_equal(before.passes(x), after.passes(x))
    assert 0 < after.passes(x).sum() < len(x)
    assert np.array_equal(to_network(after)(torch.from_numpy(x)).detach().numpy() >= 0.5,
                          before.passes(x))  # fmt: skip


def test_a_file_gives_back_all_that_was_saved(path):
    back, sent = load_model(path), model(steepness=5.0)
    assert back.conditions == CONDITIONS
    assert back.features == sent.features == SEARCH.feature_names
    assert list(back.search.cuts.items()) == list(SEARCH.cuts.items())
    assert back.search.identity == SEARCH.identity
    assert back.search == SEARCH
    assert np.array_equal(back.windows.low, sent.windows.low)
    assert back.windows.squared is True
    assert np.array_equal(back.trained, sent.trained)


def test_a_network_without_a_cut_scores_and_says_that_it_cannot_select(tmp_path):
    sent = with_cut(model(), None)
    save_model(sent, tmp_path / "net")
    x = events(50)
    for m in (sent, load_model(tmp_path / "net")):
        assert m.conditions.cut is None
        assert np.array_equal(m.score(x), model().score(x))
        with pytest.raises(ModelFileError, match="without a cut"):
            m.passes(x)


def test_another_cut_changes_nothing_but_the_cut():
    x = events(500)
    m = model(steepness=5.0)
    changed = with_cut(m, 0.7)
    assert changed.cut == 0.7
    assert m.cut == 0.5
    assert np.array_equal(changed.score(x), m.score(x))
    assert np.array_equal(changed.passes(x), m.score(x).astype(float) >= 0.7)
    assert with_cut(changed, 0.5).conditions == CONDITIONS
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        with_cut(m, 7.0)


def test_a_model_that_cannot_be_used_is_an_error_of_the_person_and_not_of_the_program():
    assert issubclass(ModelFileError, UserError)
    assert not issubclass(ModelFileError, ValueError)


def test_the_same_model_has_the_same_bytes(path, tmp_path):
    save_model(load_model(path), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_failed_write_leaves_the_old_model(path, monkeypatch):
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_model(model(), path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_an_ensemble_of_one_network_has_no_spread():
    x = events(100)
    mean, spread = mean_and_spread(scores_of([model(), model()], x))
    assert np.array_equal(mean, model().score(x))
    assert (spread == 0).all()
    both = [model(seed=1), model(seed=2)]
    mean, spread = mean_and_spread(scores_of(both, x))
    scores = np.array([m.score(x) for m in both], float)
    assert mean == pytest.approx(scores.mean(axis=0), abs=1e-7)
    assert spread == pytest.approx(scores.std(axis=0, ddof=1), abs=1e-7)


class Exploit:
    def __reduce__(self):
        return os.system, ("touch exploited",)


FOREIGN = {
    "pickle": (pickle.dumps(Exploit()), "a pickle; pickles can run any code"),
    "zip": (b"PK\x03\x04" + bytes(100), "zip archive"),
    "root": (b"root" + bytes(100), "ROOT file"),
    "text": (b"dear model, please be valid\n" * 5, "damaged or not a model file"),
    "empty": (b"", "0 bytes"),
    "absurd header": (b"\xff" * 7 + b"\x7f" + bytes(100), "header claims 9223372036854775807"),
    "not json": ((20).to_bytes(8, "little") + b"{" * 20 + bytes(9), "header is not JSON"),
    "deep json": ((9**5).to_bytes(8, "little") + b"[" * 9**5 + bytes(9), "header is not JSON"),
    "other safetensors": ((2).to_bytes(8, "little") + b"{}" + bytes(9), "not a model of punzi"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_files_are_named_and_never_executed(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, message = FOREIGN[kind]
    (tmp_path / "net").write_bytes(data)
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "net")
    assert [p.name for p in tmp_path.iterdir()] == ["net"]


def test_missing_file_folder_and_giant_are_told_apart(tmp_path):
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        load_model(tmp_path / "none")
    with pytest.raises(ModelFileError, match="is a folder"):
        load_model(tmp_path)
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(ModelFileError, match="1000000000 bytes"):
        load_model(tmp_path / "giant")


def content_and_arrays(m):
    (own,) = m.networks
    content = {
        "search": json.dumps(m.search.plain()), "search_identity": m.search.identity,
        "n_folds": 1, "n_layers": 3, "window_n_sigma": 2.0, "window_squared": True,
        "conditions": dict(vars(CONDITIONS)),
    }  # fmt: skip
    arrays = {
        **{f"fold.0.layers.{i}.weight": own.weights[i] for i in range(3)},
        **{f"fold.0.layers.{i}.bias": own.biases[i] for i in range(3)},
        "fold.0.feature_min": own.feature_min, "fold.0.feature_max": own.feature_max,
        "windows.mass_gev": m.windows.mass_gev, "windows.sigma": m.windows.sigma,
        "windows.trained": m.trained,
    }  # fmt: skip
    return content, arrays


def set_nan(file):
    file.arrays["fold.0.layers.1.weight"][0, 0] = np.nan


def of_search(change):
    """A change of the definition of the search."""

    def apply(file):
        plain = json.loads(file.content["search"])
        change(plain)
        file.content["search"] = json.dumps(plain)

    return apply


WRONG = {
    "nan weight": (set_nan, "finite"),
    "wrong width": (
        lambda f: f.arrays.update({"fold.0.layers.1.weight": np.ones((4, 9), np.float32)}),
        "layer 1",
    ),
    "no layer": (lambda f: f.arrays.pop("fold.0.layers.2.bias"), "10 arrays found"),
    "text cut": (lambda f: f.content["conditions"].update(cut="half"), "'int' and 'str'"),
    "absurd cut": (lambda f: f.content["conditions"].update(cut=7), r"lie in \[0, 1\], found 7"),
    "no search": (lambda f: f.content.pop("search"), "'search' is missing"),
    "no kind of axis": (lambda f: f.content.pop("window_squared"), "'window_squared' is missing"),
    "no identity": (lambda f: f.content.pop("search_identity"), "'search_identity' is missing"),
    "search that is no text": (lambda f: f.content.update(search=3), "must be str"),
    "search that is no JSON": (lambda f: f.content.update(search="{"), "Expecting"),
    "search without an end": (lambda f: f.content.update(search="[" * 10**6), "recursion"),
    "no particles": (
        of_search(lambda plain: plain.pop("particles")),
        r"search cannot be used:\nparticles: is missing",
    ),
    "no cuts": (
        of_search(lambda plain: plain.pop("cuts")),
        "its search is not the one it was trained for",
    ),
    "a cut less": (
        of_search(lambda plain: plain["cuts"].pop("pt_mumu")),
        "its search is not the one it was trained for",
    ),
    "another order of the features": (
        of_search(lambda plain: plain.update(features=dict(sorted(plain["features"].items())))),
        "its search is not the one it was trained for",
    ),
    "unknown section": (
        of_search(lambda plain: plain.update(colour="red")),
        "colour: unknown entry",
    ),
    "broken expression": (
        of_search(lambda plain: plain["cuts"].update(pt_mumu="pt_mumu >")),
        "cuts.pt_mumu: .*pt_mumu >",
    ),
    "code in an expression": (
        of_search(lambda plain: plain["define"].update(p1="__import__('os').system('true')")),
        "define.p1: ",
    ),
    "a number for a cut": (
        of_search(lambda plain: plain["cuts"].update(pt_mumu=2.0)),
        "cuts.pt_mumu: expected a text, found 2.0",
    ),
    "new setting": (lambda f: f.content["conditions"].update(colour=1), "colour"),
    "no scaling": (
        lambda f: f.arrays.update({"fold.0.feature_max": f.arrays["fold.0.feature_min"]}),
        "is empty",
    ),
    "a fold too many": (lambda f: f.content.update(n_folds=2), "11 arrays found where 2 folds"),
    "no folds": (lambda f: f.content.update(n_folds=0), "11 arrays found where 0 folds"),
    "folds not stated": (lambda f: f.content.pop("n_folds"), "'n_folds' is missing"),
    "folds that are no number": (lambda f: f.content.update(n_folds="1"), "n_folds|str"),
    "an array of another fold": (
        lambda f: f.arrays.update({"fold.1.feature_max": f.arrays.pop("fold.0.feature_max")}),
        "'fold.0.feature_max' is missing",
    ),
    "windows": (lambda f: f.arrays.update({"windows.mass_gev": np.ones(9)}), "do not rise"),
    "float64": (lambda f: f.arrays.update({"fold.0.layers.0.bias": np.ones(8)}), "bias is float64"),
    "many layers": (lambda f: f.content.update(n_layers=10**12), "11 arrays found"),
    "no layers": (lambda f: f.content.update(n_layers=None), "NoneType"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_consistent_file_with_wrong_content_is_refused(kind, tmp_path):
    """Such a file has a valid checksum: somebody made it so."""
    content, arrays = content_and_arrays(model())
    change, message = WRONG[kind]
    change(SimpleNamespace(content=content, arrays=arrays))
    write_model_file(tmp_path / "net", content, arrays)
    with pytest.raises(ModelFileError, match=f"(?s)not a usable model.*{message}"):
        load_model(tmp_path / "net")


def test_the_file_of_the_test_above_is_good_before_it_is_changed(tmp_path):
    content, arrays = content_and_arrays(model())
    write_model_file(tmp_path / "net", content, arrays)
    assert np.array_equal(load_model(tmp_path / "net").score(events(9)), model().score(events(9)))


def test_the_features_keep_their_order_in_a_file_and_so_do_the_cuts(tmp_path):
    """Of names whose order is that of no sorting: another order gives other scores."""
    assert list(SEARCH.feature_names) != sorted(SEARCH.feature_names)
    changed = with_cuts(muon_id=None, a_late_cut="pt_thrust > 0.1")
    sent = replace(model(), search=changed)
    save_model(sent, tmp_path / "net")
    back = load_model(tmp_path / "net")
    assert back.features == sent.features
    assert list(back.search.cuts) == list(changed.cuts)
    assert list(back.search.basf2) == list(changed.basf2)
    assert back.search.identity == changed.identity != SEARCH.identity


def test_an_older_format_says_what_to_do(path):
    data = path.read_bytes()
    now, old = f'\\"version\\": {VERSION}'.encode(), b'\\"version\\": 1'
    assert now in data
    path.write_bytes(data.replace(now, old))
    with pytest.raises(ModelFileError, match=r"format version 1, which does not say.*train again"):
        load_model(path)


def test_a_newer_format_says_what_to_do(path):
    data = path.read_bytes()
    assert VERSION < 9
    old, new = f'\\"version\\": {VERSION}'.encode(), b'\\"version\\": 9'
    assert old in data
    path.write_bytes(data.replace(old, new))
    with pytest.raises(ModelFileError, match=r"format version 9.*newer version"):
        load_model(path)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.differing_executors])
@given(flip=st.integers(0, 255), where=st.floats(0, 1, exclude_max=True))
def test_flipped_and_lost_bytes_are_an_error_or_harmless(workshop, flip, where):
    path, good = workshop
    broken = bytearray(good)
    at = int(where * len(good))
    if flip:
        broken[at] ^= flip
    path.write_bytes(bytes(broken if flip else broken[:at]))
    try:
        found = load_model(path)
    except ModelFileError:
        return
    x = events(20)
    assert np.array_equal(found.score(x), model(steepness=5.0).score(x))
    assert found.conditions == CONDITIONS


def test_header_is_plain_json_anyone_can_read(path):
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    ours = json.loads(header["__metadata__"]["punzi"])
    assert ours["content"]["conditions"]["luminosity_inv_fb"] == 50.0
    assert json.loads(ours["content"]["search"])["cuts"]["pt_mumu"] == "pt_mumu > 1.0"


def test_a_model_checks_itself():
    good = model()
    with pytest.raises(ValueError, match="marks of trained masses"):
        TrainedModel(good.networks, WINDOWS, np.ones(3, bool), CONDITIONS, SEARCH)
    with pytest.raises(ValueError, match=r"scalings \[\] for 4 features"):
        replace(good, networks=())
    net = PunziNet(LOW[:3], HIGH[:3], seed=1).state_dict()
    at = [f"layers.{i}" for i in range(3)]
    other = Layers(
        tuple(net[f"{name}.weight"].numpy() for name in at),
        tuple(net[f"{name}.bias"].numpy() for name in at),
        *(net[name].numpy() for name in ("feature_min", "feature_max")),
    )
    with pytest.raises(ValueError, match=r"scalings \[\(4,\), \(3,\)\] for 4 features"):
        replace(good, networks=(*good.networks, other))
    with pytest.raises(ValueError, match=r"expected \(n_events, 4\)"):
        good.score(np.zeros((5, 3), np.float32))
