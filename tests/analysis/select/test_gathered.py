"""Sums of chunks: the same bits in whatever order they come back, and little of them in memory."""

from functools import reduce
from operator import add

import numpy as np
import pytest

from analysis.inputs.rows import RowCounts
from analysis.run.executors import Execution
from analysis.select import batches as rules
from analysis.select.batches import batches, executor_for
from analysis.select.chunks import Chunk
from analysis.select.events import ChunkCounts
from analysis.select.gathered import Gathered, Outcome
from selection.beams import SUPERKEKB
from selection.preselection import Cutflow

RNG = np.random.default_rng(7)
N = 40
# many orders of magnitude: another order of additions gives other bits
SUMS = [10.0 ** RNG.uniform(-8, 8, (3, 5)) for _ in range(N)]


def outcome(i):
    counts = ChunkCounts(Cutflow(("all",), (i,), (i,)), RowCounts(rows=i), {}, overlap=i)
    return Outcome(f"set{i % 2}", {"search": (SUMS[i], counts)})


def gathered(numbers):
    return Gathered({int(i): outcome(int(i)) for i in numbers})


def in_order(dataset):
    return reduce(add, [SUMS[i] for i in range(N) if i % 2 == dataset])


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_in_the_order_of_the_plan_whatever_comes_first(seed):
    rng = np.random.default_rng(seed)
    pieces = np.split(rng.permutation(N), np.sort(rng.integers(0, N, 6)))
    parts = [gathered(piece) for piece in pieces]
    while len(parts) > 1:  # joined in any order, as a tree
        a, b = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(a + b)
    for k in (0, 1):
        sums, counts = parts[0].totals["search", f"set{k}"]
        assert sums.tobytes() == in_order(k).tobytes()
        assert counts.flow.raw == (sum(range(k, N, 2)),)
        assert counts.overlap == counts.look.rows == sum(range(k, N, 2))
    assert not parts[0].waiting


def test_nothing_waits_that_comes_in_order():
    found = Gathered()
    for i in range(N):
        found += gathered([i])
        assert (found.first, len(found.waiting)) == (i + 1, 0)


def test_chunks_that_failed_or_never_came_are_named_and_the_others_are_added():
    gone, bad = 3, 7
    found = gathered(i for i in range(N) if i not in (gone, bad))
    found += Gathered({bad: Outcome("set1", error="torn")})
    assert len(found.waiting) == N - 1 - gone
    found = found.complete(N, otherwise="never came")
    assert {i: o.error for i, o in found.failed.items()} == {gone: "never came", bad: "torn"}
    kept = [i for i in range(N) if i % 2 and i not in (gone, bad)]
    assert (
        found.totals["search", "set1"][0].tobytes()
        == reduce(add, map(SUMS.__getitem__, kept)).tobytes()
    )


def chunks(*rows):
    return [
        Chunk("a", "f", "t", 0, n, {"preselection": str(i)}, {}, i, None, SUPERKEKB, "")
        for i, n in enumerate(rows)
    ]


@pytest.mark.parametrize("executor", ["threads", "processes", "dask", "iterative"])
@pytest.mark.parametrize("rows", [(10,) * 5000, (1_000_000, 3), (1, 2, 3), (), (0, 0)])
def test_every_chunk_is_in_one_batch_in_the_order_of_the_plan(executor, rows):
    plan = chunks(*rows)
    found = batches(plan, Execution(executor, 3))
    assert [pair for batch in found for pair in batch] == list(enumerate(plan))
    assert all(found)


def test_many_small_chunks_are_few_batches_but_enough_for_every_worker():
    found = batches(chunks(*(10_000,) * 5000), Execution("processes", 2))
    assert 2 * rules.PIECES <= len(found) <= 5000 / 20
    few = batches(chunks(*(10_000,) * 40), Execution("threads", 2))
    assert len(few) >= 2 * rules.PIECES // 2


def test_processes_are_taken_for_many_small_chunks_and_for_nothing_else():
    many, auto = chunks(*(10_000,) * 1000), Execution("auto", 4)
    assert executor_for(many, auto) == Execution("processes", 4)
    assert executor_for(many, Execution("auto", 1)).executor == "threads"
    assert executor_for(many[:100], auto).executor == "threads"
    assert executor_for(chunks(*(1_000_000,) * 1000), auto).executor == "threads"
    assert executor_for(many, Execution("auto", 64)) == Execution("processes", 10)
    for said in ("iterative", "threads", "processes", "dask"):
        assert executor_for(many, Execution(said, 2)) == Execution(said, 2)
