"""Science exam baseline: the option that shares the most different words with the question first.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_word_overlap.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.38 on the 200 public questions, hardly more than chance (0.3667)
"""

from common import cli

import exam


def main() -> None:
    """Load, model, predict, write."""
    options = exam.model_parser(__doc__).parse_args()
    questions = exam.read_asked(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Out: `scores`, shape (questions, 5); the highest is guessed first.
    scores = exam.shared_words(questions)
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


if __name__ == "__main__":
    cli.run(main)
