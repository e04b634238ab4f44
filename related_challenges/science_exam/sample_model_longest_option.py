"""Science exam baseline: guess the longest option first.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_longest_option.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  MAP@3 0.58 on the 200 public questions

The right option of an exam is often worded with more care, which makes it longer. A model that
claims to know science should beat this baseline.
"""

import argparse

from common import cli
from common.arrays import FloatArray

import exam
import pandas as pd


def score(questions: pd.DataFrame) -> FloatArray:
    """Score each option by its number of characters, shape (questions, 5)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Return: the scores of their options; the highest score is guessed first.
    return questions[list(exam.LABELS)].map(len).to_numpy(float)
    # ---- End of the model. --------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    # The model does not learn from the training questions, so its parser has no flag --seed.
    return exam.model_parser(__doc__, learns=False)


def main() -> None:
    """Predict the answers, which takes no training, and write them."""
    exam.run_fixed_model(build_parser().parse_args(), score)


if __name__ == "__main__":
    cli.run(main)
