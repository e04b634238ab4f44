"""What the item response model believes of students while the questions are asked.

The overall ability of a student is the mean of the logits x of all questions of the bank, less the
mean of that over the training students, divided by its standard deviation over them. Both come from
the model's prior: a training student's logits have the mean `intercept` and the covariance
Σ = slopes slopesᵀ + quiz_covariance, so that their mean over Q questions has the variance 1ᵀΣ1/Q².
The posterior of a student gives the same two moments after every answer.
"""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from common import source_code
from common.adaptive.game import GameState, Reference, Rules, rounds
from common.answers import IntArray
from common.errors import InputError

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]

# The classes of a package's model.py that the reports need.
_CLASSES = ("Model", "StudentPosterior")
# Draws from a student's posterior, for the intervals of subjects.
N_DRAWS = 2000


class Bank:
    """A trained item response model and what it expects of a training student; Q questions.

    `module` is the package's `model.py`, `model` its trained model. `share` is P(right) of every
    question for a training student of whom nothing is known, shape (Q,), `mean` and `deviation`
    those of a training student's mean logit.
    """

    def __init__(self, module: ModuleType, model: Any) -> None:
        self.module, self.model = module, model
        self.n_questions = len(model.intercept)
        unknown = module.StudentPosterior(model, np.zeros((1, self.n_questions), bool))
        self.share: FloatArray = unknown.probability()[0]
        self.mean = float(model.intercept.mean(dtype=np.float64))
        covariance = model.slopes @ model.slopes.T + model.quiz_covariance
        self.deviation = float(np.sqrt(covariance.mean(dtype=np.float64)))

    def overall_ability(self, posterior: Any) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard error of all students' overall abilities, (students,) each."""
        bank = slice(self.n_questions)
        mean = posterior.mean[:, bank].mean(axis=1, dtype=np.float64)
        # The mean of a covariance of which an outer product is subtracted for each answer.
        in_bank = (np.arange(posterior.factors.shape[2]) < self.n_questions).astype(np.float32)
        known = posterior.factors @ in_bank / np.float64(self.n_questions)
        prior = posterior.covariance[bank, bank].mean(dtype=np.float64)
        variance = np.maximum(prior - (known**2).sum(axis=1), 0)
        return (mean - self.mean) / self.deviation, np.sqrt(variance) / self.deviation


def load_bank(package: Path) -> Bank:
    """Load a trained item response package: task_4/item_response, or a copy of it."""
    path = package / "model.py"
    module = source_code.load_module(path, "task_4_model")
    missing = [name for name in _CLASSES if not hasattr(module, name)]
    if missing:
        raise InputError(
            f"{path}: has no {missing[0]}, expected the model of task_4/item_response or of a copy"
        )
    try:
        return Bank(module, module.Model.load(package))
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(f"{package}: its weights cannot be read: {error}") from None


def learn(posterior: Any, state: GameState) -> None:
    """Let a posterior learn the answers that have been revealed last."""
    student = np.flatnonzero(state.chosen[-1] >= 0)
    if len(student):
        question = state.chosen[-1][student]
        is_right = state.reference.is_correct[student, question].astype(np.int64)
        posterior.observe(student, question, is_right)


@dataclass(frozen=True)
class Course:
    """How the questions went for one student; n questions asked, Q in the bank, h answers hidden.

    Of each question asked, in order, shape (n,): its QuestionId, 1 right or 0 wrong, and P(right)
    just before. After 0, 1, … n answers, shape (n + 1,): mean and standard deviation of the overall
    ability, and the share of the bank expected right. At the end: P(right) of every question of the
    bank, shape (Q,), and draws of it, (N_DRAWS, Q); of the hidden answers P(right) and the truth,
    (h,), and draws of how many are right, (N_DRAWS,).
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


def ask(
    bank: Bank,
    reference: Reference,
    mask: str,
    rows: Sequence[int],
    n_questions: int,
    stop_at_error: float = 0.0,
) -> dict[int, Course]:
    """Ask all students of a file together, as the game does; return the courses of some rows.

    At most `n_questions` are asked; the test of a student ends before that as soon as the standard
    deviation of the ability is at most `stop_at_error`. Those followed must have enough answers.
    """
    state = GameState(_widen(reference, bank.n_questions), mask, Rules())
    model = bank.model.pad_questions(state.can_query.shape[1])
    posterior = bank.module.StudentPosterior(model, state.can_query.copy())
    probability: FloatArray = np.zeros(0)
    expected: list[FloatArray] = []
    measured: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    courses: dict[int, Course] = {}

    def choose(number: int) -> IntArray:
        question = np.where(state.can_query.any(axis=1), posterior.select(state.can_query), -1)
        expected.append(probability[np.arange(len(question)), question])
        return question

    for n_asked in rounds(state, choose, lambda number: learn(posterior, state), n_questions):
        probability = posterior.probability()
        in_bank = probability[:, : bank.n_questions]
        ability, error = bank.overall_ability(posterior)
        measured.append((ability, error, in_bank.mean(axis=1)))
        for row in rows:
            if row in courses or (error[row] > stop_at_error and n_asked < n_questions):
                continue
            chosen = np.array([question[row] for question in state.chosen], np.int64)
            abilities, errors, shares = np.array(measured)[:, :, row].T
            hidden = np.flatnonzero(state.targets[row])
            draws = _draw(posterior, row, bank.n_questions, float(model.guessing))
            courses[row] = Course(
                chosen=chosen,
                is_right=state.reference.is_correct[row, chosen],
                expected=np.array([p[row] for p in expected]),
                ability=abilities,
                deviation=errors,
                share=shares,
                probability=in_bank[row],
                draws=draws,
                hidden_probability=probability[row, hidden],
                hidden_truth=state.reference.is_correct[row, hidden],
                hidden_counts=_draw_counts(draws, probability[row], hidden),
            )
        if len(courses) == len(rows):
            break
    return courses


def _widen(reference: Reference, n_questions: int) -> Reference:
    """Add the columns that a bank has and a file lacks: the ability is that over the whole bank."""
    more = [(0, 0), (0, max(0, n_questions - reference.is_correct.shape[1]))]
    return replace(
        reference,
        is_correct=np.pad(reference.is_correct, more, constant_values=-1),
        option=np.pad(reference.option, more, constant_values=-1),
        targets={mask: np.pad(targets, more) for mask, targets in reference.targets.items()},
    )


def _draw(posterior: Any, row: int, n_questions: int, guessing: float) -> FloatArray:
    """Draw P(right) of the bank's questions from a student's posterior; always the same draws."""
    # An entry needs no such method, and what goes into the zip stays small.
    factors = posterior.factors[row, :, :n_questions].astype(np.float64)
    covariance = posterior.covariance[:n_questions, :n_questions] - factors.T @ factors
    values, vectors = np.linalg.eigh(covariance)
    # Rounding may make the smallest ones negative.
    scale = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.random.default_rng(0).standard_normal((N_DRAWS, n_questions))
    logits = posterior.mean[row, :n_questions].astype(np.float64) + normal @ scale.T
    return np.asarray(guessing + (1 - guessing) * 0.5 * (1 + np.tanh(0.5 * logits)), np.float32)


def _draw_counts(draws: FloatArray, probability: FloatArray, hidden: IntArray) -> IntArray:
    """Draw how many hidden answers are right; a question that the bank lacks tells nothing."""
    p = np.tile(probability[hidden], (len(draws), 1))
    known = hidden < draws.shape[1]
    p[:, known] = draws[:, hidden[known]]
    return np.asarray((np.random.default_rng(1).random(p.shape) < p).sum(axis=1))
