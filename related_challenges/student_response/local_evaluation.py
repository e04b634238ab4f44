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
from dataclasses import dataclass

from common import cli, pages
from common.errors import InputError
from related_challenges import challenge

import pandas as pd
import responses


@dataclass(frozen=True)
class Scored:
    """The score of the labels, and how the score is shown."""

    score: float
    # The score in words, for the terminal.
    description: str
    # The metric in words, for the page.
    metric: str
    # Settings that must be equal for two scores to be compared.
    rules: str
    # Tables for the terminal.
    lines: list[str]
    # Tables for the page, as HTML.
    body: str


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
    measures = responses.evaluate(counts)
    corpus = responses.corpus_of(folder)
    test_sets = responses.score_test_sets(answers, predicted, corpus)

    scored = score_all_answers(counts, measures, ways)
    if len(test_sets):
        scored = score_by_test_set(scored, test_sets, corpus, ways)
    accuracy = float(measures["recall"][responses.MICRO])
    challenge.write_scores(
        options,
        [
            *scored.lines,
            f"score {scored.score:.4f} ({scored.description})",
            f"accuracy {accuracy:.4f}",
        ],
        title="Student response analysis",
        metric_name="macro F1",
        metric=scored.metric,
        score=scored.score,
        facts=[
            ("Answers", f"{len(answers):,} to {answers['question'].nunique():,} questions"),
            ("Accuracy", f"{accuracy:.4f}"),
        ],
        rules=scored.rules,
        parts=score_parts(accuracy, measures, test_sets),
        body=scored.body,
    )


def score_all_answers(counts: pd.DataFrame, measures: pd.DataFrame, ways: int) -> Scored:
    """Score all answers together; `counts` and `measures` come from `responses`."""
    header = ["", *measures.columns]
    rows = [[name, *map("{:.4f}".format, values)] for name, *values in measures.itertuples()]
    table = pages.part("table", header, rows, caption="Micro: weighted by class size", stacks=True)
    n_answers = counts.to_numpy().sum()
    return Scored(
        score=float(measures["F1"][responses.MACRO]),
        description=f"macro F1 of {n_answers:,} answers",
        metric="Macro-averaged F1 over the labels",
        rules=f"{ways} labels",
        lines=challenge.in_columns([header, *rows], 30, 9),
        body=f"{table}<h2>Confusion matrix</h2>{confusion_table(counts)}",
    )


def score_by_test_set(together: Scored, test_sets: pd.DataFrame, corpus: str, ways: int) -> Scored:
    """Score the test sets one by one, and show them above all test sets together."""
    macro_f1 = test_sets["macro F1"][test_sets["labels"] == ways]
    rows = responses.test_set_rows(test_sets, corpus)
    caption = "SemEval-2013 task 7; sources of published figures: responses.py"
    table = pages.part("table", responses.HEADER, rows, caption=caption)
    return Scored(
        score=float(macro_f1.mean()),
        description=f"mean macro F1 of {len(macro_f1)} test sets",
        metric=f"Mean of the test sets' macro-averaged F1, {ways} labels",
        rules=f"{ways} labels, mean of test sets",
        lines=challenge.in_columns([responses.HEADER, *rows], 32, 11) + together.lines,
        body=f"{table}<h2>All test sets together</h2>{together.body}",
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
