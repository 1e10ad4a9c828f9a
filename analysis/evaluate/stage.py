"""`punzi evaluate`: cuts and figures of merit of every network, at every mass, and the models.

The cuts of a fold are chosen on the events its network was trained on and quoted on those it
judges; sums over the folds are the results. A window with little simulated background left counts
one more event of average weight, B + w1 with w1 = sum w^2 / sum w: no selection is pretended to be
free of background.

A model is the networks of all folds with the single cut that is quoted here: `models/` is written
together with `fom.json`, so whoever applies a model applies what was quoted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.evaluate.baselines import Compared, baseline_figures, mass_network_files
from analysis.evaluate.comparison_table import BACKGROUND_RULE
from analysis.evaluate.networks import Name, network_files, network_model, trained_networks
from analysis.evaluate.passing import passing_events, window_contents, write_passing
from analysis.run.code import code_digest
from analysis.run.folder import RunFolder, content_digest, read_json, write_csv, write_json
from analysis.run.stamps import stamp_of
from analysis.terminal import console
from analysis.train.outcome import failed_networks
from analysis.train.stage import SimulatedEvents
from models.evaluation.comparison import of_curve
from models.evaluation.figures_of_merit import (
    Quoting,
    figures_of_merit,
    over_networks,
    split_events,
)
from models.results import (
    ONE_FOR_ALL,
    SELECTION_MEANING,
    EnsembleFigureOfMerit,
    FigureOfMerit,
    WindowContent,
    from_json,
    to_json,
    to_rows,
)
from models.sensitivity import PunziFormula
from models.trained import TrainedModel, save_model, with_cut
from selection.windows import in_own_window, window_span

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)


def evaluate_networks(
    run: RunFolder, config: Configuration, simulated: SimulatedEvents, *, workers: int
) -> tuple[FigureOfMerit, ...]:
    """Bring fom.json, fom.csv and the models up to date; all figures of merit."""
    settings = config.settings
    section = settings.training
    networks = list(trained_networks(run, section))
    files = [path for name in networks for path in network_files(run, section, name)]
    files += mass_network_files(run, config)
    stamp = stamp_of(
        networks={path.name: content_digest(path) for path in files},
        training={"networks": section.networks, "seeds": section.seeds},  # same files, other nets
        events=simulated.fingerprint,
        evaluation=settings.evaluation,
        sensitivity=settings.sensitivity,
        folds=asdict(settings.folds),
        windows=simulated.windows.sigma.tolist(),
        code=code_digest("analysis.evaluate"),
    )
    if run.is_current("evaluate", stamp):
        log.info("evaluate: up to date")
        return load_figures(run)
    inside = _in_windows(simulated)
    splits = split_events(
        inside.table, inside.windows, trained=inside.trained, folds=settings.folds
    )
    s, cut = settings.sensitivity, settings.evaluation.single_cut
    quoting = Quoting(
        PunziFormula(config.luminosity_inv_fb, s.a, s.b, s.formula),
        single_cut=None if cut == "optimal" else cut,
        threads=workers,
    )
    models = {name: network_model(run, section, name) for name in networks}
    compared = Compared(run, config, inside, splits, quoting)
    figures = (*_network_figures(models, compared), *baseline_figures(compared))
    saved = [_save_with_quoted_cut(run, name, model, figures) for name, model in models.items()]
    failed = failed_networks(run, section)
    passing = passing_events(run, config, simulated, figures)
    write_figures(run, figures, failed, window_contents(simulated, passing))
    write_passing(run, simulated.table, passing)
    outputs = [run.figures_of_merit, run.figures_of_merit_csv, run.processes, run.passing, *saved]
    outputs += [run.rectangular_cuts] * settings.evaluation.rectangular_cuts
    run.finish("evaluate", stamp, outputs)
    return figures


def _in_windows(simulated: SimulatedEvents) -> SimulatedEvents:
    """Those that figures of merit are made of: signal in its own window, background in any."""
    table, windows = simulated.table, simulated.windows
    first, stop = window_span(windows, table.axis)
    own = in_own_window(windows, table.axis, table.signal_mass_gev)
    return replace(simulated, table=table.take(np.where(table.is_signal, own, first < stop)))


def _network_figures(models: Mapping[Name, TrainedModel], c: Compared) -> Iterator[FigureOfMerit]:
    features = np.asfortranarray(c.simulated.table.features)  # as scores are computed
    with (
        console.progress("evaluate", len(models)) as advance,
        ThreadPoolExecutor(c.quoting.threads) as pool,
    ):
        for name, model in models.items():
            alone = [model.of_fold(k) for k in range(len(c.splits))]
            scores = list(pool.map(lambda network: network.score(features), alone))
            yield from figures_of_merit(
                c.splits, scores, classifier=name[0], network=name[1], quoting=c.quoting
            )
            advance()


def _save_with_quoted_cut(
    run: RunFolder, name: Name, model: TrainedModel, figures: Sequence[FigureOfMerit]
) -> Path:
    """The model of one network, all folds; without a cut where no single cut sees every mass."""
    classifier, number = name
    quoted = of_curve(figures, (classifier, ONE_FOR_ALL))
    cut = float(next(f for f in quoted if f.network == number).cut[0])
    if np.isnan(cut):
        log.warning("no single cut leaves signal at every mass: %s has no cut", run.model(*name))
    save_model(with_cut(model, None if np.isnan(cut) else cut), run.model(*name))
    return run.model(*name)


def ensembles(
    figures: Sequence[FigureOfMerit], failed: Sequence[int]
) -> tuple[EnsembleFigureOfMerit, ...]:
    """Mean and standard error per classifier and selection, over the networks that did not fail."""
    groups: dict[tuple[str, str, str], list[FigureOfMerit]] = {}
    for f in figures:
        if f.classifier != "punzi" or f.network not in failed or len(failed) == _count(figures):
            groups.setdefault((f.classifier, f.selection, f.quoted_on), []).append(f)
    return tuple(over_networks(group) for group in groups.values())


def _count(figures: Sequence[FigureOfMerit]) -> int:
    return len({f.network for f in figures if f.classifier == "punzi"})


def write_figures(
    run: RunFolder,
    figures: Sequence[FigureOfMerit],
    failed: dict[int, list[str]],
    contents: Sequence[WindowContent],
) -> None:
    means = ensembles(figures, list(failed))
    write_json(
        run.figures_of_merit,
        {
            "rule_for_background": BACKGROUND_RULE,
            "selections": SELECTION_MEANING,
            "failed_networks": failed,
            "networks": [to_json(f) for f in figures],
            "ensembles": [to_json(m) for m in means],
            "processes": [to_json(c) for c in contents],
        },
    )
    write_csv(run.figures_of_merit_csv, [row for f in figures for row in to_rows(f)])
    if contents:  # of a fresh sample there are none
        write_csv(run.processes, [row for c in contents for row in to_rows(c)])


def load_figures(run: RunFolder) -> tuple[FigureOfMerit, ...]:
    return tuple(from_json(r) for r in _content(run.figures_of_merit)["networks"])


def load_ensembles(run: RunFolder) -> tuple[EnsembleFigureOfMerit, ...]:
    return tuple(from_json(r) for r in _content(run.figures_of_merit)["ensembles"])


def load_failed(run: RunFolder) -> dict[int, list[str]]:
    """Networks that failed, with the reasons, as they were when the run was evaluated."""
    return {int(i): why for i, why in _content(run.figures_of_merit)["failed_networks"].items()}


def load_contents(run: RunFolder) -> tuple[WindowContent, ...]:
    """What each sample leaves in each window."""
    return tuple(from_json(r) for r in _content(run.figures_of_merit)["processes"])


def _content(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(path)
    return content
