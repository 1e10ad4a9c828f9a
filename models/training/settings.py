"""How a network is trained: the stages, and three presets.

    default   BCE, then one batch, Adam and L-BFGS, log of a power mean of sigma_min
    paper     Eur. Phys. J. C 82 (2022) 121: batches of 1e5, SGD 1e-4, reduced on plateau
    authors   the example in the authors' public code: one batch, SGD 0.05, refined sigma_min

Learning rates belong to the normalisation of the losses in losses.py. The plateau rule looks at the
mono-batch loss: on noisy batch losses it halves the rate to nothing. The BCE stage of the authors
looks at the mean loss of the epoch's batches instead, which halves it later.

    epochs = ceil(steps / batches per epoch)      of a stage that counts steps

What a network learns is decided by steps: an epoch has 3 batches on a small sample, 70 on a large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from models.sensitivity import FormulaName, PunziFormula

LossName = Literal["bce", "punzi"]
BCE, PUNZI = "bce", "punzi"  # names of stages and of what they leave
BCE_EQUAL, BCE_MASS = "bce_equal", "bce_mass"  # for comparison
Batching = Literal["random", "stratified"]
Optimizer = Literal["sgd", "adam"]
Schedule = Literal["constant", "plateau", "cosine"]
PlateauOn = Literal["all_events", "epoch_mean"]
PresetName = Literal["default", "paper", "authors"]

CHOICES = {
    "loss": get_args(LossName),
    "batching": get_args(Batching),
    "optimizer": get_args(Optimizer),
    "schedule": get_args(Schedule),
    "plateau_on": get_args(PlateauOn),
}


@dataclass(frozen=True)
class Stage:
    """One stage of training. batch_size None: all events at once (then batching has no meaning)."""

    name: str
    loss: LossName
    epochs: int
    learning_rate: float
    batch_size: int | None = None
    batching: Batching = "stratified"
    optimizer: Optimizer = "adam"
    schedule: Schedule = "cosine"
    patience: int = 10  # plateau: epochs without improvement before the rate is reduced
    factor: float = 0.5  # plateau: what the rate is multiplied with
    plateau_on: PlateauOn = "all_events"  # after an epoch; or the mean of its batches
    steps: int | None = None  # instead of epochs: with_epochs() counts them
    refine: int = 0  # iterations of L-BFGS on the loss of all events, after the epochs
    begins_with: str | None = None  # stage whose network it starts from; None: the one before

    def __post_init__(self) -> None:
        for field, allowed in CHOICES.items():
            if getattr(self, field) not in allowed:
                msg = f"stage {self.name!r}: {field} is {getattr(self, field)!r}; choose {allowed}"
                raise ValueError(msg)
        counts = (self.batch_size, self.steps)
        positive = self.learning_rate > 0 and all(n is None or n > 0 for n in counts)
        counted = min(self.epochs, self.patience, self.refine) >= 0
        if not (positive and counted and 0 < self.factor < 1):
            msg = (
                f"stage {self.name!r}: epochs, patience and refine must not be negative, "
                f"learning_rate, batch_size and steps positive and factor in (0, 1); found {self}"
            )
            raise ValueError(msg)

    @property
    def rows(self) -> int:
        """Epochs, and iterations after them."""
        return self.epochs + self.refine

    def batches(self, n_events: int) -> int:
        """Steps of an epoch."""
        if self.batch_size is None:
            return 1
        if self.batching == "stratified":
            return max(1, round(n_events / self.batch_size))
        return -(-n_events // self.batch_size)


@dataclass(frozen=True)
class TrainingSettings:
    """Everything that decides a training besides the events and the seed."""

    stages: tuple[Stage, ...]
    hidden: tuple[int, ...] = (8, 4)
    log_loss: bool = True  # log of the power mean of sigma_min instead of its mean
    power: float = 0.3  # of that power mean; 0: mean of log sigma_min
    a: float = 3.0
    b: float = 1.28155
    formula: FormulaName = "paper"
    hypothesis_weights: tuple[float, ...] | None = None  # one per trained mass; None: equal
    device: str = "cpu"  # of torch; "cpu": the compiled kernels (device.py)

    def __post_init__(self) -> None:
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) != len(names):
            msg = f"stages need one or more different names, found {names}"
            raise ValueError(msg)
        for i, stage in enumerate(self.stages):
            if stage.begins_with is not None and stage.begins_with not in names[:i]:
                msg = f"stage {stage.name!r} begins with {stage.begins_with!r}: no earlier stage"
                raise ValueError(msg)
        if not 0 <= self.power <= 10:
            msg = f"power of the loss must lie between 0 and 10, found {self.power}"
            raise ValueError(msg)
        if self.hypothesis_weights is not None and not (
            min(self.hypothesis_weights) >= 0 and sum(self.hypothesis_weights) > 0
        ):
            msg = f"hypothesis_weights must not be negative nor all zero: {self.hypothesis_weights}"
            raise ValueError(msg)

    @property
    def outcome(self) -> str:
        """Name of the stage whose network is the result: the last that is no comparison."""
        return [s.name for s in self.stages if s.name != BCE_EQUAL][-1]

    def punzi_formula(self, luminosity_inv_fb: float) -> PunziFormula:
        """The constants of sigma_min."""
        return PunziFormula(luminosity_inv_fb, self.a, self.b, self.formula)


PAPER_BCE = Stage(
    name="bce",
    loss="bce",
    epochs=200,
    batch_size=2048,
    batching="random",
    optimizer="sgd",
    learning_rate=1.0,
    schedule="plateau",
)

DEFAULT = TrainingSettings(
    stages=(
        PAPER_BCE,
        Stage(
            name="punzi",
            loss="punzi",
            epochs=400,
            learning_rate=0.02,
            schedule="constant",
            refine=250,
        ),
    ),
)

PAPER = TrainingSettings(
    stages=(
        PAPER_BCE,
        Stage(
            name="punzi",
            loss="punzi",
            epochs=1000,
            batch_size=100_000,
            batching="random",
            optimizer="sgd",
            learning_rate=1e-4,
            schedule="plateau",
        ),
    ),
    log_loss=False,
)

AUTHORS = TrainingSettings(
    stages=(
        replace(PAPER_BCE, epochs=150, batch_size=4096, plateau_on="epoch_mean"),
        Stage(
            name="punzi",
            loss="punzi",
            epochs=500,
            optimizer="sgd",
            learning_rate=0.05,
            schedule="plateau",
            patience=20,
        ),
    ),
    log_loss=False,
    formula="refined",
)


def with_epochs(settings: TrainingSettings, n_events: int) -> TrainingSettings:
    """The same with the epochs of stages that count steps, on so many events."""
    stages = (
        stage
        if stage.steps is None
        else replace(stage, epochs=-(-stage.steps // stage.batches(n_events)))
        for stage in settings.stages
    )
    return replace(settings, stages=tuple(stages))


def with_equal_budget(settings: TrainingSettings) -> TrainingSettings:
    """The same with one more stage: the BCE net goes on with exactly what the Punzi stage has."""
    punzi = next(stage for stage in settings.stages if stage.name == PUNZI)
    equal = replace(punzi, name=BCE_EQUAL, loss="bce", begins_with=BCE)
    return replace(settings, stages=(*settings.stages, equal))


def with_mass_input(settings: TrainingSettings) -> TrainingSettings:
    """For events with the mass as an input: the BCE stage, then BCE with the Punzi budget."""
    bce, punzi = (next(s for s in settings.stages if s.name == name) for name in (BCE, PUNZI))
    return replace(settings, stages=(bce, replace(punzi, name=BCE_MASS, loss="bce")))


PRESETS: dict[str, TrainingSettings] = {
    "default": DEFAULT,
    "paper": PAPER,
    "authors": AUTHORS,
}
