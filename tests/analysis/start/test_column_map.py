"""The proposed map is the one that a person would write, for names as they are used."""

import itertools

import pytest

from analysis.config.searches import shipped_search
from analysis.start.branch_names import words_of
from analysis.start.column_map import propose
from selection.ntuple import CANDIDATES_COLUMN, DEFAULT_BRANCHES, KEY_COLUMNS, MOMENTA, escape

SEARCH = shipped_search()
BASF2 = [DEFAULT_BRANCHES[column] for column in (*KEY_COLUMNS, CANDIDATES_COLUMN)] + ["__weight__"]
PARTS = ("px", "py", "pz", "E")
OTHERS = ("mu_plus_id", "mu_minus_id", "extra_energy", "photon_recoil_angle")


def named(plus, minus):
    """Branch of each momentum; `plus` and `minus` make a branch of px, py, pz, E."""
    return {
        f"mu_{charge}_{part.lower()}": make(part)
        for charge, make in (("plus", plus), ("minus", minus))
        for part in PARTS
    }


STYLES = {
    "basf2 expressions": named(
        lambda v: escape(f"daughter(0, {v})"), lambda v: escape(f"daughter(1, {v})")
    ),
    "basf2 expressions without blanks": named(
        lambda v: escape(f"daughter(0,{v})"), lambda v: escape(f"daughter(1,{v})")
    ),
    "daughter aliases": named(lambda v: f"d0_{v}", lambda v: f"d1_{v}"),
    "aliases of a decay string": named(lambda v: f"mup_{v}", lambda v: f"mum_{v}"),
    "minus first": named(lambda v: f"mu2_plus_{v}", lambda v: f"mu1_minus_{v}"),
    "camel case": named(lambda v: f"muPlus{v.title()}", lambda v: f"muMinus{v.title()}"),
    "numbers behind": named(lambda v: f"{v}1", lambda v: f"{v}2"),
    "numbers between": named(
        lambda v: f"{v[0]}1{v[1:]}" if len(v) > 1 else "E1",
        lambda v: f"{v[0]}2{v[1:]}" if len(v) > 1 else "E2",
    ),
    "muons 0 and 1": named(lambda v: f"mu_0_{v}", lambda v: f"mu_1_{v}"),
    "tracks taken as pions": named(lambda v: f"pip_{v}", lambda v: f"pim_{v}"),
}
DISTRACTIONS = [  # of the candidate itself, of truth, of another frame, of the beams, of photons
    *(escape(f"useCMSFrame({v})") for v in PARTS),
    *(f"true_mu_plus_{v}" for v in PARTS),
    *(escape(f"daughter({i}, mcP{x})") for i in (0, 1) for x in "XYZ"),
    *(escape(f"daughter({i}, useCMSFrame({v}))") for i in (0, 1) for v in PARTS),
    *("beamPx", "beamPy", "beamPz", "beamE", "Ecms", "M", "pRecoilTheta", "nTracks"),
    *(f"gamma_{v}" for v in PARTS),
    *("mRecoil", "charge", "thrust"),
]


@pytest.mark.parametrize("style", STYLES)
def test_momenta_are_found_under_every_usual_name_whatever_else_is_there(style):
    right = STYLES[style]
    found = propose(SEARCH, [*DISTRACTIONS, *BASF2, *right.values()], {})
    assert {c: b for c, b in found.columns.items() if c in MOMENTA} == right
    assert set(found.missing) == set(OTHERS)
    assert set(found.columns) == set(MOMENTA)  # numbers of events have the names of basf2


@pytest.mark.parametrize("style", STYLES)
def test_the_order_of_the_branches_does_not_matter(style):
    right = STYLES[style]
    branches = [*DISTRACTIONS, *right.values()]
    assert propose(SEARCH, branches, {}).columns == propose(SEARCH, branches[::-1], {}).columns


def test_the_charge_in_the_rows_decides_before_the_order():
    right = STYLES["numbers behind"]
    branches = [*right.values()]
    one, two = words_of("1"), words_of("2")
    mixed = propose(SEARCH, branches, {one: None, two: None})
    assert mixed.columns == right
    assert "guess" in mixed.why["mu_plus"]
    turned = propose(SEARCH, branches, {one: -1, two: 1})
    assert turned.columns["mu_plus_px"] == "px2"
    assert turned.why == {"mu_plus": "by charge", "mu_minus": "by charge"}
    both_plus = propose(SEARCH, branches, {one: 1, two: 1})  # a pair of equal charges is no pair
    assert not both_plus.columns
    assert set(MOMENTA) < set(both_plus.missing)


@pytest.mark.parametrize(
    ("names", "right"),
    [
        (
            [
                escape(f"daughter({i}, {v})")
                for i, v in itertools.product((0, 1), (*PARTS, "muonID"))
            ]
            + [escape("roeNeextra(seen)"), escape("angleToClosestInList(gamma:seen)")],
            dict(
                zip(
                    OTHERS,
                    (
                        *(escape("daughter(0, muonID)"), escape("daughter(1, muonID)")),
                        *(escape("roeNeextra(seen)"), escape("angleToClosestInList(gamma:seen)")),
                    ),
                    strict=True,
                )
            ),
        ),
        (
            [
                f"{mu}_{v}"
                for mu, v in itertools.product(("mup", "mum"), (*PARTS, "muonID", "kaonID"))
            ]
            + ["extraEnergy", "isSignal"],
            {
                "mu_plus_id": "mup_muonID",
                "mu_minus_id": "mum_muonID",
                "extra_energy": "extraEnergy",
            },
        ),
    ],
    ids=["expressions", "aliases"],
)
def test_identification_and_energies_are_known_by_their_words(names, right):
    found = propose(SEARCH, names, {}).columns
    assert {column: found[column] for column in OTHERS if column in found} == right


def test_our_own_names_need_no_map():
    own = [*SEARCH.columns, *BASF2, "beamE", "beamPx", "beamPy", "beamPz", "weight"]
    truth = [f"true_{name}" for name in MOMENTA]
    found = propose(SEARCH, [*truth, *own], {})
    assert found.columns == {}
    assert found.missing == ()
    assert found.weight == "weight"


@pytest.mark.parametrize(
    ("names", "right"),
    [
        (["Run", "Event"], {"run": "Run", "event": "Event"}),
        (
            ["exp_no", "run_no", "evt_no"],
            {"experiment": "exp_no", "run": "run_no", "event": "evt_no"},
        ),
        (["expNo", "runNo", "evtNo"], {"experiment": "expNo", "run": "runNo", "event": "evtNo"}),
        (["__event__", "evtNo"], {}),  # that of basf2 first
        (["nCand", "icand"], {"candidate": "icand", CANDIDATES_COLUMN: "nCand"}),
    ],
)
def test_numbers_of_events_are_known_by_their_usual_names(names, right):
    assert propose(SEARCH, names, {}).columns == right


def test_nothing_is_proposed_where_there_is_nothing():
    found = propose(SEARCH, ["a", "b", "CMS_px", "CMS_py", "CMS_pz", "CMS_E"], {})
    assert found.columns == {}
    assert set(found.missing) == set(SEARCH.columns)
    assert propose(SEARCH, ["__weight__"], {}).weight is None
