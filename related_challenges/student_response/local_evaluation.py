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

from common import challenge, cli, pages
from common.errors import InputError
from common.evaluation import record, score_files
from common.evaluation.record import Evaluation

import grading_measures
import responses
import semeval_2013


def main() -> None:
    """Score the submission that the flags name."""
    p = challenge.evaluation_parser(__doc__, __file__)
    p.add_argument(
        "--ways", type=int, choices=(2, 3, 5), help="number of labels (default: as in the files)"
    )
    options = p.parse_args()
    score_files.remove_scores(options.output_dir, "student_response")
    submission_path = options.submission_dir / options.submit_data

    answers = responses.read_responses(options.input_dir)
    ways = options.ways or len(answers.labels)
    if ways > len(answers.labels):
        raise InputError(
            f"--ways is {ways}, but {options.input_dir} has only {len(answers.labels)} labels"
        )
    predicted = responses.read_predictions(submission_path, answers)
    labels = responses.LABEL_SETS[ways]
    counts = grading_measures.count(
        [responses.coarsen(answers.labels[number], ways) for number in answers.label],
        [responses.coarsen(name, ways) for name in predicted],
        labels,
    )
    measured = grading_measures.evaluate(counts)

    measures = [
        *zip(labels, measured.by_label, strict=True),
        ("macro average", measured.macro),
        ("micro average", measured.micro),
        ("corrective feedback", measured.corrective),
    ]
    measure_rows = [[name, *(f"{value:.4f}" for value in values)] for name, values in measures]
    count_rows = [
        [f"predicted {name}", *map(str, row)]
        for name, row in zip((*labels, responses.UNINTERPRETABLE), counts, strict=True)
        if name in labels or row.any()
    ]
    header = ["", "precision", "recall", "F1"]
    score, metric = float(measured.macro[2]), "Macro-averaged F1 over the labels"
    corpus = semeval_2013.corpus_of(options.input_dir)
    tested = semeval_2013.score_scenarios(answers, predicted, corpus)
    if tested:
        of_sets = {one.scenario: one.macro_f1 for one in tested if one.ways == ways}
        score = sum(of_sets.values()) / len(of_sets)
        metric = f"Mean of the test sets' macro-averaged F1, {ways} labels"
    test_header, test_rows = semeval_2013.table(tested, corpus)
    evaluation = Evaluation(
        title="Student response analysis",
        metric=metric,
        score=score,
        submission=submission_path,
        reference=options.input_dir,
        facts=[
            ("Answers", f"{len(answers):,} to {len(answers.questions):,} questions"),
            ("Accuracy", f"{measured.accuracy:.4f}"),
        ],
        rules=f"{ways} labels" + (", mean of test sets" if tested else ""),
        parts={
            "accuracy": measured.accuracy,
            **{f"{name}, F1": float(values[2]) for name, values in measures},
            **{f"{one.scenario}, {one.ways} labels": one.macro_f1 for one in tested},
        },
        metric_name="macro F1",
    )
    body = ""
    if tested:
        note = "SemEval-2013 task 7; sources of published figures: semeval_2013.py"
        body = pages.table(test_header, test_rows, caption=note) + "<h2>All test sets together</h2>"
    body += (
        pages.table(header, measure_rows, caption="Micro: weighted by class size", stacks=True)
        + "<h2>Confusion matrix</h2>"
        + pages.table(
            ["", *(f"truly {name}" for name in labels)],
            count_rows,
            caption="Numbers of answers, predictions in rows as in the paper.",
        )
    )
    paths = score_files.write_scores(options.output_dir, "student_response", evaluation, body=body)
    record.append_result(options.output_dir, "student_response", evaluation)
    for name, *cells in [test_header, *test_rows] if tested else ():
        print(f"{name:32s} " + " ".join(f"{cell:>11s}" for cell in cells))
    print(f"{'':30s} {'precision':>9s} {'recall':>9s} {'F1':>9s}")
    for name, *cells in measure_rows:
        print(f"{name:30s} " + " ".join(f"{cell:>9s}" for cell in cells))
    what = f"mean macro F1 of {len(of_sets)} test sets" if tested else "macro F1"
    print(f"score {score:.4f} ({what}{'' if tested else f' of {len(answers):,} answers'})")
    print(f"accuracy {measured.accuracy:.4f}")
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


if __name__ == "__main__":
    cli.run(main)
