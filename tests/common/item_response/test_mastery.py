"""The mastery of each subject by each student: planted subjects are recovered."""

from dataclasses import dataclass, replace

from common.errors import InputError
from common.item_response import ItemResponse

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

_N_STUDENTS = 1_000
_N_QUESTIONS = 240
_N_TOPICS = 24
_N_AREAS = 4


@dataclass(frozen=True)
class Planted:
    """Answers of students who are better in some subjects than in others."""

    student: np.ndarray
    question: np.ndarray
    is_correct: np.ndarray
    # Probability that a student answers a question correctly, shape (students, questions).
    p_right: np.ndarray
    # Area and topic of each question, shape (questions, 2). A number stands either for an area or
    # for a topic, never for both.
    subject: np.ndarray

    def fit(self) -> ItemResponse:
        return ItemResponse(n_dimensions=1, guessing=0.2).fit(
            self.student, self.question, self.is_correct, context=self.subject[self.question]
        )

    def true_share(self, table: pd.DataFrame) -> np.ndarray:
        """Return, for each row of a table of mastery, the simulated share that it estimates.

        A row is about a student and a subject. The share is the mean of the student's probabilities
        of a right answer, over the questions of the subject.
        """
        shares = []
        for row in table.itertuples():
            has_subject = self.subject[:, row.level] == row.subject
            shares.append(self.p_right[row.student, has_subject].mean())
        return np.array(shares)


def plant(effect_variance: float) -> Planted:
    """Simulate answers; each student has an effect in each area and in each topic.

    Areas and topics are subjects: an area consists of several topics. The effects are normally
    distributed with the mean 0 and the variance `effect_variance`. A student who does not know the
    right answer guesses, and is right with probability 0.2.
    """
    rng = np.random.default_rng(0)
    topic = rng.integers(0, _N_TOPICS, _N_QUESTIONS)
    # The topics 0, 4, 8, … belong to area 0, the topics 1, 5, 9, … to area 1, and so on.
    area = topic % _N_AREAS
    effect_deviation = np.sqrt(effect_variance)
    area_effect = rng.normal(0, effect_deviation, (_N_STUDENTS, _N_AREAS))
    topic_effect = rng.normal(0, effect_deviation, (_N_STUDENTS, _N_TOPICS))
    ability = rng.standard_normal(_N_STUDENTS)
    easiness = rng.normal(0.3, 1, _N_QUESTIONS)
    logit = ability[:, None] + easiness + area_effect[:, area] + topic_effect[:, topic]
    p_knows = 1 / (1 + np.exp(-logit))
    p_right = 0.2 + 0.8 * p_knows
    # A student meets 40 % of the topics, and answers 60 % of their questions.
    meets_topic = rng.random((_N_STUDENTS, _N_TOPICS)) < 0.4
    is_answered = meets_topic[:, topic] & (rng.random(p_right.shape) < 0.6)
    student, question = np.nonzero(is_answered)
    is_correct = rng.random(len(student)) < p_right[student, question]
    # Areas have the numbers 0 to 3. Topics get numbers from 100, so that no number stands for both
    # an area and a topic.
    subject = np.stack([area, topic + 100], axis=1)
    return Planted(student, question, is_correct, p_right, subject)


PLANTED = plant(effect_variance=0.3)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    model = PLANTED.fit()
    return model.mastery(PLANTED.subject[model.question_ids_])


@pytest.mark.parametrize("level", [0, 1])
def test_intervals_hold_the_true_share_as_often_as_they_say(
    table: pd.DataFrame, level: int
) -> None:
    """`low` and `high` are the ends of 90 % intervals of a student's share of right answers."""
    rows = table[table.level == level]
    truth = PLANTED.true_share(rows)
    is_inside = (truth >= rows.low) & (truth <= rows.high)
    # The table has at least 4,000 rows of 1,000 students. Rows of the same student depend on each
    # other, so that all rows tell as much as 1,000 to 4,000 independent rows. With 1,000, the
    # standard error of the share would be √(0.9 · 0.1 / 1,000) = 0.01.
    assert abs(is_inside.mean() - 0.9) < 0.03
    # The same holds for the fifth of the rows with the fewest answers.
    has_few = rows.n_answers <= rows.n_answers.quantile(0.2)
    assert abs(is_inside[has_few].mean() - 0.9) < 0.05


@pytest.mark.parametrize("level", [0, 1])
def test_shares_are_right_on_average_and_better_than_without_subjects(
    table: pd.DataFrame, level: int
) -> None:
    """`share` is the share of a subject's questions that a student is expected to answer right.

    The test compares this share with the planted share. Its error must be smaller than the error
    of a model that knows no subjects, but only the student's ability and the questions.
    """
    rows = table[table.level == level]
    truth = PLANTED.true_share(rows)
    # The shares of a student have errors of about 0.1. With 1,000 students, the mean of the errors
    # has a standard error of about 0.003.
    assert abs((rows.share - truth).mean()) < 0.01

    without_subjects = ItemResponse(n_dimensions=1, guessing=0.2)
    without_subjects.fit(PLANTED.student, PLANTED.question, PLANTED.is_correct)
    # Predict every pair of a student and a question.
    shape = PLANTED.p_right.shape
    students, questions = np.indices(shape)
    p_right = without_subjects.predict_proba(students.ravel(), questions.ravel())[:, 1]
    # `true_share` averages `p_right` over the questions of each row's subject. With the predicted
    # probabilities in place of the true ones, it returns the predicted shares.
    with_predicted_p = replace(PLANTED, p_right=p_right.reshape(shape))
    share_without_subjects = with_predicted_p.true_share(rows)

    mean_squared_error = np.square(rows.share - truth).mean()
    error_without_subjects = np.square(share_without_subjects - truth).mean()
    # With subjects, the mean squared error must be smaller by at least a fifth.
    assert mean_squared_error < 0.8 * error_without_subjects


def test_more_answers_narrow_the_interval(table: pd.DataFrame) -> None:
    topics = table[table.level == 1]
    width = topics.high - topics.low
    few = width[topics.n_answers <= 3].mean()
    many = width[topics.n_answers >= 7].mean()
    assert many < 0.9 * few


def test_the_table_has_each_subject_with_answers_once(table: pd.DataFrame) -> None:
    answers = pd.DataFrame({"student": PLANTED.student, "question": PLANTED.question})
    for level in range(2):
        answers["subject"] = PLANTED.subject[PLANTED.question, level]
        counts = answers.groupby(["student", "subject"]).size()
        rows = table[table.level == level].set_index(["student", "subject"])
        assert rows.index.is_unique
        assert_array_equal(rows.n_answers.loc[counts.index], counts)
    assert (table.low < table.share).all() and (table.share < table.high).all()
    assert table.low.min() > 0 and table.high.max() < 1


def test_without_effects_of_subjects_the_ability_alone_decides() -> None:
    """If answers depend on no subject, the fit finds only small effects of subjects.

    It still finds the right `share`: the share of a subject's questions that a student is expected
    to answer right.
    """
    planted = plant(effect_variance=0.0)
    model = planted.fit()
    rows = model.mastery(planted.subject[model.question_ids_])
    truth = planted.true_share(rows)
    # The fit repeats steps in which the estimated variance of effects approaches 0 only slowly. So
    # require only that it is well below 0.3, the true variance in the other tests.
    assert model.context_variance_.max() < 0.15
    assert np.sqrt(np.square(rows.share - truth).mean()) < 0.1


def test_faults_are_named() -> None:
    model = ItemResponse(n_steps=1).fit([1, 1, 2], [5, 6, 5], [1, 0, 1])
    with pytest.raises(InputError, match="uses no contexts, expected the subjects"):
        model.mastery([[1], [2]])
    with_context = ItemResponse(n_steps=1).fit([1, 1, 2], [5, 6, 5], [1, 0, 1], context=[3, 4, 3])
    with pytest.raises(InputError, match=r"subject has shape \(3,\), expected \(2, levels\)"):
        with_context.mastery([3, 4, 4])
    with pytest.raises(InputError, match="students have answers in subject 3, which is not among"):
        with_context.mastery([[4], [4]])
