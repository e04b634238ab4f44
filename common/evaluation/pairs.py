"""Score predictions for (student, question) pairs, in tasks 1 and 2 alike."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import charts, cli, io, layout, made, metrics, schema, submission
from common.answers import pair_keys, require_distinct_pairs
from common.errors import InputError
from common.evaluation import breakdown, outcomes, score_files
from common.evaluation.pair_facts import OF_STUDENTS, PairFacts, read_facts
from common.evaluation.record import Evaluation
from common.lazy import pd
from common.metrics import ProbabilityScores
from common.probabilities import read_probabilities
from common.tasks import LOCAL, TASKS

import numpy as np


def evaluate(doc: str | None, task: int) -> None:
    """Run the `local_evaluation.py` of task 1 or 2, whose docstring is the help."""
    about = TASKS[task]
    p = cli.parser(doc)
    cli.add_folder(p, "--input_dir", "data/test_input")
    told = f"the true answers (default {about.local_answers})"
    p.add_argument("--ref_data", metavar="FILE", help=told)
    cli.add_folder(p, "--submission_dir", "data/test_output")
    told = f"CSV or zip (default {about.local_submission})"
    p.add_argument("--submit_data", metavar="FILE", help=told)
    cli.add_folder(p, "--output_dir", layout.TEST_OUTPUT_DIR)
    told = "score submissions/ against the released answers in data/test_data instead"
    p.add_argument("--phase", choices=layout.PHASES, help=told)
    told = "what a sample model wrote with its flag of that name: adds log loss, Brier score and "
    told += "calibration, and AUC" if len(about.values) == 2 else "calibration"
    p.add_argument("--probabilities", type=Path, metavar="FILE", help=told)
    options = p.parse_args()
    local, upload = (about.submission_path(name) for name in (LOCAL, "public"))
    places = (options.input_dir, options.ref_data, options.submission_dir, options.submit_data)
    if not (options.phase or any(places) or io.is_there(local)) and upload.is_file():
        # A sample model has been run as in the challenge's guide, without --local.
        options.phase = "public"
        print(f"{cli.show(local)}: not there; scored: {cli.show(upload)}, --phase public")
    phase = options.phase or LOCAL
    reference, submitted = about.answers_path(phase), about.submission_path(phase)
    input_dir = options.input_dir or reference.parent
    reference = input_dir / (options.ref_data or reference.name)
    submission_dir = options.submission_dir or submitted.parent
    submitted = submission_dir / (options.submit_data or submitted.name)

    inputs = (reference, submitted, options.probabilities)
    score_files.remove_scores(options.output_dir, task, phase, inputs)
    made.require_current([reference])
    started = time.perf_counter()
    pairs, outside = score_pairs(submitted, reference, task, phase=options.phase)
    beliefs = None
    if options.probabilities is not None:
        probability = read_probabilities(options.probabilities, task).at(pairs, reference)
        values = (pairs[["truth", "predicted"]] - about.column.low).to_numpy()
        beliefs = metrics.score_probabilities(values[:, 0], probability, values[:, 1])
    # The answers that belong to a local split lie beside it, those of a phase as in the challenge.
    train_dir = input_dir.parent / layout.TRAIN_DIR.name if options.phase else input_dir
    train, folder = train_dir / about.data.train, input_dir.parent / layout.METADATA_DIR.name
    facts = read_facts(pairs, task, reference=reference, train=train, folder=folder)
    evaluation, page = explain(pairs, task, facts, submitted, reference, phase, outside, beliefs)
    seconds = time.perf_counter() - started
    shown = [*_name_entry(submitted), *evaluation.facts, ("Time", f"{seconds:.1f} s")]
    beside = "" if page["error"] is None else f" ± {page['error']:.4f}"
    lines = [f"score {evaluation.score:.4f}{beside} (accuracy on {len(pairs):,} pairs)"]
    if page["majority"] is not None:
        lines.append(f"majority {page['majority']:.4f}")
    if beliefs is not None:
        lines += score_files.probability_lines(beliefs)
    faults = (part for part in facts.left_out if part["is_fault"])
    lines += [f"left out: {part['what']}: {part['why']}" for part in faults]
    lines += [outside] if outside else []
    evaluation = replace(evaluation, facts=shown)
    score_files.publish(options.output_dir, evaluation, lines, template="pairs.html", **page)


def _name_entry(submission: Path) -> list[tuple[str, str]]:
    """Say how a submission was made, for the top of the page."""
    origin = made.read(submission)
    if origin is None:
        unknown = "not known: no record of the command that made it lies beside the submission"
        return [("Entry", unknown)]
    seed = "the script's default" if origin.seed is None else str(origin.seed)
    memory = "not known" if origin.memory is None else f"{origin.memory / 1e9:.2f} GB"
    return [
        ("Entry", origin.model),
        ("Made by", origin.command),
        ("Seed", seed),
        ("Fit and predict", f"{origin.seconds:,.1f} s, memory {memory}"),
    ]


# ---- The score -----------------------------------------------------------------------------------


def score_pairs(
    submission_path: Path, reference_path: Path, task: int, *, phase: str | None = None
) -> tuple[pd.DataFrame, str]:
    """Check a submission, CSV or zip; return UserId, QuestionId, truth and predicted of every pair,
    in the reference's order, and in words which rows, of a phase the other's, are not scored.
    """
    column = TASKS[task].column
    source = submission.submission_source(submission_path, task, reference_path)
    reference = submission.read_pair_values(io.file_source(reference_path), column)
    found = submission.read_pair_values(source, column)
    rows, extra = submission.find_pairs(source.name, found, reference, reference_path)
    pairs = reference.rename(columns={column.name: "truth"})
    pairs["predicted"] = found[column.name].to_numpy()[rows]
    if phase is None:
        outside = submission.name_extra(source, found, extra, reference_path) if extra.any() else ""
        return pairs, outside and f"{outside}: ignored"

    n_extra = int(extra.sum())
    outside = f"{n_extra:,} rows of the other phase ignored"
    (other_phase,) = (name for name in layout.PHASES if name != phase)
    other_path = reference_path.with_name(TASKS[task].answers_name(other_phase))
    if n_extra or other_path.is_file():
        other_source = io.file_source(other_path)
        other = io.read_table(other_source, (schema.USER_ID, schema.QUESTION_ID))
        require_distinct_pairs(other_source, other)
        keys, wanted = (pair_keys(part["UserId"], part["QuestionId"]) for part in (found, other))
        unknown = extra & ~pd.Series(keys).isin(wanted).to_numpy()
        if unknown.any():
            either = f"{reference_path} or {other_path.name}"
            fault = submission.name_extra(source, found, unknown, either)
            raise InputError(f"{source.name}: {fault}")
        if n_missing := len(other) - n_extra:
            outside += (
                f"; {n_missing:,} of its {len(other):,} pairs are missing, expected in an upload"
            )
    return pairs, outside


# ---- What explains it ----------------------------------------------------------------------------


def explain(
    pairs: pd.DataFrame,
    task: int,
    facts: PairFacts,
    submission_path: Path,
    reference_path: Path,
    phase: str,
    outside: str,
    beliefs: ProbabilityScores | None = None,
) -> tuple[Evaluation, dict[str, Any]]:
    """Return the evaluation of `score_pairs` and what pairs.html shows, None where not known."""
    truth, predicted = pairs["truth"].to_numpy(), pairs["predicted"].to_numpy()
    about = TASKS[task]
    labels = about.value_names
    counts = metrics.confusion_matrix(truth, predicted, about.values)

    pairs = pairs.join(facts.pairs).assign(right=truth == predicted)
    if "majority" in pairs:
        pairs["majority_right"] = pairs["majority"] == truth
    pairs["all"] = pd.Categorical.from_codes(np.zeros(len(pairs), np.int8), pd.Index(["all"]))
    (total,) = breakdown.accuracy_by(pairs, "all", few=0).to_dict("records")
    error, told = None, "not known: all answers are of one student"
    if total["n_students"] > 1:
        student = pairs["student_code"].to_numpy()
        error = metrics.clustered_standard_error(truth == predicted, student)
        told = (
            f"{error:.4f}, 95 % interval {total['low']:.4f} to {total['high']:.4f}: "
            f"{total['n_students']:,} students, whose own answers are not independent"
        )
    evaluation = Evaluation(
        task=task,
        metric=about.metric_sentence,
        score=metrics.accuracy(truth, predicted),
        submission=submission_path,
        reference=reference_path,
        phase=phase,
        parts=dict(zip(labels, np.diag(metrics.normalise_rows(counts)), strict=True)),
        facts=[
            ("Pairs scored", f"{len(predicted):,}"),
            *([("Rows not scored", outside)] if outside else []),
            ("Standard error", told),
        ],
        outcomes=outcomes.of_predictions(pairs),
    )
    best = _find_best_possible(reference_path.parent.parent, task) if evaluation.simulated else None
    compared = {"majority": total.get("majority"), "best possible": best}
    dots = [charts.Dot(name, v, accent=False) for name, v in compared.items() if v is not None]
    own = charts.Dot("this entry", evaluation.score, (total["low"], total["high"]))
    label = "The score and what to compare it with"
    by_question, by_subject = breakdown.most_lost(pairs, facts.subjects)
    page = {
        "error": error,
        "comparison": charts.dot_chart([own, *dots], label=label, digits=4) if dots else "",
        "majority": compared["majority"],
        "has_best": best is not None,
        "confusion": score_files.confusion_table(counts, labels),
        "calibration": score_files.calibration(beliefs, about.event) if beliefs else "",
        "breakdowns": [
            (title, note, charts.share_chart(groups, label=title))
            for title, note, groups in breakdown.break_down(pairs, facts.subjects)
        ],
        "losses": [("Questions", "QuestionId", by_question), ("Subjects", "Subject", by_subject)],
        "of_students": {
            title: breakdown.accuracy_by(pairs, title) for title in OF_STUDENTS if title in pairs
        },
        "left_out": facts.left_out,
        "few": breakdown.FEW,
    }
    return evaluation, page


def _find_best_possible(data_dir: Path, task: int) -> float | None:
    """Return the accuracy that no model exceeds on average, by the simulation's record."""
    about = TASKS[task]
    marker = made.read_marker(data_dir)
    try:
        best = (marker or {})["best_expected_accuracy"][about.data.tasks][about.best_possible_key]
    except (KeyError, TypeError):
        return None
    return float(best) if isinstance(best, float) and 0 <= best <= 1 else None
