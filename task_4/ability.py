"""Follow what the item response model believes of students while it asks them questions.

The *overall ability* of a student is the mean of the logits x of all questions of the bank,
standardised over the training students: 0 is an average training student, 1 is one standard
deviation above. The mean and the standard deviation over the training students come from the
model's prior. Their logits have the mean `intercept` and the covariance
Σ = slopes slopesᵀ + quiz_covariance, so the mean over Q questions has the variance 1ᵀΣ1/Q². After
every answer, the student's posterior gives mean and variance of the mean logit in the same way.
"""

import argparse
import importlib.util
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from common.adaptive.game import GameState, Reference, Rules
from common.arrays import FloatArray, IntArray
from common.errors import InputError

import numpy as np
import pandas as pd

# Number of draws from a student's posterior, for intervals.
N_DRAWS = 2000


class Bank:
    """A trained item response model of Q questions, the question bank.

    Parameters
    ----------
    module
        The package's model.py, as a module.
    model
        A `Model` of that module.
    popularity
        How many training students answered each question, shape (Q,), if it is known.

    Attributes
    ----------
    n_questions : int
        Q.
    share : array of float
        P(right) of each question for a student without known answers, shape (Q,).
    logit_mean, logit_deviation : float
        Mean and standard deviation, over the training students, of the mean logit of the questions.
    """

    def __init__(self, module: ModuleType, model: Any, popularity: IntArray | None = None) -> None:
        self.module = module
        self.model = model
        self.n_questions = len(model.intercept)
        self.popularity = np.zeros(0, np.int64) if popularity is None else popularity
        prior = module.StudentPosterior(model, np.zeros((1, self.n_questions), bool))
        self.share: FloatArray = prior.probability()[0]
        self.logit_mean = float(model.intercept.mean(dtype=np.float64))
        covariance = model.slopes @ model.slopes.T + model.quiz_covariance
        self.logit_deviation = float(np.sqrt(covariance.mean(dtype=np.float64)))

    def overall_ability(self, posterior: Any) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the standard error of each student's overall ability.

        Parameters
        ----------
        posterior
            A `StudentPosterior` of the module. Its first columns are the Q questions of the bank.
            Further columns, such as questions that the model has not learned, do not count.

        Returns
        -------
        mean, error
            The overall abilities and their standard errors, each of shape (students,).
        """
        in_bank = slice(self.n_questions)
        mean_logit = posterior.mean[:, in_bank].mean(axis=1, dtype=np.float64)
        # The variance of the mean of the logits is the mean of all entries of their covariance
        # matrix. `posterior.covariance` is this matrix before any answer, equal for all students.
        prior_variance = posterior.covariance[in_bank, in_bank].mean(dtype=np.float64)
        # Each answer of a student subtracts a matrix f fᵀ from the covariance matrix, where the
        # vector f has an element for each question. `posterior.factors` holds these vectors, shape
        # (students, answers, columns). So each answer subtracts the mean of all entries of f fᵀ
        # from the variance. This mean is the square of the mean of f over the questions of the
        # bank. The product with `is_in_bank`, which is 1 for these questions and 0 for further
        # columns, sums f over the bank.
        is_in_bank = (np.arange(posterior.factors.shape[2]) < self.n_questions).astype(np.float32)
        mean_factor = posterior.factors @ is_in_bank / np.float64(self.n_questions)
        variance = np.maximum(prior_variance - (mean_factor**2).sum(axis=1), 0)
        # Standardise, so that the training students have the mean 0 and the standard deviation 1.
        ability = (mean_logit - self.logit_mean) / self.logit_deviation
        standard_error = np.sqrt(variance) / self.logit_deviation
        return ability, standard_error


def parse_fraction(text: str) -> float:
    """Read a number above 0 and below 1 from the command line."""
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0 and below 1")
    return value


def load_module(path: Path, name: str) -> ModuleType:
    """Import a file as a module of this name, which other files can then import too.

    A plain import does not find the files of a package of task 4: their folder is not on the search
    path.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Register the module, as an ordinary import does: the decorator `dataclass` looks it up here.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_bank(package: Path) -> Bank:
    """Load a trained item response package: the folder task_4/item_response, or a copy of it.

    Raises
    ------
    InputError
        If the folder holds another model, or if its weights cannot be read.
    """
    path = package / "model.py"
    module = load_module(path, "task_4_model")
    for name in ("Model", "StudentPosterior"):
        if not hasattr(module, name):
            raise InputError(
                f"{path}: has no {name}, expected the model of task_4/item_response or of a copy"
            )
    try:
        return Bank(module, module.Model.load(package))
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{package}: its weights cannot be read: {error}") from None


def reveal(state: GameState, questions: IntArray, posterior: Any) -> None:
    """Reveal one answer of each student to the game and to the posterior.

    `questions` holds the column of the question that each student is asked, -1 for a student who is
    not asked; shape (students,).
    """
    state.reveal(questions)
    student = np.flatnonzero(questions >= 0)
    if len(student):
        is_right = state.reference.is_correct[student, questions[student]].astype(np.int64)
        posterior.observe(student, questions[student], is_right)


@dataclass(frozen=True)
class Session:
    """The questions that one student was asked, and the posterior of what the student knows.

    The student has h hidden answers; the bank has Q questions.
    """

    # Row n describes the student after n questions. The columns about the last question are
    # QuestionId, is_right, and expected: P(right) just before the answer. They are -1, -1 and NaN
    # in row 0. The columns about the student are ability (the overall ability), error (its standard
    # error), and share: the share of the bank's questions that the student is expected to answer
    # correctly.
    steps: pd.DataFrame
    # P(right) of each question of the bank after the last answer, shape (Q,).
    probability: FloatArray
    # Draws of P(right) of each question from the posterior, shape (N_DRAWS, Q).
    draws: FloatArray
    # P(right) of the hidden answers, shape (h,).
    hidden_probability: FloatArray
    # 1 for a right and 0 for a wrong hidden answer, shape (h,).
    hidden_truth: IntArray
    # How many hidden answers are right: N_DRAWS draws from the posterior, shape (N_DRAWS,).
    hidden_counts: IntArray


def ask(
    bank: Bank,
    reference: Reference,
    mask: str,
    rows: Sequence[int],
    n_questions: int,
    stop_at_error: float = 0.0,
) -> dict[int, Session]:
    """Ask all students together, as in the game of task 4, and record the sessions of some.

    Parameters
    ----------
    bank
        The model, which selects the questions.
    reference
        The students and their answers.
    mask
        The mask that says which answers are hidden.
    rows
        Rows of the students whose sessions are recorded. Each must have `n_questions` answers that
        may be asked.
    n_questions
        The largest number of questions.
    stop_at_error
        A student's session ends as soon as the standard error of the overall ability is at most
        this. With 0, no session ends early. The student is still asked afterwards, like all others,
        but the session does not show it.

    Returns
    -------
    dict
        The sessions by row, in the order of `rows`.
    """
    state = GameState(reference, mask, Rules())
    n_students, n_columns = state.can_query.shape
    # The bank may have more questions than `reference` has columns. The additional questions count
    # in the overall ability too, but are never asked. So the posterior has a column for each
    # question of the larger of the two.
    width = max(n_columns, bank.n_questions)
    padding = [(0, 0), (0, width - n_columns)]
    model = bank.model.pad_questions(width)
    posterior = bank.module.StudentPosterior(model, np.pad(state.can_query, padding))

    # Element n is the result of `_describe_step` after n questions.
    steps: list[dict[str, FloatArray]] = []
    sessions: dict[int, Session] = {}
    question = np.full(n_students, -1)
    after = posterior.probability()
    for n_asked in range(n_questions + 1):
        if n_asked > 0:
            selected = posterior.select(np.pad(state.can_query, padding))
            question = np.where(state.can_query.any(axis=1), selected, -1)
            reveal(state, question, posterior)
        before = after
        after = posterior.probability()
        step = _describe_step(bank, reference, posterior, question, before=before, after=after)
        steps.append(step)
        is_last = n_asked == n_questions
        has_ended = (step["error"] <= stop_at_error) | is_last
        for row in rows:
            if has_ended[row] and row not in sessions:
                sessions[row] = _describe_session(bank, state, posterior, after[row], steps, row)
        if len(sessions) == len(rows):
            break
    return {row: sessions[row] for row in rows}


def _describe_step(
    bank: Bank,
    reference: Reference,
    posterior: Any,
    question: IntArray,
    before: FloatArray,
    after: FloatArray,
) -> dict[str, FloatArray]:
    """Describe all students after the answers to their last questions.

    Returns the values of all students for one row of `Session.steps`: the keys are the columns, and
    each value has the shape (students,).

    `question` is the last question of each student, -1 for none. `before` and `after` are P(right)
    of each question before and after the answer to the last question, shape (students, questions).
    """
    everybody = np.arange(len(question))
    is_asked = question >= 0
    # A student who was not asked has the question -1. Indexing with -1 reads the last column, and
    # `np.where` discards what it reads.
    is_right = np.where(is_asked, reference.is_correct[everybody, question], -1)
    expected = np.where(is_asked, before[everybody, question], np.nan)
    ability, error = bank.overall_ability(posterior)
    step = {
        "QuestionId": question,
        "is_right": is_right,
        "expected": expected,
        "ability": ability,
        "error": error,
        # The share of the bank's questions that the student is expected to answer correctly. The
        # bank's questions are the first columns.
        "share": after[:, : bank.n_questions].mean(axis=1),
    }
    return {name: values.astype(np.float64) for name, values in step.items()}


def _describe_session(
    bank: Bank,
    state: GameState,
    posterior: Any,
    probability: FloatArray,
    steps: Sequence[dict[str, FloatArray]],
    row: int,
) -> Session:
    """Return what is known of one student after the student's last question.

    All students are asked together, so the arrays in `state`, `posterior` and `steps` have a row
    for each student.

    Parameters
    ----------
    bank
        The model. The questions that it knows are the first columns of all arrays.
    state
        The game, which knows all answers. Its targets are the hidden answers.
    posterior
        The model's `StudentPosterior`, which has learned from the answers so far.
    probability
        P(right) of each question for this student, by the posterior, shape (columns,).
    steps
        Element n describes all students after n questions. It is a dict with the columns of
        `Session.steps` as keys. Each value is an array with an element for each student.
    row
        The student to describe: a row of these arrays.
    """
    steps_of_student = []
    for step in steps:
        steps_of_student.append({name: values[row] for name, values in step.items()})
    draws = _draw_p_right(posterior, row, bank.n_questions)
    hidden_columns = np.flatnonzero(state.targets[row])
    return Session(
        steps=pd.DataFrame(steps_of_student).astype({"QuestionId": int, "is_right": int}),
        probability=probability[: bank.n_questions],
        draws=draws,
        hidden_probability=probability[hidden_columns],
        hidden_truth=state.reference.is_correct[row, hidden_columns],
        hidden_counts=_draw_n_right(hidden_columns, probability, draws),
    )


def _draw_n_right(columns: IntArray, probability: FloatArray, draws: FloatArray) -> IntArray:
    """Draw how many of a student's answers to some of the questions are right.

    Parameters
    ----------
    columns
        The columns of these questions.
    probability
        P(right) of all columns.
    draws
        Draws of P(right) of the bank's questions, which are the first columns.

    Returns
    -------
    array of int, shape (N_DRAWS,)
    """
    # The model knows nothing about questions outside the bank, so there are no draws of their
    # P(right): take the same P(right) in every draw.
    right = np.tile(probability[columns], (N_DRAWS, 1))
    in_bank = columns < draws.shape[1]
    right[:, in_bank] = draws[:, columns[in_bank]]
    # Each P(right) is itself a draw from the posterior. With this probability, draw whether the
    # answer is right.
    is_right = np.random.default_rng(1).random(right.shape) < right
    return np.asarray(is_right.sum(axis=1))


def _draw_p_right(posterior: Any, row: int, n_questions: int) -> FloatArray:
    """Draw P(right) of the first `n_questions` columns from a student's posterior.

    The seed is fixed, so every run gives the same draws. The shape is (N_DRAWS, n_questions).
    """
    # `posterior.covariance` is the covariance of a student's logits before any answer. Each answer
    # subtracts a matrix f fᵀ from it, where the vector f has an element for each question.
    # `posterior.factors` holds these vectors.
    factors = posterior.factors[row, :, :n_questions].astype(np.float64)
    covariance = posterior.covariance[:n_questions, :n_questions] - factors.T @ factors
    # `root` is a matrix with root @ root.T = covariance, so the rows of `standard_normal @ root.T`
    # have this covariance. Rounding may make the smallest eigenvalues negative; 0 replaces them.
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0))
    standard_normal = np.random.default_rng(0).standard_normal((N_DRAWS, n_questions))
    logits = posterior.mean[row, :n_questions].astype(np.float64) + standard_normal @ root.T
    guessing = float(posterior.model.guessing)
    # 0.5 · (1 + tanh(x / 2)) equals sigmoid(x), and does not overflow.
    p_right = guessing + (1 - guessing) * 0.5 * (1 + np.tanh(0.5 * logits))
    return np.asarray(p_right, np.float32)
