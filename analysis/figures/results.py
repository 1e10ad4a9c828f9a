"""Figures of results: reach, score maps, learning, decision surface, network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from analysis.figures.readouts import reach_readout
from analysis.figures.run_results import Drawing, RunResults
from models.evaluation.comparison import (
    BCE_BEST,
    BOXES_BEST,
    EQUAL_BEST,
    MASS_BEST,
    MASS_SINGLE,
    PUNZI_BEST,
    PUNZI_SINGLE,
    TREES_BEST,
    WITHOUT_NETWORKS,
)
from models.evaluation.maps import decision_boundary, score_maps
from models.results import CHOSEN_ON_TRAINING, CLASSIFIER_TEXT, ScoreMap, to_rows
from plots.boundary import decision_boundary as boundary_figure
from plots.learning import batch_size_study, loss_evolution
from plots.reach import cuts_by_mass, efficiency_and_background, reach
from plots.score_map import score_map
from plots.sketch import network_sketch
from selection.masses import one_of

CURVES = (
    *(BCE_BEST, EQUAL_BEST, PUNZI_BEST, PUNZI_SINGLE, TREES_BEST),
    *(MASS_BEST, MASS_SINGLE, BOXES_BEST),  # where they are asked for
)


def reaches(m: RunResults) -> Iterator[Drawing]:
    """Figures of merit against mass."""
    shown = {(c.classifier, c.selection): c for c in m.means if c.quoted_on == "validation"}
    curves = [shown[name] for name in CURVES if name in shown]
    rows = [row for curve in curves for row in to_rows(curve)]
    n = shown[PUNZI_SINGLE].n_networks
    who = f"Mean and standard error of {n} networks" if n > 1 else "One network"
    bars = "" if n > 1 else "Bars: size of the simulation. "
    on_what = (
        f"{who}. Each event is judged by a network not trained on it; cuts per mass were chosen on "
        "training events. "
        "Circles: masses used in training; triangles: masses the networks never saw."
    )
    below = f"{bars}Lower panel: ratio to the BCE net with its best cut per mass."
    yield Drawing(
        "sigma_min",
        "Smallest cross section within reach",
        f"Lower is better. {on_what} {below}",
        reach(curves, quantity="sigma_min_fb", label=m.label),
        rows,
        readout=reach_readout(curves),
    )
    yield Drawing(
        "figure_of_merit",
        "Punzi figure of merit",
        f"The inverse of the smallest cross section: higher is better. {on_what} {below}",
        reach(curves, quantity="fom_inv_fb", label=m.label),
        rows,
    )
    yield Drawing(
        "efficiency_background",
        "Efficiency and background",
        f"What the figure of merit is made of, in the window of each mass. {on_what}",
        efficiency_and_background(curves, label=m.label),
        rows,
    )
    yield Drawing(
        "cuts",
        "Cut on the score",
        "The best cut of the BCE net depends on the mass. That of the Punzi-net jumps because its "
        "events lie near 0 and 1: what is between changes little, so one cut serves all. "
        f"{on_what}",
        cuts_by_mass([c for c in curves if c.classifier not in WITHOUT_NETWORKS], label=m.label),
        rows,
    )


def maps(m: RunResults) -> Iterator[Drawing]:
    """Network output against mass: two networks, signal and background."""
    for classifier, model in m.models.items():
        cuts = m.of_network((classifier, CHOSEN_ON_TRAINING))
        table = m.simulated.table
        logits = model.logits(table.features, model.fold_of(table.identity))
        single = m.single_cut if classifier == "punzi" and 0 < m.single_cut < 1 else None
        for record in score_maps(
            m.simulated.table, logits, cuts, bins=m.map_bins, squared=m.search.axis.squared
        ):
            name = CLASSIFIER_TEXT[classifier]
            yield Drawing(
                f"score_map_{classifier}_{record.component}",
                f"Output of the {name}, {record.component}",
                f"Network {m.network}, all selected events; red line: best cut per mass, chosen on "
                "training events. A straight, vertical line means that one cut serves all masses.",
                score_map(record, single_cut=single, label=m.label),
                map_rows(record),
                record,
            )


def map_rows(record: ScoreMap) -> list[dict[str, float]]:
    """A row per bin that is not empty."""
    x, y = (list(pairwise(e)) for e in (record.logit_edges, record.mass_edges_gev))
    return [
        {
            "logit_low": x[i][0],
            "logit_high": x[i][1],
            "mass_low_gev": y[j][0],
            "mass_high_gev": y[j][1],
            "content": record.content[i, j],
        }
        for i, j in zip(*np.nonzero(record.content), strict=True)
    ]


def learning(m: RunResults) -> Iterator[Drawing]:
    """Losses by epoch, and the study of the batch size if it was made."""
    bce, punzi = (m.histories.get(stage, ()) for stage in ("bce", "punzi"))
    if bce or punzi:
        yield Drawing(
            "loss",
            "Evolution of the loss",
            "Both stages of the training, one line per seed; always the loss of all events at "
            "once, never of a batch.",
            loss_evolution(bce, punzi, label=replace(m.label, luminosity_inv_fb=None)),
            [row for history in (*bce, *punzi) for row in to_rows(history)],
        )
    if m.batch_study:
        yield Drawing(
            "batch_size",
            "Batch size and training",
            "Punzi-loss of all events after each epoch, for trainings that differ in batch size.",
            batch_size_study(m.batch_study, label=m.label),
            [row for history in m.batch_study for row in to_rows(history)],
        )


def feature_space(m: RunResults) -> Iterator[Drawing]:
    """The decision surface in at most three features, and the network as a drawing."""
    table, model = m.simulated.table, m.models["punzi"]
    chosen = one_of(table.signal_mass_gev, m.masses_gev)
    texts = {f.name: f.axis_text for f in m.search.features}
    first_fold = ", first fold," if model.n_folds > 1 else ""
    first_seed = ", first seed" if m.config.settings.training.seeds > 1 else ""
    if chosen.any():
        found = decision_boundary(model, table, m.masses_gev, free=model.features[:3], n_grid=32)
        record = replace(found, cut=m.single_cut)
        points = zip(record.point_mass_gev, record.point, strict=True)
        values = zip(record.fixed, record.fixed_value, strict=True)
        fixed = ", ".join(f"{name} = {value:g}" for name, value in values)
        about = f" Fixed at medians of the signal shown: {fixed}; points: signal near them."
        yield Drawing(
            "decision_surface",
            "Decision surface of the single cut",
            f"Punzi-net {m.network}{first_fold} in {len(record.free)} of its "
            f"{len(model.features)} inputs."
            f"{about if fixed else ''}",
            boundary_figure(record, texts=texts, label=m.label),
            [
                {"mass_gev": mass, **dict(zip(record.free, at.tolist(), strict=True))}
                for mass, at in points
            ],
            record,
        )
    layers: list[dict[str, Any]] = [
        {"layer": i, "output": j, "input": k, "weight": float(w[j, k])}
        for i, w in enumerate(m.sketched.weights)
        for j, k in np.ndindex(*w.shape)
    ]
    yield Drawing(
        "network",
        "The network",
        f"Punzi-net {m.network}{first_fold.rstrip(',')}{first_seed}. Red weights pull towards "
        "signal, blue ones away; thickness is relative to the largest weight of the layer.",
        network_sketch(
            [f.label for f in m.search.features],
            [len(b) for b in m.sketched.biases[:-1]],
            weights=list(m.sketched.weights),
        ),
        layers,
    )
