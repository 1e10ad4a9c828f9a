"""Baskets that are written without a copy are those that uproot writes."""

import numpy as np
import pytest
import uproot

from analysis.apply.baskets import write_without_copies

N = 1000
TYPES = {"score": np.float32, "pass": np.bool_, "p" * 300: np.float64, "xyz": (np.float64, (3,))}


def columns(rng):
    return {
        "score": rng.random(N).astype(">f4"),
        "pass": rng.random(N) < 0.5,
        "p" * 300: rng.random(2 * N).astype(">f8")[::2],  # not in one piece
        "xyz": rng.random((N, 3)).astype(">f8"),
    }


@pytest.fixture
def both(tmp_path):
    for name in ("ours", "else"):
        rng = np.random.default_rng(1)
        with uproot.create(tmp_path / f"{name}.root") as file:
            tree = file.mktree("t", {k: np.dtype(v) for k, v in TYPES.items()})
            tree.compression = {k: uproot.LZ4(1) if k == "pass" else None for k in TYPES}
            if name == "ours":
                write_without_copies(tree)
            for _ in range(12):
                tree.extend(columns(rng))
    return [tmp_path / "ours.root", tmp_path / "else.root"]


def test_a_file_is_the_same_up_to_its_time_and_name(both):
    ours, theirs = (uproot.open(path)["t"] for path in both)
    for branch in ours.branches:
        other = theirs[branch.name]
        assert np.array_equal(branch.array(library="np"), other.array(library="np"))
        for i in range(branch.num_baskets):
            keys = [b.basket(i).all_members for b in (branch, other)]
            time = [key.pop("fDatime", 0) for key in keys]
            assert keys[0] == keys[1]
            assert 0 <= abs(time[0] - time[1]) < 100
        assert branch.all_members["fTotBytes"] == other.all_members["fTotBytes"]
        assert branch.all_members["fBasketSeek"].tolist() == other.member("fBasketSeek").tolist()
    assert both[0].stat().st_size == both[1].stat().st_size


def test_plain_numbers_are_not_turned_to_bytes(tmp_path, monkeypatch):
    packed = []
    compress = uproot.compression.compress
    monkeypatch.setattr(
        uproot.compression, "compress", lambda d, how: packed.append(how) or compress(d, how)
    )
    with uproot.create(tmp_path / "a.root") as file:
        tree = file.mktree("t", {"x": np.float32})
        tree.compression = None
        write_without_copies(tree)
        packed.clear()
        tree.extend({"x": np.ones(N, ">f4")})
        assert packed == []


def test_another_uproot_writes_in_its_own_way():
    class Tree:
        _cascading = object()

    write_without_copies(Tree())
    write_without_copies(object())


def test_no_more_of_the_disk_is_reserved_than_is_written(tmp_path):
    with uproot.create(tmp_path / "a.root") as file:
        tree = file.mktree("t", {"x": np.float64})
        tree.compression = None
        write_without_copies(tree)
        for _ in range(20):
            tree.extend({"x": np.ones(100 * N, ">f8")})
    found = (tmp_path / "a.root").stat()
    assert found.st_size <= 20 * 100 * N * 8 + 100_000
    assert found.st_blocks * 512 <= found.st_size + 100_000
