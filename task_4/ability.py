"""What the item response model believes of a student while the questions are asked.

The overall ability of a student is the mean of the logits x of all questions of the bank, less the
mean of that over the training students, divided by its standard deviation over them. Both come from
the model's prior: a training student's logits have the mean `intercept` and the covariance
Σ = slopes slopesᵀ + quiz_covariance, so that their mean over Q questions has the variance 1ᵀΣ1/Q².
The posterior of a student gives the same two moments after every answer.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from common import source_code
from common.adaptive.game import Reference
from common.answers import IntArray
from common.errors import InputError

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]

# The module and the classes of a package that the reports need.
_MODEL_FILE = "model.py"
_CLASSES = ("Model", "StudentPosterior")
# Draws from a student's posterior, for the intervals of subjects.
N_DRAWS = 2000


@dataclass(frozen=True)
class Bank:
    """A trained item response model and what it expects of a training student; Q questions.

    Attributes
    ----------
    module
        The package's `model.py`.
    model
        Its trained model.
    share
        P(right) of every question for a training student of whom nothing is known, shape (Q,).
    mean, deviation
        Mean and standard deviation over the training students of a student's mean logit.
    """

    module: ModuleType
    model: Any
    share: FloatArray
    mean: float
    deviation: float

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return len(self.model.intercept)


@dataclass(frozen=True)
class Course:
    """How the questions went for one student; n questions asked, Q in the bank, h answers hidden.

    Attributes
    ----------
    chosen
        QuestionIds in the order asked, shape (n,).
    is_right
        1 right, 0 wrong, shape (n,).
    expected
        P(right) of each question just before it was asked, shape (n,).
    ability, deviation
        Mean and standard deviation of the standardised ability after 0, 1, … n answers, shape
        (n + 1,).
    share
        Share of the bank expected right after 0, 1, … n answers, shape (n + 1,).
    probability
        P(right) of every question of the bank at the end, shape (Q,).
    draws
        The same, drawn from the posterior, shape (N_DRAWS, Q).
    hidden_probability, hidden_truth
        P(right) of the hidden answers at the end, and 1 right, 0 wrong, shape (h,).
    hidden_counts
        How many of them are right, drawn at the end, shape (N_DRAWS,).
    """

    chosen: IntArray
    is_right: IntArray
    expected: FloatArray
    ability: FloatArray
    deviation: FloatArray
    share: FloatArray
    probability: FloatArray
    draws: FloatArray
    hidden_probability: FloatArray
    hidden_truth: IntArray
    hidden_counts: IntArray


def load_bank(package: Path) -> Bank:
    """Load a trained item response package.

    Parameters
    ----------
    package
        The folder: task_4/item_response, or a copy of it.

    Raises
    ------
    InputError
        If its `model.py` has not the classes of that package, or its weights cannot be read.
    """
    path = package / _MODEL_FILE
    module = source_code.load_module(path, "task_4_model")
    missing = [name for name in _CLASSES if not hasattr(module, name)]
    if missing:
        raise InputError(
            f"{path}: has no {missing[0]}, expected the model of task_4/item_response or of a copy"
        )
    try:
        model = module.Model.load(package)
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{package}: its weights cannot be read: {error}") from None
    n_questions = len(model.intercept)
    unknown = module.StudentPosterior(model, np.zeros((1, n_questions), bool))
    covariance = model.slopes @ model.slopes.T + model.quiz_covariance
    return Bank(
        module=module,
        model=model,
        share=unknown.probability()[0],
        mean=float(model.intercept.mean(dtype=np.float64)),
        deviation=float(np.sqrt(covariance.mean(dtype=np.float64))),
    )


def ask(
    bank: Bank,
    reference: Reference,
    mask: str,
    rows: Sequence[int],
    n_questions: int,
    stop_at_error: float = 0.0,
) -> dict[int, Course]:
    """Ask all students of a file together, as the game does, and follow some of them.

    Parameters
    ----------
    bank
        The model.
    reference
        The students.
    mask
        Name of the mask; its answers are never asked.
    rows
        Rows of the students to follow; all have enough answers that may be asked.
    n_questions
        How many questions are asked at most.
    stop_at_error
        The test of a student ends before that as soon as the standard deviation of the ability is
        at most this.

    Returns
    -------
    dict
        For each row its course.
    """
    # The ability is that over the whole bank, whatever questions the file holds.
    n_more = max(0, bank.n_questions - reference.is_correct.shape[1])
    is_correct = np.pad(reference.is_correct, ((0, 0), (0, n_more)), constant_values=-1)
    targets = np.pad(reference.targets[mask], ((0, 0), (0, n_more)))
    askable = (is_correct >= 0) & ~targets
    model = bank.model.pad_questions(askable.shape[1])
    posterior = bank.module.StudentPosterior(model, askable.copy())
    chosen = np.full((len(askable), n_questions), -1)
    expected = np.full((len(askable), n_questions), np.nan)
    measured: dict[int, list[tuple[float, float, float]]] = {row: [] for row in rows}
    courses: dict[int, Course] = {}
    for n_asked in range(n_questions + 1):
        probability = posterior.probability()
        for row in (row for row in rows if row not in courses):
            mean, covariance = _logits(posterior, row, bank.n_questions)
            ability = (float(mean.mean()) - bank.mean) / bank.deviation
            error = float(np.sqrt(max(covariance.mean(), 0))) / bank.deviation
            share = float(probability[row, : bank.n_questions].mean())
            measured[row].append((ability, error, share))
            if error > stop_at_error and n_asked < n_questions:
                continue
            hidden = np.flatnonzero(targets[row])
            draws = _draw(mean, covariance, float(model.guessing))
            abilities, errors, shares = np.array(measured[row]).T
            courses[row] = Course(
                chosen=chosen[row, :n_asked],
                is_right=is_correct[row, chosen[row, :n_asked]],
                expected=expected[row, :n_asked],
                ability=abilities,
                deviation=errors,
                share=shares,
                probability=probability[row, : bank.n_questions],
                draws=draws,
                hidden_probability=probability[row, hidden],
                hidden_truth=is_correct[row, hidden],
                hidden_counts=_draw_counts(draws, probability[row], hidden),
            )
        if len(courses) == len(rows):
            break
        students = np.flatnonzero(askable.any(axis=1))
        question = posterior.select(askable)[students]
        chosen[students, n_asked] = question
        expected[students, n_asked] = probability[students, question]
        askable[students, question] = False
        is_right = is_correct[students, question].astype(np.int64)
        posterior.observe(students, question, is_right)
    return courses


def _logits(posterior: Any, row: int, n_questions: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of a student's logits over the bank, float64."""
    # An entry needs no such method, and what goes into the zip stays small.
    factors = posterior.factors[row, :, :n_questions].astype(np.float64)
    covariance = posterior.covariance[:n_questions, :n_questions] - factors.T @ factors
    return posterior.mean[row, :n_questions].astype(np.float64), covariance


def _draw(mean: FloatArray, covariance: FloatArray, guessing: float) -> FloatArray:
    """Draw P(right) of all questions from a student's posterior; always the same draws."""
    values, vectors = np.linalg.eigh(covariance)
    # Rounding may make the smallest ones negative.
    scale = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.random.default_rng(0).standard_normal((N_DRAWS, len(mean)))
    logits = mean + normal @ scale.T
    return np.asarray(guessing + (1 - guessing) * 0.5 * (1 + np.tanh(0.5 * logits)), np.float32)


def _draw_counts(draws: FloatArray, probability: FloatArray, hidden: IntArray) -> IntArray:
    """Draw how many hidden answers are right; a question that the bank lacks tells nothing."""
    p = np.tile(probability[hidden], (len(draws), 1))
    known = hidden < draws.shape[1]
    p[:, known] = draws[:, hidden[known]]
    return np.asarray((np.random.default_rng(1).random(p.shape) < p).sum(axis=1))
