"""Play task 4 with catsim, and with the kit's strategies on the same calibrated parameters.

Run:     pip install --target PEER catsim
         KIT_REAL_DATA=… python tests/benchmarks/task_4_catsim.py PEER
Writes:  a table to the terminal

All strategies play the games of the public students by the strict rule: targets may not be asked.
The kit fits one-dimensional parameters to the training students: discrimination, difficulty and a
common guessing probability. catsim takes these parameters, chooses questions by maximum
information, estimates the ability by maximum likelihood and predicts with that estimate. The kit's
strategies use the same parameters, but a posterior distribution of the ability. The last rows show
the package item_response/ unchanged, with three dimensions and quiz effects. Packages in PEER are
used only if this environment lacks them.
"""

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import cli
from common.adaptive.game import Reference, Rules, read_reference
from common.answers import read_students
from common.errors import InputError
from common.item_response import ItemResponse
from common.layout import ROOT

import numpy as np
import numpy.typing as npt
import pandas as pd
from real_answers import real_data_dir
from running import load_module
from tqdm import tqdm

N_QUESTIONS = 948
# The accuracy is measured after these numbers of questions.
CHECKPOINTS = (1, 3, 5, 10)
# catsim takes no negative discriminations.
MIN_SLOPE = 0.05

FloatArray = npt.NDArray[np.float64]


def main() -> None:
    """Calibrate the parameters; play with catsim and with the kit's strategies; print a table."""
    p = cli.parser(__doc__)
    p.add_argument("peer", type=Path, metavar="PEER", help="folder that catsim is installed in")
    p.add_argument("--masks", type=int, default=10, help="how many of the ten masks (default all)")
    options = p.parse_args()
    sys.path.append(str(options.peer))
    try:
        importlib.import_module("catsim")
    except ImportError:
        raise InputError(
            f"{options.peer}: catsim is not there, `pip install --target {options.peer} catsim` "
            "installs it"
        ) from None
    games = load_module(ROOT / "task_4" / "strategy_games.py")
    make_bank = sys.modules["ability"].Bank
    folder = real_data_dir() / "eedi_tasks_3_4"
    names = ("train_task_3_4.csv", "train_task_3_4_right_wrong_only.csv")
    answers = read_students([folder / "train_data" / name for name in names])
    path = folder / "test_data" / "test_public_task_4_more_splits.csv"
    reference = read_reference(path, N_QUESTIONS)
    masks = list(reference.targets)[: options.masks]

    full = games.calibrate(answers, N_QUESTIONS)
    flat = make_bank(full.module, fit_one_dimension(full.model, answers), full.popularity)
    strategies = games.find_strategies()

    def kit(bank: Any, name: str) -> Callable[[str], FloatArray]:
        def play(mask: str) -> FloatArray:
            about = bank, reference, mask, Rules()
            game = games.play(*about, strategies[name], games.GameLimits(CHECKPOINTS[-1]))
            scores = games.score({name: {mask: game}})
            return scores["accuracy"].to_numpy()[1:]

        return play

    version = importlib.import_module("importlib.metadata").version("catsim")
    rows = {
        f"catsim {version}": lambda mask: play_catsim(flat.model, reference, mask),
        "maximum_information, same parameters": kit(flat, "maximum_information"),
        "most_right_predictions, same parameters": kit(flat, games.OWN),
        "maximum_information, item_response/": kit(full, "maximum_information"),
        "most_right_predictions, item_response/": kit(full, games.OWN),
    }
    print("| accuracy after n questions | 1 | 3 | 5 | 10 | seconds per mask |")
    print("|---|---|---|---|---|---|")
    for name, play in rows.items():
        began = time.perf_counter()
        accuracies = np.array([play(mask) for mask in masks])
        seconds = (time.perf_counter() - began) / len(masks)
        cells = " | ".join(f"{value:.4f}" for value in accuracies.mean(axis=0))
        print(f"| {name} | {cells} | {seconds:.1f} |", flush=True)


def fit_one_dimension(full: Any, answers: pd.DataFrame) -> Any:
    """Fit a model with one ability, as catsim needs it; put its parameters in a copy of `full`.

    `full` is the model of `task_4/item_response`, whose logit is slopes · ability + intercept. It
    also has parameters for what catsim cannot do, which are set to 0 here: the effects of quizzes
    (`quiz_covariance`), and what the model infers from which questions a student has answered
    (`mask_weights`, `completion`).
    """
    fitted = ItemResponse(n_dimensions=1, guessing=float(full.guessing)).fit(
        answers["UserId"], answers["QuestionId"], answers["IsCorrect"]
    )
    # The logit of `fitted` is discrimination · ability − difficulty.
    questions = fitted.question_parameters(np.arange(N_QUESTIONS))
    slope = questions.discrimination[:, 0]
    ability = fitted.ability_[:, 0]
    # The sign of a fitted ability is arbitrary. Choose it so that a larger ability means more right
    # answers.
    sign = np.sign(slope.mean())
    slope = slope * sign
    ability = ability * sign
    # Raise negative and very small slopes to MIN_SLOPE: catsim takes no negative slopes.
    slope = np.maximum(slope, MIN_SLOPE)
    mean_ability = ability.mean()
    # The prior of the ability in `full` has the mean 0. So subtract the mean from each ability: the
    # logit becomes slope · (ability − mean) + intercept. It stays equal to slope · ability −
    # difficulty if intercept = slope · mean − difficulty.
    intercept = slope * mean_ability - questions.difficulty
    return replace(
        full,
        intercept=intercept.astype(np.float32),
        # `slopes` has a column for each ability, here only one.
        slopes=slope[:, np.newaxis].astype(np.float32),
        quiz_covariance=np.zeros_like(full.quiz_covariance),
        # `mask_weights` also has a column for each ability.
        mask_weights=np.zeros_like(full.mask_weights[:, :1]),
        completion=np.zeros_like(full.completion),
    )


def play_catsim(model: Any, reference: Reference, mask: str) -> FloatArray:
    """Let catsim ask every student; return the accuracy after each of `CHECKPOINTS`."""
    bank_type = importlib.import_module("catsim.item_bank").ItemBank
    items = list_items(model)
    bank = bank_type(items, validate=False)
    # `targets` and `may_be_asked` have the shape (students, questions). `is_correct` is -1 where a
    # student has not answered a question.
    targets = reference.targets[mask]
    may_be_asked = (reference.is_correct >= 0) & ~targets
    # The number of right predictions, for each of `CHECKPOINTS`.
    n_right = np.zeros(len(CHECKPOINTS))
    for student in tqdm(range(len(targets)), desc=mask, leave=False, disable=None):
        is_right = reference.is_correct[student] == 1
        is_target = targets[student]
        # The student's bank holds only questions that may be asked, so that the search is faster.
        askable = np.flatnonzero(may_be_asked[student])
        student_bank = bank_type(items[askable], validate=False)
        abilities = ask_student(student_bank, is_right[askable])
        for column, n_asked in enumerate(CHECKPOINTS):
            # `icc` returns the probability of a right answer to each question of the bank.
            p_right = bank.icc(abilities[n_asked - 1])[is_target]
            is_hit = (p_right > 0.5) == is_right[is_target]
            n_right[column] += is_hit.sum()
    return np.asarray(n_right / targets.sum())


def list_items(model: Any) -> FloatArray:
    """Return the parameters of the questions (items) as catsim expects them, a row for each."""
    slope = model.slopes[:, 0].astype(np.float64)
    # The kit's logit, slope · ability + intercept, is slope · (ability - difficulty).
    difficulty = -model.intercept / slope
    guessing = np.full(N_QUESTIONS, float(model.guessing))
    largest_probability = np.ones(N_QUESTIONS)
    return np.stack([slope, difficulty, guessing, largest_probability], axis=1)


def ask_student(bank: Any, is_right: npt.NDArray[np.bool_]) -> list[float]:
    """Let catsim ask a student; return the estimated ability after each question.

    `bank` holds the questions that may be asked, and `is_right` the student's answers to them.
    """
    selector = importlib.import_module("catsim.selection").MaxInfoSelector()
    estimator = importlib.import_module("catsim.estimation").NumericalSearchEstimator()
    # The questions asked so far, as positions in the bank.
    asked: list[int] = []
    ability = 0.0
    abilities = []
    for _ in range(CHECKPOINTS[-1]):
        question = selector.select(item_bank=bank, administered_items=asked, est_theta=ability)
        asked.append(int(question))
        ability = estimator.estimate(
            item_bank=bank,
            administered_items=asked,
            response_vector=is_right[asked].tolist(),
            est_theta=ability,
        )
        abilities.append(ability)
    return abilities


if __name__ == "__main__":
    cli.run(main)
