"""The events a network is trained on, ordered by group.

    signal groups      g = 0 .. n_masses-1      events of mass m_g inside the window of m_g
    background groups  n_masses .. n_groups-1   elementary intervals between all window edges
    eps_k = S_k,   B_k = sum over intervals A[k, i] S_(n_masses+i),   S_g = sum over g of w y

The loss depends on the network only through the group sums S_g, and A (`in_window`) is small, so
overlapping windows cost nothing: every event is visited once. Everything is indexed by the list of
hypotheses: a mass without events keeps its place and leaves the others untouched.

Weights are scaled for the split: the events of a part that holds the share f of all events stand
for all of them, w -> w / f (f = 0.8 and 0.2 in the paper). Events outside all windows, and signal
of masses that are not hypotheses, are not used.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from selection.errors import UserError
from selection.table import BoolArray, EventTable, Folds, IntArray
from selection.windows import MassWindows, hypothesis_index, window_span


class NoTrainingEvents(UserError, ValueError):  # noqa: N818  (it says what is missing)
    """Signal or background is missing in the windows."""


PIECE = 8192  # events: a piece takes 0.1 ms, so that threads end together


@dataclass(frozen=True)
class Pieces:
    """Short runs of events whose sums are added in this order, whoever computes them."""

    bounds: IntArray  # (n_pieces, 2) first event and end
    group: IntArray  # (n_pieces,) rising
    target: npt.NDArray[np.float32]  # (n_pieces,)
    first: IntArray  # (n_groups with events,) first piece of each group


@dataclass(frozen=True)
class GroupedEvents:
    """Runs of consecutive events, each inside one group; groups rise along the runs.

    Run r holds events start[r] .. stop[r]-1 and belongs to group[r]. A batch is one of these.
    """

    features: npt.NDArray[np.float32]  # (n_features, n)
    weight: npt.NDArray[np.float32]  # (n,)
    group: IntArray  # (n_runs,)
    start: IntArray  # (n_runs,)
    stop: IntArray  # (n_runs,)
    target: npt.NDArray[np.float32]  # (n_groups,) 1 for signal, 0 for background

    @property
    def n_groups(self) -> int:
        return len(self.target)

    @cached_property
    def count(self) -> IntArray:
        """Number of events per group (n_groups,)."""
        lengths = np.bincount(self.group, self.stop - self.start, minlength=self.n_groups)
        return lengths.astype(np.int64)

    @cached_property
    def pieces(self) -> Pieces:
        """The runs cut to at most PIECE events."""
        length = self.stop - self.start
        bounds, group = np.stack([self.start, self.stop], axis=1), self.group
        if length.max(initial=0) > PIECE:  # never in small batches
            n_pieces = -(-length // PIECE)
            run = np.repeat(np.arange(len(group)), n_pieces)
            nth = np.arange(len(run)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
            begin = self.start[run] + nth * PIECE
            bounds = np.stack([begin, np.minimum(begin + PIECE, self.stop[run])], axis=1)
            group = group[run]
        if len(group) == self.n_groups and (group == np.arange(self.n_groups)).all():
            return Pieces(bounds, group, self.target, group)
        return Pieces(bounds, group, self.target[group], np.flatnonzero(np.diff(group, prepend=-1)))


@dataclass(frozen=True)
class TrainingSet:
    """Events of one part (training or validation) in group order; see the module's head."""

    features: npt.NDArray[np.float32]  # (n_features, n)
    weight: npt.NDArray[np.float32]  # (n,) scaled for the split
    group_start: npt.NDArray[np.int64]  # (n_groups + 1,) group g is [group_start[g], [g + 1])
    in_window: npt.NDArray[np.float64]  # (n_masses, n_intervals) the matrix A, 0 or 1
    mass_gev: npt.NDArray[np.float64]  # (n_masses,) the hypotheses
    luminosity_inv_fb: float

    def __post_init__(self) -> None:
        n = len(self.weight)
        shapes = (self.features.shape[1:], self.in_window.shape[0], len(self.group_start))
        groups = sum(self.in_window.shape)
        if shapes != ((n,), len(self.mass_gev), groups + 1):
            msg = (
                f"features, in_window, group_start have inconsistent shapes {shapes} for {n} events"
            )
            raise ValueError(msg)
        if self.group_start[-1] != n or np.any(np.diff(self.group_start) < 0):
            msg = f"group_start must rise to the number of events {n}"
            raise ValueError(msg)
        if not (np.all(np.isfinite(self.features)) and np.all(np.isfinite(self.weight))):
            msg = "features or weights are not finite; leave such events out of the table"
            raise ValueError(msg)

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def n_masses(self) -> int:
        return len(self.mass_gev)

    @property
    def n_groups(self) -> int:
        return len(self.group_start) - 1

    @property
    def target(self) -> npt.NDArray[np.float32]:
        """1 for signal groups, 0 for background groups (n_groups,)."""
        return (np.arange(self.n_groups) < self.n_masses).astype(np.float32)

    @property
    def masses_without_events(self) -> npt.NDArray[np.float64]:
        return self.mass_gev[np.diff(self.group_start[: self.n_masses + 1]) == 0]

    @cached_property
    def group_weight(self) -> npt.NDArray[np.float64]:
        """Sum of weights per group (n_groups,): the group sums of a network that accepts all."""
        return np.add.reduceat(
            np.append(self.weight, np.float32(0)), self.group_start[:-1], dtype=np.float64
        ) * (np.diff(self.group_start) > 0)  # reduceat gives an element, not 0, for an empty group

    @cached_property
    def whole(self) -> GroupedEvents:
        """All events as one batch."""
        return GroupedEvents(
            features=self.features,
            weight=self.weight,
            group=np.arange(self.n_groups),
            start=self.group_start[:-1],
            stop=self.group_start[1:],
            target=self.target,
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that enters training."""
        digest = hashlib.blake2b(str(self.luminosity_inv_fb).encode(), digest_size=16)
        for array in (self.features, self.weight, self.group_start, self.in_window, self.mass_gev):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def training_sets(
    table: EventTable,
    windows: MassWindows,
    *,
    luminosity_inv_fb: float,
    folds: Folds,
    fold: int = 0,
) -> tuple[TrainingSet, TrainingSet]:
    """What the network of a fold is trained on, and what it judges; `windows`: trained hypotheses.

    Who is who depends on the events' identities only. The second may be empty.
    """
    held_out = folds.of(table.identity) == fold
    groups, in_window = event_groups(table, windows)
    share = folds.held_out_share
    parts = [
        _part(table, groups, in_window, windows, luminosity_inv_fb, rows=rows, share=part)
        for rows, part in ((~held_out, 1 - share), (held_out, share))
    ]
    train = parts[0]
    if train.group_start[train.n_masses] in (0, len(train)):
        n_signal = int(train.group_start[train.n_masses])
        msg = (
            f"training needs signal and background in the windows; of {len(table)} events "
            f"{n_signal} signal and {len(train) - n_signal} background events are in the training "
            f"part. Compare the masses of the samples with those of the windows."
        )
        raise NoTrainingEvents(msg)
    return parts[0], parts[1]


def event_groups(
    table: EventTable, windows: MassWindows
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Group of each event (-1: not used), and the matrix A (n_masses, n_intervals)."""
    n = len(windows)
    edges = np.unique(np.concatenate([windows.low, windows.high]))
    # every span an event can have is met at an edge or between two neighbouring edges
    probes = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
    first, stop = window_span(windows, probes)
    spans = np.unique((first * (n + 1) + stop)[first < stop])
    k = np.arange(n)[:, None]
    in_window = ((spans // (n + 1) <= k) & (k < spans % (n + 1))).astype(np.float64)
    first, stop = window_span(windows, table.axis)
    interval = np.zeros((n + 1) * (n + 1), np.int64)
    interval[spans] = np.arange(len(spans))
    groups = np.where(first < stop, n + interval[first * (n + 1) + stop], -1)
    signal = np.flatnonzero(table.is_signal)
    own = hypothesis_index(windows, table.signal_mass_gev[signal])
    inside = (first[signal] <= own) & (own < stop[signal])
    groups[signal] = np.where(inside, own, -1)
    return groups, in_window


def _part(
    table: EventTable,
    groups: IntArray,
    in_window: npt.NDArray[np.float64],
    windows: MassWindows,
    luminosity_inv_fb: float,
    *,
    rows: BoolArray,
    share: float,
) -> TrainingSet:
    chosen = np.flatnonzero(rows & (groups >= 0))
    chosen = chosen[np.argsort(groups[chosen], kind="stable")]  # inside a group: order of the table
    n_groups = sum(in_window.shape)
    counts = np.bincount(groups[chosen], minlength=n_groups)
    return TrainingSet(
        features=np.ascontiguousarray(table.features[chosen].T, np.float32),
        weight=(table.weight[chosen] / share if share else table.weight[chosen]).astype(np.float32),
        group_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        in_window=in_window,
        mass_gev=windows.mass_gev,
        luminosity_inv_fb=luminosity_inv_fb,
    )
