"""Files and metric of the science exam: five options a question, and up to three guesses at it."""

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
TRAIN_FILE = "train.csv"
TEST_FILE = "test.csv"
SAMPLE_SUBMISSION = "sample_submission.csv"
N_FOLDS = 10

# Expected score of random guesses. The right label is in each of the three places with probability
# 1/5, and gets 1 point in place 1, 1/2 in place 2 and 1/3 in place 3.
RANDOM_SCORE = sum(1 / rank for rank in range(1, N_GUESSES + 1)) / len(LABELS)
# A 95 % interval reaches this many standard errors to either side of the mean.
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
        challenge.report_faults(source, "answer", faults, f"one of {', '.join(LABELS)}", stop)
    return questions


def option_texts(questions: pd.DataFrame) -> list[str]:
    """Return the texts of all options: A to E of the first question, then of the second, ..."""
    return [str(text) for text in questions[list(LABELS)].to_numpy().ravel()]


def count_shared_words(questions: pd.DataFrame) -> FloatArray:
    """For each option, count the different words that it shares with its question.

    Returns
    -------
    ndarray of float64, shape (questions, 5)
    """
    words = questions[["prompt", *LABELS]].map(distinct_words)
    counts = []
    # Each row holds six sets of words.
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
        Whether the model learns from the training questions. If so, the parser has the flag
        ``--seed``.
    """
    parser = challenge.model_parser(doc, __file__, train_data=TRAIN_FILE, test_data=TEST_FILE)
    if learns:
        cli.add_number(parser, "--seed", 0, "seed of the folds that are made without --local")
    return parser


def read_questions_to_predict(options: argparse.Namespace) -> pd.DataFrame:
    """Read the questions to predict, without their answers; see `read_questions`."""
    # With --local, the training questions are predicted in folds.
    name = options.train_data if options.local else options.test_data
    return read_questions(options.input_dir / name, answers=False)


def run_fixed_model(
    options: argparse.Namespace, score: Callable[[pd.DataFrame], FloatArray]
) -> None:
    """Write the predictions of a sample model that does not learn.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`.
    score : callable
        Takes the questions, as `read_questions` returns them without answers, and returns the score
        of every option, shape (questions, 5). The options with the highest scores are guessed.
    """
    questions = read_questions_to_predict(options)
    write_predictions(options, questions, score(questions))


def plan_fits(
    options: argparse.Namespace, to_predict: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[BoolArray, BoolArray]]]:
    """Read the training questions, and plan which questions each fit learns from and predicts.

    No question is predicted by a model that has learned from its answer. Training questions are
    divided into folds, with equal prompts in the same fold. Questions that are not among the
    training questions are predicted by a model that learns from all training questions.

    Parameters
    ----------
    options : Namespace
        Flags of `model_parser`. With ``--local`` the folds are read from their file.
    to_predict : DataFrame
        Questions to predict.

    Returns
    -------
    train : DataFrame
        Training questions with their answers; see `read_questions`.
    fits : list of pairs of bool ndarrays
        For each fit, a mask of the rows of `train` to learn from, and a mask of the rows of
        `to_predict` to predict.
    """
    train = read_questions(options.input_dir / options.train_data, answers=True)
    fold = challenge.read_folds(options, train["id"].tolist())
    if fold is None:
        group, different_prompts = train["prompt"].factorize()
        fold = splits.assign_folds(group, min(N_FOLDS, len(different_prompts)), options.seed)
    fold_by_prompt = dict(zip(train["prompt"], fold.tolist(), strict=True))
    # Questions that are not among the training questions get fold -1. No training question is in
    # fold -1, so the fit for this fold learns from all training questions.
    predicted_fold = to_predict["prompt"].map(fold_by_prompt).fillna(-1).to_numpy(int)
    fits = []
    for test_fold in np.unique(predicted_fold):
        rows_to_learn_from = fold != test_fold
        rows_to_predict = predicted_fold == test_fold
        fits.append((rows_to_learn_from, rows_to_predict))
    return train, fits


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
        Score of every option. If scores are equal, the earlier label comes first.

    Raises
    ------
    InputError
        If `scores` has another shape or holds NaN.
    """
    if scores.shape != (len(questions), len(LABELS)) or np.isnan(scores).any():
        raise InputError(
            f"the model's scores for {options.output_file} have shape {scores.shape} and "
            f"{np.isnan(scores).sum()} NaN, expected shape ({len(questions)}, {len(LABELS)}) "
            "and no NaN"
        )
    # For each question, the positions in `LABELS` of the options to guess, the best option first.
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
        Labels guessed for each question, in the order of `questions`. The list of an empty cell is
        empty.
    """

    def parse(text: str) -> list[str]:
        labels = text.split()
        if not set(labels) <= set(LABELS):
            # `challenge.read_predictions` catches this error, and reports the text of the cell.
            raise ValueError
        return labels

    return challenge.read_predictions(
        path,
        "prediction",
        questions["id"].tolist(),
        source_of_ids="the questions",
        parse=parse,
        expected=f"up to {N_GUESSES} of {', '.join(LABELS)}, separated by spaces",
        report=report,
        may_be_empty=True,
    )


def count_unusual(predicted: Sequence[Sequence[str]]) -> dict[str, int]:
    """Count predictions that are valid but unusual.

    A key says what is unusual about some predictions, as the end of a sentence such as "3
    predictions hold no label and score 0". Its value is the number of these predictions.
    """
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
    """Return the points of each question: 1, 1/2 or 1/3 if the right label is in place 1, 2 or 3.

    The points are 0 if the right label is not among the first three.

    Parameters
    ----------
    questions : DataFrame
        Questions with their answers.
    predicted : sequence of sequences of str
        Labels guessed for each question. Repeated labels are not removed: each takes up a place.

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
    """Return a 95 % interval of the mean, cut to the range from 0 to 1.

    The interval is 1.96 standard errors to either side of the mean. Questions count as independent.
    """
    if len(points) < 2:
        # The spread cannot be estimated from one question.
        return 0.0, 1.0
    mean = points.mean()
    margin = NORMAL_95 * points.std(ddof=1) / len(points) ** 0.5
    return max(float(mean - margin), 0.0), min(float(mean + margin), 1.0)
