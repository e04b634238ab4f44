"""Task 1: item response theory, with effects of the quiz in which an answer is given.

Every student has a few abilities. Every question has an intercept, and a slope for each ability:
    P(right) = guessing + (1 − guessing) · sigmoid(slopes · abilities + intercept + effects)
There are two effects: one for each student in each quiz, one for each class in each quiz. If the
quizzes are not known, clusters of questions take their place; a cluster holds questions that the
same students answer. Variational Bayes fits posteriors of abilities, slopes, intercepts and
effects, and estimates their priors. The mathematics is in common/item_response/MODEL.md.

Run:     python task_1/sample_model_item_response.py --local     predict the local split
         python task_1/local_evaluation.py                       score that prediction
         python task_1/sample_model_item_response.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_1.csv and the zip to upload
Scores:  accuracy 0.7287 on real answers (SD over ten splits: 0.0021), majority model 0.6301

Control-C ends the fit early and predicts with what it has learned so far. While the settings are
still being chosen, it ends the script, and nothing is written.
"""

import argparse

from common import cli, run_log, sample_models, submission
from common.answer_context import find_contexts
from common.answers import read_answers
from common.item_response import ItemResponse
from common.model_files import add_save_flag, write_model
from common.probabilities import write_probabilities

import numpy as np

TASK = 1
# --help shows this text as the default of some flags: without the flag, the model chooses the
# setting by predicting answers that are held out.
DEFAULT_IN_WORDS = "chosen by held-out answers"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    # The metadata name the quiz of each answer, so that the model can learn effects of quizzes.
    sample_models.add_metadata_flag(parser)
    run_log.add_log_flag(parser)
    add_save_flag(parser)
    cli.add_optional_number(
        parser, "--dimensions", DEFAULT_IN_WORDS, "number of abilities", parse=int, metavar="K"
    )
    help_text = "probability of guessing right"
    cli.add_optional_number(
        parser, "--guessing", DEFAULT_IN_WORDS, help_text, parse=float, metavar="P"
    )
    cli.add_number(parser, "--seed", 0, "seed of the random start")
    return parser


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    # Read which answers are right, but not which options were chosen. Read the AnswerIds too, by
    # which the metadata name the quiz of each answer.
    answers = read_answers(paths.train, options=False, ids=True)
    # A context is a quiz or, if quizzes are unknown, a cluster of questions that the same students
    # answer. The model learns an effect of each student in each context.
    train_context, template_context = find_contexts(answers, template, paths.metadata)
    log_event = run_log.open_log(options.log)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, contexts. Out, for each template row: `prediction`, `p_right`.
    model = ItemResponse(
        n_dimensions=options.dimensions,
        guessing=options.guessing,
        seed=options.seed,
        log_event=log_event,
    )
    model.fit(answers["UserId"], answers["QuestionId"], answers["IsCorrect"], context=train_context)
    probability = model.predict_proba(
        template["UserId"], template["QuestionId"], context=template_context
    )
    # The columns are P(wrong) and P(right).
    p_right = probability[:, 1]
    prediction = (p_right > 0.5).astype(np.int8)
    write_model(model, options.save_model)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
