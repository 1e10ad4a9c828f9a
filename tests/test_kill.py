"""A run killed at any moment continues, and ends with the bytes of one that was not killed."""

import random
import signal
import subprocess
import sys
import time

import pytest

KILLS = 20
COMMAND = [sys.executable, "-m", "analysis.cli", "-q", "run", "--workers=1", "--chunk-size=4000"]
COMMAND += ["--networks=2", "--set=training.bce.epochs=20", "--set=training.punzi.epochs=40"]
# the same results under another name: log lines, locks and half-finished work do not count
LEFT_OUT = {"log.txt", ".lock"}


def results(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in LEFT_OUT
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_do_not_change_a_byte(small_inputs, tmp_path):
    config = ["-c", str(small_inputs / "datasets.yaml")]
    begin = time.monotonic()
    subprocess.run([*COMMAND, *config, "-r", "whole"], cwd=tmp_path, check=True)
    duration = time.monotonic() - begin
    draw = random.Random(3)
    done = 0
    for name in ("first", "second", "third"):
        command = [*COMMAND, *config, "-r", name]
        finished = False
        while not finished and done < KILLS:
            with subprocess.Popen(command, cwd=tmp_path) as process:
                try:
                    process.wait(draw.uniform(0.15, 0.6) * duration)
                    finished = True
                    assert process.returncode == 0
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    done += 1
        subprocess.run(command, cwd=tmp_path, check=True)
        expected, found = (results(tmp_path / "runs" / n) for n in ("whole", name))
        assert found.keys() == expected.keys()
        different = [p for p in expected if found[p] != expected[p] and "report" not in p]
        assert different == []
    assert done >= KILLS or name == "third"
