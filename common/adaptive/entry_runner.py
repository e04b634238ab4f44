"""Run an entry of task 4 in a process of its own; the other end is `entry_process.py` beside it.

A copy of this file runs beside the entry's folder, with NumPy and without the kit. Requests come
through stdin and replies go through stdout; nothing is pickled.
"""

import contextlib
import importlib
import json
import math
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

MODULE = "submission_model_task_4"
CLASS = "Submission"
# The kit's shared code, which is not there in the challenge.
KIT = ("common", "tools")
# Accepted names of the methods needed: published entries call the first one `select_feature`.
METHODS = {
    "select_questions": ("select_questions", "select_feature"),
    "update_model": ("update_model",),
    "predict": ("predict",),
}
ARGUMENTS = ("masked_data", "masked_binary_data", "can_query")
# No message may be larger: its line, its arrays.
_MAX_LINE, _MAX_ARRAYS = 1 << 16, 1 << 30
_Array = np.ndarray[Any, Any]


def write(pipe: IO[bytes], message: dict[str, Any], arrays: Sequence[Any] = ()) -> None:
    """Write a message: an object of JSON in one line, then the bytes of arrays of numbers."""
    kinds = [(array.dtype.str, array.shape) for array in arrays]
    pipe.write(json.dumps({**message, "arrays": kinds}).encode() + b"\n")
    for array in arrays:
        pipe.write(array.tobytes())
    pipe.flush()


def read(pipe: IO[bytes]) -> tuple[dict[str, Any], list[_Array]]:
    """Read a message; whatever exception there is, it is none that `write` has written."""
    message = json.loads(pipe.readline(_MAX_LINE))
    arrays, left = [], _MAX_ARRAYS
    for kind, shape in message.pop("arrays"):
        if not re.fullmatch(r"[<>|][biuf]\d{1,2}", kind) or {*map(type, shape)} - {int}:
            raise ValueError(f"not an array of numbers: {kind}")
        dtype = np.dtype(kind)
        size = math.prod(shape) * dtype.itemsize
        if not 0 <= size <= left:
            raise ValueError(f"{size} bytes")
        left -= size
        array: _Array = np.ndarray(shape, dtype, pipe.read(size))
        # Any byte but 0 means True here, as it does elsewhere.
        arrays.append(array.view(np.uint8) != 0 if dtype.kind == "b" else array)
    return message, arrays


class UnfitError(Exception):
    """An entry lacks a method, or a method returned something other than an array of numbers."""


def call(entry: Any, method: str, arrays: Sequence[_Array]) -> tuple[_Array | None, list[str]]:
    """Call a method with int64 copies of arrays; return its result and which of them it changed."""
    copies = [array.astype(np.int64) for array in arrays]
    result = _find_method(entry, METHODS.get(method, (method,)))(*copies)
    compared = zip(ARGUMENTS, copies, arrays, strict=False)
    changed = [name for name, copy, array in compared if not np.array_equal(copy, array)]
    if method == "update_model" or result is None:
        return None, changed
    if hasattr(result, "detach"):
        # A torch tensor that still carries its gradient cannot be turned into an array.
        result = result.detach()
    returned = f"returned a {type(result).__name__}"
    try:
        values = np.asarray(result)
    except (TypeError, ValueError) as error:
        raise UnfitError(f"{returned} that is not an array: {error}") from None
    if values.dtype.kind not in "biuf":
        raise UnfitError(f"{returned} of {values.dtype} values, expected numbers")
    if values.nbytes > _MAX_ARRAYS:
        raise UnfitError(
            f"returned an array of {values.nbytes:,} bytes, expected at most {_MAX_ARRAYS:,}"
        )
    return values, changed


def _find_method(entry: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        if hasattr(entry, name):
            return getattr(entry, name)
    raise UnfitError(f"class {CLASS} has no method {' or '.join(names)}")


def _create() -> Any:
    submission = getattr(importlib.import_module(MODULE), CLASS, None)
    if submission is None:
        raise UnfitError(f"{MODULE}.py has no class {CLASS}")
    entry = submission()
    for names in METHODS.values():
        _find_method(entry, names)
    return entry


def _describe(error: BaseException, folder: Path) -> str:
    if isinstance(error, UnfitError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return f"ran out of memory{place}"
    if isinstance(error, SystemExit):
        return f"ended the program with exit code {error.code}{place}"
    if isinstance(error, PermissionError | FileNotFoundError) and error.filename is not None:
        # What is out of reach looks missing; in its own folder an entry may have locked itself out.
        path = Path(os.path.realpath(os.fsdecode(error.filename)))
        if not path.is_relative_to(folder):
            return (
                f"was denied {path}, which is neither in the zip nor given by the challenge; "
                f"expected only files in the working folder{place}"
            )
    if isinstance(error, ModuleNotFoundError) and str(error.name).split(".")[0] in KIT:
        return (
            f"imports {error.name}{place}, the kit's shared code, which is not there in the "
            "challenge; expected only the package's own files, numpy, pandas, scikit-learn, torch"
        )
    text = " ".join(str(error).split())[:300]
    return f"raised {type(error).__name__}{': ' if text else ''}{text}{place}"


def _limit_memory(n_bytes: int) -> bool:
    """Limit the address space of this process, and return whether the system enforces it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    except (ImportError, ValueError, OSError):
        return False
    # macOS accepts the limit and ignores it.
    return sys.platform != "darwin"


def main(memory: int, walls: dict[str, int]) -> None:
    """Tell which walls are in force, then answer requests; `memory` is bytes of address space."""
    # What the entry prints goes to stderr, and cannot garble a reply.
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    folder, here = Path.cwd(), str(Path(__file__).resolve().parent)
    sys.path[:] = [str(folder), *(path for path in sys.path if path != here)]
    for package in KIT:
        if not (folder / package).exists() and not (folder / f"{package}.py").exists():
            sys.modules[package] = None  # type: ignore[assignment]
    write(replies, {"memory_limited": _limit_memory(memory), "walls": walls})

    entry = None
    while requests.peek(1):
        request, arrays = read(requests)
        reply: dict[str, Any] = {}
        result: _Array | None = None
        try:
            if request["method"] == "__init__":
                entry = _create()
            else:
                result, reply["changed"] = call(entry, request["method"], arrays)
        except BaseException as error:
            reply = {"fault": _describe(error, folder)}
            if not isinstance(error, UnfitError):
                with contextlib.suppress(MemoryError):
                    traceback.print_exc()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        write(replies, reply, [] if result is None else [result])
