"""Numbers of an RNTuple are read from its pages, and only from those that hold the rows."""

import numpy as np
import pytest
import uproot

from analysis.inputs.root_bytes import LocalFile
from analysis.inputs.tables import open_table

CLUSTERS = (300, 1, 700, 250)


@pytest.fixture(scope="module", params=["zstd", "plain"])
def ntuple(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("ntuple") / f"{request.param}.root"
    rng = np.random.default_rng(1)
    how = uproot.ZSTD(1) if request.param == "zstd" else None
    with uproot.recreate(path, compression=how) as file:
        made = None
        for n in CLUSTERS:
            columns = {
                "x": rng.integers(0, 9, n).astype(np.float32),
                "k": rng.integers(-5, 5, n),
                "flag": rng.random(n) < 0.5,
            }
            made = made or file.mkrntuple("t", {k: v.dtype for k, v in columns.items()})
            made.extend(columns)
    return path


@pytest.mark.parametrize("rows", [(0, 1251), (299, 302), (300, 301), (7, 7), (1001, 2000)])
def test_rows_are_those_that_uproot_reads_whatever_the_clusters(ntuple, rows):
    table = open_table(str(ntuple), "t", "")
    with uproot.open(ntuple) as file:
        for name in ("x", "k", "flag"):
            expected = file["t"][name].array(library="np")[slice(*rows)]
            found = table.read(name, *rows)
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)


def test_a_piece_reads_the_pages_of_its_rows_only(ntuple, monkeypatch):
    table, places = open_table(str(ntuple), "t", ""), []
    table.read("x", 0, 1)
    read = LocalFile.bytes_at
    monkeypatch.setattr(
        LocalFile, "bytes_at", lambda self, at, n: places.append(at) or read(self, at, n)
    )
    table.read("x", 0, 300)  # a cluster
    assert len(places) == 1
    table.read("x", 300, 1001)
    assert len(places) == 3


def test_pieces_can_end_where_clusters_end(ntuple):
    assert open_table(str(ntuple), "t", "").borders(["x"]).tolist() == [0, 300, 301, 1001, 1251]


def test_a_damaged_page_is_an_error_and_never_another_number(ntuple, tmp_path):
    if "zstd" not in ntuple.name:
        pytest.skip("bytes that are not packed can be any number")
    table = open_table(str(ntuple), "t", "")
    field = table.plain.field("x")
    data = bytearray(ntuple.read_bytes())
    data[int(field.places[2]) + 6] ^= 1  # what a block promises
    (tmp_path / "bad.root").write_bytes(data)
    with pytest.raises(ValueError, match="compressed blocks give"):
        open_table(str(tmp_path / "bad.root"), "t", "").read("x", 301, 400)
