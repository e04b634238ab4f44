"""Student responses: score predicted labels with the measures of Dzikovska et al. (2012).

Run:     python related_challenges/student_response/local_evaluation.py
         python related_challenges/student_response/local_evaluation.py --input_dir DIR
Reads:   data/train_data/*.xml (the true labels) and data/test_output/submission.csv
Writes:  data/test_output/scores_student_response.txt and .html, and a line of the record of all
         scores

The score is the macro-averaged F1. --ways 3 or 2 first merges true and predicted labels to 3 or 2.
If DIR holds test sets (test-unseen-answers, -questions, -domains), each test set is scored as in
SemEval-2013 task 7, with 5, 3 and 2 labels. The score is then the mean of their macro F1.
"""

import argparse

from common import cli, pages
from common.errors import InputError
from related_challenges import challenge

import pandas as pd
import responses


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(__doc__, __file__)
    help_text = "number of labels (default: as in the files)"
    parser.add_argument("--ways", type=int, choices=(2, 3, 5), help=help_text)
    return parser


def main() -> None:
    """Score the submission that the flags name by the true labels."""
    options = challenge.start_evaluation(build_parser())
    folder = options.reference
    answers = responses.read_responses(folder)
    n_labels = len(responses.labels_of(answers))
    ways = options.ways or n_labels
    if ways > n_labels:
        raise InputError(f"--ways is {ways}, but {folder} has only {n_labels} labels")
    predicted = responses.read_predictions(options.submission, answers)
    counts = responses.confusion_matrix(answers["label"].tolist(), predicted, ways)
    measures = responses.evaluate(counts)
    accuracy = float(measures["recall"][responses.MICRO])
    header = ["", *measures.columns]
    rows = [[name, *map("{:.4f}".format, values)] for name, *values in measures.itertuples()]
    lines = challenge.in_columns([header, *rows], 30, 9)
    table = pages.part("table", header, rows, caption="Micro: weighted by class size", stacks=True)
    body = f"{table}<h2>Confusion matrix</h2>{confusion_table(counts)}"

    corpus = responses.corpus_of(folder)
    test_sets = responses.score_test_sets(answers, predicted, corpus)
    if len(test_sets):
        macro_f1 = test_sets["macro F1"][test_sets["labels"] == ways]
        score = float(macro_f1.mean())
        shown = f"mean macro F1 of {len(macro_f1)} test sets"
        metric = f"Mean of the test sets' macro-averaged F1, {ways} labels"
        rules = f"{ways} labels, mean of test sets"
        test_rows = responses.test_set_rows(test_sets, corpus)
        lines = challenge.in_columns([responses.HEADER, *test_rows], 32, 11) + lines
        caption = "SemEval-2013 task 7; sources of published figures: responses.py"
        table = pages.part("table", responses.HEADER, test_rows, caption=caption)
        body = f"{table}<h2>All test sets together</h2>{body}"
    else:
        score = float(measures["F1"][responses.MACRO])
        shown = f"macro F1 of {len(answers):,} answers"
        metric = "Macro-averaged F1 over the labels"
        rules = f"{ways} labels"
    challenge.write_scores(
        options,
        [*lines, f"score {score:.4f} ({shown})", f"accuracy {accuracy:.4f}"],
        title="Student response analysis",
        metric_name="macro F1",
        metric=metric,
        score=score,
        facts=[
            ("Answers", f"{len(answers):,} to {answers['question'].nunique():,} questions"),
            ("Accuracy", f"{accuracy:.4f}"),
        ],
        rules=rules,
        parts=score_parts(accuracy, measures, test_sets),
        body=body,
    )


def confusion_table(counts: pd.DataFrame) -> str:
    """Return the confusion matrix as an HTML table, without a row for unused `uninterpretable`."""
    header = ["", *(f"truly {name}" for name in counts)]
    rows = []
    for name, *row in counts.itertuples():
        if name in counts or any(row):
            rows.append([f"predicted {name}", *map(str, row)])
    caption = "Numbers of answers, predictions in rows as in the paper."
    return pages.part("table", header, rows, caption=caption)


def score_parts(
    accuracy: float, measures: pd.DataFrame, test_sets: pd.DataFrame
) -> dict[str, float]:
    """Return all further measures for the record of scores, by their names there."""
    parts = {"accuracy": accuracy}
    for name, f1 in measures["F1"].items():
        parts[f"{name}, F1"] = float(f1)
    for name, n_labels, macro_f1 in test_sets[["test set", "labels", "macro F1"]].to_numpy():
        parts[f"{name}, {n_labels} labels"] = macro_f1
    return parts


if __name__ == "__main__":
    cli.run(main)
