"""The comparison of submissions, entries and lines of the record, with intervals and tests."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import metrics
from common.arrays import IntArray
from common.evaluation import outcomes
from common.evaluation.outcomes import Outcomes
from common.evaluation.record import Result
from common.tasks import TASK_1, TASK_4
from tools.compare import describe

import numpy as np
import pandas as pd
import pytest
from conftest import fails, succeeds
from recorded import RESULT, write_record
from sample_blocks import needs_blocks

COMPARE = ["-m", "tools.compare"]
# The fixture `compare` is a function that runs tools/compare.py and returns its output.
Compare = Callable[..., str]


@pytest.fixture
def compare(scored_kit: Path) -> Compare:
    """Return a function that runs tools/compare.py in the scored kit and returns its output."""
    return lambda words="": succeeds([*COMPARE, *words.split()], kit=scored_kit, cwd=scored_kit)


needs_both_models = needs_blocks(
    "task_1/sample_model_majority.py", "task_1/sample_model_matrix_factorization.py"
)


def comparison_in(output: str) -> str:
    """Return the part of the output that compares A and B, without the lines that name A and B.

    This part follows the words "task 1, local split".
    """
    return output.partition("task 1, local split")[2]


@needs_both_models
@pytest.mark.parametrize(
    "words",
    [
        "task_1/sample_model_majority.py matrix_factorization",
        "task_1/sample_model_majority.py 1_matrix_factorization.csv",
        "1_majority.csv matrix_factorization --phase local",
    ],
)
def test_all_ways_to_name_a_score_give_the_same_comparison(compare: Compare, words: str) -> None:
    """A score is named by its number in the record, its script, its model or its submission.

    In the record, score 1 is of the model majority, and score 2 of matrix_factorization.
    """
    assert comparison_in(compare(words)) == comparison_in(compare("1 2"))


@needs_both_models
def test_a_comparison_shows_the_difference_with_an_interval_and_a_mcnemar_test(
    compare: Compare,
) -> None:
    """Scores 1 and 2 of the record are compared: the majority model (A), and factorisation (B).

    If the two scores change places, A is better than B by the same number.
    """
    output = comparison_in(compare("1 2"))
    assert re.match(r".*: [\d,]+ answers of [\d,]+ students\n", output)
    match = re.search(r"B is better by (\S+) \(95 % interval (\S+) to (\S+)\)", output)
    assert match
    difference, low, high = map(float, match.groups())
    assert 0 < low < difference < high < 0.2
    assert "McNemar's exact test: p < 0.0001" in output

    sentence_about_b = match[0]
    sentence_about_a = "A" + sentence_about_b.removeprefix("B")
    other_order = " ".join(compare("2 1").split())
    assert sentence_about_a in other_order


def test_without_arguments_the_scores_of_the_record_are_listed(
    scored_kit: Path, compare: Compare
) -> None:
    lines = (scored_kit / "data/test_output/results.jsonl").read_text().splitlines()
    assert len(lines) == 7
    expected = []
    for number, line in enumerate(lines, 1):
        expected.append([str(number), f"{json.loads(line)['score']:.4f}"])
    assert [shown.split()[:2] for shown in compare().splitlines()] == expected


def test_the_list_may_be_limited_to_a_phase(compare: Compare) -> None:
    assert compare("--phase public").count("\n") == 3


def test_the_scores_are_those_of_the_evaluation(scored_kit: Path, compare: Compare) -> None:
    lines = (scored_kit / "data/test_output/results.jsonl").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        score = json.loads(line)["score"]
        assert compare(f"{number} {number}").startswith(f"A  {score:.4f}  ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        # The majority model has two scores: number 1 of the record on the local split, and number 4
        # on the public test. Named by its script, it is compared by the score on the test set of
        # the other score. Score 2 is on the local split, and score 4 on the public test.
        ("task_1/sample_model_majority.py 2", "task 1, local split"),
        ("task_1/sample_model_majority.py 4", "task 1, public test"),
        ("submissions/submission_task_1.zip 4 --phase public", r"be told: B - A = 0\.0000"),
        ("task_4/numpy numpy", "(?s)targets may not be asked.* targets of "),
        ("submissions/submission_task_3.zip entropy", r"be told: B - A = 0\.0000"),
    ],
)
def test_scores_of_one_test_set_are_compared(compare: Compare, words: str, expected: str) -> None:
    assert re.search(expected, compare(words))


def test_task_3_resamples_pairs_and_tells_the_smallest_detectable_difference(
    compare: Compare,
) -> None:
    """Rankings are compared by bootstrap: the pairs of questions are drawn again many times.

    A difference can be detected if its interval does not contain 0. So the smallest detectable
    difference is half the width of the interval.
    """
    output = " ".join(compare("random entropy").split())
    assert "the pairs drawn again 2,000 times" in output
    interval = r"interval (\S+) to ([^)]+)\)"
    detectable = r"differ by about (\S+) or more"
    match = re.search(rf"of \d+ pairs .* {interval} .* {detectable}", output)
    assert match
    low, high, smallest_detectable = map(float, match.groups())
    assert smallest_detectable > 0
    # The figures are shown with two decimals. So they differ from the exact ones by up to 0.005.
    assert smallest_detectable == pytest.approx((high - low) / 2, abs=0.0051)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--phase private", "results.jsonl: holds no scores of phase private to compare"),
        ("--results gone.jsonl", "gone.jsonl: file not found"),
        ("1", "1 scores to compare, expected two, A and B"),
        ("1 3", "1 is of task 1 and 3 of task 2, expected two scores of one task"),
        ("2 4", r"2 was scored on .* answers of .* \(local split, .*two different test sets"),
        ("1 0", "0: data/test_output/results.jsonl has 7 scores, expected a number up to"),
        ("1 8", "8: data/test_output/results.jsonl has 7 scores"),
        ("1 2 --phase public", "1: is of phase local, expected one of phase public"),
        ("majority 2", r"'majority' may be any of these: \d \(majority, task 1\), \d \(maj"),
        ("nothing 2", "'nothing': is no file and no model in"),
        ("task_4/pytorch 7 --phase public", "task_4/pytorch: has no score of phase"),
        ("data/test_input/valid_task_1_2.csv 1", "expected a submission, with exactly one"),
        ("1_majority.csv 4 --phase public", "pairs are missing"),
        ("1_majority.csv 1 --phase cross-validation", "expected another --phase"),
        ("related_challenges/cloze/README.md 1", "is of a related challenge"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused(
    scored_kit: Path, words: str, expected: str
) -> None:
    line = fails([*COMPARE, *words.split()], kit=scored_kit, cwd=scored_kit)
    assert re.search(expected, line)


@pytest.mark.parametrize(
    ("name_of_score", "expected"),
    [
        # Two scores have the model "majority": score 1 in task 1, and score 2 in a related
        # challenge. The tool takes score 1. The line of score 1 in the record names no file of
        # outcomes.
        ("majority", "local split.*: score it again"),
        ("2", "is scored in Student response, expected scores of"),
        # The line of this score names a file of outcomes that does not exist.
        ("gone", ".npz: file not found"),
        # The line of this score names a file of outcomes from which another score follows.
        ("other", r"its outcomes give the score 0\.6250, but the line of .*jsonl .* 0\.6000: they"),
    ],
)
def test_scores_without_outcomes_or_with_other_ones_are_refused(
    tmp_path: Path, name_of_score: str, expected: str
) -> None:
    """To compare scores, the tool needs files of outcomes, which say which predictions are right.

    The test compares a score with itself. The score is named by its number in the record, or by its
    model. `expected` is a part of the message.
    """
    # Scores 1 and 2 of the record are of a majority model, and have no file of outcomes.
    in_task_1 = RESULT
    in_related = replace(RESULT, task="student_response", phase="", metric_name="macro F1")
    # Score 3 names a file of outcomes that does not exist.
    gone = replace(RESULT, model="gone", outcomes="0" * 16)
    # Score 4 names a file of outcomes that does not fit it. The score of these outcomes is the mean
    # of the accuracies of the two parts, (2/2 + 1/4) / 2 = 0.625. But the record says 0.6.
    two_parts = make_outcomes([1, 1, 1, 0, 0, 0], student=[1] * 6, part=[0, 0, 1, 1, 1, 1])
    fingerprint = outcomes.write(tmp_path / "outcomes", two_parts)
    other = replace(RESULT, model="other", outcomes=fingerprint)
    record = write_record(tmp_path / "results.jsonl", in_task_1, in_related, gone, other)

    error = fails([*COMPARE, name_of_score, name_of_score, "--results", record])

    assert re.search(expected, error)


def make_outcomes(right: Any, *, student: Any, part: Any = None, question: Any = None) -> Outcomes:
    """Return the outcomes of predictions; each argument has an element for each prediction.

    `right` is 1 if the prediction is right. `student` and `question` are the UserId and the
    QuestionId of the answer that is predicted; by default, the questions are 0, 1, 2 and so on.
    `part` is the number of the mask or of the fold to which the prediction belongs, by default 0.
    """
    questions = question or range(len(right))
    answers = {"UserId": student, "QuestionId": questions, "truth": 1, "predicted": right}
    table = pd.DataFrame({**answers, "part": 0 if part is None else part})
    return outcomes.of_predictions(table.astype(np.int32))


def test_the_latest_scores_of_two_entries_on_the_same_answers_are_compared(tmp_path: Path) -> None:
    """Two entries, "idea" and "other", have several scores in the record.

    The tool compares the latest scores that are on the same answers. It says which other scores of
    the two entries are in the record.
    """

    def scored(model: str, right: list[int], day: int, first_question: int = 0) -> Result:
        """Return a result of a model on four answers of two students.

        `right` says which answers are predicted right. The answers are to four questions, whose ids
        begin with `first_question`. The score is from this day of January 2026.
        """
        questions = range(first_question, first_question + len(right))
        predictions = make_outcomes(right, student=[1, 1, 2, 2], question=questions)
        # A fingerprint of twelve digits. It may be any, but must be the same for the same
        # questions.
        fingerprint_of_true_answers = f"{first_question:012}"
        return replace(
            RESULT,
            model=model,
            score=sum(right) / len(right),
            time=f"2026-01-0{day}T10:00:00+00:00",
            data=fingerprint_of_true_answers,
            outcomes=outcomes.write(tmp_path / "outcomes", predictions),
        )

    # The day of each score is also its number in the record. Score 5, of "idea", is on other
    # questions than the scores of "other". So the tool compares score 3 of "idea" (2 of 4 answers
    # are right) with score 4 of "other" (3 of 4 answers are right).
    record = write_record(
        tmp_path / "results.jsonl",
        scored("idea", [0, 0, 0, 0], day=1),
        scored("other", [1, 0, 0, 0], day=2),
        scored("idea", [1, 1, 0, 0], day=3),
        scored("other", [1, 1, 1, 0], day=4),
        scored("idea", [1, 1, 1, 1], day=5, first_question=10),
    )
    output = succeeds([*COMPARE, "idea", "other", "--results", record])
    # The tool breaks lines at 80 characters, so join them.
    printed = " ".join(output.split())
    assert printed.startswith(
        "A 0.5000 idea, no seed, scored on 2026-01-03 10:00 UTC "
        "A has 2 more scores in the record; this is number 3, and a later one is number 5: "
        "idea, no seed, scored on 2026-01-05 10:00 UTC (local split, simulated answers) "
        "B 0.7500 other, no seed, scored on 2026-01-04 10:00 UTC "
        "B has 1 more score in the record; this is number 4 "
    )


def test_mcnemar_by_hand() -> None:
    """On 1 answer only A is right, and on 5 answers only B is right.

    Suppose that A and B are equally good. Then each of these 6 answers is won by A or by B, with
    probability 1/2 each. B wins 6 of them in 1 of the 2⁶ = 64 cases, and 5 of them in 6 cases. The
    same is true of A. So the two-sided test has p = 2 · (1 + 6) / 64 = 0.2188.
    """
    a = make_outcomes([1, 0, 0, 0, 0, 0, 1, 0], student=[1] * 8)
    b = make_outcomes([0, 1, 1, 1, 1, 1, 1, 0], student=[1] * 8)
    verdict, mcnemar = describe(TASK_1, a, b)
    assert "p = 0.2188; only A is right on 1 answers, only B on 5" in mcnemar
    assert "p = 1.0000" in describe(TASK_1, a, a)[1]
    # With a single student, the variation between students is unknown.
    assert verdict.startswith("no difference can be told: B - A = 0.5000 (no interval: a single")


def test_mcnemar_is_not_applied_to_an_answer_that_is_predicted_twice() -> None:
    twice = make_outcomes([1, 0], student=[1, 1], part=[0, 1], question=[1, 1])
    assert "no test by McNemar" in describe(TASK_4, twice, twice)[1]


def test_the_interval_covers_a_known_difference_in_95_percent_of_cases() -> None:
    """The interval extends over 1.96 clustered standard errors on either side of the difference.

    In each of 40 random cases, A is right with a probability of 60 %, and B of 63 %. So the true
    difference is 0.03.
    """
    true_difference = 0.03
    n_covered = 0
    half_widths_in_errors = []
    for seed in range(40):
        student, a, b = draw_two_entries(seed, true_difference)
        verdict, *_ = describe(TASK_1, a, b)
        # The verdict says, for example, "… (95 % interval 0.0151 to 0.0472)".
        match = re.search(r"interval (\S+) to ([^)]+)\)", verdict)
        assert match
        low, high = map(float, match.groups())
        n_covered += low <= true_difference <= high
        differences = b.right.astype(float) - a.right
        error = metrics.clustered_standard_error(differences, student)
        half_width = (high - low) / 2
        half_widths_in_errors.append(half_width / error)
    # If an interval covers the difference with a probability of 95 %, about 38 of the 40 intervals
    # cover it, and the probability that fewer than 35 do is 1.4 %.
    assert 35 <= n_covered <= 40
    assert np.mean(half_widths_in_errors) == pytest.approx(1.96, rel=0.03)


def draw_two_entries(seed: int, true_difference: float) -> tuple[IntArray, Outcomes, Outcomes]:
    """Draw the outcomes of two entries, A and B, on the answers of 150 students.

    Return the student of each answer, and the outcomes of A and of B. A is right with a probability
    of 0.6. B's probability is on average greater by `true_difference`.
    """
    n_students = 150
    rng = np.random.default_rng(seed)
    n_answers_of_students = rng.integers(1, 30, n_students)
    student = np.repeat(np.arange(n_students), n_answers_of_students)
    # By how much B's probability of a right answer exceeds A's. This gain differs between students,
    # so that the outcomes of a student's answers are correlated.
    gain_of_students = rng.normal(true_difference, 0.15, n_students)
    p_of_b = np.clip(0.6 + gain_of_students[student], 0, 1)
    # Both entries have the same luck with an answer: it is hard for both or easy for both.
    luck = rng.random(len(student))
    a = make_outcomes(luck < 0.6, student=student)
    b = make_outcomes(luck < p_of_b, student=student)
    return student, a, b
