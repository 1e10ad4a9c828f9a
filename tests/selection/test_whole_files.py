"""Files are complete or not there."""

import os

import pytest

from selection.whole_files import replacing, write_bytes, write_text


class Interrupted(BaseException):
    """As KeyboardInterrupt: nobody catches it."""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_writer_that_ends_well_gives_the_file_its_name_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "deep" / "a.json"
    with replacing(path) as temporary:
        temporary.write_text("one")
        assert not path.exists()
        assert temporary.parent == path.parent  # a rename over disks would be a copy
        assert temporary.name.startswith(".")  # what a killed process leaves is known by it
        assert temporary.suffix == path.suffix  # writers that go by the suffix
    assert path.read_text() == "one"
    assert names(path.parent) == ["a.json"]


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, Interrupted])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_writer_that_fails_leaves_the_old_file_and_no_temporary_one(tmp_path, error, before):
    path = tmp_path / "a.txt"
    if before:
        path.write_text(before)

    def write():
        with replacing(path) as temporary:
            temporary.write_text("half of it")
            raise error

    with pytest.raises(error):
        write()
    assert names(tmp_path) == (["a.txt"] if before else [])
    assert not before or path.read_text() == before


def test_a_writer_that_writes_nothing_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(FileNotFoundError), replacing(path):
        pass
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_two_writers_of_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as one, replacing(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"  # the last to end
    assert names(tmp_path) == ["a.txt"]


def test_a_full_disk_is_named_with_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_bytes(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_bytes_are_on_the_disk_before_the_file_has_its_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "a.bin", []

    def synced(descriptor):
        seen.append((os.fstat(descriptor).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", synced)
    write_bytes(path, b"12345")
    assert seen == [(5, False)]
    assert path.read_bytes() == b"12345"


def test_text_is_utf8_and_names_that_are_not_are_written_out(tmp_path):
    write_text(tmp_path / "a.txt", "μ and \udcff")
    assert (tmp_path / "a.txt").read_bytes() == "μ and \\udcff".encode()
