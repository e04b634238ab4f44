"""Messages with arrays as bytes in a pipe; nothing is pickled.

A message is a JSON object in one line, then the bytes of its arrays. The key "arrays" of the object
lists the dtype and the shape of each array.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

Array = np.ndarray[Any, Any]

# The longest line of a message, and the most bytes of all its arrays.
_MAX_LINE = 1 << 16
MAX_ARRAYS = 1 << 30
# Booleans, integers and floating-point numbers of a fixed size, as `dtype.str` spells them.
_NUMBERS = re.compile(r"[<>|][biuf]\d{1,2}")


@dataclass(frozen=True)
class Message:
    """What one side has sent: the fields of the JSON object, and the arrays after it."""

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
    """Read a message from a pipe; any exception means that `write` has not written it."""
    fields = json.loads(pipe.readline(_MAX_LINE))
    arrays = []
    bytes_left = MAX_ARRAYS
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
        array: Array = np.ndarray(shape, dtype, pipe.read(n_bytes))
        if dtype.kind == "b":
            # A forged byte may be neither 0 nor 1; any byte but 0 means True.
            array = array.view(np.uint8) != 0
        arrays.append(array)
    return Message(fields, arrays)
