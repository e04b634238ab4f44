"""The page of task 4: accuracy with each mask and after each question, and what was asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

from common import charts, layout, metadata, metrics, pages
from common.adaptive.game import FloatArray, Game, Reference
from common.scores import score_files

import numpy as np

# Of how many students the page shows the questions chosen.
_N_SHOWN = 3


@dataclass(frozen=True)
class Curves:
    """Accuracy after 0 to N_ROUNDS questions, shape (masks, N_ROUNDS + 1), by who chose them."""

    entry: FloatArray
    random: FloatArray


def describe_games(
    reference: Reference,
    games: Mapping[str, Game],
    curves: Curves | str,
    metadata_dir: Path,
    *,
    with_answers: bool = True,
) -> str:
    """Return the accuracies, some sequences of questions, and the confusion matrix.

    Parameters
    ----------
    reference
        The students.
    games
        One for each mask, by its name.
    curves
        Accuracies after each question, or the reason why there are none.
    metadata_dir
        Folder that may hold the metadata of questions and subjects.
    with_answers
        Whether to show the answers to what some students were asked.

    Returns
    -------
    str
        HTML.
    """
    counts = sum(
        metrics.confusion_matrix(game.truth, game.prediction, (0, 1)) for game in games.values()
    )
    heading = f"<h2>Accuracy after each question</h2>\n{_curve(curves)}"
    return "\n".join(
        [
            *([_masks(games)] if len(games) > 1 else []),
            heading,
            _sequences(reference, games, metadata_dir, with_answers),
            score_files.confusion_table(np.asarray(counts), ("wrong", "right")),
        ]
    )


def _masks(games: Mapping[str, Game]) -> str:
    accuracies = {mask: game.accuracy for mask, game in games.items()}
    chart = charts.dot_chart(
        [charts.Dot(mask, accuracy) for mask, accuracy in accuracies.items()],
        label="Accuracy with each mask",
        digits=4,
        chance=float(np.mean(list(accuracies.values()))),
        axis="accuracy, mean dashed",
    )
    return (
        f"<h2>Accuracy with each mask</h2>\n<figure>{chart}</figure>\n<p>A mask says which answers "
        "of the same students are hidden: how far the dots lie apart shows how much the score "
        "depends on that, not how it would change with other students.</p>"
    )


def _curve(curves: Curves | str) -> str:
    if isinstance(curves, str):
        return f"<p>No curve: {escape(curves)}.</p>"
    entry, at_random = curves.entry.mean(axis=0).tolist(), curves.random.mean(axis=0).tolist()
    names = ("entry's choice", "random choice")
    chart = charts.line_chart(
        names[0],
        entry,
        names[1],
        at_random,
        label="Accuracy after each question",
        axis="questions asked",
    )
    rows = [
        [str(number), f"{own:.4f}", f"{random:.4f}"]
        for number, (own, random) in enumerate(zip(entry, at_random, strict=True))
    ]
    caption = "Mean over the masks; the same entry predicts from both selections."
    table = pages.table(["Questions", *names], rows, caption=caption)
    return f"<figure>{chart}</figure>\n{table}"


def _sequences(
    reference: Reference, games: Mapping[str, Game], metadata_dir: Path, with_answers: bool
) -> str:
    mask, game = next(iter(games.items()))
    metadata_paths = (
        metadata_dir / layout.QUESTION_METADATA_TASK_3_4,
        metadata_dir / layout.SUBJECT_METADATA,
    )
    known = all(path.is_file() for path in metadata_paths)
    n_students, n_questions = reference.is_correct.shape
    subjects = [""] * n_questions
    if known:
        subjects = metadata.name_subjects(*metadata_paths, np.arange(n_questions))
    parts = [f"<h2>Questions chosen for some students ({escape(mask)})</h2>"]
    for row in np.unique(np.linspace(0, n_students - 1, _N_SHOWN).astype(int)):
        rows = []
        for number, question in enumerate(game.chosen[row], start=1):
            outcome = "right" if reference.is_correct[row, question] else "wrong"
            row_shown = [str(number), str(question), subjects[question], outcome]
            rows.append(row_shown if with_answers else row_shown[:-1])
        parts.append(
            pages.table(
                ["Round", "QuestionId", "Subject", *(["Answer"] if with_answers else [])],
                rows,
                css_class="rounds",
                caption=f"UserId {reference.student[row]}",
            )
        )
    return "\n".join(parts)
