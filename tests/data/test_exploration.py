"""What is counted in the data, where simulated answers do not show it: see `test_explore.py`."""

import numpy as np
from exploration import Tally, count_histogram, main_subjects, sum_by
from exploration_circumstances import count_by_month, count_quizzes, count_times


def test_flat_numbers_draw_no_teeth() -> None:
    found = count_histogram(np.repeat(np.arange(35, 83), 7))
    assert (np.diff(np.diff(found.edges)) >= 0).all() and (np.diff(found.counts[:-1]) >= 0).all()


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


def test_what_is_unknown_belongs_to_nothing() -> None:
    of_student = Tally(np.array([10, 5, 1]), np.array([4, 5, 0]))
    n_students, answers = sum_by(np.array([1, -1, 1]), of_student, 2)
    assert n_students.tolist() == [0, 2]
    assert (answers.n.tolist(), answers.n_right.tolist()) == ([0, 11], [0, 4])
    unknown = np.full(3, -1)
    assert set(vars(count_quizzes(np.arange(3), np.arange(3), unknown, unknown)).values()) == {None}
