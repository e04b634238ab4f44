"""Science exam baseline: the option that shares the most different words with the question first.

Run:     python related_challenges/science_exam/sample_model_word_overlap.py
         python related_challenges/science_exam/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  0.38 on the 200 public questions, hardly more than chance (0.3667)
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
    scores = exam.shared_words(questions)
    # ---- End of the model. --------------------------------------------------------------------

    exam.write_predictions(options.output_dir / options.output_file, questions, scores)


if __name__ == "__main__":
    cli.run(main)
