"""Modules, models and students for tests of the packages in task_4/."""

from pathlib import Path
from types import ModuleType
from typing import Any

from common.adaptive.game import Reference, make_reference

import numpy as np
import pandas as pd
from ability import load_module
from conftest import answers_frame
from run_scripts import ROOT, without_modules_of


def load_package(name: str, *modules: str, kit: Path = ROOT) -> list[ModuleType]:
    """Return the module `model` of a package in task_4/, and then the other modules by name.

    The other modules import `model`. All packages have modules of the same names, so `sys.modules`
    does not keep them.
    """
    folder = kit / "task_4" / name
    with without_modules_of(folder):
        return [load_module(folder / f"{module}.py", module) for module in ("model", *modules)]


def plain_model(package: ModuleType, slopes: Any, **changes: Any) -> Any:
    """Return an item response model in which P(right) = sigmoid(slopes · ability).

    `slopes` has the shape (questions, dimensions of ability). There is no guessing, and no effect
    of quizzes. The model infers nothing from which questions a student has answered (the answered
    mask). `changes` replaces fields of `Model` by name.
    """
    n_questions, n_dimensions = slopes.shape
    values = {
        "intercept": np.zeros(n_questions),
        "slopes": slopes,
        "guessing": np.array(0),
        # The effects of quizzes.
        "quiz_covariance": np.zeros((n_questions, n_questions)),
        # The answered mask then tells the model nothing about abilities and hidden answers.
        "mask_mean": np.zeros(n_questions),
        "mask_weights": np.zeros((n_questions, n_dimensions)),
        "completion": np.zeros((n_questions, n_questions)),
    }
    values.update(changes)
    return package.Model(**{name: np.asarray(a, np.float32) for name, a in values.items()})


def full_model(package: ModuleType, n_questions: int, seed: int, completion: float) -> Any:
    """Return an item response model of random parameters that uses every part of the model.

    It has two dimensions of ability, guessing, effects of eight quizzes, and inference from which
    questions a student has answered (the answered mask). With a larger `completion`, the model
    expects more hidden answers outside the mask; with 0, it expects none.
    """
    rng = np.random.default_rng(seed)
    n = n_questions
    # Each question belongs to about a third of the eight quizzes.
    quiz = rng.normal(size=(n, 8)) * (rng.random((n, 8)) < 0.3)
    return plain_model(
        package,
        slopes=rng.normal(0.8, 0.5, (n, 2)),
        intercept=rng.normal(0.3, 0.8, n),
        quiz_covariance=0.5 * quiz @ quiz.T,
        guessing=0.2,
        # The mean of masks that are divided by the root of their number of answers.
        mask_mean=rng.random(n) / n**0.5,
        mask_weights=rng.normal(0, 0.4, (n, 2)),
        # The n entries of a column add up to about half of `completion`. The product of a mask and
        # a column is the probability that the answer to the column's question is hidden.
        completion=rng.uniform(0, completion / n, (n, n)),
    )


def as_answers(right: Any) -> pd.DataFrame:
    """Return a table of answers, given which ones are right, shape (students, questions).

    Every student has answered all questions.
    """
    student, question = np.indices(right.shape, np.int32)
    return answers_frame(student.ravel(), question.ravel(), np.ravel(right).astype(np.int8))


def as_reference(right: Any, targets: Any) -> Reference:
    """Return students who have answered all questions, and one mask named "mask".

    `right` says which answers are right, shape (students, questions). `targets` says which answers
    the mask hides, in the same order.
    """
    return make_reference("students.csv", as_answers(right), {"mask": np.ravel(targets)})
