"""A chunk is worked on in blocks: what is found in it does not know of them."""

import numpy as np
import pytest
import uproot

from analysis.inputs.tables import open_table
from analysis.select import processor
from analysis.select.chunks import Chunk
from analysis.select.processor import SelectEvents, blocks_of
from selection.beams import SUPERKEKB
from selection.keys import event_identities, identities_of
from selection.preselection import PRESELECTION
from selection.search import Search
from tests.dimuon import SEARCH

ROWS = 4000


@pytest.fixture
def file(columns, tmp_path):
    """Baskets of 500 rows; rows that can be nothing, and a block of which a cut leaves nothing."""
    cols = columns(ROWS, seed=3)
    cols["weight"] = np.full(ROWS, 0.25)
    cols["extra_energy"][1000:1500] = np.linspace(0.5, 3, 500)
    cols["mu_plus_e"][::7] = -1
    cols["photon_recoil_angle"][::11] = 9
    path = tmp_path / "many_baskets.root"
    with uproot.recreate(path) as written:
        tree = written.mktree("variables", {k: v.dtype for k, v in cols.items()})
        for start in range(0, ROWS, 500):
            tree.extend({k: v[start : start + 500] for k, v in cols.items()})
    return path, cols


def chunk_of(file, **changes):
    path, cols = file
    branches = {name.strip("_"): name for name in cols} | changes
    return Chunk("set", str(path), "variables", 0, ROWS, {PRESELECTION: "whole.parquet"},
                 branches, 0, None, SUPERKEKB, "")  # fmt: skip


def made(run, chunk, search: Search = SEARCH):
    run.mkdir()
    outcome = SelectEvents(str(run), {PRESELECTION: search}, "all").outcome(chunk)
    shard = run / chunk.shard
    return outcome, shard.read_bytes() if shard.exists() else None


@pytest.mark.parametrize("rows", [1, 700, 2000])
def test_shard_sums_and_counts_do_not_depend_on_blocks(file, tmp_path, monkeypatch, rows):
    whole, shard = made(tmp_path / "whole", chunk_of(file))
    monkeypatch.setattr(processor, "BLOCK", rows)
    found, again = made(tmp_path / "blocks", chunk_of(file))
    assert again == shard
    sums, counts = found.results[PRESELECTION]
    assert sums.tobytes() == whole.results[PRESELECTION][0].tobytes()
    assert counts == whole.results[PRESELECTION][1]
    assert counts.look.rows == ROWS
    assert counts.look.energies >= ROWS // 7
    assert not counts.emptied  # a block was emptied, the chunk was not


def test_rows_without_event_numbers_are_counted_in_the_file(file, tmp_path, monkeypatch):
    chunk = chunk_of(file)
    for name in ("event", "run", "experiment", "production", "candidate"):
        del chunk.branches[name]
    _, shard = made(tmp_path / "whole", chunk)
    monkeypatch.setattr(processor, "BLOCK", 500)
    assert made(tmp_path / "blocks", chunk)[1] == shard


def test_what_is_wrong_with_a_chunk_is_said_of_all_its_rows(columns, tmp_path, monkeypatch, file):
    path, cols = file
    cols["weight"][[10, 1700, 3900]] = np.nan
    with uproot.recreate(path) as written:
        tree = written.mktree("variables", {k: v.dtype for k, v in cols.items()})
        for start in range(0, ROWS, 500):
            tree.extend({k: v[start : start + 500] for k, v in cols.items()})
    monkeypatch.setattr(processor, "BLOCK", 500)
    outcome, shard = made(tmp_path / "blocks", chunk_of(file))
    assert outcome.error == "ValueError: the weight of 3 rows is not a finite number"
    assert shard is None


@pytest.mark.parametrize("rows", [1, 500, 501, 1999, 2001, 10**6])
def test_blocks_are_the_rows_of_the_chunk_and_end_where_baskets_end(file, monkeypatch, rows):
    monkeypatch.setattr(processor, "BLOCK", rows)
    chunk = chunk_of(file)
    table = open_table(chunk.file, chunk.tree, str(rows))
    blocks = blocks_of(table, chunk)
    edges = [0, *(block.stop for block in blocks)]
    assert [block.start for block in blocks] == edges[:-1]
    assert edges[-1] == ROWS
    assert all(edge % 500 == 0 for edge in edges)
    assert len(blocks) == 1 or min(np.diff(edges)) >= rows
    assert len(blocks) == {1: 8, 500: 8, 501: 4, 1999: 2}.get(rows, 1)


def test_identities_of_some_rows_are_those_they_have_among_all():
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, 9, 100) for name in ("event", "run", "candidate")}
    rows = np.flatnonzero(rng.random(100) < 0.3)
    for known in (columns, {"run": columns["run"]}, {}):
        whole = event_identities(known, 100, start=70)
        assert np.array_equal(identities_of(known, rows, start=70), whole[rows])
