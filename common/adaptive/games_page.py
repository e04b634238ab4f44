"""The page of a score of task 4: the numbers and facts about the games, and the page's contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common import charts, cli, metadata, metrics
from common.adaptive.game import N_ROUNDS, Reference
from common.adaptive.playing import Played
from common.adaptive.setting import Setting
from common.adaptive.weights import describe_origin
from common.arrays import FloatArray
from common.evaluation import score_files
from common.evaluation.record import Evaluation
from common.metrics import Score
from common.provenance import Provenance
from common.tasks import TASK_4

import numpy as np
import pandas as pd

# The words for the values 0 and 1 of IsCorrect.
OUTCOMES = np.array(TASK_4.value_names)
# Largest number of students whose questions the page shows.
_N_STUDENTS_SHOWN = 3
_CURVE_NAMES = ("entry's choice", "random choice")


def figures_of(
    setting: Setting,
    reference: Reference,
    targets: pd.DataFrame,
    played: Played,
    curves: FloatArray | str,
    seconds: float,
    training: Provenance | None,
) -> dict[str, Any]:
    """Return the numbers and facts about an entry's games that the page of its score shows.

    Parameters
    ----------
    setting, reference
        The entry with the files and limits of its games, and the students examined.
    targets
        From `list_targets`.
    played
        From `play_all`.
    curves
        From `measure_curves`.
    seconds
        How long the games took.
    training
        How the entry's weights were trained; None if it is not recorded.

    Returns
    -------
    dict
        All values can be written as JSON: on a server, the program that plays the games hands them
        to another program, which writes the page. The keys are `masks` (accuracy by mask),
        `confusion` (matrix), `curves` (means over the masks, or why there are none), `seconds`, and
        `facts` (pairs of name and value, as text).
    """
    truth = targets["truth"].to_numpy()
    predicted = targets["predicted"].to_numpy()
    rows_by_mask = targets.groupby("Mask", sort=False)
    figures: dict[str, Any] = {
        "masks": {
            mask: metrics.accuracy(rows["truth"].to_numpy(), rows["predicted"].to_numpy()).value
            for mask, rows in rows_by_mask
        },
        "confusion": metrics.confusion_matrix(truth, predicted, (0, 1)).tolist(),
        "curves": curves if isinstance(curves, str) else curves.mean(axis=0).tolist(),
        "seconds": seconds,
    }
    facts = _list_facts(setting, reference, played, len(truth), seconds, training)
    if len(figures["masks"]) > 1:
        facts.append(("Deviation over masks", deviation_over_masks(figures)))
    facts += [("Note", note) for note in list_notes(played)]
    return {**figures, "facts": facts}


def _list_facts(
    setting: Setting,
    reference: Reference,
    played: Played,
    n_targets: int,
    seconds: float,
    training: Provenance | None,
) -> list[tuple[str, str]]:
    """Return names and values of facts about the games, as the page shows them."""
    enforced = "" if played.memory_limited else " (not enforced: this system cannot)"
    memory = f"{setting.limits.memory / 2**30:g} GiB of memory{enforced}"
    return [
        ("Weights trained by", describe_origin(training)),
        ("Training file given", cli.show(setting.train) if setting.train else "none"),
        ("Students", f"{len(reference.student):,}"),
        ("Questions (columns)", f"{reference.is_correct.shape[1]:,}"),
        ("Targets scored", f"{n_targets:,}"),
        ("Rules", f"{setting.rules}"),
        ("Limits", f"{setting.limits.seconds:g} s for one mask, {memory}"),
        ("Isolation", played.isolation),
        ("Time", f"{seconds:.1f} s"),
    ]


def score_of(figures: Mapping[str, Any]) -> Score:
    """Return the score of an entry of task 4: the mean of its accuracies over the masks.

    A mask chooses the answers that the entry must predict. `figures` is the dict that `figures_of`
    returns. On a competition's server, the program that plays the games adds the keys
    `standard_error` and `n_students`. Without them, the score has no standard error.
    """
    accuracies = list(figures["masks"].values())
    # In task 4 the mean over the masks counts, not the best mask: `scores_best_part` is False.
    mean = metrics.combine_parts(accuracies, takes_best=TASK_4.scores_best_part)
    return Score(
        value=float(mean),
        error=figures.get("standard_error"),
        # The number of targets (answers to predict): the confusion matrix counts each of them once.
        n=int(np.sum(figures["confusion"])),
        n_students=figures.get("n_students"),
    )


def deviation_over_masks(figures: Mapping[str, Any]) -> str:
    """Return the standard deviation of the accuracy over the masks, as text."""
    return f"{np.std([*figures['masks'].values()], ddof=1):.4f}"


def list_notes(played: Played) -> list[str]:
    """Return a note for each method of the entry that has changed its arguments."""
    return [
        f"{method} changes {', '.join(sorted(names))}: it got a copy, so that has no effect"
        for method, names in played.changed.items()
    ]


def describe(
    setting: Setting,
    figures: Mapping[str, Any],
    phase: str,
    asked: pd.DataFrame | None = None,
    **more_fields: Any,
) -> tuple[Evaluation, dict[str, Any]]:
    """Return the evaluation for the record, and the fields of the template `games.html`.

    `figures` holds numbers and facts about the games, see `figures_of`. `asked` is the table of all
    questions asked, see `list_questions`. Without `asked`, the page shows no example games.
    `more_fields` are further fields of the `Evaluation`.
    """
    # The accuracy with each mask, by the mask's name. A mask says which answers are predicted.
    accuracies = figures["masks"]
    # The accuracies after 0, 1, 2, ... questions, for each of `_CURVE_NAMES` (the entry's choice of
    # questions, and a random choice); or a text that says why they are not known.
    curves = figures["curves"]
    evaluation = Evaluation(
        task=TASK_4.number,
        metric=TASK_4.metric_sentence,
        score=score_of(figures),
        submission=setting.submission,
        reference=setting.reference,
        phase=phase,
        rules=f"{setting.rules}",
        parts=accuracies,
        seconds=figures["seconds"],
        facts=figures["facts"],
        **more_fields,
    )
    confusion = np.array(figures["confusion"])
    return evaluation, {
        "masks": _draw_masks(accuracies, evaluation.score.value) if len(accuracies) > 1 else "",
        # A chart of `curves`; empty if `curves` is a text.
        "curve": "" if isinstance(curves, str) else _draw_curves(curves),
        "curves": curves,
        "curve_names": list(_CURVE_NAMES),
        "asked": {} if asked is None else _list_example_games(asked, setting.metadata_dir),
        "confusion": score_files.confusion_table(confusion, TASK_4.value_names),
        # A caller that has probabilities replaces this text by HTML.
        "calibration": "",
    }


def _draw_masks(accuracies: Mapping[str, float], mean: float) -> str:
    """Draw the accuracy with each mask, and the mean of the accuracies as a dashed line."""
    return charts.dot_chart(
        [charts.Dot(mask, accuracy) for mask, accuracy in accuracies.items()],
        label="Accuracy with each mask",
        digits=4,
        # `dot_chart` draws a dashed line at `chance`, which is usually what guessing reaches. Here
        # the line marks the mean.
        chance=mean,
        axis="accuracy, mean dashed",
    )


def _draw_curves(curves: list[list[float]]) -> str:
    """Draw the accuracy after each number of questions: a curve for each of `_CURVE_NAMES`."""
    steps = range(N_ROUNDS + 1)
    drawn = [
        charts.Curve(name, steps, accuracies, number)
        for number, (name, accuracies) in enumerate(zip(_CURVE_NAMES, curves, strict=True))
    ]
    return charts.curve_chart(drawn, label="Accuracy after each question", axis="questions asked")


def _list_example_games(asked: pd.DataFrame, metadata_dir: Path) -> dict[int, Any]:
    """Return the questions that a few students were asked, as examples for the page.

    Each mask is a game of its own, in which every student is asked anew. The page shows the game
    with the first mask. `asked` is the table that `list_questions` returns.

    The keys of the result are the UserIds of the few students, evenly spread over all students. The
    values are arrays of texts, with a row for each question asked, and columns for round, question,
    subject and answer.
    """
    first_mask = asked["Mask"].iloc[0]
    asked = asked[asked["Mask"] == first_mask]
    question_ids = np.arange(asked["QuestionId"].max() + 1)
    subjects = np.array(metadata.name_subjects(metadata_dir, question_ids))
    texts = asked.assign(
        Subject=subjects[asked["QuestionId"]],
        # IsCorrect is 0 or 1, which is the index of the outcome's name.
        Answer=OUTCOMES[asked["IsCorrect"]],
    ).astype(str)

    students = asked["UserId"].unique()
    positions = np.linspace(0, len(students) - 1, _N_STUDENTS_SHOWN).astype(int)
    games = {}
    # If there are fewer students than `_N_STUDENTS_SHOWN`, some positions are equal. `np.unique`
    # drops the repeats.
    for student in students[np.unique(positions)]:
        of_student = texts[asked["UserId"] == student]
        games[student] = of_student[["Round", "QuestionId", "Subject", "Answer"]].to_numpy()
    return games
