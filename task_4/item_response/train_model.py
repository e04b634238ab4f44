"""Task 4, item response model: learn what questions and the answered mask tell about a student.

Run:     python task_4/item_response/train_model.py --local     learn from the local split
         python task_4/item_response/local_evaluation.py        score that
         python task_4/item_response/train_model.py             learn from all training students
         python task_4/package.py task_4/item_response          write the zip to upload
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  task_4/item_response/model_task_4_item_response.npz
Scores:  accuracy 0.7024 (0.7315 if targets may be asked), mean of the ten public masks; learned
         from right and wrong answers of 1,170 training students in two files (--more_train_data)
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

# The settings were chosen by cross-validation over training students.
# Dimensions of ability.
N_DIMENSIONS = 3
# Steps of the fit.
N_STEPS = 15
# Probability that a student who does not know an answer guesses it right.
GUESSING = 0.2
# A student may do better or worse than usual in a whole quiz. The logits of its questions then
# change by a quiz effect, which has this variance.
QUIZ_VARIANCE = 0.8
# Questions that the same students answer are probably in the same quiz. The similarity of two
# questions, from 0 to 1, says how often students answer both (`count_together`). The correlation
# between the quiz effects of two questions is similarity ** QUIZ_POWER.
QUIZ_POWER = 6


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return training.training_parser(__doc__)


def main() -> None:
    """Read the training answers, fit the model, save its weights."""
    options = build_parser().parse_args()
    answers, n_questions = training.read_training(*training.training_paths(options))

    model = fit(answers, n_questions)
    # Record the UserIds of the training students: the evaluation refuses to examine these students.
    with training.replace_weights(PACKAGE, answers["UserId"].to_numpy()) as folder:
        model.save(folder)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


# ---- The model: replace this block by your own. ------------------------------------------------


def fit(answers: pd.DataFrame, n_questions: int) -> Model:
    """Fit the item response model, and two regressions that use only which questions are answered.

    The first regression predicts a student's abilities from the list of questions that the student
    has answered (`mask_mean` and `mask_weights`). The second regression is for the game, which
    hides some answers. From the list of the other answered questions, it predicts all questions
    that the student has answered (`completion`).

    Parameters
    ----------
    answers
        UserId, QuestionId and IsCorrect of each answer.
    n_questions
        The number of questions; all QuestionIds are smaller.
    """
    fitted = ItemResponse(n_dimensions=N_DIMENSIONS, guessing=GUESSING, n_steps=N_STEPS)
    fitted.fit(answers["UserId"], answers["QuestionId"], answers["IsCorrect"])
    ability = fitted.ability_
    # A question without answers gets the parameters of an average question.
    questions = fitted.question_parameters(np.arange(n_questions))
    slopes = questions.discrimination
    intercept = -questions.difficulty

    # The answered masks: 1 where a student answered a question, shape (students, questions).
    answered = np.zeros((len(ability), n_questions), np.float32)
    answered[find_ids(fitted.student_ids_, answers["UserId"]), answers["QuestionId"]] = 1
    # `together` says how many students answered both questions of each pair. `similarity` brings
    # these numbers to a scale from 0 to 1. It is near 1 for two questions of one quiz, because the
    # same students answer them. Both have the shape (questions, questions).
    together, similarity = answered_mask.count_together(answered)
    # A student may do better or worse in a whole quiz than the abilities say. So each logit
    # includes a quiz effect. Two questions of one quiz have similarity near 1, and so a large
    # covariance of their effects. For two other questions, the covariance is near 0.
    quiz_covariance = np.float32(QUIZ_VARIANCE) * similarity**QUIZ_POWER
    mask_mean, mask_weights = answered_mask.fit_latent(answered, ability)
    return Model(
        # The abilities in `Model` have the mean 0. The fitted abilities have another mean, so add
        # what this mean contributes to the logits to the intercept.
        intercept=(intercept + slopes @ ability.mean(axis=0)).astype(np.float32),
        slopes=slopes.astype(np.float32),
        quiz_covariance=quiz_covariance,
        guessing=np.array(GUESSING, np.float32),
        mask_mean=mask_mean,
        mask_weights=mask_weights,
        completion=answered_mask.fit_completion(together),
    )


# ---- End of the model. -------------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(main)
