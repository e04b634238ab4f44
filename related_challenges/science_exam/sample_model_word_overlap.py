"""Science exam baseline: the option that shares the most different words with the question first.

Run:     python related_challenges/science_exam/sample_model_word_overlap.py
         python related_challenges/science_exam/local_evaluation.py
Writes:  data/test_output/submission.csv
Scores:  0.38 on the 200 public questions, hardly more than chance (0.3667)
"""

from common import challenge, cli

import exam
import numpy as np


def main() -> None:
    """Load, model, predict, write."""
    p = challenge.model_parser(__doc__, __file__)
    cli.add_file(p, "--test_data", exam.TEST)
    options = p.parse_args()
    questions = exam.read_questions(options.input_dir / options.test_data, answers=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `questions`. Out: `scores`, shape (questions, 5); the highest is guessed first.
    scores = np.array(
        [
            [float(len(exam.words(text) & exam.words(prompt))) for text in texts]
            for prompt, texts in zip(questions.prompts, questions.options, strict=True)
        ]
    )
    # ---- End of the model. --------------------------------------------------------------------

    path = options.output_dir / options.output_file
    exam.write_predictions(path, questions, scores)
    print(f"written: {cli.show(path)} ({len(questions):,} rows)")


if __name__ == "__main__":
    cli.run(main)
