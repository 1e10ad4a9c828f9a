"""A word at the first compilation, not at what was compiled before, whoever compiles."""

import importlib
import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numba as nb
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.terminal.compiling import MESSAGE, compile_in_turn, compiling_said, said_for_workers


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
        compiling.told.set()
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


def test_a_command_that_reads_parquet_loads_nothing_that_others_register_with_numba(tmp_path):
    """It is the first compiled code of `check`: vector, and sympy with it, are 0.7 s."""
    pq.write_table(pa.table({"x": [1.0, 2.0]}), tmp_path / "a.parquet")
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from analysis.inputs.parquet_table import ParquetTable\n"
        "from analysis.terminal.compiling import alone_in_process\n"
        "alone_in_process()\n"
        "print(ParquetTable(Path(sys.argv[1])).plain.read('x', 0, 2).sum())\n"
        "print('numba' in sys.modules, 'sympy' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "a.parquet"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["3.0", "True", "False"]


def test_options_of_one_kernel_are_not_those_of_another_compiled_after_it():
    """max is compiled for the options of who calls it; a strict one knows nan."""
    script = (
        "import re\n"
        "import numba as nb\n"
        "from analysis.terminal.compiling import alone_in_process, compiling_said\n"
        "alone_in_process()\n"
        "with compiling_said():\n"
        "    for options in ({'fastmath': True}, {}):\n"
        "        kernel = nb.njit(**options)(lambda a, b: max(a, b))\n"
        "        kernel(1.0, 2.0)\n"
        "        found = kernel.inspect_llvm(kernel.signatures[0])\n"
        "        print(bool(re.search(r'fcmp (fast|.*nnan)|select fast|maxnum', found)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"]


def start(compiling, barrier, folder):
    compile_in_turn(compiling)
    sys.path.insert(0, folder)
    barrier.wait()  # both begin together


def compiled_here(number):
    invented = importlib.import_module("search_shared")
    invented.f(number)
    return sum(invented.f.stats.cache_misses.values())


def test_two_workers_compile_what_both_need_once(tmp_path):
    (tmp_path / "search_shared.py").write_text(
        "import numba as nb\n@nb.njit(cache=True)\ndef f(x):\n    return x + 1\n"
    )
    context = get_context("spawn")
    with said_for_workers(context) as compiling:
        given = (compiling, context.Barrier(3), str(tmp_path))
        with ProcessPoolExecutor(2, mp_context=context, initializer=start, initargs=given) as pool:
            found = [pool.submit(compiled_here, n) for n in range(2)]
            given[1].wait(60)
            assert sum(f.result() for f in found) == 1
