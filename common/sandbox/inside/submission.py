"""The class `Submission` of an entry: make an instance, call its methods."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .channel import MAX_ARRAYS, Array

MODULE = "submission_model_task_4"
CLASS = "Submission"
# The methods that an entry must have, with the names that are accepted for each. In many published
# entries, `select_questions` has the name `select_feature`.
METHODS = {
    "select_questions": ("select_questions", "select_feature"),
    "predict": ("predict",),
}
# A method that an entry may have or lack: the challenge's guide says that it is optional.
UPDATE = "update_model"
# The arguments of the methods, in order; `predict` gets the first two.
ARGUMENTS = ("masked_data", "masked_binary_data", "can_query")


class InvalidEntryError(Exception):
    """An entry lacks a method, or a method returned something other than an array of numbers."""


@dataclass(frozen=True)
class Returned:
    """The result of a method that has been called."""

    # Numbers of any dtype and shape. None if the method returned None, or its result is not used.
    values: Array | None
    # Names of the arguments that the method changed.
    changed: list[str]


def create() -> Any:
    """Import the entry's module and make an instance of its class.

    Raises `InvalidEntryError` if there is no such class, or it lacks a method.
    """
    submission = getattr(importlib.import_module(MODULE), CLASS, None)
    if submission is None:
        raise InvalidEntryError(f"{MODULE}.py has no class {CLASS}")
    entry = submission()
    for names in METHODS.values():
        _find_method(entry, names)
    return entry


def call_method(entry: Any, method: str, arrays: Sequence[Array]) -> Returned:
    """Call a method of an entry with int64 copies of arrays, and return its result.

    The method may change the copies, since the evaluator goes on with its own arrays. The result
    tells which copies the method changed, so that the author of the entry can be told.

    An entry need not have the method `update_model`: without it, the result is empty. Raises
    `InvalidEntryError` if any other method is missing, or the method returns anything but numbers.
    """
    if method == UPDATE and not hasattr(entry, UPDATE):
        return Returned(None, [])
    copies = [array.astype(np.int64) for array in arrays]
    # `METHODS` lists the accepted names of each method that an entry must have. The method
    # `update_model` has only its own name.
    accepted_names = METHODS.get(method, (method,))
    call = _find_method(entry, accepted_names)
    result = call(*copies)
    # `predict` gets only the first two of the arguments. With strict=True, `zip` would therefore
    # raise an error.
    compared = zip(ARGUMENTS, copies, arrays, strict=False)
    changed = [name for name, copy, array in compared if not np.array_equal(copy, array)]
    if method == UPDATE or result is None:
        return Returned(None, changed)
    return Returned(_as_numbers(result), changed)


def _find_method(entry: Any, names: tuple[str, ...]) -> Any:
    """Return the entry's method with one of some names; the first name that exists counts.

    Raises `InvalidEntryError` if the entry has none of the names.
    """
    for name in names:
        if hasattr(entry, name):
            return getattr(entry, name)
    raise InvalidEntryError(f"class {CLASS} has no method {' or '.join(names)}")


def _as_numbers(result: Any) -> Array:
    """Return what a method has returned as an array of numbers, or raise `InvalidEntryError`."""
    if hasattr(result, "detach"):
        # A PyTorch tensor with a gradient cannot be turned into an array.
        result = result.detach()
    returned = f"returned a {type(result).__name__}"
    try:
        values = np.asarray(result)
    except (TypeError, ValueError) as error:
        raise InvalidEntryError(f"{returned} that is not an array: {error}") from None
    # These letters are NumPy's kinds boolean, integer, unsigned integer and float.
    if values.dtype.kind not in "biuf":
        raise InvalidEntryError(f"{returned} of {values.dtype} values, expected numbers")
    if values.nbytes > MAX_ARRAYS:
        raise InvalidEntryError(
            f"returned an array of {values.nbytes:,} bytes, expected at most {MAX_ARRAYS:,}"
        )
    return values
