"""Files and metric of the science exam: questions with five options, up to three guesses each."""

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
TRAIN, TEST, SAMPLE = "train.csv", "test.csv", "sample_submission.csv"
N_FOLDS = 10

# What guessing at random scores: a chance of 1/5 each for 1, 1/2 and 1/3 of a point.
RANDOM_SCORE = sum(1 / place for place in range(1, N_GUESSES + 1)) / len(LABELS)


def read_questions(path: Path, *, answers: bool) -> pd.DataFrame:
    """Read and check a file of questions: the columns id, prompt, A to E and, if wanted, answer."""
    names = ("id", "prompt", *LABELS, *(["answer"] if answers else []))
    source = reading.file_source(path)
    questions = reading.read_table(source, [Column(name, TEXT) for name in names])
    require_distinct(source, "id", questions["id"].to_numpy(object))
    if answers:
        wrong = questions["answer"][~questions["answer"].isin(LABELS)]
        faults = {row: f"is {quote(answer)}" for row, answer in wrong.items()}
        challenge.report_cells(source, "answer", faults, f"one of {', '.join(LABELS)}", stop)
    return questions


def texts_of(questions: pd.DataFrame) -> list[str]:
    """Return the texts of all options, those of the first question first."""
    return [str(text) for text in questions[[*LABELS]].to_numpy().ravel()]


def shared_words(questions: pd.DataFrame) -> FloatArray:
    """Count the words that every option shares with its question, shape (questions, 5)."""
    words = questions[["prompt", *LABELS]].map(lambda text: {*re.findall(r"\w+", text.lower())})
    return np.array([[float(len(prompt & own)) for own in rest] for prompt, *rest in words.values])


def model_parser(doc: str | None, *, learns: bool = True) -> argparse.ArgumentParser:
    """Return the parser of a sample model, which may learn from the training questions."""
    parser = challenge.model_parser(doc, __file__, train_data=TRAIN, test_data=TEST)
    if learns:
        cli.add_number(parser, "--seed", 0, "of the folds without --local")
    return parser


def read_asked(options: argparse.Namespace) -> pd.DataFrame:
    """Read the questions to predict, without their answers."""
    name = options.train_data if options.local else options.test_data
    return read_questions(options.input_dir / name, answers=False)


def run_model(options: argparse.Namespace, score: Callable[[pd.DataFrame], FloatArray]) -> None:
    """Write the options that a sample model scores highest; the model does not learn."""
    questions = read_asked(options)
    write_predictions(options, questions, score(questions))


def read_train(
    options: argparse.Namespace, asked: pd.DataFrame
) -> tuple[pd.DataFrame, list[tuple[BoolArray, BoolArray]]]:
    """Read the training questions, and divide them so that no question teaches its own answer:
    for every fit, return which of them to learn from, and which of those asked for to predict.
    Equal prompts are in one fold; what is not among the training questions is learned from all.
    """
    train = read_questions(options.input_dir / options.train_data, answers=True)
    fold = challenge.read_folds(options, train["id"].tolist())
    if fold is None:
        group, prompts = train["prompt"].factorize()
        fold = splits.assign_folds(group, min(N_FOLDS, len(prompts)), options.seed)
    fold_of = dict(zip(train["prompt"], fold.tolist(), strict=True))
    asked_fold = asked["prompt"].map(fold_of).fillna(-1).to_numpy(int)
    return train, [(fold != number, asked_fold == number) for number in np.unique(asked_fold)]


def write_predictions(
    options: argparse.Namespace, questions: pd.DataFrame, scores: FloatArray
) -> None:
    """Write the three best labels by scores, (questions, 5), of equal ones the earlier first."""
    if scores.shape != (len(questions), len(LABELS)) or np.isnan(scores).any():
        raise InputError(
            f"{options.output_file}: scores have shape {scores.shape} and {np.isnan(scores).sum()} "
            f"NaN, expected ({len(questions)}, {len(LABELS)}) and none"
        )
    best = np.argsort(-scores, axis=1, kind="stable")[:, :N_GUESSES]
    prediction = [" ".join(row) for row in np.array(LABELS)[best]]
    challenge.write_submission(options, {"id": questions["id"], "prediction": prediction})


def read_predictions(path: Path, questions: pd.DataFrame, report: Report = stop) -> list[list[str]]:
    """Read and check a submission: the labels guessed for each question, possibly none."""

    def parse(text: str) -> list[str]:
        return [LABELS[LABELS.index(label)] for label in text.split()]

    expected = f"up to {N_GUESSES} of {', '.join(LABELS)}, separated by spaces"
    places = path, "prediction", questions["id"].tolist(), "the questions"
    return challenge.read_predictions(*places, parse, expected, report, may_be_empty=True)


def count_odd(predicted: Sequence[Sequence[str]]) -> dict[str, int]:
    """Count the predictions that are valid and yet unusual, by what is said of them."""
    n_labels = np.array([len(guesses) for guesses in predicted])
    too_many = f"hold more than {N_GUESSES} labels; only the first {N_GUESSES} count"
    odd = {too_many: n_labels > N_GUESSES, "hold no label and score 0": n_labels == 0}
    return {told: int(found.sum()) for told, found in odd.items() if found.any()}


def score_questions(questions: pd.DataFrame, predicted: Sequence[Sequence[str]]) -> FloatArray:
    """Return 1, 1/2, 1/3 or 0 by the right label's place, (questions,); repeats take up a place."""
    pairs = zip(questions["answer"], predicted, strict=True)
    places = [
        guesses.index(answer) if answer in guesses else N_GUESSES for answer, guesses in pairs
    ]
    return np.array([1 / (place + 1) if place < N_GUESSES else 0.0 for place in places])


def interval_95(points: FloatArray) -> tuple[float, float]:
    """Return a 95 % interval of the mean: 1.96 standard errors to either side, inside 0 to 1."""
    if len(points) < 2:  # Nothing to tell how much questions differ.
        return 0.0, 1.0
    mean, margin = points.mean(), 1.96 * points.std(ddof=1) / len(points) ** 0.5
    return max(float(mean - margin), 0.0), min(float(mean + margin), 1.0)
