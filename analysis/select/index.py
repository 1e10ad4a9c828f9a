"""The index of a skim: its shards in the order of events, and how each is normalised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analysis.run.folder import RunFolder, digest, read_json, write_json
from analysis.select.skim import Part
from selection.errors import UserError

Inputs = dict[str, dict[str, str]]


class NoSelectionError(UserError):
    """The run has no selected events yet."""


@dataclass(frozen=True)
class Selection:
    """What the next stages need: the shards in order, and what was lost of each data set."""

    parts: tuple[Part, ...]
    lost: Mapping[str, float]  # data set -> share of its rows that is missing

    @property
    def fingerprint(self) -> str:
        """Of all events and weights: the name of a shard is a hash of its content."""
        rows = [(p.sample, p.shard.name, str(p.mass_gev), p.normalisation) for p in self.parts]
        return digest(rows)


def save_inputs(run: RunFolder, inputs: Inputs) -> None:
    write_json(run.inputs, inputs)


def load_inputs(run: RunFolder) -> Inputs:
    """Data set -> file -> fingerprint of its content, as it was selected."""
    found: Inputs = read_json(run.inputs)
    return found


def save_selection(run: RunFolder, selection: Selection) -> None:
    parts = [
        {
            "sample": part.sample,
            "mass_gev": None if np.isnan(part.mass_gev) else part.mass_gev,
            "shard": str(part.shard.relative_to(run.skim)),
            "normalisation": part.normalisation,
        }
        for part in selection.parts
    ]
    write_json(run.skim_index, {"parts": parts, "lost": dict(selection.lost)})


def load_selection(run: RunFolder) -> Selection:
    """The skim of a run, as `select` left it."""
    try:
        index = json.loads(run.skim_index.read_text())
    except (OSError, ValueError):
        msg = f"{run.path} has no selected events; run `punzi select -r {run.name}` first"
        raise NoSelectionError(msg) from None
    parts = tuple(
        Part(
            sample=row["sample"],
            shard=run.skim / row["shard"],
            mass_gev=np.nan if row["mass_gev"] is None else row["mass_gev"],
            normalisation=row["normalisation"],
        )
        for row in index["parts"]
    )
    return Selection(parts, index["lost"])
