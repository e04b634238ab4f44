"""Threads: their number, and the order of their results."""

import os
import time

from common import threads

import pytest


@pytest.mark.parametrize(("given", "expected"), [("3", 3), ("2,4", 2)])
def test_there_are_as_many_threads_as_omp_num_threads_says(
    monkeypatch: pytest.MonkeyPatch, given: str, expected: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads._count_threads() == expected


@pytest.mark.parametrize("given", ["", "0", "all"])
def test_without_a_number_there_is_a_thread_for_each_of_at_most_eight_cores(
    monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads._count_threads() == min(os.cpu_count() or 1, 8)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_the_order_of_the_parts(
    monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    monkeypatch.setattr(threads, "N_THREADS", n_threads)

    def double(seconds: float) -> float:
        time.sleep(seconds)
        return 2 * seconds

    assert list(threads.in_threads(double, [0.05, 0.0, 0.02])) == [0.1, 0.0, 0.04]
