"""What is counted in the data: known answers on hand-made arrays, and properties."""

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
    spread,
    sum_by,
    tally,
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


def test_a_tally_counts_what_is_known() -> None:
    found = tally(np.array([0, 2, 2, -1, 2]), np.array([1, 1, 0, 1, 0], np.int8), 4)
    assert found.n.tolist() == [1, 0, 3, 0]
    assert found.n_right.tolist() == [1, 0, 1, 0]
    assert np.array_equal(found.share, [1, np.nan, 1 / 3, np.nan], equal_nan=True)


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


def test_dates_become_months_weekdays_and_hours() -> None:
    date = np.array(
        [
            "2019-12-30T00:00",  # A Monday.
            "2020-02-29T23:59",  # A Saturday.
            "2020-02-29T23:00",
            "NaT",
            "9999-01-01T00:00",
        ],
        "datetime64[m]",
    )
    found = count_times(date, np.array([1, 0, 1, 1, 1], np.int8))
    assert found is not None
    assert str(found.first) == "2019-12-30T00:00"
    assert str(found.last) == "2020-02-29T23:59"
    assert str(found.first_month) == "2019-12"
    assert found.months.n.tolist() == [1, 0, 2]
    assert found.months.n_right.tolist() == [1, 0, 1]
    assert {tuple(place) for place in np.argwhere(found.hours.n)} == {(0, 0), (5, 23)}
    assert (found.hours.n[5, 23], found.hours.n_right[5, 23]) == (2, 1)
    assert found.n_nonsense == 1
    assert count_times(date[3:], np.array([1, 1], np.int8)) is None


def test_kinds_are_counted_in_their_months() -> None:
    months = ["2019-11", "2020-01", "NaT", "2020-01", "1700-01", "2019-11"]
    date = np.array(months, "datetime64[m]")
    times = count_times(date, np.ones(6, np.int8))
    assert times is not None
    found = count_by_month(date, np.array([2, 0, 0, 0, 1, -1]), 3, times)
    assert found.tolist() == [[0, 0, 2], [0, 0, 0], [1, 0, 0]]


def test_the_first_main_subject_counts() -> None:
    # Levels of subjects 0 to 5; questions with subjects 0 4 2 / 0 / 0 1 4 / none / 3 2.
    level = np.array([0, 1, 1, 2, 1, 0], np.int8)
    start = np.array([0, 3, 4, 7, 7, 9])
    places, kind = main_subjects(start, np.array([0, 4, 2, 0, 0, 1, 4, 3, 2]), level)
    assert places.tolist() == [1, 2, 4]
    assert kind.tolist() == [2, -1, 0, -1, 1]
    places, kind = main_subjects(np.array([0, 1]), np.array([0]), level)
    assert (places.tolist(), kind.tolist()) == ([], [-1])


@given(st.integers(0, 5_000_000))
def test_weekdays_are_those_of_the_calendar(minute: int) -> None:
    date = np.datetime64("2015-01-01T00:00") + np.timedelta64(minute, "m")
    found = count_times(np.array([date]), np.array([1], np.int8))
    assert found is not None
    moment = date.astype(object)
    assert np.argwhere(found.hours.n).tolist() == [[moment.weekday(), moment.hour]]


def test_sizes_of_quizzes_and_groups() -> None:
    student = np.array([0, 0, 0, 1, 1, 2])
    question = np.array([0, 1, 2, 0, 3, 0])
    quiz = np.array([7, 7, 9, 7, -1, 7])
    group = np.array([4, 4, 4, 4, 4, -1])
    found = count_quizzes(student, question, quiz, group)
    assert found.questions_per_quiz is not None
    # Quiz 7 has questions 0 and 1, quiz 9 question 2.
    assert found.questions_per_quiz.edges.tolist() == [1, 2, 3]
    assert found.questions_per_quiz.counts.tolist() == [1, 1]
    assert found.students_per_group is not None
    assert found.students_per_group.edges.tolist() == [2, 3]
    assert found.answers_per_sitting is not None
    # Student 0: two in quiz 7, one in quiz 9; students 1 and 2 one each.
    assert found.answers_per_sitting.counts.tolist() == [3, 1]
    nothing = count_quizzes(student, question, np.full(6, -1), np.full(6, -1))
    assert set(vars(nothing).values()) == {None}


def test_confidence_counts_where_it_is_stated() -> None:
    confidence = np.array([0, 100, 100, np.nan, 24, 50], np.float32)
    found = count_confidence(confidence, np.array([0, 1, 0, 1, 1, 1], np.int8))
    assert found.n.tolist() == [1, 1, 1, 0, 2]
    assert found.n_right.tolist() == [0, 1, 1, 0, 1]


def test_answers_count_for_every_subject_of_their_question() -> None:
    of_question = Tally(np.array([10, 5, 1]), np.array([4, 5, 0]))
    # Question 0 has subjects 0 and 2, question 1 subject 0, question 2 none.
    n_questions, answers = spread(of_question, np.array([0, 2, 3, 3]), np.array([0, 2, 0]), 4)
    assert n_questions.tolist() == [2, 0, 1, 0]
    assert answers.n.tolist() == [15, 0, 10, 0]
    assert answers.n_right.tolist() == [9, 0, 4, 0]


def test_answers_count_for_the_kind_of_their_student() -> None:
    of_student = Tally(np.array([10, 5, 1]), np.array([4, 5, 0]))
    n_students, answers = sum_by(np.array([1, -1, 1]), of_student, 2)
    assert n_students.tolist() == [0, 2]
    assert answers.n.tolist() == [0, 11]
    assert answers.n_right.tolist() == [0, 4]
