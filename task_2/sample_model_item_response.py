"""Task 2: item response theory for options, with effects of the quiz of an answer.

An answer is a chain of up to three decisions (stick breaking): is it right? If not, is it the most
popular wrong option? If not, is it the second most popular one? For each decision, a question has
an intercept, slopes on the student's abilities, and effects of the quiz, as in task 1. All three
decisions are fitted together, with the same abilities. Last, the habits of students are fitted: a
student may prefer some of the options 1 to 4, whatever they say. The mathematics is in
common/item_response/MODEL.md.

Run:     python task_2/sample_model_item_response.py --local     predict the local split
         python task_2/local_evaluation.py                       score that prediction
         python task_2/sample_model_item_response.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_2.csv and the zip to upload
Scores:  accuracy 0.5768 on real answers (SD over ten splits: 0.0020), majority model 0.5539

Control-C ends the fit early and predicts with what it has learned so far. While the settings are
still being chosen, it ends the script, and nothing is written.
"""

import argparse

from common import answer_options, cli, progress, run_log, sample_models, submission
from common.answer_context import find_contexts
from common.answers import read_answers
from common.item_response import ItemResponseOptions
from common.model_files import add_save_flag, write_model
from common.probabilities import write_probabilities

TASK = 2
# --help shows this text as the default of some flags: without the flag, the model chooses the
# setting by predicting answers that are held out.
DEFAULT_IN_WORDS = "chosen by held-out answers"
# Training answers that the script handles per second, to estimate its run time. Measured on files
# of the official size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 150_000


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
    # Read the options that were chosen. Read the AnswerIds too, by which the metadata name the quiz
    # of each answer.
    answers = read_answers(paths.train, options=True, ids=True)
    # A context is a quiz or, if quizzes are unknown, a cluster of questions that the same students
    # answer. The model learns an effect of each student in each context.
    train_context, template_context = find_contexts(answers, template, paths.metadata)
    log_event = run_log.open_log(options.log)
    progress.announce(len(answers) / ANSWERS_PER_SECOND)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, contexts. Out, for each template row: `prediction`, `p_option`.
    model = ItemResponseOptions(
        n_dimensions=options.dimensions,
        guessing=options.guessing,
        seed=options.seed,
        log_event=log_event,
    )
    model.fit(
        answers["UserId"],
        answers["QuestionId"],
        answers["AnswerValue"],
        answers["CorrectAnswer"],
        n_options=answer_options.number_of_each(answers),
        context=train_context,
    )
    p_option = model.predict_proba(
        template["UserId"], template["QuestionId"], context=template_context
    )
    p_option = answer_options.for_template(p_option, template)
    prediction = 1 + p_option.argmax(axis=1)
    write_model(model, options.save_model)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
