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

    The other modules import `model`. At the end, the loaded modules are removed from `sys.modules`:
    otherwise another package, whose modules have the same names, would get the modules of this one.
    """
    folder = kit / "task_4" / name
    with without_modules_of(folder):
        return [load_module(folder / f"{module}.py", module) for module in ("model", *modules)]


def plain_model(package: ModuleType, slopes: Any, **changes: Any) -> Any:
    """Return an item response model in which P(right) = sigmoid(slopes · ability).

    `slopes` has the shape (questions, dimensions of ability). The model has no guessing and no
    effects of quizzes. The answered mask says which questions a student has answered, right or
    wrong. From this mask alone, the model infers nothing about the student. `changes` replaces
    fields of `Model` by name.
    """
    n_questions, n_dimensions = slopes.shape
    values = {
        "intercept": np.zeros(n_questions),
        "slopes": slopes,
        "guessing": np.array(0),
        # The effects of quizzes.
        "quiz_covariance": np.zeros((n_questions, n_questions)),
        # With zeros in `mask_weights`, the model infers no abilities from the answered mask. With
        # zeros in `completion`, it does not infer to which other questions a student has hidden
        # answers.
        "mask_mean": np.zeros(n_questions),
        "mask_weights": np.zeros((n_questions, n_dimensions)),
        "completion": np.zeros((n_questions, n_questions)),
    }
    values.update(changes)
    arrays = {name: np.asarray(value, np.float32) for name, value in values.items()}
    return package.Model(**arrays)


def full_model(package: ModuleType, n_questions: int, seed: int, completion: float) -> Any:
    """Return an item response model of random parameters that uses every part of the model.

    The model has two dimensions of ability, guessing and effects of eight quizzes. It also uses the
    answered mask of a student: 1 for each question that the student is known to have answered. From
    the mask, the model predicts the abilities (`mask_weights`). It also predicts to which other
    questions the student has hidden answers (`completion`). With a larger `completion`, the model
    expects more hidden answers; with 0, it expects none.
    """
    rng = np.random.default_rng(seed)
    # How strongly each of the eight quizzes acts on the logit of each question. A question belongs
    # to about a third of the quizzes; the other quizzes do not act on its logit.
    quiz_strengths = rng.normal(size=(n_questions, 8)) * (rng.random((n_questions, 8)) < 0.3)
    return plain_model(
        package,
        slopes=rng.normal(0.8, 0.5, (n_questions, 2)),
        intercept=rng.normal(0.3, 0.8, n_questions),
        quiz_covariance=0.5 * quiz_strengths @ quiz_strengths.T,
        guessing=0.2,
        # The model divides a mask with k ones by √k, so that its Euclidean length is 1. `mask_mean`
        # is the mean of these scaled masks over students. Here, its elements are random, between 0
        # and 1 / √n_questions. This is their value if every student has answered every question.
        mask_mean=rng.random(n_questions) / n_questions**0.5,
        mask_weights=rng.normal(0, 0.4, (n_questions, 2)),
        # mask @ completion[:, j] is the probability that a student has a hidden answer to question
        # j: the sum of one element of column j for each question in the mask. An element is random
        # between 0 and `completion` / n_questions. So if the mask holds nearly all questions, the
        # probability is about `completion` / 2.
        completion=rng.uniform(0, completion / n_questions, (n_questions, n_questions)),
    )


def as_answers(right: Any) -> pd.DataFrame:
    """Return a table of answers in which every student has answered all questions.

    `right` says which answers are right, shape (students, questions).
    """
    student, question = np.indices(right.shape, np.int32)
    return answers_frame(student.ravel(), question.ravel(), np.ravel(right).astype(np.int8))


def as_reference(right: Any, targets: Any) -> Reference:
    """Return the answers of students to all questions, with one mask named "mask".

    `right` says which answers are right, and `targets` says which answers the mask hides. Both have
    the shape (students, questions).
    """
    return make_reference("students.csv", as_answers(right), {"mask": np.ravel(targets)})
