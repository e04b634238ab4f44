"""Student responses: make labelled training and test sets from annotated answers.

Run:     python related_challenges/student_response/prepare.py
Reads:   data/annotated_data/*.xml, question files whose answers have no labels, and
         data/annotated_data/annotations.csv, described in annotations.py
Writes:  data/prepared_data/train/*.xml, and the test sets test-unseen-answers/*.xml and
         test-unseen-questions/*.xml beside it

These are the steps by which Dzikovska et al. (2012) prepared their corpora. Each annotation becomes
one of five labels, and Cohen's kappa tells how well the annotators agree; the labels of the first
annotator count. If answers to a question are equal, only one is kept. Questions are removed if more
than 80 % of their answers have the same label, or fewer than three are correct. Some questions are
held out with all of their answers, and a share of the answers to the other questions, with the same
shares of the labels.
"""

import argparse
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from common import cli, provenance, simulated, writing
from common.errors import InputError, printable
from common.origin import Origin
from related_challenges import challenge

import annotations
import label_distribution
import numpy as np
import pandas as pd
import responses

OUTPUT_FOLDER = "prepared_data"
TRAIN = "train"
FOLDERS = (TRAIN, responses.UNSEEN_ANSWERS, responses.UNSEEN_QUESTIONS)
# A question is removed if a larger share of its answers than this has the same label.
MAX_SHARE = 0.8
# A question is removed if it has fewer correct answers than this.
MIN_CORRECT = 3
# Percent of the questions that are held out, and percent of the answers to the other questions. The
# released files of BEETLE hold out 9 of 56 questions, and 439 of the 4,380 answers to the other
# questions.
HELD_OUT_QUESTIONS = 16
HELD_OUT_ANSWERS = 10


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    p = challenge.parser(__doc__, __file__, input_dir=annotations.FOLDER, output_dir=OUTPUT_FOLDER)
    percent = cli.whole_number(0, 90)
    help_text = "percent of the questions that are held out with all of their answers"
    cli.add_number(p, "--held_out_questions", HELD_OUT_QUESTIONS, help_text, parse=percent)
    help_text = "percent of the answers to the other questions that are held out"
    cli.add_number(p, "--held_out_answers", HELD_OUT_ANSWERS, help_text, parse=percent)
    cli.add_number(p, "--seed", 0)
    return p


def main() -> None:
    """Label the answers, choose those to keep and those to hold out, and write them."""
    options = build_parser().parse_args()
    path = options.input_dir / annotations.FILE
    answers = responses.read_responses(options.input_dir, labels="ignored")
    refuse_equal_names(answers["path"].unique())
    # A row for each answer, a column for each annotator.
    labels_by_annotator = annotations.read_labels(path, answers)
    for line in describe_agreement(labels_by_annotator):
        print(line)
    # The first annotator has labelled all answers. The labels of other annotators only show how
    # well annotators agree.
    labels = labels_by_annotator.iloc[:, 0].to_numpy()
    five_labels = responses.LABEL_SETS[5]
    answers["label"] = pd.Categorical(labels, five_labels)

    distinct = answers[~answers.duplicated(["question", "text"])]
    print(f"{len(answers):,} answers, {len(distinct):,} without repetitions")
    faults = find_unsuitable_questions(distinct)
    question_ids = distinct.groupby("question")["question_id"].first()
    for question, fault in faults.items():
        print(f"removed: question {printable(question_ids[question])}, {fault}")
    kept = distinct[~distinct["question"].isin(list(faults))].reset_index(drop=True)
    if not len(kept):
        raise InputError(
            f"{options.input_dir}: no question is left, expected one with at least {MIN_CORRECT} "
            f"correct answers, and at most {MAX_SHARE:.0%} of the answers with the same label"
        )

    rng = np.random.default_rng(options.seed)
    folder_of_answer = hold_out(
        kept, options.held_out_questions / 100, options.held_out_answers / 100, rng
    )
    parts = {name: kept[folder_of_answer == name] for name in FOLDERS}
    label_distribution.print_table({name: part for name, part in parts.items() if len(part)})
    place_files(options, parts, [path, *answers["path"].unique()])
    print(f"written: {cli.show(options.output_dir)}")


def refuse_equal_names(paths: Iterable[Path]) -> None:
    """Raise `InputError` if two question files have the same name.

    The question files may lie in different folders, but all prepared files lie in the same folder.
    """
    path_of_name: dict[str, Path] = {}
    for path in paths:
        other = path_of_name.setdefault(path.name, path)
        if other != path:
            raise InputError(f"{path}: has the name of {other}; expected different names")


# ---- Agreement and removal -------------------------------------------------------------------


def describe_agreement(labels_by_annotator: pd.DataFrame) -> list[str]:
    """Return a line for each annotator after the first: Cohen's kappa with the first annotator.

    `labels_by_annotator` is the result of `annotations.read_labels`.
    """
    first, *others = labels_by_annotator.columns
    lines = []
    for other in others:
        both = labels_by_annotator[[first, other]].dropna()
        if len(both):
            kappa = cohen_kappa(both[first], both[other])
            names = f"{printable(first)} and {printable(other)}"
            lines.append(f"kappa {kappa:.3f} of {names} on {len(both):,} answers")
    return lines


def cohen_kappa(first: "pd.Series[str]", second: "pd.Series[str]") -> float:
    """Return Cohen's kappa of two annotators (Cohen 1960).

    Kappa is (agreement - by_chance) / (1 - by_chance): 1 for full agreement, 0 for annotators who
    agree as often as by chance. `by_chance` is the expected agreement of annotators who draw labels
    at random, each with the frequencies of the labels that they have really given.

    Parameters
    ----------
    first, second : Series of str
        Labels of the same answers by two annotators.
    """
    agreement = float((first == second).mean())
    shares = first.value_counts(normalize=True)
    other_shares = second.value_counts(normalize=True)
    by_chance = float(shares.mul(other_shares, fill_value=0).sum())
    if by_chance == 1:
        # Both annotators gave all answers the same label, for which the formula is 0 / 0.
        return 1.0
    return (agreement - by_chance) / (1 - by_chance)


def find_unsuitable_questions(answers: pd.DataFrame) -> dict[int, str]:
    """Find questions that models can learn little from; return the fault of each by its number.

    Parameters
    ----------
    answers : DataFrame
        Answers with labels, without repetitions.
    """
    faults = {}
    for question in answers["question"].unique():
        labels = answers["label"][answers["question"] == question]
        # The most frequent label comes first.
        counts = labels.value_counts()
        largest_share = counts.iloc[0] / len(labels)
        if largest_share > MAX_SHARE:
            faults[question] = f"{largest_share:.0%} of the answers are {counts.index[0]}"
        elif counts["correct"] < MIN_CORRECT:
            faults[question] = f"{counts['correct']} of {len(labels)} answers are correct"
    return faults


# ---- Training and test sets ------------------------------------------------------------------


def hold_out(
    answers: pd.DataFrame, question_share: float, answer_share: float, rng: np.random.Generator
) -> "pd.Series[str]":
    """Return for each answer the name of the set that it belongs to, one of `FOLDERS`.

    Parameters
    ----------
    answers : DataFrame
        Answers with labels.
    question_share : float
        Share of the questions that are held out with all of their answers, rounded to whole
        questions.
    answer_share : float
        Share of the answers to the other questions that are held out. The share is the same for
        each label, rounded to whole answers. Each of these questions keeps at least one answer to
        learn from.
    rng : Generator
        Source of random numbers.
    """
    folder = pd.Series(TRAIN, answers.index)
    questions = answers["question"].unique()
    n_held_out = round(question_share * len(questions))
    held_out_questions = rng.choice(questions, n_held_out, replace=False)
    is_new_question = answers["question"].isin(held_out_questions)
    folder[is_new_question] = responses.UNSEEN_QUESTIONS

    # Shuffle the answers. The first answer to each question then stays in the training set:
    # `duplicated` is true for all later answers to the question.
    shuffled = answers[~is_new_question].sample(frac=1, random_state=rng)
    may_be_held_out = shuffled["question"].duplicated()
    for _, same_label in shuffled.groupby("label", observed=True):
        n_to_hold_out = round(answer_share * len(same_label))
        is_candidate = may_be_held_out[same_label.index]
        candidates = same_label.index[is_candidate]
        # The answers are shuffled, so the first candidates are a random choice.
        folder[candidates[:n_to_hold_out]] = responses.UNSEEN_ANSWERS
    return folder


def place_files(
    options: argparse.Namespace, parts: Mapping[str, pd.DataFrame], sources: list[Path]
) -> None:
    """Write the question files of the training set and the test sets; after an error, write none.

    If all sources are simulated, the new files are simulated too: a marker file in the folder says
    so, and files that were simulated earlier are replaced. Otherwise the folder must not exist, or
    must be empty.

    Parameters
    ----------
    options : Namespace
        Flags of `build_parser`.
    parts : mapping of str to DataFrame
        Answers with labels, by the name of the folder to write them to.
    sources : list of Path
        Files that the answers were made from.
    """

    def write_tree(folder: Path) -> dict[str, Any]:
        """Write the sets into a folder; return the entries of the marker file."""
        for name, part in parts.items():
            for path in part["path"].unique():
                text = question_with_labels(path, part[part["path"] == path])
                writing.write_files({folder / name / path.name: text})
        return {"seed": options.seed}

    if provenance.origin_of(*sources) is Origin.SIMULATED:
        # Replace the simulated files. The folders `FOLDERS` must not hold any other files.
        simulated.place_simulated(options.output_dir, FOLDERS, write_tree)
    else:
        # Only simulated files get a marker file, so `place_tree` ignores the entries that
        # `write_tree` returns for it.
        place_tree(options.output_dir, write_tree)


def place_tree(folder: Path, write_tree: Callable[[Path], object]) -> None:
    """Make a folder with the files that `write_tree` writes; after an error, change nothing.

    `write_tree` gets a temporary folder to write into, and its result is ignored. Raises
    `InputError` if the folder holds anything already.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError(
            f"{folder}: holds files already; remove them, or give another --output_dir"
        )
    partial = writing.partial_beside(folder)
    shutil.rmtree(partial, ignore_errors=True)
    try:
        write_tree(partial)
        if folder.exists():
            # Windows cannot replace a folder, not even an empty one.
            folder.rmdir()
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def question_with_labels(path: Path, answers: pd.DataFrame) -> str:
    """Return the XML of a question with only these answers, and with their labels.

    The attribute `accuracy` of an answer holds its label.

    Parameters
    ----------
    path : Path
        The question file that has all answers.
    answers : DataFrame
        Answers to the question, with labels.
    """
    root = ElementTree.parse(path).getroot()
    label_of_id = dict(zip(answers["id"], answers["label"], strict=True))
    for parent in root.iter():
        for element in parent.findall("studentAnswer"):
            answer_id = element.get("id", "")
            if answer_id in label_of_id:
                element.set("accuracy", label_of_id[answer_id])
            else:
                parent.remove(element)
    return f"{ElementTree.tostring(root, encoding='unicode')}\n"


if __name__ == "__main__":
    cli.run(main)
