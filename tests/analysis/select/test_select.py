"""The same selection for every executor, chunk size and interruption; nothing lost unnoticed."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest
import uproot

from analysis.config.configuration import load
from analysis.inputs import check
from analysis.inputs.check import CheckError
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import RunError, open_run
from analysis.select import selected
from analysis.select.histograms import load_json
from analysis.select.process import SelectionError
from analysis.select.skim import read_table
from analysis.select.stage import select_events
from analysis.train.stage import simulated_events
from selection.beams import SUPERKEKB, Beams
from selection.ntuple import MOMENTA
from tests.dimuon import event_kinematics

BEAM_AXES = tuple(zip(("px", "py", "pz"), SUPERKEKB.total[:3], strict=True))


def run_select(folder, run_path, changes=(), **how):
    config = load(folder / "datasets.yaml", changes)
    with open_run(run_path) as run:
        selection = select_events(run, config, datasets(config, folder=folder), Execution(**how))
        table = read_table(selection.parts)
        windows = None
        if not changes:
            simulated_events(run, config, selection)
            windows = (run.path / "windows.json").read_bytes()
        return table, (run.path / "cutflow.json").read_bytes(), windows


def same(one, other):
    for name in ("features", "axis", "weight", "signal_mass_gev", "sample", "key"):
        a, b = (np.ascontiguousarray(getattr(t[0], name)).tobytes() for t in (one, other))
        assert a == b, name
    assert one[1:] == other[1:]


@pytest.fixture(scope="module")
def expected(small_inputs, tmp_path_factory):
    return run_select(small_inputs, tmp_path_factory.mktemp("run"), executor="iterative")


@pytest.mark.parametrize(
    "how",
    [
        {"executor": "threads", "workers": 1},
        {"executor": "threads", "workers": 2, "chunk_size": 10_000},
        {"executor": "threads", "workers": 4, "chunk_size": 777},
        {"executor": "processes", "workers": 2, "chunk_size": 5_000},
        {"executor": "dask", "workers": 2, "chunk_size": 10_000},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
# dask leaves sockets and processes to the garbage collector
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_same_bytes_for_any_executor_and_chunk_size(small_inputs, tmp_path, expected, how):
    same(run_select(small_inputs, tmp_path / "run", **how), expected)


def test_selected_events_are_those_of_a_plain_reading(small_inputs, expected):
    """The skim against the cuts of the search written out once more with numpy."""
    table = expected[0]
    rows = []
    for i in (0, 1):
        with uproot.open({small_inputs / f"background_{i}.root": "variables"}) as tree:
            a = tree.arrays(library="np")
        found = event_kinematics({k: a[k] for k in MOMENTA}, SUPERKEKB)
        lab = [b - a[f"mu_plus_{x}"].astype(float) - a[f"mu_minus_{x}"] for x, b in BEAM_AXES]
        theta = np.degrees(np.arctan2(np.hypot(lab[0], lab[1]), lab[2]))
        keep = (theta < 124) & (found.features[3] > 1) & (a["extra_energy"] < 0.4)
        keep &= theta > np.where(found.axis < 9, 33, 25)  # the barrel for light recoils
        rows.append((found.axis[keep], a["weight"][keep] * 50))
    mass2, weight = (np.concatenate(column) for column in zip(*rows, strict=True))
    background = ~table.is_signal
    assert np.array_equal(table.axis[background], mass2)
    assert np.array_equal(table.weight[background], weight)
    assert np.all(table.weight[table.is_signal] == 1 / 1200)


def test_histograms_and_cutflow_count_the_same_events(small_inputs, tmp_path, expected):
    table = expected[0]
    run_select(small_inputs, tmp_path / "run", executor="threads", workers=2, chunk_size=5000)
    histograms = load_json(tmp_path / "run" / "histograms.json")
    flow = json.loads((tmp_path / "run" / "cutflow.json").read_text())
    background = ~table.is_signal
    filled = histograms["background"]["recoil_mass2"].sum(flow=True)
    assert filled.value * 50 == pytest.approx(table.weight[background].sum())
    assert filled.variance * 2500 == pytest.approx((table.weight[background] ** 2).sum())
    assert histograms["background"]["pt_mumu_raw"].sum(flow=True) == background.sum()
    assert flow["background"]["raw"][-1] == background.sum()
    assert flow["background"]["events"][-1] == pytest.approx(table.weight[background].sum())
    with uproot.open(tmp_path / "run" / "histograms.root") as file:
        stored = file["signal/3/recoil_mass2"]
        assert stored.classname == "TH1D"
        assert stored.title == "signal/3: recoil_mass2"
        assert "GeV" in stored.member("fXaxis").member("fTitle")
        assert np.array_equal(stored.values(), histograms["signal/3"]["recoil_mass2"].values())


def test_a_second_call_has_nothing_to_do(small_inputs, tmp_path, expected, caplog):
    caplog.set_level("INFO")
    run_select(small_inputs, tmp_path / "run", executor="iterative")
    written = {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*.parquet")}
    same(run_select(small_inputs, tmp_path / "run", executor="iterative"), expected)
    assert "select: up to date" in caplog.text
    assert written == {p: p.stat().st_mtime_ns for p in (tmp_path / "run").rglob("*.parquet")}


def test_other_cuts_make_other_shards_and_old_ones_are_removed(small_inputs, tmp_path, expected):
    run = tmp_path / "run"
    tight = run_select(small_inputs, run, ["cuts.pt_mumu=pt_mumu > 2"], executor="iterative")
    assert len(tight[0]) < len(expected[0])
    assert tight[0].features[:, 3].min() > 2
    same(run_select(small_inputs, run, executor="iterative"), expected)
    assert len(list(run.rglob("*.parquet"))) == 7
    off = run_select(small_inputs, run, ["cuts.pt_mumu=null"], executor="iterative")
    assert len(off[0]) > len(expected[0])
    assert off[0].features[:, 3].min() < 1


def test_a_damaged_shard_is_made_again(small_inputs, tmp_path, expected, caplog):
    run_select(small_inputs, tmp_path / "run", executor="iterative")
    shard = next((tmp_path / "run" / "skim").rglob("*.parquet"))
    shard.write_bytes(shard.read_bytes()[:-100])
    (tmp_path / "run" / "stamps" / "select.json").unlink()
    same(run_select(small_inputs, tmp_path / "run", executor="iterative"), expected)
    assert "is damaged and is made again" in caplog.text


def corrupt(path):
    """Overwrite the basket of the weights: head, directory and momenta stay good."""
    content = bytearray(path.read_bytes())
    at = content.index(b"\x07TBasket\x06weight")
    content[at : at + 2000] = b"\xff" * 2000
    path.write_bytes(content)


def test_rows_that_cannot_be_read_are_named_before_the_work_begins(own_inputs, tmp_path):
    corrupt(own_inputs / "background_1.root")
    with pytest.raises(CheckError, match=r"background_1\.root the data cannot be read"):
        run_select(own_inputs, tmp_path / "run", executor="iterative")
    assert not list((tmp_path / "run").rglob("*.parquet"))


def test_lost_chunks_stop_the_run_and_are_named(own_inputs, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "LOOK_FILES_PER_DATASET", 1)  # the damage is not looked at
    corrupt(own_inputs / "background_1.root")
    with pytest.raises(SelectionError, match=r"1 of 7 chunks were lost") as caught:
        run_select(own_inputs, tmp_path / "run", executor="threads", workers=2)
    assert "background_1.root rows 0-12345" in str(caught.value)
    assert "--allow-lost" in str(caught.value)


def test_allowed_losses_are_corrected_and_said(own_inputs, tmp_path, expected, caplog):
    corrupt(own_inputs / "background_1.root")
    table, flow, _ = run_select(
        own_inputs, tmp_path / "run", ["preset=default"], executor="iterative", allow_lost=True
    )
    assert "background: 50.00 % of the rows are lost" in caplog.text
    assert json.loads(flow)["background"]["lost_share"] == 0.5
    whole, kept = expected[0], ~table.is_signal
    assert table.weight[kept].sum() == pytest.approx(whole.weight[~whole.is_signal].sum(), rel=0.05)


def test_duplicate_events_are_an_error_unless_allowed(own_inputs, tmp_path, columns, save):
    save(own_inputs / "background_2.root", columns(12_345, seed=50, run=0))  # in another file
    with pytest.raises(
        SelectionError, match=r"\d+ events stand in the selection more than once"
    ) as e:
        run_select(own_inputs, tmp_path / "run", executor="threads", workers=2)
    assert "'experiment': 1003, 'run': 0" in str(e.value)
    text = (own_inputs / "datasets.yaml").read_text()
    (own_inputs / "datasets.yaml").write_text(
        text.replace("    weight: weight", "    weight: weight\n    duplicates: allow")
    )
    _, flow, _ = run_select(own_inputs, tmp_path / "run", executor="threads", workers=2)
    assert json.loads(flow)["background"]["raw"][0] == 3 * 12_345


def test_a_weight_that_is_not_a_number_stops_the_run(own_inputs, tmp_path, columns, save):
    cols = columns(4500)
    cols["weight"][4200] = np.nan  # after the rows that `check` looks at
    save(own_inputs / "background_1.root", cols)
    with pytest.raises(SelectionError, match="1 of 7 chunks were lost") as caught:
        run_select(own_inputs, tmp_path / "run", executor="iterative")
    assert "the weight of 1 rows is not a finite number" in str(caught.value)


def test_data_need_neither_truth_nor_weights(own_inputs, tmp_path, columns, save):
    cols = columns(500)
    del cols["weight"]
    save(own_inputs / "measured.root", cols)
    with (own_inputs / "datasets.yaml").open("a") as config:
        config.write("  measured:\n    kind: data\n    files: measured.root\n")
        config.write("    luminosity_inv_fb: 5\n")
    table, _, _ = run_select(own_inputs, tmp_path / "run", executor="iterative")
    measured = table.sample == table.sample_names.index("measured")
    assert measured.sum() > 100
    assert np.all(table.weight[measured] == 1)
    assert np.isnan(table.signal_mass_gev[measured]).all()


def test_a_killed_run_continues_to_the_same_bytes(small_inputs, tmp_path, expected):
    (tmp_path / "runs").mkdir()
    command = [sys.executable, "-m", "analysis.cli", "select", "-c", small_inputs / "datasets.yaml"]
    command += ["-r", "killed", "--chunk-size", "500", "--workers", "1"]
    command = list(map(str, command))
    shards = tmp_path / "runs" / "killed" / "skim"
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(shards.rglob("*.parquet"))) < 12:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    made = len(list(shards.rglob("*.parquet")))
    assert 12 <= made < 60
    found = run_select(
        small_inputs, tmp_path / "runs" / "killed", executor="threads", workers=2, chunk_size=500
    )
    same(found, expected)


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_dying_dask_worker_does_not_change_the_result(small_inputs, tmp_path, expected):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
        found = run_select(
            small_inputs,
            tmp_path / "run",
            executor="dask",
            cluster=cluster.scheduler_address,
            chunk_size=1500,
        )
        assert victim not in client.run(os.getpid).values()
    same(found, expected)


def test_a_second_run_on_the_same_folder_is_refused(tmp_path):
    with (
        open_run(tmp_path / "run"),
        pytest.raises(RunError, match="another punzi is at work"),
        open_run(tmp_path / "run"),
    ):
        pass


def peak_memory(folder, run_path, n_files):
    """Most bytes in use while the first files are selected, with only our own collections."""
    for path in folder.glob("background_*.root"):
        path.unlink()
    for i in range(n_files):
        os.link(folder / "big.aside", folder / f"background_{i}.root")
    gc.disable()
    tracemalloc.start()
    try:
        config = load(folder / "datasets.yaml")
        with open_run(run_path) as run:
            select_events(run, config, datasets(config, folder=folder), Execution("iterative"))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.enable()


def test_memory_does_not_grow_with_the_number_of_files(
    own_inputs, tmp_path, columns, save, monkeypatch
):
    monkeypatch.setattr(selected, "MOST_CONTENTS", 10_000)  # events compared between data sets
    cols = columns(60_000, seed=9)
    save(own_inputs / "big.aside", cols)
    config = own_inputs / "datasets.yaml"
    config.write_text(config.read_text() + "    duplicates: allow\n")
    one_file = sum(values.nbytes for values in cols.values())
    peak_memory(own_inputs, tmp_path / "warm", 1)  # imports and caches
    few, many = (peak_memory(own_inputs, tmp_path / f"run{n}", n) for n in (2, 12))
    assert many - few < 3 * one_file  # ten more files


@pytest.mark.parametrize("beams_in", ["background_0.root", "background_1.root"])
def test_every_file_is_read_by_its_own_branches(own_inputs, save, columns, tmp_path, beams_in):
    """Beam columns of one file count for its events, wherever it stands, and for no others."""
    other = Beams(7.007, 4.004)  # M_rec2 moves by 0.05 GeV^2
    for i in (0, 1):
        cols = columns(2000, seed=50 + i, run=i)
        if f"background_{i}.root" == beams_in:
            names = ("beamPx", "beamPy", "beamPz", "beamE")
            cols |= {n: np.full(2000, v) for n, v in zip(names, other.total, strict=True)}
        save(own_inputs / f"background_{i}.root", cols)
    config = load(own_inputs / "datasets.yaml")
    sets = datasets(config, folder=own_inputs)
    with open_run(tmp_path / "run") as run:
        selection = select_events(run, config, sets, Execution(executor="iterative"))
        parts = [part for part in selection.parts if part.sample == "background"]
        found = [read_table([part]) for part in parts]
    assert [len(table) > 500 for table in found] == [True, True]
    for i, table in enumerate(found):
        beams = other if f"background_{i}.root" == beams_in else SUPERKEKB
        expected = event_kinematics(columns(2000, seed=50 + i, run=i), beams).axis
        apart = np.abs(table.axis[:, None] - expected).min(axis=1)
        assert apart.max() < 1e-9
