"""Many networks: one for each seed and fold.

Networks are independent: as many train at once as there are workers, each on one thread (the
compiled sweeps release the interpreter, the events of a fold are shared, nothing is copied), or one
per task on a dask cluster. Because no result depends on threads or on the order of events in time,
a network is the same wherever and beside whomever it was trained.

Each network is handed to `finished` in the calling thread as soon as it is done, and its checkpoint
is removed after that: a killed ensemble continues with the networks that are not yet safe.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from models.training.loop import Progress, TrainedNetworks, TrainingDiverged, train_network
from models.training.settings import TrainingSettings
from models.training.training_set import TrainingSet

log = logging.getLogger(__name__)


class EnsembleStopped(RuntimeError):  # noqa: N818  (an order, not an error)
    """Raised inside the networks still in training when the ensemble is given up."""


class Member(NamedTuple):
    """One network of an ensemble: its seed, and the fold it judges and is not trained on."""

    seed: int
    fold: int = 0


Sets = tuple[TrainingSet, TrainingSet]  # trained on, judged


def checkpoint_path(folder: Path, member: Member) -> Path:
    """Where an unfinished network is kept."""
    return folder / f"seed-{member.seed}-fold-{member.fold}.checkpoint.safetensors"


def train_ensemble(
    sets: Sequence[Sets],
    settings: TrainingSettings,
    *,
    members: Sequence[Member],
    workers: int = 1,
    finished: Callable[[Member, TrainedNetworks], None] | None = None,
    progress: Callable[[Member, Progress], None] | None = None,
    checkpoints: Path | None = None,
    client: Any = None,
) -> tuple[TrainedNetworks, ...]:
    """One network per member, in their order; sets: events of each fold.

    workers: networks at a time; spare workers, in the last round too, become threads. progress is
    called from the training threads (not over dask). client: a dask `distributed.Client`;
    `checkpoints` must then be a folder its workers share. Networks that diverge do not stop the
    others; the first such error is raised at the end.
    """
    if len(set(members)) != len(members):
        msg = f"every network needs its own seed and fold, found {list(members)}"
        raise ValueError(msg)
    paths = {m: checkpoint_path(checkpoints, m) if checkpoints else None for m in members}
    if checkpoints:
        checkpoints.mkdir(parents=True, exist_ok=True)
    run = partial(_on_threads, workers=workers, progress=progress)
    if client is not None:
        run = partial(_on_dask, client=client)
    done: dict[Member, TrainedNetworks] = {}
    diverged: list[TrainingDiverged] = []
    for member, future in run(sets, settings, paths):
        try:
            result: TrainedNetworks = future.result()
        except TrainingDiverged as error:
            log.error("%s", error)
            diverged.append(error)
            continue
        if finished:
            finished(member, result)
        path = paths[member]
        if path:
            path.unlink(missing_ok=True)
        done[member] = result
    if diverged:
        raise diverged[0]
    return tuple(done[member] for member in members)


def _on_threads(
    sets: Sequence[Sets],
    settings: TrainingSettings,
    paths: dict[Member, Path | None],
    *,
    workers: int,
    progress: Callable[[Member, Progress], None] | None,
) -> Iterator[tuple[Member, Future[TrainedNetworks]]]:
    stop = threading.Event()

    def report(member: Member, state: Progress) -> None:
        if stop.is_set():
            raise EnsembleStopped
        if progress:
            progress(member, state)

    at_once = max(1, min(workers, len(paths)))
    last = len(paths) % at_once or at_once  # in the last round some workers would be idle
    with ThreadPoolExecutor(at_once) as pool:
        futures = {
            pool.submit(
                train_network, *sets[member.fold], settings, seed=member.seed, checkpoint=path,
                progress=partial(report, member),
                threads=max(1, workers // (last if at >= len(paths) - last else at_once)),
            ): member
            for at, (member, path) in enumerate(paths.items())
        }  # fmt: skip
        try:
            for future in as_completed(futures):
                yield futures[future], future
        finally:
            stop.set()  # after an error or an interrupt: the others end at their next epoch
            for future in futures:
                future.cancel()


def _on_dask(
    sets: Sequence[Sets],
    settings: TrainingSettings,
    paths: dict[Member, Path | None],
    *,
    client: Any,
) -> Iterator[tuple[Member, Any]]:
    from distributed import as_completed as dask_as_completed

    # hash=False: the arrays are large, and dask's keys must not depend on how it would hash them
    events = [client.scatter(list(pair), broadcast=True, hash=False) for pair in sets]
    futures = {
        client.submit(
            train_network, *events[m.fold], settings, seed=m.seed, checkpoint=path, pure=False
        ): m
        for m, path in paths.items()
    }
    try:
        for future in dask_as_completed(list(futures)):
            yield futures[future], future
    finally:
        for future in futures:
            future.cancel()
