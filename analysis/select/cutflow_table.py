"""The cutflow as a table on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

from analysis.run.folder import RunFolder, read_json
from analysis.select.index import load_selection
from analysis.select.selected import SampleSize, sample_sizes
from analysis.terminal import console

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration
    from analysis.config.samples import Sample

SIGNAL_MASSES_SHOWN = 3


def shown_datasets(flows: dict[str, Any]) -> list[str]:
    """Backgrounds and data, and at most three signal masses: first, middle, last."""
    masses = [name for name in flows if flows[name]["unit"] == "efficiency"]
    masses.sort(key=lambda name: float(name.rsplit("/", 1)[1]))
    picked = sorted({0, len(masses) // 2, len(masses) - 1}) if masses else []
    others = [name for name in flows if name not in masses]
    return others + [masses[i] for i in picked][:SIGNAL_MASSES_SHOWN]


def print_cutflow(run: RunFolder, config: Configuration, *, region: str = "") -> None:
    """Weighted events (efficiency for signal) after each cut, and the raw rows left at the end.

    region: name of the control region whose folder `run` is.
    """
    measured = measured_inv_fb(config.samples)
    flows = read_json(run.cutflow)
    names = shown_datasets(flows)
    of = f" of the region {region}" if region else ""
    title = f"Cutflow{of}: events at the target luminosity, signal: share of the generated"
    title += ", data: as recorded" if measured else ""
    table = Table(title=title, title_justify="left", padding=(0, 0))
    table.add_column("after cut", overflow="fold")
    for name in names:
        table.add_column(name.replace("/", " "), justify="right", overflow="fold", min_width=7)
    cuts = flows[names[0]]["cuts"] if names else []
    for i, cut in enumerate(cuts):
        table.add_row(cut, *(f"{flows[n]['events'][i]:.4g}" for n in names))
    table.add_row("raw rows left", *(str(flows[n]["raw"][-1]) for n in names))
    console.stdout.print(table)
    for name, flow in flows.items():
        if flow["lost_share"] > 0:
            console.stdout.print(f"{name}: {flow['lost_share']:.2%} of the rows were lost")
    for size in sample_sizes(load_selection(run)):
        of_data = measured.get(size.sample)
        console.stdout.print(size_text(size, config.luminosity_inv_fb, of_data))


def measured_inv_fb(samples: Mapping[str, Sample]) -> dict[str, float]:
    """Luminosity of each data sample."""
    return {n: sample.luminosity_inv_fb for n, sample in samples.items() if sample.kind == "data"}


def size_text(size: SampleSize, luminosity_inv_fb: float, measured: float | None) -> str:
    """Rows, rate, N_eff and heaviest row of a sample, in one line; measured: of data, theirs."""
    if measured is not None:
        rate = size.rows / measured
        return f"{size.sample}: {size.rows} events of {measured:g} /fb, {rate:.4g} per 1/fb"
    return (
        f"{size.sample}: {size.rows} rows, {size.events / luminosity_inv_fb:.4g} events per 1/fb, "
        f"N_eff {size.n_eff:.0f}, heaviest row {size.largest:.3g} events at "
        f"{luminosity_inv_fb:g} /fb"
    )
