"""Checks of the arguments that users give: each error names argument, value and expectation."""

from numbers import Integral
from typing import Any

from common.arrays import IntArray
from common.errors import InputError

import numpy as np
import numpy.typing as npt


def check_settings(
    n_dimensions: int | None, guessing: float | None, seed: int, n_steps: int | None
) -> None:
    """Raise `InputError` if a setting of an estimator is out of its range."""
    if n_dimensions is not None:
        _check_whole_number("n_dimensions", n_dimensions, low=1)
    if guessing is not None and not 0 <= guessing <= 0.9:
        raise InputError(f"guessing is {guessing}, expected 0 to 0.9")
    _check_whole_number("seed", seed, low=0)
    if n_steps is not None:
        _check_whole_number("n_steps", n_steps, low=1)


def _check_whole_number(name: str, value: object, low: int) -> None:
    if not isinstance(value, Integral):
        raise InputError(f"{name} is {value!r}, expected a whole number")
    if int(value) < low:
        raise InputError(f"{name} is {value}, expected at least {low}")


def as_ids(name: str, values: npt.ArrayLike, n_expected: int | None = None) -> IntArray:
    """Return ids as an array of int32 or int64, shape (n,).

    `n_expected`, if given, is the length that the ids must have: the length of `student`.
    """
    ids = _as_whole_numbers(name, values)
    _check_shape(name, ids, n_expected)
    _check_range(name, ids, low=0)
    return _as_32_or_64_bits(ids)


def as_category(
    name: str, values: npt.ArrayLike, n_expected: int, low: int, high: int
) -> npt.NDArray[np.int8]:
    """Return whole numbers between `low` and `high`, or booleans, as int8, shape (n,)."""
    array = np.asarray(values)
    if array.dtype != bool:
        array = _as_whole_numbers(name, array)
    _check_shape(name, array, n_expected)
    if array.dtype != bool:
        _check_range(name, array, low, high)
    return array.astype(np.int8, copy=False)


def as_context(
    values: npt.ArrayLike | None,
    n_expected: int,
    n_levels: int | None = None,
    name: str = "context",
) -> IntArray:
    """Return ids of contexts as an array of int32 or int64, or raise `InputError`.

    The result has a row for each answer, pair or question, and a column for each level of contexts
    (MODEL.md explains levels).

    Parameters
    ----------
    values
        The ids of the contexts. An array of shape (n,) is one level. None: there are no contexts.
    n_expected
        The number of rows that the ids must have.
    n_levels
        The number of levels that the ids must have. With None, any number of levels is valid.
    name
        The name of the argument in errors.
    """
    if values is None:
        fit_had_contexts = n_levels is not None and n_levels > 0
        if fit_had_contexts:
            raise InputError(
                "context is missing: the answers of the fit had contexts, expected those of the "
                "pairs as well"
            )
        return np.zeros((n_expected, 0), np.int32)
    context = _as_whole_numbers(name, values)
    if context.ndim == 1:
        context = context[:, None]
    if context.ndim != 2 or len(context) != n_expected:
        raise InputError(
            f"{name} has shape {np.shape(values)}, expected ({n_expected}, levels), one row for "
            "each answer, pair or question"
        )
    if n_levels is not None and context.shape[1] != n_levels:
        raise InputError(
            f"{name} has {context.shape[1]} levels, expected {n_levels}, as the fit had"
        )
    _check_range(name, context, low=0)
    return _as_32_or_64_bits(context)


def _as_whole_numbers(name: str, values: Any) -> IntArray:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} has dtype {array.dtype}, expected whole numbers")
    return array


def _as_32_or_64_bits(ids: IntArray) -> IntArray:
    """Return ids as int32 or int64, since arithmetic with smaller types could overflow."""
    return ids if ids.dtype in (np.int32, np.int64) else ids.astype(np.int64)


def _check_shape(name: str, array: npt.NDArray[Any], n_expected: int | None) -> None:
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}, expected one dimension")
    if n_expected is not None and len(array) != n_expected:
        raise InputError(f"{name} has {len(array)} values, expected {n_expected}, as student has")


def _check_range(name: str, array: IntArray, low: int, high: int | None = None) -> None:
    """Raise `InputError` for the first number below `low` or above `high`.

    `array` has one or two dimensions. Without `high`, there is no upper bound.
    """
    if not array.size:
        return
    is_too_low = array.min() < low
    is_too_high = high is not None and array.max() > high
    if not is_too_low and not is_too_high:
        return
    is_wrong = array < low
    expected = f"at least {low}"
    if high is not None:
        is_wrong |= array > high
        expected = f"{low} to {high}"
    # The index of the first wrong number: (row,) or, if there are two dimensions, (row, column).
    first = tuple(np.argwhere(is_wrong)[0])
    row = int(first[0])
    value = array[first]
    raise InputError(f"{name} holds {value} at position {row}, expected {expected}")
