"""The stages of a configuration as tasks of b2luigi, each one command.

    python examples/workflows/b2luigi_tasks.py

`settings.json` in the folder it is started from may hold parameters:

    {"punzi": {"name": "demo", "datasets": "datasets.yaml", "options": "--set training.networks=5"}}

A task is complete when `punzi status` says so: a changed setting, file or code makes its stage run
again, and those after it that need what it changed. With `--batch` and a `batch_system` in
the settings the tasks are batch jobs; they must see the input files and the run folder under the
same paths.
"""

import functools
import json
import shlex
import subprocess
from pathlib import Path

import b2luigi

LEFT = {  # files by which a stage is known; it leaves more
    "select": ["skim/index.json", "cutflow.json", "histograms.root"],
    "train": ["windows.json", "stamps/train.json"],
    "evaluate": ["fom.json", "passing.parquet", "models/net-00.safetensors"],
    "limit": ["scan.json", "limit.json", "limit.csv"],
    "plot": ["plots/figures.json"],
    "report": ["report.html"],
}
STAGES = list(LEFT)


class PunziStage(b2luigi.Task):
    """`punzi STAGE` for one configuration and run."""

    stage = b2luigi.Parameter(default="report")
    datasets = b2luigi.Parameter(default="datasets.yaml")
    name = b2luigi.Parameter(default="demo")  # of the run
    options = b2luigi.Parameter(default="")  # of every stage, "--set training.networks=5"
    workers = b2luigi.IntParameter(default=2, significant=False)

    def requires(self):
        before = STAGES[: STAGES.index(self.stage)]
        return self.clone(stage=before[-1]) if before else []

    def output(self):
        folder = Path("runs") / self.name
        return [b2luigi.LocalTarget(str(folder / file)) for file in LEFT[self.stage]]

    def arguments(self):
        return ("-c", self.datasets, "-r", self.name, *shlex.split(self.options))

    def complete(self):
        stamps = Path("runs", self.name, "stamps")
        seen = tuple((path.name, path.stat().st_mtime_ns) for path in sorted(stamps.glob("*.json")))
        return super().complete() and states(self.arguments(), seen)[self.stage] == "up to date"

    def run(self):
        command = ["punzi", self.stage, *self.arguments(), f"--workers={self.workers}"]
        subprocess.run(command, check=True)  # noqa: S603


@functools.cache
def states(arguments, _stamps):
    """State by stage; asked again when a stage has left a new stamp."""
    command = ["punzi", "status", "--json", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603
    return {about["stage"]: about["state"] for about in json.loads(done.stdout)}


if __name__ == "__main__":
    b2luigi.process(PunziStage(**b2luigi.get_setting("punzi", default={})), workers=1)
