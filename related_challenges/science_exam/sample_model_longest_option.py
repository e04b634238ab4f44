"""Science exam baseline: the longest option first.

Run:     python related_challenges/science_exam/sample_model_longest_option.py
         python related_challenges/science_exam/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  0.58 on the 200 public questions: authors of exams word the right option with
         more care, and so it gets longer. A model that claims to know science should beat this one.
"""

from common import challenge, cli

import exam


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    cli.add_file(p, "--test_data", exam.TEST)
    options = p.parse_args()
    questions = exam.read_questions(options.input_dir / options.test_data, answers=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Out: `scores`, shape (questions, 5); the highest is guessed first.
    scores = questions[[*exam.LABELS]].map(len).to_numpy(float)
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options.output_dir / options.output_file, questions, scores)


if __name__ == "__main__":
    cli.run(main)
