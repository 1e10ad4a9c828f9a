"""Normalisation of backgrounds to data of control regions, as a person asks for it.

normalisation: {regions: [sideband], samples: [taupair]}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import Field

from analysis.config.samples import Strict
from analysis.config.yaml_places import Place


class Normalisation(Strict):
    """A factor per background, fitted in control regions; docs/data.md."""

    regions: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="control regions whose data are fitted"
    )
    samples: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="backgrounds that get a factor; the others keep 1"
    )
    quantity: str | None = Field(
        None, description="axis, mass or feature whose histogram is fitted; null: one count each"
    )


def normalisation_problems(
    wanted: Normalisation,
    *,
    regions: Collection[str],
    backgrounds: Collection[str],
    quantities: Collection[str],
    has_data: bool,
) -> Iterator[tuple[Place, str]]:
    """Names that are not there, with their places."""
    at: Place = ("normalisation",)
    for key, names, known in (
        ("regions", wanted.regions, regions),
        ("samples", wanted.samples, backgrounds),
        ("quantity", () if wanted.quantity is None else (wanted.quantity,), quantities),
    ):
        for name in names:
            if name not in known:
                there = ", ".join(known) or "none"
                yield (*at, key), f"{name!r} is not there; there are: {there}"
        if len(set(names)) < len(names):
            yield (*at, key), "a name is given twice"
    if not has_data:
        yield at, "needs a sample of kind data"
