"""Where the chunks are processed: here, on all cores, or on a cluster. The result is the same.

    iterative    one after the other, in this process
    auto         threads; processes where a selection has many small files (default)
    threads      all cores: the kernels release the GIL, nothing is copied
    processes    all cores in processes of their own, for machines where threads disappoint
    dask         a LocalCluster, a running scheduler (address), or a batch system (YAML file)

The YAML file of a batch system says, in the words of dask-jobqueue:

    kind: slurm            # or htcondor, lsf
    jobs: 20               # batch jobs to keep running
    cores: 2
    memory: 4GB
    options: {queue: long, walltime: "02:00:00"}

Workers must see the input files and the run folder under the same paths.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.terminal.interrupts import interrupts_held, process_pool
from selection.errors import UserError

CONNECT_SECONDS = 30

ExecutorName = Literal["auto", "iterative", "threads", "processes", "dask"]
IN_THREADS = ("auto", "threads")
ANY_PORT = {"dashboard_address": ":0"}  # not always 8787, at which a second run warns or ends


class ExecutorError(UserError):
    """The executor cannot be started as asked."""


@dataclass(frozen=True)
class Execution:
    """Where and how the work is done; never part of a result."""

    executor: ExecutorName = "threads"
    workers: int = 1
    cluster: str | None = None
    chunk_size: int = 2**20
    allow_lost: bool = False


class BatchSystem(BaseModel):
    """Description of a batch system for dask-jobqueue."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Literal["slurm", "htcondor", "lsf"]
    jobs: int = Field(gt=0)
    cores: int = Field(gt=0)
    memory: str
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)


@contextlib.contextmanager
def open_executor(execution: Execution) -> Iterator[Any]:
    """A coffea executor, closed at the end of the block."""
    from coffea.processor import DaskExecutor, FuturesExecutor, IterativeExecutor

    name, workers = execution.executor, execution.workers
    if name == "iterative":
        yield IterativeExecutor(status=False, compression=None)
    elif name in IN_THREADS:
        # retries: a chunk that failed once in the same process fails again
        yield FuturesExecutor(
            pool=ThreadPoolExecutor, workers=workers, status=False, compression=None, retries=0
        )
    elif name == "processes":
        pool = process_pool(workers)
        try:
            yield FuturesExecutor(
                pool=pool, workers=workers, status=False, compression=None, retries=1
            )
        finally:
            pool.shutdown(cancel_futures=True)
    else:
        with dask_client(workers=workers, cluster=execution.cluster) as client:
            yield DaskExecutor(client=client, status=False, retries=3)


@contextlib.contextmanager
def dask_client(*, workers: int, cluster: str | None) -> Iterator[Any]:
    """A dask client: of a local cluster, of a scheduler's address, or of a batch system."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        msg = "the dask executor needs the extra `dask`: pip install 'punzi[dask]'"
        raise ExecutorError(msg) from None
    logging.getLogger("distributed").setLevel(logging.WARNING)  # its import has set INFO
    with contextlib.ExitStack() as stack:
        if cluster is None:
            with interrupts_held():
                local = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    scheduler_kwargs=ANY_PORT,
                )
            target: Any = stack.enter_context(local)
        elif "://" in cluster:
            target = cluster
        else:
            target = stack.enter_context(_batch_cluster(Path(cluster)))
        try:
            client = stack.enter_context(Client(target, timeout=CONNECT_SECONDS))
        except (OSError, TimeoutError) as error:
            msg = f"no dask scheduler answers at {cluster}: {error}"
            raise ExecutorError(msg) from None
        yield client


def read_batch_system(path: Path) -> BatchSystem:
    """The YAML file of the module's head, checked."""
    try:
        return BatchSystem.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        msg = f"cannot read the cluster description {path}: {error}"
        raise ExecutorError(msg) from None
    except ValidationError as error:
        rows = "\n".join(f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        msg = f"{path} does not describe a batch system (see analysis/run/executors.py):\n{rows}"
        raise ExecutorError(msg) from None


def batch_cluster_class(kind: str) -> Any:
    """The class of dask-jobqueue for a batch system."""
    try:
        import dask_jobqueue
    except ImportError:
        msg = "batch systems need the extra `dask`: pip install 'punzi[dask]'"
        raise ExecutorError(msg) from None
    return {
        "slurm": dask_jobqueue.SLURMCluster,
        "htcondor": dask_jobqueue.HTCondorCluster,
        "lsf": dask_jobqueue.LSFCluster,
    }[kind]


def _batch_cluster(path: Path) -> Any:
    system = read_batch_system(path)
    cluster = batch_cluster_class(system.kind)(
        cores=system.cores, memory=system.memory, **system.options
    )
    cluster.scale(jobs=system.jobs)
    return cluster
