"""A file whose head, tail or size changes is another file."""

import pytest

from analysis.inputs.fingerprint import (
    HEAD_BYTES,
    TAIL_BYTES,
    file_fingerprint,
    local_fingerprint,
)

LARGE = HEAD_BYTES + TAIL_BYTES + 5000


@pytest.mark.parametrize("size", [1, 500, HEAD_BYTES + 10, TAIL_BYTES, LARGE])
def test_a_changed_byte_at_either_end_is_seen(tmp_path, size):
    path, content = tmp_path / "f", bytes(size)
    path.write_bytes(content)
    before = local_fingerprint(path)
    assert before == local_fingerprint(path)
    for at in {0, min(size, HEAD_BYTES) - 1, max(size - TAIL_BYTES, 0), size - 1}:
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(bytes(changed))
        assert local_fingerprint(path) != before, at


@pytest.mark.parametrize("size", [0, 10, LARGE])
def test_a_byte_more_is_seen(tmp_path, size):
    (tmp_path / "a").write_bytes(bytes(size))
    (tmp_path / "b").write_bytes(bytes(size + 1))
    assert local_fingerprint(tmp_path / "a") != local_fingerprint(tmp_path / "b")


def test_where_a_file_lies_does_not_matter(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"same")
    one, two = (file_fingerprint(str(tmp_path / name), "uuid", 5) for name in ("a", "b"))
    assert one == two == local_fingerprint(tmp_path / "a")


def test_a_file_behind_an_address_is_known_by_what_it_says_of_itself():
    base = file_fingerprint("root://host//f.root", "u1", 5)
    assert base == file_fingerprint("root://other//f.root", "u1", 5)
    assert base != file_fingerprint("root://host//f.root", "u2", 5)
    assert base != file_fingerprint("root://host//f.root", "u1", 6)
