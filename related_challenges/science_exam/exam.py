"""Files and metric of the science exam: questions with five options, up to three guesses each."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import challenge, folds, io
from common.errors import InputError, Report, quote, stop
from common.schema import TEXT, Column

import numpy as np
import numpy.typing as npt
import pandas as pd

LABELS = ("A", "B", "C", "D", "E")
N_GUESSES = 3
TRAIN, TEST, SAMPLE = "train.csv", "test.csv", "sample_submission.csv"
# Standard errors to either side of a 95 % interval.
_Z = 1.96

# What guessing at random scores: a chance of 1/5 each for 1, 1/2 and 1/3 of a point.
RANDOM_SCORE = sum(1 / place for place in range(1, N_GUESSES + 1)) / len(LABELS)

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]


def read_questions(path: Path, *, answers: bool) -> pd.DataFrame:
    """Read and check a file of questions: the columns id, prompt, A to E and, if wanted, answer."""
    names = ("id", "prompt", *LABELS, *(["answer"] if answers else []))
    questions = pd.DataFrame(io.read_columns(path, [Column(name, TEXT) for name in names]))
    ids = questions["id"].to_numpy()
    folds.match_ids(path, ids, list(dict.fromkeys(ids)), "the file itself")
    if answers:
        unknown = np.flatnonzero(~questions["answer"].isin(LABELS))
        if len(unknown):
            row = int(unknown[0])
            raise InputError(
                f"{path}: column 'answer': row {io.file_source(path).row_number(row)} is "
                f"{quote(questions['answer'][row])} ({len(unknown)} such rows), expected one of "
                f"{', '.join(LABELS)}"
            )
    return questions


def texts_of(questions: pd.DataFrame) -> list[str]:
    """Return the texts of all options, those of the first question first."""
    return [str(text) for text in questions[[*LABELS]].to_numpy().ravel()]


def right_options(questions: pd.DataFrame) -> IntArray:
    """Return the number of every question's right option, 0 to 4, shape (questions,)."""
    return questions["answer"].map(LABELS.index).to_numpy()


def assign_folds(
    train: pd.DataFrame, questions: pd.DataFrame, n_folds: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Assign questions to folds, so that none is predicted by a model that has seen its answer.

    Returns
    -------
    two arrays of int, shape (training questions,) and (questions,)
        Fold of each; equal prompts are in one fold. -1 for one that is not among the training
        questions: its model may learn from all.
    """
    group, prompts = pd.factorize(train["prompt"])
    fold = folds.assign_folds(group, min(n_folds, len(prompts)), seed)
    fold_of = dict(zip(train["prompt"], fold.tolist(), strict=True))
    return fold, questions["prompt"].map(fold_of).fillna(-1).to_numpy(int)


def words(text: str) -> set[str]:
    """Return the set of words of a text."""
    return set(re.findall(r"\w+", text.lower()))


def shared_words(questions: pd.DataFrame) -> FloatArray:
    """Count the words that every option shares with its question, shape (questions, 5)."""
    return np.array(
        [
            [float(len(words(text) & words(prompt))) for text in texts]
            for prompt, *texts in questions[["prompt", *LABELS]].to_numpy()
        ]
    )


def write_predictions(path: Path, questions: pd.DataFrame, scores: FloatArray) -> None:
    """Write a submission: for every question the three labels with the highest scores.

    Scores have the shape (questions, 5); of equal ones the earlier label comes first.
    """
    if scores.shape != (len(questions), len(LABELS)) or np.isnan(scores).any():
        raise InputError(
            f"{path}: scores have shape {scores.shape} and {int(np.isnan(scores).sum())} NaN, "
            f"expected ({len(questions)}, {len(LABELS)}) and none"
        )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :N_GUESSES]
    prediction = [" ".join(LABELS[option] for option in row) for row in best]
    columns = {"id": questions["id"], "prediction": prediction}
    challenge.write_submission(
        path, {name: np.array(values, object) for name, values in columns.items()}
    )


def read_predictions(path: Path, questions: pd.DataFrame, report: Report = stop) -> list[list[str]]:
    """Read and check a submission: the labels guessed for each question."""
    data = io.read_columns(path, (folds.ID, Column("prediction", TEXT)), report)
    rows = folds.match_ids(path, data["id"], list(questions["id"]), "the questions", report)
    # An empty cell has been reported already.
    texts = [text or "" for text in data["prediction"]]
    wrong = [row for row, text in enumerate(texts) if not set(text.split()) <= set(LABELS)]
    if wrong:
        source = io.file_source(path)
        found = [
            f"row {source.row_number(row)} is {quote(texts[row])}" for row in wrong[: io.SHOWN]
        ]
        more = f" and {len(wrong) - io.SHOWN} more rows" if len(wrong) > io.SHOWN else ""
        report(
            f"{path}: column 'prediction': {'; '.join(found)}{more}, expected up to {N_GUESSES} of "
            f"{', '.join(LABELS)}, separated by spaces"
        )
    return [texts[row].split() for row in rows]


def average_precision(answer: str, predicted: Sequence[str]) -> float:
    """Score the guesses at one question: 1, 1/2 or 1/3 for the right one in first to third place.

    Only the first three guesses count, and the right label counts once. A wrong label that is
    repeated takes up a place each time.
    """
    guesses = list(predicted[:N_GUESSES])
    return 1 / (guesses.index(answer) + 1) if answer in guesses else 0.0


def score_questions(questions: pd.DataFrame, predicted: Sequence[Sequence[str]]) -> FloatArray:
    """Return the points of every question, shape (questions,); their mean is MAP@3."""
    pairs = zip(questions["answer"], predicted, strict=True)
    return np.array([average_precision(*pair) for pair in pairs])


def interval_95(points: FloatArray) -> tuple[float, float]:
    """Return a 95 % interval of the mean: 1.96 standard errors to either side, inside 0 to 1."""
    mean = float(points.mean())
    if len(points) < 2:  # Nothing to tell how much questions differ.
        return 0.0, 1.0
    margin = _Z * float(points.std(ddof=1)) / len(points) ** 0.5
    return max(mean - margin, 0.0), min(mean + margin, 1.0)
