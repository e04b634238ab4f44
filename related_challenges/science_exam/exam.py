"""Files and metric of the science exam: questions with five options, up to three guesses each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import challenge, folds, io
from common.errors import InputError, Report, quote, stop
from common.schema import TEXT, Column

import numpy as np
import numpy.typing as npt

LABELS = ("A", "B", "C", "D", "E")
N_GUESSES = 3
TRAIN, TEST, SAMPLE = "train.csv", "test.csv", "sample_submission.csv"
# Standard errors to either side of a 95 % interval.
_Z = 1.96

# What guessing at random scores: a chance of 1/5 each for 1, 1/2 and 1/3 of a point.
RANDOM_SCORE = sum(1 / place for place in range(1, N_GUESSES + 1)) / len(LABELS)

_ID = Column("id", TEXT)
_PROMPT = Column("prompt", TEXT)
_OPTIONS = tuple(Column(label, TEXT) for label in LABELS)
_ANSWER = Column("answer", TEXT)
_PREDICTION = Column("prediction", TEXT)

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ExamQuestions:
    """Multiple-choice questions, one of five options right.

    Attributes
    ----------
    ids
        Id of every question, as text.
    prompts
        The questions themselves.
    options
        For every question its five options, in the order of `LABELS`.
    answer
        Number of the right option, 0 to 4, shape (questions,); None if unknown.
    """

    ids: list[str]
    prompts: list[str]
    options: list[tuple[str, ...]]
    answer: npt.NDArray[np.int8] | None = None

    def __len__(self) -> int:
        """Count the questions."""
        return len(self.ids)


def read_questions(path: Path, *, answers: bool) -> ExamQuestions:
    """Read and check a file of questions.

    Parameters
    ----------
    path
        CSV with id, prompt, A to E and, if wanted, answer.
    answers
        Whether the right answers must be there; otherwise they are not read.

    Raises
    ------
    InputError
        If a column or a text is missing, an id appears twice, or an answer is not A to E.
    """
    columns = [_ID, _PROMPT, *_OPTIONS] + ([_ANSWER] if answers else [])
    data = io.read_columns(path, columns)
    ids = [str(value) for value in data["id"]]
    folds.match_ids(path, data["id"], list(dict.fromkeys(ids)), "the file itself")
    answer = None
    if answers:
        unknown = np.flatnonzero(~np.isin(data["answer"].astype(str), LABELS))
        if len(unknown):
            row = int(unknown[0])
            raise InputError(
                f"{path}: column 'answer': row {io.file_source(path).row_number(row)} is "
                f"{quote(data['answer'][row])} ({len(unknown)} such rows), expected one of "
                f"{', '.join(LABELS)}"
            )
        answer = np.array([LABELS.index(label) for label in data["answer"]], np.int8)
    options = list(zip(*(data[label] for label in LABELS), strict=True))
    return ExamQuestions(ids, list(data["prompt"]), options, answer)


def assign_folds(
    train: ExamQuestions, questions: ExamQuestions, n_folds: int, seed: int
) -> tuple[IntArray, IntArray]:
    """Assign questions to folds, so that none is predicted by a model that has seen its answer.

    Parameters
    ----------
    train
        What a model learns from: each fold's model from the others.
    questions
        What is to be predicted; one of these may be a training question.
    n_folds
        How many folds, if there are so many questions.
    seed
        Of the folds.

    Returns
    -------
    two arrays of int32, shape (training questions,) and (questions,)
        Fold of each; equal prompts are in one fold. -1 for one that is not among the training
        questions: its model may learn from all.
    """
    numbers = {prompt: number for number, prompt in enumerate(dict.fromkeys(train.prompts))}
    group = np.array([numbers[prompt] for prompt in train.prompts])
    fold = folds.assign_folds(group, min(n_folds, len(numbers)), seed)
    fold_of = dict(zip(train.prompts, fold.tolist(), strict=True))
    return fold, np.array([fold_of.get(prompt, -1) for prompt in questions.prompts], np.int32)


def words(text: str) -> set[str]:
    """Return the set of words of a text."""
    return set(re.findall(r"\w+", text.lower()))


def write_predictions(path: Path, questions: ExamQuestions, scores: FloatArray) -> None:
    """Write a submission: for every question the three labels with the highest scores.

    Parameters
    ----------
    path
        Where the CSV goes.
    questions
        What was predicted.
    scores
        Shape (questions, 5); the higher an option's score, the likelier it is right. Of equal
        scores the earlier label comes first.

    Raises
    ------
    InputError
        If a score is missing.
    """
    if scores.shape != (len(questions), len(LABELS)) or np.isnan(scores).any():
        raise InputError(
            f"{path}: scores have shape {scores.shape} and {int(np.isnan(scores).sum())} NaN, "
            f"expected ({len(questions)}, {len(LABELS)}) and none"
        )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :N_GUESSES]
    prediction = [" ".join(LABELS[option] for option in row) for row in best]
    challenge.write_submission(
        path, {"id": np.array(questions.ids, object), "prediction": np.array(prediction, object)}
    )


def read_predictions(path: Path, ids: Sequence[str], report: Report = stop) -> list[list[str]]:
    """Read and check a submission.

    Parameters
    ----------
    path
        CSV with id and prediction, labels separated by spaces.
    ids
        The questions, in the order wanted.
    report
        What to do with a fault.

    Returns
    -------
    list of list of str
        The labels predicted for each question, in order; perhaps more than three.

    Raises
    ------
    InputError
        If a question is missing, unknown or repeated, or a label is not A to E.
    """
    data = io.read_columns(path, (_ID, _PREDICTION), report)
    rows = folds.match_ids(path, data["id"], ids, "the questions", report)
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

    Parameters
    ----------
    answer
        The right label.
    predicted
        The labels guessed, best first.
    """
    guesses = list(predicted[:N_GUESSES])
    return 1 / (guesses.index(answer) + 1) if answer in guesses else 0.0


def interval_95(points: FloatArray) -> tuple[float, float]:
    """Return a 95 % interval of the mean: 1.96 standard errors to either side, inside 0 to 1.

    Parameters
    ----------
    points
        Score of each question, from 0 to 1, shape (questions,).
    """
    mean = float(points.mean())
    if len(points) < 2:  # Nothing to tell how much questions differ.
        return 0.0, 1.0
    margin = _Z * float(points.std(ddof=1)) / len(points) ** 0.5
    return max(mean - margin, 0.0), min(mean + margin, 1.0)


def mean_average_precision(answers: Sequence[str], predicted: Sequence[Sequence[str]]) -> float:
    """Average the scores of all questions: MAP@3, from 0 to 1."""
    return float(
        np.mean([average_precision(a, p) for a, p in zip(answers, predicted, strict=True)])
    )
