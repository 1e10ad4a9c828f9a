"""Tables of the report: cutflow, and figures of merit against mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.evaluate.comparison_table import BACKGROUND_RULE
from analysis.report.page import bullets, details, paragraph, table
from analysis.run.folder import RunFolder, read_json
from analysis.select.cutflow_table import measured_inv_fb, shown_datasets, size_text
from analysis.select.index import load_selection
from analysis.select.selected import sample_sizes
from models.evaluation.comparison import (
    BCE_BEST,
    BOXES_BEST,
    EQUAL_BEST,
    MASS_BEST,
    MASS_SINGLE,
    PUNZI_BEST,
    PUNZI_SINGLE,
    TREES_BEST,
)
from models.results import EnsembleFigureOfMerit, curve_text

if TYPE_CHECKING:
    from analysis.config.samples import Sample

EVERY = 5  # masses of the short table
COLUMNS = (
    *(BCE_BEST, EQUAL_BEST, PUNZI_BEST, PUNZI_SINGLE, TREES_BEST),
    *(MASS_BEST, MASS_SINGLE, BOXES_BEST),  # where they are asked for
)


def cutflow_table(
    run: RunFolder, *, luminosity_inv_fb: float, samples: Mapping[str, Sample]
) -> str:
    """samples: those of the configuration, for their labels."""
    labels = {name: sample.label for name, sample in samples.items() if sample.label}
    flows: dict[str, Any] = read_json(run.cutflow)
    names = shown_datasets(flows)
    cuts = flows[names[0]]["cuts"]
    rows = [
        [cut, *(_events(flows[n]["events"][i], flows[n]["raw"][i]) for n in names)]
        for i, cut in enumerate(cuts)
    ]
    measured = measured_inv_fb(samples)
    of_data = ", for data as recorded" if measured else ""
    note = (
        f"Events at the target luminosity, for signal the efficiency{of_data}; "
        "rows of the ntuple in brackets. Signal: first, middle and last mass; the others are in "
        "cutflow.json."
    )
    lost = [
        f"{dataset_text(n, labels)}: {flow['lost_share']:.2%} of the rows were lost"
        for n, flow in flows.items()
        if flow["lost_share"] > 0
    ]
    warning = bullets(lost) if lost else ""
    sizes = [
        size_text(
            replace(size, sample=dataset_text(size.sample, labels)),
            luminosity_inv_fb,
            measured.get(size.sample),
        )
        for size in sample_sizes(load_selection(run))
    ]
    heads = ["after cut", *(dataset_text(n, labels) for n in names)]
    return paragraph(note) + table(heads, rows) + warning + bullets(sizes)


def dataset_text(dataset: str, labels: Mapping[str, str]) -> str:
    """Label of its sample, with the mass if it has one: `Z' 1.5 GeV`; else its name."""
    sample, _, mass = dataset.partition("/")
    if sample not in labels:
        return dataset
    return f"{labels[sample]} {mass} GeV" if mass else labels[sample]


def reach_table(means: Sequence[EnsembleFigureOfMerit]) -> str:
    shown = {(c.classifier, c.selection): c for c in means if c.quoted_on == "validation"}
    columns = [(shown[curve], curve_text(curve)) for curve in COLUMNS if curve in shown]
    single, bce = shown[PUNZI_SINGLE], shown.get(BCE_BEST)
    heads = ["m [GeV]", "trained", *(f"σ_min [fb] {text}" for _, text in columns)]
    heads += ["± MC", *(["ratio to BCE"] if bce else []), "efficiency", "background"]
    rows = []
    for i, mass in enumerate(single.mass_gev):
        row = [f"{mass:g}", "yes" if single.trained[i] else "no"]
        row += [_number(curve.sigma_min_fb[i]) for curve, _ in columns]
        row.append(_number(single.sigma_min_mc_error_fb[i], 2))
        if bce:
            row.append(_ratio(single.sigma_min_fb[i], bce.sigma_min_fb[i]))
        rows.append([*row, _number(single.efficiency[i]), _number(single.background[i])])
    note = (
        f"On events held out of training; the last columns are those of the Punzi-net with its "
        f"single cut. Mean of {single.n_networks} network{'s' * (single.n_networks > 1)}. "
        f"{BACKGROUND_RULE}."
    )
    if len(rows) <= 4 * EVERY:
        return paragraph(note) + table(heads, rows)
    short = table(heads, rows[EVERY - 1 :: EVERY])
    return paragraph(note) + short + details(f"all {len(rows)} masses", table(heads, rows))


def _events(events: float, rows: int) -> str:
    """`266,660 (104,141)`; an efficiency keeps its digits."""
    text = f"{events:,.0f}" if events >= 100 else f"{events:.4g}"
    return f"{text} ({rows:,})"


def _number(value: float, digits: int = 3) -> str:
    """Rounded to digits that matter, never in powers of ten where they can be avoided."""
    if not np.isfinite(value):
        return "∞" if value > 0 else "–"
    text = f"{value:#.{digits}g}".rstrip(".")
    return f"{value:.0f}" if "e+" in text else text


def _ratio(top: float, bottom: float) -> str:
    good = np.isfinite(top) and np.isfinite(bottom) and bottom > 0
    return f"{top / bottom:.2f}" if good else "–"
