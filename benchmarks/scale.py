"""Cost per event and peak memory from 0.1 M to 100 M events, and the same bytes from a cluster.

    python benchmarks/scale.py [--largest 100000000] [--rounds 5] [--only select]
    python benchmarks/scale.py --cluster 10000000

Selection (features, cuts, histograms, skim; two threads) on linked copies of one file, and one
Punzi epoch (sums and gradient, two threads) on synthetic events. Every size runs in a process of
its own, so that its peak memory is its own, and all sizes run in turns, of which the best counts.
Flat means: a size ten times larger takes ten times longer, and selection needs no more memory.
`more` is the cost of each event beyond the size before, without what a run costs once.
`--cluster N` selects N events here and on a dask cluster of four workers, in chunks of 250 000, and
compares every file of the two run folders byte by byte.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from memory import peak_gb
from selection_speed import CHUNK, CONFIG, full, only_errors, write_file
from training_speed import FORMULA, fresh, synthetic_events, warm_up

from analysis.config.configuration import parse
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.stage import select_events
from models.training.group_sums import group_sums
from models.training.losses import punzi_loss
from models.training.threads import shared_map

SIZES = (100_000, 1_000_000, 5_000_000, 25_000_000, 50_000_000, 100_000_000)
FILE = 5_000_000  # events of one file; larger sizes are several links to it
CLUSTER_CHUNK = 250_000
# dates and a random UUID stand in these; the same numbers stand in histograms.json
DATED = ("histograms.root", "stamps", "log", "provenance")


@dataclass(frozen=True)
class Cost:
    """Of one size in one process."""

    clock_s: float
    cpu_s: float
    peak_gb: float


def select(n: int, folder: Path) -> None:
    config = parse(CONFIG, where="benchmark")
    sets = list(datasets(config, folder=folder / str(n)))
    full(folder, config, sets, Execution("threads", 2, chunk_size=CHUNK))


def prepare(n: int, folder: Path) -> None:
    own = folder / str(n)
    own.mkdir()
    write_file(own / "one.root", 1000)
    source = folder / f"{min(n, FILE)}.root"
    if not source.exists():
        write_file(source, min(n, FILE))
    for i in range(max(1, n // FILE)):
        os.link(source, own / f"big_{i}.root")


def timed(what: str, n: int, folder: Path) -> tuple[float, float]:
    """Seconds on the clock and of the processor; of an epoch the best of three."""
    if what == "select":
        begin, spent = time.perf_counter(), time.process_time()
        select(n, folder)
        return time.perf_counter() - begin, time.process_time() - spent
    warm_up()
    data = synthetic_events(n)
    network, loss = fresh(data), punzi_loss(FORMULA, power=0.0)
    found = []
    with shared_map(2) as over:
        for _ in range(3):
            begin, spent = time.perf_counter(), time.process_time()
            loss.of(group_sums(network, data.whole, over=over), data).backward()
            found.append((time.perf_counter() - begin, time.process_time() - spent))
    return min(found)


def measured(what: str, n: int, folder: Path) -> Cost:
    command = [sys.executable, __file__, "--one", what, str(n), str(folder)]
    words = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return Cost(*map(float, words.split()[-3:]))


def compare_with_cluster(n: int, folder: Path) -> None:
    """The run folders of this machine and of a cluster, file by file."""
    prepare(n, folder)
    config = parse(CONFIG, where="benchmark")
    sets = list(datasets(config, folder=folder / str(n)))
    runs = {}
    for name, workers in (("threads", 2), ("dask", 4)):
        how = Execution(name, workers, chunk_size=CLUSTER_CHUNK)
        begin = time.perf_counter()
        with open_run(folder / name) as opened:
            select_events(opened, config, sets, how)
        print(f"{name:8}{workers} workers{time.perf_counter() - begin:8.1f} s")
        runs[name] = files_of(folder / name)
    here, there = runs["threads"], runs["dask"]
    same = [name for name in here if here[name] == there.get(name)]
    other = sorted({*here, *there} - set(same))
    size = sum(len(here[name]) for name in same) / 1e6
    print(f"{len(same)} files, {size:.0f} MB, the same")
    if other:
        msg = f"{len(other)} files are not the same, the first {other[:5]}"
        raise SystemExit(msg)


def files_of(run: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(run)): p for p in run.rglob("*") if p.is_file()}
    return {n: p.read_bytes() for n, p in found.items() if not n.startswith(DATED)}


def best_costs(what: str, sizes: list[int], rounds: int, folder: Path) -> dict[int, Cost]:
    """Size -> least seconds and largest memory of all rounds; a busy moment hits all sizes."""
    for n in sizes if what == "select" else ():
        prepare(n, folder)
    found: dict[int, list[Cost]] = {n: [] for n in sizes}
    for _ in range(rounds):
        for n in sizes:
            found[n].append(measured(what, n, folder))
    return {
        n: Cost(min(c.clock_s for c in of), min(c.cpu_s for c in of), max(c.peak_gb for c in of))
        for n, of in found.items()
    }


def print_costs(what: str, costs: dict[int, Cost]) -> None:
    print(f"{what:8}{'events':>12}{'clock s':>9}{'cpu s':>8}{'ns/event':>10}{'more':>7}{'GB':>7}")
    before_n, before_s = 0, 0.0
    for n, cost in costs.items():
        each, more = cost.cpu_s / n * 1e9, (cost.cpu_s - before_s) / (n - before_n) * 1e9
        before_n, before_s = n, cost.cpu_s
        print(
            f"{'':8}{n:12,}{cost.clock_s:9.2f}{cost.cpu_s:8.2f}{each:10.1f}{more:7.0f}"
            f"{cost.peak_gb:7.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=("select", "epoch"))
    parser.add_argument("--cluster", type=int, metavar="N")
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "N", "FOLDER"), help="used by itself")
    options = parser.parse_args()
    only_errors()
    if options.one:
        what, n, name = options.one
        spent = timed(what, int(n), Path(name))
        print(*spent, peak_gb())
        return
    with tempfile.TemporaryDirectory() as name:
        if options.cluster:
            compare_with_cluster(options.cluster, Path(name))
            return
        for what in ("select", "epoch") if options.only is None else (options.only,):
            sizes = [size for size in SIZES if size <= options.largest]
            print_costs(what, best_costs(what, sizes, options.rounds, Path(name)))


if __name__ == "__main__":
    main()
