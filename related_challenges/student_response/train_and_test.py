"""What a sample model learns from and predicts: folds of one folder, or one folder and another."""

import argparse
from pathlib import Path

from common import challenge, folds
from common.errors import InputError, quote

import numpy as np
import pandas as pd
import responses
from responses import IntArray

Splits = list[tuple[folds.BoolArray, folds.BoolArray, IntArray]]
ANSWERS, QUESTIONS, DOMAINS = responses.SCENARIOS
# Number of a label that is not known.
UNKNOWN = -1
# Of the most frequent label, to learn from: settings are chosen on five parts of them.
MIN_ANSWERS = 5


def model_parser(doc: str | None) -> argparse.ArgumentParser:
    """Make the parser of a sample model: what to learn from, and what to predict."""
    p = challenge.model_parser(doc, __file__)
    challenge.add_folds(p, __file__)
    told = "predict these answers, or the test sets in there, instead of folds"
    p.add_argument("--test_dir", type=Path, metavar="DIR", help=told)
    told = "with --test_dir: learn from these answers"
    p.add_argument("--train_dir", type=Path, metavar="DIR", help=told)
    return p


def read(options: argparse.Namespace) -> tuple[pd.DataFrame, Splits]:
    """Read what the flags name.

    Returns
    -------
    DataFrame
        All answers, as in `responses`. Those of ``--test_dir`` come after those of ``--train_dir``;
        of what is to be predicted, and so of all answers in folds, the labels are empty.
    list of (array of bool, array of bool, array of int)
        For every fit: which answers to learn from, which to predict, and the labels' numbers,
        `UNKNOWN` for those that are not to be learned from.
    """
    options.local = options.test_dir is None
    folder = options.train_dir or options.input_dir
    if options.local and options.train_dir is not None:
        raise InputError("--train_dir needs --test_dir; folds are made of --input_dir")
    answers = responses.read_responses(folder)
    if options.local:
        template = challenge.folds_path(options) or Path()
        pairs = list(folds.splits(folds.read_folds(template, answers["id"].tolist())))
    else:
        answers = join(answers, responses.read_responses(options.test_dir, reads_labels=False))
        is_train = answers["label"].notna().to_numpy()
        pairs = [(is_train, ~is_train)]
    numbers, splits = answers["label"].cat.codes.to_numpy(int), []
    for learned, asked in pairs:
        counts = np.bincount(numbers[learned])
        n_most, name = counts.max(), quote(responses.labels_of(answers)[counts.argmax()])
        if n_most == learned.sum():
            told = f"all {n_most:,} answers to learn from are {name}, expected at least two labels"
            raise InputError(f"{folder}: {told}")
        if n_most < MIN_ANSWERS:
            raise InputError(
                f"{folder}: of {learned.sum():,} answers to learn from only {n_most} are {name}, "
                f"the most frequent label, expected at least {MIN_ANSWERS}"
            )
        splits.append((learned, asked, np.where(learned, numbers, UNKNOWN)))
    if options.local:
        nothing = pd.Categorical([None] * len(answers), responses.labels_of(answers))
        answers = answers.assign(label=nothing)
    return answers, splits


def join(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Put answers to predict after those to learn from; a question of both is one question.

    Questions are the same if module and id are; what they ask is then that of ``train``. What is no
    test of the training answers, by the scenario that it claims to be, is refused.
    """
    of_tests = train["path"][train["scenario"] != ""]
    if len(of_tests):
        raise InputError(f"{of_tests.iloc[0]}: is of a test set, expected files to learn from")
    known = test[test["id"].isin(train["id"])]
    if len(known):
        answer_id, place = known[["id", "place"]].iloc[0]
        learned = train.loc[train["id"] == answer_id, "place"].iloc[0]
        told = f"studentAnswer {quote(answer_id)} is to be learned from as well: {learned}"
        raise InputError(f"{place}: {told}, expected other answers")
    both = pd.concat([train, test], ignore_index=True)
    both["label"] = pd.Categorical(both["label"], responses.labels_of(train))
    by_question = both.groupby(["module", "question_id"], sort=False)
    both["question"] = by_question.ngroup()
    asked = both.drop_duplicates("question").set_index("question")
    first = both["question"].map(asked["path"])
    scenario, is_new = both["scenario"], both["path"] == first
    is_known_module = both["module"].isin(train["module"])
    for wrong, told in (
        (
            (scenario == ANSWERS) & is_new,
            " is not in the training files, expected new answers only",
        ),
        (scenario.isin((QUESTIONS, DOMAINS)) & ~is_new, " is in {}, expected a new question"),
        (
            (scenario == DOMAINS) & is_known_module,
            ": the module is in the training files, expected a new one",
        ),
    ):
        if wrong.any():
            row = both[wrong].iloc[0]
            name = f"question {quote(row['question_id'])} of module {quote(row['module'])}"
            raise InputError(f"{row['path']}: {name}{told.format(first[wrong].iloc[0])}")
    for name in ("question_text", "references"):
        both[name] = both["question"].map(asked[name])
    return both


def write(options: argparse.Namespace, answers: pd.DataFrame, prediction: IntArray) -> None:
    """Write the labels of all answers, given as numbers, or of those of ``--test_dir`` alone."""
    rows = answers["label"].isna()
    labels = np.array(responses.labels_of(answers), object)[prediction[rows]]
    columns = {"id": answers["id"][rows], "label": labels}
    challenge.write_submission(options, columns, folds_file=challenge.folds_path(options))
