"""Ctrl-C, as a terminal sends it: to every process of the command, at any moment."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

QUICK = [
    "--networks=2",
    "--set=training.bce.epochs=2",
    "--set=training.punzi.epochs=3",
    "--set=training.punzi.refine=2",
    "--set=training.folds=2",
    "--set=training.bce_equal_budget=false",
    "--set=windows.min_events=50",
    "--workers=2",
]

IN_A_DESTRUCTOR = """
import os, signal, sys, time
from analysis import cli

class Trap:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)  # the signal arrives here, and Python forgets the exception

@cli.app.command()
def trap():
    x = Trap()
    del x
    time.sleep(60)

sys.argv = ["punzi", "trap"]
cli.main()
"""

IN_AN_IMPORT = """
import os, signal, sys, time
from analysis import cli

@cli.app.command()
def trap():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except KeyboardInterrupt:
        raise ImportError("a library is half loaded")

sys.argv = ["punzi", "trap"]
cli.main()
"""


@pytest.mark.parametrize("script", [IN_A_DESTRUCTOR, IN_AN_IMPORT], ids=["destructor", "import"])
def test_an_interrupt_that_a_library_swallows_is_not_lost(script):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 130
    assert done.stderr.splitlines() == [
        "punzi: interrupted; what is finished is kept, resume with: punzi trap"
    ]


@pytest.mark.parametrize("begun", ["skim", "plots"])
def test_ctrl_c_ends_a_run_with_one_line_and_no_traceback(small_inputs, tmp_path, begun):
    folder, said = tmp_path / "work", tmp_path / "said.txt"
    shutil.copytree(small_inputs, folder)
    command = [sys.executable, "-m", "analysis.cli", "run", "-r", "long", *QUICK]
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True
        ) as process,
    ):
        while not (folder / "runs/long" / begun).exists() and process.poll() is None:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
    text = said.read_text()
    assert "Traceback" not in text
    assert process.returncode in {130, -signal.SIGINT}, text
    last = text.splitlines()[-1]
    assert last.startswith("punzi: interrupted; what is finished is kept, resume with: punzi run")
    assert not list(folder.rglob("*.tmp*"))
