"""Science exam baseline: the longest option first.

Run:     python related_challenges/science_exam/local_data_split.py
         python related_challenges/science_exam/sample_model_longest_option.py --local
         python related_challenges/science_exam/local_evaluation.py
Without --local it predicts test.csv.
Writes:  data/test_output/submission.csv
Scores:  0.58 on the 200 public questions: authors of exams word the right option with
         more care, and so it gets longer. A model that claims to know science should beat this one.
"""

from common import cli

import exam


def main() -> None:
    """Load, model, predict, write."""
    options = exam.model_parser(__doc__).parse_args()
    questions = exam.read_asked(options)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Out: `scores`, shape (questions, 5); the highest is guessed first.
    scores = questions[[*exam.LABELS]].map(len).to_numpy(float)
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options, questions, scores)


if __name__ == "__main__":
    cli.run(main)
