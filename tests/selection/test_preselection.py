"""Named cuts, their counts, and the identity of events."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selection.beams import SUPERKEKB
from selection.kernel import event_quantities
from selection.keys import event_identities, event_keys, row_keys
from selection.ntuple import MOMENTA
from selection.preselection import candidate_mask, cutflow, passing, with_candidates
from selection.table import Folds
from tests.conftest import muon_pairs
from tests.dimuon import FEATURES, NO_CUTS, SEARCH, with_cuts


def events(n, **changes):
    """n events in the middle of every cut, with some columns replaced."""
    rng = np.random.default_rng(1)
    found = dict(zip(MOMENTA, muon_pairs(rng, np.full(n, 3.0), n, smear=0.0), strict=True))
    return {
        **found,
        "mu_plus_id": np.full(n, 0.9),
        "mu_minus_id": np.full(n, 0.9),
        "extra_energy": np.zeros(n),
        "photon_recoil_angle": np.full(n, np.nan),
    } | changes


def codes(search, columns):
    return event_quantities(search, columns, SUPERKEKB).code


@pytest.mark.parametrize(
    ("cut", "change", "kept"),
    [
        ("extra_energy", {"extra_energy": np.array([0.0, 0.39, 0.41, np.nan])}, [1, 1, 0, 0]),
        ("muon_id", {"mu_plus_id": np.array([0.4, 0.6, np.nan, 1.0])}, [0, 1, 0, 1]),
        (
            "photon_veto",
            {"photon_recoil_angle": np.radians([14.0, 16.0, np.nan, 180.0])},
            [0, 1, 1, 1],
        ),
    ],
)
def test_each_cut_keeps_the_published_side(cut, change, kept):
    alone = with_cuts(**{name: None for name in SEARCH.cuts if name != cut})
    found = passing(codes(alone, events(4, **change)), 1)
    assert found.tolist() == [bool(k) for k in kept]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_an_event_whose_axis_is_no_number_is_not_valid(wrong):
    columns = events(4)
    columns["mu_plus_px"][1] = wrong
    assert (codes(SEARCH, columns) == 0).tolist() == [False, True, False, False]


@pytest.mark.parametrize("degrees", [24.0, 26.0, 32.0, 34.0, 123.0, 125.0])
@pytest.mark.parametrize(("mass", "least"), [(0.5, 33), (2.9, 33), (3.1, 25), (8.0, 25)])
def test_a_light_recoil_points_into_the_barrel_and_a_heavy_one_away_from_the_hole(
    degrees, mass, least
):
    """One muon at rest, the other with all that the recoil leaves; PRL 124, 141801: below 3 GeV."""
    recoil = 3.0 * np.array([np.sin(np.radians(degrees)), 0.0, np.cos(np.radians(degrees))])
    px, py, pz, energy = SUPERKEKB.total
    p = np.array([px, py, pz]) - recoil
    values = [0.0, 0.0, 0.0, 0.1, *p, energy - np.hypot(3.0, mass) - 0.1]
    columns = dict(zip(MOMENTA, (np.array([v]) for v in values), strict=True))
    alone = with_cuts(**{name: None for name in SEARCH.cuts if name != "recoil_theta"})
    assert passing(codes(alone, columns), 1).tolist() == [least < degrees < 124]


def test_a_cut_on_a_feature_looks_at_what_is_stored():
    columns = events(2000)
    stored = event_quantities(SEARCH, columns, SUPERKEKB).features[FEATURES.index("pt_mumu")]
    middle = float(np.sort(stored)[1000])
    at_it = with_cuts(**dict.fromkeys(SEARCH.cuts), same=f"pt_mumu >= {middle!r}")
    assert passing(codes(at_it, columns), 1).sum() == 1000
    above = with_cuts(**dict.fromkeys(SEARCH.cuts), same=f"pt_mumu > {middle!r}")
    assert passing(codes(above, columns), 1).sum() == 999


def test_a_cut_that_is_off_needs_no_column():
    assert set(NO_CUTS.columns) == set(MOMENTA)
    assert "extra_energy" in SEARCH.columns
    assert "extra_energy" not in with_cuts(extra_energy=None).columns


def test_cutflow_counts_what_passes_this_and_all_earlier_cuts():
    """Codes: 0 not valid, 1 another candidate, 2 fails a, 3 fails b, 4 passes."""
    code = np.array([4, 3, 2, 4, 0, 1], np.uint8)
    flow = cutflow(code, ("a", "b"), np.array([1.0, 2.0, 4.0, 0.5, 16.0, 8.0]))
    assert flow.names == ("all", "valid", "candidate", "a", "b")
    assert flow.raw == (6, 5, 4, 3, 2)
    assert flow.events == (31.5, 15.5, 7.5, 3.5, 1.5)
    assert cutflow(code, ("a", "b"), 2.0).events == (12, 10, 8, 6, 4)


def test_the_candidate_policy_comes_before_the_cuts_and_after_validity():
    code = np.array([0, 2, 3, 4], np.uint8)
    dropped = with_candidates(code, np.zeros(4, bool))
    assert dropped.tolist() == [0, 1, 1, 1]
    assert with_candidates(code, np.ones(4, bool)).tolist() == code.tolist()


@given(
    weights=st.lists(st.floats(0, 1e3), min_size=1, max_size=60),
    pieces=st.integers(1, 7),
)
def test_weighted_cutflow_does_not_depend_on_how_events_are_split(weights, pieces):
    weight = np.array(weights)
    code = (2 + np.arange(len(weight)) % 2).astype(np.uint8)
    whole = cutflow(code, ("half",), weight)
    parts = [
        cutflow(code[rows], ("half",), weight[rows])
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


def held_out(identity, fraction):
    return Folds(1, fraction).of(identity) == 0


def test_validation_share_is_uniform_and_depends_on_the_identity_only():
    identity = event_identities(identities(200_000), 200_000)
    mask = held_out(identity, 0.2)
    assert abs(mask.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / len(mask))
    shuffled = np.random.default_rng(0).permutation(len(identity))
    assert np.array_equal(held_out(identity[shuffled], 0.2), mask[shuffled])
    # a larger share contains the smaller one
    assert held_out(identity, 0.3)[mask].all()


def test_keys_differ_between_events_and_between_data_sets():
    columns = identities(100_000)
    one, other = (event_keys(name, columns, 100_000) for name in ("a", "b"))
    assert len(np.unique(np.concatenate([one, other]))) == 200_000


def test_candidates_of_an_event_share_its_key_and_have_their_own_rows():
    columns = {name: np.repeat(values, 3) for name, values in identities(1000).items()}
    columns["candidate"] = np.tile([0, 1, 2], 1000)
    key = event_keys("signal", columns, 3000)
    assert len(np.unique(key)) == 1000
    mask = held_out(event_identities(columns, 3000), 0.3).reshape(1000, 3)
    assert (mask == mask[:, :1]).all()
    assert len(np.unique(row_keys(key, columns["candidate"]))) == 3000
