"""Stored outcomes: equal for the same answers, small, and refused if they are damaged."""

from dataclasses import fields
from pathlib import Path

from common.errors import InputError
from common.evaluation import outcomes
from common.evaluation.outcomes import Outcomes

import numpy as np
import pandas as pd
import pytest


def draw_answers(seed: int, n: int = 200) -> pd.DataFrame:
    """Draw answers of students to questions, each pair once, with predictions."""
    rng = np.random.default_rng(seed)
    # Each number is a different pair of one of 40 students and one of 50 questions.
    pair = rng.choice(40 * 50, n, replace=False).astype(np.int32)
    student, question = np.divmod(pair, 50)
    truth, predicted = rng.integers(2, size=(2, n)).astype(np.int8)
    return pd.DataFrame(
        {
            "UserId": student + 7,
            "QuestionId": question,
            "truth": truth,
            "predicted": predicted,
        }
    )


def is_same(left: Outcomes, right: Outcomes) -> bool:
    """Return whether two `Outcomes` are equal in all fields."""
    names = [field.name for field in fields(Outcomes)]
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in names)


# ---- Counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_answers_are_counted_by_student_and_part(seed: int) -> None:
    """`Outcomes` counts each student's answers in each part, and how many are predicted right.

    Parts divide the scored answers: a part holds the answers of a fold or of a mask, for example.
    The counts have the shape (parts, students).
    """
    n_parts = 3
    part = np.random.default_rng(seed).permutation(np.arange(200) % n_parts)
    answers = draw_answers(seed).assign(part=part)

    outcome = outcomes.of_predictions(answers)

    students = np.unique(answers.UserId)
    n_answers = np.zeros((n_parts, len(students)), int)
    n_right = np.zeros((n_parts, len(students)), int)
    is_predicted_right = answers.truth == answers.predicted
    for row in range(n_parts):
        for column, student in enumerate(students):
            is_counted = (answers.part == row) & (answers.UserId == student)
            n_answers[row, column] = is_counted.sum()
            n_right[row, column] = (is_counted & is_predicted_right).sum()
    assert np.array_equal(outcome.counts, n_answers)
    assert np.array_equal(outcome.count_right(), n_right)


@pytest.mark.parametrize("has_parts", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_answers_does_not_matter(seed: int, has_parts: bool) -> None:
    answers = draw_answers(seed)
    if has_parts:
        answers["part"] = np.random.default_rng(seed).permutation(np.arange(200) % 3)
    shuffled = answers.sample(frac=1, random_state=seed)
    assert is_same(outcomes.of_predictions(answers), outcomes.of_predictions(shuffled))


def test_only_judgements_that_an_expert_has_made_count() -> None:
    judgements, agrees = make_judgements()
    outcome = outcomes.of_judgements(judgements, agrees)
    assert outcome.counts.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert outcome.count_right().tolist() == [[1, 0, 0], [0, 0, 1]]


def make_judgements() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return judgements of two experts on three pairs, and whether a ranking agrees with them."""
    pairs = pd.MultiIndex.from_arrays([[1, 2, 3], [4, 5, 6]])
    judgements = pd.DataFrame({"a": [1, 2, np.nan], "b": [np.nan, 2, 1]}, pairs)
    agrees = pd.DataFrame({"a": [1, 0, np.nan], "b": [np.nan, 0, 1]}, pairs)
    return judgements, agrees


# ---- The key of the answers --------------------------------------------------------------------
#
# The field `answers` of outcomes is a key: two entries have been scored on the same answers if, and
# only if, their keys are equal.


def test_other_predictions_have_the_same_key() -> None:
    answers = draw_answers(0)
    other = answers.assign(predicted=1 - answers.predicted)
    assert outcomes.of_predictions(other).answers == outcomes.of_predictions(answers).answers


def test_other_students_questions_truths_or_folds_have_other_keys() -> None:
    """`Outcomes` have the same key only if they are about the same answers in the same folds.

    Each of `versions` changes the answers or their folds in one way, and must have a key of its
    own.
    """
    answers = draw_answers(0)
    fold = (np.arange(200) % 2).astype(np.int8)
    # For the version "another truth": one of the answers becomes right if it was wrong, and wrong
    # if it was right.
    is_answer_5 = answers.index == 5
    another_truth = np.where(is_answer_5, 1 - answers.truth, answers.truth)
    versions = {
        "as drawn": answers,
        "other students": answers.assign(UserId=answers.UserId + 1),
        "other questions": answers.assign(QuestionId=answers.QuestionId + 1),
        "another truth": answers.assign(truth=another_truth),
        "folds": answers.assign(part=fold),
        "other folds": answers.assign(part=1 - fold),
        "an answer less": answers[1:],
    }
    version_with_key: dict[str, str] = {}
    for name, version in versions.items():
        key = outcomes.of_predictions(version).answers
        assert key not in version_with_key, (name, version_with_key[key])
        version_with_key[key] = name


def test_other_pairs_or_judgements_have_other_keys() -> None:
    judgements, agrees = make_judgements()
    key = outcomes.of_judgements(judgements, agrees).answers
    swapped = judgements.set_axis(judgements.index.swaplevel())
    assert outcomes.of_judgements(swapped, agrees).answers != key
    assert outcomes.of_judgements(3 - judgements, agrees).answers != key


def test_answers_that_count_several_times_are_marked() -> None:
    answers = draw_answers(0)
    twice = pd.concat([answers.assign(part=0), answers.assign(part=1)])
    once = answers.assign(part=np.arange(200) % 2)
    assert outcomes.of_predictions(once).distinct
    assert not outcomes.of_predictions(twice).distinct


# ---- Files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(draw_answers(1), id="some students"),
        pytest.param(
            draw_answers(0, 2000).assign(UserId=7), id="more answers than a byte can count"
        ),
    ],
)
def test_outcomes_are_read_as_they_are_written(tmp_path: Path, answers: pd.DataFrame) -> None:
    outcome = outcomes.of_predictions(answers)
    path = tmp_path / f"{outcomes.write(tmp_path, outcome)}.npz"
    assert is_same(outcomes.read(path), outcome)


def test_the_same_outcomes_are_stored_once(tmp_path: Path) -> None:
    for answers in (draw_answers(0), draw_answers(1), draw_answers(1)):
        outcomes.write(tmp_path, outcomes.of_predictions(answers))
    assert len([*tmp_path.iterdir()]) == 2


@pytest.mark.parametrize("damage", ["another name", "a changed byte"])
def test_outcomes_that_do_not_match_their_name_are_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / f"{outcomes.write(tmp_path, outcomes.of_predictions(draw_answers(1)))}.npz"
    if damage == "another name":
        path = path.rename(tmp_path / f"{'0' * 16}.npz")
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{path.name}: is damaged or holds other outcomes"):
        outcomes.read(path)
