"""Configuration: one YAML file, checked completely before any work.

Misspelt keys, wrong types, masses out of reach and contradictions are all reported at once, each
with its line in the file, what was expected and the nearest valid name. Nothing in the file is
ever executed: it is parsed as plain YAML and validated against the models below.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from analysis.config.conflicts import conflicts
from analysis.config.mistakes import Mistake
from analysis.config.samples import Sample, Signal, Strict
from analysis.config.settings import Settings, resolved_settings
from analysis.config.yaml_places import (
    MOST_PROBLEMS,
    Place,
    dotted,
    explain,
    flaws,
    line_of,
    listing,
)
from selection.beams import Beams
from selection.errors import UserError
from selection.preselection import CandidatePolicy

MAX_CONFIG_BYTES = 1_000_000

# PyYAML raises plain errors too, for a value that does not fit its tag such as `!!bool maybe`
NOT_YAML = (yaml.YAMLError, ValueError, LookupError, AttributeError, RecursionError)


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
    samples: dict[str, Sample]
    settings: Settings = Field(default_factory=Settings)

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
    return parse(text, where=str(path), overrides=overrides, columns_only=columns_only)


def parse(
    text: str, *, where: str, overrides: Sequence[str] = (), columns_only: bool = False
) -> Configuration:
    """Check the text of a configuration; `where` names it in messages."""
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
    problems = [
        (line_of(root, place), f"{dotted(place)}: {text}")
        for place, text in conflicts(config.samples, config.columns, config.beams)
    ]
    if not config.samples and not columns_only:
        problems.append((line_of(root, ("samples",)), "samples: at least one is needed"))
    if problems:
        raise ConfigError(listing(where, problems))
    return config


def _plain_yaml(text: str, where: str) -> tuple[yaml.Node | None, Any]:
    """The nodes of a YAML text, which know their lines, and its plain values."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        found = flaws(root)
        if found:  # before the values are made: merges of merges would fill the memory
            raise ConfigError(listing(where, found))
        return root, root and yaml.SafeLoader("").construct_document(root)
    except NOT_YAML as error:
        msg = f"{where} is not valid YAML: {error}"
        raise ConfigError(msg) from None


def _with_overrides(raw: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The raw configuration with `section.key=value` texts put into its settings."""
    for text in overrides:
        path, sign, value = text.partition("=")
        keys = path.strip().split(".")
        if not sign or not all(keys):
            msg = f"--set {text!r} must read section.key=value, for example windows.n_sigma=2"
            raise ConfigError(msg)
        _, parsed = _plain_yaml(value, f"the value of --set {text!r}")
        raw = _placed(raw, ["settings", *keys], parsed)
    return raw


def _named_option(
    explained: tuple[int | None, str], loc: Place, overrides: Sequence[str]
) -> tuple[int | None, str]:
    """A problem that an option of the command made names the option, not a line of the file."""
    for text in overrides:
        keys = ("settings", *text.partition("=")[0].strip().split("."))
        if loc[: len(keys)] == keys:
            return None, f"--set {text}: {explained[1]}"
    return explained


def _placed(tree: Any, keys: list[str], value: Any) -> dict[str, Any]:
    tree = tree if isinstance(tree, dict) else {}
    inner = value if len(keys) == 1 else _placed(tree.get(keys[0]), keys[1:], value)
    return {**tree, keys[0]: inner}
