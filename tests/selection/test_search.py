"""The definition of a search: what it must say, how it is changed, and that it comes back whole."""

import copy
import json

import pytest

from analysis.config.configuration import ConfigError, parse
from analysis.config.searches import plain_search, shipped_names, shipped_search
from selection.definition import search_from, with_changes
from selection.search import SearchError, math_unit
from tests.dimuon import SEARCH

PLAIN = {
    "particles": {"a": {"px": "a1", "py": "a2", "pz": "a3", "e": "a4"}},
    "define": {"rest": "beams - a"},
    "axis": {"name": "m2", "value": "rest.mass2", "peak": "mass**2", "bins": [10, 0, 100]},
    "features": {"pt": "a.pt", "energy": {"value": "a.E", "label": "$E$", "unit": "GeV"}},
    "cuts": {"hard": "a.E > 1", "extra": "extra_energy < 0.4"},
}


def changed(**sections):
    made = copy.deepcopy(PLAIN)
    for name, value in sections.items():
        if value is None:
            del made[name]
        elif isinstance(value, dict) and isinstance(made.get(name), dict):
            made[name] = {k: v for k, v in (made[name] | value).items() if v is not None}
        else:
            made[name] = value
    return made


def test_every_shipped_search_can_be_used():
    assert "dimuon_recoil" in shipped_names()
    for name in shipped_names():
        assert shipped_search(name).name == name


def test_a_definition_comes_back_from_plain_values_in_its_order():
    again = search_from(json.loads(json.dumps(SEARCH.plain())))
    assert again == SEARCH
    assert again.feature_names == ("pt_thrust", "pt_max_wrt_min", "pl_max_wrt_min", "pt_mumu")
    assert list(again.cuts) == list(SEARCH.cuts)


def test_the_columns_are_those_that_something_needs():
    assert search_from(PLAIN).columns == ("a1", "a2", "a3", "a4", "extra_energy")
    unused = changed(define={"never": "b9 + 3"})
    assert search_from(unused).columns == search_from(PLAIN).columns
    assert search_from(changed(cuts={"extra": None})).columns == ("a1", "a2", "a3", "a4")


def test_labels_change_no_number_and_expressions_do():
    same = changed(features={"energy": {"value": "a.E", "label": "other", "bins": [5, 0, 1]}})
    assert search_from(same).identity == search_from(PLAIN).identity
    for other in (
        changed(features={"energy": "2 * a.E"}),
        changed(cuts={"hard": "a.E > 2"}),
        changed(axis={"peak": "mass"}),
        changed(define={"rest": "beams - 2*a"}),
        changed(particles={"a": {"px": "a1", "py": "a2", "pz": "a3", "mass": 0.1}}),
    ):
        assert search_from(other).identity != search_from(PLAIN).identity


def test_definitions_may_stand_in_any_order():
    text = {"one": "two + three", "two": "three.E", "three": "2 * rest", "one_": "two"}
    with pytest.raises(SearchError, match=r"define.one: a number and a four-vector"):
        search_from(changed(define=text))
    found = search_from(changed(define=text | {"one": "two + three.E"}))
    assert list(found.parts.define).index("three") < list(found.parts.define).index("two")


WRONG = {
    "not a mapping": (["x"], "expected a mapping"),
    "an empty axis": ({**PLAIN, "axis": {}}, "axis: is missing"),
    "no particles in it": ({**PLAIN, "particles": {}}, "particles: is missing"),
    "no axis": (changed(axis=None), "axis: is missing"),
    "no features": (changed(features=None), "features: is missing"),
    "no particles": (changed(particles=None), "particles: is missing"),
    "an unknown section": (changed(featuers={}), "featuers: unknown entry; did you mean features"),
    "no feature": (changed(features={"pt": None, "energy": None}), "0 features; from 1 to 32"),
    "too many features": (
        changed(features={f"f{i}": "a.E" for i in range(31)}),
        "33 features; from 1 to 32",
    ),
    "coordinates": (changed(particles={"a": {"px": "a1", "e": "a4"}}), "has px, e; wanted is one of"),
    "a number as a column": (
        changed(particles={"a": {"px": 1, "py": "a2", "pz": "a3", "e": "a4"}}),
        "particles.a.px: expected the name of a column, found 1",
    ),
    "an expression as a column": (
        changed(particles={"a": {"px": "a1*2", "py": "a2", "pz": "a3", "e": "a4"}}),
        "expected the name of a column",
    ),
    "a peak": (changed(axis={"peak": "mass**3"}), r"axis.peak: expected mass\*\*2"),
    "no bins of the axis": (changed(axis={"bins": None}), "axis: needs bins"),
    "bins": (changed(axis={"bins": [10, 5, 1]}), "low < high"),
    "a name twice": (changed(define={"a": "beams"}), "define.a: a is a name in particles already"),
    "a word of the language": (changed(define={"sqrt": "beams"}), "word of the language"),
    "our own column": (changed(features={"weight": "a.E"}), "column of our own"),
    "no name": (changed(cuts={"a b": "a.E > 1"}), "is no name"),
    "a circle": (changed(define={"u": "w + a", "w": "u - a"}), "is defined by itself: u -> w -> u"),
    "itself": (changed(define={"u": "u + a"}), "defined by itself: u -> u"),
    "a cut that is a number": (changed(cuts={"hard": "a.E"}), "is a number, a condition is needed"),
    "a feature that is a vector": (changed(features={"pt": "a"}), "is a four-vector, a number is"),
    "an axis that is a condition": (changed(axis={"value": "a.E > 1"}), "is a condition, a number"),
    "a feature in a feature": (changed(features={"pt": "energy.mass"}), "is a column"),
    "a cut that is no text": (changed(cuts={"hard": 5}), "cuts.hard: expected a text"),
    "code in a cut": (changed(cuts={"hard": "__import__('os')"}), "no function __import__"),
    "code in a label": (changed(features={"pt": {"value": "a.E", "label": 3}}), "expected a text"),
    "a unit of mass": (changed(mass={"unit": "MeV"}), "masses are in GeV"),
    "a range": (changed(columns={"q": {"range": [0, "x"]}}), "expected .low, high."),
    "an alias that is code": (changed(basf2={'x"); import os #': "y"}), "is no name"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_definition_is_refused_in_words(case):
    plain, message = WRONG[case]
    with pytest.raises(SearchError, match=message):
        search_from(plain)


def test_all_problems_are_told_at_once():
    with pytest.raises(SearchError) as caught:
        search_from(
            changed(features={"pt": "a.ptt"}, cuts={"hard": "a.EE > 1"}, axis={"value": "q.x"})
        )
    assert len(caught.value.problems) == 3


def test_features_and_cuts_are_added_replaced_and_switched_off_by_name():
    made = search_from(with_changes(
        PLAIN, features={"third": "a.theta", "pt": None}, cuts={"hard": "a.E > 3", "new": "a.E < 9"}
    ))  # fmt: skip
    assert made.feature_names == ("energy", "third")
    assert list(made.cuts.items()) == [
        ("hard", "a.E > 3"), ("extra", "extra_energy < 0.4"), ("new", "a.E < 9")]  # fmt: skip
    with pytest.raises(
        SearchError, match=r"cuts\.hrad: there is none to switch off; did you mean hard"
    ):
        with_changes(PLAIN, features={}, cuts={"hrad": None})


CONFIG = "luminosity_inv_fb: 1\nsamples: {s: {kind: data, files: a.root, luminosity_inv_fb: 1}}\n"


def test_a_search_may_stand_in_a_file_beside_the_configuration(tmp_path):
    (tmp_path / "mine.yaml").write_text(json.dumps(PLAIN))
    found = parse(CONFIG + "search: mine.yaml\n", where="c.yaml", folder=tmp_path)
    assert found.definition == search_from(PLAIN)
    assert plain_search("mine.yaml", folder=tmp_path) == PLAIN


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("search: nowhere.yaml", "line 3: the search .*nowhere.yaml cannot be read"),
        ("search: dimuon_recoli", "did you mean dimuon_recoil"),
        ("search: 5", "search"),
        ("cuts: {muon_ide: null}", "line 3: cuts.muon_ide: there is none .* did you mean muon_id"),
        ("cuts:\n  new: mu_plus.E >", "line 4: cuts.new: invalid syntax"),
        ("features: {fifth: mu_plu.E}", "mu_plu is a column .* did you mean mu_plus"),
        ("columns: {mu_plus_pxx: q}", "columns.mu_plus_pxx: no such key"),
    ],
)
def test_a_mistake_is_shown_at_its_line(tmp_path, more, message):
    with pytest.raises(ConfigError, match=message):
        parse(CONFIG + more + "\n", where="c.yaml", folder=tmp_path)


def test_cuts_and_features_may_be_set_on_the_command_line():
    found = parse(CONFIG, where="c", overrides=["cuts.pt_mumu=pt_mumu > 2", "cuts.muon_id=null"])
    assert found.definition.cuts["pt_mumu"] == "pt_mumu > 2"
    assert "muon_id" not in found.definition.cuts


def test_units_become_mathtext():
    assert math_unit("GeV^2/c^4") == "GeV$^2$/$c^4$"
    assert math_unit("rad") == "rad"
    assert math_unit("cm") == "cm"
