"""Control regions: the search with other cuts, selected in the same pass, and nothing of it else."""

import json

import numpy as np
import pytest
import uproot

from analysis.config.configuration import load
from analysis.inputs.datasets import datasets
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.accounting import lost_chunks
from analysis.select.chunks import Chunk
from analysis.select.histograms import load_json
from analysis.select.index import load_selection
from analysis.select.process import SelectionError
from analysis.select.skim import read_shard, read_table
from analysis.select.stage import select_events
from analysis.train.stage import simulated_events
from selection.beams import SUPERKEKB
from selection.kernel import values_of
from tests.conftest import save_ntuple
from tests.dimuon import SEARCH

OTHER = "0.4 <= extra_energy and extra_energy < 0.6"
SIDEBAND = f"regions.sideband.cuts.extra_energy={OTHER}"
# of another column, and with rows of the search region
TOUCHING = "regions.touching.cuts.extra_energy=0.35 < extra_energy < 0.6 and t0 < 2"
ALLOWED = "regions.touching.overlap=allow"
COLUMNS = ("features", "axis", "weight", "signal_mass_gev", "sample", "key", "identity")


@pytest.fixture(scope="module")
def recorded(small_inputs, tmp_path_factory):
    """The small inputs with data, and a column that no cut of the search needs."""
    folder = tmp_path_factory.mktemp("recorded")
    files = {file.name: file for file in small_inputs.glob("*.root")}
    for name, file in {**files, "data.root": files["background_0.root"]}.items():
        with uproot.open({file: "variables"}) as tree:
            columns = tree.arrays(library="np")
        save_ntuple(folder / name, {**columns, "t0": columns["extra_energy"]})
    text = (small_inputs / "datasets.yaml").read_text()
    text += "  data: {kind: data, files: data.root, luminosity_inv_fb: 25}\n"
    (folder / "datasets.yaml").write_text(f"{text}accept: [same_file, same_events]\n")
    return folder


def run_select(folder, path, *changes, executor="iterative", chunk_size=1_000_000):
    config = load(folder / "datasets.yaml", changes)
    execution = Execution(executor=executor, workers=2, chunk_size=chunk_size)
    with open_run(path) as run:
        select_events(run, config, datasets(config, folder=folder), execution)
    return run, config


def same_selection(one, other):
    a, b = (read_table(load_selection(run).parts) for run in (one, other))
    for name in COLUMNS:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    assert one.cutflow.read_bytes() == other.cutflow.read_bytes()
    found, wanted = load_json(one.histograms), load_json(other.histograms)
    assert {ds: set(of_set) for ds, of_set in found.items()} == {
        ds: set(of_set) for ds, of_set in wanted.items()
    }
    for ds, of_set in wanted.items():
        for name, h in of_set.items():  # sums of weights may end in other bits
            assert found[ds][name].values(flow=True) == pytest.approx(h.values(flow=True)), name


def test_a_region_is_the_search_with_its_cuts(recorded, tmp_path):
    """As if its cuts were those of the search: events, cutflow, histograms; the search is as ever."""
    both, _ = run_select(recorded, tmp_path / "a", SIDEBAND, executor="threads", chunk_size=5000)
    alone, _ = run_select(recorded, tmp_path / "b", f"cuts.extra_energy={OTHER}")
    plain, _ = run_select(recorded, tmp_path / "c")
    same_selection(both.region("sideband"), alone)
    same_selection(both, plain)
    table = read_table(load_selection(alone).parts)
    assert {"signal", "background", "data"} == set(table.sample_names)
    assert (np.bincount(table.sample) > 50).all()
    assert not set(table.key) & set(read_table(load_selection(plain).parts).key)


def test_a_new_region_selects_but_trains_nothing_again(recorded, tmp_path, caplog):
    caplog.set_level("INFO")
    run, config = run_select(recorded, tmp_path / "run", SIDEBAND)
    events = simulated_events(run, config, load_selection(run))
    shards = {p: p.stat().st_mtime_ns for p in run.skim.rglob("*.parquet")}
    windows = run.windows.stat().st_mtime_ns
    run_select(recorded, run.path, SIDEBAND)
    assert "select: up to date" in caplog.text
    caplog.clear()
    run, config = run_select(recorded, run.path, SIDEBAND, TOUCHING, ALLOWED)
    assert "select: up to date" not in caplog.text
    again = simulated_events(run, config, load_selection(run))
    assert again.fingerprint == events.fingerprint
    assert {p: p.stat().st_mtime_ns for p in run.skim.rglob("*.parquet")} == shards
    assert run.windows.stat().st_mtime_ns == windows
    assert {p.name for p in run.regions.iterdir()} == {"sideband", "touching"}
    run_select(recorded, run.path, TOUCHING, ALLOWED)
    assert {p.name for p in run.regions.iterdir()} == {"touching"}
    assert {p: p.stat().st_mtime_ns for p in run.skim.rglob("*.parquet")} == shards


def test_a_region_that_overlaps_the_search_region_is_refused_with_its_rows(recorded, tmp_path):
    with pytest.raises(SelectionError, match=r"overlaps the search region") as caught:
        run_select(recorded, tmp_path / "run", TOUCHING)
    assert not (tmp_path / "run" / "cutflow.json").exists()  # nothing that could be looked at
    run, _ = run_select(recorded, tmp_path / "run", TOUCHING, ALLOWED)
    parts = [part for part in load_selection(run).parts if part.sample == "background"]
    columns = [read_shard(part.shard, ["cut:extra_energy"])[0].to_numpy() for part in parts]
    inside = int((np.concatenate(columns) > np.float32(0.35)).sum())
    total = json.loads(run.region("touching").cutflow.read_text())["background"]["raw"][-1]
    assert f"regions.touching: {inside} of {total} rows of background" in str(caught.value)
    assert "and rows of 6 more data sets" in str(caught.value)
    assert total > inside > 100


def test_what_the_cuts_look_at_is_kept(small_inputs, tmp_path):
    """Each number once, but for axis and features, which are kept anyway."""
    run, _ = run_select(small_inputs, tmp_path / "run", SIDEBAND)
    assert list(SEARCH.cut_variables) == ["muon_id", "recoil_theta", "extra_energy", "photon_veto"]
    with uproot.open({small_inputs / "background_0.root": "variables"}) as tree:
        rows = tree.arrays(library="np")
    table = read_shard(load_selection(run.region("sideband")).parts[5].shard)
    at = table["event"].to_numpy()
    text = SEARCH.cut_variables["recoil_theta"]
    expected = values_of(SEARCH, {k: v[at] for k, v in rows.items()}, SUPERKEKB, [text])[0]
    assert len(at) > 50
    assert np.array_equal(table["cut:recoil_theta"].to_numpy(), expected.astype(np.float32))
    assert np.array_equal(table["cut:extra_energy"].to_numpy(), rows["extra_energy"][at])
    assert np.isnan(table["cut:photon_veto"].to_numpy()).all()  # of events without a photon


def test_rows_lost_in_one_region_are_lost_in_all():
    """A chunk is done or lost as a whole: else regions would have other normalisations."""
    chunk = Chunk("a", "f", "t", 0, 10, {"preselection": "x", "sideband": "y"}, {}, 0, None,
                  SUPERKEKB, "")  # fmt: skip
    assert lost_chunks([chunk], {"y": "damaged"}) == [chunk]
    assert lost_chunks([chunk], {"z": "damaged"}) == []
