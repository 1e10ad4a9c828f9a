"""Parallel work comes back in order, is not begun far ahead, and is dropped when nobody waits."""

import os
import threading
import time

import pytest

from analysis.run.executors import Execution
from analysis.run.in_order import AHEAD_PER_WORKER, ordered_map


def slow_first(task):
    time.sleep(0.05 if task == 0 else 0.0)
    return task, os.getpid()


@pytest.mark.parametrize("executor", ["iterative", "threads", "processes"])
def test_results_come_in_the_order_of_the_tasks(executor):
    with ordered_map(Execution(executor, 2)) as work:
        found = list(work(slow_first, range(20)))
    assert [task for task, _ in found] == list(range(20))
    here = {pid for _, pid in found} == {os.getpid()}
    assert here is (executor != "processes")


@pytest.mark.parametrize("workers", [1, 3])
def test_at_most_two_tasks_per_worker_are_begun_ahead(workers):
    begun = []

    def tasks():
        for i in range(50):
            begun.append(i)
            yield i

    with ordered_map(Execution("threads", workers)) as work:
        results = work(lambda task: task, tasks())
        for taken in range(1, 20):
            next(results)
            assert len(begun) == AHEAD_PER_WORKER * workers + taken - 1


def test_what_is_not_begun_is_dropped_when_the_reader_fails():
    gate, done = threading.Event(), []

    def wait(task):
        gate.wait(10)
        done.append(task)

    def fail(work):
        results = work(wait, range(100))
        threading.Timer(0.2, gate.set).start()
        next(results)
        raise KeyError

    with pytest.raises(KeyError), ordered_map(Execution("threads", 1)) as work:
        fail(work)
    assert len(done) <= 2  # the one that was taken, and the one that had begun


def test_a_failure_reaches_the_reader():
    with ordered_map(Execution("threads", 2)) as work:
        results = work(lambda task: 1 / task, [1, 2, 0, 4])
        assert [next(results), next(results)] == [1, 0.5]
        with pytest.raises(ZeroDivisionError):
            next(results)
