"""What the item response model believes of students while the questions are asked.

The overall ability of a student is the mean of the logits x of all questions of the bank, less the
mean of that over the training students, divided by its standard deviation over them. Both come from
the model's prior: a training student's logits have the mean `intercept` and the covariance
Σ = slopes slopesᵀ + quiz_covariance, so that their mean over Q questions has the variance 1ᵀΣ1/Q².
The posterior of a student gives the same two moments after every answer.
"""

import argparse
import importlib.util
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from common.adaptive.game import GameState, Reference, Rules
from common.arrays import FloatArray, IntArray
from common.errors import InputError

import numpy as np
import pandas as pd

# Draws from a student's posterior, for the intervals of subjects.
N_DRAWS = 2000


class Bank:
    """A trained item response `model` of Q questions, and what it expects of a training student:
    `share`, P(right) if nothing is known, (Q,), `mean` and `deviation` of the mean logit; `module`
    is its model.py, `popularity` how many training students answered each question, where known.
    """

    def __init__(self, module: ModuleType, model: Any, popularity: IntArray | None = None) -> None:
        self.module, self.model = module, model
        self.n_questions = len(model.intercept)
        self.popularity = np.zeros(0, np.int64) if popularity is None else popularity
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


def share(text: str) -> float:
    """Read a share between 0 and 1, both exclusive, from the command line."""
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def load_module(path: Path, name: str) -> ModuleType:
    """Import a file under a name, by which other files then import it too.

    The folder of a package of task 4 is not on the search path.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # As an import does: dataclasses look their module up here.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_bank(package: Path) -> Bank:
    """Load a trained item response package: task_4/item_response, or a copy of it."""
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
    """Reveal each student's answer to the question chosen, -1 for none, to the posterior too."""
    state.reveal(questions)
    if len(student := np.flatnonzero(questions >= 0)):
        is_right = state.reference.is_correct[student, questions[student]].astype(np.int64)
        posterior.observe(student, questions[student], is_right)


class Course(NamedTuple):
    """How the questions went for one student: `steps`, before the first answer and after each, with
    its QuestionId, is_right, P(right) expected before, the ability, its standard error, the share
    of the bank expected right; P(right) of the bank, (Q,), and draws of it, (N_DRAWS, Q); of h
    hidden answers P(right), truth, (h,), and draws of how many are right, (N_DRAWS,).
    """

    steps: pd.DataFrame
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
    """Ask all students together, as the game does, at most `n_questions`, or until the standard
    error of the ability is at most `stop_at_error`; return the courses of rows with enough answers.
    """
    state = GameState(reference, mask, Rules())
    n_students, n_columns = state.can_query.shape
    # The columns that the bank has and the file lacks count too: the ability is over all.
    width = max(n_columns, bank.n_questions)
    more = [(0, 0), (0, width - n_columns)]
    model = bank.model.pad_questions(width)
    posterior = bank.module.StudentPosterior(model, np.pad(state.can_query, more))

    everybody, known = np.arange(n_students), []
    courses: dict[int, Course] = {}
    question, probability = np.full(n_students, -1), posterior.probability()
    for n_asked in range(n_questions + 1):
        if n_asked:
            selected = posterior.select(np.pad(state.can_query, more))
            question = np.where(state.can_query.any(axis=1), selected, -1)
            reveal(state, question, posterior)
        is_right, expected = (of[everybody, question] for of in (reference.is_correct, probability))
        probability = posterior.probability()
        ability, error = bank.overall_ability(posterior)
        share = probability[:, : bank.n_questions].mean(axis=1)
        known.append(np.array([question, is_right, expected, ability, error, share]))
        ended = (error <= stop_at_error) | (n_asked == n_questions)
        for row in [row for row in rows if row not in courses and ended[row]]:
            names = ["QuestionId", "is_right", "expected", "ability", "error", "share"]
            steps = pd.DataFrame(np.array(known)[:, :, row], columns=names)
            draws = _draw(posterior, row, bank.n_questions)
            hidden = np.flatnonzero(state.targets[row])
            # Of a question that the bank lacks nothing more is known than its P(right).
            chance = np.tile(probability[row, hidden], (N_DRAWS, 1))
            in_bank = hidden < bank.n_questions
            chance[:, in_bank] = draws[:, hidden[in_bank]]
            courses[row] = Course(
                steps.astype({"QuestionId": int, "is_right": int}),
                probability[row, : bank.n_questions],
                draws,
                hidden_probability=probability[row, hidden],
                hidden_truth=reference.is_correct[row, hidden],
                hidden_counts=(np.random.default_rng(1).random(chance.shape) < chance).sum(axis=1),
            )
        if len(courses) == len(rows):
            break
    return {row: courses[row] for row in rows}


def _draw(posterior: Any, row: int, n_questions: int) -> FloatArray:
    """Draw P(right) of the bank's questions from a student's posterior; always the same draws."""
    # An entry needs no such method, and what goes into the zip stays small.
    factors = posterior.factors[row, :, :n_questions].astype(np.float64)
    covariance = posterior.covariance[:n_questions, :n_questions] - factors.T @ factors
    values, vectors = np.linalg.eigh(covariance)
    # Rounding may make the smallest ones negative.
    scale = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.random.default_rng(0).standard_normal((N_DRAWS, n_questions))
    logits = posterior.mean[row, :n_questions].astype(np.float64) + normal @ scale.T
    guessing = float(posterior.model.guessing)
    return np.asarray(guessing + (1 - guessing) * 0.5 * (1 + np.tanh(0.5 * logits)), np.float32)
