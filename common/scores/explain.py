"""What the evaluations of tasks 1 and 2 tell beside the score, on the page and on the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import made, metrics
from common.answers import IntArray
from common.metrics import ProbabilityScores
from common.scores import pair_groups, score_files, score_page
from common.scores.breakdown import Scored, group_answers
from common.scores.pair_facts import PairFacts

import numpy as np
import numpy.typing as npt

# Keys of what the simulation's record says the best possible accuracies are.
_LIMITS = {1: "right_or_wrong", 2: "option"}


@dataclass(frozen=True)
class Beliefs:
    """What a file of probabilities tells.

    Attributes
    ----------
    scores
        Of the probabilities.
    n_other
        In how many pairs the submission does not predict the most probable value.
    """

    scores: ProbabilityScores
    n_other: int


@dataclass(frozen=True)
class Explained:
    """What an evaluation tells beside the score.

    Attributes
    ----------
    error
        Standard error of the score; None if there is a single student.
    facts
        (Name, value) pairs for the top of the page.
    lines
        Lines for the terminal.
    body
        The rest of the page, HTML.
    """

    error: float | None
    facts: list[tuple[str, str]]
    lines: list[str]
    body: str


def judge_beliefs(
    truth: IntArray, predicted: IntArray, probability: npt.NDArray[np.floating[Any]]
) -> Beliefs:
    """Score probabilities, and see how often the submission contradicts them.

    Parameters
    ----------
    truth, predicted
        Categories from 0, shape (pairs,).
    probability
        Of every category, shape (pairs, categories).
    """
    own = np.take_along_axis(probability, predicted[:, None].astype(np.intp), axis=1)[:, 0]
    n_other = int((own < probability.max(axis=1)).sum())
    return Beliefs(metrics.score_probabilities(truth, probability), n_other)


def describe_beliefs(beliefs: Beliefs) -> list[str]:
    """Return what probabilities tell, as lines for the terminal."""
    figures = score_page.probability_figures(beliefs.scores)
    lines = [", ".join(f"{name} {text}" for name, text in figures)]
    if beliefs.n_other:
        lines.append(f"{beliefs.n_other:,} predictions are not the most probable value")
    return lines


def explain(
    task: int,
    truth: IntArray,
    predicted: IntArray,
    facts: PairFacts,
    *,
    labels: Sequence[str],
    counts: npt.NDArray[np.int64],
    beliefs: Beliefs | None = None,
    best: float | None = None,
) -> Explained:
    """Explain a score.

    Parameters
    ----------
    task
        1 or 2.
    truth, predicted
        IsCorrect or AnswerValue of the pairs scored, shape (pairs,).
    facts
        What is known about them.
    labels
        Names of the values.
    counts
        Confusion matrix.
    beliefs
        What their probabilities tell; None without such.
    best
        The best possible accuracy; None where it is not known.
    """
    right = truth == predicted
    majority_right = None if facts.training is None else facts.training.majority == truth
    scored = Scored(facts.student, facts.question, right, majority_right)
    error = metrics.clustered_standard_error(right, facts.student)
    (total,) = group_answers(scored, np.zeros(len(right), np.int64), ["all"])
    low, high = total.interval
    n_students = len(facts.student_ids)
    rows = [
        (
            "Standard error",
            f"{error:.4f}, 95 % interval {low:.4f} to {high:.4f}: {n_students:,} students, whose "
            "own answers are not independent"
            if n_students > 1
            else "not known: all answers are of one student",
        )
    ]
    lines = [] if total.majority is None else [f"majority {total.majority:.4f}"]
    sections = [
        score_page.comparison(total, total.majority, best),
        score_files.confusion_table(counts, labels),
    ]
    if beliefs is not None:
        lines += describe_beliefs(beliefs)
        happens = "answered correctly" if task == 1 else "chosen"
        sections.append(score_page.calibration(beliefs.scores, beliefs.n_other, happens))
    sections += [
        score_page.breakdowns(pair_groups.break_down(scored, facts)),
        score_page.losses(
            pair_groups.lost_questions(scored, facts), pair_groups.lost_subjects(scored, facts)
        ),
        score_page.subgroups(pair_groups.subgroups(scored, facts)),
        score_page.left_out(facts.left_out),
    ]
    lines += [f"left out: {part.what}: {part.why}" for part in facts.left_out if part.is_fault]
    return Explained(error if n_students > 1 else None, rows, lines, "\n".join(sections))


def name_entry(submission: Path) -> list[tuple[str, str]]:
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


def find_best_possible(data_dir: Path, task: int) -> float | None:
    """Return the accuracy that no model exceeds on average, by the simulation's record."""
    marker = made.read_marker(data_dir)
    try:
        best = (marker or {})["best_expected_accuracy"]["1_2"][_LIMITS[task]]
    except (KeyError, TypeError):
        return None
    return float(best) if isinstance(best, float) and 0 <= best <= 1 else None
