"""Many small files: processor time per file of `check` and `select`, beside reading alone.

    python benchmarks/many_files.py [--files 200] [--rows 10000] [--workers 2]

One file is written by uproot; the others are its bytes with another run number in every row and
another UUID, so that no event and no file stands twice and nothing is accepted that a real
selection would refuse. Every measurement runs in a process of its own, with a few and with all
files: the difference is the cost per file, the rest the start. Limits, in the same run: uproot
opens every file and reads the same branches; and the bytes of the files are read, nothing else.
From 2000 files on `check` runs in processes, from 500 on `select`: their time and memory are not
seen here. Use --workers 1 for the processor time, and the clock for two.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import uproot
from memory import peak_gb
from selection_speed import write_file

from analysis.config.configuration import parse
from analysis.inputs.check import find_mistakes, find_problems, inspect_all, wanted_branches
from analysis.inputs.datasets import datasets
from analysis.inputs.file_report import inspect_file
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.stage import select_events

CONFIG = """
luminosity_inv_fb: 50
samples:
  many: {kind: background, files: 'many_*.root', luminosity_inv_fb: 100}
"""
RUN = 0x5A17C0DE  # stands in every row of the first file, is found in its bytes and replaced
FEW = 20  # as many as `check` looks at the rows of: the others are only opened
WORK = ("check", "select", "uproot", "bytes")


def copies(folder: Path, n_files: int, rows: int) -> None:
    """Files with the rows of one, other run numbers and other UUIDs."""
    first = folder / "first.root"
    write_file(first, rows, run=RUN)
    data = first.read_bytes()
    runs = np.full(rows, RUN, ">i4").tobytes()
    at, uuid = data.index(runs), uproot.open(first).file.uuid.bytes
    place = data.index(uuid, 0, 256)
    rng = np.random.default_rng(1)
    for i in range(n_files):
        mine = bytearray(data)
        mine[at : at + len(runs)] = np.full(rows, i + 1, ">i4").tobytes()
        mine[place : place + 16] = rng.bytes(16)
        (folder / f"many_{i:05d}.root").write_bytes(mine)
    first.unlink()


def work(what: str, folder: Path, workers: int) -> None:
    config = parse(CONFIG, where="benchmark")
    sets = list(datasets(config, folder=folder))
    if what == "check":
        reports = inspect_all(config, sets, workers=workers)
        if find_problems(sets, reports):
            raise SystemExit(find_problems(sets, reports)[0].text)
        find_mistakes(config, sets, reports)
    elif what == "select":
        how = Execution("iterative" if workers == 1 else "auto", workers)
        with tempfile.TemporaryDirectory(dir=folder) as run, open_run(Path(run)) as opened:
            select_events(opened, config, sets, how)
    else:
        report = inspect_file(sets[0].files[0], wanted_branches(config, sets[0]))
        branches = sorted(set(report.branches.values()))
        for file in sets[0].files:
            (read_with_uproot if what == "uproot" else read_bytes)(file, branches)


def read_with_uproot(file: str, branches: list[str]) -> None:
    with uproot.open({file: "variables"}) as tree:
        tree.arrays(branches, library="np")


def read_bytes(file: str, branches: list[str]) -> None:
    """Nothing but the bytes of the file; they are in the page cache."""
    del branches
    Path(file).read_bytes()


def measured(command: list[str]) -> tuple[float, float, float]:
    """Processor time, time on the clock and peak memory (GB) of a command."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - begin
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, clock, float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "FOLDER"), help="used by itself")
    options = parser.parse_args()
    if options.one:
        work(options.one[0], Path(options.one[1]), options.workers)
        print(peak_gb())
        return
    with tempfile.TemporaryDirectory() as name:
        few, many = Path(name) / "few", Path(name) / "many"
        for folder, n in ((few, FEW), (many, options.files)):
            folder.mkdir()
            copies(folder, n, options.rows)
        size = next(many.glob("*.root")).stat().st_size
        print(f"{options.files} files of {options.rows} rows, {size / 1e6:.2f} MB each")
        print(f"{'':8}{'ms/file':>9}{'start s':>9}{'clock s':>9}{'peak GB':>9}")
        for what in WORK:
            own = [sys.executable, __file__, f"--workers={options.workers}", "--one", what]
            measured([*own, str(few)])  # compiles, and fills the caches
            start, _, _ = measured([*own, str(few)])
            spent, clock, peak = measured([*own, str(many)])
            per_file = (spent - start) / (options.files - FEW)
            print(
                f"{what:8}{1e3 * per_file:9.2f}{start - FEW * per_file:9.2f}{clock:9.2f}{peak:9.2f}"
            )


if __name__ == "__main__":
    main()
