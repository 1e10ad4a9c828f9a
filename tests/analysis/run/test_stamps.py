"""A stamp says that a stage is out of date exactly when something it depends on changed, and what."""

import json

import pytest
from pydantic import BaseModel

from analysis.run.folder import RunError, RunFolder, WorkIsDue, read_json
from analysis.run.stamps import NEVER, differences, stamp_of


class Section(BaseModel):
    level: float
    masses: tuple[float, ...] = ()


BEFORE = {"limit": Section(level=0.9), "code": "a" * 32, "stages": [{"epochs": 1}, {"epochs": 2}]}


def with_change(**parts):
    return stamp_of(**(BEFORE | parts))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ()),
        ({"limit": Section(level=0.95)}, ("limit.level was 0.9, is 0.95",)),
        ({"limit": Section(level=0.9, masses=(1, 2))}, ("limit.masses was [], is [1.0, 2.0]",)),
        ({"code": "b" * 32}, ("code changed",)),
        ({"stages": [{"epochs": 1}, {"epochs": 3}]}, ("stages.1.epochs was 2, is 3",)),
        ({"stages": [{"epochs": 1}]}, ("stages.1.epochs is gone",)),
        ({"beams": {"sqrt_s": 10.58}}, ("beams.sqrt_s is new",)),
        ({"limit": Section(level=float("nan"))}, ("limit.level was 0.9, is NaN",)),
    ],
    ids=str,
)
def test_what_changed_is_named_with_both_values_or_as_changed_if_they_are_long(change, words):
    assert differences(stamp_of(**BEFORE), with_change(**change)) == words


def test_a_long_value_that_differs_in_one_character_differs():
    texts = ["x" * 1000 + c for c in "ab"]
    assert differences(stamp_of(cut=texts[0]), stamp_of(cut=texts[1])) == ("cut changed",)
    assert differences(stamp_of(cut=texts[0]), stamp_of(cut=texts[0])) == ()


@pytest.fixture
def finished(tmp_path):
    run = RunFolder(tmp_path)
    result = tmp_path / "fom.csv"
    result.write_text("result")
    run.finish("evaluate", stamp_of(**BEFORE), [result])
    return run


def test_a_stage_is_current_while_its_stamp_is_and_its_files_are_there(finished):
    assert finished.is_current("evaluate", stamp_of(**BEFORE))
    assert not finished.is_current("evaluate", with_change(code="b"))
    assert finished.why_due("limit", stamp_of(**BEFORE)) == (NEVER,)
    (finished.path / "fom.csv").unlink()
    assert finished.why_due("evaluate", stamp_of(**BEFORE)) == ("fom.csv is missing",)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"files": []}', '{"stamp": "4f", "files": []}', "{", "null"]
)
def test_a_stamp_of_another_kind_is_out_of_date_and_says_so(finished, content):
    (finished.path / "stamps/evaluate.json").write_text(content)
    (why,) = finished.why_due("evaluate", stamp_of(**BEFORE))
    assert "another version" in why


@pytest.mark.parametrize("value", [1, None, "", [2]])
def test_a_stamp_with_values_of_another_kind_is_out_of_date(finished, value):
    content = {"stamp": {**stamp_of(**BEFORE), "code": value}, "files": []}
    (finished.path / "stamps/evaluate.json").write_text(json.dumps(content))
    assert finished.why_due("evaluate", stamp_of(**BEFORE))


def test_a_run_that_is_only_looked_at_stops_at_all_work_that_is_due_at_once(finished):
    looked_at = RunFolder(finished.path, only_look=True)
    assert looked_at.is_current("evaluate", stamp_of(**BEFORE))
    stamps = dict.fromkeys(("evaluate", "train-00.0", "train-00.1"), stamp_of(**BEFORE))
    with pytest.raises(WorkIsDue) as stopped:
        looked_at.due(stamps)
    assert stopped.value.reasons == dict.fromkeys(("train-00.0", "train-00.1"), (NEVER,))


@pytest.mark.parametrize("content", ["", "{", '{"a": 1', "\x00"])
def test_a_damaged_result_is_named(tmp_path, content):
    path = tmp_path / "windows.json"
    path.write_text(content)
    with pytest.raises(RunError, match=r"windows\.json is damaged .*delete it and run again"):
        read_json(path)
