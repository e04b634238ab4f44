"""Task 3 baseline: rank the questions by how evenly their answers spread over the options.

A question that nearly everybody answers alike says little about students: its entropy is low.

Run:     python task_3/sample_model_entropy.py
         python task_3/local_evaluation.py --phase public
Writes:  submissions/submission_task_3.csv and the zip to upload
Scores:  0.68 by the best of five experts on 25 real pairs, 0.62 on average
"""

import numpy as np

from common import cli, layout, schema, submission
from common.answers import read_answers

TASK = 3


def main() -> None:
    """Load, model, predict, write."""
    options = cli.sample_model_parser(__doc__, TASK).parse_args()
    paths = cli.sample_model_paths(options, TASK)
    question = submission.read_ranking_template(paths.template)
    answers = read_answers(paths.train, options=True)
    assert answers.option is not None

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `quality`, a number for every row of `question`.
    n_options = len(schema.OPTIONS)
    n_questions = max(answers.question.max(), question.max()) + 1
    cell = answers.question * n_options + answers.option - 1
    n_chosen = np.bincount(cell, minlength=n_questions * n_options).reshape(-1, n_options)[question]
    n_answers = n_chosen.sum(axis=1, keepdims=True)
    share = n_chosen / np.maximum(n_answers, 1)
    # An option that nobody chose adds nothing: p log p goes to 0 with p.
    bits = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy = -(share * bits).sum(axis=1)
    # A question that nobody answered is not bad (entropy 0) but unknown.
    quality = np.where(n_answers[:, 0] > 0, entropy, np.nan)
    # ---- End of the model. --------------------------------------------------------------------

    ranking = submission.rank_by_quality(question, quality)
    submission.write_ranking(question, ranking, paths.output, layout.submission_name(TASK))
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
