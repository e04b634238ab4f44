"""Student responses: score predicted labels with the measures of Dzikovska et al. (2012).

Run:     python related_challenges/student_response/local_evaluation.py
         python related_challenges/student_response/local_evaluation.py --input_dir DIR
Reads:   data/train_data/*.xml (the true labels) and data/test_output/submission.csv
Writes:  data/test_output/scores_student_response.txt and .html, and a line in results.jsonl, the
         record of all scores

The score is the macro-averaged F1. --ways 3 (or 2) first merges the labels, true and predicted, to
3 (or 2) labels. If DIR holds test sets (test-unseen-answers, -questions, -domains), each test set
is scored as in SemEval-2013 task 7, with 5, 3 and 2 labels. The score is then the mean over the
test sets of the macro F1 for the number of labels that --ways gives.
"""

import argparse
from dataclasses import dataclass

from common import cli, pages
from common.errors import InputError
from related_challenges import challenge

import pandas as pd
import responses


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = challenge.evaluation_parser(__doc__, __file__)
    help_text = "number of labels to merge to (default: as many as in the files)"
    parser.add_argument("--ways", type=int, choices=(2, 3, 5), help=help_text)
    return parser


@dataclass(frozen=True)
class Result:
    """A score, and how it is shown."""

    score: float
    # The name of the score on the terminal.
    description: str
    # The name of the score on the page and in the record.
    metric: str
    # How the score was computed, as a text for the record of scores.
    rules: str
    # Tables for the terminal, line by line.
    lines: list[str]
    # Tables for the page, as HTML.
    body: str


def main() -> None:
    """Compare the submission with the true labels, and write its score."""
    # The folder with the true answers may hold training files too. `find_question_files` finds only
    # the files that are scored.
    options = challenge.start_evaluation(build_parser(), responses.find_question_files)
    folder = options.reference
    answers = responses.read_responses(folder)
    n_labels = len(responses.labels_of(answers))
    # The challenge scores with 5, 3 or 2 labels ("ways"). --ways merges the labels of the files to
    # this number. By default they stay as they are.
    n_ways = options.ways or n_labels
    if n_ways > n_labels:
        raise InputError(f"--ways is {n_ways}, but {folder} has only {n_labels} labels")
    predicted = responses.read_predictions(options.submission, answers)
    counts = responses.confusion_matrix(answers["label"].tolist(), predicted, n_ways)
    measures = responses.evaluate(counts)
    # The recall of a label is the share of its answers that are predicted right. The mean over the
    # labels, weighted by their numbers of answers, is therefore the accuracy.
    accuracy = float(measures["recall"][responses.MICRO])
    result = score_all_answers(len(answers), counts, measures)
    corpus = responses.corpus_of(folder)
    test_sets = responses.score_test_sets(answers, predicted, corpus)
    if len(test_sets):
        result = score_mean_of_test_sets(test_sets, corpus, n_ways, result)
    challenge.write_scores(
        options,
        [
            *result.lines,
            f"score {result.score:.4f} ({result.description})",
            f"accuracy {accuracy:.4f}",
        ],
        title="Student response analysis",
        metric_name="macro F1",
        metric=result.metric,
        score=result.score,
        facts=[
            ("Answers", f"{len(answers):,} to {answers['question'].nunique():,} questions"),
            ("Accuracy", f"{accuracy:.4f}"),
        ],
        rules=result.rules,
        parts=score_parts(accuracy, measures, test_sets),
        body=result.body,
    )


def score_all_answers(n_answers: int, counts: pd.DataFrame, measures: pd.DataFrame) -> Result:
    """Return the macro F1 of all answers together.

    `counts` is the confusion matrix of the answers, and `measures` is the table that
    `responses.evaluate` returns for it.
    """
    header = ["", *measures.columns]
    rows = []
    for name, values in zip(measures.index, measures.to_numpy(), strict=True):
        rows.append([name, *(f"{value:.4f}" for value in values)])
    caption = "Micro average: mean over the labels, weighted by their numbers of answers"
    # With `stacks`, a phone shows every cell on a line of its own.
    table = pages.part("table", header, rows, caption=caption, stacks=True)
    return Result(
        score=float(measures["F1"][responses.MACRO]),
        description=f"macro F1 of {n_answers:,} answers",
        metric="Macro-averaged F1 over the labels",
        rules=f"{counts.shape[1]} labels",
        lines=challenge.align_columns([header, *rows], first_width=30, other_width=9),
        body=f"{table}<h2>Confusion matrix</h2>{confusion_table(counts)}",
    )


def score_mean_of_test_sets(
    test_sets: pd.DataFrame, corpus: str, n_ways: int, all_answers: Result
) -> Result:
    """Return the mean of the test sets' macro F1.

    `all_answers` is the result for the answers of all test sets together. The returned result shows
    the table of the test sets, then the tables of `all_answers`.

    `test_sets` is the table that `responses.score_test_sets` returns: it has a row for each test
    set and each number of labels. The mean is over the rows for `n_ways` labels (5, 3 or 2).
    """
    macro_f1 = test_sets["macro F1"][test_sets["labels"] == n_ways]
    header = responses.HEADER
    rows = responses.tabulate_test_sets(test_sets, corpus)
    lines = challenge.align_columns([header, *rows], first_width=32, other_width=11)
    caption = "SemEval-2013 task 7; sources of published figures: responses.py"
    table = pages.part("table", header, rows, caption=caption)
    return Result(
        score=float(macro_f1.mean()),
        description=f"mean macro F1 of {len(macro_f1)} test sets",
        metric=f"Mean of the test sets' macro-averaged F1, {n_ways} labels",
        rules=f"{n_ways} labels, mean of test sets",
        lines=lines + all_answers.lines,
        body=f"{table}<h2>All test sets together</h2>{all_answers.body}",
    )


def confusion_table(counts: pd.DataFrame) -> str:
    """Return the confusion matrix as an HTML table.

    A system may predict "uninterpretable" for an answer that it cannot interpret. The row of this
    prediction is left out if no answer has it.
    """
    header = ["", *(f"truly {name}" for name in counts)]
    rows = []
    for name, row in zip(counts.index, counts.to_numpy().tolist(), strict=True):
        is_empty = not any(row)
        if name == responses.UNINTERPRETABLE and is_empty:
            continue
        rows.append([f"predicted {name}", *map(str, row)])
    caption = "Numbers of answers, predictions in rows as in Dzikovska et al. (2012)."
    return pages.part("table", header, rows, caption=caption)


def score_parts(
    accuracy: float, measures: pd.DataFrame, test_sets: pd.DataFrame
) -> dict[str, float]:
    """Return the measures that the record of scores keeps besides the score, by their names."""
    parts = {"accuracy": accuracy}
    for name, f1 in measures["F1"].items():
        parts[f"{name}, F1"] = float(f1)
    for name, n_labels, macro_f1 in test_sets[["test set", "labels", "macro F1"]].to_numpy():
        parts[f"{name}, {n_labels} labels"] = macro_f1
    return parts


if __name__ == "__main__":
    cli.run(main)
