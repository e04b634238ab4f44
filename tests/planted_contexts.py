"""Simulated answers that depend on quizzes, groups of quizzes and classes (the contexts)."""

import math
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
# An id that no simulated student, question, quiz, class or group has.
UNKNOWN = 1_000_000
# The Fisher information that one answer gives about its logit, which is p (1 − p) if the answer is
# right with probability p. The number is the mean over the simulated answers.
INFORMATION = 0.165


def simulate_answers(
    quiz_variance: float,
    group_variance: float = 0,
    class_variance: float = 0,
    share_with_few: float = 0.5,
) -> pd.DataFrame:
    """Return simulated answers of students in classes to questions in quizzes.

    The logit of a right answer is the sum of the student's ability, the question's easiness, and
    effects of the contexts of the answer: its quiz, its group of quizzes, and the class in the
    quiz. The effects are normally distributed.

    Parameters
    ----------
    quiz_variance : float
        Variance of the effects of a student in a quiz.
    group_variance : float
        Variance of the effects of a student in a group of three quizzes.
    class_variance : float
        Variance of the effects of a class in a quiz, which all students of the class share.
    share_with_few : float
        Share of the pairs of student and quiz in which only a tenth of the answers is for training.
        In the other pairs, 80 % of the answers are for training.
    """
    rng = RNG(5)
    class_number = np.arange(N_STUDENTS) // CLASS_SIZE
    ability = rng.standard_normal(N_STUDENTS)
    easiness = rng.normal(0.2, 0.8, N_QUESTIONS)
    effect = rng.normal(0, np.sqrt(quiz_variance), (N_STUDENTS, N_QUIZZES))
    group_effect = rng.normal(0, np.sqrt(group_variance), (N_STUDENTS, N_QUIZZES // 3))
    effect += np.repeat(group_effect, 3, axis=1)
    class_effect = rng.normal(0, np.sqrt(class_variance), N_CLASSES * N_QUIZZES)
    # Each class takes about half of the quizzes, and answers all questions of these quizzes.
    takes_quiz = rng.random((N_CLASSES, N_QUIZZES)) < 0.5
    takes_question = np.repeat(takes_quiz, QUIZ_SIZE, axis=1)

    # From here on, an element of each array belongs to one answer.
    student, question = np.nonzero(takes_question[class_number])
    quiz = question // QUIZ_SIZE
    class_quiz = class_number[student] * N_QUIZZES + quiz
    easiness_and_class = easiness[question] + class_effect[class_quiz]
    p = 1 / (1 + np.exp(-easiness_and_class - ability[student] - effect[student, quiz]))
    has_few = (rng.random((N_STUDENTS, N_QUIZZES)) < share_with_few)[student, quiz]
    # The last five of the 30 students of each class are new: they have no training answers.
    is_new = student % CLASS_SIZE >= CLASS_SIZE - 5
    columns = {
        # Ids have gaps, and ids of questions are shuffled.
        "student": student * 3,
        "question": rng.permutation(N_QUESTIONS)[question] * 2,
        "quiz": quiz,
        "class_quiz": class_quiz,
        "class_effect": class_effect[class_quiz],
        "p_right": p,
        # The part of the logit of `p_right` that is the same for all students of the class.
        "easiness_and_class": easiness_and_class,
        "ability": ability[student],
        "is_right": (rng.random(len(p)) < p).astype(np.int8),
        "is_train": (rng.random(len(p)) < np.where(has_few, 0.1, 0.8)) & ~is_new,
        "is_new": is_new,
        # Whether only a tenth of the student's answers in the quiz is for training.
        "has_few_training_answers": has_few,
    }
    return pd.DataFrame(columns)


def split(answers: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the training answers and the test answers.

    The test answers are all other answers, except those of the new students.
    """
    is_test = ~answers.is_train & ~answers.is_new
    return answers[answers.is_train], answers[is_test]


TRAIN, TEST = split(simulate_answers(quiz_variance=1.0, share_with_few=0.1))


def groups(rows: pd.DataFrame) -> np.ndarray:
    """Return the contexts of each answer, shape (answers, 2): a group of three quizzes, a quiz."""
    return np.stack([rows.quiz // 3, rows.quiz], axis=1)


def options(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen and the correct option, 1 to 4, of each answer.

    If a student's answer is wrong, the student chooses the option one or two places after the
    correct one, where option 1 comes after option 4. The number of places is the same for all wrong
    answers of a student in a quiz, and varies between students and quizzes.
    """
    # In `simulate_answers`, the id of a question is twice its number, and the id of a student three
    # times the number. Undo this.
    correct = rows.question.to_numpy() // 2 % 4
    student_number = rows.student.to_numpy() // 3
    quiz = rows.quiz.to_numpy()
    distance = 1 + ((student_number + 1) * (quiz + 3) // 4) % 2
    chosen = (correct + np.where(rows.is_right == 1, 0, distance)) % 4
    return chosen + 1, correct + 1


def fit(
    rows: pd.DataFrame, context: Any = None, *, start: Any = None, **settings: Any
) -> ItemResponse:
    """Fit a model of right and wrong answers, by default with two abilities and no guessing."""
    model = ItemResponse(**{"n_dimensions": 2, "guessing": 0.0, **settings})
    return model.fit(rows.student, rows.question, rows.is_right, context=context, start=start)


def fit_options(rows: pd.DataFrame, context: Any = None) -> ItemResponseOptions:
    """Fit a model of the chosen options, with two abilities and without guessing."""
    model = ItemResponseOptions(n_dimensions=2, guessing=0.0)
    return model.fit(rows.student, rows.question, *options(rows), context=context)


def predict(model: ItemResponse, rows: pd.DataFrame, context: Any = None) -> np.ndarray:
    """Return the probabilities of right answers."""
    return model.predict_proba(rows.student, rows.question, context=context)[:, 1]


def loss(p: np.ndarray, truth: Any) -> float:
    """Return the expected log loss of predictions `p`, if `truth` are the true probabilities."""
    return float(-(truth * np.log(p) + (1 - truth) * np.log1p(-p)).mean())


def standard_error_of_variance(variance: float, n_effects: int, answers_each: float) -> float:
    """Return the standard error of the variance of effects, estimated from answers.

    Parameters
    ----------
    variance
        The planted variance of the effects.
    n_effects
        The number of effects.
    answers_each
        The mean number of answers from which an effect is estimated.
    """
    # An effect is part of the logit of `answers_each` answers. Each of them gives the Fisher
    # information INFORMATION about the effect. The variance of the error of an estimated effect is
    # 1 divided by the sum.
    error_variance = 1 / (answers_each * INFORMATION)
    # An estimated effect is the true effect plus an error. The variances of effect and error add
    # up.
    variance_of_estimates = variance + error_variance
    # If a variance is estimated from n normally distributed numbers, its standard error is √(2 / n)
    # times the variance.
    return math.sqrt(2 / n_effects) * variance_of_estimates


# The standard error of the mean of the predictions in a bin of `assert_calibrated`. A bin holds
# about 2,400 answers. The true probability of an answer deviates from the prediction by about 0.2
# or less. Answers of the same student in the same quiz have the same effect. A bin holds about two
# such answers of each student and quiz, so only 1,200 deviations are independent.
ERROR_OF_BIN = 0.2 / math.sqrt(1_200)


def assert_calibrated(p: Any, truth: Any, *, errors: float = 4, n_bins: int = 9) -> None:
    """Check that predictions are right on average among predictions of about the same size.

    The answers are divided into bins by their predictions: 0 to 0.1, 0.1 to 0.2 and so on. In each
    bin with at least 200 answers, the mean prediction must be near the mean true probability.

    Parameters
    ----------
    p
        Predicted probabilities.
    truth
        True probabilities.
    errors
        By how many standard errors the means of a bin may differ. Tests with fewer answers of each
        student allow up to seven.
    n_bins
        The least number of bins that must count.
    """
    rows = pd.DataFrame({"p": p, "truth": np.asarray(truth)})
    bins = rows.groupby(np.minimum((p * 10).astype(int), 9))
    means = bins.mean()[bins.size() >= 200]
    assert len(means) >= n_bins
    assert_allclose(means.p, means.truth, atol=errors * ERROR_OF_BIN)
