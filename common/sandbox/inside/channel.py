"""Write messages with arrays to a pipe, and read them, without pickle.

A message is a JSON object in one line, followed by the bytes of the arrays. The key "arrays" of the
object lists the dtype and the shape of each array.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

Array = np.ndarray[Any, Any]

# The most bytes that the JSON line of a message may have.
_MAX_LINE = 1 << 16
# The most bytes that all arrays of a message may have together.
MAX_ARRAYS = 1 << 30
# The dtypes of booleans, integers and floating-point numbers, as `dtype.str` spells them.
_NUMBERS = re.compile(r"[<>|][biuf]\d{1,2}")


@dataclass(frozen=True)
class Message:
    """A message that has been read."""

    # The JSON object, without the key "arrays".
    fields: dict[str, Any]
    arrays: list[Array]


def write(pipe: IO[bytes], fields: dict[str, Any], arrays: Sequence[Array] = ()) -> None:
    """Write a message to a pipe."""
    kinds = [(array.dtype.str, array.shape) for array in arrays]
    pipe.write(json.dumps({**fields, "arrays": kinds}).encode() + b"\n")
    for array in arrays:
        pipe.write(array.tobytes())
    pipe.flush()


def read(pipe: IO[bytes]) -> Message:
    """Read a message from a pipe. Any exception means that the bytes are no valid message.

    An entry that cheats may have written any bytes to the pipe.
    """
    fields = json.loads(pipe.readline(_MAX_LINE))
    arrays = []
    bytes_left = MAX_ARRAYS
    # `kind` is a dtype as text, such as "<f8".
    for kind, shape in fields.pop("arrays"):
        if not _NUMBERS.fullmatch(kind):
            raise ValueError(f"not an array of numbers: {kind}")
        if any(type(length) is not int or length < 0 for length in shape):
            raise ValueError(f"not a shape: {shape}")
        dtype = np.dtype(kind)
        n_bytes = math.prod(shape) * dtype.itemsize
        if n_bytes > bytes_left:
            raise ValueError(f"too large: {n_bytes} bytes")
        bytes_left -= n_bytes
        content = pipe.read(n_bytes)
        # If the pipe was closed before all the bytes came, `np.ndarray` raises an exception.
        array: Array = np.ndarray(shape, dtype, content)
        if dtype.kind == "b":
            # A boolean is a byte, 0 or 1. The entry may have written other bytes: count them as
            # True.
            array = array.view(np.uint8) != 0
        arrays.append(array)
    return Message(fields, arrays)
