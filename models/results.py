"""Records of results: what evaluation and training say, and all that figures and tables need.

Plain numbers and numpy arrays, no torch. `to_json` and `from_json` turn any record into plain
JSON and back without loss (nan is null, infinities are "inf" and "-inf": JSON knows neither);
`to_rows` gives one flat row per mass, epoch or bin for a CSV file. Units are in the names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Texts = tuple[str, ...]

CHOSEN_ON_TRAINING = "best_cut"  # per mass, chosen on the training split
CHOSEN_ON_QUOTED = "maximum_achievable"  # per mass, chosen on the very events it is quoted on
ONE_FOR_ALL = "single_cut"

CLASSIFIER_TEXT = {
    "punzi": "Punzi-net",
    "bce": "BCE net (paper)",
    "bce_equal": "BCE net (equal)",
    "bce_mass": "BCE net (mass)",
    "xgboost": "XGBoost",
    "rectangular": "Rectangular cuts",
}
SELECTION_TEXT = {
    CHOSEN_ON_TRAINING: "best cut per mass",
    ONE_FOR_ALL: "single cut",
    CHOSEN_ON_QUOTED: "maximum achievable",
}
SELECTION_MEANING = {
    CHOSEN_ON_TRAINING: "cut per mass chosen on training events",
    ONE_FOR_ALL: "one cut for all masses",
    CHOSEN_ON_QUOTED: "cut per mass chosen on the events it is quoted on (optimistic)",
}
Curve = tuple[str, str]  # classifier, selection


def curve_text(curve: Curve) -> str:
    """`Punzi-net, single cut`: in legends, tables and on the terminal."""
    classifier, selection = curve
    return f"{CLASSIFIER_TEXT.get(classifier, classifier)}, {SELECTION_TEXT[selection]}"


@dataclass(frozen=True, eq=False)
class FigureOfMerit:
    """One classifier under one selection, at every mass; arrays are (n_masses,).

    background is the plain sum of weights of what passes; sigma_min is computed from
    background + added_background, by the rule that one more simulated event might have passed.
    Errors are those of the simulation's size.
    """

    classifier: str  # "punzi", "bce", "xgboost", ...: a name of CLASSIFIER_TEXT
    network: int  # number within the ensemble
    selection: str  # one of the three names above
    quoted_on: str  # "validation" or "training"
    luminosity_inv_fb: float
    mass_gev: Floats
    trained: Bools  # was the mass used in training?
    cut: Floats  # pass: score >= cut, mean over the folds; nan if nothing can pass
    fold_cuts: Floats  # (n_folds, n_masses)
    efficiency: Floats
    efficiency_error: Floats
    n_eff_signal: Floats  # (sum w)^2 / sum w^2
    background: Floats  # events at the luminosity
    background_error: Floats
    n_eff_background: Floats
    added_background: Floats
    sigma_min_fb: Floats
    sigma_min_error_fb: Floats

    @property
    def fom_inv_fb(self) -> Floats:
        """Punzi's figure of merit, 1/sigma_min; 0 where nothing can be seen."""
        return 1.0 / self.sigma_min_fb

    @property
    def fom_error_inv_fb(self) -> Floats:
        return self.sigma_min_error_fb / self.sigma_min_fb**2


@dataclass(frozen=True, eq=False)
class EnsembleFigureOfMerit:
    """Mean and standard error over networks (`_error`, nan for one network); (n_masses,) arrays.

    `_mc_error` is the mean error from the simulation's size: all networks see the same events,
    so it does not shrink with their number.
    """

    classifier: str
    selection: str
    quoted_on: str
    luminosity_inv_fb: float
    n_networks: int
    mass_gev: Floats
    trained: Bools
    cut: Floats
    cut_error: Floats
    efficiency: Floats
    efficiency_error: Floats
    background: Floats
    background_error: Floats
    sigma_min_fb: Floats
    sigma_min_error_fb: Floats
    sigma_min_mc_error_fb: Floats
    fom_inv_fb: Floats
    fom_error_inv_fb: Floats
    fom_mc_error_inv_fb: Floats


@dataclass(frozen=True, eq=False)
class WindowContent:
    """What one background sample leaves in each window after the single cut of a network.

    Arrays are (n_masses,). Where no row passes, `row_weight` still tells the possible size.
    """

    network: int
    sample: str
    mass_gev: Floats
    rows: Floats  # that pass
    events: Floats  # sum of weights, at the luminosity
    squares: Floats  # sum of squared weights
    largest: Floats  # weight of the heaviest row
    row_weight: Floats  # of one row of the sample: sum w^2 / sum w before the cut


@dataclass(frozen=True, eq=False)
class Scan:
    """What a count in each window knows of signal and background, after the single cut.

    Scan masses lie closer than the simulated ones: no mass between them is in no window. Arrays
    are (n_masses,), those of samples (n_samples, n_masses).
    """

    network: int
    luminosity_inv_fb: float
    samples: Texts
    mass_gev: Floats
    low: Floats  # of the window, in the unit of the axis
    high: Floats
    efficiency: Floats
    efficiency_error: Floats
    background: Floats  # events at the luminosity
    background_error: Floats
    added_background: Floats
    sigma_min_fb: Floats
    too_small: Bools  # is the simulation too small for a limit here?
    rows: Floats  # of each sample that pass, effective: (sum w)^2 / sum w^2
    events: Floats  # of each sample, sum of weights
    row_weight: Floats  # events that one row of a sample stands for


@dataclass(frozen=True, eq=False)
class Limits:
    """Upper limits and p-values at every scan mass; arrays are (n_masses,).

    Cross sections in fb. What needs data is nan without them, or while they are blind; infinite is
    a limit where no signal can pass.
    """

    level: float  # confidence, such as 0.90
    method: str  # "CLs", exact
    luminosity_inv_fb: float
    mass_gev: Floats
    too_small: Bools
    minus2_fb: Floats  # expected without signal: bands of 95 and 68 %, median, mean
    minus1_fb: Floats
    median_fb: Floats
    plus1_fb: Floats
    plus2_fb: Floats
    mean_fb: Floats
    asimov_fb: Floats  # for as many events as expected
    observed_fb: Floats
    bayesian_fb: Floats  # observed, flat prior in the cross section
    n_observed: Floats
    best_fb: Floats  # best cross section with its 68 % interval
    best_low_fb: Floats
    best_high_fb: Floats
    p_local: Floats  # of at least so many events without signal
    significance: Floats  # local, one-sided
    p_global: Floats  # that somewhere in the scan p is so small
    p_global_bound: Floats  # from upcrossings: at most
    sideband_background: Floats  # events that the data beside the window foretell; nan: too few
    sideband_error: Floats
    sideband_p: Floats  # local p-value with that background: a check without simulated rates
    global_lines: Floats  # (3,) local p-values that are 1, 2, 3 sigma globally
    cross_section_fb: Floats  # at coupling_reference, with its branching ratio; nan: not known
    coupling_reference: float


@dataclass(frozen=True, eq=False)
class LossHistory:
    """Loss of one stage after each epoch, always over all events at once; arrays (n_epochs,)."""

    stage: str  # "bce" or "punzi"
    label: str  # for a legend, such as "batch 1e5"
    loss_name: str  # axis text, such as "mean of log sigma_min"
    epoch: Floats
    training: Floats
    validation: Floats  # nan where it was not computed
    learning_rate: Floats


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Sum of weights in bins of network output before the sigmoid (x) and mass (y)."""

    classifier: str
    component: str  # "signal" or "background"
    logit_edges: Floats  # (nx + 1,)
    mass_edges_gev: Floats  # (ny + 1,)
    content: Floats  # (nx, ny)
    cut_mass_gev: Floats  # (n_masses,) line of the best cut per mass
    cut_logit: Floats  # (n_masses,)


@dataclass(frozen=True, eq=False)
class PeakFit:
    """Fit of the axis of one signal mass; edges, widths and windows in the unit of the axis."""

    mass_gev: float
    edges: Floats  # (n_bins + 1,)
    content: Floats  # (n_bins,) events
    content_error: Floats
    curve_at: Floats  # (n_points,) abscissa of the fitted shape
    curve: Floats  # (n_points,) events per bin
    core: Floats  # (n_points,) the part of it without the radiative tail
    sigma: float
    sigma_error: float
    window_low: float
    window_high: float


@dataclass(frozen=True, eq=False)
class WidthsByMass:
    """Fitted widths against mass, the smooth curve through them, and published ones if any."""

    mass_gev: Floats
    sigma: Floats
    sigma_error: Floats
    curve_mass_gev: Floats
    curve_sigma: Floats
    reference_text: str
    reference_mass_gev: Floats  # may be empty
    reference_sigma: Floats
    reference_error: Floats


@dataclass(frozen=True, eq=False)
class DecisionBoundary:
    """One to three features, the others fixed: points of some masses, and the network on a grid."""

    free: Texts  # names of the features shown
    fixed: Texts  # names of the others
    fixed_value: Floats  # (n_fixed,)
    cut: float
    grid: Floats  # (n_free, n_grid)
    score: Floats  # (n_grid,) * n_free: network on the grid
    mass_gev: Floats  # (n_masses,) of the points below
    point_mass_gev: Floats  # (n_points,)
    point: Floats  # (n_points, n_free)


Record = (
    FigureOfMerit
    | EnsembleFigureOfMerit
    | WindowContent
    | Scan
    | Limits
    | LossHistory
    | ScoreMap
    | PeakFit
    | WidthsByMass
    | DecisionBoundary
)
_RECORDS: Mapping[str, type[Any]] = {
    r.__name__: r
    for r in (
        FigureOfMerit,
        EnsembleFigureOfMerit,
        WindowContent,
        Scan,
        Limits,
        LossHistory,
        ScoreMap,
        PeakFit,
        WidthsByMass,
        DecisionBoundary,
    )
}
NO_COLUMN = ("fold_cuts", "global_lines")
_PLAIN: Mapping[str, type[Any]] = {"str": str, "int": int, "float": float}


def to_json(record: Record) -> dict[str, Any]:
    """Plain data for json.dumps; the entry "record" names the class."""
    content = {f.name: _plain(getattr(record, f.name)) for f in fields(record)}
    return {"record": type(record).__name__, **content}


def from_json(data: Mapping[str, Any]) -> Any:
    """The record that `to_json` wrote; ValueError names the entry that is missing or wrong."""
    kind = str(data.get("record"))
    if kind not in _RECORDS:
        msg = f"no record is called {kind!r}; known are {', '.join(_RECORDS)}"
        raise ValueError(msg)
    wanted = fields(_RECORDS[kind])
    odd = {f.name for f in wanted} ^ (set(data) - {"record"})
    if odd:
        msg = f"{kind}: entries missing or unknown: {', '.join(sorted(odd))}; evaluate again"
        raise ValueError(msg)
    values = {}
    for f in wanted:
        try:
            values[f.name] = _value(str(f.type), data[f.name])
        except (TypeError, ValueError) as error:
            msg = f"{kind}.{f.name} is not {f.type}: {error}"
            raise ValueError(msg) from error
    return _RECORDS[kind](**values)


def to_rows(record: Record) -> Iterator[dict[str, Any]]:
    """One row per entry of the record's one-dimensional arrays of common length, for CSV.

    Single values are repeated in each row, arrays of another kind (`NO_COLUMN`) are left out.
    Records of several lengths (maps, fits) have no rows.
    """
    values = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in NO_COLUMN}
    arrays = {name: v for name, v in values.items() if isinstance(v, np.ndarray)}
    if len({v.shape for v in arrays.values()}) != 1 or next(iter(arrays.values())).ndim != 1:
        msg = f"{type(record).__name__} is not a table: its arrays differ in shape"
        raise ValueError(msg)
    for i in range(len(next(iter(arrays.values())))):
        yield {name: arrays[name][i].item() if name in arrays else v for name, v in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _value(kind: str, value: Any) -> Any:
    if kind == "Floats":
        return np.array(_unplain(value), dtype=np.float64)
    if kind == "Texts":
        return tuple(str(v) for v in value)
    if kind == "Bools":
        if not all(isinstance(v, bool) for v in value):
            msg = "found something other than true and false"
            raise ValueError(msg)
        return np.array(value, dtype=np.bool_)
    return _PLAIN[kind](_unplain(value))


def _unplain(value: Any) -> Any:
    if isinstance(value, list):
        return [_unplain(v) for v in value]
    if value is None:
        return math.nan
    return float(value) if value in ("inf", "-inf") else value
