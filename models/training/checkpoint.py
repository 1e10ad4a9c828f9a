"""State of an unfinished training on disk: safetensors, no pickle, replaced atomically.

A training that continues from a checkpoint ends with the same bits as one that was never stopped:
all random numbers are drawn from (seed, stage, epoch), so weights, optimiser, plateau memory and
history are the whole state. `fingerprint` ties the file to events, settings and seed. A file that
does not fit or cannot be read is passed over with a warning: starting anew gives the same result.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from models.training.schedule import Plateau
from selection.whole_files import write_bytes

log = logging.getLogger(__name__)

FORMAT = "punzi-checkpoint-2"


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to begin epoch `epoch` of stage `stage`."""

    fingerprint: str
    stage: int
    epoch: int
    plateau: Plateau
    network: dict[str, Tensor]
    after: dict[str, Tensor]  # "<stage>/<name>": the networks as the finished stages left them
    optimizer: dict[str, Tensor]  # "<parameter>.<name>"
    history: Tensor  # (rows, 5) float64
    left_out: Tensor  # (n_masses,) int64, batches in which a mass had no efficiency


def save_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """All or nothing."""
    tensors = {"history": checkpoint.history, "left_out": checkpoint.left_out}
    for part in ("network", "after", "optimizer"):
        tensors |= {f"{part}/{name}": t for name, t in getattr(checkpoint, part).items()}
    plateau = checkpoint.plateau
    tensors["plateau"] = torch.tensor(
        [plateau.best, plateau.epochs_since_best, plateau.reductions], dtype=torch.float64
    )
    header = {
        "format": FORMAT,
        "fingerprint": checkpoint.fingerprint,
        "position": json.dumps([checkpoint.stage, checkpoint.epoch]),
    }
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, save(plain, header))


def load_checkpoint(path: Path, fingerprint: str) -> Checkpoint | None:
    """The checkpoint, or None where there is none that fits this training."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT or header.get("fingerprint") != fingerprint:
                log.warning(
                    "%s is of another training (events, settings or seed); begun anew", path
                )
                return None
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return _checkpoint(header, tensors)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        log.warning("%s cannot be read (%s); begun anew", path, error)
        return None


def _checkpoint(header: dict[str, str], tensors: dict[str, Tensor]) -> Checkpoint:
    stage, epoch = json.loads(header["position"])
    best, since, reductions = tensors["plateau"].tolist()
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "after": {}, "optimizer": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition("/")
        if rest:
            parts[part][rest] = tensor
    return Checkpoint(
        fingerprint=header["fingerprint"],
        stage=int(stage),
        epoch=int(epoch),
        plateau=Plateau(best, int(since), int(reductions)),
        history=tensors["history"],
        left_out=tensors["left_out"],
        **parts,
    )
