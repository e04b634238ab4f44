"""Comparing submissions, entries and lines of the record, from the command line."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import RESULT, write_record

COMPARE = ["-m", "tools.compare"]


@pytest.fixture
def compare(scored_kit: Path, succeeds: Callable[..., str]) -> Callable[..., str]:
    return lambda words="": succeeds([*COMPARE, *words.split()], kit=scored_kit, cwd=scored_kit)


@pytest.fixture
def refused(scored_kit: Path, fails: Callable[..., str]) -> Callable[[str], str]:
    return lambda words: fails([*COMPARE, *words.split()], kit=scored_kit, cwd=scored_kit)


def test_all_ways_to_name_a_score_say_the_same(compare: Callable[..., str]) -> None:
    ways = [
        "1 2",
        "task_1/sample_model_majority.py matrix_factorization",
        "1_majority.csv 1_matrix_factorization.csv",
        "task_1/sample_model_majority.py 1_matrix_factorization.csv",
        "1 matrix_factorization --phase local",
    ]
    (found,) = {compare(words).partition("task 1, local split")[2] for words in ways}
    figures = re.search(r"B is better by (\S+) \(95 % interval (\S+) to (\S+)\)", found)
    assert figures
    better, low, high = map(float, figures.groups())
    assert 0 < low < better < high < 0.2
    assert "bootstrap, the students drawn again 2,000 times" in found
    assert "McNemar's exact test: p < 0.0001" in found


def test_the_scores_are_those_of_the_evaluation(
    scored_kit: Path, compare: Callable[..., str]
) -> None:
    lines = (scored_kit / "data/test_output/results.jsonl").read_text().splitlines()
    listed = compare().splitlines()
    assert len(listed) == len(lines) == 7
    for number, (line, shown) in enumerate(zip(map(json.loads, lines), listed, strict=True), 1):
        assert shown.split()[:2] == [str(number), f"{line['score']:.4f}"]
        assert compare(f"{number} {number}").startswith(f"A  {line['score']:.4f}  ")
    assert compare("--phase public").count("\n") == 3


def test_scores_of_one_test_set_are_compared(compare: Callable[..., str]) -> None:
    """The latest score of the majority model is on the public answers."""
    for words, expected in (
        ("task_1/sample_model_majority.py 2", "task 1, local split"),
        ("task_1/sample_model_majority.py 4", "task 1, public test"),
        ("submissions/submission_task_1.zip 4 --phase public", r"be told: B - A = 0\.0000"),
        ("task_4/numpy numpy", "(?s)targets may not be asked.* targets of "),
        ("random entropy", r"pairs tell only rankings apart that differ by about 0\."),
        ("submissions/submission_task_3.csv entropy", r"be told: B - A = 0\.0000"),
        ("submissions/submission_task_3.zip entropy", r"be told: B - A = 0\.0000"),
    ):
        assert re.search(expected, compare(words)), words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--phase private", "results.jsonl: holds no scores of phase private to compare"),
        ("--results gone.jsonl", "gone.jsonl: file not found"),
        ("1", "1 scores to compare, expected two, A and B"),
        ("1 3", "1 is of task 1 and 3 of task 2, expected two scores of one task"),
        ("2 4", r"2 was scored on .* answers of .* \(local split, .*two different test sets"),
        ("1 8", "8: data/test_output/results.jsonl has 7 scores, expected a number up to"),
        ("1 0", "0: data/test_output/results.jsonl has 7 scores"),
        ("1 2 --phase public", "1: is of phase local, expected one of phase public"),
        ("majority 2", r"'majority' may be any of these: \d \(majority, task 1\), \d \(maj"),
        ("nothing 2", "'nothing': is no file and no model in"),
        ("task_1/local_evaluation.py 2", "has no score in data/test_output/results.jsonl"),
        ("task_4/pytorch 7 --phase public", "task_4/pytorch: has no score of phase"),
        ("1_majority.csv gone.csv", "gone.csv: file not found"),
        ("1_majority.csv 2_majority.csv", "1_majority.csv is of task 1 and 2_majority.csv of"),
        ("data/test_input/valid_task_1_2.csv 1", "expected a submission, with exactly one"),
        ("1_majority.csv 4 --phase public", "pairs are missing"),
        ("1_majority.csv 1 --phase cross-validation", "expected another --phase"),
        ("related_challenges/cloze/README.md 1", "is of a related challenge"),
    ],
)
def test_what_cannot_be_compared(refused: Callable[[str], str], words: str, expected: str) -> None:
    assert re.search(expected, refused(words))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # Of this name are a score of task 1 and one of a related challenge.
        ("majority", "local split.*, expected a later score: score it again"),
        ("2", "is scored in Student response, expected scores of"),
        ("word_svm", "is scored in Student response, expected scores of"),
        ("gone", ".npz: file not found"),
        ("damaged", ".npz: is damaged"),
    ],
)
def test_outcomes_that_are_not_there(
    tmp_path: Path, refused: Callable[[str], str], word: str, expected: str
) -> None:
    related = replace(RESULT, task="student_response", phase="", metric_name="macro F1")
    lost = [replace(RESULT, model=w, outcomes=n * 16) for w, n in (("gone", "0"), ("damaged", "1"))]
    results = [RESULT, related, replace(related, model="word_svm"), *lost]
    path = write_record(tmp_path / "results.jsonl", *results)
    (tmp_path / "outcomes").mkdir()
    (tmp_path / f"outcomes/{'1' * 16}.npz").write_bytes(b"PK")
    assert re.search(expected, refused(f"{word} {word} --results {path}"))
