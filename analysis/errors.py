"""Which exceptions are a person's to mend: their message is shown, without a traceback."""

from __future__ import annotations


def user_errors() -> tuple[type[Exception], ...]:
    """Imported late: the command line must answer --help without loading torch."""
    from analysis.applied_model import ApplyError
    from analysis.check import CheckError
    from analysis.config import ConfigError
    from analysis.executors import ExecutorError
    from analysis.report import ReportError
    from analysis.runs import RunError
    from analysis.select import SelectionError
    from analysis.skim import SkimError
    from analysis.train import TrainError
    from models.model_file import ModelFileError
    from models.training import TrainingDiverged
    from selection.ntuple import MissingBranchError
    from selection.resolution import ResolutionError
    from simulation.recipe import SimulationError

    return (
        ApplyError,
        CheckError,
        ConfigError,
        ExecutorError,
        MissingBranchError,
        ModelFileError,
        ReportError,
        ResolutionError,
        RunError,
        SelectionError,
        SimulationError,
        SkimError,
        TrainError,
        TrainingDiverged,
    )
