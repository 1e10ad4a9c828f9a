"""Which branches are read of a file: all that its events are identified and computed with."""

import numpy as np
import pytest

from analysis.inputs.columns import read_columns, wanted_columns
from selection.ntuple import MOMENTA
from tests.dimuon import NO_CUTS, SEARCH, with_cuts

ALL_CUTS = {"mu_plus_id", "mu_minus_id", "extra_energy", "photon_recoil_angle"}
BEAMS = {"beam_px", "beam_py", "beam_pz", "beam_e", "ecms"}


def wanted(mapped=None, **changes):
    asked = {
        "tree": None, "searches": (SEARCH,), "candidates": "all", "weight": None,
        "event_numbers": False,
    }  # fmt: skip
    return wanted_columns(mapped or {}, **(asked | changes))


def test_the_identity_of_an_event_is_read_whole():
    """Its numbers are not in every file, but where they are they count; if named, they must be."""
    identity = {"experiment", "run", "event", "production", "candidate"}
    found = wanted(event_numbers=True)
    assert identity <= set(found.optional)
    assert {found.optional[name] for name in identity} == {f"__{name}__" for name in identity}
    assert not identity & set(found.required)
    assert not identity & {*wanted().required, *wanted().optional}
    named = wanted({"event": "evt"}, event_numbers=True)
    assert named.required["event"] == "evt"
    assert "event" not in named.optional


def test_cuts_that_are_on_need_their_columns_and_no_others():
    assert set(wanted().required) == {*MOMENTA, *ALL_CUTS}
    assert set(wanted(searches=(NO_CUTS,)).required) == set(MOMENTA)
    less = wanted(searches=(with_cuts(extra_energy=None),)).required
    assert set(less) == {*MOMENTA, *ALL_CUTS} - {"extra_energy"}
    of_region = with_cuts(timing="abs(t0) < 3")
    assert wanted(searches=(of_region,)).required["t0"] == "t0"
    both = wanted(searches=(SEARCH, of_region)).required
    assert set(both) == {*MOMENTA, *ALL_CUTS, "t0"}


def test_beams_are_optional_until_their_branches_are_named():
    assert set(wanted().optional) == BEAMS
    named = wanted({"ecms": "myEcms", "mu_plus_px": "px0"})
    assert named.required["ecms"] == "myEcms"
    assert named.required["mu_plus_px"] == "px0"
    assert set(named.optional) == BEAMS - {"ecms"}
    assert wanted().optional["beam_e"] == "beamE"  # the name that basf2 writes


@pytest.mark.parametrize(
    ("policy", "column", "branch"),
    [("unique", "n_candidates", "__ncandidates__"), ("first", "candidate", "__candidate__")],
)
def test_a_policy_for_candidates_needs_its_branch(policy, column, branch):
    assert wanted(candidates=policy).required[column] == branch
    assert column not in wanted(candidates="all").required


def test_a_weight_is_read_under_our_name():
    assert wanted(weight="w_gen").required["weight"] == "w_gen"
    assert "weight" not in wanted().required


def test_a_branch_that_is_two_columns_is_read_once():
    calls = []

    def read(branch):
        calls.append(branch)
        return np.array([len(branch)])

    found = read_columns(read, {"a": "xx", "b": "yyy", "c": "xx"})
    assert calls == ["xx", "yyy"]
    assert {name: int(v[0]) for name, v in found.items()} == {"a": 2, "b": 3, "c": 2}
