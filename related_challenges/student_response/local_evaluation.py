"""Student responses: score predicted labels with the measures of Dzikovska et al. (2012).

Run:     python related_challenges/student_response/local_evaluation.py
         python related_challenges/student_response/local_evaluation.py --input_dir DIR
Reads:   data/train_data/*.xml (the true labels) and data/test_output/submission.csv
Writes:  data/test_output/scores_student_response.txt and .html, and a line of the record of all
         scores

The score is the macro-averaged F1. --ways 3 or 2 merges true and predicted labels first. If DIR
holds test sets (test-unseen-answers, -questions, -domains), they are scored one by one as in
SemEval-2013 task 7, with 5, 3 and 2 labels, and the score is the mean of their macro F1.
"""

import argparse

from common import cli, pages
from common.errors import InputError
from related_challenges import challenge

import responses


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(__doc__, __file__)
    help_text = "number of labels (default: as in the files)"
    parser.add_argument("--ways", type=int, choices=(2, 3, 5), help=help_text)
    return parser


def main() -> None:
    """Score the submission that the flags name by the true labels."""
    options = challenge.read_evaluation_flags(build_parser())
    folder = options.reference
    answers = responses.read_responses(folder)
    n_labels = len(responses.labels_of(answers))
    ways = options.ways or n_labels
    if ways > n_labels:
        raise InputError(f"--ways is {ways}, but {folder} has only {n_labels} labels")
    predicted = responses.read_predictions(options.submission, answers)
    counts = responses.count(answers["label"].tolist(), predicted, ways)
    measured = responses.evaluate(counts)
    accuracy = float(measured["recall"][responses.MICRO])
    score = float(measured["F1"][responses.MACRO])
    metric, what = "Macro-averaged F1 over the labels", f"macro F1 of {len(answers):,} answers"

    header = ["", *measured.columns]
    rows = [[name, *map("{:.4f}".format, values)] for name, *values in measured.itertuples()]
    confusion = [
        [f"predicted {name}", *map(str, row)]
        for name, *row in counts.itertuples()
        if name in counts or any(row)
    ]
    caption = "Numbers of answers, predictions in rows as in the paper."
    first = pages.part("table", header, rows, caption="Micro: weighted by class size", stacks=True)
    truths = ["", *(f"truly {name}" for name in counts)]
    second = pages.part("table", truths, confusion, caption=caption)
    body = f"{first}<h2>Confusion matrix</h2>{second}"
    lines = challenge.in_columns([header, *rows], 30, 9)

    corpus = responses.corpus_of(folder)
    tested = responses.score_test_sets(answers, predicted, corpus)
    if len(tested):
        of_sets = tested["macro F1"][tested["labels"] == ways]
        score, what = float(of_sets.mean()), f"mean macro F1 of {len(of_sets)} test sets"
        metric = f"Mean of the test sets' macro-averaged F1, {ways} labels"
        test_rows = responses.test_set_rows(tested, corpus)
        lines = challenge.in_columns([responses.HEADER, *test_rows], 32, 11) + lines
        caption = "SemEval-2013 task 7; sources of published figures: responses.py"
        above = pages.part("table", responses.HEADER, test_rows, caption=caption)
        body = f"{above}<h2>All test sets together</h2>{body}"
    challenge.write_scores(
        options,
        [*lines, f"score {score:.4f} ({what})", f"accuracy {accuracy:.4f}"],
        title="Student response analysis",
        metric_name="macro F1",
        metric=metric,
        score=score,
        facts=[
            ("Answers", f"{len(answers):,} to {answers['question'].nunique():,} questions"),
            ("Accuracy", f"{accuracy:.4f}"),
        ],
        rules=f"{ways} labels" + ", mean of test sets" * (len(tested) > 0),
        parts={
            "accuracy": accuracy,
            **{f"{name}, F1": float(value) for name, value in measured["F1"].items()},
            **{
                f"{name}, {own} labels": macro
                for name, own, macro in tested[["test set", "labels", "macro F1"]].values
            },
        },
        body=body,
    )


if __name__ == "__main__":
    cli.run(main)
