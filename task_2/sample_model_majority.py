"""Task 2 baseline: predict for every question the option that most students chose.

Run:     python task_2/sample_model_majority.py --local     predict the local split
         python task_2/local_evaluation.py                  score that
         python task_2/sample_model_majority.py             predict the official template
Writes:  submission_task_2.csv and the zip to upload
"""

import numpy as np

from common import cli, schema, submission
from common.answers import read_answers
from common.probabilities import write_probabilities

TASK = 2


def main() -> None:
    """Load, model, predict, write."""
    options = cli.sample_model_parser(__doc__, TASK).parse_args()
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)
    assert answers.option is not None

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: columns of `answers`. Out, for each row of `template`: `prediction`, 1 to 4; `p_option`.
    n_questions = max(answers.question.max(), template.question.max()) + 1
    n_chosen = np.stack(
        [
            np.bincount(answers.question[answers.option == option], minlength=n_questions)
            for option in schema.OPTIONS
        ],
        axis=1,
    )
    # A question that nobody answered gets the option that is chosen most often over all.
    n_chosen[n_chosen.sum(axis=1) == 0] = n_chosen.sum(axis=0)
    prediction = schema.OPTIONS[0] + n_chosen.argmax(axis=1)[template.question]
    n_answers = n_chosen.sum(axis=1, keepdims=True)
    p_option = ((n_chosen + 1) / (n_answers + 4))[template.question]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
