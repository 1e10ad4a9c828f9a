"""What passes the single cut, process by process: all that a limit needs.

    rows, sum w, sum w^2, largest w      of a sample in a window, after the cut
    weight of one row                    sum w^2 / sum w of the rows of the sample nearest to the
                                         window, before the cut: where no row passes, its possible
                                         size is still known

`passing.parquet` keeps axis, weight, sample, mass, fold and network of every event that passes,
each judged by a network that was not trained on it: windows at any mass can be counted later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.run.folder import RunFolder
from models.evaluation.comparison import PUNZI_SINGLE, of_curve
from models.results import FigureOfMerit, Floats, WindowContent
from models.scoring import passes
from models.trained import load_model
from selection.table import EventTable
from selection.whole_files import replacing
from selection.windows import MassWindows, window_span

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.train.stage import SimulatedEvents


NEAREST = 100  # rows of a sample that say how much one weighs at a mass


@dataclass(frozen=True)
class Passing:
    """Events of the table that pass the single cut of one Punzi-net."""

    network: int
    rows: npt.NDArray[np.int64]
    fold: npt.NDArray[np.int8]  # (n_events of the table,) who judges; -1: nobody
    scale: float  # weights of judged events stand for all events


def passing_events(
    run: RunFolder,
    config: Configuration,
    simulated: SimulatedEvents,
    figures: Sequence[FigureOfMerit],
) -> list[Passing]:
    """Of every Punzi-net that has a single cut."""
    folds, table = config.settings.folds, simulated.table
    fold = folds.of(table.identity)
    found = []
    for quoted in of_curve(figures, PUNZI_SINGLE):
        cut = float(quoted.cut[0])
        if np.isfinite(cut):
            model = load_model(run.model("punzi", quoted.network))
            score = model.score(table.features, np.maximum(fold, 0))
            rows = np.flatnonzero(passes(score, cut) & (fold >= 0))
            found.append(Passing(quoted.network, rows, fold, 1 / folds.judged_share))
    return found


def window_contents(
    simulated: SimulatedEvents, passing: Sequence[Passing]
) -> tuple[WindowContent, ...]:
    """Every background sample in every window, for each network."""
    table, windows = simulated.table, simulated.windows
    if not passing:
        return ()
    one = passing[0]  # the same events are judged by all, whatever passes
    weights = {}
    for i, name in enumerate(table.sample_names):
        own = (table.sample == i) & ~table.is_signal
        if own.any():
            judged = own & (one.fold >= 0)
            weight = table.weight[judged] * one.scale
            weights[i, name] = row_weight(table.axis[judged], weight, windows.peak)
    return tuple(
        _content(table, windows, p, name, p.rows[background & (sample == i)], weight)
        for p in passing
        for background, sample in [(~table.is_signal[p.rows], table.sample[p.rows])]
        for (i, name), weight in weights.items()
    )


def _content(
    table: EventTable,
    windows: MassWindows,
    p: Passing,
    sample: str,
    rows: npt.NDArray[np.int64],
    of_one_row: Floats,
) -> WindowContent:
    first, stop = window_span(windows, table.axis[rows])
    weight = table.weight[rows] * p.scale
    n = len(windows)
    return WindowContent(
        network=p.network,
        sample=sample,
        mass_gev=windows.mass_gev,
        rows=_in_windows(first, stop, np.ones(len(rows)), n),
        events=_in_windows(first, stop, weight, n),
        squares=_in_windows(first, stop, weight**2, n),
        largest=_largest(first, stop, weight, n),
        row_weight=of_one_row,
    )


def row_weight(axis: Floats, weight: Floats, at: Floats) -> Floats:
    """sum w^2 / sum w (n_at,) of the NEAREST rows to each point of the axis, half on either side.

    Weights may differ along the axis, and near a point there may be no row at all.
    """
    order = np.argsort(axis, kind="stable")
    w = np.asarray(weight, np.float64)[order]
    sums, squares = (np.concatenate([[0.0], np.cumsum(w**k)]) for k in (1, 2))
    middle = np.searchsorted(axis[order], at)
    low = np.clip(middle - NEAREST // 2, 0, max(len(w) - NEAREST, 0))
    high = np.minimum(low + NEAREST, len(w))
    total = sums[high] - sums[low]
    return np.divide(squares[high] - squares[low], total, out=np.zeros(len(at)), where=total > 0)


def _in_windows(
    first: npt.NDArray[np.integer], stop: npt.NDArray[np.integer], weight: Floats, n: int
) -> Floats:
    """Sum over the events of each window (n,): an event lies in [first, stop)."""
    return np.array([weight[(first <= k) & (k < stop)].sum() for k in range(n)])


def _largest(
    first: npt.NDArray[np.integer], stop: npt.NDArray[np.integer], weight: Floats, n: int
) -> Floats:
    return np.array([weight[(first <= k) & (k < stop)].max(initial=0.0) for k in range(n)])


def write_passing(run: RunFolder, table: EventTable, passing: Sequence[Passing]) -> None:
    names = np.array(table.sample_names)
    parts = [
        {
            "network": np.full(len(p.rows), p.network, np.int16),
            "fold": p.fold[p.rows],
            "sample": names[table.sample[p.rows]],
            "signal_mass_gev": table.signal_mass_gev[p.rows],
            "axis": table.axis[p.rows],
            "weight": table.weight[p.rows] * p.scale,
        }
        for p in passing
    ]
    columns = {k: np.concatenate([part[k] for part in parts]) for k in parts[0]} if parts else {}
    with replacing(run.passing) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="lz4")
