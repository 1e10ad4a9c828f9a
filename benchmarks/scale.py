"""Cost per event and peak memory from 0.1 M to 50 M events.

    python benchmarks/scale.py [--largest 50000000]

Selection (features, cuts, histograms, skim; two threads) on linked copies of one file, and one
Punzi epoch (sums and gradient, two threads) on synthetic events. Every size runs in a process of
its own, so that its peak memory is its own. Flat means: a size ten times larger takes ten times
longer, and selection needs no more memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selection_speed import CHUNK, CONFIG, full, write_file
from training_speed import FORMULA, fresh, synthetic_events, warm_up

from analysis.config.configuration import parse
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from models.training.group_sums import group_sums
from models.training.losses import punzi_loss
from models.training.threads import shared_map

SIZES = (100_000, 1_000_000, 5_000_000, 50_000_000)
FILE = 5_000_000  # events of one file; larger sizes are several links to it


def selection_seconds(n: int, folder: Path) -> float:
    config = parse(CONFIG, where="benchmark")
    sets = list(datasets(config, folder=folder / str(n)))
    begin = time.perf_counter()
    full(folder, config, sets, Execution("threads", 2, chunk_size=CHUNK))
    return time.perf_counter() - begin


def prepare(n: int, folder: Path) -> None:
    own = folder / str(n)
    own.mkdir()
    write_file(own / "one.root", 1000)
    source = folder / f"{min(n, FILE)}.root"
    if not source.exists():
        write_file(source, min(n, FILE))
    for i in range(max(1, n // FILE)):
        os.link(source, own / f"big_{i}.root")


def epoch_seconds(n: int) -> float:
    warm_up()
    data = synthetic_events(n)
    network, loss = fresh(data), punzi_loss(FORMULA, power=0.0)
    best = float("inf")
    with shared_map(2) as over:
        for _ in range(3):
            begin = time.perf_counter()
            sums = group_sums(network, data.whole, over=over)
            loss.of(sums, data).backward()
            best = min(best, time.perf_counter() - begin)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "N", "FOLDER"), help="used by itself")
    options = parser.parse_args()
    if options.one:
        what, n, folder = options.one
        seconds = (
            selection_seconds(int(n), Path(folder)) if what == "select" else epoch_seconds(int(n))
        )
        print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
        return
    print(f"{'':8}{'events':>12}{'seconds':>10}{'ns/event':>10}{'peak GB':>9}")
    with tempfile.TemporaryDirectory() as name:
        for what in ("select", "epoch"):
            for n in (size for size in SIZES if size <= options.largest):
                if what == "select":
                    prepare(n, Path(name))
                command = [sys.executable, __file__, "--one", what, str(n), name]
                words = subprocess.run(command, capture_output=True, check=True, text=True).stdout
                seconds, peak = map(float, words.split()[-2:])
                print(f"{what:8}{n:12,}{seconds:10.2f}{seconds / n * 1e9:10.1f}{peak:9.2f}")


if __name__ == "__main__":
    main()
