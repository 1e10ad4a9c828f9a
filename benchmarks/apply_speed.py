"""`punzi apply` against reading its input branches alone, in turns, on the same file.

    python benchmarks/apply_speed.py [--events 10000000] [--threads 2] [--rounds 5]
                                     [--models 5] [--folds 5] [--skim] [--formats]

The file: signal-like muon pairs, float32, zstd, one basket per 500 000 rows, only the branches
that apply needs: 13, and with several folds 4 of the event's identity. Reading is uproot with the
same chunks and threads, arrays thrown away: once as uproot opens files unasked, once as apply does.
apply does all it does for a person: checks, score, friend tree on disk, spectra. Processor seconds
are shown beside wall seconds because they also hold on a machine that has other work.

--models applies an ensemble of as many models, --folds of as many networks each, one for every
event, as `punzi train` makes them; --skim copies the events that pass, one in ten,
instead of writing a friend tree. --formats applies the model to the same events as TTree, RNTuple
and parquet, in turns, each with one block (basket, page, row group of one page) per 500 000 rows
and the same compression; and as parquet in pages of 20 000 rows: as pandas writes it unasked (lists
of values, snappy, groups of 2^20 rows), as awkward does (zstd, one group), and with lists and zstd.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import uproot

from analysis.apply.command import apply_model
from analysis.apply.plan import Request
from analysis.apply.rows import FileRows, columns_of, planned_rows
from analysis.config.searches import shipped_search
from analysis.inputs.tables import open_table
from analysis.run.executors import Execution
from models.network import PunziNet
from models.trained import Conditions, from_network, joined_folds, save_model
from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.ntuple import DEFAULT_BRANCHES, EVENT_COLUMNS, MOMENTA
from selection.windows import MassWindows
from simulation.recipe import Recipe
from simulation.samples import simulate

BASKET = 500_000
PIECE = 2**19  # rows; what is asked for unasked
SOURCE_EVENTS = 60_000
CANDIDATES = "__ncandidates__"
SEARCH = shipped_search("dimuon_recoil")
BRANCHES = (*SEARCH.columns, CANDIDATES)
IDENTITY = tuple(DEFAULT_BRANCHES[name] for name in EVENT_COLUMNS)


def write_ntuple(path: Path, branches: tuple[str, ...], n: int, rng: np.random.Generator) -> None:
    """Simulated signal at three masses, drawn again and again with the momenta smeared by 1 %."""
    recipes = [Recipe("signal", SOURCE_EVENTS, 1, mass_gev=m) for m in (1.0, 4.0, 7.0)]
    rows = [simulate(recipe).rows for recipe in recipes]
    seen = np.concatenate([r.seen.reshape(len(r), 8) for r in rows])
    extra = np.concatenate([r.extra_energy for r in rows])
    angle = np.concatenate([r.photon_recoil_angle for r in rows])
    kinds = {b: np.int32 if b.startswith("__") else np.float32 for b in branches}
    with uproot.recreate(path, compression=uproot.ZSTD(3)) as file:
        tree = file.mktree("variables", kinds)
        for start in range(0, n, BASKET):
            size = min(BASKET, n - start)
            pick = rng.integers(0, len(seen), size)
            columns = {}
            for muon in (0, 4):
                p = seen[pick, muon : muon + 3].T * rng.normal(1, 0.01, size)
                energy = np.sqrt((p**2).sum(axis=0) + MUON_MASS_GEV**2)
                names = MOMENTA[muon : muon + 4]
                columns |= dict(zip(names, (*p, energy), strict=True))
            columns |= {name: np.ones(size) for name in ("mu_plus_id", "mu_minus_id")}
            columns |= {"extra_energy": extra[pick], "photon_recoil_angle": angle[pick]}
            columns[CANDIDATES] = np.ones(size)
            run, event = np.divmod(np.arange(start, start + size), 10_000)  # as basf2 counts them
            columns |= dict(zip(IDENTITY, (np.full(size, 12), run, event, run % 3), strict=True))
            tree.extend({name: columns[name].astype(kinds[name]) for name in branches})


def write_copies(tree: Path) -> dict[str, Path]:
    """The same events in every format that is read."""
    files = {
        "TTree": tree,
        "RNTuple": tree.with_stem("rntuple"),
        "parquet": tree.with_suffix(".pq"),
        "of pandas": tree.with_name("pandas.pq"),
        "of awkward": tree.with_name("awkward.pq"),
        "lists, zstd": tree.with_name("lists.pq"),
    }
    with uproot.open(tree) as file:
        events = file["variables"]
        kinds = {b.name: b.interpretation.to_dtype.newbyteorder("=") for b in events.branches}
        schema = pa.schema([(name, pa.from_numpy_dtype(kind)) for name, kind in kinds.items()])
        zstd = {"compression": "zstd", "compression_level": 3}
        how = zstd | {"data_page_size": 8 * BASKET, "max_rows_per_page": BASKET}
        with (
            uproot.recreate(files["RNTuple"], compression=uproot.ZSTD(3)) as other,
            pq.ParquetWriter(files["parquet"], schema, use_dictionary=False, **how) as parquet,
            pq.ParquetWriter(files["lists, zstd"], schema, **zstd) as small,
        ):
            ntuple = None
            for columns in events.iterate(step_size=BASKET, library="np"):
                if ntuple is None:
                    ntuple = other.mkrntuple("variables", kinds)
                ntuple.extend({name: columns[name] for name in kinds})
                for writer in (parquet, small):
                    writer.write_table(pa.table(columns, schema=schema), row_group_size=BASKET)
    whole = pq.read_table(files["parquet"])
    pq.write_table(whole, files["of pandas"])
    unlisted = {"use_dictionary": False, "row_group_size": 2**26}
    pq.write_table(whole, files["of awkward"], **unlisted, **zstd)
    return files


def write_model(path: Path, seed: int, n_folds: int) -> None:
    mass = np.arange(0.1, 8.95, 0.1)
    conditions = Conditions(
        classifier="punzi",
        cut=0.5,
        sqrt_s_gev=SUPERKEKB.sqrt_s_gev,
        luminosity_inv_fb=50.0,
        beams=asdict(SUPERKEKB),
        training={},
        provenance={},
    )
    windows = MassWindows(mass, np.full(len(mass), 0.2), 2.0, squared=True)
    trained = np.ones(len(mass), bool)
    low, high = np.array([0, 0, -6, 0.0]), np.array([5, 6, 2, 5.0])
    folds = [
        from_network(
            PunziNet(low, high, seed=seed + 100 * fold),
            search=SEARCH,
            windows=windows,
            trained=trained,
            conditions=conditions,
        )
        for fold in range(n_folds)
    ]
    save_model(joined_folds(folds), path)


def read_only(file: Path, n: int, threads: int, *, plain: bool) -> None:
    branches = uproot.open(file)["variables"].keys()
    whole = FileRows(str(file), "variables", "", {name: name for name in branches}, 0, n)
    pieces = planned_rows(whole, chunk_size=BASKET)
    tree = uproot.open(file, array_cache=None, object_cache=None)["variables"]

    def read(rows: FileRows) -> int:
        if not plain:
            return len(columns_of(rows))
        at = {"entry_start": rows.start, "entry_stop": rows.stop, "library": "np"}
        return len(tree.arrays(branches, **at))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, pieces))
    open_table.cache_clear()


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--skim", action="store_true")
    parser.add_argument("--formats", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "FILE", "OUT"), help="used by itself")
    options = parser.parse_args()
    if options.one:
        apply_one(*options.one, options.threads)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "events.root"
        branches = BRANCHES + (IDENTITY if options.folds > 1 else ())
        write_ntuple(file, branches, options.events, np.random.default_rng(1))
        models = tuple(folder / f"net-{i:02d}.safetensors" for i in range(options.models))
        for i, path in enumerate(models):
            write_model(path, 1 + i, options.folds)
        how = Execution("threads", options.threads, None, PIECE)
        ask = Request(models, (str(file),), folder / "out")
        if options.skim:
            ask = replace(ask, skim=True, cut=cut_of_a_tenth(ask, how))
        what = f"{options.models} models of {options.folds} folds, "
        what += "skim" if options.skim else "friend tree"
        print(
            f"{options.events} events, {options.threads} threads, {what}, best of {options.rounds}"
        )
        (compare_formats if options.formats else compare_with_reading)(ask, how, options)


def cut_of_a_tenth(ask: Request, how: Execution) -> float:
    """The cut on the score that one event in ten passes."""
    friend = replace(ask, output=ask.output.with_name("friend"))
    apply_model(friend, how)
    with uproot.open(friend.output / "events.friend.root") as file:
        score = file["punzi"]["score"].array(library="np", entry_stop=BASKET)
    return float(np.nanquantile(score, 0.9))


def compare_with_reading(ask: Request, how: Execution, options: argparse.Namespace) -> None:
    """uproot, our reader and apply, in turns: a busy moment hits all."""
    apply_model(ask, how)  # compiles the kernels, fills the page cache
    file, turns = Path(ask.files[0]), []
    for _ in range(options.rounds):
        reads = [
            seconds(lambda p=plain: read_only(file, options.events, options.threads, plain=p))
            for plain in (True, False)
        ]
        shutil.rmtree(ask.output)
        turns.append([*reads, seconds(lambda: apply_model(ask, how))])
    size = next(ask.output.glob("events.*.root")).stat().st_size
    print(f"input {file.stat().st_size / options.events:.1f} bytes/event on disk, "
          f"output {size / options.events:.1f}")  # fmt: skip
    for kind, found in zip(("wall", "processor"), np.min(turns, axis=0).T, strict=True):
        plain, own, apply = options.events / 1e6 / found
        print(
            f"{kind:9} M events/s: uproot {plain:5.1f}, our reader {own:5.1f}, apply {apply:5.1f}: "
            f"apply is {apply / plain:.0%} and {apply / own:.0%} of reading"
        )


def compare_formats(ask: Request, how: Execution, options: argparse.Namespace) -> None:
    """The same events in each format, in turns, each in a process of its own as users have it.

    What a process has done before decides where its arrays lie, and what a page of memory costs.
    """
    files = write_copies(Path(ask.files[0]))
    turns: list[list[tuple[float, float]]] = []
    for _ in range(options.rounds):
        found = []
        for file in files.values():
            command = [sys.executable, __file__, "--one", str(ask.models[0]), str(file)]
            command += [str(ask.output), f"--threads={how.workers}"]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            wall, processor = map(float, done.stdout.split()[-2:])
            found.append((wall, processor))
        turns.append(found)
    for kind, best in zip(("wall", "processor"), np.min(turns, axis=0).T, strict=True):
        rates = options.events / 1e6 / best
        shown = [
            f"{name} {rate:5.1f} ({rate / rates[0]:.0%})"
            for name, rate in zip(files, rates, strict=True)
        ]
        print(f"{kind:9} M events/s: {', '.join(shown)}")


def apply_one(model: str, file: str, output: str, threads: int) -> None:
    """Best of three calls; the first compiles the kernels, fills the page cache."""
    how = Execution("threads", threads, None, PIECE)
    ask = Request((Path(model),), (file,), Path(output), overwrite=True)
    found = [seconds(lambda: apply_model(ask, how)) for _ in range(3)]
    print(*np.min(found, axis=0))


if __name__ == "__main__":
    main()
