"""`punzi apply` against reading its input branches alone, in turns, on the same file.

    python benchmarks/apply_speed.py [--events 10000000] [--threads 2] [--rounds 5]

The file: signal-like muon pairs, float32, zstd, one basket per 500 000 rows, only the 13 branches
that apply needs. Reading is uproot with the same chunks and threads, arrays thrown away: once as
uproot opens files unasked, once as apply does. apply does all it does for a person: checks, score,
friend tree on disk, spectra. Processor seconds are shown beside wall seconds because they also hold
on a machine that has other work.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import uproot

from analysis.apply.command import apply_model
from analysis.apply.plan import Request
from analysis.apply.rows import FileRows, columns_of, planned_rows
from analysis.config.searches import shipped_search
from analysis.inputs.tables import open_table
from analysis.run.executors import Execution
from models.network import PunziNet
from models.trained import Conditions, from_network, save_model
from selection.beams import MUON_MASS_GEV, SUPERKEKB
from selection.ntuple import MOMENTA
from selection.windows import MassWindows
from simulation.recipe import Recipe
from simulation.samples import simulate

BASKET = 500_000
SOURCE_EVENTS = 60_000
CANDIDATES = "__ncandidates__"
SEARCH = shipped_search("dimuon_recoil")
BRANCHES = (*SEARCH.columns, CANDIDATES)


def write_ntuple(path: Path, n: int, rng: np.random.Generator) -> None:
    """Simulated signal at three masses, drawn again and again with the momenta smeared by 1 %."""
    recipes = [Recipe("signal", SOURCE_EVENTS, 1, mass_gev=m) for m in (1.0, 4.0, 7.0)]
    rows = [simulate(recipe).rows for recipe in recipes]
    seen = np.concatenate([r.seen.reshape(len(r), 8) for r in rows])
    extra = np.concatenate([r.extra_energy for r in rows])
    angle = np.concatenate([r.photon_recoil_angle for r in rows])
    kinds = dict.fromkeys(BRANCHES, np.float32) | {CANDIDATES: np.int32}
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
            tree.extend({name: columns[name].astype(kinds[name]) for name in BRANCHES})


def write_model(path: Path) -> None:
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
    net = PunziNet(np.array([0, 0, -6, 0.0]), np.array([5, 6, 2, 5.0]), seed=1)
    windows = MassWindows(mass, np.full(len(mass), 0.2), 2.0, squared=True)
    trained = np.ones(len(mass), bool)
    model = from_network(
        net, search=SEARCH, windows=windows, trained=trained, conditions=conditions
    )
    save_model(model, path)


def read_only(file: Path, n: int, threads: int, *, plain: bool) -> None:
    whole = FileRows(str(file), "variables", "", {name: name for name in BRANCHES}, 0, n)
    pieces = planned_rows(whole, chunk_size=BASKET)
    tree = uproot.open(file, array_cache=None, object_cache=None)["variables"]

    def read(rows: FileRows) -> int:
        if not plain:
            return len(columns_of(rows))
        at = {"entry_start": rows.start, "entry_stop": rows.stop, "library": "np"}
        return len(tree.arrays(BRANCHES, **at))

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
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, net = Path(folder) / "events.root", Path(folder) / "net.safetensors"
        write_ntuple(file, options.events, np.random.default_rng(1))
        write_model(net)
        how = Execution("threads", options.threads, None, BASKET)
        ask = Request((net,), (str(file),), Path(folder) / "out")
        apply_model(ask, how)  # compiles the kernels, fills the page cache
        turns = []
        for _ in range(options.rounds):  # in turns: a busy moment hits all
            reads = [
                seconds(lambda p=plain: read_only(file, options.events, options.threads, plain=p))
                for plain in (True, False)
            ]
            shutil.rmtree(ask.output)
            turns.append([*reads, seconds(lambda: apply_model(ask, how))])
        size = (ask.output / "events.friend.root").stat().st_size
        print(f"{options.events} events, {options.threads} threads, best of {options.rounds}")
        print(f"input {file.stat().st_size / options.events:.1f} bytes/event on disk, "
              f"friend {size / options.events:.1f}")  # fmt: skip
    for kind, found in zip(("wall", "processor"), np.min(turns, axis=0).T, strict=True):
        plain, own, apply = options.events / 1e6 / found
        print(
            f"{kind:9} M events/s: uproot {plain:5.1f}, our reader {own:5.1f}, apply {apply:5.1f}: "
            f"apply is {apply / plain:.0%} and {apply / own:.0%} of reading"
        )


if __name__ == "__main__":
    main()
