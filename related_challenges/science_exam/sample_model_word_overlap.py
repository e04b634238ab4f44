"""Science exam baseline: guess first the option that shares the most words with the question.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_word_overlap.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  MAP@3 0.38 on the 200 public questions, hardly more than chance (0.3667)
"""

import argparse

from common import cli
from common.arrays import FloatArray

import exam
import pandas as pd


def score(questions: pd.DataFrame) -> FloatArray:
    """Return the scores of the options of each question, shape (questions, 5)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Return: the scores of their options; the highest score is guessed first.
    return exam.count_shared_words(questions)
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
