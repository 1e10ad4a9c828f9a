"""Named cuts, their counts, and the identity of events."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selection.features import EventKinematics
from selection.keys import event_keys
from selection.preselection import Preselection, candidate_mask, cutflow, named_cuts
from selection.table import validation_mask

OFF = Preselection(None, None, None, None, None, None)


def events(n, **changes):
    """n events in the middle of every cut, with some quantities replaced."""
    features = np.full((4, n), 2.0, np.float32)
    features[3] = changes.pop("pt_mumu", 2.0)
    mass2 = changes.pop("mass2", np.full(n, 4.0))
    kinematics = EventKinematics(
        mass2,
        np.cos(np.radians(changes.pop("theta_deg", np.full(n, 90.0)))),
        features,
        np.isfinite(mass2) & np.isfinite(features).all(axis=0),
    )
    columns = {
        "mu_plus_id": np.full(n, 0.9),
        "mu_minus_id": np.full(n, 0.9),
        "extra_energy": np.zeros(n),
        "photon_recoil_angle": np.full(n, np.nan),
    } | changes
    return columns, kinematics


@pytest.mark.parametrize(
    ("cut", "change", "kept"),
    [
        ("recoil_theta", {"theta_deg": np.array([32.9, 33.1, 123.9, 124.1])}, [0, 1, 1, 0]),
        ("pt_mumu", {"pt_mumu": np.array([0.99, 1.01, 5.0, np.nan])}, [0, 1, 1, 0]),
        ("extra_energy", {"extra_energy": np.array([0.0, 0.39, 0.41, np.nan])}, [1, 1, 0, 0]),
        ("muon_id", {"mu_plus_id": np.array([0.4, 0.6, np.nan, 1.0])}, [0, 1, 0, 1]),
        (
            "photon_veto",
            {"photon_recoil_angle": np.radians([14.0, 16.0, np.nan, 180.0])},
            [0, 1, 1, 1],
        ),
        ("valid", {"mass2": np.array([np.nan, 1.0, -1.0, np.inf])}, [0, 1, 1, 0]),
    ],
)
def test_each_cut_keeps_the_published_side(cut, change, kept):
    masks = named_cuts(Preselection(), *events(4, **change))
    assert masks[cut].tolist() == [bool(k) for k in kept]


def test_a_cut_that_is_off_needs_no_column():
    _, kinematics = events(3)
    assert list(named_cuts(OFF, {}, kinematics)) == ["valid"]
    assert OFF.columns == ()


def test_cutflow_counts_what_passes_this_and_all_earlier_cuts():
    masks = {"a": np.array([True, True, False, True]), "b": np.array([True, False, True, True])}
    passing, flow = cutflow(masks, np.array([1.0, 2.0, 4.0, 0.5]), 4)
    assert passing.tolist() == [True, False, False, True]
    assert flow.names == ("all", "a", "b")
    assert flow.raw == (4, 3, 2)
    assert flow.events == (7.5, 3.5, 1.5)


@given(
    weights=st.lists(st.floats(0, 1e3), min_size=1, max_size=60),
    pieces=st.integers(1, 7),
)
def test_weighted_cutflow_does_not_depend_on_how_events_are_split(weights, pieces):
    weight = np.array(weights)
    keep = {"half": np.arange(len(weight)) % 2 == 0}
    _, whole = cutflow(keep, weight, len(weight))
    parts = [
        cutflow({"half": keep["half"][rows]}, weight[rows], len(rows))[1]
        for rows in np.array_split(np.arange(len(weight)), pieces)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total == whole


def test_candidate_policies():
    columns = {
        "candidate": np.array([0, 1, 0]),
        "n_candidates": np.array([2, 2, 1]),
    }
    assert candidate_mask(columns, "unique", 3).tolist() == [False, False, True]
    assert candidate_mask(columns, "first", 3).tolist() == [True, False, True]
    assert candidate_mask(columns, "all", 3).all()


def identities(n, seed=2):
    rng = np.random.default_rng(seed)
    return {
        "experiment": np.full(n, 7),
        "run": rng.integers(0, 50, n),
        "event": np.arange(n),
    }


def test_validation_share_is_uniform_and_depends_on_the_key_only():
    key = event_keys("signal", identities(200_000), 200_000)
    mask = validation_mask(key, fraction=0.2)
    assert abs(mask.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / len(mask))
    shuffled = np.random.default_rng(0).permutation(len(key))
    assert np.array_equal(validation_mask(key[shuffled], fraction=0.2), mask[shuffled])
    # a larger share contains the smaller one
    assert validation_mask(key, fraction=0.3)[mask].all()


def test_keys_differ_between_events_and_between_data_sets():
    columns = identities(100_000)
    one, other = (event_keys(name, columns, 100_000) for name in ("a", "b"))
    assert len(np.unique(np.concatenate([one, other]))) == 200_000
