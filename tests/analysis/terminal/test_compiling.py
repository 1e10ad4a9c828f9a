"""A word at the first compilation, not at what was compiled before, whoever compiles."""

import logging
import os
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import numba as nb

from analysis.terminal.compiling import MESSAGE, compiling_said, said_for_workers


def ours(body):
    """A function that numba takes for one of our own."""
    scope = {"__name__": "selection.invented"}
    exec(body, scope)  # noqa: S102
    return nb.njit(scope["f"])


def test_it_is_said_once_for_all_functions_of_ours_and_not_afterwards(caplog):
    caplog.set_level(logging.INFO, "analysis")
    f, g = ours("def f(x): return x + 1"), ours("def f(x): return x - 1")
    theirs = nb.njit(lambda x: 2 * x)
    with compiling_said():
        theirs(1)
        assert MESSAGE not in caplog.messages
        f(1)
        g(1)
        f(1)
    assert caplog.messages.count(MESSAGE) == 1
    ours("def f(x): return x")(1)
    assert caplog.messages.count(MESSAGE) == 1
    with compiling_said():
        f(1)  # as compiled above
    assert caplog.messages.count(MESSAGE) == 1


def test_it_is_said_for_workers_that_compile_and_for_no_others(caplog):
    caplog.set_level(logging.INFO, "analysis")
    with said_for_workers(get_context("spawn")):
        pass
    assert MESSAGE not in caplog.messages
    with said_for_workers(get_context("spawn")) as compiling:
        compiling.set()
        for _ in range(500):
            if MESSAGE in caplog.messages:
                break
            time.sleep(0.01)
    assert caplog.messages.count(MESSAGE) == 1


def test_what_is_kept_on_disk_is_not_compiled_again(tmp_path):
    """The same call in two processes: said in the first only."""
    (tmp_path / "search_invented.py").write_text(
        "import numba as nb\n@nb.njit(cache=True)\ndef f(x):\n    return x + 1\n"
    )
    script = (
        "import logging, sys\n"
        "logging.basicConfig(level=logging.INFO, stream=sys.stdout, format='%(message)s')\n"
        "from analysis.terminal.compiling import compiling_said\n"
        "with compiling_said():\n"
        "    from search_invented import f\n"
        "    f(1)\n"
    )
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).resolve().parents[3])])
    said = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": path},
        ).stdout
        for _ in range(2)
    ]
    assert said == [MESSAGE + "\n", ""]


def test_a_command_that_needs_no_linear_algebra_can_still_compile_some():
    """scipy is not asked for a BLAS at the start; a product of matrices finds it when it runs."""
    script = (
        "import sys\n"
        "import numba as nb, numpy as np\n"
        "from analysis.terminal.compiling import alone_in_process, compiling_said\n"
        "alone_in_process()\n"
        "with compiling_said():\n"
        "    nb.njit(lambda x: x + 1)(1)\n"
        "    print('scipy.linalg' in sys.modules)\n"
        "    print(nb.njit(lambda a: a @ a)(np.array([[1.0, 1.0], [0.0, 1.0]]))[0, 1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "2.0"]
