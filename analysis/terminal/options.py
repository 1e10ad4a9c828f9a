"""Options that several commands of `punzi` share."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Executor(StrEnum):
    auto = "auto"
    iterative = "iterative"
    threads = "threads"
    processes = "processes"
    dask = "dask"


class ShellName(StrEnum):
    bash = "bash"
    zsh = "zsh"


ConfigOption = Annotated[
    Path, typer.Option("-c", "--config", help="Configuration: samples and settings.")
]
RunOption = Annotated[str, typer.Option("-r", "--run", help="Name of the run (folder runs/NAME).")]
WorkersOption = Annotated[int, typer.Option(min=1, max=10_000, help="Parallel workers.")]
ExecutorOption = Annotated[Executor, typer.Option(help="Where chunks are processed.")]
ClusterOption = Annotated[
    str | None,
    typer.Option(help="dask: address of a scheduler, or YAML file of a batch system."),
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="Change a setting: section.key=value.")
]
ChunkOption = Annotated[int, typer.Option(min=1, help="Rows per chunk.")]
LostOption = Annotated[
    bool, typer.Option("--allow-lost", help="Go on without unreadable chunks, weights corrected.")
]

NetworksOption = Annotated[
    int | None, typer.Option(min=1, help="Networks in the ensemble (training.networks).")
]
SeedOption = Annotated[
    int | None, typer.Option(min=0, help="Seed of the first network (training.seed).")
]

UnblindOption = Annotated[
    bool, typer.Option("--unblind", help="Show and count data after the cut; this is recorded.")
]

CORES = os.cpu_count() or 1
