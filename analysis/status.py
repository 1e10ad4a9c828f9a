"""`punzi status`: which stages of a run are there, which are out of date, and why.

The chain of `punzi run` itself is walked (workflow.py), in a run that is only looked at: where a
stage would begin to work, its reasons are noted and the walk ends. All after it follow: what
that stage will leave decides whether they are done again.
"""

from __future__ import annotations

import difflib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from analysis.run.folder import RunError, RunFolder, WorkIsDue
from analysis.run.stamps import NEVER
from analysis.terminal import console
from analysis.workflow import RUNS, Inputs, Stage, chain, looked_at
from selection.errors import UserError

if TYPE_CHECKING:
    from analysis.run.executors import Execution

log = logging.getLogger(__name__)

STAGES: tuple[Stage, ...] = get_args(Stage)
MOST_REASONS = 3  # on the terminal; --json has all

State = Literal["up to date", "out of date", "not done", "refused", "follows"]


@dataclass(frozen=True)
class StageStatus:
    """One stage of a run."""

    stage: Stage
    state: State
    why: tuple[str, ...] = ()  # empty if it is up to date


def run_status(inputs: Inputs, execution: Execution) -> list[StageStatus]:
    """All stages in order; inputs: with a run that is only looked at, so nothing is written."""
    run = inputs[0]
    found: list[StageStatus] = []
    try:
        for stage, _ in chain(inputs, execution):
            found.append(StageStatus(stage, "up to date"))
    except WorkIsDue as work:
        found.append(_due(run, STAGES[len(found)], work.reasons))
    except UserError as error:
        found.append(StageStatus(STAGES[len(found)], "refused", (str(error),)))
    return [*found, *(_follows(run, stage, found[-1].stage) for stage in STAGES[len(found) :])]


def print_status(
    config_path: Path, name: str, execution: Execution, changes: Sequence[str], *, as_json: bool
) -> None:
    """`punzi status`; a run that was never begun is said, with the nearest that was."""
    _tell_missing(name)
    stages = _looked_at(config_path, name, execution, changes)
    if as_json:
        console.stdout.print(json_text(stages), markup=False, soft_wrap=True)
        return
    for s in stages:
        why = f"  {_some(s.why, '; ')}" if s.why else ""
        console.stdout.print(f"{s.stage:9} {s.state:11}{why}", markup=False, soft_wrap=True)


def _tell_missing(name: str) -> None:
    """A warning, no error: a workflow manager asks before the first job, a person may mistype."""
    known = sorted(path.name for path in RUNS.glob("*") if path.is_dir())
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
        hint = f"nearest: {', '.join(near)}" if near else "none is there"
        log.warning("status: there is no run %s in %s/ yet (%s)", name, RUNS, hint)


def json_text(stages: Sequence[StageStatus]) -> str:
    """All reasons of all stages, in order."""
    return json.dumps([asdict(s) for s in stages], indent=1)


def print_plan(config_path: Path, name: str, execution: Execution, changes: Sequence[str]) -> None:
    """`punzi run --dry-run`: what would be done; a refusal of the run is one here too."""
    stages = _looked_at(config_path, name, execution, changes)
    todo = [s for s in stages if s.state != "up to date"]
    for s in todo:
        if s.state == "refused":
            raise RunError(s.why[0])
        verb = "would follow" if s.state == "follows" else "would be done"
        text = f"{s.stage:9} {verb}: {_some(s.why, '; ')}"
        console.stdout.print(text, markup=False, soft_wrap=True)
    if not todo:
        console.stdout.print("nothing to do: all stages are up to date")


def _looked_at(
    config_path: Path, name: str, execution: Execution, changes: Sequence[str]
) -> list[StageStatus]:
    with console.warnings_only():  # that a stage is up to date is the answer here
        return run_status(looked_at(config_path, name, changes), execution)


def _due(run: RunFolder, stage: Stage, reasons: Mapping[str, tuple[str, ...]]) -> StageStatus:
    """Of a stage with several pieces of work: how many, and the reasons of all, each once."""
    texts = tuple(dict.fromkeys(text for why in reasons.values() for text in why))
    state: State = "not done" if texts == (NEVER,) and not run.was_done(stage) else "out of date"
    if stage == "train" and (pieces := [name for name in reasons if name != stage]):
        texts = (f"{len(pieces)} to train: {_some(pieces)}", *texts)
    return StageStatus(stage, state, texts)


def _follows(run: RunFolder, stage: Stage, first: Stage) -> StageStatus:
    if not run.was_done(stage):
        return StageStatus(stage, "not done", (f"{first} comes first",))
    return StageStatus(stage, "follows", (f"done again if {first} changes what it needs",))


def _some(texts: Sequence[str], between: str = ", ") -> str:
    more = len(texts) - MOST_REASONS
    return between.join([*texts[:MOST_REASONS], *([f"and {more} more"] if more > 0 else [])])
