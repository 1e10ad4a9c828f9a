import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from models.export import basf2_recipe, export_onnx
from models.network import PunziNet
from models.trained import Conditions, from_network
from selection.definition import search_from
from selection.windows import MassWindows
from tests.dimuon import FEATURES, SEARCH

onnxruntime = pytest.importorskip("onnxruntime")

LOW, HIGH = np.array([0, 0, -6, 1.0]), np.array([5, 6, 2, 5.0])


def model(seed=1, steepness=1.0, hidden=(8, 4)):
    windows = MassWindows(np.array([1.0, 2.0]), np.array([0.2, 0.2]), 2.0, squared=True)
    net = PunziNet(LOW, HIGH, seed=seed, hidden=hidden)
    for parameter in net.parameters():
        parameter.data.mul_(steepness)
    conditions = Conditions("punzi", 0.5, 10.58, 50.0, {}, {}, {})
    return from_network(
        net, search=SEARCH, windows=windows, trained=np.ones(2, bool), conditions=conditions
    )


@pytest.mark.parametrize("n", [1, 7, 5000])
@pytest.mark.parametrize(("steepness", "hidden"), [(1, (8, 4)), (12, (8, 4)), (3, (5,))])
def test_onnxruntime_agrees_with_our_scores_for_any_batch(n, steepness, hidden, tmp_path):
    m = model(steepness=steepness, hidden=hidden)
    export_onnx(m, tmp_path / "net.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    (entry,), (result,) = session.get_inputs(), session.get_outputs()
    assert (entry.shape, result.shape) == (["n", 4], ["n", 1])
    x = np.random.default_rng(n).uniform(LOW, HIGH, (n, 4)).astype(np.float32)
    (score,) = session.run([result.name], {entry.name: x})
    assert score.shape == (n, 1)
    assert np.abs(score[:, 0] - m.score(x)).max() < 1e-6
    assert [p.name for p in tmp_path.iterdir()] == ["net.onnx"]


def evaluate_aliases(p0, p1):
    """A reader of the few basf2 expressions we use."""
    total = p0 + p1

    def daughter(i, variable):
        return variable((p0, p1)[i])

    words = {
        "daughter": daughter, "formula": lambda v: v, "max": max, "min": min,
        "useCMSFrame": lambda v: v, "p": np.linalg.norm,
        **{f"p{x}": partial(lambda k, v: v[k], k) for k, x in enumerate("xyz")},
    }  # fmt: skip
    values = {"pt_mumu": np.hypot(total[0], total[1])}
    for name, text in SEARCH.basf2.items():
        if name not in values:
            assert re.fullmatch(r"[\w\s(),.*/^+-]+", text)
            values[name] = eval(text.replace("^", "**"), {"__builtins__": {}}, words | values)  # noqa: S307
    return values


def test_the_recipe_computes_the_four_features_of_the_training():
    rng = np.random.default_rng(2)
    for _ in range(50):
        p0, p1 = rng.normal(0, 2, (2, 3))
        high, low = (p0, p1) if np.linalg.norm(p0) > np.linalg.norm(p1) else (p1, p0)
        cross = np.linalg.norm(np.cross(p0, p1))
        axis = max(np.linalg.norm(p0 + p1), np.linalg.norm(p0 - p1))
        expected = (
            cross / axis,
            np.linalg.norm(np.cross(high, low)) / np.linalg.norm(low),
            high @ low / np.linalg.norm(low),
            np.hypot(*(p0 + p1)[:2]),
        )
        found = evaluate_aliases(p0, p1)
        assert [found[name] for name in FEATURES] == pytest.approx(expected)


def test_the_recipe_is_python_that_names_every_input_in_order():
    text = basf2_recipe(model(), "net.onnx")
    compile(text, "recipe", "exec")
    assert "variables=[" + ", ".join(f'"{name}"' for name in FEATURES) + "]" in text
    assert "score >= 0.5" in text
    for name, cut in SEARCH.cuts.items():
        assert f"#   {name}: {cut}\n" in text
    assert 'save("net.root")' in text


def test_an_alias_comes_after_those_it_names_and_a_feature_without_one_is_named():
    text = basf2_recipe(model(), "net.onnx")
    at = {name: text.index(f'addAlias("{name}"') for name in SEARCH.basf2}
    assert at["cross_x_cm"] < at["cross_cm"] < at["pt_thrust"]
    assert "no alias" not in text
    without = {k: v for k, v in SEARCH.plain()["basf2"].items() if k != "pt_thrust"}
    bare = replace(model(), search=search_from({**SEARCH.plain(), "basf2": without}))
    text = basf2_recipe(bare, "net.onnx")
    compile(text, "recipe", "exec")
    assert f"# no alias is known for pt_thrust = {SEARCH.feature('pt_thrust').value}" in text


def test_words_of_a_stranger_stay_in_their_comment():
    """A line end within an expression would begin a line of Python."""
    plain = SEARCH.plain()
    plain["cuts"]["pt_mumu"] = "pt_mumu > (\n1.0)"
    text = basf2_recipe(replace(model(), search=search_from(plain)), "net.onnx")
    assert "#   pt_mumu: pt_mumu > ( 1.0)\n" in text
