"""Results of another call are never mixed with new ones, nor overwritten."""

import json

import pytest

from analysis.apply.model import ApplyError
from analysis.apply.plan import SPECTRA_JSON, SPECTRA_ROOT, SUMMARY, finished_jobs


@pytest.mark.parametrize("name", [SPECTRA_JSON, SPECTRA_ROOT, SUMMARY])
def test_spectra_and_summary_of_another_call_are_in_the_way(tmp_path, name):
    assert finished_jobs(tmp_path, [], "now") == {}
    (tmp_path / name).write_text(json.dumps({"stamp": "before"}, indent=1))
    with pytest.raises(ApplyError, match=f"{name} exists and belongs to another call"):
        finished_jobs(tmp_path, [], "now")


def test_those_of_the_same_call_are_not(tmp_path):
    for name in (SPECTRA_JSON, SPECTRA_ROOT):
        (tmp_path / name).write_text("spectra")
    (tmp_path / SUMMARY).write_text(json.dumps({"stamp": "now"}, indent=1))
    assert finished_jobs(tmp_path, [], "now") == {}
    (tmp_path / SUMMARY).write_bytes(b"\xff\xfe")  # not even text: of nobody we know
    with pytest.raises(ApplyError, match="belongs to another call"):
        finished_jobs(tmp_path, [], "now")
