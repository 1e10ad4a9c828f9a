"""Damaged ntuples, model files and configurations: the right result or a clear error.

What cannot be found in principle is said here. ROOT has no checksum over the numbers of a basket
(LZ4 has one, but baskets that do not shrink are stored as they are), so that a flipped bit inside a
float is another float. Such damage must stay in its own column and its own rows, and whatever is
not a number after it must not be selected. Everything else, the structure of the file, is checked.
"""

import copy
import json
import random
import time

import numpy as np
import pytest
import uproot
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.apply.model import ApplyError, load_cut
from analysis.apply.rows import FileRows, columns_of, score_rows
from analysis.config.configuration import ConfigError, as_yaml, parse
from analysis.inputs.check import wanted_branches
from analysis.inputs.datasets import datasets
from analysis.inputs.file_report import Look, inspect_file
from analysis.inputs.tables import open_table
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.skim import read_table
from analysis.select.stage import select_events
from models.model_file import ModelFileError, read_model_file, write_model_file
from models.trained import load_model
from selection.beams import SUPERKEKB
from selection.definition import search_from
from selection.errors import UserError
from selection.search import SearchError
from tests.dimuon import SEARCH

N_FLIPS, N_CUTS, N_SELECTIONS = 100, 150, 20  # flips: of the structure, and again of the numbers
N_ROWS = 200
CONFIG = """\
luminosity_inv_fb: 50
columns: {extra_energy: extra_energy}
samples:
  signal:
    kind: signal
    files: ["*.root"]
    masses_gev: [2]
    n_generated: 1200
    scale_factors: {trigger: 0.9}
settings:
  preset: default
  windows: {n_sigma: 2}
  training: {hidden: [8, 4], hypothesis_weights: [1.0]}
"""

# as in a normal call: a warning inside uproot is not an error
pytestmark = pytest.mark.filterwarnings("ignore")


LOOK = Look(SEARCH, SUPERKEKB, missing=None, signal=False)


@pytest.fixture
def ntuple(tmp_path, columns, save):
    """A file to damage, its good bytes and the branches that are wanted of it."""
    cols, about = columns(N_ROWS, seed=3, mass_gev=2.0), {"n_generated": 1200}
    path = save(tmp_path / "in.root", cols, metadata=about)
    config = parse(CONFIG, where="y")
    wanted = wanted_branches(config, datasets(config, folder=path.parent)[0])
    yield path, path.read_bytes(), wanted
    open_table.cache_clear()


def rows_of(path, wanted):
    """The rows of a file that passes `punzi check`; None if it is refused."""
    report = inspect_file(str(path), wanted, LOOK)
    if report.problems:
        assert all(0 < len(text) < 400 for text in report.problems)
        return None
    if report.unreadable:
        return None
    identity = report.fingerprint
    return FileRows(report.file, report.tree, identity, report.branches, 0, report.n_entries)


def numbers_of(path):
    """(first byte, stop) of the numbers of every basket, by branch."""
    found = []
    with uproot.open(path) as file:
        for branch in (b for name in ("variables", "metadata") for b in file[name].branches):
            for i in range(branch.num_baskets):
                key, seek = branch.basket_key(i), int(branch.member("fBasketSeek")[i])
                found.append((seek + key.fKeylen, seek + key.fNbytes, branch.name))
    return found


def flipped(good, at, draw):
    damaged = bytearray(good)
    damaged[at] ^= draw.randrange(1, 256)
    return bytes(damaged)


def test_a_flip_in_the_structure_of_an_ntuple_changes_nothing_or_is_refused(ntuple, saved_model):
    path, good, wanted = ntuple
    applied = load_cut((saved_model,), config=None, cut=None)
    expected = score_rows(applied, rows_of(path, wanted)).branches
    numbers = {i for first, stop, _ in numbers_of(path) for i in range(first, stop)}
    draw, refused = random.Random(1), 0
    places = draw.sample([i for i in range(len(good)) if i not in numbers], N_FLIPS)
    with uproot.open(path) as file:  # the number of entries, where damage is worst
        entries = file.key("variables").fSeekKey + file.key("variables").fKeylen
        entries = good.index(N_ROWS.to_bytes(8, "big"), entries)
    for at in [*range(entries, entries + 8), *places]:
        path.write_bytes(flipped(good, at, draw))
        rows = rows_of(path, wanted)
        try:
            found = None if rows is None else score_rows(applied, rows).branches
        except ApplyError:
            found = None
        if found is None:
            refused += 1
            continue
        for name, values in expected.items():
            assert np.array_equal(found[name], values, equal_nan=True), (at, name)
    assert 8 <= refused < N_FLIPS  # much of a file is never read


def test_a_flip_in_the_numbers_of_an_ntuple_stays_in_its_column(ntuple, saved_model):
    path, good, wanted = ntuple
    applied = load_cut((saved_model,), config=None, cut=None)
    expected = columns_of(rows_of(path, wanted))
    draw, changed, baskets = random.Random(2), 0, numbers_of(path)
    for _ in range(N_FLIPS):
        first, stop, branch = draw.choice(baskets)
        path.write_bytes(flipped(good, draw.randrange(first, stop), draw))
        rows = rows_of(path, wanted)
        try:
            scored = None if rows is None else score_rows(applied, rows).branches
        except ApplyError:
            continue
        if scored is None:
            continue
        for name, values in columns_of(rows).items():
            same = np.array_equal(values, expected[name], equal_nan=True)
            assert same or rows.branches[name] == branch
            changed += not same
        assert all(len(values) == N_ROWS for values in scored.values())
        selected = scored["flag"] == 0
        for name in ("recoil_mass2", "score", "pt_mumu"):
            assert np.isfinite(scored[name][selected]).all()
            assert not scored["pass"][~selected].any()
    assert changed > N_FLIPS / 10  # else the law would say nothing


def test_a_truncated_ntuple_is_refused_wherever_it_ends(ntuple):
    path, good, wanted = ntuple
    draw = random.Random(3)
    for length in [0, 1, 19, 20, 100, len(good) - 1, *draw.sample(range(len(good)), N_CUTS)]:
        path.write_bytes(good[:length])
        (problem,) = inspect_file(str(path), wanted).problems
        assert problem.startswith(("is truncated", "is not a ROOT file", "is empty"))
    path.write_bytes(good + b"more")  # what stands behind the end is not part of the file
    assert inspect_file(str(path), wanted).problems == ()


def test_a_selection_of_a_damaged_ntuple_is_the_right_one_or_none(ntuple):
    """Flips of the tree's description through the whole of `punzi select`."""
    path, good, _ = ntuple
    config = parse(CONFIG, where="y")

    def selected(name):
        with open_run(path.parent / name) as run:
            sets = datasets(config, folder=path.parent)
            table = read_table(select_events(run, config, sets, Execution("iterative")).parts)
            return (run.path / "cutflow.json").read_bytes(), table.features.tobytes()

    expected = selected("good")
    with uproot.open(path) as file:
        key = file.key("variables")
        tree = range(key.fSeekKey, key.fSeekKey + key.fNbytes)
    draw, refused = random.Random(4), 0
    for at in draw.sample(tree, N_SELECTIONS):
        path.write_bytes(flipped(good, at, draw))
        try:
            assert selected("damaged") == expected, at
        except UserError as error:
            assert "in.root" in str(error)
            refused += 1
    assert 0 < refused < N_SELECTIONS


def test_a_model_with_one_byte_flipped_or_missing_is_refused_or_the_same(saved_model, tmp_path):
    """Every third byte of the file, and every third length."""
    good = saved_model.read_bytes()
    path, draw, kept = tmp_path / "net", random.Random(5), 0
    content, arrays = read_model_file(saved_model)
    for at in range(0, len(good), 3):
        path.write_bytes(good[:at])
        with pytest.raises(ModelFileError, match="net"):
            load_model(path)
        path.write_bytes(flipped(good, at, draw))
        try:
            load_model(path)
        except ModelFileError:
            continue
        found, numbers = read_model_file(path)
        assert found == content
        assert {k: v.tobytes() for k, v in numbers.items()} == {
            k: v.tobytes() for k, v in arrays.items()
        }
        kept += 1
    assert kept < 100  # white space of the header


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
tree = st.recursive(
    plain | st.integers(-(10**400), 10**400) | st.sampled_from(["\0", "\ud800", "~nobody/x", "*"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def places(value, at=()):
    """Paths to everything inside nested dicts and lists."""
    yield at
    inside = enumerate(value) if isinstance(value, list) else getattr(value, "items", tuple)()
    for key, inner in inside:
        yield from places(inner, (*at, key))


def with_change(value, at, new):
    if not at:
        return new
    changed = copy.copy(value)
    changed[at[0]] = with_change(value[at[0]], at[1:], new)
    return changed


once = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@once
@given(data=st.data())
def test_any_content_of_a_model_header_is_a_model_or_a_clear_error(saved_model, tmp_path, data):
    """The file is consistent, SHA-256 included: somebody made it so."""
    content, arrays = read_model_file(saved_model)
    at = data.draw(st.sampled_from(sorted(places(content), key=str)))
    finite = tree.filter(lambda t: "nan" not in repr(t).lower() and "inf" not in repr(t).lower())
    content = with_change(content, at, data.draw(finite))
    path = tmp_path / "net.safetensors"
    write_model_file(path, content, arrays)
    features = np.array([[1, 1, -1, 2.0]], np.float32)
    try:
        assert 0 <= load_model(path).score(features)[0] <= 1
        load_cut((path,), config=None, cut=None)
    except (ModelFileError, ApplyError) as error:
        assert "net.safetensors" in str(error)


words = st.sampled_from(
    ["pt_mumu > ", "recoil", "p1.E ** 999", "1/0", "where(p1, 1, 2)", "x.__class__", "hard.mag",
     "(" * 300, "not " * 300 + "a", "mass", "pi", "beams", "isnan(nan)", "9" * 1000, "a\x00b"]
)  # fmt: skip


@once
@given(data=st.data())
def test_any_search_in_a_model_is_a_search_or_a_clear_error(saved_model, tmp_path, data):
    """Its identity is the right one: somebody made it so."""
    content, arrays = read_model_file(saved_model)
    good = json.loads(content["search"])
    at = data.draw(st.sampled_from(sorted(places(good), key=str)))
    plain = with_change(good, at, data.draw(tree | words))
    content["search"] = json.dumps(plain)
    try:
        content["search_identity"] = search_from(json.loads(content["search"])).identity
    except SearchError as error:
        assert error.problems
    path = tmp_path / "net.safetensors"
    write_model_file(path, content, arrays)
    features = np.array([[1, 1, -1, 2.0]], np.float32)
    try:
        assert 0 <= load_model(path).score(features)[0] <= 1
    except (ModelFileError, ApplyError) as error:
        assert "net.safetensors" in str(error)


@once
@given(data=st.data())
def test_one_wrong_value_in_a_search_is_accepted_whole_or_refused(data):
    """Accepted means usable: it can be written into the run folder and read back."""
    good = {**yaml.safe_load(CONFIG), "search": SEARCH.plain(), "cuts": {"more": "pt_mumu > 2"}}
    inside = [at for at in places(good) if at and at[0] in ("search", "cuts")]
    at = data.draw(st.sampled_from(sorted(inside, key=str)))
    text = yaml.safe_dump(with_change(good, at, data.draw(tree | words)), sort_keys=False)
    try:
        config = parse(text, where="fuzz.yaml")
    except ConfigError as error:
        str(error).encode()
        return
    again = parse(as_yaml(config), where="y")
    assert again == config
    assert again.definition.identity == config.definition.identity
    assert len(config.definition.columns) > 0


@once
@given(header=tree, numbers=st.binary(max_size=40))
def test_any_safetensors_header_is_a_clear_error(tmp_path, header, numbers):
    text = json.dumps({"__metadata__": {"punzi": json.dumps(header)}, "x": header}).encode()
    path = tmp_path / "net.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    with pytest.raises(ModelFileError, match=r"net\.safetensors"):
        load_model(path)


@once
@given(data=st.data())
def test_one_wrong_value_in_a_configuration_is_accepted_whole_or_refused(tmp_path, data):
    """Accepted means usable: it can be written into the run folder, read back, and normalised."""
    good = yaml.safe_load(CONFIG)
    at = data.draw(st.sampled_from(sorted(places(good), key=str)))
    text = yaml.safe_dump(with_change(good, at, data.draw(tree)))
    try:
        config = parse(text, where="fuzz.yaml")
        weights = [ds.constant_weight * ds.scale for ds in datasets(config, folder=tmp_path)]
    except ConfigError as error:
        str(error).encode()
        return
    assert all(0 < weight < np.inf for weight in weights)
    resolved = yaml.safe_dump(config.model_dump(mode="json"), allow_unicode=True)
    resolved.encode()
    assert parse(resolved, where="y") == config


@once
@given(st.text(max_size=30) | st.builds("{}={}".format, st.sampled_from(
    ["preset", "windows.n_sigma", "training.hidden", "plots.text", "a.b", ".", "cuts.pt_mumu", "cuts",
     "features.x", "search"]
), st.text(max_size=12)))  # fmt: skip
def test_any_override_is_a_setting_or_a_clear_error(text):
    try:
        config = parse(CONFIG, where="y", overrides=[text])
    except ConfigError as error:
        str(error).encode()
    else:
        yaml.safe_dump(config.model_dump(mode="json"), allow_unicode=True).encode()


def bomb(key):
    """Nine lines of YAML that stand for 9^9 values."""
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    return f"{key}:\n" + "\n".join(f"  {line}" for line in lines)


def merge_bomb(levels):
    """Mappings that merge the one before nine times each."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, levels + 1)
    ]
    return "\n".join(lines)


HOSTILE = {
    "a bomb of aliases": (bomb("settings"), "settings"),
    "a bomb as preset": ("settings:\n  " + bomb("preset").replace("\n", "\n  "), "preset"),
    "a bomb of merges": (merge_bomb(9), "a key must be a plain word"),
    "a bomb as a key": (f"{bomb('b')}\n? *a8\n: 1", "a key must be a plain word"),
    "3000 wrong keys": ("\n".join(f"k{i}: 1" for i in range(3000)), "and 29.* more"),
    "a list as preset": ("settings: {preset: [1]}", "preset"),
    "a tag that does not fit": ("a: !!bool maybe", "not valid YAML"),
    "a date that is none": ("a: !!timestamp soon", "not valid YAML"),
    "an empty number": ("a: !!int ''", "not valid YAML"),
    "a value inside itself": ("settings: &a {windows: *a}", "settings"),
    "brackets": ("a: " + "[" * 1500, "not valid YAML"),
    "a zero byte": (CONFIG.replace('"*.root"', '"a\\0.root"'), r"line 6: .*control character"),
    "half a character": (CONFIG.replace("default", '"\\ud800"'), "control character"),
    "no number": (CONFIG.replace("n_sigma: 2", "n_sigma: .nan"), "finite number"),
    "no layer": (CONFIG.replace("[8, 4]", "[0]"), "greater than 0"),
    "layers for a cluster": (CONFIG.replace("[8, 4]", "[100000000]"), "4096"),
    "no weights": (CONFIG.replace("[1.0]", "[0.0]"), "all zero"),
    "a cut beyond 1": (
        CONFIG.replace("windows:", "evaluation: {single_cut: 7}\n  windows:"),
        r"single_cut.*less than or equal to 1",
    ),
    "a long name": (CONFIG.replace("  signal:", f"  {'s' * 200}:"), "becomes a folder"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_configurations_are_refused_at_once(name):
    text, message = HOSTILE[name]
    begin = time.process_time()
    with pytest.raises(ConfigError, match=message) as caught:
        parse(text, where="hostile.yaml")
    assert len(str(caught.value)) < 20_000
    assert time.process_time() - begin < 10
