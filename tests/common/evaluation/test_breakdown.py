"""Accuracy in groups of answers: intervals that hold, and nothing shown of single answers."""

from common.evaluation import breakdown
from common.evaluation.breakdown import FEW, break_down, clustered_intervals, most_lost

import numpy as np
import pandas as pd
import pytest


def test_intervals_grow_with_what_answers_of_a_student_have_in_common() -> None:
    n_right = (np.arange(2000) % 4 > 0)[None]
    low, high = clustered_intervals(n_right, np.ones((1, 2000)))
    # Independent ones have Wilson's: of 1,500 of 2,000, by the closed form with 1.96.
    assert (low[0], high[0]) == pytest.approx((0.7306, 0.7685), abs=2e-4)
    n = np.repeat([10, 30], [26, 24])
    n_right = np.stack([n * (np.arange(50) % 2), n // 2])
    low, high = clustered_intervals(n_right, np.stack([n, n]))
    # Where students are right in all or in none, their answers tell as much as (Σ n)² / Σ n² · 49 /
    # 50 = 38.9; never more than all 980. By the closed form with Student's 2.0096.
    assert low == pytest.approx([0.3466, 0.4680], abs=1e-4)
    assert high == pytest.approx([0.6534, 0.5320], abs=1e-4)
    # All right is not certain: of five students with answers, with 2.7764.
    all_right = np.array([[3, 3, 3, 3, 3, 0]])
    low, high = clustered_intervals(all_right, all_right)
    assert (low[0], high[0]) == pytest.approx((0.3934, 1), abs=1e-4)
    # One student says nothing about others.
    assert clustered_intervals(np.array([[1]]), np.array([[2]])) == (0, 1)


@pytest.mark.parametrize("n", [1, FEW - 1, FEW])
def test_of_few_answers_only_their_number_is_shown(n: int) -> None:
    """Of a group, of a question, and of the subjects of questions."""
    right = np.arange(n + 1000) >= n
    pairs = pd.DataFrame({"right": right, "majority_right": ~right})
    pairs["student_code"] = np.arange(len(pairs))
    pairs["QuestionId"] = np.where(right, 1, 4711)
    pairs["difficulty"] = pd.Categorical(np.where(right, "many", "few"))
    (part,) = break_down(pairs, None)
    many, few = part.groups.loc["many"], part.groups.loc["few"]
    assert (few["n_answers"], many["n_answers"]) == (n, 1000)
    assert (many["accuracy"], many["majority"]) == (1, 0)
    assert few["share"] == n / (n + 1000)
    for figure in ("accuracy", "low", "high", "majority"):
        assert np.isnan(few[figure]) == (n < FEW)
    columns = {"QuestionId": [4711], "SubjectId": [3], "Name": ["Hard"], "Level": [1]}
    lost = most_lost(pairs, pd.DataFrame(columns).assign(Parent=""))
    assert lost.subjects is not None
    assert [lost.questions.name.tolist(), lost.subjects.name.tolist()] == (
        [[4711], ["Hard"]] if n == FEW else [[], []]
    )


def test_rare_subjects_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with most answers are named; a question counts in these, or once in the others."""
    monkeypatch.setattr(breakdown, "_N_SUBJECTS", 2)
    question = np.repeat([1, 2, 3, 4], [40, 30, 20, 5])
    pairs = pd.DataFrame({"QuestionId": question, "student_code": 0, "right": True})
    subjects = pd.DataFrame({"QuestionId": [1, 2, 3, 3, 4, 4], "Name": [*"bacdda"], "Level": 1})
    subjects["SubjectId"] = subjects.Name.map(ord)
    (part,) = break_down(pairs, subjects)
    assert [*part.groups.n_answers.items()] == [("b", 40), ("a", 35), ("other subjects", 20)]
