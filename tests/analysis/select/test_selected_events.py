"""What is selected of some rows: the columns of the skim, the cutflow and the histograms agree."""

import numpy as np
import pytest

from analysis.select.events import selected_events
from analysis.select.histogram_sums import skim_histograms
from analysis.select.histograms import added, quantity_axes
from selection.beams import SUPERKEKB
from selection.keys import event_identities, row_keys
from selection.ntuple import EVENT_COLUMNS, KEY_COLUMNS
from selection.preselection import PRESELECTION
from tests.dimuon import FEATURES, SEARCH, event_kinematics


def selected(columns, *, candidates="all"):
    found = selected_events(
        columns,
        "signal/2",
        identities=lambda at: event_identities(columns, len(columns["event"]))[at],
        searches={PRESELECTION: SEARCH},
        beams=SUPERKEKB,
        candidates=candidates,
    )
    skim, counts = found[PRESELECTION]
    return skim, counts.flow


@pytest.fixture
def rows(columns):
    """Under our own names of the columns, not under those of the branches."""
    return {name.strip("_"): column for name, column in columns(800, mass_gev=2.0).items()}


def test_without_weights_every_row_counts_once(rows):
    del rows["weight"]
    skim, flow = selected(rows)
    assert flow.events == pytest.approx(flow.raw)
    assert 0 < flow.raw[-1] < flow.raw[0] == 800
    assert (skim["weight"] == 1).all()
    assert len(skim["weight"]) == flow.raw[-1]


def test_with_weights_the_cutflow_is_their_sum(rows):
    skim, flow = selected(rows)
    assert flow.events[0] == pytest.approx(rows["weight"].sum())
    assert flow.events[-1] == pytest.approx(skim["weight"].sum())
    assert flow.names[:3] == ("all", "valid", "candidate")


def test_the_skim_holds_the_rows_that_pass_in_their_order(rows):
    rows["production"] = np.arange(800, dtype=np.uint32) % 7
    rows["candidate"] = np.arange(800, dtype=np.int32) % 3
    skim, _ = selected(rows)
    kinematics = event_kinematics(rows, SUPERKEKB)
    at = skim["event"]  # events are counted through
    assert (np.diff(at) > 0).all()
    assert np.array_equal(skim["axis"], kinematics.axis[at])
    for i, name in enumerate(FEATURES):
        assert np.array_equal(skim[name], kinematics.features[i][at])
    for name in KEY_COLUMNS:
        assert np.array_equal(skim[name], rows[name][at])
    assert np.array_equal(skim["identity"], event_identities(rows, 800)[at])


def test_every_cut_of_the_search_is_a_step_of_the_cutflow(rows):
    _, flow = selected(rows)
    assert flow.names == ("all", "valid", "candidate", *SEARCH.cuts)


def test_candidates_of_one_event_share_its_key_and_are_rows_of_their_own(rows):
    for name in KEY_COLUMNS:
        rows[name] = np.zeros(800, np.int64)
    rows["candidate"] = np.arange(800)
    skim, _ = selected(rows)
    assert len(skim["key"]) > 1
    assert len(np.unique(skim["key"])) == 1
    assert len(np.unique(row_keys(skim["key"], skim["candidate"]))) == len(skim["key"])


@pytest.mark.parametrize("number", EVENT_COLUMNS)
def test_rows_that_differ_in_one_number_of_their_event_have_different_keys(rows, number):
    """Two productions of one event are two events."""
    for name in KEY_COLUMNS:
        rows[name] = np.zeros(800, np.int64)
    rows[number] = np.arange(800)
    skim, _ = selected(rows)
    assert len(np.unique(skim["key"])) == len(skim["key"]) > 0


def test_identity_that_a_file_lacks_is_zero(rows):
    whole, _ = selected(rows)
    del rows["production"]  # it was zero in all rows
    less, _ = selected(rows)
    assert np.array_equal(less["key"], whole["key"])
    assert (less["production"] == 0).all()


@pytest.mark.parametrize(("candidates", "wanted"), [("unique", 0), ("first", 1), ("all", 2)])
def test_the_policy_for_candidates_is_a_cut(rows, candidates, wanted):
    """Every event twice: no unique candidates, one first, two of all."""
    rows["n_candidates"] = np.full(800, 2)
    rows["candidate"] = np.arange(800, dtype=np.int32) % 2
    _, flow = selected(rows, candidates=candidates)
    assert flow.raw[flow.names.index("candidate")] == wanted * 400


def test_a_weight_that_is_no_number_is_counted_and_refused(rows):
    rows["weight"][[3, 5]] = np.nan
    with pytest.raises(ValueError, match="the weight of 2 rows is not a finite number"):
        selected(rows)


def test_histograms_hold_every_row_once_and_count_in_integers(rows):
    skim, _ = selected(rows)
    found = skim_histograms(skim, SEARCH)
    assert {"recoil_mass2", "recoil_mass", *FEATURES} == set(quantity_axes(SEARCH))
    for name in quantity_axes(SEARCH):
        raw, weighted = found[f"{name}_raw"], found[name]
        assert raw.values(flow=True).sum() == len(skim["weight"])
        assert type(raw.storage_type()).__name__ == "Int64"  # exact beyond 2^24 and 2^53
        assert weighted.values(flow=True).sum() == pytest.approx(skim["weight"].sum())
        assert weighted.variances(flow=True).sum() == pytest.approx((skim["weight"] ** 2).sum())


def test_equal_weights_fill_as_any_others_do():
    """The short way for one weight is the long way."""
    rng = np.random.default_rng(1)
    columns = {"axis": rng.uniform(-3, 90, 500)}
    columns |= {name: rng.uniform(-7, 7, 500) for name in FEATURES}

    def filled(rows, weight):
        part = {name: values[rows] for name, values in columns.items()}
        return skim_histograms({**part, "weight": weight}, SEARCH)

    equal = filled(slice(None), np.full(500, 0.3))
    nearly = np.append(np.full(498, 0.3), 0.3 + 1e-15)
    together = added(filled(slice(1), np.full(1, 0.3)), filled(slice(1, None), nearly))
    for name in quantity_axes(SEARCH):
        for part in ("values", "variances"):
            one, two = (getattr(h[name], part)(flow=True) for h in (together, equal))
            assert one == pytest.approx(two)


def test_of_no_rows_there_are_empty_histograms(rows):
    none = {name: column[:0] for name, column in rows.items()}
    skim, flow = selected(none)
    assert set(flow.raw) == {0}
    filled = skim_histograms(skim, SEARCH)
    raw = [h for name, h in filled.items() if name.endswith("raw")]
    assert len(raw) == 6
    assert all(h.sum(flow=True) == 0 for h in raw)
