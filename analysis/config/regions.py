"""Regions: the search with some of its cuts changed, by name.

    regions:
      sideband: {cuts: {extra_energy: "0.4 < extra_energy < 0.6"}}

Everything else of the search stays as it is. A region is a control region: none of its events may
pass the cuts of the search too. What the texts can tell is refused here, what only events can tell
when they are selected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from analysis.config.samples import Strict
from analysis.config.yaml_places import Place, unknown_name
from selection.definition import search_from, with_changes
from selection.preselection import PRESELECTION
from selection.search import Search, SearchError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")


class Region(Strict):
    """A control region: cuts of the search that are replaced or (null) left out."""

    cuts: Annotated[dict[str, str | None], Field(min_length=1)] = Field(
        description="cut of the search: other condition, or null: left out"
    )
    label: str | None = Field(None, description="text for figures; the region's name if absent")
    overlap: Literal["error", "allow"] = Field(
        "error", description="events that are in the search region too"
    )


def region_search(search: Search, region: Region) -> Search:
    """The search with the cuts of a region."""
    return search_from(with_changes(search.plain(), features={}, cuts=region.cuts))


def region_problems(search: Search, regions: Mapping[str, Region]) -> Iterator[tuple[Place, str]]:
    """Everything that the texts of the regions tell to be wrong, with its place."""
    for name, region in regions.items():
        at: Place = ("regions", name)
        if not _NAME.fullmatch(name):
            yield at, "use at most 60 letters, digits, - and _: the name becomes a folder"
        elif name == PRESELECTION:
            yield at, f"{PRESELECTION} is the search region itself; choose another name"
        unknown = [cut for cut in region.cuts if cut not in search.cuts]
        for cut in unknown:
            text = unknown_name(cut, search.cuts)
            more = "a region changes cuts of the search (a further condition is joined by `and`)"
            yield (*at, "cuts", cut), f"{text}; {more}"
        if unknown:
            continue
        try:
            region_search(search, region)
        except SearchError as error:
            yield from (((*at, *place), text) for place, text in error.problems)
            continue
        looser = all(text is None or text == search.cuts[cut] for cut, text in region.cuts.items())
        if looser and region.overlap == "error":
            yield (
                (*at, "cuts"),
                "holds the whole search region: turn a cut round, for example `x < 1` into "
                "`x >= 1`; or say `overlap: allow`",
            )
