"""Names of branches, as basf2 writes them."""

import pytest

from selection.ntuple import escape, find_branch, nearest

# Written out by hand from basf2's table of replacements, not from our own dictionary.
BASF2_NAMES = [
    ("px", "px"),
    ("daughter(0, px)", "daughter__bo0__cm__sppx__bc"),
    ("daughter(0,p)", "daughter__bo0__cmp__bc"),
    ("useCMSFrame(p)", "useCMSFrame__bop__bc"),
    ("E:roe", "E__clroe"),
    ("a.b", "a__ptb"),
    ("a+b-c*d/e^f", "a__plb__mic__mud__sle__haf"),
    ("x==1", "x__eq__eq1"),
    ("x<1>y", "x__st1__gty"),
    ("v[0]{1}", "v__so0__sc__co1__cc"),
    ("__event__", "__event__"),
    ("muonID_noSVD", "muonID_noSVD"),
    ("passesCut(muonID!=1)", "passesCut__bomuonID__em__eq1__bc"),
    ('formula("x"; μ)', "formula__bo__dqx__dq__sm__sp__bc"),
    ("a&b|c~d@e'f", "a__amb__pic__tid__ate__sqf"),
    ("a?b;c#d$e%f", "a__qmb__smc__hsd__doe__prf"),
    ("a\\b`c´d°e§f:g=h", "a__blb__toc__tcd__cie__paf__clg__eqh"),
    ("€", ""),
]


@pytest.mark.parametrize(("expression", "branch"), BASF2_NAMES)
def test_expressions_are_escaped_as_basf2_does(expression, branch):
    assert escape(expression) == branch


@pytest.mark.parametrize("branch", [name for _, name in BASF2_NAMES])
def test_a_branch_name_is_its_own_escape(branch):
    assert escape(branch) == branch


def test_a_column_is_found_by_name_or_by_expression():
    present = ["mu_px", "daughter__bo0__cm__sppx__bc", "odd name"]
    assert find_branch("mu_px", present) == "mu_px"
    assert find_branch("daughter(0, px)", present) == "daughter__bo0__cm__sppx__bc"
    assert find_branch("odd name", present) == "odd name"
    assert find_branch("mu_py", present) is None


def test_the_three_nearest_branches_are_found_whatever_their_case():
    present = ["mu_plus_px", "mu_plus_py", "mu_minus_px", "extraEnergy"]
    assert nearest("mu_plus_pz", present) == ["mu_plus_py", "mu_plus_px", "mu_minus_px"]
    assert nearest("EXTRAENERGY", present)[0] == "extraEnergy"
