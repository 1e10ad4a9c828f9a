"""Numbers of a parquet file are read from its pages; anything else by pyarrow, with the same result."""

import itertools
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.inputs.packed_runs import _after_marks, listed_runs, read_pages
from analysis.inputs.parquet_table import ParquetTable
from analysis.inputs.root_bytes import LocalFile

N = 5000
KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def numbers():
    """Columns of every kind, few and many different values, in their whole range."""
    rng = np.random.default_rng(3)
    found = {}
    for kind in KINDS:
        size = np.dtype(kind).itemsize
        found[kind] = np.frombuffer(rng.bytes(N * size), kind).copy()
        found[f"{kind}_few"] = found[kind][rng.integers(0, 11, N)]
        found[f"{kind}_one"] = np.repeat(found[kind][:1], N)
    return found


WRITERS = {
    "as it comes": {},
    "plain": {"use_dictionary": False},
    "zstd": {"compression": "zstd"},
    "not packed": {"compression": "none"},
    "version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "version 2, not packed": {"data_page_version": "2.0", "compression": "none"},
    "small groups": {"row_group_size": 700},
    "small pages": {"max_rows_per_page": 90, "write_batch_size": 90},
    "list given up": {"dictionary_pagesize_limit": 3000, "write_batch_size": 100},
    "checksums": {"write_page_checksum": True, "write_page_index": True},
    "first version": {"version": "1.0"},
}


def raw(values):
    """NaN and -0.0 are compared as bits."""
    return values.view(f"u{values.itemsize}")


@pytest.mark.parametrize("needed", [True, False], ids=["needed", "may be missing"])
@pytest.mark.parametrize("writer", WRITERS)
def test_rows_are_those_written_whatever_the_writer(tmp_path, writer, needed):
    values = numbers()
    fields = [
        pa.field(k, pa.from_numpy_dtype(v.dtype), nullable=not needed) for k, v in values.items()
    ]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(values, schema=pa.schema(fields)), path, **WRITERS[writer])
    table = ParquetTable(path)
    for (name, written), rows in itertools.product(
        values.items(), ((0, N), (0, 1), (689, 711), (1234, 4321), (N - 1, N))
    ):
        found = table.plain.read(name, *rows)
        if found is None:  # a whole group
            assert (rows, WRITERS[writer].get("write_batch_size", N) < N // 8) == ((0, N), True)
            found = table.read(name, *rows)
        assert (
            found.dtype
            == table.metadata.schema.to_arrow_schema().field(name).type.to_pandas_dtype()
        )
        assert np.array_equal(raw(found.astype(written.dtype)), raw(written[slice(*rows)]))


@pytest.mark.parametrize("how", [{}, {"data_page_version": "2.0"}, {"use_dictionary": False}])
def test_missing_numbers_are_nan_and_only_where_they_are_missing(tmp_path, how):
    values = np.arange(400.0)
    there = np.arange(400) % 37 != 36
    columns = {"x": pa.array(values, mask=~there), "k": pa.array(np.arange(400), mask=~there)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", **how)
    table = ParquetTable(tmp_path / "a.parquet")
    for name in columns:
        found = table.read(name, 10, 390)
        assert np.array_equal(np.isnan(found), ~there[10:390])
        assert np.array_equal(found[there[10:390]], values[10:390][there[10:390]])


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "gzip"},
        {"compression": "lz4"},
        {"use_dictionary": False, "column_encoding": {"x": "BYTE_STREAM_SPLIT"}},
        {"use_dictionary": False, "column_encoding": {"k": "DELTA_BINARY_PACKED"}},
    ],
    ids=str,
)
def test_what_is_not_plain_is_read_by_pyarrow(tmp_path, how):
    columns = {"x": np.linspace(0, 1, N), "k": np.arange(N), "yes": np.arange(N) % 3 == 0}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", **how)
    table = ParquetTable(tmp_path / "a.parquet")
    assert any(table.plain.read(name, 0, 9) is None for name in ("x", "k"))
    for name, written in columns.items():
        assert np.array_equal(table.read(name, 7, N), written[7:])


def test_a_piece_reads_the_pages_of_its_rows_only(tmp_path, monkeypatch):
    x = np.random.default_rng(1).random(40_000)
    how = {"max_rows_per_page": 1000, "use_dictionary": False, "compression": "none"}
    pq.write_table(pa.table({"x": x}), tmp_path / "a.parquet", **how)
    table, sizes = ParquetTable(tmp_path / "a.parquet"), []
    read = LocalFile.bytes_at
    monkeypatch.setattr(
        LocalFile, "bytes_at", lambda self, at, n: sizes.append(n) or read(self, at, n)
    )
    assert np.array_equal(table.read("x", 0, 10), x[:10])
    assert sum(sizes) < 2 * 8000  # of 320 000
    assert np.array_equal(table.read("x", 38_000, 38_001), x[38_000:38_001])
    assert sum(n > 512 for n in sizes) == 2


def test_a_damaged_description_is_an_error_and_never_another_number(tmp_path):
    x = np.random.default_rng(1).random(2000)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": x}), path, compression="zstd", use_dictionary=False)
    whole = path.read_bytes()
    page = ParquetTable(path).plain
    page.read("x", 0, 1)
    at = page._chunks["x"].pages[0].at
    for place in range(4, at + 4):  # to the end of the four bytes with which zstd begins
        data = bytearray(whole)
        data[place] ^= 0x55
        path.write_bytes(data)
        try:
            found = ParquetTable(path).read("x", 0, 2000)
        except (OSError, ValueError):
            continue
        assert np.array_equal(found, x)


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
@settings(deadline=None)
@given(data=st.data())
def test_any_bytes_in_place_of_a_page_are_left_to_pyarrow_or_read(tmp_path_factory, codec, data):
    path = tmp_path_factory.getbasetemp() / f"fuzzed_{codec}.parquet"
    how = {"max_rows_per_page": 100, "write_batch_size": 100}
    pq.write_table(pa.table({"x": np.arange(300) % 50}), path, compression=codec, **how)
    whole = bytearray(path.read_bytes())
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    at = data.draw(st.integers(4, end - 1))
    other = data.draw(st.binary(min_size=1, max_size=min(40, end - at)))
    whole[at : at + len(other)] = other
    path.write_bytes(whole)
    found = ParquetTable(path).plain.read("x", 0, 300)
    assert found is None or found.shape == (300,)


@settings(deadline=None)
@given(data=st.data())
def test_damage_to_one_of_many_pages_is_an_error_or_one_other_number(tmp_path_factory, data):
    """Numbers that do not shrink are stored as they are; the frame around them is looked at."""
    path = tmp_path_factory.getbasetemp() / "checked.parquet"
    x = np.frombuffer(np.random.default_rng(1).bytes(2400), np.int64)
    table = pa.table({"x": x}, pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    how = {"max_rows_per_page": 100, "write_batch_size": 100, "use_dictionary": False}
    pq.write_table(table, path, compression="zstd", **how)
    whole = bytearray(path.read_bytes())
    plain = ParquetTable(path).plain
    plain.read("x", 0, 300)
    page = data.draw(st.sampled_from(plain._chunks["x"].pages))
    whole[page.at + data.draw(st.integers(0, 12))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    try:
        found = ParquetTable(path).read("x", 0, 300)
    except (OSError, ValueError):
        return
    assert sum(found != x) <= 1


def test_one_wrong_bit_beside_the_numbers_gives_no_rows_that_pyarrow_does_not_give(tmp_path):
    """In the descriptions of two pages and of the file."""
    path, x = tmp_path / "a.parquet", np.arange(100)
    table = pa.table({"x": x}, pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    how = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(table, path, row_group_size=50, store_schema=False, **how)
    whole = path.read_bytes()
    numbers = [whole.index(part.tobytes()) for part in (x[:50], x[50:])]
    beside = [i for i in range(4, len(whole) - 8) if not any(0 <= i - at < 400 for at in numbers)]
    for place, bit in itertools.product(beside, range(8)):
        data = bytearray(whole)
        data[place] ^= 1 << bit
        path.write_bytes(data)
        for rows in (slice(0, 30), slice(45, 70), slice(60, 80)):
            try:
                found = ParquetTable(path).plain.read("x", rows.start, rows.stop)
            except (OSError, ValueError, pa.ArrowException):
                continue
            if found is not None and not np.array_equal(found, x[rows]):  # as pyarrow has it, then
                other = pq.read_table(path)["x"].to_numpy()
                assert np.array_equal(found, other[rows]), (place, bit)


def test_rows_after_a_page_of_an_unknown_type_are_not_those_of_another_place(tmp_path):
    x = np.arange(200.0)
    how = {"max_rows_per_page": 50, "write_batch_size": 50, "use_dictionary": False}
    pq.write_table(pa.table({"x": x}), tmp_path / "a.parquet", row_group_size=100, **how)
    whole = bytearray((tmp_path / "a.parquet").read_bytes())
    plain = ParquetTable(tmp_path / "a.parquet").plain
    plain.read("x", 10, 90)
    first = plain._chunks["x"].pages[0]
    at = first.at + first.n_packed
    assert whole[at : at + 2] == b"\x15\x00"  # its type
    whole[at + 1] = 8
    (tmp_path / "a.parquet").write_bytes(whole)
    for rows in ((40, 120), (60, 110), (0, 100)):
        with pytest.raises(ValueError, match=r"column .x. has \d+ rows, the file says"):
            ParquetTable(tmp_path / "a.parquet").read("x", *rows)


def test_a_second_version_page_that_denies_its_missing_rows_is_left_to_pyarrow(tmp_path):
    values = [None if i == 4 else float(i % 3) for i in range(20)]
    path = tmp_path / "a.parquet"
    how = {"data_page_version": "2.0", "write_statistics": False}
    pq.write_table(pa.table({"x": pa.array(values)}), path, compression="none", **how)
    whole = path.read_bytes()
    rows, one, none = b"\x15\x28", b"\x15\x02", b"\x15\x00"  # 20 rows, missing ones, rows
    assert rows + one + rows in whole
    path.write_bytes(whole.replace(rows + one + rows, rows + none + rows))
    assert ParquetTable(path).plain.read("x", 0, 20) is None


def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)


LISTED = np.random.default_rng(5).random(1 << 12).astype(np.float32)


@st.composite
def runs(draw):
    """Places of a width, and their bytes, made with whole numbers of any length."""
    width = draw(st.integers(0, 32))
    value = st.integers(0, min(2**width, len(LISTED)) - 1)
    places, data = [], b""
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            n, one = draw(st.integers(1, 200)), draw(value)
            places += [one] * n
            data += varint(n << 1) + one.to_bytes((width + 7) // 8, "little")
        else:
            packed = draw(st.lists(value, min_size=8, max_size=40))
            packed = packed[: len(packed) // 8 * 8]
            bits = sum(one << (i * width) for i, one in enumerate(packed))
            places += packed
            data += varint(len(packed) // 8 << 1 | 1) + bits.to_bytes(
                len(packed) // 8 * width, "little"
            )
    return width, places, data


@settings(deadline=None)  # compiles
@given(runs())
def test_runs_hold_the_numbers_of_their_places(made):
    width, places, data = made
    out, data_ = np.zeros(len(places), np.float32), np.frombuffer(data, np.uint8)
    words = LISTED.view(np.uint32)
    assert listed_runs(data_, width, words, out.view(np.uint32))
    assert np.array_equal(out, LISTED[places])
    assert listed_runs(data_, width, words[: max(places) + 1], out.view(np.uint32))
    assert not listed_runs(data_, width, words[: max(places)], out.view(np.uint32))
    if width == 1:
        marks = np.frombuffer(len(data).to_bytes(4, "little") + data, np.uint8)
        assert _after_marks(marks, len(places)) == (len(marks) if all(places) else -1)


def test_a_page_of_plain_numbers_holds_them_and_no_more():
    body, out = np.arange(5, dtype=np.uint64), np.zeros(5, np.uint64)
    none = np.empty(0, np.uint64)
    for n_bytes, right in ((40, True), (39, False), (41, False)):
        page = np.array([(body.ctypes.data, n_bytes, 0, 5, 1, 0)])
        assert read_pages(page, none, none, out) == right
    assert np.array_equal(out, body)


@settings(deadline=None)
@given(st.binary(max_size=30), st.integers(0, 40))
def test_runs_of_any_bytes_end_inside_them(data, width):
    n = 50
    out = np.full(n + 10, 7, np.uint32)
    listed = np.arange(3, dtype=np.uint32)
    if listed_runs(np.frombuffer(data, np.uint8), width, listed, out[:n]):
        assert (out[:n] < 3).all()
    assert (out[n:] == 7).all()


READ = """
import sys
from pathlib import Path
from analysis.inputs.parquet_table import ParquetTable
try:
    ParquetTable(Path(sys.argv[1])).read("x", 0, 100)
except OSError as error:
    print(error)
"""


def test_an_unknown_codec_is_an_error_and_not_the_end_of_the_process(tmp_path):
    path = tmp_path / "a.parquet"
    how = {"compression": "snappy", "use_dictionary": False, "write_statistics": False}
    pq.write_table(pa.table({"x": np.arange(100.0)}), path, **how)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"\x18\x01x\x15\x02") + 4] ^= 16  # after the name of the column its codec
    path.write_bytes(data)
    done = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True)
    assert (done.returncode, "codec" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("needed", [True, False])
def test_a_column_inside_another_is_not_taken_for_one_of_its_name(tmp_path, order, needed):
    b = pa.field("b", pa.float64(), nullable=not needed)
    inside = pa.array([{"b": 1.0}, {"b": 2.0}], pa.struct([b]))
    fields = [pa.field("a", inside.type, nullable=False), pa.field("a.b", pa.float64())][::order]
    columns = [inside, pa.array([5.0, 6.0])][::order]
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    pq.write_table(table, tmp_path / "a.parquet")
    assert ParquetTable(tmp_path / "a.parquet").read("a.b", 0, 2).tolist() == [5.0, 6.0]


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_pages_that_deny_that_they_are_compressed_are_read_as_they_are(tmp_path, codec):
    """parquet-cpp before 2.0 wrote them so (ARROW-10353); pyarrow knows it by the writer's name."""
    x, path = np.random.default_rng(1).random(100), tmp_path / "a.parquet"
    how = {"data_page_version": "2.0", "use_dictionary": False, "write_statistics": False}
    schema = pa.schema([pa.field("x", pa.float64(), nullable=False)])
    pq.write_table(pa.table({"x": x}, schema), path, compression=codec, store_schema=False, **how)
    head, tail = path.read_bytes().split(x.tobytes())  # left as they are: they do not shrink
    packed = pa.compress(x.tobytes(), codec, asbytes=True)
    assert len(packed) > x.nbytes
    n_head = len(head) - len(b"PAR1")
    head = _second_replaced(head, b"\x15" + varint(2 * x.nbytes), b"\x15" + varint(2 * len(packed)))
    sizes = (varint(2 * (n_head + n)) for n in (x.nbytes, len(packed)))
    tail = _second_replaced(tail, *(b"\x16" + size for size in sizes))
    writer = re.search(rb"parquet-cpp-arrow version [0-9.]+", tail)[0]
    tail = tail.replace(writer, b"parquet-cpp version 1.5.1".ljust(len(writer)))
    path.write_bytes(head + packed + tail)
    assert np.array_equal(pq.read_table(path)["x"].to_numpy(), x)
    assert np.array_equal(ParquetTable(path).read("x", 0, 100), x)


def _second_replaced(data, old, new):
    """Sizes stand twice, whole and packed."""
    first, second, rest = data.split(old, 2)
    assert len(old) == len(new)
    return first + old + second + new + rest
