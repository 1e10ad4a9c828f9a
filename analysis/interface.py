"""The analysis on arrays in memory: no files, no configuration, nothing printed (docs/api.md).

    table    = event_table({1.0: signal, ...}, {"taupair": background, ...}, n_generated=...)
    windows  = signal_windows(table)
    model    = trained_model(table, windows, luminosity_inv_fb=50)
    figures  = sensitivity(model, table)
    scored   = scored_events(model, new)

A "table of columns" is anything that gives a column by its name: a dictionary of arrays, a pandas
data frame, an awkward array of records, an uproot tree read as numpy. `column_names(search)` lists
the columns; event numbers and beams may also have basf2's names. Everything returned is a plain
frozen record, the same as in a run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.config.searches import shipped_search
from analysis.config.settings import WindowSettings
from analysis.inputs.arrays import (
    Columns,
    arrays_of,
    refuse_mistakes,
    refuse_numbers,
    wanted_of,
)
from analysis.train.windows import fit_windows
from models.evaluation.figures_of_merit import Quoting, figures_of_merit, split_events
from models.results import FigureOfMerit
from models.sensitivity import PunziFormula
from models.trained import Conditions, TrainedModel, from_network, joined_folds, with_cut
from models.training.ensemble import Member, train_ensemble
from models.training.settings import DEFAULT, TrainingSettings
from models.training.training_set import training_sets
from selection.beams import SUPERKEKB, Beams
from selection.errors import UserError
from selection.kernel import event_quantities
from selection.keys import event_identities, event_keys
from selection.preselection import passing
from selection.search import Search
from selection.table import EventTable, Folds
from selection.windows import MassWindows

DIMUON = "dimuon_recoil"


@dataclass(frozen=True, eq=False)
class Scored:
    """Events of any table of columns; (n,) each."""

    axis: npt.NDArray[np.float64]
    selected: npt.NDArray[np.bool_]  # by the cuts of the search
    score: npt.NDArray[np.float32]
    passes: npt.NDArray[np.bool_]  # selected, and above the cut of the model


def column_names(search: Search | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names that a table must have, and those that are used where it has them."""
    wanted = wanted_of(search or shipped_search(DIMUON))
    return tuple(wanted.required), tuple(wanted.optional)


def event_table(
    signal: Mapping[float, Columns],
    background: Mapping[str, Columns],
    *,
    n_generated: int | Mapping[float, int],
    luminosity_inv_fb: float,
    search: Search | None = None,
    beams: Beams = SUPERKEKB,
    weight: str = "weight",
    accept: Collection[str] = (),
) -> EventTable:
    """Selected events of simulated signal (by mass in GeV) and background (by name).

    n_generated: signal events that were made, for each mass. weight: column of a background with
    its events per inverse fb. Without event numbers the row stands for them. accept: names of
    mistakes (docs/mistakes.md) that are none here.
    """
    chosen = search or shipped_search(DIMUON)
    made = n_generated if isinstance(n_generated, Mapping) else dict.fromkeys(signal, n_generated)
    refuse_numbers(signal, made, luminosity_inv_fb)
    _refuse_names(background)
    read = {
        **{
            (f"signal/{mass:g}", mass, 1 / made[mass]): arrays_of(f"signal/{mass:g}", table, chosen)
            for mass, table in sorted(signal.items())
        },
        **{
            (name, np.nan, luminosity_inv_fb): arrays_of(name, table, chosen, weight=weight)
            for name, table in background.items()
        },
    }
    for (name, _, _), arrays in read.items():
        refuse_mistakes(name, arrays, beams, chosen, accept=accept)
    parts = [
        _selected(name, arrays, chosen, beams, mass, scale)
        for (name, mass, scale), arrays in read.items()
    ]
    for (mass, number), part in zip(sorted(made.items()), parts, strict=False):
        _refuse_share(mass, number, len(part["axis"]))
    names = ("signal", *background)
    of_part = [0] * len(signal) + [names.index(name) for name in background]
    sizes = [len(part["axis"]) for part in parts]
    return EventTable(
        **{name: np.concatenate([part[name] for part in parts]) for name in parts[0]},
        sample=np.repeat(np.array(of_part, np.int16), sizes),
        sample_names=names,
        feature_names=chosen.feature_names,
    )


def signal_windows(
    table: EventTable,
    *,
    search: Search | None = None,
    settings: WindowSettings | None = None,
) -> MassWindows:
    """Windows of all simulated masses, of widths fitted to the signal."""
    squared = (search or shipped_search(DIMUON)).axis.squared
    masses = tuple(np.unique(table.signal_mass_gev[table.is_signal]).tolist())
    return fit_windows(table, masses, settings or WindowSettings(), squared=squared)[0]


def trained_model(
    table: EventTable,
    windows: MassWindows,
    *,
    luminosity_inv_fb: float,
    search: Search | None = None,
    beams: Beams = SUPERKEKB,
    settings: TrainingSettings = DEFAULT,
    folds: int = 5,
    seed: int = 1,
    cut: float = 0.5,
    workers: int = 1,
) -> TrainedModel:
    """One network per fold, as a model that can be saved, applied and exported.

    UserError if a training fails: its network would select all or nothing.
    """
    if folds < 1 or not 0 < table.is_signal.sum() < len(table):
        msg = (
            f"wanted at least one fold, signal and background; found {folds} folds, "
            f"{table.is_signal.sum()} events of signal and {(~table.is_signal).sum()} of background"
        )
        raise UserError(msg)
    shares = Folds(folds)
    sets = [
        training_sets(table, windows, luminosity_inv_fb=luminosity_inv_fb, folds=shares, fold=k)
        for k in range(folds)
    ]
    members = [Member(seed, fold) for fold in range(folds)]
    found = train_ensemble(sets, settings, members=members, workers=workers)
    failed = [f"fold {k}: {r.reasons[0]}" for k, r in enumerate(found) if r.status == "failed"]
    if failed:
        msg = f"trainings failed ({'; '.join(failed)}); try another seed, or more events"
        raise UserError(msg)
    conditions = Conditions(
        classifier="punzi",
        cut=None,
        sqrt_s_gev=beams.sqrt_s_gev,
        luminosity_inv_fb=luminosity_inv_fb,
        beams=asdict(beams),
        training={"settings": asdict(settings), "seed": seed},
        provenance={},
    )
    models = [
        from_network(
            result.final,
            search=search or shipped_search(DIMUON),
            windows=windows,
            trained=np.ones(len(windows), bool),
            conditions=conditions,
        )
        for result in found
    ]
    return with_cut(joined_folds(models), cut)


def sensitivity(
    model: TrainedModel, table: EventTable, *, settings: TrainingSettings = DEFAULT
) -> tuple[FigureOfMerit, ...]:
    """Efficiency, background and sigma_min per mass, of the model's cut and of the best cuts.

    Every event is judged by the network of its fold. Of one network alone there is nothing that it
    was not trained on: train at least two folds.
    """
    if model.n_folds < 2:
        msg = "a model of one fold: nothing says which events it was not trained on"
        raise UserError(msg)
    splits = split_events(table, model.windows, trained=model.trained, folds=Folds(model.n_folds))
    scores = [model.of_fold(k).score(table.features) for k in range(model.n_folds)]
    formula: PunziFormula = settings.punzi_formula(model.conditions.luminosity_inv_fb)
    quoting = Quoting(formula, single_cut=model.conditions.cut)
    return figures_of_merit(splits, scores, classifier="punzi", network=0, quoting=quoting)


def scored_events(
    model: TrainedModel,
    columns: Columns,
    *,
    beams: Beams = SUPERKEKB,
    accept: Collection[str] = (),
) -> Scored:
    """Axis, cuts and score of any events: data, or simulation that the model has never seen."""
    arrays = arrays_of("the table", columns, model.search)
    refuse_mistakes("the table", arrays, beams, model.search, accept=accept)
    found = event_quantities(model.search, arrays, beams)
    identity = event_identities(arrays, len(found.axis))
    score = model.score(found.features.T, model.fold_of(identity))
    selected = passing(found.code, len(model.search.cuts))
    return Scored(found.axis, selected, score, selected & (score >= model.cut))


def _refuse_names(background: Mapping[str, Columns]) -> None:
    """A data frame in the place of a mapping would be taken for samples by its columns."""
    for name, table in background.items():
        if name == "signal" or not isinstance(name, str):
            msg = f"a background cannot be called {name!r}; give a mapping from name to table"
            raise UserError(msg)
        if getattr(table, "ndim", None) == 1 and not getattr(table, "fields", None):
            msg = (
                f"background must be a mapping from the name of a sample to its table, and "
                f"{name!r} is a single column: write {{'taupair': table}}"
            )
            raise UserError(msg)


def _refuse_share(mass: float, made: int, selected: int) -> None:
    if not 0 < selected <= made:
        msg = (
            f"signal/{mass:g}: {selected} rows pass the cuts of {made} events that n_generated "
            "says were made"
        )
        raise UserError(msg)


def _selected(
    name: str,
    arrays: dict[str, npt.NDArray[Any]],
    search: Search,
    beams: Beams,
    mass_gev: float,
    scale: float,
) -> dict[str, npt.NDArray[Any]]:
    """Columns of the event table, of the rows that pass the cuts."""
    found = event_quantities(search, arrays, beams)
    n, keep = len(found.axis), passing(found.code, len(search.cuts))
    w = arrays.get("weight", np.ones(n))
    if not np.isfinite(w).all():
        msg = f"{name}: weights must be finite numbers of events per inverse fb"
        raise UserError(msg)
    identity = event_identities(arrays, n)
    keys = arrays if "event" in arrays else {"event": np.arange(n)}
    return {
        "features": found.features.T[keep],
        "axis": found.axis[keep],
        "weight": scale * w[keep],
        "signal_mass_gev": np.full(int(keep.sum()), mass_gev),
        "key": event_keys(name, keys, n)[keep],
        "identity": identity[keep],
    }
