"""Analysis settings: documented defaults, presets, and what `settings:` or `--set` may change.

A preset (`default`, `paper`, `authors`) fills the sections `training` and `sensitivity`; anything
written beside it wins over the preset.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from analysis.config.samples import Masses
from limits.coupling import Branching
from models.sensitivity import FormulaName
from models.training.settings import (
    DEFAULT,
    PRESETS,
    Batching,
    LossName,
    Optimizer,
    PlateauOn,
    PresetName,
    Schedule,
    Stage,
    TrainingSettings,
    with_equal_budget,
)
from selection.table import Folds

_BCE, _PUNZI = DEFAULT.stages
_WIDEST = 4096  # neurons in a layer of a network (models/layers.py)


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class WindowSettings(_Section):
    """Mass windows (the paper: two core widths, training on every second mass)."""

    n_sigma: float = Field(2.0, gt=0, le=10, description="half width of a window in core widths")
    min_events: int = Field(100, ge=20, description="fewer signal events: the mass is not fitted")
    train_every: int = Field(2, ge=1, description="train on every n-th mass, test on all")


class SensitivitySettings(_Section):
    """Punzi's figure of merit."""

    a: float = Field(DEFAULT.a, gt=0, le=10, description="significance of a discovery, in sigma")
    b: float = Field(DEFAULT.b, gt=0, le=10, description="1.28155 for 90 % confidence")
    formula: FormulaName = Field(DEFAULT.formula, description="the paper's or Punzi's refined form")


class StageSettings(_Section):
    """One stage of the training."""

    epochs: int | None = Field(None, ge=0, le=1_000_000, description="or `steps`, one of the two")
    steps: int | None = Field(
        None, gt=0, le=10**9, description="batches in all: epochs are as many as they need"
    )
    learning_rate: float = Field(gt=0, allow_inf_nan=False)
    batch_size: int | None = Field(
        Stage.batch_size, gt=0, description="null: all events in one batch"
    )
    batching: Batching = Stage.batching
    optimizer: Optimizer = Stage.optimizer
    schedule: Schedule = Stage.schedule
    patience: int = Field(Stage.patience, ge=0, description="plateau: epochs without improvement")
    factor: float = Field(Stage.factor, gt=0, lt=1, description="plateau: reduction of the rate")
    plateau_on: PlateauOn = Field(
        Stage.plateau_on,
        description="plateau: the loss of all events after an epoch, or the mean of its batches",
    )
    refine: int = Field(
        Stage.refine, ge=0, le=100_000,
        description="iterations of L-BFGS on the loss of all events, after the epochs",
    )  # fmt: skip

    @model_validator(mode="after")
    def _one_way_to_count(self) -> StageSettings:
        if (self.epochs is None) == (self.steps is None):
            msg = (
                f"a stage lasts so many epochs or so many steps: found epochs = {self.epochs} and "
                f"steps = {self.steps}; give one of them"
            )
            raise ValueError(msg)
        return self

    def stage(self, name: str, loss: LossName) -> Stage:
        """As the training loop takes it."""
        return Stage(name=name, loss=loss, **self.model_dump() | {"epochs": self.epochs or 0})


def _stage(stage: Stage) -> StageSettings:
    values = {k: v for k, v in asdict(stage).items() if k not in ("name", "loss", "begins_with")}
    return StageSettings(**values | ({} if stage.steps is None else {"epochs": None}))


class TrainingSection(_Section):
    """The networks and how they are trained."""

    networks: int = Field(1, gt=0, le=1000, description="networks in the ensemble")
    seed: int = Field(1, ge=0, lt=2**31, description="network i begins with seed + i * seeds")
    seeds: int = Field(
        1, ge=1, le=100, description="trainings per network and fold: their mean before the sigmoid"
    )
    folds: int = Field(
        5, ge=1, le=20, description="networks per seed: each judges the share it is not trained on"
    )
    validation_fraction: float = Field(
        0.2, gt=0, lt=1, description="share of events held out, with one fold"
    )
    hidden: tuple[Annotated[int, Field(gt=0, le=_WIDEST)], ...] = Field(
        DEFAULT.hidden, min_length=1, max_length=10
    )
    log_loss: bool = Field(
        DEFAULT.log_loss, description="log of the power mean of sigma_min, not its mean"
    )
    power: float = Field(
        DEFAULT.power, ge=0, le=10, description="of the power mean; 0: mean of log sigma_min"
    )
    hypothesis_weights: tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        None, min_length=1, description="weight of each trained mass in the loss; null: equal"
    )
    device: str = Field(
        DEFAULT.device,
        min_length=1,
        max_length=40,
        description="cpu: compiled; any other of torch, such as cuda: plain torch",
    )
    bce_equal_budget: bool = Field(
        True, description="train the BCE net on, with the budget of the Punzi stage, to compare"
    )
    bce_mass: bool = Field(
        False, description="train a BCE net with the mass as an input, to compare"
    )
    bce: StageSettings = _stage(_BCE)
    punzi: StageSettings = _stage(_PUNZI)


class EvaluationSettings(_Section):
    """Cuts and comparisons."""

    single_cut: Annotated[float, Field(ge=0, le=1)] | Literal["optimal"] = Field(
        0.5, description="one cut for all masses, or the one with the smallest mean sigma_min"
    )
    xgboost: bool = Field(False, description="train XGBoost for comparison (extra `baselines`)")
    rectangular_cuts: bool = Field(
        False, description="best rectangular cuts on the features of each mass, for comparison"
    )


class CouplingSettings(_Section):
    """What a cross section says about a coupling g: sigma is proportional to g squared."""

    symbol: str = Field("g'", max_length=40, description="in figures and tables, mathtext")
    branching: Branching = Field(
        "invisible", description="1, or that of a boson of L_mu - L_tau (lmu_ltau)"
    )
    reference: float | None = Field(
        None, gt=0, description="coupling of the cross sections; null: what signal files record"
    )
    cross_sections_fb: dict[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="mass in GeV: cross section in fb at `reference`; empty: of the signal files",
    )

    @model_validator(mode="after")
    def _table_and_reference_belong_together(self) -> CouplingSettings:
        if bool(self.cross_sections_fb) != (self.reference is not None):
            msg = "give reference and cross_sections_fb together, or neither"
            raise ValueError(msg)
        return self


class LimitSettings(_Section):
    """Limits and p-values: a count in the window of every scan mass."""

    level: float = Field(0.90, gt=0.5, lt=1, description="confidence of upper limits")
    method: Literal["counting", "asymptotic", "shape"] = Field(
        "counting", description="exact counts, asymptotic formulas, or a template fit"
    )
    masses_gev: Masses | None = Field(
        None, description="of the scan: a list or first, last, step; null: by step_sigma"
    )
    step_sigma: float = Field(
        1.0, gt=0.05, le=4, description="distance of scan masses in widths of the peak"
    )
    efficiency_uncertainty: float = Field(
        0.0, ge=0, le=1, description="systematic, relative, of the signal efficiency"
    )
    luminosity_uncertainty: float = Field(0.0, ge=0, le=1, description="relative")
    toys: int = Field(
        100_000, ge=1000, le=10_000_000, description="of the whole scan, for the global p-value"
    )
    seed: int = Field(1, ge=0, lt=2**31, description="of the toys")
    expected_for: Literal["data", "target"] = Field(
        "data", description="luminosity of limits while data are blind; unblinded: that of the data"
    )
    unblind: bool = Field(
        False, description="show and count data after the cut; recorded in unblinding.json"
    )
    coupling: CouplingSettings = CouplingSettings()


class PlotSettings(_Section):
    """What stands on the figures."""

    experiment: str = Field("Belle II", max_length=40)
    text: str = Field("Simulation (own work)", max_length=60)
    signal_masses_gev: tuple[float, ...] = Field((1.0, 3.0, 6.0), max_length=5)
    formats: tuple[Literal["pdf", "svg"], ...] = Field(
        ("pdf",), description="files of each figure beside the PNG of the report"
    )
    dpi: int = Field(300, ge=50, le=1200, description="dots per inch of the PNG")
    style: str | dict[str, Any] | None = Field(
        None, description="over ours: a style of mplhep or matplotlib, a .mplstyle file, parameters"
    )
    font: str | None = Field(None, max_length=80, description="of letters and formulas")
    width: Literal["one_column", "two_column"] | Annotated[float, Field(ge=2, le=20)] | None = (
        Field(None, description="3.4 or 7 inches, or so many; null: of the style, else one column")
    )
    colours: dict[str, Annotated[str, Field(max_length=40)]] = Field(
        default_factory=dict, description="background: colour, a name or #rrggbb"
    )

    @property
    def width_in(self) -> float | None:
        named = {"one_column": 3.4, "two_column": 7.0}
        return named[self.width] if isinstance(self.width, str) else self.width


class Settings(_Section):
    """Everything that is a choice of the analysis."""

    preset: PresetName = "default"
    windows: WindowSettings = WindowSettings()
    sensitivity: SensitivitySettings = SensitivitySettings()
    training: TrainingSection = TrainingSection()
    evaluation: EvaluationSettings = EvaluationSettings()
    limit: LimitSettings = LimitSettings()
    plots: PlotSettings = PlotSettings()

    @model_validator(mode="after")
    def _fits_the_training_loop(self) -> Settings:
        self.training_settings()
        widest = self.training.seeds * max(self.training.hidden)
        if widest > _WIDEST:
            msg = (
                f"training.seeds x the widest of training.hidden is {widest}; a mean over seeds is "
                f"one network with at most {_WIDEST} neurons in a layer"
            )
            raise ValueError(msg)
        return self

    @property
    def folds(self) -> Folds:
        return Folds(self.training.folds, self.training.validation_fraction)

    def training_settings(self) -> TrainingSettings:
        """The settings of the training loop."""
        t = self.training
        made = TrainingSettings(
            stages=(
                t.bce.stage("bce", "bce"),
                t.punzi.stage("punzi", "punzi"),
            ),
            hidden=t.hidden,
            log_loss=t.log_loss,
            power=t.power,
            hypothesis_weights=t.hypothesis_weights,
            device=t.device,
            **self.sensitivity.model_dump(),
        )
        return with_equal_budget(made) if t.bce_equal_budget else made


def resolved_settings(raw: Any) -> Any:
    """The `settings:` section as written, on top of its preset."""
    if not isinstance(raw, dict):
        return {} if raw is None else raw
    name = raw.get("preset")
    preset = PRESETS.get(name, DEFAULT) if isinstance(name, str) else DEFAULT
    written = raw.get("training")
    bce, punzi = (
        _without_other_count(_stage(stage).model_dump(), written, stage.name)
        for stage in preset.stages
    )
    base = {
        "training": {
            "hidden": preset.hidden,
            "log_loss": preset.log_loss,
            "power": preset.power,
            "bce": bce,
            "punzi": punzi,
        },
        "sensitivity": {"a": preset.a, "b": preset.b, "formula": preset.formula},
    }
    return _merged(base, raw)


def _without_other_count(base: dict[str, Any], written: Any, name: str) -> dict[str, Any]:
    """A person who counts a stage in another way than the preset replaces that of the preset."""
    own = written.get(name) if isinstance(written, dict) else None
    own = own if isinstance(own, dict) else {}
    counts = {key for key in ("epochs", "steps") if own.get(key) is not None}
    return base | {key: None for key in ("epochs", "steps") if counts and key not in counts}


def _merged(base: Any, changes: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(changes, dict)):
        return changes
    merged = {
        key: _merged(base[key], changes[key]) if key in changes else base[key] for key in base
    }
    return merged | {key: value for key, value in changes.items() if key not in base}
