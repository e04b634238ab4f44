"""Score predictions for (student, question) pairs, in tasks 1 and 2 alike."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from common import cli, io, layout, made, metrics, schema, submission
from common.answers import IntArray, pair_keys
from common.probabilities import read_probabilities
from common.schema import Column
from common.scores import outcomes, results, score_files, score_page
from common.scores.explain import (
    Beliefs,
    Explained,
    explain,
    find_best_possible,
    judge_beliefs,
    name_entry,
)
from common.scores.outcomes import Outcomes
from common.scores.pair_facts import PairFacts, Place, are_among, read_facts
from common.scores.results import Evaluation

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class PairScore:
    """The score of a submission.

    Attributes
    ----------
    accuracy
        Share of correct predictions, from 0 to 1.
    outside
        Rows of the submission that were not scored, in words; empty where there are none.
    counts
        Confusion matrix, truth in rows.
    reference
        The pairs scored, with the true values.
    predicted
        The predictions for them, in their order.
    """

    accuracy: float
    outside: str
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    reference: submission.PairValues
    predicted: IntArray

    @property
    def outcomes(self) -> Outcomes:
        """What was predicted right."""
        own = self.reference
        return outcomes.of_predictions(own.student, own.question, own.value, self.predicted)


def evaluate(doc: str | None, task: int) -> None:
    """Run the `local_evaluation.py` of task 1 or 2.

    Parameters
    ----------
    doc
        The script's docstring, its help.
    task
        1 or 2.
    """
    p = cli.parser(doc)
    p.add_argument("--input_dir", type=Path, metavar="DIR", help="default data/test_input")
    p.add_argument(
        "--ref_data", metavar="FILE", help=f"the true answers (default {layout.VALID_TASK_1_2})"
    )
    p.add_argument("--submission_dir", type=Path, metavar="DIR", help="default data/test_output")
    p.add_argument(
        "--submit_data",
        metavar="FILE",
        help=f"CSV or zip (default {layout.local_submission_name(task)})",
    )
    p.add_argument(
        "--output_dir",
        type=Path,
        metavar="DIR",
        default=layout.TEST_OUTPUT_DIR,
        help="default data/test_output",
    )
    p.add_argument(
        "--phase",
        choices=layout.PHASES,
        help="score submissions/ against the released answers in data/test_data instead",
    )
    p.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="what a sample model wrote with its flag of that name: adds log loss, Brier score and "
        "calibration" + ", and AUC" * (task == 1),
    )
    options = p.parse_args()
    if options.phase:
        input_dir, reference_name = layout.TEST_DIR, layout.test_answers_name(task, options.phase)
        submission_dir, submission_name = layout.SUBMISSION_DIR, layout.submission_name(task)
    else:
        input_dir, reference_name = layout.TEST_INPUT_DIR, layout.VALID_TASK_1_2
        submission_dir = layout.TEST_OUTPUT_DIR
        submission_name = layout.local_submission_name(task)
    input_dir = options.input_dir or input_dir
    reference_path = input_dir / (options.ref_data or reference_name)
    submission_path = (options.submission_dir or submission_dir) / (
        options.submit_data or submission_name
    )
    name = score_files.score_name(task, options.phase or results.LOCAL)

    made.require_current([reference_path])
    score_files.remove_scores(options.output_dir, name)
    started = time.perf_counter()
    column = schema.PREDICTED_COLUMN[task]
    score = score_pairs(submission_path, reference_path, task, column, phase=options.phase)
    beliefs = None
    if options.probabilities is not None:
        probability = read_probabilities(options.probabilities, task).at(score.reference)
        truth, predicted = (v - column.low for v in (score.reference.value, score.predicted))
        beliefs = judge_beliefs(truth, predicted, probability)
    # The answers that belong to a local split lie beside it, those of a phase as in the challenge.
    train_dir = input_dir.parent / layout.TRAIN_DIR.name if options.phase else input_dir
    place = Place(
        reference=reference_path,
        train=train_dir / layout.TRAIN_TASK_1_2,
        metadata=input_dir.parent / layout.METADATA_DIR.name,
    )
    facts = read_facts(place, score.reference, task)
    evaluation, explained = describe(
        score,
        task,
        facts,
        submission_path=submission_path,
        reference_path=reference_path,
        phase=options.phase or results.LOCAL,
        beliefs=beliefs,
    )
    page_facts = [
        *name_entry(submission_path),
        *evaluation.facts,
        ("Time", f"{time.perf_counter() - started:.1f} s"),
    ]
    paths = score_files.write_scores(
        options.output_dir,
        name,
        replace(evaluation, facts=page_facts),
        error=explained.error,
        body=explained.body,
        style=score_page.STYLE,
    )
    results.append_result(options.output_dir, task, evaluation)
    beside = "" if explained.error is None else f" ± {explained.error:.4f}"
    print(f"score {score.accuracy:.4f}{beside} (accuracy on {len(score.predicted):,} pairs)")
    for line in explained.lines:
        print(line)
    if score.outside:
        print(score.outside)
    print(f"written: {', '.join(cli.show(path) for path in paths)}")


def describe(
    score: PairScore,
    task: int,
    facts: PairFacts,
    *,
    submission_path: Path,
    reference_path: Path,
    phase: str,
    beliefs: Beliefs | None = None,
) -> tuple[Evaluation, Explained]:
    """Put a score into words and pictures.

    Parameters
    ----------
    score
        From `score_pairs`.
    task
        1 or 2.
    facts
        What is known about the pairs.
    submission_path, reference_path
        What was scored, and against what; the reference lies in a folder of a tree like `data/`.
    phase
        ``local``, ``public`` or ``private``.
    beliefs
        What the submission's probabilities tell; None without such.
    """
    labels = ("wrong", "right") if task == 1 else tuple(f"option {o}" for o in schema.OPTIONS)
    evaluation = Evaluation(
        title=results.TASK_TITLES[task],
        metric="Accuracy: the share of pairs predicted correctly",
        score=score.accuracy,
        submission=submission_path,
        reference=reference_path,
        phase=phase,
        parts=dict(zip(labels, np.diag(metrics.normalise_rows(score.counts)), strict=True)),
        outcomes=score.outcomes,
    )
    best = find_best_possible(reference_path.parent.parent, task) if evaluation.simulated else None
    explained = explain(
        task,
        score.reference.value,
        score.predicted,
        facts,
        labels=labels,
        counts=score.counts,
        beliefs=beliefs,
        best=best,
    )
    shown = [("Pairs scored", f"{len(score.predicted):,}")]
    if score.outside:
        shown.append(("Rows not scored", score.outside))
    return replace(evaluation, facts=[*shown, *explained.facts]), explained


def score_pairs(
    submission_path: Path,
    reference_path: Path,
    task: int,
    column: Column,
    *,
    phase: str | None = None,
) -> PairScore:
    """Check a submission against the true answers and score it.

    Parameters
    ----------
    submission_path
        CSV, or a zip that holds it.
    reference_path
        CSV with UserId, QuestionId and the true values.
    task
        1 or 2.
    column
        The column predicted.
    phase
        ``public`` or ``private``: the other rows must be of the other phase, whose answers lie
        beside the reference. None: other rows may be there, such as the rest of the template.

    Raises
    ------
    InputError
        If the submission is not complete and valid; there is no score then.
    """
    source = submission.submission_source(
        submission_path, layout.submission_name(task), reference_path
    )
    reference = submission.read_pair_values(io.file_source(reference_path), column)
    predictions = submission.read_pair_values(source, column)
    rows, extra = submission.find_pairs(predictions, reference)
    if phase is not None:
        (other_phase,) = (name for name in layout.PHASES if name != phase)
        other_path = reference_path.with_name(layout.test_answers_name(task, other_phase))
        outside = _count_other_phase(predictions, extra, reference, other_path, column)
    elif extra.any():
        outside = submission.name_extra(predictions, extra, str(reference_path)) + ": ignored"
    else:
        outside = ""
    predicted = predictions.value[rows]
    categories = tuple(range(column.low, column.high + 1))
    return PairScore(
        accuracy=metrics.accuracy(reference.value, predicted),
        reference=reference,
        predicted=predicted,
        outside=outside,
        counts=metrics.confusion_matrix(reference.value, predicted, categories),
    )


def _count_other_phase(
    predictions: submission.Pairs,
    extra: npt.NDArray[np.bool_],
    reference: submission.Pairs,
    other_path: Path,
    column: Column,
) -> str:
    """Describe how many rows are of the other phase, and how many of those are missing.

    Raises
    ------
    InputError
        If a row is of neither phase.
    """
    n_found = int(extra.sum())
    found = f"{n_found:,} rows of the other phase ignored"
    if not n_found and not other_path.is_file():
        return found
    other = submission.read_pair_values(io.file_source(other_path), column)
    wanted = pair_keys(other.student, other.question)
    unknown = extra.copy()
    unknown[extra] = ~are_among(
        pair_keys(predictions.student[extra], predictions.question[extra]), wanted
    )
    submission.require_no_extra(predictions, unknown, f"{reference.name} or {other_path.name}")
    n_missing = len(wanted) - n_found
    if n_missing:
        found += f"; {n_missing:,} of its {len(wanted):,} pairs are missing, expected in an upload"
    return found
