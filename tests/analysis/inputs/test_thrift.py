"""Structures of Thrift, written here by hand."""

import pytest

from analysis.inputs.root_bytes import NotPlainError
from analysis.inputs.thrift import fields, varint


def number(n):
    """A whole number, seven bits a byte."""
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)


def test_a_description_is_read_by_its_types():
    # 1: -3 (i32), 2: true, 4: bytes, 5: {1: 300 (i64)}
    data = bytes([0x15, 5, 0x11, 0x28, 2, 9, 9, 0x1C, 0x16, *number(600), 0, 0])
    assert fields(data, 0) == ({1: -3, 2: True, 4: None, 5: {1: 300}}, len(data))


def test_lists_have_values_of_one_type():
    # 1: [-1, 300], 2: two texts, 3: a list of structures, 4: sixteen numbers
    data = bytes([0x19, 0x25, 1, *number(600), 0x19, 0x28, 1, 9, 0, 0x19, 0x1C, 0x15, 4, 0])
    data += bytes([0x19, 0xF5, 16, *range(0, 32, 2), 0])
    found, end = fields(data, 0)
    assert found == {1: [-1, 300], 2: [None, None], 3: [{1: 2}], 4: list(range(16))}
    assert end == len(data)


def test_a_number_ends_after_64_bits():
    assert varint(b"\xff" * 9 + b"\x01", 0) == (2**64 - 1, 10)
    with pytest.raises(ValueError, match="64"):
        varint(b"\xff" * 1000, 0)


@pytest.mark.parametrize("data", [b"", b"\x15", b"\x15\x80", b"\x19\xf5\xff\xff\x7f", b"\x1c" * 9])
def test_an_end_that_is_missing_is_an_error(data):
    with pytest.raises(LookupError):
        fields(data, 0)


@pytest.mark.parametrize("data", [b"\x1d\x00", b"\x05\x00", b"\x19\x11\x01\x00"])
def test_other_types_are_not_guessed(data):
    with pytest.raises(NotPlainError):
        fields(data, 0)
