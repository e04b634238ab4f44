"""Accuracy by group: intervals follow closed forms, and small groups show no accuracy."""

from common.evaluation import breakdown
from common.evaluation.breakdown import FEW, break_down, clustered_intervals, most_lost

import numpy as np
import pandas as pd
import pytest


def test_the_interval_of_independent_answers_is_wilson_s() -> None:
    n_right = (np.arange(2000) % 4 > 0)[None]
    low, high = clustered_intervals(n_right, np.ones((1, 2000)))
    # Wilson's 95 % interval, with z = 1.96, of 1,500 right answers of 2,000.
    assert (low[0], high[0]) == pytest.approx((0.7306, 0.7685), abs=2e-4)


@pytest.mark.parametrize(
    ("share_right", "expected"),
    [
        # Each student is right in all answers or in none, so a further answer of the same student
        # tells nothing new. The effective number of answers is (Σ n)² / Σ n² · (G − 1) / G = 38.9,
        # where n is a student's number of answers and G = 50 the number of students.
        pytest.param(np.arange(50) % 2, (0.3466, 0.6534), id="all or none"),
        # Every student is right in half of the answers. As the students do not differ, the formula
        # for the effective number of answers would give infinity. So the number is limited to the
        # actual number of answers, 980.
        pytest.param(np.full(50, 0.5), (0.4680, 0.5320), id="half"),
    ],
)
def test_intervals_are_wider_if_answers_of_a_student_are_alike(
    share_right: np.ndarray, expected: tuple[float, float]
) -> None:
    """The intervals are Wilson's, with the effective number of answers in place of their number.

    The effective number of answers is the number of independent answers that would tell as much. It
    is small if the answers of a student are alike. Instead of 1.96, the intervals take 2.0096: the
    97.5 % quantile of the t distribution with 49 degrees of freedom, because there are 50 students.
    `share_right` holds the share of right answers of each of the 50 students.
    """
    n_answers = np.repeat([10, 30], [26, 24])
    n_right = share_right * n_answers
    low, high = clustered_intervals(n_right[None], n_answers[None])
    assert (low[0], high[0]) == pytest.approx(expected, abs=1e-4)


def test_answers_that_are_all_right_are_not_certain() -> None:
    # Answers that are all right have no variance, yet the interval must not be empty. Its width
    # comes from the number of students with answers: five, since the sixth student has none. The t
    # distribution with four degrees of freedom has the 97.5 % quantile 2.7764.
    all_right = np.array([[3, 3, 3, 3, 3, 0]])
    n_answers = all_right
    low, high = clustered_intervals(all_right, n_answers)
    assert (low[0], high[0]) == pytest.approx((0.3934, 1), abs=1e-4)


def test_a_single_student_tells_nothing_about_others() -> None:
    assert clustered_intervals(np.array([[1]]), np.array([[2]])) == (0, 1)


def make_pairs(n: int) -> pd.DataFrame:
    """Return n wrong predictions for question 4711 and 1,000 right predictions for question 1.

    A breakdown by the column `difficulty` has two groups: "few" has the n wrong predictions, and
    "many" has the right ones. Each student has one prediction. A second prediction of each answer
    is that of the majority. It is right where the first one is wrong, so that the accuracies of the
    two differ in each group.
    """
    right = np.arange(n + 1000) >= n
    return pd.DataFrame(
        {
            "right": right,
            "majority_right": ~right,
            "student_code": np.arange(n + 1000),
            "QuestionId": np.where(right, 1, 4711),
            "difficulty": pd.Categorical(np.where(right, "many", "few")),
        }
    )


@pytest.mark.parametrize("n", [1, FEW - 1, FEW])
def test_a_group_of_few_answers_shows_only_their_number(n: int) -> None:
    (part,) = break_down(make_pairs(n), None)
    many = part.groups.loc["many"]
    few = part.groups.loc["few"]
    assert few["n_answers"] == n
    assert many["n_answers"] == 1000
    assert many["accuracy"] == 1
    assert many["majority"] == 0
    assert few["share"] == n / (n + 1000)
    for figure in ("accuracy", "low", "high", "majority"):
        assert np.isnan(few[figure]) == (n < FEW), figure


@pytest.mark.parametrize("n", [1, FEW - 1, FEW])
def test_a_question_or_subject_of_few_answers_is_not_named_where_most_is_lost(n: int) -> None:
    pairs = make_pairs(n)
    columns = {"QuestionId": [4711], "SubjectId": [3], "Name": ["Hard"], "Level": [1]}
    lost = most_lost(pairs, pd.DataFrame(columns).assign(Parent=""))
    assert lost.subjects is not None
    assert lost.questions.name.tolist() == ([4711] if n == FEW else [])
    assert lost.subjects.name.tolist() == (["Hard"] if n == FEW else [])


def test_rare_subjects_make_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the two subjects with most answers, here b and a, get a group with their name.

    The answers to a question count in the group of each of these subjects that the question has. If
    it has neither of them, they count once, in the group "other subjects".
    """
    monkeypatch.setattr(breakdown, "_N_SUBJECTS", 2)
    question = np.repeat([1, 2, 3, 4], [40, 30, 20, 5])
    pairs = pd.DataFrame({"QuestionId": question, "student_code": 0, "right": True})
    subjects = pd.DataFrame({"QuestionId": [1, 2, 3, 3, 4, 4], "Name": [*"bacdda"], "Level": 1})
    subjects["SubjectId"] = subjects.Name.map(ord)
    (part,) = break_down(pairs, subjects)
    assert [*part.groups.n_answers.items()] == [("b", 40), ("a", 35), ("other subjects", 20)]
