"""From ROOT to features and to the skim, against reading alone.

    python benchmarks/selection_speed.py [--events 6000000] [--memory] [--formats]

Makes a file of float32, zstd, 28 branches in a temporary folder. Limit: uproot reads and
decompresses the eight momenta and does nothing else, in the same run; beside it the 18 branches
that a whole selection reads, with one thread and with two. Then our chain: `features` reads and
computes, `full` also cuts, fills all histograms and writes the skim. The ratios of the latter to
reading its branches are of the clock and of the processor: a busy machine spoils the former.
Where ROOT can be imported, RDataFrame computes the same features in compiled C++.
`--memory` selects 60 M events (the file under ten names) and prints the peak memory instead,
`--formats` the processor time of the same selection from a TTree, an RNTuple and parquet.
"""

from __future__ import annotations

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uproot
from memory import peak_gb

from analysis.config.configuration import Configuration, parse
from analysis.config.searches import shipped_search
from analysis.inputs.check import inspect_all
from analysis.inputs.columns import read_columns
from analysis.inputs.datasets import Dataset, datasets
from analysis.inputs.tables import open_table
from analysis.run.executors import Execution, open_executor
from analysis.run.folder import open_run
from analysis.select.chunks import Chunk, plan_chunks
from analysis.select.process import run_chunks
from analysis.select.stage import select_events
from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.definition import search_from, with_changes
from selection.kernel import event_quantities
from selection.ntuple import MOMENTA
from selection.search import Search

CONFIG = """
luminosity_inv_fb: 50
accept: [peak]  # random momenta: nothing peaks
samples:
  signal: {kind: signal, files: one.root, masses_gev: [1], n_generated: 1000}
  background: {kind: background, files: 'big_*.root', luminosity_inv_fb: 100, duplicates: allow}
"""
CHUNK = 2**20
BASKET = 250_000  # rows, as basf2 makes them: not one per file
READ, READ_IN_TWO = "read the branches of full", "... with 2 threads"
FULL, FULL_IN_TWO = "full, iterative", "full, 2 threads"


def write_file(path: Path, n: int, seed: int = 1, *, run: int = 1) -> None:
    """28 branches: the contract, the identity, and what else an ntuple carries.

    By the ending a TTree, an RNTuple (`.ntuple.root`) or parquet, in blocks alike. The run number
    of a tree is not compressed, so that its bytes can be found and changed.
    """
    rng = np.random.default_rng(seed)
    p = rng.normal(0, 2, (2, 3, n)).astype(np.float32)
    e = np.sqrt((p**2).sum(axis=1) + np.float32(MUON_MASS_GEV**2))
    columns = dict(zip(MOMENTA, [*p[0], e[0], *p[1], e[1]], strict=True))
    for name in ("mu_plus_id", "mu_minus_id"):
        columns[name] = rng.uniform(0.3, 1, n).astype(np.float32)
    columns["extra_energy"] = rng.exponential(0.2, n).astype(np.float32)
    columns["photon_recoil_angle"] = rng.uniform(0, 3, n).astype(np.float32)
    for i, name in enumerate(("__experiment__", "__run__", "__event__", "__production__")):
        columns[name] = np.full(n, (0, run, 0, 3)[i], np.int32)
    columns["__event__"] = np.arange(n, dtype=np.int32)
    columns["__candidate__"] = np.zeros(n, np.int32)
    columns["__ncandidates__"] = np.ones(n, np.int32)
    for i in range(28 - len(columns)):
        columns[f"other_{i}"] = rng.normal(size=n).astype(np.float32)
    if path.suffix == ".parquet":
        how = {"compression": "zstd", "compression_level": 1, "use_dictionary": False}
        blocks = {
            "row_group_size": BASKET,
            "max_rows_per_page": BASKET,
            "data_page_size": 8 * BASKET,
        }
        pq.write_table(pa.table(columns), path, **how, **blocks)
        return
    with uproot.recreate(path, compression=uproot.ZSTD(1)) as file:
        kinds = {k: v.dtype for k, v in columns.items()}
        if ".ntuple" in path.suffixes:
            tree = file.mkrntuple("variables", kinds)
        else:
            tree = file.mktree("variables", kinds)
            tree.compression = {**dict.fromkeys(columns, uproot.ZSTD(1)), "__run__": None}
        for start in range(0, n, BASKET):
            tree.extend({k: v[start : start + BASKET] for k, v in columns.items()})


@dataclass(frozen=True)
class FeaturesOnly:
    """Reads the eight momenta and computes, nothing else."""

    search: Search

    def __call__(self, chunk: Chunk) -> dict[str, dict[str, float]]:
        table = open_table(chunk.file, chunk.tree, chunk.fingerprint)
        columns = read_columns(
            lambda name: table.read(name, chunk.start, chunk.stop), chunk.branches
        )
        found = event_quantities(self.search, columns, SUPERKEKB)
        return {chunk.shard: {"sum": float(found.features[0, :10].sum())}}


def read_only(path: Path, n: int, branches: Sequence[str] = MOMENTA) -> None:
    with uproot.open({path: "variables"}) as tree:
        for start in range(0, n, CHUNK):
            tree.arrays(list(branches), entry_start=start, entry_stop=start + CHUNK, library="np")


def read_in_threads(path: Path, n: int, branches: Sequence[str], threads: int) -> None:
    """The same, a chunk to each thread: what uproot alone makes of so many cores."""

    def read(start: int) -> None:
        with uproot.open({path: "variables"}) as tree:
            stop = start + CHUNK
            tree.arrays(list(branches), entry_start=start, entry_stop=stop, library="np")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, range(0, n, CHUNK)))


def only_errors() -> None:
    """Without what is said of random momenta, which come from nowhere and weigh too much."""
    logging.getLogger("analysis").setLevel(logging.ERROR)


def planned(config: Configuration, sets: list[Dataset]) -> list[Chunk]:
    """Chunks that read the momenta only; made once per file, not part of the rate."""
    reports = inspect_all(config, sets, workers=1)
    chunks = plan_chunks(config, sets, reports, chunk_size=CHUNK)
    return [replace(chunk, branches={name: name for name in MOMENTA}) for chunk in chunks]


def without_cuts() -> Search:
    """The search of the paper, which then needs momenta only."""
    search = shipped_search("dimuon_recoil")
    off = dict.fromkeys(search.cuts)
    return search_from(with_changes(search.plain(), features={}, cuts=off))


def features(chunks: list[Chunk], how: Execution) -> None:
    with open_executor(how) as opened:
        found = run_chunks(opened, chunks, FeaturesOnly(without_cuts()), {})
        assert len(found) == len(chunks)


def full(folder: Path, config: Configuration, sets: list[Dataset], how: Execution) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as run, open_run(Path(run)) as opened:
        select_events(opened, config, sets, how)


def rdataframe(path: Path) -> Callable[[], float] | None:
    """The event loop as one compiled function: nothing is compiled again when it is called."""
    os.environ.setdefault("EXTRA_CLING_ARGS", "-O2")
    try:
        import ROOT
    except ImportError:
        return None
    ROOT.EnableImplicitMT(2)
    ROOT.gInterpreter.Declare(CPP)
    return lambda: float(ROOT.sums_of_features(str(path)))


_PX, _PY, _PZ, _E = SUPERKEKB.total
CPP = f"""
#include <Math/Vector4D.h>
#include <Math/Vector3D.h>
#include <Math/GenVector/Boost.h>
#include <ROOT/RDataFrame.hxx>
#include <array>
std::array<double, 5> features(float ax, float ay, float az, float ae,
                               float bx, float by, float bz, float be) {{
    using V = ROOT::Math::PxPyPzEVector;
    static const V beams({_PX}, {_PY}, {_PZ}, {_E});
    static const ROOT::Math::Boost boost(beams.BoostToCM());
    static const auto axis = boost(V({SUPERKEKB.electron_direction[0]}, 0,
                                     {SUPERKEKB.electron_direction[2]}, 1)).Vect().Unit();
    const V a(ax, ay, az, ae), b(bx, by, bz, be);
    const auto p1 = boost(a), p2 = boost(b);
    const auto u = p1.Vect(), v = p2.Vect(), both = u + v;
    const double cross = std::sqrt(u.Cross(v).Mag2());
    const double soft = p1.E() < p2.E() ? u.R() : v.R();
    return {{(beams - (a + b)).M2(), cross / std::sqrt(std::max(both.Mag2(), (u - v).Mag2())),
             cross / soft, u.Dot(v) / soft, std::sqrt(both.Cross(axis).Mag2())}};
}}
double sums_of_features(const std::string& path) {{
    ROOT::RDataFrame frame("variables", path);
    auto all = frame.Define("f", features, {{{", ".join(f'"{name}"' for name in MOMENTA)}}});
    auto add = [](std::array<double, 5> a, const std::array<double, 5>& b) {{
        for (int i = 0; i < 5; ++i) a[i] += b[i];
        return a;
    }};
    return (*all.Reduce(add, "f", std::array<double, 5>{{}}))[0];
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=6_000_000)  # as many chunks per thread
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--formats", action="store_true")
    options = parser.parse_args()
    n = options.events
    only_errors()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.formats:
            measure_formats(folder, n, options.rounds)
            return
        write_file(folder / "big_0.root", n)
        write_file(folder / "one.root", 1000)
        if options.memory:
            for i in range(1, 10):
                os.link(folder / "big_0.root", folder / f"big_{i}.root")
        config = parse(CONFIG, where="benchmark")
        sets = list(datasets(config, folder=folder))
        if options.memory:
            measure_memory(folder, config, sets, 10 * n)
            return
        measure_speed(folder, config, sets, n, options.rounds)


def measure_memory(folder: Path, config: Configuration, sets: list[Dataset], n: int) -> None:
    begin = time.perf_counter()
    full(folder, config, sets, Execution("threads", 2, chunk_size=CHUNK))
    seconds = time.perf_counter() - begin
    rate = n / seconds / 1e6
    print(f"select of {n:,} events, 10 files: {rate:.2f} M events/s, peak {peak_gb():.2f} GB")


def measure_formats(folder: Path, n: int, rounds: int) -> None:
    """The same events as TTree, RNTuple and parquet, selected in turns on one core."""
    spent: dict[str, list[float]] = {}
    write_file(folder / "one.root", 1000)
    for ending in ("root", "ntuple.root", "parquet"):
        write_file(folder / f"big.{ending}", n)
    for turn in range(rounds + 1):
        for ending in ("root", "ntuple.root", "parquet"):
            config = parse(CONFIG.replace("big_*.root", f"big.{ending}"), where="benchmark")
            sets = list(datasets(config, folder=folder))
            before = time.process_time()
            full(folder, config, sets, Execution("iterative", 1))
            if turn:  # the first compiles
                spent.setdefault(ending, []).append(time.process_time() - before)
    for ending, seconds in spent.items():
        size = (folder / f"big.{ending}").stat().st_size / 1e6
        each = float(np.median(seconds)) / n * 1e9
        print(f"  big.{ending:12} {size:6.0f} MB {each:6.0f} ns of processor time per event")


def measure_speed(
    folder: Path, config: Configuration, sets: list[Dataset], n: int, rounds: int
) -> None:
    big = folder / "big_0.root"
    chunks = planned(config, [ds for ds in sets if ds.sample == "background"])
    report = inspect_all(config, sets, workers=1)["background"][0]
    same = sorted(set(report.branches.values()))
    work: dict[str, Callable[[], object]] = {
        "read eight branches (limit)": lambda: read_only(big, n),
        READ: lambda: read_only(big, n, same),
        READ_IN_TWO: lambda: read_in_threads(big, n, same, 2),
        "features, iterative": lambda: features(chunks, Execution("iterative", 1)),
        "features, 2 threads": lambda: features(chunks, Execution("threads", 2)),
        FULL: lambda: full(folder, config, sets, Execution("iterative", 1)),
        FULL_IN_TWO: lambda: full(folder, config, sets, Execution("threads", 2)),
    }
    root = rdataframe(big)
    if root is None:
        print("ROOT cannot be imported: no comparison with RDataFrame")
    else:
        work["RDataFrame, 2 threads"] = root
    for call in work.values():
        call()  # compiles, and fills the page cache
    clock: dict[str, list[float]] = {name: [] for name in work}
    spent: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, call in work.items():
            begin, before = time.perf_counter(), time.process_time()
            call()
            clock[name].append(time.perf_counter() - begin)
            spent[name].append(time.process_time() - before)
    best = {name: min(seconds) for name, seconds in clock.items()}
    limit = best["read eight branches (limit)"]
    print(f"{n:,} events, float32, zstd, 28 branches, {big.stat().st_size / 1e6:.0f} MB")
    for name, seconds in best.items():
        print(
            f"  {name:28s} {n / seconds / 1e6:7.2f} M events/s  {limit / seconds:6.2f} of the limit"
            f"  {np.median(spent[name]) / n * 1e9:5.0f} ns of processor time per event"
        )
    print("  full against reading its branches:      clock (best)  processor time (median)")
    for name, against in ((FULL, READ), (FULL_IN_TWO, READ_IN_TWO), (FULL_IN_TWO, READ)):
        of_time = np.median(spent[against]) / np.median(spent[name])
        text = f"{name} / {against}"
        print(f"    {text:46s} {best[against] / best[name]:5.2f} {of_time:10.2f}")
    if root is not None:
        ratio = best["RDataFrame, 2 threads"] / best["features, 2 threads"]
        print(f"  features, 2 threads / RDataFrame = {ratio:.1f}")


if __name__ == "__main__":
    main()
