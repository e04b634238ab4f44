"""Tasks 1 and 2: score predictions for pairs of a student and a question.

The steps are those of `common.evaluation`: `match`, `score`, `explain`, then `score_files.publish`.
`evaluate` makes all steps of a `local_evaluation.py`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import (
    answer_options,
    charts,
    cli,
    fingerprints,
    layout,
    metrics,
    provenance,
    reading,
    schema,
    submission,
)
from common.answers import pair_keys, require_distinct_pairs
from common.arrays import BoolArray, IntArray
from common.errors import InputError
from common.evaluation import breakdown, entry_origin, joined_metadata, outcomes, score_files
from common.evaluation.doubt import Doubt, keep_first_of_each_mark
from common.evaluation.groupings import OF_STUDENTS
from common.evaluation.pair_facts import PairFacts, read_facts
from common.evaluation.phases import choose_phase, name_older
from common.evaluation.record import Evaluation
from common.metrics import ProbabilityScores, Score
from common.origin import Origin
from common.probabilities import read_probabilities
from common.schema import Column
from common.tasks import LOCAL, Task

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Matched:
    """A submission brought together with the true answers."""

    task: Task
    # Where the true answers come from: "local" for the split on this computer, "public" or
    # "private" for a phase of the challenge, "own" for a file of the user's.
    phase: str
    submission: Path
    # The file of the true answers.
    reference: Path
    # The column that is predicted, with its valid values. In task 2, the valid values are the
    # options from 1 to `column.high`, which is the largest number of options of any question.
    column: Column
    # A row for each pair, in the order of the true answers: UserId, QuestionId, truth and
    # predicted.
    pairs: pd.DataFrame
    # A sentence about the rows of the submission that are not scored; "" if all are scored.
    not_scored: str = ""


# ---- Match ---------------------------------------------------------------------------------------


def match(task: Task, submission_path: Path, reference_path: Path, phase: str = LOCAL) -> Matched:
    """Check a submission, CSV or zip, and match its predictions with the true answers.

    A submission may hold extra rows: predictions for pairs without a true answer in
    `reference_path`. An upload to the challenge, for example, holds the pairs of both phases of the
    challenge. If `phase` is one of these two phases, the extra rows must belong to the other phase;
    any further extra row raises `InputError`. For other values of `phase`, extra rows are ignored.
    """
    source = submission.submission_source(submission_path, task.number, reference_path)
    reference_source = reading.file_source(reference_path)
    column = answer_options.column_in(reference_source, task.column)
    reference = submission.read_pair_values(reference_source, column)
    predictions = submission.read_pair_values(source, column)
    # `rows` has the row of `predictions` for each pair of `reference`. `is_extra` says which rows
    # of `predictions` hold a pair that is not in `reference`.
    rows, is_extra = submission.find_pairs(source.name, predictions, reference, reference_path)
    pairs = reference.rename(columns={column.name: "truth"})
    pairs["predicted"] = predictions[column.name].to_numpy()[rows]
    # A sentence for the user about the extra rows.
    not_scored = ""
    if phase in layout.PHASES:
        (other_phase,) = (other for other in layout.PHASES if other != phase)
        other_path = reference_path.with_name(task.answers_name(other_phase))
        not_scored = _check_other_phase(source, predictions, is_extra, reference_path, other_path)
    elif is_extra.any():
        extra = submission.describe_extra(source, predictions, is_extra, reference_path)
        not_scored = f"{extra}: ignored"
    return Matched(task, phase, submission_path, reference_path, column, pairs, not_scored)


def _check_other_phase(
    source: reading.Source,
    predictions: pd.DataFrame,
    is_extra: BoolArray,
    reference_path: Path,
    other_path: Path,
) -> str:
    """Return a sentence for the user about the rows of the other phase, which are not scored.

    The challenge has two phases. A submission may hold the pairs of both, of which one is scored.
    Raises `InputError` if an extra row belongs to neither phase.

    Parameters
    ----------
    source
        The submission, for messages.
    predictions
        All rows of the submission.
    is_extra
        Whether each row of the submission is extra: a pair of student and question that is not in
        the true answers of the phase that is scored.
    reference_path
        The true answers of the phase that is scored.
    other_path
        The true answers of the other phase. This file may be missing if no row is extra.
    """
    n_extra = int(is_extra.sum())
    not_scored = f"{n_extra:,} rows of the other phase ignored"
    if n_extra == 0 and not other_path.is_file():
        # Without extra rows, the file of the other phase is not needed.
        return not_scored
    other_source = reading.file_source(other_path)
    other = reading.read_table(other_source, (schema.USER_ID, schema.QUESTION_ID))
    require_distinct_pairs(other_source, other)
    keys = pair_keys(predictions["UserId"], predictions["QuestionId"])
    other_keys = pair_keys(other["UserId"], other["QuestionId"])
    is_unknown = is_extra & ~pd.Series(keys).isin(other_keys).to_numpy()
    if is_unknown.any():
        both_files = f"{reference_path} or {other_path.name}"
        fault = submission.describe_extra(source, predictions, is_unknown, both_files)
        raise InputError(f"{source.name}: {fault}")
    # All extra rows are pairs of the other phase, and each pair is in the submission only once.
    n_missing = len(other) - n_extra
    if n_missing:
        not_scored += (
            f"; {n_missing:,} of its {len(other):,} pairs are missing, expected in an upload"
        )
    return not_scored


# ---- Score ---------------------------------------------------------------------------------------


def score(matched: Matched) -> Score:
    """Return the accuracy, with a standard error that counts each student as one cluster."""
    pairs = matched.pairs
    return metrics.accuracy(
        pairs["truth"].to_numpy(), pairs["predicted"].to_numpy(), pairs["UserId"].to_numpy()
    )


def score_probabilities(matched: Matched, path: Path) -> ProbabilityScores:
    """Score the probabilities in the file at `path`, which belong to the matched submission."""
    task = matched.task
    probabilities = read_probabilities(path, task.number)
    entry_origin.require_same_run(path, probabilities.record, matched.submission)
    # A row for each scored pair. If a pair is missing, the error message names `matched.reference`,
    # the file that the pairs come from.
    probability = probabilities.at(matched.pairs, matched.reference)
    # The true and the predicted value of each pair, numbered from 0 like the columns of
    # `probability`.
    categories = matched.pairs[["truth", "predicted"]].to_numpy() - task.column.low
    truth, predicted = categories.T
    n_categories = int(categories.max()) + 1
    if n_categories > probability.shape[1]:
        raise InputError(
            f"{path}: holds probabilities of options 1 to {probability.shape[1]}, expected those "
            f"of options 1 to {n_categories}, which occur in {matched.reference} or the submission"
        )
    return metrics.score_probabilities(truth, probability, predicted)


# ---- Explain -------------------------------------------------------------------------------------


def explain(
    matched: Matched,
    score: Score,
    facts: PairFacts,
    probability_scores: ProbabilityScores | None = None,
) -> tuple[Evaluation, dict[str, Any]]:
    """Explain a score: return the `Evaluation` to be recorded, and what the score's page shows.

    The page's values are the fields of the template pairs.html, by name. A field is None if its
    value is not known. `facts` holds what is known about each pair, such as the prediction of the
    majority model and the groups of question and student.
    """
    task = matched.task
    truth = matched.pairs["truth"].to_numpy()
    predicted = matched.pairs["predicted"].to_numpy()
    confusion = metrics.confusion_matrix(truth, predicted, matched.column.values)
    pairs = matched.pairs.join(facts.pairs).assign(right=truth == predicted)
    if "majority" in pairs:
        pairs["majority_right"] = pairs["majority"] == truth
    # The accuracy of all answers together and its interval: put all answers into a single group,
    # since `accuracy_by` returns a row for each group. With few=0, no group has too few answers.
    pairs["all"] = pd.Categorical.from_codes(np.zeros(len(pairs), np.int8), pd.Index(["all"]))
    (total,) = breakdown.accuracy_by(pairs, "all", few=0).to_dict("records")

    # `confusion` has a row for each true value and a column for each predicted value. So after the
    # division of each row by its sum, the diagonal holds the share of right predictions for each
    # true value.
    share_right_by_value = np.diag(metrics.normalise_rows(confusion))
    top_of_page = [("Pairs scored", f"{score.n:,}")]
    if matched.not_scored:
        top_of_page.append(("Rows not scored", matched.not_scored))
    top_of_page.append(("Standard error", _describe_error(score, total)))
    evaluation = Evaluation(
        task=task.number,
        metric=task.metric_sentence,
        score=score,
        submission=matched.submission,
        reference=matched.reference,
        phase=matched.phase,
        parts=dict(zip(task.name_values(matched.column), share_right_by_value, strict=True)),
        facts=top_of_page,
        outcomes=outcomes.of_predictions(pairs),
    )
    page = _page_fields(
        matched,
        evaluation,
        pairs=pairs,
        total=total,
        confusion=confusion,
        facts=facts,
        probability_scores=probability_scores,
    )
    return evaluation, page


def _page_fields(
    matched: Matched,
    evaluation: Evaluation,
    pairs: pd.DataFrame,
    total: Mapping[Hashable, Any],
    confusion: IntArray,
    facts: PairFacts,
    probability_scores: ProbabilityScores | None,
) -> dict[str, Any]:
    """Return the fields of the template pairs.html.

    `pairs` is a table of the scored pairs, which the module `breakdown` describes. `total` holds
    the figures of all answers together: a row of the table that `breakdown.accuracy_by` returns.
    """
    task = matched.task
    best_possible = None
    if evaluation.origin is Origin.SIMULATED:
        # The true answers are in a folder of the data folder, such as data/test_input.
        data_dir = matched.reference.parent.parent
        best_possible = _find_best_possible(data_dir, task)
    calibration = ""
    if probability_scores is not None:
        calibration = score_files.calibration_html(probability_scores, task.event)
    # The page has a chart for each grouping of answers, such as by subject, and a table for each
    # grouping of students, such as by age.
    charts_of_groups = []
    for part in breakdown.break_down(pairs, facts.subjects):
        chart = charts.share_chart(part.groups, label=part.grouping.title)
        charts_of_groups.append((part.grouping, chart))
    tables_of_students = {}
    for grouping in OF_STUDENTS:
        if grouping.key in pairs:
            tables_of_students[grouping.title] = breakdown.accuracy_by(pairs, grouping.key)
    losses = breakdown.most_lost(pairs, facts.subjects)
    return {
        "comparison": _draw_comparison(evaluation.score, total, best_possible),
        "total": total,
        "majority": total.get("majority"),
        "has_best": best_possible is not None,
        "confusion": score_files.confusion_table(confusion, task.name_values(matched.column)),
        "calibration": calibration,
        "breakdowns": charts_of_groups,
        # The title of each table, the title of its first column, and its rows.
        "losses": [
            ("Questions", "QuestionId", losses.questions),
            ("Subjects", "Subject", losses.subjects),
        ],
        "of_students": tables_of_students,
        "left_out": facts.left_out,
        "few": breakdown.FEW,
    }


def _describe_error(score: Score, total: Mapping[Hashable, Any]) -> str:
    """Return the standard error and the interval of a score as text."""
    if score.error is None:
        return "not known: all answers are of one student"
    return (
        f"{score.error:.4f}, 95 % interval {total['low']:.4f} to {total['high']:.4f}: "
        f"{total['n_students']:,} students, whose own answers are not independent"
    )


def _draw_comparison(
    score: Score, total: Mapping[Hashable, Any], best_possible: float | None
) -> str:
    """Draw the score beside the accuracy of the majority model and the best possible accuracy.

    Each of the two accuracies is drawn only if it is known. The result is "" if neither is known.
    `total` holds the figures of all answers together: the ends of the score's interval and, if it
    is known, the accuracy of the majority model.
    """
    compared_with = {"majority": total.get("majority"), "best possible": best_possible}
    dots = [charts.Dot("this entry", score.value, (total["low"], total["high"]))]
    for name, value in compared_with.items():
        if value is not None:
            dots.append(charts.Dot(name, value, accent=False))
    has_comparison = len(dots) > 1
    if not has_comparison:
        return ""
    return charts.dot_chart(dots, label="The score and what to compare it with", digits=4)


def _find_best_possible(data_dir: Path, task: Task) -> float | None:
    """Return the accuracy that the best possible model is expected to reach on simulated answers.

    The accuracy is read from SIMULATED.json in the data folder. None if this file does not hold it.
    """
    marker = fingerprints.read_marker(data_dir) or {}
    try:
        best = marker["best_expected_accuracy"][task.data.tasks][task.best_possible_key]
    except (KeyError, TypeError):
        return None
    return float(best) if isinstance(best, float) and 0 <= best <= 1 else None


# ---- The whole of a local_evaluation.py ----------------------------------------------------------


@dataclass(frozen=True)
class _Files:
    """The files that an evaluation reads."""

    submission: Path
    # The file of the true answers.
    reference: Path
    # The file with probabilities of the predictions; None if there is none.
    probabilities: Path | None
    # The training answers of the data, or of the local split, that the true answers come from.
    train: Path
    # The folder of the metadata.
    metadata: Path


def evaluate(options: argparse.Namespace, task: Task) -> None:
    """Score the submission that the flags of task 1 or 2 name; print the score, write its page.

    The page and the printed lines also name the doubts: reasons why the score may be wrong.
    """
    phase = choose_phase(options, task)
    files = _find_files(options, task, phase)
    inputs = (files.reference, files.submission, files.probabilities)
    scored_phase = task.phase_of(phase, options.ref_data)
    score_files.remove_scores(options.output_dir, task.number, scored_phase, inputs)
    # Refuse true answers that have changed since their file was made.
    provenance.require_current([files.reference])
    doubts = _doubt_submission(files, task, scored_phase)

    started = time.perf_counter()
    matched = match(task, files.submission, files.reference, scored_phase)
    accuracy = score(matched)
    probability_scores = None
    if files.probabilities is not None:
        probability_scores = score_probabilities(matched, files.probabilities)
    facts = read_facts(
        matched.pairs,
        task,
        reference=files.reference,
        train=files.train,
        folder=files.metadata,
    )
    evaluation, page = explain(matched, accuracy, facts, probability_scores)
    seconds = time.perf_counter() - started

    time_taken = ("Time", f"{seconds:.1f} s")
    top_of_page = [*_describe_entry(files.submission), *evaluation.facts, time_taken]
    # The entry and the page may both use metadata that do not belong to the answers. Then there are
    # two doubts with the same `mark`, the name of the reason. Keep only the first doubt, which is
    # about the entry.
    doubts = keep_first_of_each_mark([*doubts, *_doubt_metadata(files)])
    evaluation = replace(evaluation, facts=top_of_page, doubts=doubts)
    lines = _lines(matched, accuracy, page, probability_scores, facts)
    # If there is an older submission too, name it: the user may have meant to score that one.
    lines += name_older(options, task, files.submission)
    score_files.publish(options.output_dir, evaluation, lines, template="pairs.html", **page)


def _doubt_submission(files: _Files, task: Task, scored_phase: str) -> list[Doubt]:
    """Return the reasons to doubt the score of a submission that follow from how it was made.

    Raises `InputError` if the submission was made from the answers that it is scored on.
    """
    # The training answers hold none of the true answers in two cases: in a phase of the challenge,
    # and if one run of the local split has written both files. Otherwise the training answers may
    # hold some of the answers that are scored.
    is_challenge_phase = scored_phase in layout.PHASES
    is_disjoint = is_challenge_phase or entry_origin.are_of_one_split(files.train, files.reference)
    return entry_origin.judge_submission(
        files.submission,
        [files.reference],
        task.template_names,
        train=files.train if is_disjoint else None,
    )


def _doubt_metadata(files: _Files) -> list[Doubt]:
    """Return a doubt if the page uses metadata that do not belong to the scored answers."""
    read = [path for path in provenance.RUN.sources if path.parent == files.metadata.absolute()]
    return joined_metadata.find_doubts(
        [files.reference], read, "the page's groups by them may mean nothing"
    )


def build_parser(doc: str | None, task: Task) -> argparse.ArgumentParser:
    """Return the parser of the script `local_evaluation.py` of task 1 or 2.

    `doc` is the script's docstring.
    """
    parser = cli.parser(doc)
    cli.add_optional_folder(parser, "--input_dir", "data/test_input")
    parser.add_argument(
        "--ref_data",
        metavar="FILE",
        help=f"the true answers, in --input_dir or in the current folder (default "
        f"{task.local_answers}); a file of another name counts as a test of your own",
    )
    cli.add_optional_folder(parser, "--submission_dir", "data/test_output")
    parser.add_argument(
        "--submit_data", metavar="FILE", help=f"CSV or zip (default {task.local_submission})"
    )
    cli.add_folder(parser, "--output_dir", layout.TEST_OUTPUT_DIR)
    parser.add_argument(
        "--phase",
        choices=layout.PHASES,
        help="score submissions/ against the released answers in data/test_data instead",
    )
    # AUC is defined for two outcomes, right and wrong, but not for options.
    auc = "" if task.needs_options else ", and AUC"
    parser.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="what a sample model wrote with its flag of that name: adds log loss, Brier score and "
        f"calibration{auc}",
    )
    return parser


def _find_files(options: argparse.Namespace, task: Task, phase: str) -> _Files:
    """Return the files that the flags name, or the defaults.

    `phase` is "local" for the local split, or a phase of the challenge: "public" or "private".
    """
    default_reference = task.answers_path(phase)
    default_submission = task.submission_path(phase)
    input_dir = options.input_dir or default_reference.parent
    submission_dir = options.submission_dir or default_submission.parent
    # For the local split, true answers and training answers lie in the same folder. The challenge's
    # true answers lie in data/test_data, and its training answers in data/train_data.
    train_dir = input_dir
    if phase in layout.PHASES:
        train_dir = input_dir.parent / layout.TRAIN_DIR.name
    return _Files(
        submission=submission_dir / (options.submit_data or default_submission.name),
        reference=cli.input_file(input_dir, options.ref_data or default_reference.name),
        probabilities=options.probabilities,
        train=train_dir / task.data.train,
        metadata=input_dir.parent / layout.METADATA_DIR.name,
    )


def _describe_entry(submission_path: Path) -> list[tuple[str, str]]:
    """Say how a submission was made, for the top of the page."""
    record = provenance.read(submission_path)
    if record is None:
        unknown = "not known: no record of the command that made it lies beside the submission"
        return [("Entry", unknown)]
    seed = "the script's default" if record.seed is None else str(record.seed)
    memory = "not known" if record.memory is None else f"{record.memory / 1e9:.2f} GB"
    return [
        ("Entry", record.model),
        ("Made by", record.command),
        ("Seed", seed),
        ("Fit and predict", f"{record.seconds:,.1f} s, memory {memory}"),
    ]


def _describe_score(score: Score, total: Mapping[Hashable, Any]) -> str:
    """Return the score as a line of text, with its standard error.

    With few students, a standard error says little. The line then has the 95 % interval instead.
    `total` is the row of all answers in `breakdown.accuracy_by`.
    """
    pairs = f"accuracy on {score.n:,} pairs"
    if score.error is None:
        return f"score {score.value:.4f} ({pairs} of one student)"
    if score.has_few_students:
        interval = f"95 % interval {total['low']:.4f} to {total['high']:.4f}"
        return f"score {score.value:.4f}, {interval} ({pairs} of {score.n_students} students)"
    return f"score {score.value:.4f} ± {score.error:.4f} (standard error; {pairs})"


def _lines(
    matched: Matched,
    score: Score,
    page: Mapping[str, Any],
    probability_scores: ProbabilityScores | None,
    facts: PairFacts,
) -> list[str]:
    """Return the lines to print about a score.

    They tell the score, the accuracy of the majority model, the scores of the probabilities, the
    parts of the page that are left out because a file is wrong, and the rows that are not scored.
    Facts that are not known are skipped. `page` holds the fields of the page's template, see
    `explain`.
    """
    lines = [_describe_score(score, page["total"])]
    majority = page["majority"]
    if majority is not None:
        lines.append(f"majority {majority:.4f}")
    if probability_scores is not None:
        lines += score_files.probability_lines(probability_scores)
    for part in facts.left_out:
        if part.is_fault:
            lines.append(f"left out: {part.what}: {part.why}")
    if matched.not_scored:
        lines.append(matched.not_scored)
    return lines
