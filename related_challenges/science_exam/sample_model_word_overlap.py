"""Science exam baseline: the option that shares the most different words with the question first.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_word_overlap.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.38 on the 200 public questions, hardly more than chance (0.3667)
"""

from common import cli
from common.arrays import FloatArray

import exam
import pandas as pd


def score(questions: pd.DataFrame) -> FloatArray:
    """Score all options, (questions, 5)."""
    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Out: the scores that are returned; the highest is guessed first.
    return exam.shared_words(questions)
    # ---- End of the model. --------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(lambda: exam.run_model(__doc__, score))
