"""Configuration: one YAML file, checked completely before any work.

Misspelt keys, wrong types, masses out of reach and contradictions are all reported at once, each
with its line in the file, what was expected and the nearest valid name. Nothing in the file is
ever executed: it is parsed as plain YAML and validated against the models below.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from analysis.config.conflicts import conflicts
from analysis.config.looks import look_problems, with_style_of_file
from analysis.config.mistakes import Mistake
from analysis.config.normalisation import Normalisation, normalisation_problems
from analysis.config.regions import Region, region_problems, region_search
from analysis.config.samples import Sample, Signal, Strict
from analysis.config.searches import DEFAULT_SEARCH, NoSearchError, plain_search
from analysis.config.settings import Settings, resolved_settings
from analysis.config.yaml_places import (
    MOST_PROBLEMS,
    NOT_YAML,
    Place,
    dotted,
    explain,
    line_of,
    listing,
    plain_yaml,
)
from selection.beams import Beams
from selection.definition import search_from, with_changes
from selection.errors import UserError
from selection.preselection import CandidatePolicy
from selection.search import Search, SearchError

MAX_CONFIG_BYTES = 1_000_000
CHANGEABLE = ("search", "features", "cuts", "regions", "normalisation")  # beside settings


class ConfigError(UserError):
    """The configuration cannot be used; the message lists every problem found."""


class Configuration(Strict):
    """Everything a run depends on."""

    luminosity_inv_fb: float = Field(
        gt=0, allow_inf_nan=False, description="target luminosity, 1/fb"
    )
    beams: Beams = Field(default_factory=Beams, description="used where the ntuple has no beams")
    tree: str | None = Field(None, description="name of the TTree; found by itself if absent")
    candidates: CandidatePolicy = Field("unique", description="which candidates of an event")
    columns: dict[str, str] = Field(
        default_factory=dict, description="our column -> branch or basf2 expression"
    )
    missing: float | None = Field(
        None, description="number that means missing in the files, such as -999; NaN always does"
    )
    accept: tuple[Mistake, ...] = Field(
        (), description="mistakes that are known and wanted; docs/mistakes.md"
    )
    search: str | dict[str, Any] = Field(
        DEFAULT_SEARCH,
        description="name of a search, a file beside this one, or written out; docs/searches.md",
    )
    features: dict[str, Any] = Field(
        default_factory=dict, description="added to the search, replaced by name, or null: left out"
    )
    cuts: dict[str, str | None] = Field(
        default_factory=dict, description="added to the search, replaced by name, or null: left out"
    )
    regions: dict[str, Region] = Field(
        default_factory=dict,
        description="control regions: other cuts by name; docs/data.md",
    )
    normalisation: Normalisation | None = Field(
        None, description="factors of backgrounds, fitted in control regions; null: none"
    )
    samples: dict[str, Sample]
    settings: Settings = Field(default_factory=Settings)

    @cached_property
    def definition(self) -> Search:
        """The search, with the features and cuts of this configuration."""
        return search_from(self.search)

    @cached_property
    def region_searches(self) -> dict[str, Search]:
        """Control region -> the search with its cuts."""
        return {n: region_search(self.definition, region) for n, region in self.regions.items()}

    @property
    def signals(self) -> dict[str, Signal]:
        """Name and sample of all signal."""
        return {n: s for n, s in self.samples.items() if isinstance(s, Signal)}

    @property
    def masses_gev(self) -> tuple[float, ...]:
        """Masses of all signal samples, rising."""
        return tuple(sorted(m for sample in self.signals.values() for m in sample.masses))

    def beams_of(self, sample: str) -> Beams:
        """Beams of a sample, where its ntuple has none."""
        return self.samples[sample].beams or self.beams

    def columns_of(self, sample: str) -> dict[str, str]:
        return {**self.columns, **self.samples[sample].columns}

    def missing_of(self, sample: str) -> float | None:
        own = self.samples[sample].missing
        return self.missing if own is None else own


def as_yaml(config: Configuration) -> str:
    """The configuration with every default and preset written out."""
    plain = config.model_dump(mode="json")
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)


def load(path: Path, overrides: Sequence[str] = (), *, columns_only: bool = False) -> Configuration:
    """Read and check a configuration; `overrides` are texts like `training.networks=3`.

    columns_only: neither samples nor a luminosity are needed, to apply a model to other files.
    """
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            msg = f"{path} is larger than 1 MB; this is not a configuration file"
            raise ConfigError(msg)
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        msg = f"no configuration file {path}; give one with -c/--config"
        raise ConfigError(msg) from None
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read the configuration {path}: {error}"
        raise ConfigError(msg) from None
    return parse(
        text, where=str(path), folder=path.parent, overrides=overrides, columns_only=columns_only
    )


def parse(
    text: str,
    *,
    where: str,
    folder: Path = Path(),
    overrides: Sequence[str] = (),
    columns_only: bool = False,
) -> Configuration:
    """Check the text of a configuration; `where` names it in messages, `folder` anchors paths."""
    root, raw = _plain_yaml(text, where)
    if not isinstance(raw, dict):
        msg = f"{where} must hold a mapping with the keys {', '.join(Configuration.model_fields)}"
        raise ConfigError(msg)
    if columns_only:
        raw = {"luminosity_inv_fb": 1.0, "samples": {}, **raw}
    raw = _with_overrides(raw, overrides)
    try:
        raw = {**raw, "settings": resolved_settings(raw.get("settings"))}
        config = Configuration.model_validate(raw)
    except ValidationError as error:
        schema = Configuration.model_json_schema()
        all_problems = error.errors()
        problems = [
            _named_option(explain(root, problem, schema), problem["loc"], overrides)
            for problem in all_problems[:MOST_PROBLEMS]
        ]
        raise ConfigError(listing(where, problems, len(all_problems))) from None
    except ValueError as error:
        msg = f"{where}, settings: {error}"
        raise ConfigError(msg) from None
    config = _with_style(_with_search(config, root, where, folder), folder)
    found = list(region_problems(config.definition, config.regions))
    found += _normalisation_problems(config)
    if not found:
        searches = (config.definition, *config.region_searches.values())
        found += conflicts(config.samples, config.columns, config.beams, searches)
    if not columns_only:
        found += look_problems(config.settings.plots, config.samples)
    problems = [(line_of(root, place), f"{dotted(place)}: {text}") for place, text in found]
    if not config.samples and not columns_only:
        problems.append((line_of(root, ("samples",)), "samples: at least one is needed"))
    if problems:
        raise ConfigError(listing(where, problems))
    return config


def _normalisation_problems(config: Configuration) -> list[tuple[Place, str]]:
    if config.normalisation is None:
        return []
    search, kinds = config.definition, {n: s.kind for n, s in config.samples.items()}
    binned = [q.name for q in (search.axis, *search.features) if q.bins is not None]
    found = normalisation_problems(
        config.normalisation,
        regions=config.regions,
        backgrounds=[n for n, kind in kinds.items() if kind == "background"],
        quantities=[*binned, search.axis.mass_name],
        has_data="data" in kinds.values(),
    )
    return list(found)


def _with_search(
    config: Configuration, root: yaml.Node | None, where: str, folder: Path
) -> Configuration:
    """The configuration with its search written out and the own features and cuts in it."""
    name = config.search if isinstance(config.search, str) else None
    try:
        plain = plain_search(config.search, folder=folder)
        if isinstance(plain, dict):
            plain = with_changes(plain, features=config.features, cuts=config.cuts)
        found = search_from(plain).plain()
    except NoSearchError as error:
        raise ConfigError(listing(where, [(line_of(root, ("search",)), str(error))])) from None
    except SearchError as error:
        problems: list[tuple[int | None, str]] = []
        for place, text in error.problems:
            own = place[:1] in (("features",), ("cuts",)) and place[1:2]
            mine = own and str(own[0]) in {**config.features, **config.cuts}
            at: Place = place if mine else ("search", *place)
            of = f"search {name}, " if name and not mine else ""
            problems.append((line_of(root, at), f"{of}{dotted(place if of else at)}: {text}"))
        raise ConfigError(listing(where, problems)) from None
    return config.model_copy(update={"search": found, "features": {}, "cuts": {}})


def _with_style(config: Configuration, folder: Path) -> Configuration:
    plots = with_style_of_file(config.settings.plots, folder)
    settings = config.settings.model_copy(update={"plots": plots})
    return config.model_copy(update={"settings": settings})


def _plain_yaml(text: str, where: str) -> tuple[yaml.Node | None, Any]:
    """The nodes of a YAML text, which know their lines, and its plain values."""
    try:
        root, values, found = plain_yaml(text)
    except NOT_YAML as error:
        msg = f"{where} is not valid YAML: {error}"
        raise ConfigError(msg) from None
    if found:
        raise ConfigError(listing(where, found))
    return root, values


def _with_overrides(raw: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The raw configuration with `section.key=value` texts put into its settings."""
    for text in overrides:
        path, sign, value = text.partition("=")
        keys = path.strip().split(".")
        if not sign or not all(keys):
            msg = f"--set {text!r} must read section.key=value, for example windows.n_sigma=2"
            raise ConfigError(msg)
        _, parsed = _plain_yaml(value, f"the value of --set {text!r}")
        raw = _placed(raw, _place_of(keys), parsed)
    return raw


def _place_of(keys: list[str]) -> list[str]:
    """Options change settings, features and cuts of the search, regions, normalisation."""
    return keys if keys[0] in CHANGEABLE else ["settings", *keys]


def _named_option(
    explained: tuple[int | None, str], loc: Place, overrides: Sequence[str]
) -> tuple[int | None, str]:
    """A problem that an option of the command made names the option, not a line of the file."""
    for text in overrides:
        keys = _place_of(text.partition("=")[0].strip().split("."))
        if list(loc[: len(keys)]) == keys:
            return None, f"--set {text}: {explained[1]}"
    return explained


def _placed(tree: Any, keys: list[str], value: Any) -> dict[str, Any]:
    tree = tree if isinstance(tree, dict) else {}
    inner = value if len(keys) == 1 else _placed(tree.get(keys[0]), keys[1:], value)
    return {**tree, keys[0]: inner}
