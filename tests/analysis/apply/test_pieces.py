"""Pieces of a file of apply: they cover it, and end where its baskets do as far as sizes allow."""

from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from analysis.apply.rows import FileRows, planned_rows


@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 80))
def test_pieces_cover_a_file_and_share_a_basket_only_if_it_is_too_large(
    tmp_path_factory, groups, size
):
    path = tmp_path_factory.mktemp("pieces") / "a.parquet"
    n = sum(groups)
    with pq.ParquetWriter(path, pa.schema([("x", pa.float64())])) as writer:
        for rows in groups:
            writer.write_table(pa.table({"x": np.zeros(rows)}))
    whole = FileRows(str(path), "", "", {"x": "x"}, 0, n)
    pieces = planned_rows(whole, chunk_size=size)
    assert [p.start for p in pieces] == [0, *(p.stop for p in pieces[:-1])]
    assert pieces[-1].stop == n
    assert all(p.stop - p.start <= 2 * size for p in pieces)
    borders = list(accumulate(groups, initial=0))
    for piece in pieces[:-1]:
        if piece.stop not in borders:  # none was near enough
            assert not any(
                piece.start + size // 2 < b <= piece.start + 2 * size for b in borders[1:]
            )


def test_a_group_of_twice_the_size_is_one_piece(tmp_path):
    pq.write_table(pa.table({"x": np.zeros(40)}), tmp_path / "a.parquet", row_group_size=20)
    whole = FileRows(str(tmp_path / "a.parquet"), "", "", {"x": "x"}, 0, 40)
    assert [p.stop for p in planned_rows(whole, chunk_size=10)] == [20, 40]
    assert [p.stop for p in planned_rows(whole, chunk_size=9)] == [9, 20, 29, 40]
