"""A run killed at any moment continues, and ends with the bytes of one that was not killed."""

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

KILLS = 20  # half of them in each of two runs, side by side
COMMAND = [sys.executable, "-m", "analysis.cli", "-q", "run", "--workers=1", "--chunk-size=4000"]
COMMAND += ["--networks=2", "--set=training.bce.epochs=20", "--set=training.punzi.epochs=40"]
# Not compared: the log; the ROOT file, which carries the time of writing (histograms.json has the
# same content); the page, which shows the name of the run.
LEFT_OUT = {"log.txt", ".lock", "histograms.root", "report.html"}


def results(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in LEFT_OUT
    }


def killed(name, *, config, folder, longest):
    """The results of a run that was killed again and again, at random moments."""
    draw, command = random.Random(name), [*COMMAND, *config, "-r", name]
    for _ in range(KILLS // 2):
        with subprocess.Popen(command, cwd=folder) as process:
            try:
                # from the middle of the imports to the last figures of an unharmed run
                process.wait(draw.uniform(0.1, 0.9) * longest)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            else:
                assert process.returncode == 0
                break
    subprocess.run(command, cwd=folder, check=True)
    return results(folder / "runs" / name)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_do_not_change_a_byte(small_inputs, tmp_path):
    config = ["-c", str(small_inputs / "datasets.yaml")]
    begin = time.monotonic()
    subprocess.run([*COMMAND, *config, "-r", "whole"], cwd=tmp_path, check=True)
    longest = min(time.monotonic() - begin, 7.0)
    expected = results(tmp_path / "runs/whole")
    kill = partial(killed, config=config, folder=tmp_path, longest=longest)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(kill, ("one", "two")):
            assert found.keys() == expected.keys()
            assert [p for p in expected if found[p] != expected[p]] == []
