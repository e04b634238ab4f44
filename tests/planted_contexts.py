"""Simulated answers that depend on quizzes, groups of quizzes and classes (the contexts)."""

from typing import Any

from common.item_response import ItemResponse, ItemResponseOptions

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose

RNG = np.random.default_rng
N_CLASSES = 20
CLASS_SIZE = 30
N_STUDENTS = N_CLASSES * CLASS_SIZE
N_QUIZZES = 30
QUIZ_SIZE = 10
N_QUESTIONS = N_QUIZZES * QUIZ_SIZE
# A label that no answer has.
UNKNOWN = 1_000_000


def plant(
    quiz_variance: float,
    group_variance: float = 0,
    class_variance: float = 0,
    share_with_few: float = 0.5,
) -> pd.DataFrame:
    """Return simulated answers with known effects on the logit of a right answer.

    Parameters
    ----------
    quiz_variance : float
        Variance of the effects of a student in a quiz.
    group_variance : float
        Variance of the effects of a student in a group of three quizzes.
    class_variance : float
        Variance of the effects of a class in a quiz.
    share_with_few : float
        Share of the pairs of student and quiz in which only a tenth of the answers is for training.
    """
    rng = RNG(5)
    ability = rng.standard_normal(N_STUDENTS)
    easiness = rng.normal(0.2, 0.8, N_QUESTIONS)
    effect = rng.normal(0, np.sqrt(quiz_variance), (N_STUDENTS, N_QUIZZES))
    group_effect = rng.normal(0, np.sqrt(group_variance), (N_STUDENTS, N_QUIZZES // 3))
    effect += np.repeat(group_effect, 3, axis=1)
    shared = rng.normal(0, np.sqrt(class_variance), N_CLASSES * N_QUIZZES)
    # Each class takes half of the quizzes, all their questions.
    takes_quiz = rng.random((N_CLASSES, N_QUIZZES)) < 0.5
    takes_question = np.repeat(takes_quiz, QUIZ_SIZE, axis=1)
    student, question = np.nonzero(takes_question[np.arange(N_STUDENTS) // CLASS_SIZE])
    quiz = question // QUIZ_SIZE
    class_quiz = student // CLASS_SIZE * N_QUIZZES + quiz
    known = easiness[question] + shared[class_quiz]
    p = 1 / (1 + np.exp(-known - ability[student] - effect[student, quiz]))
    knows_few = (rng.random((N_STUDENTS, N_QUIZZES)) < share_with_few)[student, quiz]
    # The last five students of each class have no training answers.
    is_new = student % CLASS_SIZE >= 25
    columns = {
        # Ids in no order, and with gaps.
        "student": student * 3,
        "question": rng.permutation(N_QUESTIONS)[question] * 2,
        "quiz": quiz,
        "class_quiz": class_quiz,
        "shared": shared[class_quiz],
        "p_right": p,
        # The part of the logit of `p_right` that is the same for all students of the class.
        "known": known,
        "ability": ability[student],
        "is_right": (rng.random(len(p)) < p).astype(np.int8),
        # A tenth of the answers where `knows_few`, otherwise 80 %; none of new students.
        "is_train": (rng.random(len(p)) < np.where(knows_few, 0.1, 0.8)) & ~is_new,
        "is_new": is_new,
        "knows_few": knows_few,
    }
    return pd.DataFrame(columns)


def split(answers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return training answers, and further ones of the same students."""
    return answers[answers.is_train], answers[~answers.is_train & ~answers.is_new]


TRAIN, TEST = split(plant(1.0, share_with_few=0.1))


def groups(rows: pd.DataFrame) -> np.ndarray:
    """Return nested contexts: groups of three quizzes, then quizzes."""
    return np.stack([rows.quiz // 3, rows.quiz], axis=1)


def options(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen and the correct options, 1 to 4.

    A wrong option is 1 or 2 after the correct one, cyclically. The distance is the same for all
    wrong answers of a student in a quiz.
    """
    correct = rows.question.to_numpy() // 2 % 4
    student_number = rows.student.to_numpy() // 3
    distance = 1 + ((student_number + 1) * (rows.quiz.to_numpy() + 3) // 4) % 2
    chosen = (correct + np.where(rows.is_right == 1, 0, distance)) % 4
    return chosen + 1, correct + 1


def fit(
    rows: pd.DataFrame, context: Any = None, *, start: Any = None, **settings: Any
) -> ItemResponse:
    """Fit right and wrong answers, with two abilities and without guessing by default."""
    model = ItemResponse(**{"n_dimensions": 2, "guessing": 0.0, **settings})
    return model.fit(rows.student, rows.question, rows.is_right, context=context, start=start)


def fit_options(rows: pd.DataFrame, context: Any = None) -> ItemResponseOptions:
    """Fit options, with two abilities and without guessing."""
    model = ItemResponseOptions(n_dimensions=2, guessing=0.0)
    return model.fit(rows.student, rows.question, *options(rows), context=context)


def predict(model: ItemResponse, rows: pd.DataFrame, context: Any = None) -> np.ndarray:
    """Return the probabilities of right answers."""
    return model.predict_proba(rows.student, rows.question, context=context)[:, 1]


def loss(p: np.ndarray, truth: Any) -> float:
    """Return the expected log loss of predictions `p`, if `truth` are the true probabilities."""
    return float(-(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean())


def assert_calibrated(p: Any, truth: Any, *, by: float = 0.025, n_bins: int = 9) -> None:
    """Compare the mean prediction with the mean truth in bins that are a tenth wide.

    Only bins with 200 pairs count, and there are at least `n_bins` of them. A bin holds up to 2,700
    pairs, whose true probabilities deviate from the predictions by up to 0.2. About two pairs share
    each effect, so that a bin's mean has a standard error of at most 0.2 / √(2,400 / 2) = 0.006.
    The default tolerance `by` is four standard errors. Tests with fewer answers of each student
    allow up to seven.
    """
    rows = pd.DataFrame({"p": p, "truth": np.asarray(truth)})
    bins = rows.groupby(np.minimum((p * 10).astype(int), 9))
    means = bins.mean()[bins.size() >= 200]
    assert len(means) >= n_bins
    assert_allclose(means.p, means.truth, atol=by)
