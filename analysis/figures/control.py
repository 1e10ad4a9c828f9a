"""Data beside simulation after the preselection, in the search region and in control regions.

    simulation   events of each background times L_data / L_target and its fitted factor
    data         counts; after the preselection only, so that nothing of the cut is seen

Shown are axis, mass, every feature and what every cut looks at, each with its chi^2 and its largest
deviation (limits/agreement.py). Axis and mass of the search region are drawn with the spectra.
A number that is the same for all events, or missing in all, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import hist
import numpy as np

from analysis.figures.agreement import agreement_text, compared
from analysis.figures.run_results import Drawing, RunResults, drawable
from analysis.figures.spectra import data_label
from analysis.select.histograms import quantity_axes, quantity_values
from analysis.select.index import load_selection
from analysis.select.skim import OF_CUT, Part, read_shard
from plots.control import Verdict, data_over_simulation
from plots.style import histogram_rows
from selection.preselection import PRESELECTION
from selection.search import Quantity, Search
from selection.table import FloatArray

BINS = 40  # of a number without bins of its own
TYPICAL = 20.0  # events expected in a filled bin, below which bins are joined
SYMBOLS = {  # component of a particle -> symbol, unit
    "costheta": (r"\cos\,\theta", ""),
    "theta": (r"\theta", "rad"),
    "phi": (r"\phi", "rad"),
    "eta": (r"\eta", ""),
    "pt": ("p_T", "GeV/c"),
    "p": ("p", "GeV/c"),
    "pz": ("p_z", "GeV/c"),
    "E": ("E", "GeV"),
    "mass": ("m", "GeV/c^2"),
    "mass2": ("m^2", "GeV^2/c^4"),
}
Columns = Mapping[str, FloatArray]


@dataclass(frozen=True)
class RegionEvents:
    """Selected events of a region, by sample; `weight` at the luminosity of the data."""

    name: str
    text: str
    search: Search
    backgrounds: Mapping[str, Columns]
    data: Columns

    def axes(self) -> dict[str, hist.axis.Regular]:
        """Quantity -> bins; a variable of a cut is called `cut:<name>`."""
        found: dict[str, hist.axis.Regular | None] = dict(quantity_axes(self.search))
        others = [f for f in self.search.features if f.name not in found]
        for quantity in (*others, *_cut_quantities(self.search)):
            samples = (self.data, *self.backgrounds.values())
            values = np.concatenate([columns[quantity.name] for columns in samples])
            found[quantity.name] = _fitting_axis(quantity, values[np.isfinite(values)])
        return {name: self._coarse(axis) for name, axis in found.items() if axis is not None}

    def _coarse(self, axis: hist.axis.Regular) -> hist.axis.Regular:
        """Bins joined evenly until a filled one expects TYPICAL events, or ten are left."""
        expected = np.sum([h.values() for h in self.stack(axis).values()], axis=0)
        filled = max(int((expected > 0).sum()), 1)
        joined = [k for k in range(1, len(axis) // 10 + 1) if len(axis) % k == 0] or [1]
        k = next((k for k in joined if expected.sum() * k >= TYPICAL * filled), joined[-1])
        low, high = axis.edges[0], axis.edges[-1]
        return hist.axis.Regular(len(axis) // k, low, high, name=axis.name, label=axis.label)

    def filled(self, axis: hist.axis.Regular, columns: Columns) -> hist.Hist:
        values = quantity_values(axis.name, self.search, columns)
        h = hist.Hist(axis, storage=hist.storage.Weight())
        return h.fill(values, weight=columns["weight"])

    def stack(self, axis: hist.axis.Regular) -> dict[str, hist.Hist]:
        """The smallest first, as everywhere."""
        found = {name: self.filled(axis, c) for name, c in self.backgrounds.items()}
        return dict(sorted(found.items(), key=lambda item: float(item[1].values().sum())))


def control(m: RunResults) -> Iterator[Drawing]:
    """Every quantity of every region; nothing without data."""
    if m.data is None:
        return
    for region in (PRESELECTION, *m.config.regions):
        events = region_events(m, region)
        spectra = {m.search.axis.name, m.search.axis.mass_name} if region == PRESELECTION else set()
        for name, axis in events.axes().items():
            if name not in spectra:
                yield _drawing(m, events, name, axis)


def _drawing(m: RunResults, events: RegionEvents, name: str, axis: hist.axis.Regular) -> Drawing:
    stack, data = events.stack(axis), events.filled(axis, events.data)
    found = compared(data, stack)
    words = f"Variable of the cut {name.removeprefix(OF_CUT)}" if name.startswith(OF_CUT) else name
    where = "the search region" if events.name == PRESELECTION else f"the region {events.name}"
    return Drawing(
        f"data_{events.name}_{name.replace(':', '_')}",
        f"{words} in {where}, with data",
        f"Events of {where} after the preselection; simulation is scaled to the "
        f"{m.shown_luminosity_inv_fb:g} fb⁻¹ of the data. {agreement_text(found)}",
        data_over_simulation(
            stack,
            data,
            Verdict(drawable(events.text), found.chi2, found.ndf, found.p_value),
            label=data_label(m),
            legend=m.legend,
        ),
        histogram_rows({**stack, "data": data}),
        region=events.name,
        agreement={"region": events.name, "quantity": name, **asdict(found)},
    )


def region_events(m: RunResults, region: str) -> RegionEvents:
    """Read from the shards of the region."""
    is_search = region == PRESELECTION
    search = m.search if is_search else m.config.region_searches[region]
    text = "Search region" if is_search else m.config.regions[region].label or region
    cuts = [f"{OF_CUT}{name}" for name in search.cut_variables]
    wanted = ["axis", *search.feature_names, "weight", *cuts]
    scale = m.shown_luminosity_inv_fb / m.config.luminosity_inv_fb
    by_sample: dict[str, list[Part]] = {}
    for part in load_selection(m.run if is_search else m.run.region(region)).parts:
        if np.isnan(part.mass_gev):
            by_sample.setdefault(part.sample, []).append(part)
    samples = m.config.samples
    columns = {name: _columns(parts, wanted) for name, parts in by_sample.items()}
    return RegionEvents(
        name=region,
        text=text,
        search=search,
        backgrounds={
            name: {**c, "weight": c["weight"] * scale * m.factors.get(name, 1.0)}
            for name, c in columns.items()
            if samples[name].kind == "background"
        },
        data=_joined([c for name, c in columns.items() if samples[name].kind == "data"]),
    )


def _columns(parts: Sequence[Part], names: Sequence[str]) -> Columns:
    """Columns of all shards, in order; the weight is normalised."""
    read = []
    for part in parts:
        table = read_shard(part.shard, names)
        columns = {name: table[name].to_numpy().astype(np.float64) for name in names}
        read.append({**columns, "weight": columns["weight"] * part.normalisation})
    return _joined(read)


def _joined(several: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([columns[name] for columns in several]) for name in several[0]}


def _cut_quantities(search: Search) -> list[Quantity]:
    """What the cuts look at, as quantities without bins."""
    found = []
    for name, text in search.cut_variables.items():
        meaning = search.columns_meaning.get(text)
        particle, _, component = text.partition(".")
        words, unit = drawable(text), ""
        if meaning:
            words, unit = drawable(text.replace("_", " ")), meaning.unit
        elif particle.isidentifier() and component in SYMBOLS:
            symbol, unit = SYMBOLS[component]
            words = f"${symbol}$({drawable(particle.replace('_', ' '))})"
        found.append(Quantity(f"{OF_CUT}{name}", text, words, unit, None))
    return found


def _fitting_axis(quantity: Quantity, values: FloatArray) -> hist.axis.Regular | None:
    """Round bins over what the events reach; None where all are the same."""
    if len(values) == 0:
        return None
    low, high = np.quantile(values, [0.001, 0.999])
    if not high > low:
        return None
    power = 10.0 ** np.floor(np.log10((high - low) / BINS))
    step = next(k * power for k in (1, 2, 5, 10) if k * power * BINS >= high - low)
    first, last = np.floor(low / step), np.ceil(high / step)
    return hist.axis.Regular(
        int(last - first), first * step, last * step, name=quantity.name, label=quantity.axis_text
    )
