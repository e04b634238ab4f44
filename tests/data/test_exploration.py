"""What is counted in the data, where simulated answers do not show it: see `test_explore.py`."""

import numpy as np
import pytest
from exploration import (
    FEW_ANSWERS,
    Tally,
    count_histogram,
    count_options,
    filled,
    main_subjects,
    share_histogram,
    sum_by,
    tenths,
)
from exploration_circumstances import (
    count_by_month,
    count_confidence,
    count_quizzes,
    count_times,
)
from hypothesis import given
from hypothesis import strategies as st


def test_flat_numbers_draw_no_teeth() -> None:
    found = count_histogram(np.repeat(np.arange(35, 83), 7))
    assert (np.diff(np.diff(found.edges)) >= 0).all()
    assert (np.diff(found.counts[:-1]) >= 0).all()
    assert found.counts.sum() == 7 * 48


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=200))
def test_every_number_is_in_one_bin(values: list[int]) -> None:
    found = count_histogram(np.array(values))
    assert found.counts.sum() == len(values)
    assert (np.diff(found.edges) > 0).all()
    assert found.is_log == (max(values) - min(values) >= 30)
    if not found.is_log:
        expected = np.bincount(np.array(values) - min(values))
        assert found.counts.tolist() == expected.tolist()
    assert found.median == np.median(values)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=200))
def test_every_share_is_in_the_bin_that_names_it(percent: list[int]) -> None:
    found = share_histogram(np.array(percent) / 100)
    # Five hundredths each, the last one with 100 %.
    expected = np.bincount(np.minimum(np.array(percent) // 5, 19), minlength=20)
    assert found.counts.tolist() == expected.tolist()


def test_tenths_put_those_with_most_answers_first() -> None:
    n = np.random.default_rng(0).permutation(100)
    found = tenths(n)
    assert np.bincount(found).tolist() == [10] * 10
    assert (found == (99 - n) // 10).all()
    assert set(tenths(np.array([3, 5])).tolist()) == {0, 5}


def test_the_filled_share_of_a_corner() -> None:
    # The first two of twenty students have answered all of the first two of twenty questions, and
    # everybody one question of their own.
    student = np.r_[0, 0, 1, 1, np.arange(2, 20)]
    question = np.r_[0, 1, 0, 1, np.arange(2, 20)]
    n_of_student, n_of_question = np.bincount(student), np.bincount(question)
    found = filled(student, question, n_of_student, n_of_question)
    assert found[0, 0] == 1
    # In every other tenth two of the four pairs have an answer.
    assert found[np.arange(1, 10), np.arange(1, 10)].tolist() == [0.5] * 9
    assert found.sum() == 1 + 9 * 0.5
    few = filled(np.array([0]), np.array([0]), np.array([1]), np.array([1]))
    assert few[0, 0] == 1
    assert np.isnan(few).sum() == 99


def options_of(*counts: tuple[int, int, int, int, int]) -> tuple[np.ndarray, ...]:
    """Return question, option and right option for: right option, then answers of each option."""
    rows = [
        (question, option + 1, right)
        for question, (right, *numbers) in enumerate(counts)
        for option, number in enumerate(numbers)
        for _ in range(number)
    ]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def test_distractors_are_compared_within_their_question() -> None:
    question, option, right = options_of(
        (1, 60, 30, 8, 2), (3, 5, 5, 80, 10), (2, 0, FEW_ANSWERS - 1, 0, 0)
    )
    found = count_options(question, option, right, 3)
    total = 100 + 100 + FEW_ANSWERS - 1
    assert found.chosen == pytest.approx(np.array([65, 35 + FEW_ANSWERS - 1, 88, 12]) / total)
    assert found.right == pytest.approx(np.array([100, FEW_ANSWERS - 1, 100, 0]) / total)
    assert found.found[:3] == pytest.approx([0.6, 1, 0.8])
    assert np.isnan(found.found[3])
    assert found.distractors is not None
    assert found.distractors.n_questions == 2
    assert found.distractors.attraction == pytest.approx(
        [(30 / 40 + 10 / 20) / 2, (8 / 40 + 5 / 20) / 2, (2 / 40 + 5 / 20) / 2]
    )
    # Of 30, 8, 2, 10, 5 and 5 % only one lies below 5 %.
    assert found.distractors.weak == pytest.approx(1 / 6)
    assert found.distractors.share.counts.sum() == 6


def test_a_changed_key_counts_as_the_usual_one() -> None:
    question, option, right = options_of((1, 60, 20, 10, 10), (2, 5, 20, 0, 0))
    found = count_options(np.zeros_like(question), option, right, 1)
    assert found.distractors is not None
    assert found.distractors.attraction == pytest.approx([0.5, 0.25, 0.25])
    alone = count_options(np.zeros(3, int), np.array([1, 1, 1]), np.array([1, 1, 1]), 1)
    assert alone.distractors is None


def test_dates_that_are_missing_or_nonsense_do_not_count() -> None:
    dates = ["2019-12-30T00:00", "2020-02-29T23:59", "2020-02-29T23:00", "NaT", "9999-01-01T00:00"]
    date = np.array(dates, "datetime64[m]")
    found = count_times(date, np.array([1, 0, 1, 1, 1], np.int8))
    assert found is not None
    assert (str(found.first), str(found.last)) == ("2019-12-30T00:00", "2020-02-29T23:59")
    assert found.months.n.tolist() == [1, 0, 2]
    assert found.months.n_right.tolist() == [1, 0, 1]
    # A Monday and a Saturday.
    assert np.argwhere(found.hours.n).tolist() == [[0, 0], [5, 23]]
    assert found.n_nonsense == 1
    kinds = count_by_month(date, np.array([2, 0, -1, 0, 1]), 3, found)
    assert kinds.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert count_times(date[3:], np.array([1, 1], np.int8)) is None


def test_the_first_main_subject_counts() -> None:
    # Levels of subjects 0 to 5; questions with subjects 0 4 2 / 0 / 0 1 4 / none / 3 2.
    level = np.array([0, 1, 1, 2, 1, 0], np.int8)
    start = np.array([0, 3, 4, 7, 7, 9])
    places, kind = main_subjects(start, np.array([0, 4, 2, 0, 0, 1, 4, 3, 2]), level)
    assert places.tolist() == [1, 2, 4]
    assert kind.tolist() == [2, -1, 0, -1, 1]
    places, kind = main_subjects(np.array([0, 1]), np.array([0]), level)
    assert (places.tolist(), kind.tolist()) == ([], [-1])


def test_confidence_counts_at_the_nearest_level_where_it_is_stated() -> None:
    confidence = np.array([0, 100, 100, np.nan, 24, 50], np.float32)
    found = count_confidence(confidence, np.array([0, 1, 0, 1, 1, 1], np.int8))
    assert found.n.tolist() == [1, 1, 1, 0, 2]
    assert found.n_right.tolist() == [0, 1, 1, 0, 1]


def test_what_is_unknown_belongs_to_nothing() -> None:
    of_student = Tally(np.array([10, 5, 1]), np.array([4, 5, 0]))
    n_students, answers = sum_by(np.array([1, -1, 1]), of_student, 2)
    assert n_students.tolist() == [0, 2]
    assert (answers.n.tolist(), answers.n_right.tolist()) == ([0, 11], [0, 4])
    unknown = np.full(3, -1)
    assert set(vars(count_quizzes(np.arange(3), np.arange(3), unknown, unknown)).values()) == {None}
