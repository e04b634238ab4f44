"""Run a function on several parts of the data at the same time, in threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

# Highest number of threads by default. More threads hardly speed up work on arrays, which is
# limited by the memory that they share.
_MAX_THREADS = 8


def _count_threads() -> int:
    """Return the number of threads: OMP_NUM_THREADS if it is set, otherwise the number of cores.

    Without OMP_NUM_THREADS, there are at most _MAX_THREADS threads. To share the cores of one
    machine among several processes, set OMP_NUM_THREADS.
    """
    # OMP_NUM_THREADS may be a list, with a number for each level of nested threads. Take the first.
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if first.isdecimal() and int(first) > 0:
        return int(first)
    return min(os.cpu_count() or 1, _MAX_THREADS)


N_THREADS = _count_threads()


def in_threads(function: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield function(part) for every part, in order; several calls run at the same time."""
    parts = list(parts)
    # Run a single part without threads: to start them may take longer than the part itself.
    if N_THREADS == 1 or len(parts) == 1:
        yield from map(function, parts)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, parts)


def run_in_threads(function: Callable[[Part], None], parts: Iterable[Part]) -> None:
    """Call function(part), which returns nothing, for every part; several calls run at a time."""
    # `in_threads` is a generator: it calls the function only when its results are read. `list`
    # reads all of them.
    list(in_threads(function, parts))
