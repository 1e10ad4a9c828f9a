"""Momenta in the centre of mass are noticed in samples that have no peak."""

import numpy as np
import pytest

from analysis.inputs.findings import row_findings
from analysis.inputs.rows import look_at
from selection.beams import SUPERKEKB, Beams, cm_matrix
from selection.ntuple import MOMENTA
from tests.dimuon import SEARCH


@pytest.fixture
def rows(columns):
    found = columns(2000, seed=5)
    return {name: found[name].astype(np.float64) for name in SEARCH.columns}


def in_cm(rows):
    made = dict(rows)
    for first in (0, 4):
        names = MOMENTA[first : first + 4]
        moved = cm_matrix(SUPERKEKB) @ np.stack([rows[name] for name in names])
        made |= dict(zip(names, moved, strict=True))
    return made


def found_in(rows, beams=SUPERKEKB):
    return list(row_findings("b", look_at(rows, beams, SEARCH), beams, SEARCH, cause=""))


def test_momenta_in_the_lab_are_not_mistaken(rows):
    assert found_in(rows) == []


def test_momenta_in_the_centre_of_mass_are_said_with_their_share(rows):
    (finding,) = found_in(in_cm(rows))
    assert finding.name == "frame"
    assert not finding.stops
    share = int(finding.text.split("only ")[1].split(" %")[0])
    total = {k: in_cm(rows)[f"mu_plus_{k}"] + in_cm(rows)[f"mu_minus_{k}"] for k in ("pz", "e")}
    beta = SUPERKEKB.total[2] / SUPERKEKB.total[3]
    assert share == pytest.approx(100 * np.mean(total["pz"] > beta * total["e"]), abs=1)


def test_few_rows_and_beams_at_rest_say_nothing(rows):
    few = {name: values[:500] for name, values in in_cm(rows).items()}
    assert found_in(few) == []
    assert found_in(in_cm(rows), Beams(5.29, 5.29, 0.0)) == []
