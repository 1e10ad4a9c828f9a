"""A pool of processes serves the one that made it, and runs nothing else again."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
from analysis.terminal.interrupts import process_pool

print("begins")
with process_pool(2) as pool:
    print(sum(pool.map(abs, [-1, -2, -3])))
"""


def test_a_script_without_a_guard_is_run_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("begins\n6\n", 0), done.stderr
