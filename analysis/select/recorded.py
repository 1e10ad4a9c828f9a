"""Recorded events of a run: the selected data of all data samples together, and their size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.run.folder import RunFolder
from analysis.select.index import load_selection
from analysis.select.skim import read_table
from selection.table import EventTable

if TYPE_CHECKING:
    from analysis.config.configuration import Configuration


def data_events(run: RunFolder, config: Configuration) -> EventTable | None:
    """After the preselection; None without a data sample."""
    names = {name for name, sample in config.samples.items() if sample.kind == "data"}
    parts = [part for part in load_selection(run).parts if part.sample in names]
    return read_table(parts) if parts else None


def data_luminosity_inv_fb(config: Configuration) -> float:
    """Of all data samples together; 0 without any."""
    data = [sample for sample in config.samples.values() if sample.kind == "data"]
    return sum((sample.luminosity_inv_fb for sample in data), 0.0)
