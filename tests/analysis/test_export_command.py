"""`punzi export`: one ONNX file and the text that says how basf2 computes its inputs."""

import ast
import logging
from dataclasses import replace

import numpy as np
import pytest

from analysis.cli import main
from models.network import PunziNet
from models.trained import Conditions, from_network, load_model, save_model
from selection.windows import MassWindows
from tests.dimuon import FEATURES, SEARCH

pytest.importorskip("onnx")


@pytest.fixture
def net(tmp_path):
    windows = MassWindows(np.array([1.0, 2.0]), np.array([0.2, 0.2]), 2.0, squared=True)
    network = PunziNet(np.zeros(4), np.full(4, 5.0), seed=3)
    conditions = Conditions("punzi", 0.5, 10.58, 50.0, {}, {}, {})
    path = tmp_path / "net-00.safetensors"
    made = from_network(
        network, search=SEARCH, windows=windows, trained=np.ones(2, bool), conditions=conditions
    )
    save_model(made, path)
    return path


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


def test_the_exported_file_scores_as_the_model_does(net, tmp_path, punzi):
    onnxruntime = pytest.importorskip("onnxruntime")
    code, _, err = punzi("export", str(net), "-o", str(tmp_path / "new" / "net.onnx"))
    assert code == 0, err
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["net.basf2.py", "net.onnx"]
    session = onnxruntime.InferenceSession(tmp_path / "new/net.onnx")
    x = np.random.default_rng(1).uniform(0, 5, (100, 4)).astype(np.float32)
    (score,) = session.run(None, {"features": x})
    assert np.abs(score[:, 0] - load_model(net).score(x)).max() < 1e-6
    recipe = (tmp_path / "new/net.basf2.py").read_text()
    compile(recipe, "recipe", "exec")
    assert all(f'addAlias("{name}"' in recipe for name in FEATURES)
    assert "net.onnx" in recipe


@pytest.mark.parametrize("name", ["net.onnx", "net.basf2.py"])
def test_an_existing_file_is_replaced_only_when_asked(net, tmp_path, punzi, name):
    (tmp_path / name).write_text("precious")
    command = ["export", str(net), "-o", str(tmp_path / "net.onnx")]
    code, _, err = punzi(*command)
    assert code == 1
    assert "--overwrite" in err
    assert (tmp_path / name).read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2
    assert punzi(*command, "--overwrite")[0] == 0
    assert (tmp_path / name).read_bytes() != b"precious"


def test_a_damaged_model_or_a_folder_as_target_is_refused(net, tmp_path, punzi):
    code, _, err = punzi("export", str(net), "-o", str(tmp_path))
    assert code == 1
    assert "is a folder" in err
    net.write_bytes(net.read_bytes()[:-1])
    code, _, err = punzi("export", str(net), "-o", str(tmp_path / "net.onnx"))
    assert code == 1
    assert "damaged" in err
    assert [p.name for p in tmp_path.iterdir()] == [net.name]


@pytest.mark.parametrize("name", ['b")', "a\nprint('hi')  #", "a b", "", 'x"+"y'])
@pytest.mark.parametrize("section", ["features", "cuts", "basf2"])
def test_names_of_a_foreign_model_do_not_become_code(net, tmp_path, punzi, section, name):
    model = load_model(net)
    if section == "features":
        other = replace(model.search.features[0], name=name)
        strange = replace(model.search, features=(other, *model.search.features[1:]))
    else:
        strange = replace(model.search, **{section: {name: "pt_mumu > 1"}})
    save_model(replace(model, search=strange), net)
    code, _, err = punzi("export", str(net), "-o", str(tmp_path / "new/net.onnx"))
    assert code == 1
    assert "is no name: a letter, then letters, digits and _" in " ".join(err.split())
    assert not (tmp_path / "new").exists()


HI = """1")
print("hi")  # \\"""


def test_texts_of_a_foreign_model_stay_texts(net, tmp_path, punzi):
    """Expressions of basf2 are not ours to read: they may hold anything."""
    model = load_model(net)
    texts = {**model.search.basf2, "p0_cm": HI}
    save_model(replace(model, search=replace(model.search, basf2=texts)), net)
    code, _, err = punzi("export", str(net), "-o", str(tmp_path / "net.onnx"))
    assert code == 0, err
    tree = ast.parse((tmp_path / "net.basf2.py").read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert "print" not in {ast.unparse(call.func) for call in calls}
    assert HI in [ast.literal_eval(a) for c in calls for a in c.args]
