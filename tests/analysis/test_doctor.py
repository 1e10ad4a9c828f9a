"""`punzi doctor` tells what is missing here, and only that."""

import sys
from importlib.metadata import version

import pytest

from analysis import doctor
from analysis.cli import main
from analysis.doctor import Requirement, findings, problem, requirement


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("numpy>=2.0", Requirement("numpy", "2.0", None, None)),
        ("torch<2.14,>=2.6", Requirement("torch", "2.6", "2.14", None)),
        (
            'xgboost-cpu>=3.0; extra == "baselines"',
            Requirement("xgboost-cpu", "3.0", None, "baselines"),
        ),
        ("plain", Requirement("plain", None, None, None)),
    ],
)
def test_a_requirement_is_read_as_pip_writes_it(text, wanted):
    assert requirement(text) == wanted


@pytest.mark.parametrize(
    ("at_least", "below", "said"),
    [
        ("0.1", None, None),
        (version("numpy"), None, None),
        ("9999", None, "is older than 9999"),
        ("0.1", "1.0", "is not below 1.0"),
        (None, None, None),
    ],
)
def test_a_version_is_compared_by_its_numbers(at_least, below, said):
    found = problem(Requirement("numpy", at_least, below, None))
    assert (found is None) == (said is None)
    assert said is None or said in found


def test_versions_of_two_digits_come_after_those_of_one(monkeypatch):
    monkeypatch.setattr(doctor.importlib.metadata, "version", lambda _: "2.10.1")
    assert problem(Requirement("x", "2.9", None, None)) is None
    assert problem(Requirement("x", "2.10.1", "2.11", None)) is None
    assert problem(Requirement("x", "2.11", None, None)) is not None


def doctored(capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["punzi", "doctor"])
        with pytest.raises(SystemExit) as end:
            main()
    return end.value.code, capsys.readouterr().out


def test_all_that_the_tests_need_is_here(capsys):
    code, text = doctored(capsys)
    assert code == 0
    assert f"numpy {version('numpy')}" in text
    assert "NO " not in text


def test_a_missing_package_is_named_and_a_missing_extra_is_no_failure(capsys, monkeypatch):
    needed = ["numpy>=2.0", "no-such-package>=1", 'neither-this>=2; extra == "more"']
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda _: needed)
    code, text = doctored(capsys)
    assert code == 1
    assert "no-such-package is missing" in text
    found = {f.name: f for f in findings()}
    assert found["packages"].good is False
    assert found["more"].good is None
    assert 'pip install "punzi[more]"' in found["more"].text


def test_compiled_code_is_counted_where_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    monkeypatch.setenv("PUNZI_CACHE_DIR", str(tmp_path / "own"))
    found = {f.name: f.text for f in findings()}
    assert "nothing compiled yet" in found["compiled"]
    assert "nothing compiled yet" in found["searches"]
    (tmp_path / "numba/x").mkdir(parents=True)
    for name in ("f.nbi", "f.1.nbc", "g.nbi", "g.1.nbc"):
        (tmp_path / "numba/x" / name).write_bytes(bytes(2**20))
    assert "2 functions, 4.0 MiB" in {f.name: f.text for f in findings()}["compiled"]
