"""Many networks on the same events, one seed each.

Networks are independent: as many train at once as there are workers, each on one thread (the
compiled sweeps release the interpreter, the events are shared, nothing is copied), or one per task
on a dask cluster. Because no result depends on threads or on the order of events in time, network s
is the same network wherever and beside whomever it was trained.

Each network is handed to `finished` in the calling thread as soon as it is done, and its checkpoint
is removed after that: a killed ensemble continues with the seeds that are not yet safe.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from models.training.loop import Progress, TrainedNetworks, TrainingDiverged, train_network
from models.training.settings import TrainingSettings
from models.training.training_set import TrainingSet

log = logging.getLogger(__name__)


class EnsembleStopped(RuntimeError):  # noqa: N818  (an order, not an error)
    """Raised inside the networks still in training when the ensemble is given up."""


def checkpoint_path(folder: Path, seed: int) -> Path:
    """Where the unfinished network of a seed is kept."""
    return folder / f"seed-{seed}.checkpoint.safetensors"


def train_ensemble(
    data: TrainingSet,
    validation: TrainingSet,
    settings: TrainingSettings,
    *,
    seeds: Sequence[int],
    workers: int = 1,
    finished: Callable[[TrainedNetworks], None] | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoints: Path | None = None,
    client: Any = None,
) -> tuple[TrainedNetworks, ...]:
    """One network per seed, in the order of `seeds`.

    workers: networks at a time; spare workers become threads of the networks. progress is called
    from the training threads (not over dask). client: a dask `distributed.Client`; `checkpoints`
    must then be a folder its workers share. Networks that diverge do not stop the others; the
    first such error is raised at the end.
    """
    if len(set(seeds)) != len(seeds):
        msg = f"every network needs its own seed, found {list(seeds)}"
        raise ValueError(msg)
    paths = {seed: checkpoint_path(checkpoints, seed) if checkpoints else None for seed in seeds}
    if checkpoints:
        checkpoints.mkdir(parents=True, exist_ok=True)
    run = partial(_on_threads, workers=workers, progress=progress)
    if client is not None:
        run = partial(_on_dask, client=client)
    done: dict[int, TrainedNetworks] = {}
    diverged: list[TrainingDiverged] = []
    for future in run(data, validation, settings, paths):
        try:
            result: TrainedNetworks = future.result()
        except TrainingDiverged as error:
            log.error("%s", error)
            diverged.append(error)
            continue
        if finished:
            finished(result)
        path = paths[result.seed]
        if path:
            path.unlink(missing_ok=True)
        done[result.seed] = result
    if diverged:
        raise diverged[0]
    return tuple(done[seed] for seed in seeds)


def _on_threads(
    data: TrainingSet,
    validation: TrainingSet,
    settings: TrainingSettings,
    paths: dict[int, Path | None],
    *,
    workers: int,
    progress: Callable[[Progress], None] | None,
) -> Iterator[Future[TrainedNetworks]]:
    stop = threading.Event()

    def report(state: Progress) -> None:
        if stop.is_set():
            raise EnsembleStopped
        if progress:
            progress(state)

    at_once = max(1, min(workers, len(paths)))
    with ThreadPoolExecutor(at_once) as pool:
        futures = [
            pool.submit(
                train_network, data, validation, settings, seed=seed, checkpoint=path,
                progress=report, threads=max(1, workers // at_once),
            )
            for seed, path in paths.items()
        ]  # fmt: skip
        try:
            yield from as_completed(futures)
        finally:
            stop.set()  # after an error or an interrupt: the others end at their next epoch
            for future in futures:
                future.cancel()


def _on_dask(
    data: TrainingSet,
    validation: TrainingSet,
    settings: TrainingSettings,
    paths: dict[int, Path | None],
    *,
    client: Any,
) -> Iterator[Any]:
    from distributed import as_completed as dask_as_completed

    # hash=False: the arrays are large, and dask's keys must not depend on how it would hash them
    events = client.scatter([data, validation], broadcast=True, hash=False)
    futures = [
        client.submit(train_network, *events, settings, seed=seed, checkpoint=path, pure=False)
        for seed, path in paths.items()
    ]
    try:
        yield from dask_as_completed(futures)
    finally:
        for future in futures:
            future.cancel()
