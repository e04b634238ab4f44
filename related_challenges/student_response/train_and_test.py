"""What a sample model learns from and predicts: folds of one folder, or one folder and another."""

import argparse
from dataclasses import replace
from pathlib import Path

from common import challenge, cli, folds, layout
from common.errors import InputError, quote

import numpy as np
import pandas as pd
import responses
from responses import UNKNOWN, IntArray, Responses

Splits = list[tuple[folds.BoolArray, folds.BoolArray, IntArray]]
ANSWERS, QUESTIONS, DOMAINS = responses.SCENARIOS
# Of the most frequent label, to learn from: settings are chosen on five parts of them.
MIN_ANSWERS = 5


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model: what to learn from, and what to predict."""
    p = challenge.model_parser(doc, __file__)
    test_input = challenge.data_dir(__file__) / layout.TEST_INPUT_DIR.name
    cli.add_folder(p, "--submission_template_dir", test_input)
    cli.add_file(p, "--submission_template_file", layout.FOLDS)
    p.add_argument(
        "--test_dir",
        type=Path,
        metavar="DIR",
        help="predict these answers, or the test sets in there, instead of folds",
    )
    p.add_argument(
        "--train_dir", type=Path, metavar="DIR", help="with --test_dir: learn from these answers"
    )
    return p


def read(options: argparse.Namespace) -> tuple[Responses, Splits]:
    """Read what the flags name.

    Returns
    -------
    Responses
        All answers. Those of ``--test_dir`` come after those of ``--train_dir``, and their labels
        are not read; in folds every answer is predicted once, so that all labels are `UNKNOWN`.
    list of (array of bool, array of bool, array of int)
        For every fit: which answers to learn from, which to predict, and the labels' numbers,
        `UNKNOWN` for those that are not to be learned from.
    """
    if options.test_dir is None:
        if options.train_dir is not None:
            raise InputError("--train_dir needs --test_dir; folds are made of --input_dir")
        answers = responses.read_responses(options.input_dir)
        template = options.submission_template_dir / options.submission_template_file
        pairs = list(folds.splits(folds.read_folds(template, answers.ids)))
    else:
        train = responses.read_responses(options.train_dir or options.input_dir)
        test = responses.read_responses(options.test_dir, reads_labels=False)
        answers = join(train, test)
        is_train = np.arange(len(answers)) < len(train)
        pairs = [(is_train, ~is_train)]
    for learned, _ in pairs:
        counts = np.bincount(answers.label[learned])
        folder, name = options.train_dir or options.input_dir, answers.labels[counts.argmax()]
        if counts.max() == learned.sum():
            raise InputError(
                f"{folder}: all {learned.sum():,} answers to learn from are {quote(name)}, "
                "expected at least two labels"
            )
        if counts.max() < MIN_ANSWERS:
            raise InputError(
                f"{folder}: of {learned.sum():,} answers to learn from only {counts.max()} are "
                f"{quote(name)}, the most frequent label, expected at least {MIN_ANSWERS}"
            )
    splits = [
        (learned, asked, np.where(learned, answers.label, UNKNOWN)) for learned, asked in pairs
    ]
    if options.test_dir is None:
        answers = replace(answers, label=np.full(len(answers), UNKNOWN))
    return answers, splits


def join(train: Responses, test: Responses) -> Responses:
    """Put answers to predict after those to learn from; a question of both is one question.

    Questions are the same if module and id are; reference answers are then those of ``train``. What
    is no test of the training answers, by the scenario that it claims to be, is refused.
    """
    of_tests = train.questions["path"][train.questions["scenario"] != ""]
    if len(of_tests):
        raise InputError(f"{of_tests.iloc[0]}: is of a test set, expected files to learn from")
    place_of = dict(zip(train.ids, train.places, strict=True))
    for place, answer_id in zip(test.places, test.ids, strict=True):
        if answer_id in place_of:
            raise InputError(
                f"{place}: studentAnswer {quote(answer_id)} is to be learned from as well: "
                f"{place_of[answer_id]}, expected other answers"
            )
    modules = set(train.questions["module"])
    questions, numbers = list(train.questions.itertuples(index=False)), []
    number_of = {(q.module, q.id): n for n, q in reversed(list(enumerate(questions)))}
    for question in test.questions.itertuples(index=False):
        key = (question.module, question.id)
        name = f"{question.path}: question {quote(question.id)} of module {quote(question.module)}"
        if question.scenario == ANSWERS and key not in number_of:
            raise InputError(f"{name} is not in the training files, expected new answers only")
        if question.scenario in (QUESTIONS, DOMAINS) and key in number_of:
            same = questions[number_of[key]].path
            raise InputError(f"{name} is in {same}, expected a new question")
        if question.scenario == DOMAINS and question.module in modules:
            raise InputError(f"{name}: the module is in the training files, expected a new one")
        numbers.append(number_of.setdefault(key, len(questions)))
        questions += [question] * (numbers[-1] == len(questions))
    return Responses(
        pd.DataFrame(questions),
        train.ids + test.ids,
        train.texts + test.texts,
        np.concatenate([train.question, np.array(numbers)[test.question]]),
        np.concatenate([train.label, np.full(len(test), UNKNOWN)]),
        train.labels,
        train.places + test.places,
    )


def write(options: argparse.Namespace, answers: Responses, prediction: IntArray) -> None:
    """Write the labels of all answers, given as numbers, or of those of ``--test_dir`` alone."""
    path = options.output_dir / options.output_file
    if options.test_dir is None:
        folds_file = options.submission_template_dir / options.submission_template_file
        rows = np.arange(len(answers))
    else:
        folds_file = None
        rows = np.flatnonzero(answers.label == UNKNOWN)
    labels = np.array(answers.labels, object)[prediction[rows]]
    columns = {"id": np.array(answers.ids, object)[rows], "label": labels}
    challenge.write_submission(path, columns, folds_file=folds_file)
