"""The page of task 4: how the accuracy grows with each question, and what was asked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from common import io, layout, metrics, schema, score_files
from common.adaptive_testing import N_ROUNDS, FloatArray, Game, Reference
from common.errors import InputError

# Of how many students the page shows the questions chosen.
_N_SHOWN = 3
# Steps that the axis of the curve may have.
_TICK_STEPS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Curves:
    """Accuracy after 0 to N_ROUNDS questions, shape (masks, N_ROUNDS + 1), by who chose them."""

    entry: FloatArray
    random: FloatArray


def describe_games(
    reference: Reference, games: Mapping[str, Game], curves: Curves | str, metadata_dir: Path
) -> str:
    """Show the curve of accuracies, some sequences of questions, and the confusion matrix.

    Parameters
    ----------
    reference
        The students.
    games
        One for each mask, by its name.
    curves
        Accuracies after each question, or why there are none.
    metadata_dir
        Folder that may hold the metadata of questions and subjects.

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
            heading,
            _sequences(reference, games, metadata_dir),
            score_files.confusion_table(np.asarray(counts), ("wrong", "right")),
        ]
    )


def _curve(curves: Curves | str) -> str:
    if isinstance(curves, str):
        return f"<p>No curve: {escape(curves)}.</p>"
    lines = {"chosen by the entry": curves.entry.mean(0), "at random": curves.random.mean(0)}
    rows = [
        [str(n), *(f"{values[n]:.4f}" for values in lines.values())] for n in range(N_ROUNDS + 1)
    ]
    caption = "Mean over the masks; the same entry predicts from both selections."
    table = score_files.table(["Questions", *lines], rows, caption=caption)
    return f"<figure>{_line_chart(lines)}</figure>\n{table}"


def _line_chart(lines: Mapping[str, FloatArray]) -> str:
    """Draw two lines of accuracies after 0, 1, … questions as SVG; the first stands out."""
    width, height, left, right, top, bottom = 640, 300, 60, 150, 15, 45
    low = min(float(values.min()) for values in lines.values())
    high = max(float(values.max()) for values in lines.values())
    step = next(step for step in _TICK_STEPS if (high - low) / step <= 6)
    low, high = step * np.floor(low / step), step * np.ceil(high / step + 1e-9)
    high = max(high, low + step)

    def x(number: float) -> float:
        return left + (width - left - right) * number / N_ROUNDS

    def y(value: float) -> float:
        return float(top + (height - top - bottom) * (high - value) / (high - low))

    parts = []
    for tick in np.arange(low, high + step / 2, step):
        parts.append(
            f'<line x1="{left}" x2="{x(N_ROUNDS):.1f}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" '
            'stroke="var(--line)"/>'
            f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.3f}</text>'
        )
    for number in range(N_ROUNDS + 1):
        parts.append(
            f'<text x="{x(number):.1f}" y="{height - bottom + 18}" text-anchor="middle">{number}'
            "</text>"
        )
    parts.append(
        f'<text x="{x(N_ROUNDS / 2):.1f}" y="{height - 6}" text-anchor="middle">'
        "questions asked</text>"
    )
    # Names stand at the ends of the lines, far enough apart to be read.
    label_y = [y(float(values[-1])) + 4 for values in lines.values()]
    upper, lower = np.argsort(label_y)
    label_y[lower] = max(label_y[lower], label_y[upper] + 16)
    styles = ('stroke="rgb(var(--accent))" stroke-width="3"', 'stroke="currentColor" opacity=".6"')
    for (name, values), style, text_y in zip(lines.items(), styles, label_y, strict=True):
        points = " ".join(f"{x(n):.1f},{y(float(value)):.1f}" for n, value in enumerate(values))
        parts.append(
            f'<polyline points="{points}" fill="none" {style}/>'
            f'<text x="{x(N_ROUNDS) + 8:.1f}" y="{text_y:.1f}">{escape(name)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" font-size="13" fill="currentColor" '
        f'aria-label="Accuracy after each question">{"".join(parts)}</svg>'
    )


def _sequences(reference: Reference, games: Mapping[str, Game], metadata_dir: Path) -> str:
    mask, game = next(iter(games.items()))
    subjects = read_subjects(metadata_dir)
    parts = [f"<h2>Questions chosen for some students ({escape(mask)})</h2>"]
    n_students = len(reference.student)
    for row in np.unique(np.linspace(0, n_students - 1, _N_SHOWN).astype(int)):
        rows = []
        for number, question in enumerate(game.chosen[row], start=1):
            outcome = "right" if reference.is_correct[row, question] else "wrong"
            rows.append([str(number), str(question), subjects.get(int(question), ""), outcome])
        parts.append(
            score_files.table(
                ["Round", "QuestionId", "Subject", "Answer"],
                rows,
                css_class="facts",
                caption=f"UserId {reference.student[row]}",
            )
        )
    return "\n".join(parts)


def read_subjects(metadata_dir: Path) -> dict[int, str]:
    """Read the most specific subjects of every question, by QuestionId; none without metadata.

    Raises
    ------
    InputError
        If a value is wrong, or a question names a subject that there is not.
    """
    questions_path = metadata_dir / layout.QUESTION_METADATA_TASK_3_4
    subjects_path = metadata_dir / layout.SUBJECT_METADATA
    if not questions_path.is_file() or not subjects_path.is_file():
        return {}
    subjects = io.read_columns(
        subjects_path, [schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.LEVEL]
    )
    level = dict(zip(subjects["SubjectId"].tolist(), subjects["Level"].tolist(), strict=True))
    name = dict(zip(subjects["SubjectId"].tolist(), subjects["Name"], strict=True))
    questions = io.read_columns(questions_path, [schema.QUESTION_ID, schema.SUBJECT_LIST])
    result = {}
    for row, (question, text) in enumerate(
        zip(questions["QuestionId"].tolist(), questions["SubjectId"], strict=True), start=2
    ):
        try:
            ids = json.loads(text)
            deepest = max(level[subject] for subject in ids)
            result[question] = ", ".join(name[i] for i in ids if level[i] == deepest)
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f"{questions_path}: row {row}: column 'SubjectId' is '{text}', expected a list of "
                f"SubjectIds of {subjects_path.name} such as [3, 71]"
            ) from None
    return result
