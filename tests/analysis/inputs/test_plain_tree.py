"""Plain trees are read from their bytes: the numbers of uproot, or left to uproot."""

import tracemalloc

import cramjam
import numpy as np
import pytest
import uproot
import zstandard

from analysis.inputs.plain_tree import plain_file
from analysis.inputs.root_bytes import BLOCK, KEY, unpacked
from analysis.inputs.tables import open_file

KINDS = ("f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")
PACKED = {"ZS": uproot.ZSTD(1), "L4": uproot.LZ4(1), "ZL": uproot.ZLIB(1), "XZ": uproot.LZMA(1)}


def numbers(n, seed=1):
    """One column of each type, with numbers that compress."""
    rng = np.random.default_rng(seed)
    return {f"x{kind}": rng.integers(0, 2, n).astype(kind) for kind in KINDS}


def write(path, columns, *, compression=None, baskets=3, names=("variables",)):
    n = len(next(iter(columns.values())))
    with uproot.recreate(path, compression=compression) as file:
        for name in names:
            tree = file.mktree(name, {k: v.dtype for k, v in columns.items()})
            for rows in np.array_split(np.arange(n), baskets):
                tree.extend({k: v[rows] for k, v in columns.items()})
    return path


@pytest.mark.parametrize("packed", [None, *PACKED])
def test_plain_numbers_are_those_of_uproot(tmp_path, packed):
    path = write(tmp_path / "a.root", numbers(1000), compression=PACKED.get(packed))
    tree = plain_file(str(path)).tree("variables")
    assert packed is None or packed.encode() in path.read_bytes()
    with uproot.open(path) as file:
        other = file["variables"]
        assert list(tree.names) == other.keys()
        assert tree.n_entries == other.num_entries == 1000
        for name in other.keys():  # noqa: SIM118
            for start, stop in ((0, 1000), (333, 334), (334, 1000), (400, 401), (5, 5)):
                theirs = other[name].array(entry_start=start, entry_stop=stop, library="np")
                ours = tree.read(name, start, stop)
                assert ours.dtype == theirs.dtype
                assert np.array_equal(ours, theirs)
        assert np.array_equal(tree.borders(["xf4", "xi8"]), other.common_entry_offsets())
        kinds = {b.name: b.interpretation.to_dtype.newbyteorder("=") for b in other.branches}
    with open_file(str(path)) as opened:
        assert list(opened.table("variables").types().items()) == list(kinds.items())


def test_folders_and_what_is_no_plain_number_are_left_to_uproot(tmp_path):
    values = numbers(30)
    write(tmp_path / "a.root", values, names=("variables", "in/side"))
    assert plain_file(str(tmp_path / "a.root")) is None
    with uproot.recreate(tmp_path / "b.root") as file:
        file.mktree("variables", {"x": np.dtype("f8"), "v": np.dtype(("f8", (3,)))}).extend(
            {"x": np.arange(4.0), "v": np.ones((4, 3))}
        )
    tree = plain_file(str(tmp_path / "b.root")).tree("variables")
    assert set(tree.branches) == {"x"}
    for name, table in (("a.root", "in/side"), ("b.root", "variables")):
        with open_file(str(tmp_path / name)) as file:
            found = file.table(table)
            assert found.read(found.names[0], 1, 3).shape == (2,)
            assert found.names


def test_a_tree_of_another_version_is_left_to_uproot(tmp_path):
    path = write(tmp_path / "a.root", numbers(30))
    file = plain_file(str(path))
    at = file.keys["variables"].at + file.keys["variables"].n_key
    data = bytearray(path.read_bytes())
    assert data[at + 4 : at + 6] == b"\x00\x14"
    data[at + 5] = 19
    path.write_bytes(data)
    assert plain_file(str(path)).tree("variables") is None


@pytest.mark.parametrize("packed", [None, *PACKED])
def test_a_damaged_basket_is_refused_and_never_other_numbers(tmp_path, packed):
    path = write(tmp_path / "a.root", numbers(1000), compression=PACKED.get(packed))
    branch = plain_file(str(path)).tree("variables").branches["xf8"]
    place, size = int(branch.places[1]), int(branch.sizes[1])
    whole = path.read_bytes()
    for damage in (b"", whole[: place + size - 1]):  # a basket of zeros, a file that ends in it
        zeros = whole[:place] + bytes(size) + whole[place + size :]
        path.write_bytes(damage or zeros)
        tree = plain_file(str(path))
        if tree is not None and tree.tree("variables") is not None:
            with pytest.raises(ValueError, match=r"damaged|ends before"):
                tree.tree("variables").read("xf8", 0, 1000)
        else:
            assert damage  # what lies behind the cut cannot be listed


def test_the_beginning_of_a_large_basket_is_that_of_the_whole_basket(tmp_path):
    """It is decompressed alone: a look at a few rows of a file of large baskets costs little."""
    n = 100_000
    x = np.random.default_rng(1).normal(size=n)
    path = write(tmp_path / "a.root", {"x": x}, compression=PACKED["ZS"], baskets=2)
    tree = plain_file(str(path)).tree("variables")
    for start, stop in ((0, 10), (7, 9000), (0, n), (n // 2, n // 2 + 1), (n // 2 - 5, n // 2 + 5)):
        assert np.array_equal(tree.read("x", start, stop), x[start:stop])
    assert len(unpacked(*packed_basket(path), 80)) == 80


def packed_basket(path):
    """The compressed blocks of the first basket, and the size that is promised."""
    branch = plain_file(str(path)).tree("variables").branches["x"]
    place, size = int(branch.places[0]), int(branch.sizes[0])
    data = path.read_bytes()[place : place + size]
    _, _, n_object, _, n_key, _ = KEY.unpack_from(data)
    return data[n_key:], n_object


@pytest.mark.parametrize("wanted", [80, None])
@pytest.mark.parametrize("n", [1000, 50_000])  # small blocks and large ones are read in two ways
def test_a_damaged_block_is_refused_however_much_of_it_is_wanted(tmp_path, n, wanted):
    x = np.random.default_rng(1).normal(size=n)
    path = write(tmp_path / "a.root", {"x": x}, compression=PACKED["ZS"], baskets=1)
    data, size = packed_basket(path)
    zeros = data[:BLOCK] + bytes(len(data) - BLOCK)
    with pytest.raises(cramjam.DecompressionError):
        unpacked(zeros, size, wanted)
    less = cramjam.zstd.compress(bytes(40))  # a whole frame, but of other data
    short = data[:3] + len(bytes(less)).to_bytes(3, "little") + data[6:BLOCK] + bytes(less)
    with pytest.raises(ValueError, match="gives 40 bytes"):
        unpacked(short, size, wanted)


def test_a_small_block_holds_one_frame_and_nothing_else(tmp_path):
    x = np.frombuffer(np.random.default_rng(1).bytes(800), np.int64)
    path = write(tmp_path / "a.root", {"x": x}, compression=PACKED["ZS"], baskets=1)
    data, size = packed_basket(path)
    other = bytearray(data)
    if data[:2] != b"ZS":  # stored as it is: pack it here
        body = bytes(cramjam.zstd.compress(x.astype(">i8").tobytes()))
        other = bytearray(b"ZS\x01" + len(body).to_bytes(3, "little") + size.to_bytes(3, "little"))
        other += body
    for extra in (b"junk", bytes(cramjam.zstd.compress(b"more"))):
        longer = (len(other) - BLOCK + len(extra)).to_bytes(3, "little")
        with pytest.raises((ValueError, cramjam.DecompressionError)):
            unpacked(bytes(other[:3] + longer + other[6:]) + extra, size)
    header = 5 + 1 + (other[BLOCK + 4] >> 6 > 0)  # magic, descriptor, size of the content
    other[BLOCK + header] ^= 2  # a raw block becomes one of equal bytes
    with pytest.raises((ValueError, cramjam.DecompressionError)):
        unpacked(bytes(other), size)


def test_a_small_block_that_would_grow_is_refused_before_it_does(tmp_path):
    path = write(tmp_path / "a.root", {"x": np.arange(1000.0)}, compression=PACKED["ZS"], baskets=1)
    data, size = packed_basket(path)
    packer = zstandard.ZstdCompressor().compressobj(size=1 << 28)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    assert len(bomb) < 1 << 16
    short = data[:3] + len(bomb).to_bytes(3, "little") + data[6:BLOCK] + bomb
    tracemalloc.start()
    with pytest.raises(cramjam.DecompressionError):
        unpacked(short, size)
    largest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert largest < 1 << 20
