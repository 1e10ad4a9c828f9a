"""Analysis settings: documented defaults, presets, and what `settings:` or `--set` may change."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, with_config

from selection.preselection import Preselection

with_config(ConfigDict(extra="forbid"))(Preselection)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class WindowSettings(_Section):
    """Mass windows (the paper: two core widths, training on every second mass)."""

    n_sigma: float = Field(2.0, gt=0, le=10, description="half width of a window in core widths")
    min_events: int = Field(150, ge=20, description="fewer signal events: the mass is not fitted")
    train_every: int = Field(2, ge=1, description="train on every n-th mass, test on all")


class Settings(_Section):
    """Everything that is a choice of the analysis."""

    preset: Literal["default", "paper", "authors"] = "default"
    preselection: Preselection = Preselection()
    windows: WindowSettings = WindowSettings()


def resolved_settings(raw: Any) -> dict[str, Any]:
    """The `settings:` section as written."""
    return {} if raw is None else raw
