"""Learning rate of an epoch.

    constant   r
    cosine     r (1 + cos(pi epoch / epochs)) / 2
    plateau    r factor^k, k = how often `patience` epochs in a row brought no new best loss

A loss is a new best if it is lower by more than 1e-4 of its size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from models.training.settings import Stage

MIN_GAIN = 1e-4


@dataclass(frozen=True)
class Plateau:
    """What the plateau rule remembers."""

    best: float = math.inf
    epochs_since_best: int = 0
    reductions: int = 0


def after_epoch(memory: Plateau, loss: float, stage: Stage) -> Plateau:
    """The memory after one more loss; other schedules do not use it."""
    if math.isinf(memory.best) or loss < memory.best - MIN_GAIN * abs(memory.best):
        return Plateau(loss, 0, memory.reductions)
    if memory.epochs_since_best + 1 > stage.patience:
        return Plateau(memory.best, 0, memory.reductions + 1)
    return Plateau(memory.best, memory.epochs_since_best + 1, memory.reductions)


def learning_rate(stage: Stage, epoch: int, memory: Plateau) -> float:
    """The rate for an epoch (0 .. epochs-1)."""
    if stage.schedule == "cosine":
        return stage.learning_rate * (1 + math.cos(math.pi * epoch / stage.epochs)) / 2
    if stage.schedule == "plateau":
        return float(stage.learning_rate * stage.factor**memory.reductions)
    return stage.learning_rate
