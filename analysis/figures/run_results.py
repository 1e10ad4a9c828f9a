"""What the figures of a run are made of, collected once.

Figures of one network (spectra, maps, decision surface, sketch) show the first one whose training
did not fail, or network 0 if all did; figures of merit show the mean of all good networks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hist
from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from analysis.evaluate.stage import load_ensembles, load_figures
from analysis.figures.numbers import (
    batch_study_histories,
    loss_histories,
    nearest_masses,
    shown_axes,
)
from analysis.limit.blinding import data_are_shown
from analysis.limit.normalisation import factors_of
from analysis.limit.stage import load_limits
from analysis.run.folder import RunFolder
from analysis.select.recorded import data_events, data_luminosity_inv_fb
from analysis.train.outcome import averaged, failed_networks
from analysis.train.stage import SimulatedEvents
from analysis.train.windows import load_fits
from models.evaluation.comparison import PUNZI_SINGLE, of_curve
from models.evaluation.maps import MapBins
from models.layers import Layers
from models.results import (
    Curve,
    EnsembleFigureOfMerit,
    FigureOfMerit,
    Limits,
    LossHistory,
    Record,
)
from models.trained import TrainedModel, load_model
from plots.style import PROCESS_TEXT, Label, Legend, SearchWords
from selection.resolution import WidthCurve, WidthFit
from selection.search import Search, math_unit
from selection.table import EventTable, FloatArray

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration

CsvRows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Readout:
    """What the report shows of the mass under the pointer."""

    heads: Sequence[str]  # of the numbers
    mass_gev: Sequence[float]  # rising; the x axis of the figure
    rows: Sequence[Sequence[str]]  # (n_masses, n_heads)


@dataclass(frozen=True)
class Drawing:
    """One figure with its numbers; `record` goes to a JSON file where a table is not enough."""

    stem: str
    title: str
    caption: str
    figure: Figure
    numbers: CsvRows
    record: Record | None = None
    readout: Readout | None = None
    region: str = ""  # that it belongs to, where it compares data with simulation
    agreement: Mapping[str, Any] | None = None  # region, quantity and what limits.agreement found


@dataclass(frozen=True)
class RunResults:
    """Events, networks and results of a run."""

    run: RunFolder
    config: Configuration
    simulated: SimulatedEvents
    data: EventTable | None
    models: Mapping[str, TrainedModel]  # classifier -> the network that is shown
    network: int  # its number
    sketched: Layers  # its first seed and fold
    figures: Sequence[FigureOfMerit]
    means: Sequence[EnsembleFigureOfMerit]
    fits: Sequence[WidthFit]
    curve: WidthCurve
    histories: Mapping[str, Sequence[LossHistory]]  # by stage
    batch_study: Sequence[LossHistory]
    limits: Limits | None
    label: Label
    factors: Mapping[str, float]  # of backgrounds, fitted in control regions; empty: all 1

    @property
    def search(self) -> Search:
        return self.config.definition

    @cached_property
    def axes(self) -> dict[str, hist.axis.Regular]:
        """Axes of the spectra and features, by name."""
        return shown_axes(self.search, self.simulated.table)

    @property
    def map_bins(self) -> MapBins:
        """Up to the end of the axis, as a mass."""
        return MapBins(mass_max_gev=float(self.axes[self.search.axis.mass_name].edges[-1]))

    @property
    def masses_gev(self) -> tuple[float, ...]:
        """Signal masses shown in spectra, features and feature space."""
        wanted = self.config.settings.plots.signal_masses_gev
        return nearest_masses(wanted, self.simulated.windows.mass_gev)

    @property
    def single_cut(self) -> float:
        """The cut for all masses of the network that is shown."""
        return float(self.of_network(PUNZI_SINGLE).cut[0])

    def scores(self, table: EventTable) -> FloatArray:
        """Score (n,) of the Punzi-net that is shown, by the fold of each event."""
        model = self.models["punzi"]
        return model.score(table.features, model.fold_of(table.identity))

    @property
    def judged_text(self) -> str:
        if self.models["punzi"].n_folds > 1:
            return "each judged by a network that was not trained on it"
        return "those used in training too"

    def of_network(self, curve: Curve) -> FigureOfMerit:
        """Figures of merit of the network that is shown, on held-out events."""
        found = of_curve(self.figures, curve)
        return next(f for f in found if f.network == self.network)

    @property
    def shown_luminosity_inv_fb(self) -> float:
        """Of figures that show data if there are any: that of the data; else the target."""
        measured = data_luminosity_inv_fb(self.config)
        return self.config.luminosity_inv_fb if self.data is None else measured

    @property
    def data_are_shown(self) -> bool:
        """After the cut; before it data are always shown."""
        return data_are_shown(self.config)

    @property
    def legend(self) -> Legend:
        """Labels of the configuration; without one, our text for our processes, else the name."""
        samples = self.config.samples
        texts = {
            name: drawable(sample.label) if sample.label else PROCESS_TEXT.get(name, drawable(name))
            for name, sample in samples.items()
        }
        data = [name for name, sample in samples.items() if sample.kind == "data"]
        one = len(data) == 1 and samples[data[0]].label
        colours = self.config.settings.plots.colours
        return Legend(texts, texts[data[0]] if one else "Data", colours)


def run_results(run: RunFolder, config: Configuration, simulated: SimulatedEvents) -> RunResults:
    """Read everything; the stages before must be complete."""
    section = config.settings.training
    failed = failed_networks(run, section)
    network = next((i for i in range(section.networks) if i not in failed), 0)
    first = averaged(run, network, 0, section)[0]
    paths = {c: run.model(c, network) for c in ("punzi", "bce")}  # those of the maps
    fits, curve = load_fits(run.windows)
    plots = config.settings.plots
    return RunResults(
        run=run,
        config=config,
        simulated=simulated,
        data=data_events(run, config),
        models={c: load_model(path) for c, path in paths.items() if path.exists()},
        network=network,
        sketched=load_model(run.network("punzi", first, 0)).networks[0],
        figures=load_figures(run),
        means=load_ensembles(run),
        fits=fits,
        curve=curve,
        histories=loss_histories(run, section),
        batch_study=batch_study_histories(run),
        limits=load_limits(run) if run.limits.exists() else None,
        label=Label(
            experiment=drawable(plots.experiment),
            text=drawable(plots.text),
            luminosity_inv_fb=config.luminosity_inv_fb,
            sqrt_s_gev=config.beams.sqrt_s_gev,
            words=search_words(config.definition),
        ),
        factors=factors_of(run),
    )


def search_words(search: Search) -> SearchWords:
    axis = search.axis
    return SearchWords(
        symbol=search.symbol,
        axis=axis.label,
        axis_unit=math_unit(axis.unit),
        mass_axis=axis.root_label if axis.squared else axis.label,
    )


def drawable(text: str) -> str:
    """Text a person wrote, with its dollar signs as letters if they are not valid mathtext."""
    try:
        MathTextParser("path").parse(text)
    except ValueError:
        return text.replace("$", r"\$")
    return text


def shown_files(run: RunFolder) -> list[Path]:
    """Files that decide what the figures show; the training leaves none of a larger ensemble."""
    of_networks = [path for _, _, path in run.numbered_files()]
    return [
        *(run.figures_of_merit, run.windows, run.cutflow, run.skim_index),
        *(path for path in (run.limits, run.unblinding, run.normalisation) if path.exists()),
        *sorted(run.regions.glob("*/skim/index.json")),
        *of_networks,
        *sorted(run.batch_study.glob("*.json")),
    ]
