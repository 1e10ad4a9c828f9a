"""`punzi init` writes a configuration that is valid, says what is to be filled in, and overwrites nothing."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import uproot

from analysis.cli import main
from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.start.template import FILL_IN, scalar
from selection.ntuple import escape

ROOT = Path(__file__).resolve().parents[3]
ZMUMU = ROOT.parent / "shared/real/uproot-Zmumu.root"
PAIR = {  # as in a public file of Z -> mu mu
    **{f"mu_plus_{v.lower()}": f"{v}1" for v in ("px", "py", "pz", "E")},
    **{f"mu_minus_{v.lower()}": f"{v}2" for v in ("px", "py", "pz", "E")},
    "run": "Run",
    "event": "Event",
}


def init(*words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["punzi", "init", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
    return end.value.code


def written(folder):
    return load(folder / "datasets.yaml")


def look_alike(path):
    """A file with the names of the public one."""
    rng = np.random.default_rng(1)
    n = 50
    sign = rng.choice([-1, 1], n).astype(np.int32)
    columns = {"Run": np.ones(n, np.int32), "Event": np.arange(n, dtype=np.int32)}
    for i, charge in ((1, sign), (2, -sign)):
        names = (f"E{i}", f"px{i}", f"py{i}", f"pz{i}", f"pt{i}", f"eta{i}", f"phi{i}")
        columns |= {name: rng.normal(size=n) for name in names}
        columns[f"Q{i}"] = charge
    columns["M"] = rng.normal(size=n)
    with uproot.recreate(path) as file:
        file.mktree("events", {k: v.dtype for k, v in columns.items()}).extend(columns)
    return path


@pytest.mark.parametrize("which", ["look-alike", "public"])
def test_a_pair_with_numbers_is_mapped(which, tmp_path):
    if which == "public" and not ZMUMU.exists():
        pytest.skip("the public ROOT files are not beside the project")
    file = ZMUMU if which == "public" else look_alike(tmp_path / "Zmumu.root")
    assert init(tmp_path / "new", file) == 0
    config = written(tmp_path / "new")
    assert config.columns == PAIR
    assert config.tree == "events"
    assert config.candidates == "all"  # there are no numbers of candidates
    text = (tmp_path / "new/datasets.yaml").read_text()
    assert "a guess" in text  # Q1 is not always +1
    for column in ("mu_plus_id", "extra_energy", "photon_recoil_angle"):
        assert re.search(rf"# {column}: .*{FILL_IN}", text)


def test_without_their_columns_the_cuts_can_be_switched_off_as_the_comment_says(tmp_path):
    init(tmp_path / "new", look_alike(tmp_path / "Zmumu.root"))
    path = tmp_path / "new/datasets.yaml"
    path.write_text(path.read_text().replace("# cuts:", "cuts:"))
    needed = set(load(path).definition.columns)
    assert needed == set(PAIR) - {"run", "event"}


def test_our_own_ntuples_need_no_map_and_pass_the_check(small_inputs, tmp_path, capsys):
    files = sorted(small_inputs.glob("*.root"))
    assert init(tmp_path, *files) == 0
    config = written(tmp_path)
    assert config.columns == {}
    assert (config.tree, config.candidates) == ("variables", "unique")
    assert config.masses_gev == (1, 2, 3, 4, 5)
    assert config.samples["background"].weight == "weight"
    assert config.samples["signal"].n_generated is None  # the files record it
    found = {f for ds in datasets(config, folder=tmp_path) for f in ds.files}
    assert found == {str(f) for f in files}
    with pytest.MonkeyPatch.context() as patch:
        words = ["punzi", "check", "-c", str(tmp_path / "datasets.yaml"), "--workers=1"]
        patch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as end:
            main()
    assert end.value.code == 0, capsys.readouterr().out


def test_basf2_expressions_are_written_as_in_a_steering_file(tmp_path, columns, save):
    ours = columns(20, mass_gev=2.0)
    names = {"mu_plus": 0, "mu_minus": 1}
    for particle, number in names.items():
        for part, variable in (
            ("px", "px"),
            ("py", "py"),
            ("pz", "pz"),
            ("e", "E"),
            ("id", "muonID"),
        ):
            branch = escape(f"daughter({number}, {variable})")
            ours[branch] = ours.pop(f"{particle}_{part}")
    save(tmp_path / "sig_2.root", ours)
    assert init(tmp_path / "new", tmp_path / "sig_2.root") == 0
    found = written(tmp_path / "new").columns
    assert found["mu_plus_px"] == "daughter(0, px)"
    assert found["mu_minus_id"] == "daughter(1, muonID)"
    assert len(found) == 10


def test_relative_paths_are_those_of_the_new_file(small_inputs, tmp_path, monkeypatch):
    (tmp_path / "in").symlink_to(small_inputs)
    monkeypatch.chdir(tmp_path)
    files = [f"in/signal_{mass}.root" for mass in (1, 2)]
    assert init("config/mine", *files) == 0
    config = written(Path("config/mine"))
    found = [f for ds in datasets(config, folder=Path("config/mine")) for f in ds.files]
    assert [Path(f).resolve() for f in found] == [Path(f).resolve() for f in files]


def test_without_files_there_is_a_valid_file_to_fill_in(tmp_path):
    assert init(tmp_path) == 0
    assert {s.kind for s in written(tmp_path).samples.values()} == {"signal", "background"}
    assert (tmp_path / "datasets.yaml").read_text().count(FILL_IN) >= 3


def test_the_demo_is_that_of_the_repository(tmp_path):
    assert init(tmp_path / "demo", "--demo") == 0
    assert (tmp_path / "demo/datasets.yaml").read_text() == (ROOT / "datasets.yaml").read_text()


@pytest.mark.parametrize("words", [[], ["--demo"]])
def test_what_is_there_is_kept(tmp_path, words, capsys):
    (tmp_path / "datasets.yaml").write_text("mine")
    assert init(tmp_path, *words) == 1
    assert (tmp_path / "datasets.yaml").read_text() == "mine"
    assert "is kept" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named_and_nothing_is_written(tmp_path, capsys):
    (tmp_path / "bad.root").write_bytes(b"no ROOT")
    assert init(tmp_path / "new", tmp_path / "bad.root") == 1
    assert "bad.root: is not a ROOT file" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "new").exists()


def test_every_sample_is_described_by_its_own_files(tmp_path, columns, save):
    """Data come first by their name and have no weight; one sample has names of its own."""
    made = columns(20)
    save(tmp_path / "data.root", {n: made[n] for n in made if n != "weight"})
    save(tmp_path / "eemumu.root", made)
    other = {n.replace("mu_plus_", "mup_").replace("mu_minus_", "mum_"): made[n] for n in made}
    save(tmp_path / "taupair.root", other)
    assert init(tmp_path / "new", *sorted(tmp_path.glob("*.root"))) == 0
    config = written(tmp_path / "new")
    assert {config.samples[n].weight for n in ("eemumu", "taupair")} == {"weight"}
    assert config.columns == {}
    assert config.samples["eemumu"].columns == {}
    assert config.samples["taupair"].columns["mu_plus_px"] == "mup_px"


def test_all_files_that_cannot_be_looked_into_are_told_at_once(small_inputs, tmp_path, capsys):
    whole = small_inputs / "background_0.root"
    (tmp_path / "empty.root").touch()
    (tmp_path / "cut.root").write_bytes(whole.read_bytes()[:3000])
    names = ("empty.root", "cut.root", "none.root", "*.nothing", "")
    assert init(tmp_path / "new", whole, *(tmp_path / name for name in names)) == 1
    told = " ".join(capsys.readouterr().err.split())
    for reason in (
        *("is empty (0 bytes)", "is truncated: 3000 bytes", "no such file"),
        *("no file matches this pattern", f"is a folder, not a file; give its files, {tmp_path}"),
    ):
        assert reason in told
    assert "background_0" not in told
    assert not (tmp_path / "new").exists()


def test_a_pattern_in_quotes_stands_for_its_files(small_inputs, tmp_path):
    assert init(tmp_path / "a", small_inputs / "signal_*.root") == 0
    assert init(tmp_path / "b", *sorted(small_inputs.glob("signal_*.root"))) == 0
    texts = [(tmp_path / name / "datasets.yaml").read_text() for name in "ab"]
    assert texts[0].replace("/a/", "/b/") == texts[1]


def test_the_demo_looks_into_no_files(small_inputs, tmp_path):
    assert init(tmp_path / "new", "--demo", small_inputs / "background_0.root") == 2
    assert not (tmp_path / "new").exists()


def test_signal_samples_that_share_a_mass_do_not_make_the_file_invalid(tmp_path, columns, save):
    for folder in ("a", "b"):
        for mass in (1, 2):
            name = tmp_path / folder / f"signal_{mass}.root"
            save(name, columns(10, mass_gev=float(mass)), metadata={"n_generated": 20})
    files = sorted(tmp_path.glob("*/*.root"))
    assert init(tmp_path / "new", *files) == 0
    assert written(tmp_path / "new").masses_gev == (1, 2)
    assert "masses of another sample" in (tmp_path / "new/datasets.yaml").read_text()


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "daughter(0, px)",
        "yes",
        "a: b",
        "1.5",
        "#x",
        "{mass}.root",
        "x_{mass}.root",
        "ä b",
        '"',
        "a:",
    ],
)
def test_text_is_read_back_by_yaml(text):
    import yaml

    assert yaml.safe_load(f"key: {scalar(text)}") == {"key": text}
