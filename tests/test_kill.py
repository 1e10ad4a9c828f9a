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
# Not compared: the log; the ROOT file, which carries the time of writing (histograms.json has the
# same content); the page, which shows the name of the run.
LEFT_OUT = {"log.txt", ".lock", "histograms.root", "report.html"}


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
    command = [*COMMAND, *config, "-r", "killed"]
    for _ in range(KILLS):
        with subprocess.Popen(command, cwd=tmp_path) as process:
            try:
                # from the middle of the imports to the last figures of an unharmed run
                process.wait(draw.uniform(0.1, 0.9) * min(duration, 7.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            else:
                assert process.returncode == 0
                break
    subprocess.run(command, cwd=tmp_path, check=True)
    expected, found = (results(tmp_path / "runs" / name) for name in ("whole", "killed"))
    assert found.keys() == expected.keys()
    assert [p for p in expected if found[p] != expected[p]] == []
