"""Step 1 of apply: the cut as it is applied, and the conditions under which it holds.

    score  = mean over the networks          spread = their standard deviation
    pass   = score >= cut, for events that pass the preselection of the training

A cut is worth nothing under other conditions than those it was made for. The search (particles,
features, cuts) and the windows therefore come from the model, every single value of them: one that
the model does not state is not filled in. The beams come from the ntuple, else from the
configuration, else from the model, and may differ from the model's by at most 20 MeV in sqrt(s) and
in each component of the total momentum: M_rec2 moves by 2 E_rec times that, half a window;
off-resonance data of Belle II lie 60 MeV away.
"""

from __future__ import annotations

import hashlib
import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from analysis.inputs.rows import BEAM_TOLERANCE_GEV
from analysis.run.folder import MODEL_SUFFIX
from models.trained import TrainedModel, load_model
from selection.beams import Beams
from selection.errors import UserError
from selection.preselection import CandidatePolicy
from selection.search import Search

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from analysis.config.configuration import Configuration

log = logging.getLogger(__name__)

Stated = TypeVar("Stated", bound="DataclassInstance")


class ApplyError(UserError):
    """The model cannot be applied or exported as asked; the message says why and what to do."""


@dataclass(frozen=True)
class AppliedCut:
    """Networks with everything that decides which entries pass."""

    models: tuple[TrainedModel, ...]
    files: tuple[str, ...]
    sha256: tuple[str, ...]  # of the files
    cut: float
    beams: Beams
    candidates: CandidatePolicy
    missing: float | None = None  # number that means missing in the ntuples

    @property
    def search(self) -> Search:
        return self.models[0].search

    @property
    def n_folds(self) -> int:
        return self.models[0].n_folds

    @property
    def sqrt_s_gev(self) -> float:
        """Energy of the training."""
        return self.models[0].conditions.sqrt_s_gev

    def identity(self) -> dict[str, Any]:
        """Plain values that change whenever another entry could pass."""
        return {
            "sha256": self.sha256,
            "cut": self.cut,
            "beams": asdict(self.beams),
            "search": self.search.identity,
            "candidates": self.candidates,
            "missing": self.missing,
        }


def load_cut(
    paths: Sequence[Path], *, config: Configuration | None, cut: float | None
) -> AppliedCut:
    """Read the models and make sure that they belong together and to this program."""
    files = model_files(paths)
    models = tuple(load_model(file) for file in files)
    for file, model in zip(files, models, strict=True):
        _refuse_unequal(files[0], models[0], file, model, any_cut=cut is not None)
    conditions = models[0].conditions
    if cut is None and conditions.cut is None:
        msg = (
            f"{files[0]} has no cut yet: `punzi evaluate` chooses one and writes the model to "
            f"models/ of the run. Apply that file, or choose a cut with --cut."
        )
        raise ApplyError(msg)
    beams = _stated(Beams, conditions.beams, files[0], "beams")
    if config is not None:
        _refuse_other_beams(config.beams, beams)
        if config.definition.identity != models[0].search.identity:
            log.warning(
                "the configuration has another search, features or cuts than the model; the "
                "model's are applied"
            )
    return AppliedCut(
        models=models,
        files=tuple(map(str, files)),
        sha256=tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files),
        cut=models[0].cut if cut is None else cut,
        beams=beams if config is None else config.beams,
        candidates=_candidates(conditions.candidates, config, files[0]),
        missing=None if config is None else config.missing,
    )


def _candidates(trained: str, config: Configuration | None, file: Path) -> CandidatePolicy:
    """The policy of the training, unless the configuration states one."""
    if trained not in get_args(CandidatePolicy):
        msg = f"{file} has the candidate policy {trained!r}, which this version does not know"
        raise ApplyError(msg)
    if config is None or "candidates" not in config.model_fields_set:
        return cast(CandidatePolicy, trained)
    if config.candidates != trained:
        log.warning(
            "the configuration takes %s candidates, the model was trained on %s",
            config.candidates,
            trained,
        )
    return config.candidates


def model_files(paths: Sequence[Path]) -> list[Path]:
    """The files meant by a list of files and folders; a folder means all its `net-*` models."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(path.glob(f"net-*{MODEL_SUFFIX}"))
        if not inside:
            msg = f"{path} holds no model net-*{MODEL_SUFFIX}; give a file, or runs/NAME/models"
            raise ApplyError(msg)
        found += inside
    return found


def refuse_energy(sqrt_s_gev: float, model_gev: float, *, where: str) -> None:
    """Stop if the energy is not that of the training."""
    if not math.isfinite(sqrt_s_gev) or abs(sqrt_s_gev - model_gev) > BEAM_TOLERANCE_GEV:
        msg = (
            f"{where} has sqrt(s) = {sqrt_s_gev:.4f} GeV, the model was trained at "
            f"{model_gev:.4f} GeV; more than {1e3 * BEAM_TOLERANCE_GEV:g} MeV apart. "
            f"Train a model for this energy."
        )
        raise ApplyError(msg)


def _refuse_unequal(
    first_file: Path, first: TrainedModel, file: Path, model: TrainedModel, *, any_cut: bool
) -> None:
    """The networks of an ensemble must mean the same by a window, an event and a pass."""
    a, b = first.conditions, model.conditions
    windows = (
        first.windows.n_sigma == model.windows.n_sigma
        and np.array_equal(first.windows.mass_gev, model.windows.mass_gev)
        and np.array_equal(first.windows.sigma, model.windows.sigma)
    )
    same = {
        "windows": windows,
        "beams": a.beams == b.beams and a.sqrt_s_gev == b.sqrt_s_gev,
        "search": first.search.identity == model.search.identity,
        "folds": first.n_folds == model.n_folds,
        "classifier": a.classifier == b.classifier,
        "candidates": a.candidates == b.candidates,
        "cut (choose one with --cut)": any_cut or a.cut == b.cut,
    }
    wrong = [name for name, equal in same.items() if not equal]
    if wrong:
        msg = f"{first_file} and {file} are no ensemble: they differ in {', '.join(wrong)}"
        raise ApplyError(msg)


def _refuse_other_beams(configured: Beams, trained: Beams) -> None:
    refuse_energy(configured.sqrt_s_gev, trained.sqrt_s_gev, where="the configuration")
    apart = np.abs(np.subtract(configured.total, trained.total)[:3]).max()
    if not apart <= BEAM_TOLERANCE_GEV:
        msg = (
            f"the beams of the configuration, {configured}, and of the model, {trained}, differ "
            f"by {1e3 * apart:.0f} MeV in momentum; at most {1e3 * BEAM_TOLERANCE_GEV:g} MeV is "
            f"allowed. Correct `beams:`, or train a model for these beams."
        )
        raise ApplyError(msg)


def _stated(kind: type[Stated], values: Any, file: Path, what: str) -> Stated:
    """Conditions of a model as our record; a default of today never stands for a missing one."""
    try:
        found = dict(values or {})
        missing = [field.name for field in fields(kind) if field.name not in found]
        if missing:
            msg = f"{', '.join(missing)} not stated"
            raise ValueError(msg)
        return TypeAdapter(kind).validate_python(found)
    except (ValidationError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        msg = (
            f"{file} does not say for which {what} it was trained ({reason}); apply it with the "
            f"version that trained it, or train again"
        )
        raise ApplyError(msg) from None
