"""`punzi confirm`: the networks and cuts of a run, quoted on a sample no choice was made on.

Windows, networks and cuts come from the run; every event of the fresh sample is used for quoting
only, judged by the network of its fold. What was found in the run must come out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from analysis.evaluate.stage import load_failed, load_figures, write_figures
from analysis.inputs.findings import SAME_EVENTS
from analysis.run.folder import RunError, RunFolder
from analysis.select.index import load_selection
from analysis.select.selected import contents, thinning
from analysis.terminal.console import progress
from analysis.train.stage import simulated_table
from analysis.train.windows import load_windows
from models.evaluation.figures_of_merit import Quoting, SplitEvents, quote
from models.evaluation.window_events import window_events
from models.results import FigureOfMerit
from models.sensitivity import PunziFormula
from models.trained import load_model
from selection.masses import one_of
from selection.table import FloatArray, Folds

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.select.index import Selection


def refuse_missing_masses(run: RunFolder, config: Configuration) -> None:
    """Stop, before any work, if the fresh sample lacks a mass of the run."""
    wanted = load_figures(run)[0].mass_gev
    missing = [f"{m:g}" for m in wanted[~one_of(wanted, config.masses_gev)]]
    if missing:
        msg = (
            f"the fresh sample has no signal at {', '.join(missing[:5])} GeV "
            f"({len(missing)} of the {len(wanted)} masses of {run.path} are missing); give its "
            f"configuration the same masses_gev"
        )
        raise RunError(msg)


def refuse_same_events(run: RunFolder, selection: Selection) -> None:
    """Stop if the fresh sample holds events of the run: they chose its networks and cuts."""
    known = load_selection(run)
    by = max(thinning(known), thinning(selection))
    mine = np.concatenate(list(contents(known, thinned_by=by).values()))
    for name, bits in contents(selection, thinned_by=by).items():
        again = int(np.isin(bits, mine).sum())
        if again >= min(SAME_EVENTS, max(len(bits), 1)):
            msg = (
                f"{name} of the fresh sample holds {again} of {len(bits)} events that the run "
                f"{run.path} was trained or tuned on: that confirms nothing. Give files that the "
                f"run has never seen (for simulated ones: another seed)."
            )
            raise RunError(msg)


def confirm(
    run: RunFolder, fresh: RunFolder, config: Configuration, selection: Selection
) -> dict[int, list[str]]:
    """Write the figures of merit of all cuts of `run` on the events of `selection` to `fresh`.

    Returns the networks whose training failed, with the reasons.
    """
    chosen = [f for f in load_figures(run) if f.quoted_on == "validation"]
    table = simulated_table(config, selection)
    windows, first = load_windows(run.windows), chosen[0]
    folds = Folds(len(first.fold_cuts)) if len(first.fold_cuts) > 1 else None
    fold = np.zeros(len(table), np.int8) if folds is None else folds.of(table.identity)
    splits = []
    for k in range(len(first.fold_cuts)):
        events = window_events(table, windows, rows=fold == k)
        splits.append(SplitEvents(first.mass_gev, first.trained, events, events, 1.0))
    s = config.settings.sensitivity
    quoting = Quoting(PunziFormula(config.luminosity_inv_fb, s.a, s.b, s.formula))
    figures: list[FigureOfMerit] = []
    networks = sorted({(f.classifier, f.network) for f in chosen})
    with progress("confirm", len(networks)) as advance:
        for classifier, i in networks:
            advance()
            path = run.model(classifier, i)
            if not path.exists():  # boosted trees are not kept
                continue
            score = load_model(path).score(table.features, fold).astype(np.float64)  # once
            own = [f for f in chosen if (f.classifier, f.network) == (classifier, i)]
            figures += _quoted(splits, score, own, quoting)
    failed = load_failed(run)
    write_figures(fresh, figures, failed, ())
    return failed


def _quoted(
    splits: Sequence[SplitEvents],
    score: FloatArray,
    chosen: Sequence[FigureOfMerit],
    quoting: Quoting,
) -> list[FigureOfMerit]:
    return [
        quote(
            splits,
            [score] * len(splits),
            f.fold_cuts,
            name=(f.classifier, f.network, f.selection),
            quoted_on="validation",  # none of these events was trained on
            quoting=quoting,
        )
        for f in chosen
    ]
