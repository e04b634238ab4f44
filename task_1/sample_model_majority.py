"""Task 1 baseline: predict for every question what most of its answers were, right or wrong.

Run:     python task_1/sample_model_majority.py --local     predict the local split
         python task_1/local_evaluation.py                  score that
         python task_1/sample_model_majority.py             predict the official template
Writes:  submission_task_1.csv and the zip to upload
"""

import numpy as np

from common import cli, submission
from common.answers import read_answers
from common.probabilities import write_probabilities

TASK = 1


def main() -> None:
    """Load, model, predict, write."""
    options = cli.sample_model_parser(__doc__, TASK).parse_args()
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: columns of `answers`. Out, for each row of `template`: `prediction`, 0 or 1; `p_right`.
    n_questions = max(answers.question.max(), template.question.max()) + 1
    n_answers = np.bincount(answers.question, minlength=n_questions)
    n_correct = np.bincount(answers.question[answers.is_correct == 1], minlength=n_questions)
    mostly_correct = 2 * n_correct > n_answers
    # A question that nobody answered, or that is tied, gets what most of all answers were.
    mostly_correct[2 * n_correct == n_answers] = 2 * n_correct.sum() > n_answers.sum()
    prediction = mostly_correct[template.question].astype(np.int8)
    p_right = ((n_correct + 1) / (n_answers + 2))[template.question]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
