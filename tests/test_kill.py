"""A run killed at any moment continues, and ends with the bytes of one that was not killed."""

import os
import random
import subprocess
import sys

import pytest

KILLS = 20
OPTIONS = ["-q", "run", "--workers=1", "--chunk-size=4000", "--networks=1"]
OPTIONS += ["--set=training.bce.epochs=20", "--set=training.punzi.epochs=30"]
OPTIONS += ["--set=training.punzi.refine=10"]
OPTIONS += ["--set=training.folds=2", "--set=training.bce_equal_budget=false"]
OPTIONS += ["--set=training.seeds=2"]
OPTIONS += ["--set=plots.signal_masses_gev=[2]", "--set=plots.formats=[]", "--set=plots.dpi=50"]
# drawing is most of the work, and begun anew
# Not compared: the log; the ROOT file, which carries the time of writing (histograms.json has the
# same content) and so the stamp of the page; the page, which shows the name of the run.
LEFT_OUT = {"log.txt", ".lock", "histograms.root", "report.html", "report.json"}

# One process does the whole run itself, and then makes a fresh copy of itself for every attempt: a
# kill falls into the work and not into seconds of imports and of reading compiled code.
FORKS = """
import os, signal, sys, time
import analysis.cli

def ran(words):
    sys.argv = ["punzi", *words]
    try:
        analysis.cli.main()
    except SystemExit as end:
        return end.code or 0

def attempt(words, seconds):
    # True if the run came to its end before it was killed
    begin, child = time.monotonic(), os.fork()
    if child == 0:
        os._exit(ran(words))
    while time.monotonic() - begin < seconds:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0, status
            return True
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False

*words, whole, killed = sys.argv[1:]
assert ran([*words, "-r", whole]) == 0
moments = [float(seconds) for seconds in sys.stdin.read().split()]
ended = [attempt([*words, "-r", killed], moment) for moment in moments]
assert attempt([*words, "-r", killed], 300)
print(ended.count(False))
"""


def results(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in LEFT_OUT
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_do_not_change_a_byte(small_inputs, tmp_path):
    draw = random.Random("kill")
    seconds = [draw.uniform(0.02, 0.8) for _ in range(KILLS - 1)] + [2.5]  # figures last
    command = [sys.executable, "-c", FORKS, *OPTIONS, "-c", str(small_inputs / "datasets.yaml")]
    done = subprocess.run(
        [*command, "whole", "killed"],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # threads of OpenMP do not live on in a copy
        input=" ".join(map(str, seconds)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert int(done.stdout.split()[-1]) >= KILLS // 2  # later attempts find less and less to do
    expected, found = results(tmp_path / "runs/whole"), results(tmp_path / "runs/killed")
    assert found.keys() == expected.keys()
    assert [p for p in expected if found[p] != expected[p]] == []
