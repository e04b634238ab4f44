"""For tests of the packages in task_4/: their modules, models with known parameters, students."""

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
    """Import `model` and then other modules of a package in task_4/, which import `model`.

    `sys.modules` is as before afterwards, since other packages have modules of the same names.
    """
    folder = kit / "task_4" / name
    with without_modules_of(folder):
        return [load_module(folder / f"{module}.py", module) for module in ("model", *modules)]


def plain_model(package: ModuleType, slopes: Any, **changes: Any) -> Any:
    """Return an item response model without guessing, quiz effects and inference from the mask.

    The model infers nothing from which questions a student has answered (the answered mask).
    `changes` replaces arrays of the model by name.
    """
    n_questions, n_dimensions = slopes.shape
    values = {
        "intercept": np.zeros(n_questions),
        "slopes": slopes,
        "quiz_covariance": np.zeros((n_questions, n_questions)),
        "guessing": np.array(0),
        "mask_mean": np.zeros(n_questions),
        "mask_weights": np.zeros((n_questions, n_dimensions)),
        "completion": np.zeros((n_questions, n_questions)),
    }
    arrays = {name: np.asarray(a, np.float32) for name, a in {**values, **changes}.items()}
    return package.Model(**arrays)


def full_model(package: ModuleType, n_questions: int, seed: int, completion: float) -> Any:
    """Return an item response model in which no array is zero.

    `completion` scales the weights by which the model infers which answers are hidden.
    """
    rng = np.random.default_rng(seed)
    n = n_questions
    quiz = rng.normal(size=(n, 8)) * (rng.random((n, 8)) < 0.3)
    return plain_model(
        package,
        rng.normal(0.8, 0.5, (n, 2)),
        intercept=rng.normal(0.3, 0.8, n),
        quiz_covariance=0.5 * quiz @ quiz.T,
        guessing=0.2,
        mask_mean=rng.random(n) / n**0.5,
        mask_weights=rng.normal(0, 0.4, (n, 2)),
        completion=rng.uniform(0, completion / n, (n, n)),
    )


def as_answers(right: Any) -> pd.DataFrame:
    """Return the answers of students (rows) who have answered all questions (columns)."""
    student, question = np.indices(right.shape, np.int32)
    return answers_frame(student.ravel(), question.ravel(), np.ravel(right).astype(np.int8))


def as_reference(right: Any, targets: Any) -> Reference:
    """Return students who have answered all questions, and one mask that hides some answers."""
    return make_reference("students.csv", as_answers(right), {"mask": np.ravel(targets)})
