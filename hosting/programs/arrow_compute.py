"""What the kit's evaluation needs of `pyarrow.compute`, in NumPy.

A function of columns gives a missing value wherever one of them has one. `stand_ins.py` says why
this exists.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from arrow import ChunkedArray, DataType, Scalar

_BOOL = DataType("bool")
Operand = ChunkedArray | Any


def _split(operand: Operand) -> tuple[Any, Any]:
    """Return the values of a column or a single value, and which are there."""
    if isinstance(operand, ChunkedArray):
        return operand.data, operand.valid
    return operand, operand is not None


def _combine(function: Callable[..., Any], *operands: Operand) -> ChunkedArray:
    """Apply a function of values, whose result is true or false."""
    data, valid = zip(*map(_split, operands), strict=True)
    known = np.logical_and.reduce(np.broadcast_arrays(*valid))
    with np.errstate(invalid="ignore"):
        result = np.asarray(function(*data), bool)
    n = max(len(operand) for operand in operands if isinstance(operand, ChunkedArray))
    return ChunkedArray(np.broadcast_to(result, n), np.broadcast_to(known, n), _BOOL)


def equal(left: Operand, right: Operand) -> ChunkedArray:
    """Tell where values are equal."""
    return _combine(lambda a, b: a == b, left, right)


def greater_equal(left: Operand, right: Operand) -> ChunkedArray:
    """Tell where the left value is at least the right one."""
    return _combine(lambda a, b: a >= b, left, right)


def less_equal(left: Operand, right: Operand) -> ChunkedArray:
    """Tell where the left value is at most the right one."""
    return _combine(lambda a, b: a <= b, left, right)


def and_(left: Operand, right: Operand) -> ChunkedArray:
    """Tell where both are true."""
    return _combine(np.logical_and, left, right)


def or_(left: Operand, right: Operand) -> ChunkedArray:
    """Tell where one of them is true."""
    return _combine(np.logical_or, left, right)


def invert(values: ChunkedArray) -> ChunkedArray:
    """Tell where it is false."""
    return _combine(np.logical_not, values)


def is_nan(values: ChunkedArray) -> ChunkedArray:
    """Tell which numbers are NaN."""
    return _combine(np.isnan, values)


def is_null(values: ChunkedArray) -> ChunkedArray:
    """Tell which values are missing."""
    return ChunkedArray(~values.valid, np.ones(len(values), bool), _BOOL)


def is_valid(values: ChunkedArray) -> ChunkedArray:
    """Tell which values are there."""
    return ChunkedArray(values.valid, np.ones(len(values), bool), _BOOL)


def any(values: ChunkedArray) -> Scalar:
    """Tell whether any known value is true."""
    return Scalar(bool(values.data[values.valid].any()))


def all(values: ChunkedArray) -> Scalar:
    """Tell whether all known values are true."""
    return Scalar(bool(values.data[values.valid].all()))


def min_max(values: ChunkedArray) -> Scalar:
    """Return the smallest and the largest known value; None where there is none."""
    known = values.data[values.valid]
    if not len(known):
        return Scalar({"min": None, "max": None})
    return Scalar({"min": known.min(), "max": known.max()})


def round(values: ChunkedArray) -> ChunkedArray:
    """Round numbers, halves to even ones."""
    return ChunkedArray(np.round(values.data), values.valid, values.type)


def fill_null(values: ChunkedArray, filling: Any) -> ChunkedArray:
    """Put a value where one is missing."""
    data = np.where(values.valid, values.data, np.asarray(filling, values.data.dtype))
    return ChunkedArray(data, np.ones(len(values), bool), values.type)


def if_else(condition: ChunkedArray, left: Operand, right: Operand) -> ChunkedArray:
    """Take the left value where the condition holds, the right one elsewhere."""
    column = left if isinstance(left, ChunkedArray) else right
    known = np.where(condition.data, _split(left)[1], _split(right)[1]) & condition.valid
    blank = column.data[:1]
    parts = [
        side.data if isinstance(side, ChunkedArray) else blank if side is None else side
        for side in (left, right)
    ]
    data = np.where(condition.data, *parts) if len(column) else column.data
    return ChunkedArray(data.astype(column.data.dtype), known, column.type)


def cast(values: ChunkedArray, type: DataType) -> ChunkedArray:
    """Convert numbers, or text that holds numbers."""
    if values.type.name == "string":
        texts = np.where(values.valid, values.data, "0")
        return ChunkedArray(texts.astype(type.dtype), values.valid, type)
    data = np.where(values.valid, values.data, 0)
    return ChunkedArray(data.astype(type.dtype), values.valid, type)


def _map(values: ChunkedArray, function: Callable[[str], Any], type: DataType) -> ChunkedArray:
    """Apply a function to every text."""
    results: npt.NDArray[Any] = np.empty(len(values), type.dtype)
    results[:] = [function(text) for text in np.where(values.valid, values.data, "").tolist()]
    return ChunkedArray(results, values.valid, type)


def utf8_trim_whitespace(values: ChunkedArray) -> ChunkedArray:
    """Remove white space around texts."""
    return _map(values, str.strip, values.type)


def utf8_lower(values: ChunkedArray) -> ChunkedArray:
    """Write texts in small letters."""
    return _map(values, str.lower, values.type)


def utf8_slice_codeunits(values: ChunkedArray, start: int, stop: int) -> ChunkedArray:
    """Return a part of every text."""
    return _map(values, lambda text: text[start:stop], values.type)


def match_substring_regex(values: ChunkedArray, pattern: str) -> ChunkedArray:
    """Tell which texts match a pattern."""
    search = re.compile(pattern, re.ASCII).search
    return _map(values, lambda text: search(text) is not None, _BOOL)
