"""Pairs of a submission and its reference, found in any order, against a plain dictionary."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.io import Source
from common.submission import Pairs, find_pairs

PAIR_SETS = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 9_999_999)), min_size=1, unique=True
)


def pairs(name: str, rows: list[tuple[int, int]]) -> Pairs:
    columns = np.array(rows, np.int32).reshape(-1, 2)
    return Pairs(Source(name, open=lambda: pa.BufferReader(b"")), columns[:, 0], columns[:, 1])


@given(PAIR_SETS, st.integers(0, 5))
def test_every_pair_is_found_in_any_order(rows: list[tuple[int, int]], n_extra: int) -> None:
    submitted = sorted(rows, key=hash)
    wanted = rows[: max(1, len(rows) - n_extra)]
    place = {pair: row for row, pair in enumerate(submitted)}
    found, extra = find_pairs(pairs("mine.csv", submitted), pairs("answers.csv", wanted))
    assert found.tolist() == [place[pair] for pair in wanted]
    assert extra.tolist() == [pair not in set(wanted) for pair in submitted]


@given(PAIR_SETS, st.data())
def test_a_missing_pair_is_named(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    missing = data.draw(st.sampled_from(rows))
    rest = [pair for pair in reversed(rows) if pair != missing] or [(missing[0], missing[1] ^ 1)]
    message = f"1 of {len(rows)} pairs are missing, first UserId {missing[0]} and QuestionId "
    with pytest.raises(InputError, match=f"{message}{missing[1]}, expected"):
        find_pairs(pairs("mine.csv", rest), pairs("answers.csv", rows))
