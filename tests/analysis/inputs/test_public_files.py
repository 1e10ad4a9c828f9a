"""Public ROOT files nobody here wrote, where they lie beside the project: read, or refused in words.

`uproot-Zmumu*.root` (scikit-hep-testdata) holds Z -> mu mu of CMS in six compressions.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import uproot

from analysis.apply.command import apply_model
from analysis.apply.plan import Request
from analysis.cli import main
from analysis.config.configuration import parse
from analysis.inputs.check import CheckError, find_problems, inspect_all
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.index import load_selection
from analysis.select.skim import read_table
from analysis.select.stage import select_events
from models.network import PunziNet
from models.trained import Conditions, from_network, save_model
from selection.beams import SUPERKEKB
from selection.windows import MassWindows

REAL = Path(__file__).resolve().parents[4] / "shared" / "real"
pytestmark = pytest.mark.skipif(
    not REAL.is_dir(), reason="the public ROOT files are not beside the project"
)
ZMUMU = [
    f"uproot-Zmumu{kind}.root" for kind in ("", "-lz4", "-lzma", "-uncompressed", "-zlib", "-zstd")
]
ONE = Execution(executor="iterative")
SEARCH = """
  name: z_to_mumu
  mass: {symbol: m}
  particles:
    one: {px: px1, py: py1, pz: pz1, e: E1}
    two: {px: px2, py: py2, pz: pz2, e: E2}
  define: {pair: one + two}
  axis: {name: m_mumu, value: pair.mass, peak: mass, bins: [60, 60, 120], label: M, unit: GeV/c^2}
  features: {pt: pair.pt, dphi: abs(one.deltaphi(two)), stored: M, charge: Q1*Q2}
  cuts: {opposite: Q1*Q2 < 0}
"""
CONFIG = f"""
luminosity_inv_fb: 1
candidates: all
accept: [energies]        # no e+e- collider
columns: {{run: Run, event: Event}}
search: {SEARCH}
samples:
  data: {{kind: data, files: FILE, luminosity_inv_fb: 1, duplicates: allow}}
"""


def configured(file):
    return parse(CONFIG.replace("FILE", str(REAL / file)), where="test")


def selected(file, folder):
    config = configured(file)
    with open_run(folder / file.replace(".", "_")) as run:
        select_events(run, config, datasets(config, folder=folder), ONE)
        return read_table(load_selection(run).parts)


def test_one_content_in_six_compressions_is_one_selection(tmp_path):
    tables = [selected(file, tmp_path) for file in ZMUMU]
    assert len(tables[0]) > 2000
    for other in tables[1:]:
        for name in ("axis", "features", "key"):
            assert np.array_equal(getattr(tables[0], name), getattr(other, name))


def test_the_mass_is_the_stored_one(tmp_path):
    table = selected(ZMUMU[0], tmp_path)
    assert table.feature_names == ("pt", "dphi", "stored", "charge")
    assert table.axis == pytest.approx(table.features[:, 2], rel=1e-6)
    assert (table.features[:, 3] == -1).all()


def test_a_model_is_applied_to_them(tmp_path):
    config = configured(ZMUMU[0])
    table = selected(ZMUMU[0], tmp_path)
    low, high = table.features.min(axis=0) - 1, table.features.max(axis=0) + 1
    windows = MassWindows(np.array([80.0, 91.0]), np.full(2, 2.5), 2.0, squared=False)
    model = from_network(
        PunziNet(low, high, seed=1),
        search=config.definition,
        windows=windows,
        trained=np.ones(2, bool),
        conditions=Conditions(
            "punzi", 0.5, SUPERKEKB.sqrt_s_gev, 1.0,
            {"electron_energy_gev": 7.004, "positron_energy_gev": 4.002, "half_crossing_angle_rad": 0.0415},
            {}, {}, candidates="all",
        ),
    )  # fmt: skip
    save_model(model, tmp_path / "net-00.safetensors")
    (tmp_path / "c.yaml").write_text("accept: [energies]\n")
    found = []
    for file in ZMUMU:
        out = tmp_path / f"out-{file}"
        request = Request(
            (tmp_path / "net-00.safetensors",), (str(REAL / file),), out, tmp_path / "c.yaml"
        )
        apply_model(request, ONE)
        with uproot.open(out / f"{file.removesuffix('.root')}.friend.root") as opened:
            found.append(opened["punzi"].arrays(library="np"))
    good = found[0]["flag"] == 0
    assert good.sum() == len(table)
    assert np.array_equal(found[0]["m_mumu"][good], table.axis)
    assert found[0]["score"][good] == pytest.approx(model.score(table.features), abs=1e-7)
    for other in found[1:]:
        assert all(np.array_equal(found[0][k], other[k], equal_nan=True) for k in other)


def test_a_flat_rntuple_written_by_root_is_read(tmp_path):
    text = """
luminosity_inv_fb: 1
candidates: all
search:
  particles: {p: {pt: Age, theta: Grade, phi: Step, mass: 0}}
  axis: {name: age, value: 1*Age, peak: mass, bins: [10, 0, 100]}
  features: {cost: Cost}
samples: {d: {kind: data, files: FILE, luminosity_inv_fb: 1}}
accept: [energies]
"""
    file = REAL / "ntpl001_staff_rntuple_v1-0-1-0.root"
    config = parse(text.replace("FILE", str(file)), where="test")
    with open_run(tmp_path / "run") as run:
        select_events(run, config, datasets(config, folder=tmp_path), ONE)
        table = read_table(load_selection(run).parts)
    assert len(table) == 3354
    with uproot.open(file) as opened:
        assert np.array_equal(table.axis, opened["Staff"]["Age"].array(library="np"))


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("Run2012BC_DoubleMuParked_Muons_1000evts_rntuple_v1-0-0-0.root", "has no branch 'px1'"),
        ("uproot-HZZ.root", "has no branch 'px1'"),
        ("uproot-empty.root", "no TTree or RNTuple|has no branch"),
        ("mdst-v09-00-00.root", "has no branch 'px1'"),
        ("mdst_with_muid.root", "has no branch 'px1'"),
        ("Pi0_Validation_ntuple.root", "has no branch 'px1'"),
    ],
)
def test_other_files_are_refused_in_words(file, message):
    config = configured(file)
    sets = datasets(config, folder=REAL)
    texts = " ".join(p.text for p in find_problems(sets, inspect_all(config, sets, workers=1)))
    assert re.search(message, texts), texts


def test_jagged_muons_are_refused_as_such(tmp_path):
    text = CONFIG.replace("FILE", str(REAL / "uproot-HZZ.root"))
    text += "tree: events\n"
    names = {"px1": "Muon_Px", "py1": "Muon_Py", "pz1": "Muon_Pz", "E1": "Muon_E", "M": "MET_px"}
    text = text.replace("run: Run", ", ".join(f"{k}: {v}" for k, v in names.items()) + ", run: Run")
    config = parse(text, where="test")
    with open_run(tmp_path / "run") as run, pytest.raises(CheckError, match="expected one number"):
        select_events(run, config, datasets(config, folder=tmp_path), ONE)


def test_the_command_checks_them(tmp_path, monkeypatch, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG.replace("FILE", str(REAL / ZMUMU[0])))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["punzi", "check", "-c", "c.yaml"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0, capsys.readouterr().err
