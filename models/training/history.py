"""What happened during training: one row per epoch, and one at the end of each stage.

Row e of a stage holds the mono-batch losses of the network *with which epoch e began* and the
learning rate used in it; the last row (epoch == epochs of the stage) is the network after it, with
rate 0. Losses of batches are never reported: they are biased low.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class History:
    """Columns of equal length; `stage` is the index into the stages of the settings."""

    stage: npt.NDArray[np.int64]
    epoch: npt.NDArray[np.int64]
    learning_rate: npt.NDArray[np.float64]
    train_loss: npt.NDArray[np.float64]
    validation_loss: npt.NDArray[np.float64]  # of every tenth epoch, else nan

    def __len__(self) -> int:
        return len(self.stage)

    def of_stage(self, stage: int) -> History:
        """The rows of one stage."""
        rows = self.stage == stage
        return replace(self, **{name: column[rows] for name, column in vars(self).items()})


def history_from_rows(rows: npt.ArrayLike) -> History:
    """Rows (stage, epoch, learning rate, train loss, validation loss) as columns."""
    table = np.asarray(rows, np.float64).reshape(-1, 5)
    return History(
        table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), *table[:, 2:].T.copy()
    )
