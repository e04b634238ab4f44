"""Task 4, majority model: count the answers to each question.

Questions are asked by how many students answered them, and answers are predicted by the majority.
The folder has the name that the challenge's guide gives to this model.

Run:     python task_4/numpy/train_model.py --local     learn from the local split
         python task_4/numpy/local_evaluation.py        score that
         python task_4/numpy/train_model.py             learn from all training students
         python task_4/package.py task_4/numpy          write the zip to upload
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  task_4/numpy/model_task_4_most_popular.npy and model_task_4_num_answers.npy
Scores:  0.6365 with the official training file, mean of the ten public masks
"""

import argparse
from pathlib import Path

from common import cli
from common.adaptive import training

from model import Model

PACKAGE = Path(__file__).parent


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    return training.training_parser(__doc__)


def main() -> None:
    """Read the training answers, fit the model, save its weights."""
    options = build_parser().parse_args()
    answers, n_questions = training.read_training(*training.training_paths(options))

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, a DataFrame; `n_questions`, larger than every QuestionId. Out: `model`, fitted.
    model = Model()
    model.fit(answers["QuestionId"].to_numpy(), answers["IsCorrect"].to_numpy(), n_questions)
    # ---- End of the model. --------------------------------------------------------------------

    # Save the UserIds too: the evaluation refuses to score the model on students it learned from.
    with training.replace_weights(PACKAGE, answers["UserId"].to_numpy()) as folder:
        model.save(folder)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


if __name__ == "__main__":
    cli.run(main)
