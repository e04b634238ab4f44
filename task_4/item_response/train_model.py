"""Task 4, item response model: learn the questions, and what the answered questions reveal.

Run:     python task_4/item_response/train_model.py --local     learn from the local split
         python task_4/item_response/local_evaluation.py        score that
         python task_4/item_response/train_model.py             learn from all training students
         python task_4/package.py task_4/item_response          write the zip to upload
Writes:  task_4/item_response/model_task_4_item_response.npz
Scores:  0.7024 (0.7315 where targets may be asked) with the right and wrong answers of 1,170
         training students, from two files (--more_train_data), mean of the ten public masks
"""

import argparse
from pathlib import Path

from common import cli
from common.adaptive import answered_mask, training
from common.answers import find_ids
from common.item_response import ItemResponse

import numpy as np
import pandas as pd

from model import Model

PACKAGE = Path(__file__).parent

# Chosen by cross-validation over training students.
N_DIMENSIONS = 3
N_STEPS = 15
GUESSING = 0.2
# Variance of the effect of a quiz, and the power that makes the similarity of questions fall off.
QUIZ_VARIANCE, QUIZ_POWER = 0.8, 6


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return training.training_parser(__doc__)


def main() -> None:
    """Load, train, write."""
    options = build_parser().parse_args()
    answers, n_questions = training.read_training(*training.training_paths(options))

    model = fit(answers, n_questions)
    with training.replace_weights(PACKAGE, answers["UserId"].to_numpy()) as folder:
        model.save(folder)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


# ---- The model: replace this block by your own. ------------------------------------------------


def fit(answers: pd.DataFrame, n_questions: int) -> Model:
    """Learn from right and wrong answers; all QuestionIds are below `n_questions`."""
    fitted = ItemResponse(n_dimensions=N_DIMENSIONS, guessing=GUESSING, n_steps=N_STEPS)
    fitted.fit(answers["UserId"], answers["QuestionId"], answers["IsCorrect"])
    ability = fitted.ability_
    # A question without answers gets the parameters of an average one.
    questions = fitted.question_parameters(np.arange(n_questions))
    slopes = questions.discrimination
    intercept = -questions.difficulty

    answered = np.zeros((len(ability), n_questions), np.float32)
    answered[find_ids(fitted.student_ids_, answers["UserId"]), answers["QuestionId"]] = 1
    together, similarity = answered_mask.count_together(answered)
    mask_mean, mask_weights = answered_mask.regress(answered, ability)
    return Model(
        intercept=(intercept + slopes @ ability.mean(axis=0)).astype(np.float32),
        slopes=slopes.astype(np.float32),
        quiz_covariance=np.float32(QUIZ_VARIANCE) * similarity**QUIZ_POWER,
        guessing=np.array(GUESSING, np.float32),
        mask_mean=mask_mean,
        mask_weights=mask_weights,
        completion=answered_mask.complete(together),
    )


# ---- End of the model. -------------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(main)
