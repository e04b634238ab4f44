"""Files and metric of the science exam: questions with five options, and up to three guesses."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from common import cli, reading, splits
from common.answers import require_distinct
from common.arrays import BoolArray, FloatArray
from common.errors import InputError, Report, quote, stop
from common.schema import TEXT, Column
from related_challenges import challenge

import numpy as np
import pandas as pd

LABELS = ("A", "B", "C", "D", "E")
N_GUESSES = 3
TRAIN = "train.csv"
TEST = "test.csv"
SAMPLE = "sample_submission.csv"
N_FOLDS = 10

# Expected score of random guesses: each of 1, 1/2 and 1/3 of a point has a chance of 1/5.
RANDOM_SCORE = sum(1 / rank for rank in range(1, N_GUESSES + 1)) / len(LABELS)
# Quantile of the normal distribution for a 95 % interval.
NORMAL_95 = 1.96


# ---- Questions -------------------------------------------------------------------------------


def read_questions(path: Path, *, answers: bool) -> pd.DataFrame:
    """Read and check a file of questions.

    Parameters
    ----------
    path : Path
        CSV file of questions.
    answers : bool
        Whether to read the column answer too.

    Returns
    -------
    DataFrame
        A row for each question, with the str columns id, prompt, A to E (the texts of the options)
        and, if `answers` is true, answer (one of `LABELS`).

    Raises
    ------
    InputError
        If the file is missing, a column is missing or a cell is faulty.
    """
    names = ["id", "prompt", *LABELS]
    if answers:
        names.append("answer")
    source = reading.file_source(path)
    questions = reading.read_table(source, [Column(name, TEXT) for name in names])
    require_distinct(source, "id", questions["id"].to_numpy(object))
    if answers:
        wrong = questions["answer"][~questions["answer"].isin(LABELS)]
        faults = {row: f"is {quote(answer)}" for row, answer in wrong.items()}
        challenge.report_cells(source, "answer", faults, f"one of {', '.join(LABELS)}", stop)
    return questions


def option_texts(questions: pd.DataFrame) -> list[str]:
    """Return the texts of all options: A to E of the first question, then of the second, ..."""
    return [str(text) for text in questions[list(LABELS)].to_numpy().ravel()]


def shared_words(questions: pd.DataFrame) -> FloatArray:
    """Count the different words that every option shares with its question.

    Returns
    -------
    ndarray of float64, shape (questions, 5)
    """
    words = questions[["prompt", *LABELS]].map(distinct_words)
    counts = []
    for prompt, *options in words.to_numpy():
        counts.append([float(len(prompt & option)) for option in options])
    return np.array(counts)


def distinct_words(text: str) -> set[str]:
    """Return the different lower-case words of a text."""
    return set(re.findall(r"\w+", text.lower()))


# ---- Models ----------------------------------------------------------------------------------


def model_parser(doc: str | None, *, learns: bool = True) -> argparse.ArgumentParser:
    """Make the parser of a sample model.

    Parameters
    ----------
    doc : str or None
        Docstring of the script.
    learns : bool
        Whether the model learns from the training questions; then it gets the flag ``--seed``.
    """
    parser = challenge.model_parser(doc, __file__, train_data=TRAIN, test_data=TEST)
    if learns:
        cli.add_number(parser, "--seed", 0, "of the folds without --local")
    return parser


def read_asked(options: argparse.Namespace) -> pd.DataFrame:
    """Read the questions to predict, without their answers; see `read_questions`."""
    name = options.train_data if options.local else options.test_data
    return read_questions(options.input_dir / name, answers=False)


def run_model(options: argparse.Namespace, score: Callable[[pd.DataFrame], FloatArray]) -> None:
    """Write the predictions of a sample model that does not learn.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    score : callable
        Takes the questions, as `read_questions` returns them without answers, and returns the score
        of every option, shape (questions, 5). The options with the highest scores are guessed.
    """
    questions = read_asked(options)
    write_predictions(options, questions, score(questions))


def read_train(
    options: argparse.Namespace, asked: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[BoolArray, BoolArray]]]:
    """Read the training questions, and say for every fit what to learn from and what to predict.

    No question is predicted by a model that has learned from its answer. Training questions are
    divided into folds, equal prompts into the same fold. Questions to predict that are not among
    the training questions are predicted by a model that learns from all of them.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`. With ``--local`` the folds are read from their file.
    asked : DataFrame
        Questions to predict.

    Returns
    -------
    train : DataFrame
        Training questions with their answers; see `read_questions`.
    splits : list of pairs of bool ndarrays
        For every fit, the rows of `train` to learn from and the rows of `asked` to predict.
    """
    train = read_questions(options.input_dir / options.train_data, answers=True)
    fold = challenge.read_folds(options, train["id"].tolist())
    if fold is None:
        group, prompts = train["prompt"].factorize()
        fold = splits.assign_folds(group, min(N_FOLDS, len(prompts)), options.seed)
    fold_by_prompt = dict(zip(train["prompt"], fold.tolist(), strict=True))
    # No training question is in fold -1, so that its model learns from all.
    asked_fold = asked["prompt"].map(fold_by_prompt).fillna(-1).to_numpy(int)
    return train, [(fold != number, asked_fold == number) for number in np.unique(asked_fold)]


def write_predictions(
    options: argparse.Namespace, questions: pd.DataFrame, scores: FloatArray
) -> None:
    """Write the three labels with the highest scores of every question as a submission.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    questions : DataFrame
        Questions to predict.
    scores : ndarray of float, shape (questions, 5)
        Score of every option. Of equal scores the earlier label comes first.

    Raises
    ------
    InputError
        If `scores` has another shape or holds NaN.
    """
    if scores.shape != (len(questions), len(LABELS)) or np.isnan(scores).any():
        raise InputError(
            f"{options.output_file}: scores have shape {scores.shape} and {np.isnan(scores).sum()} "
            f"NaN, expected ({len(questions)}, {len(LABELS)}) and none"
        )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :N_GUESSES]
    prediction = [" ".join(row) for row in np.array(LABELS)[best]]
    challenge.write_submission(options, {"id": questions["id"], "prediction": prediction})


# ---- Submissions and metric ------------------------------------------------------------------


def read_predictions(path: Path, questions: pd.DataFrame, report: Report = stop) -> list[list[str]]:
    """Read and check a submission.

    Parameters
    ----------
    path : Path
        The submission.
    questions : DataFrame
        Questions to predict.
    report : callable
        Called with the message about each fault; by default it raises `InputError`.

    Returns
    -------
    list of lists of str
        Labels guessed for each question, in the order of `questions`; a list may be empty.
    """

    def parse(text: str) -> list[str]:
        # `index` raises for an unknown label.
        return [LABELS[LABELS.index(label)] for label in text.split()]

    return challenge.read_predictions(
        path,
        "prediction",
        questions["id"].tolist(),
        "the questions",
        parse,
        f"up to {N_GUESSES} of {', '.join(LABELS)}, separated by spaces",
        report,
        may_be_empty=True,
    )


def count_unusual(predicted: Sequence[Sequence[str]]) -> dict[str, int]:
    """Count predictions that are valid but unusual, by a description that follows the count."""
    counts = {}
    n_too_long = sum(len(guesses) > N_GUESSES for guesses in predicted)
    if n_too_long:
        description = f"hold more than {N_GUESSES} labels; only the first {N_GUESSES} count"
        counts[description] = n_too_long
    n_empty = sum(len(guesses) == 0 for guesses in predicted)
    if n_empty:
        counts["hold no label and score 0"] = n_empty
    return counts


def score_questions(questions: pd.DataFrame, predicted: Sequence[Sequence[str]]) -> FloatArray:
    """Return the points of every question: 1, 1/2 or 1/3 by the rank of the right label, or 0.

    Parameters
    ----------
    questions : DataFrame
        Questions with their answers.
    predicted : sequence of sequences of str
        Labels guessed for each question. A wrong label that is repeated takes up a rank each time.

    Returns
    -------
    ndarray of float64, shape (questions,)
    """
    points = np.zeros(len(questions))
    pairs = zip(questions["answer"], predicted, strict=True)
    for row, (answer, guesses) in enumerate(pairs):
        counted = guesses[:N_GUESSES]
        if answer in counted:
            points[row] = 1 / (counted.index(answer) + 1)
    return points


def interval_95(points: FloatArray) -> tuple[float, float]:
    """Return a 95 % interval of the mean, cut to 0 to 1.

    The interval is 1.96 standard errors to either side of the mean, with questions as the units.
    """
    if len(points) < 2:  # One question does not show how much questions differ.
        return 0.0, 1.0
    mean = points.mean()
    margin = NORMAL_95 * points.std(ddof=1) / len(points) ** 0.5
    return max(float(mean - margin), 0.0), min(float(mean + margin), 1.0)
