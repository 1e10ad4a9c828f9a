"""One way to read: the same events from a TTree, an RNTuple and a parquet file."""

import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import uproot

from analysis.apply.model import ApplyError
from analysis.apply.rows import FileRows, columns_of
from analysis.config.configuration import parse
from analysis.inputs.check import CheckError
from analysis.inputs.columns import Wanted
from analysis.inputs.datasets import datasets
from analysis.inputs.file_report import inspect_file
from analysis.inputs.tables import open_file, open_table
from analysis.run.executors import Execution
from analysis.run.folder import open_run
from analysis.select.index import load_selection
from analysis.select.skim import read_table
from analysis.select.stage import select_events

ONE = Execution(executor="iterative", chunk_size=300)


def write(path, columns):
    """By the ending: `.ntuple.root` is an RNTuple, `.parquet` parquet in groups of 400 rows."""
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=400)
    else:
        with uproot.recreate(path) as file:
            make = file.mkrntuple if ".ntuple" in path.name else file.mktree
            make("variables", {k: v.dtype for k, v in columns.items()}).extend(columns)
    return path


def selected(folder, files, *, more="", name="run"):
    text = (
        "luminosity_inv_fb: 50\nsamples:\n  background:\n    kind: background\n    weight: weight\n"
    )
    text += f"    files: {files}\n{more}"
    config = parse(text, where="test", folder=folder)
    with open_run(folder / name) as run:
        select_events(run, config, datasets(config, folder=folder), ONE)
        return read_table(load_selection(run).parts)


KINDS = ("a.root", "a.ntuple.root", "a.parquet")


def test_the_same_events_are_selected_from_every_kind_of_file(tmp_path, columns):
    found = []
    for i, kind in enumerate(KINDS):
        write(tmp_path / kind, columns(1000, seed=4))
        found.append(selected(tmp_path, kind, name=f"run{i}"))
    assert len(found[0]) > 100
    for other in found[1:]:
        for name in ("axis", "features", "weight", "key"):
            assert np.array_equal(getattr(found[0], name), getattr(other, name))


@pytest.mark.parametrize("kind", KINDS)
def test_any_rows_of_any_column(tmp_path, columns, kind):
    values = columns(1000, seed=4)
    path = write(tmp_path / kind, values)
    with open_file(str(path)) as file:
        (name,) = file.tables
        table = file.table(name)
        assert table.n_entries == 1000
        assert set(values) <= set(table.names)
        for start, stop in ((0, 1000), (0, 0), (399, 401), (400, 800), (999, 1000)):
            assert np.array_equal(
                table.read("mu_plus_px", start, stop), values["mu_plus_px"][start:stop]
            )
    kept = open_table(str(path), name, "x")
    assert np.array_equal(kept.read("__event__", 5, 9), values["__event__"][5:9])


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_no_number_is_refused_in_words(tmp_path, columns, kind):
    values = columns(50)
    if kind == "a.parquet":
        table = pa.table(values | {"extra_energy": pa.array([[1.0], [1.0, 2.0]] * 25)})
        pq.write_table(table, tmp_path / kind)
    else:
        import awkward as ak

        odd = values | {"extra_energy": ak.Array([[1.0], [1.0, 2.0]] * 25)}
        with uproot.recreate(tmp_path / kind) as file:
            if "ntuple" in kind:
                file.mkrntuple("variables", ak.zip(odd, depth_limit=1))
            else:
                file["variables"] = odd
    with pytest.raises(CheckError, match=r"extra_energy.*expected one number"):
        selected(tmp_path, kind)


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from analysis.inputs.tables import open_table

table = open_table(sys.argv[1], "parquet", "")

def right(start):
    rows = np.arange(start, start + 2000)
    names = enumerate(table.names)
    return all((table.read(name, start, start + 2000) == rows + i).all() for i, name in names)

with ThreadPoolExecutor(4) as pool:
    print(all(pool.map(right, [*range(0, 40_000, 2000)] * 20)))
"""


def test_threads_may_read_one_parquet_file_at_the_same_time(tmp_path):
    """In a process of its own: what is wrong here ends it, or never ends."""
    x = np.arange(40_000)
    table = pa.table({f"x{i}": x + i for i in range(8)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2000)
    for _ in range(3):  # it is a matter of chance
        done = subprocess.run(
            [sys.executable, "-c", THREADS, str(tmp_path / "a.parquet")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_parquet_file_that_is_cut_short_is_refused_in_words(tmp_path, columns):
    path = write(tmp_path / "a.parquet", columns(500))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckError, match="is no whole parquet file"):
        selected(tmp_path, "a.parquet")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_parquet_file_of_which_rows_are_missing_is_refused_in_words(tmp_path, columns, share):
    """Its end is there, as where a copy was put together again."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns(1000)), path, row_group_size=300)
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[: int(share * (len(whole) - end))] + whole[-end:])
    (problem,) = inspect_file(str(path), Wanted(None, {}, {})).problems
    assert re.search(r"is truncated: columns end at byte \d+, the file has \d+ bytes", problem)


def test_rows_that_cannot_be_read_are_named_by_apply(tmp_path, columns):
    path = tmp_path / "a.parquet"
    found = columns(1000)
    pq.write_table(pa.table(found), path, compression="zstd")
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    rows = FileRows(str(path), "", "", {name: name for name in found}, 0, 1000)
    with pytest.raises(ApplyError, match=r"a.parquet, rows 0 to 1000: .* make the file again"):
        columns_of(rows)


def twice(path, columns, name, other):
    """A tree in which a branch stands twice: under another name first, which is then changed."""
    same = name[:-1] + "Q"
    with uproot.recreate(path, compression=None) as file:
        values = columns | {same: other}
        file.mktree("variables", {k: v.dtype for k, v in values.items()}).extend(values)
    path.write_bytes(path.read_bytes().replace(same.encode(), name.encode()))
    with uproot.open(path) as file:
        assert file["variables"].keys().count(name) == 2


def test_a_branch_that_stands_twice_with_the_same_content_is_read(tmp_path, columns):
    values = columns(300)
    twice(tmp_path / "a.root", values, "mu_plus_px", values["mu_plus_px"])
    write(tmp_path / "b.root", values)
    a, b = (selected(tmp_path, name, name=name[0]) for name in ("a.root", "b.root"))
    assert np.array_equal(a.axis, b.axis)


def test_a_branch_that_stands_twice_with_other_content_is_refused(tmp_path, columns):
    values = columns(300)
    twice(tmp_path / "a.root", values, "mu_plus_px", values["mu_plus_px"] + 1)
    with pytest.raises(CheckError, match="2 branches 'mu_plus_px' with different content"):
        selected(tmp_path, "a.root")


def test_data_alone_are_enough_to_select(tmp_path, columns):
    write(tmp_path / "a.parquet", columns(500))
    text = (
        "luminosity_inv_fb: 1\nsamples: {d: {kind: data, files: a.parquet, luminosity_inv_fb: 1}}\n"
    )
    config = parse(text, where="test", folder=tmp_path)
    with open_run(tmp_path / "run") as run:
        select_events(run, config, datasets(config, folder=tmp_path), ONE)
        table = read_table(load_selection(run).parts)
    assert len(table) > 50
    assert (table.weight == 1).all()


def test_candidates_without_event_numbers_are_not_trained_on_in_silence(tmp_path, columns):
    values = {k: v for k, v in columns(500).items() if not k.startswith("__")}
    write(tmp_path / "a.root", values)
    with pytest.raises(CheckError, match=r"no event numbers tell which belong.*candidates_apart"):
        selected(tmp_path, "a.root", more="candidates: all\n")
    table = selected(tmp_path, "a.root", more="candidates: all\naccept: [candidates_apart]\n")
    assert len(np.unique(table.identity)) == len(table)
