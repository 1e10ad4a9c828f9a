"""The index of a skim: order, masses and weights come back, and decide who it is."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.run.folder import RunFolder
from analysis.select.index import NoSelectionError, Selection, load_selection, save_selection
from analysis.select.skim import Part

PARTS = (
    Part("signal", Path("signal/a.parquet"), 1.5, 0.001),
    Part("taupair", Path("taupair/b.parquet"), np.nan, 0.25),
)


@pytest.mark.parametrize(
    "change",
    [
        {"sample": "other"},
        {"shard": Path("signal/c.parquet")},
        {"mass_gev": 1.6},
        {"normalisation": 0.002},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_events_or_other_weights_are_another_selection(change):
    """Another luminosity makes no new shard: the weight alone must tell."""
    before = Selection(PARTS, {})
    after = Selection((replace(PARTS[0], **change), PARTS[1]), {})
    assert after.fingerprint != before.fingerprint
    assert Selection(PARTS[::-1], {}).fingerprint != before.fingerprint


def test_where_the_run_lies_does_not_matter():
    moved = tuple(replace(part, shard=Path("/else/where") / part.shard) for part in PARTS)
    assert Selection(moved, {}).fingerprint == Selection(PARTS, {}).fingerprint


def test_the_index_comes_back_as_it_was_saved(tmp_path):
    run = RunFolder(tmp_path)
    parts = tuple(replace(part, shard=run.skim / part.shard) for part in PARTS)
    save_selection(run, Selection(parts, {"taupair": 0.125}))
    back = load_selection(run)
    assert back.fingerprint == Selection(parts, {}).fingerprint
    assert [part.shard for part in back.parts] == [part.shard for part in parts]
    assert back.parts[0] == parts[0]
    assert np.isnan(back.parts[1].mass_gev)
    assert back.parts[1].normalisation == 0.25
    assert back.lost == {"taupair": 0.125}


def test_without_an_index_it_is_said_what_to_run(tmp_path):
    with pytest.raises(NoSelectionError, match="run `punzi select -r"):
        load_selection(RunFolder(tmp_path))
