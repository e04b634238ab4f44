"""Smoothed rates of whatever answers have in common."""

from collections.abc import Sequence
from typing import Any

from common.answer_features.known import Known, shrunk_mean
from common.answer_features.pairs import Pairs
from common.answers import IntArray

import numpy as np
import numpy.typing as npt

Columns = dict[str, npt.NDArray[np.floating[Any]]]


def rates_of(
    pairs: Pairs, known: Known, asked: IntArray, keys: Sequence[tuple[str, ...]]
) -> Columns:
    """Return by how much known answers exceed expectation, on average, and how many they are.

    Parameters
    ----------
    pairs, known, asked
        As every group of features takes them.
    keys
        What the answers have in common with the row: one or two names of `Pairs.numbers` each.

    Returns
    -------
    dict
        For each key two columns, shape (asked,), such as student_quiz_rate and student_quiz_count;
        NaN where the row belongs to no such group.
    """
    columns: Columns = {}
    for names in keys:
        number = pairs.number(*names)
        n_groups = int(number.max(initial=-1)) + 1
        mean, count = shrunk_mean(number[known.rows], known.residual, n_groups)
        columns["_".join([*names, "rate"])] = look_up(mean, number[asked])
        columns["_".join([*names, "count"])] = look_up(count, number[asked])
    return columns


def look_up(
    values: npt.NDArray[np.floating[Any]], number: IntArray
) -> npt.NDArray[np.floating[Any]]:
    """Return the value of each number, NaN for -1."""
    if not len(values):
        return np.full(len(number), np.nan, np.float32)
    return np.where(number < 0, np.float32(np.nan), values[number])
