"""A score per event and window: every event once for each window it counts in.

    pair = (row of the table, window)      background: every window of its span, signal: its own

A network that is told the mass, or a box of cuts for every mass, gives the same event another score
in each window. As a pair an event lies in one window and has one score, so that cuts, sums and
figures of merit are those of any classifier: only the rows are others. Sums are added in the order
of the events, as without pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.evaluation.figures_of_merit import SplitEvents
from models.evaluation.window_events import RowArray, WindowEvents


@dataclass(frozen=True)
class Pairs:
    """The events of one fold, those trained on and those judged, as pairs."""

    split: SplitEvents  # its rows are pairs
    row: RowArray  # (n_pairs,) of the table
    window: RowArray  # (n_pairs,)


def in_pairs(split: SplitEvents) -> Pairs:
    """Pairs of the training events first, then those of the judged ones."""
    training, row, window = _expanded(split.training, 0)
    judged, row_judged, window_judged = _expanded(split.judged, len(row))
    return Pairs(
        replace(split, training=training, judged=judged),
        np.concatenate([row, row_judged]),
        np.concatenate([window, window_judged]),
    )


def _expanded(events: WindowEvents, offset: int) -> tuple[WindowEvents, RowArray, RowArray]:
    """The same events as pairs numbered from `offset`, and row and window of each."""
    own = np.repeat(np.arange(events.n_windows), np.diff(events.signal_start))
    count = (events.background_stop - events.background_first).astype(np.int64)
    nth = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    window = np.repeat(events.background_first, count) + nth
    pairs = offset + np.arange(len(own) + len(window))
    expanded = replace(
        events,
        signal_row=pairs[: len(own)],
        background_row=pairs[len(own) :],
        background_first=window.astype(np.int16),
        background_stop=(window + 1).astype(np.int16),
        background_weight=np.repeat(events.background_weight, count),
    )
    row = np.concatenate([events.signal_row, np.repeat(events.background_row, count)])
    return expanded, row, np.concatenate([own, window])
