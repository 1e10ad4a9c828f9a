"""The workflow examples run the stages as jobs: all of them, in order, and only those that are due."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.status import STAGES
from tests.analysis.conftest import QUICK

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/workflows"
BIN = Path(sys.executable).parent
JOBS = [stage for stage in STAGES if stage != "windows"]  # which is a part of train
MISSING = [name for name in ("snakemake", "b2luigi") if importlib.util.find_spec(name) is None]

pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"the extra `workflows` is not installed: no {' and no '.join(MISSING)}"
)


@pytest.fixture
def folder(evaluated, drawn, tmp_path):
    """A folder with a run that lacks its report alone."""
    run = evaluated[0]
    shutil.copytree(run.path, tmp_path / "runs/demo")  # with their dates
    (tmp_path / "runs/demo/report.html").unlink(missing_ok=True)
    return tmp_path


@pytest.fixture
def parameters(evaluated):
    options = " ".join(f"--set {shlex.quote(change)}" for change in QUICK)
    return {"datasets": str(evaluated[0].path.parent / "datasets.yaml"), "options": options}


def ran(folder, *words):
    """What a program says, on both streams."""
    ours = os.pathsep.join([str(BIN), os.environ["PATH"]])
    root = os.pathsep.join([str(EXAMPLES.parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | {"PATH": ours, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def snakemake(folder, parameters, *words):
    told = [f"{name}={value}" for name, value in parameters.items()]
    words = ("-s", str(EXAMPLES / "Snakefile"), "--cores=1", *words, "--config", *told)
    return ran(folder, sys.executable, "-m", "snakemake", *words)


def test_snakemake_has_a_job_for_each_stage_with_its_command(tmp_path, parameters):
    text = snakemake(tmp_path, parameters, "-n", "-p")
    assert re.findall(r"punzi (\w+) -c", text) == JOBS
    assert list(tmp_path.glob("runs")) == []


def test_snakemake_runs_what_is_missing_and_then_nothing(folder, parameters):
    text = snakemake(folder, parameters)
    assert re.findall(r"^\w*rule (\w+):", text, re.MULTILINE) == ["report", "all"]
    assert (folder / "runs/demo/report.html").exists()
    assert "Nothing to be done" in snakemake(folder, parameters, "-n")


def test_b2luigi_runs_what_is_missing(folder, parameters):
    (folder / "settings.json").write_text(json.dumps({"punzi": {**parameters, "workers": 1}}))
    text = ran(folder, sys.executable, str(EXAMPLES / "b2luigi_tasks.py"))
    assert re.findall(r"running +PunziStage\(stage=(\w+)", text) == ["report"]
    assert (folder / "runs/demo/report.html").exists()


def test_b2luigi_knows_the_stages_in_the_order_of_the_chain(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from b2luigi_tasks import PunziStage\n"
        "task, found = PunziStage(), []\n"
        "while task:\n"
        "    found.insert(0, task.stage)\n"
        "    task = task.requires()\n"
        "print(*found)\n"
    )
    assert ran(tmp_path, sys.executable, "-c", script, str(EXAMPLES)).split() == JOBS


def test_the_files_by_which_a_stage_is_known_are_left_by_it(evaluated, drawn):
    """The same list stands in both examples."""
    run = evaluated[0]
    lists = []
    for name in ("Snakefile", "b2luigi_tasks.py"):
        text = re.search(r"^LEFT = \{.*?^\}", (EXAMPLES / name).read_text(), re.S | re.M)[0]
        scope = {}
        exec(text, scope)  # noqa: S102
        lists.append(scope["LEFT"])
    assert lists[0] == lists[1]
    assert list(lists[0]) == JOBS
    for stage, files in lists[0].items():
        if stage != "report":
            stamps = [json.loads(p.read_text()) for p in run.path.glob(f"stamps/{stage}*.json")]
            assert stamps
            assert all((run.path / name).exists() for name in files)
