"""The run folder: one place for all results of one analysis, safe to interrupt at any moment.

    config.yaml log.txt provenance.json report.html stamps/
    skim/ cutflow.json findings.json histograms.json .root      select
    windows.json networks/ batch_study/                         train
    models/ fom.json fom.csv processes.csv passing.parquet      evaluate: all folds with their cut
    rectangular_cuts.csv                                        evaluate, if asked for
    scan.json .csv limit.json .csv hepdata/ workspaces.zip      limit
    unblinding.json                                             when data were first looked at
    normalisation.json                                          limit, if factors are fitted
    agreement.json .csv                                         plot, with data
    plots/                                                      plot
    regions/NAME/: skim/ cutflow.json histograms.json .root     select, of each control region
    fresh/                                                      confirm

Nobody else spells these names. Files appear under them only when complete. Each stage leaves a
stamp of its inputs, its settings and its code (stamps.py); a stage whose stamp is current is
skipped. A lock keeps a second run out.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.run.stamps import NEVER, PLAIN, Stamp, differences, plain_text, text_digest
from selection.errors import UserError
from selection.whole_files import replacing, write_text

MODEL_SUFFIX = ".safetensors"
_NUMBERS = re.compile(r"-(\d+)(?:\.(\d+))?\.[a-z]+$")


class RunError(UserError):
    """The run folder cannot be used as asked."""


class WorkIsDue(Exception):  # noqa: N818
    """A run that is only looked at has come to work that is to be done."""

    def __init__(self, reasons: Mapping[str, tuple[str, ...]]) -> None:
        """reasons: of each piece of work, by the name of its stamp."""
        super().__init__(", ".join(reasons))
        self.reasons = reasons


@dataclass(frozen=True)
class RunFolder:
    """Names of all files of one run, and the stamps of its stages."""

    path: Path
    only_look: bool = False  # the first stage that is out of date raises WorkIsDue

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def skim(self) -> Path:
        """The folder of the shards."""
        return self.path / "skim"

    @property
    def skim_index(self) -> Path:
        return self.skim / "index.json"

    @property
    def cutflow(self) -> Path:
        return self.path / "cutflow.json"

    @property
    def inputs(self) -> Path:
        """Fingerprints of all input files."""
        return self.skim / "inputs.json"

    @property
    def findings(self) -> Path:
        """What a look at the selected events found."""
        return self.path / "findings.json"

    @property
    def histograms(self) -> Path:
        return self.path / "histograms.json"

    @property
    def histograms_root(self) -> Path:
        return self.path / "histograms.root"

    @property
    def windows(self) -> Path:
        return self.path / "windows.json"

    @property
    def checkpoints(self) -> Path:
        """The folder of trainings that are under way."""
        return self.path / "networks" / "checkpoints"

    @property
    def batch_study(self) -> Path:
        return self.path / "batch_study"

    @property
    def figures_of_merit(self) -> Path:
        return self.path / "fom.json"

    @property
    def figures_of_merit_csv(self) -> Path:
        return self.path / "fom.csv"

    @property
    def plots(self) -> Path:
        return self.path / "plots"

    @property
    def figure_list(self) -> Path:
        return self.plots / "figures.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def provenance(self) -> Path:
        return self.path / "provenance.json"

    @property
    def fresh(self) -> Path:
        """The folder of a fresh sample's own selection and figures of merit."""
        return self.path / "fresh"

    @property
    def regions(self) -> Path:
        return self.path / "regions"

    def region(self, name: str) -> RunFolder:
        """The folder of a control region, with a selection of its own."""
        return RunFolder(self.regions / name)

    def network(self, classifier: str, training: int, fold: int) -> Path:
        """What one training (analysis/train/outcome.py) of one fold left, without a cut."""
        return self.path / "networks" / model_name(classifier, training, fold)

    @property
    def models(self) -> Path:
        """The folder of the models, numbered as the networks of the ensemble."""
        return self.path / "models"

    def model(self, classifier: str, number: int) -> Path:
        """All folds with the cut that is quoted: what `apply` and `export` take."""
        return self.models / model_name(classifier, number)

    def history(self, training: int, fold: int) -> Path:
        return self.path / "networks" / f"history-{training:02d}.{fold}.json"

    @property
    def passing(self) -> Path:
        """Events that pass the single cut, judged by networks not trained on them."""
        return self.path / "passing.parquet"

    @property
    def processes(self) -> Path:
        """What each sample leaves in each window."""
        return self.path / "processes.csv"

    @property
    def scan(self) -> Path:
        """Window, efficiency and background per sample at every scan mass."""
        return self.path / "scan.json"

    @property
    def scan_csv(self) -> Path:
        return self.path / "scan.csv"

    @property
    def limits(self) -> Path:
        return self.path / "limit.json"

    @property
    def limits_csv(self) -> Path:
        return self.path / "limit.csv"

    @property
    def hepdata(self) -> Path:
        """The folder of a submission to HEPData."""
        return self.path / "hepdata"

    @property
    def workspaces(self) -> Path:
        """A pyhf workspace per scan mass."""
        return self.path / "workspaces.zip"

    @property
    def unblinding(self) -> Path:
        """When data were looked at after the cut, and with which model."""
        return self.path / "unblinding.json"

    @property
    def normalisation(self) -> Path:
        """Factors of backgrounds fitted in control regions, where they are asked for."""
        return self.path / "normalisation.json"

    @property
    def agreement(self) -> Path:
        """chi^2 and largest deviation of data and simulation, per region and quantity."""
        return self.path / "agreement.json"

    @property
    def agreement_csv(self) -> Path:
        return self.path / "agreement.csv"

    @property
    def rectangular_cuts(self) -> Path:
        """The boxes of every fold and mass, where they are asked for."""
        return self.path / "rectangular_cuts.csv"

    def numbered_files(self) -> Iterator[tuple[int, int, Path]]:
        """All files of networks, with their number and fold (0 of a model)."""
        for folder in ("networks", "models"):
            for path in sorted((self.path / folder).glob("[!.]*-[0-9]*.*")):
                found = _NUMBERS.search(path.name)
                if found is not None:
                    yield int(found[1]), int(found[2] or 0), path

    def result_files(self) -> list[Path]:
        """All that the stages before the report left, but for events; in a fixed order."""
        own = {self.report, self.provenance, self.log, self.config}
        aside = {self.path / "stamps", self.checkpoints, self.fresh}
        return sorted(
            path
            for path in self.path.rglob("[!.]*")
            if path.is_file()
            and path.suffix != ".parquet"
            and path not in own
            and aside.isdisjoint(path.parents)
        )

    def is_current(self, stage: str, stamp: Stamp) -> bool:
        """True if the stage ended with this stamp and all files it named are still there."""
        return not self.due({stage: stamp})

    def due(self, stamps: Mapping[str, Stamp]) -> list[str]:
        """Those of the stages that are to be done."""
        reasons = {stage: self.why_due(stage, stamp) for stage, stamp in stamps.items()}
        found = {stage: why for stage, why in reasons.items() if why}
        if found and self.only_look:
            raise WorkIsDue(found)
        return list(found)

    def why_due(self, stage: str, stamp: Stamp) -> tuple[str, ...]:
        """What is missing or changed since the stage ended; empty while it is current."""
        try:
            found = json.loads(self._stamp(stage).read_text())
            missing = [name for name in found["files"] if not (self.path / name).exists()]
            changed = differences(found["stamp"], stamp)
        except FileNotFoundError:
            return (NEVER,)
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return (f"{self._stamp(stage)} cannot be read, or another version wrote it",)
        return (*changed, *(f"{name} is missing" for name in missing))

    def finish(self, stage: str, stamp: Stamp, files: Sequence[Path]) -> None:
        """Note that a stage is complete and which files are its results."""
        names = [str(file.relative_to(self.path)) for file in files]
        write_json(self._stamp(stage), {"stamp": stamp, "files": names})

    def forget(self, stage: str) -> None:
        """Note that a stage is not complete, whatever it was."""
        self._stamp(stage).unlink(missing_ok=True)

    def was_done(self, stage: str) -> bool:
        """True if the stage, or a piece of it such as one training, has ended at least once."""
        names = (f"{stage}.json", f"{stage}-*.json")
        return any(found for name in names for found in (self.path / "stamps").glob(name))

    def _stamp(self, stage: str) -> Path:
        return self.path / "stamps" / f"{stage}.json"


def model_name(classifier: str, number: int, fold: int | None = None) -> str:
    """`net-00.safetensors` for the Punzi-net, `bce-00.3.safetensors` for fold 3 of a BCE net."""
    stem = "net" if classifier == "punzi" else classifier
    return f"{stem}-{number:02d}{'' if fold is None else f'.{fold}'}{MODEL_SUFFIX}"


@contextlib.contextmanager
def open_run(path: Path) -> Iterator[RunFolder]:
    """Make the folder if needed and hold its lock; a second run on it is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / ".lock").open("w")
    except OSError as error:
        msg = f"cannot write to the run folder {path}: {error.strerror}; choose another with -r"
        raise RunError(msg) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            msg = f"another punzi is at work in {path}; wait for it or choose another run with -r"
            raise RunError(msg) from None
        for left in path.rglob(".*"):  # half-written files of a run that was killed
            if left.name != ".lock" and left.is_file():
                left.unlink(missing_ok=True)
        yield RunFolder(path)


def write_json(path: Path, value: Any) -> None:
    """Sorted and indented: same content, same bytes."""
    plain = PLAIN.dump_python(value, mode="json")
    write_text(path, json.dumps(plain, indent=1, sort_keys=True, allow_nan=True) + "\n")


def read_json(path: Path) -> Any:
    """What `write_json` wrote."""
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        msg = f"{path} is damaged ({error}); delete it and run again, it is made anew"
        raise RunError(msg) from None


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows of equal keys, at least one."""
    with replacing(path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def digest(*parts: Any) -> str:
    """Hash of plain values; the same for the same content, whatever the machine."""
    return text_digest(plain_text(parts))


def content_digest(path: Path) -> str:
    """Hash of a file's bytes."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
