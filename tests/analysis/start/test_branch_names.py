"""A branch belongs to the object and has the quantity that a person reads in its name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.start.branch_names import families, words_of
from selection.ntuple import escape, unescape


@pytest.mark.parametrize(
    ("names", "charge", "number"),
    [
        (("daughter__bo0__cm__sppx__bc", "daughter__bo0__cm__spE__bc"), None, 0),
        (("daughter__bo0__cmpx__bc", "daughter__bo0__cmE__bc"), None, 0),  # without the blank
        (("mu_plus_px", "mu_plus_e"), 1, None),
        (("mup_px", "mup_E"), 1, None),
        (("mum_px", "mum_E"), -1, None),
        (("muPlusPx", "muPlusE"), 1, None),
        (("mu_p_px", "mu_p_E"), 1, None),
        (("mu__pl_px", "mu__pl_E"), 1, None),
        (("px1", "E1"), None, 1),
        (("p1x", "e1"), None, 1),
        (("px_1", "E_1"), None, 1),
        (("muon2_px", "muon2_energy"), None, 2),
        (("d1_px", "d1_E"), None, 1),
        (("e_px", "e_E"), None, None),  # of an electron
        (("PX_MUMINUS", "E_MUMINUS"), -1, None),
    ],
)
def test_branches_of_one_object_are_one_family(names, charge, number):
    (family,) = families(names)
    assert family.branches == dict(zip(("px", "e"), names, strict=True))
    assert (family.charge, family.number) == (charge, number)


@pytest.mark.parametrize(
    "name",
    [
        *("useCMSFrame__bopx__bc", "daughter__bo0__cm__spuseCMSFrame__bopx__bc__bc"),
        *("CMS_px", "mu_px_CMS", "mu_plus_cms_px", "mu_pxCMS", "cmsp_px", "mu_px_cm"),
        *("mcPX", "true_mu_plus_px", "mu_plus_mcPX", "gen_px", "pxErr", "mu_px_err"),
        *("beamPx", "roePx", "recoil_px"),
    ],
)
def test_other_frames_truth_errors_and_beams_are_no_measured_particles(name):
    assert families([name]) == []


@pytest.mark.parametrize(
    "expression",
    [
        "daughter(0, px)",
        "daughter(1,daughter(0, useCMSFrame(pz)))",
        "roeNeextra(seen)",
        "angleToClosestInList(gamma:seen)",
        "formula(px * 2 + py)",
    ],
)
def test_an_expression_is_read_back_from_its_branch(expression):
    assert unescape(escape(expression)) == expression


@given(st.text(alphabet="abmup_0159XYbocspl", max_size=30))
def test_what_is_read_back_always_means_the_same_branch(name):
    assert escape(unescape(name)) == name
    assert all(word == word.lower() for word in words_of(name))
