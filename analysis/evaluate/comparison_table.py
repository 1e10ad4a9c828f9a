"""The comparison in words: the same texts and numbers on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from rich.table import Table

from analysis.terminal import console
from models.evaluation.comparison import Comparison, Ratio
from models.results import curve_text

BACKGROUND_RULE = "sigma_min from B + w1, w1 = sum w^2 / sum w of the window: one more event"
LINES = {
    "over_bce_1500_to_4500_mev": "Punzi-net, single cut / BCE net, best cut, 1.5 to 4.5 GeV",
    "over_best_bce_network_1_to_4_gev": "the same over the best single BCE network, 1 to 4 GeV",
    "single_over_best_cut": "Punzi-net, single cut / best cut per mass",
    "share_within_20_percent": "share of masses within 20 % of their best cut",
    "untrained_over_trained": "masses not trained on / interpolated from trained ones",
    "validation_over_training": "held-out events / training events",
}


def ratio_text(ratio: Ratio) -> str:
    return f"{curve_text(ratio.top)} / {curve_text(ratio.bottom)}"


def bin_texts(comparison: Comparison) -> tuple[str, ...]:
    return tuple(f"{low:g}–{high:g}" for low, high in pairwise(comparison.mass_bins_gev))


def ratio_rows(comparison: Comparison) -> list[list[str]]:
    """A row per ratio: its text, and one number per mass bin."""
    return [[ratio_text(r), *(f"{value:.2f}" for value in r.by_bin)] for r in comparison.ratios]


def single_lines(comparison: Comparison) -> list[str]:
    """`text: number` of what is one number for all masses; what cannot be compared is left out."""
    values = {name: float(getattr(comparison, name)) for name in LINES}
    return [f"{LINES[name]}: {value:.3f}" for name, value in values.items() if value == value]


def print_comparison(
    comparison: Comparison | None, failed: Mapping[int, Sequence[str]], *, events: str
) -> None:
    """Tables a person reads first; `events`: what the numbers were found on."""
    if comparison is not None:
        title = f"sigma_min ratios on {events} (below 1: better)"
        table = Table(title=title, title_justify="left")
        table.add_column("mass [GeV]", overflow="fold")
        for text in bin_texts(comparison):
            table.add_column(text, justify="right", no_wrap=True)
        for row in ratio_rows(comparison):
            table.add_row(*row)
        console.stdout.print(table)
        for line in single_lines(comparison):
            console.stdout.print(line)
    console.stdout.print(BACKGROUND_RULE)
    for i, reasons in failed.items():
        console.stdout.print(f"network {i} FAILED: {'; '.join(reasons)}", style="red")
