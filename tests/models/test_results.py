import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.results import (
    CHOSEN_ON_QUOTED,
    CHOSEN_ON_TRAINING,
    CLASSIFIER_TEXT,
    ONE_FOR_ALL,
    SELECTION_MEANING,
    SELECTION_TEXT,
    DecisionBoundary,
    FigureOfMerit,
    LossHistory,
    curve_text,
    from_json,
    to_json,
    to_rows,
)

ANY = st.floats(allow_nan=True, allow_infinity=True)


def history(epoch, loss):
    rate = np.full(len(epoch), 0.1)
    return LossHistory("punzi", "mono", "mean", epoch, loss, loss[::-1], rate)


def figure(**changed):
    mass = np.array([0.1, 0.2])
    names = [f for f in FigureOfMerit.__dataclass_fields__ if f not in changed]
    given_values = {
        "classifier": "punzi", "network": 3, "selection": "single_cut", "quoted_on": "validation",
        "luminosity_inv_fb": 50.0, "trained": np.array([True, False]),
    }  # fmt: skip
    return FigureOfMerit(**{n: given_values.get(n, mass.copy()) for n in names}, **changed)


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY, min_size=1, max_size=20))
def test_json_gives_back_every_number_bit_for_bit(values):
    loss = np.array(values)
    text = json.dumps(to_json(history(np.arange(len(loss), dtype=float), loss)), allow_nan=False)
    back = from_json(json.loads(text))
    assert np.array_equal(back.training, loss, equal_nan=True)
    assert (back.stage, back.label, back.loss_name) == ("punzi", "mono", "mean")


def test_arrays_keep_their_shape_and_type():
    grid = np.arange(24, dtype=float).reshape(2, 3, 4)
    boundary = DecisionBoundary(
        ("a", "b", "c"), ("d",), np.array([1.5]), 0.5, np.zeros((3, 4)), grid, np.array([1.0]),
        np.zeros(5), np.zeros((5, 3)),
    )  # fmt: skip
    back = from_json(json.loads(json.dumps(to_json(boundary))))
    assert np.array_equal(back.score, grid)
    assert back.point.shape == (5, 3)
    assert (back.free, back.fixed, back.cut) == (("a", "b", "c"), ("d",), 0.5)
    assert from_json(to_json(figure())).trained.dtype == np.bool_


def test_figure_of_merit_is_the_inverse_with_the_same_relative_error():
    f = figure(sigma_min_fb=np.array([4.0, np.inf]), sigma_min_error_fb=np.array([0.4, 0.0]))
    assert f.fom_inv_fb == pytest.approx([0.25, 0.0])
    assert f.fom_error_inv_fb == pytest.approx([0.025, 0.0])


def test_one_row_per_mass_holds_all_numbers():
    rows = list(to_rows(figure()))
    assert [r["mass_gev"] for r in rows] == [0.1, 0.2]
    assert [r["trained"] for r in rows] == [True, False]
    assert {r["network"] for r in rows} == {3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("cut"), "missing or unknown: cut"),
        (lambda d: d.update(colour=1), "missing or unknown: colour"),
        (lambda d: d.update(record="Horoscope"), "no record is called 'Horoscope'"),
        (lambda d: d.update(trained=[1, 0]), "trained is not Bools"),
        (lambda d: d.update(cut=["a", "b"]), "cut is not Floats"),
    ],
)
def test_a_damaged_record_is_named(change, message):
    data = to_json(figure())
    change(data)
    with pytest.raises(ValueError, match=message):
        from_json(data)


def test_a_map_is_not_a_table():
    boundary = DecisionBoundary(
        ("a", "b", "c"), ("d",), np.array([1.5]), 0.5, np.zeros((3, 4)), np.zeros((4, 4, 4)),
        np.zeros(1), np.zeros(5), np.zeros((5, 3)),
    )  # fmt: skip
    with pytest.raises(ValueError, match="not a table"):
        list(to_rows(boundary))


def test_every_curve_has_its_own_words_and_an_unknown_classifier_its_own_name():
    selections = {CHOSEN_ON_TRAINING, ONE_FOR_ALL, CHOSEN_ON_QUOTED}
    assert set(SELECTION_TEXT) == set(SELECTION_MEANING) == selections
    curves = [(c, s) for c in (*CLASSIFIER_TEXT, "forest") for s in selections]
    assert len({curve_text(curve) for curve in curves}) == len(curves)
    assert curve_text(("punzi", ONE_FOR_ALL)) == "Punzi-net, single cut"
    assert curve_text(("forest", CHOSEN_ON_TRAINING)) == "forest, best cut per mass"
