"""Task 1: item response theory with the context of an answer.

Every student has a few abilities, every question a slope for each and an intercept:
P(right) = guessing + (1 − guessing) sigmoid(slopes · abilities + intercept + effects). The effects
are what the answers of a student in one quiz have in common beyond abilities, and what the answers
of a class in one quiz have in common. If no quizzes are known, clusters of questions that the same
students answer replace them. Variational Bayes fits a posterior for all of these, with priors that
are estimated from the answers. The mathematics is in common/item_response/README.md.

Run:     python task_1/sample_model_item_response.py --local     predict the local split
         python task_1/local_evaluation.py                       score that
         python task_1/sample_model_item_response.py             predict the template
         python task_1/sample_model_item_response.py --help      all flags
Writes:  submission_task_1.csv and the zip to upload
Scores:  0.7287 ± 0.0021 on real answers, where the majority model scores 0.6301

Control-C ends the fit early and predicts with what it has learned so far.
"""

import argparse

from common import cli, run_log, sample_models, submission
from common.answer_context import find_contexts
from common.answers import read_answers
from common.item_response import DEFAULT_DIMENSIONS, ItemResponse
from common.probabilities import write_probabilities

import numpy as np

TASK = 1


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    sample_models.add_metadata_flag(parser)
    run_log.add_log_flag(parser)
    help_text = "number of abilities; time grows with its square"
    cli.add_number(parser, "--dimensions", DEFAULT_DIMENSIONS, help_text, int, "K")
    help_text = "chance to be right without knowing the answer"
    cli.add_number(parser, "--guessing", 0.2, help_text, float, "P")
    cli.add_number(parser, "--seed", 0, "seed of the random start")
    return parser


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False, ids=True)
    context, context_to_predict = find_contexts(answers, template, paths.metadata)
    log_event = run_log.open_log(options.log)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: columns of `answers`; `context`. Out, for each template row: `prediction`; `p_right`.
    model = ItemResponse(
        n_dimensions=options.dimensions,
        guessing=options.guessing,
        seed=options.seed,
        log_event=log_event,
    )
    model.fit(answers["UserId"], answers["QuestionId"], answers["IsCorrect"], context=context)
    probability = model.predict_proba(
        template["UserId"], template["QuestionId"], context=context_to_predict
    )
    p_right = probability[:, 1]
    prediction = (p_right > 0.5).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
