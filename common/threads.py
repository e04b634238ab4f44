"""Run a function on several parts of the data at a time, in threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

# Threads at most where nothing else is said: more hardly speed up arrays that share one memory.
_MAX_THREADS = 8


def _count_threads() -> int:
    """Return as many threads as BLAS gets, so that processes on one machine share its cores."""
    # OpenMP allows a list, with one number for each level of nesting.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        return int(first)
    return min(os.cpu_count() or 1, _MAX_THREADS)


N_THREADS = _count_threads()


def in_threads(function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield function(part) for every part, in their order; several parts run at a time."""
    if N_THREADS == 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, parts)
