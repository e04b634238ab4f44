"""Kept outcomes: one order for the same answers, small files, and nothing read from damage."""

import shutil
from pathlib import Path

from common.errors import InputError
from common.evaluation import outcomes
from common.evaluation.outcomes import Outcomes

import numpy as np
import pandas as pd
import pytest


def example(seed: int, n: int = 200) -> pd.DataFrame:
    """Return answers to distinct questions by distinct students, and predictions."""
    rng = np.random.default_rng(seed)
    place = rng.choice(40 * 50, n, replace=False).astype(np.int32)
    truth, predicted = rng.integers(2, size=(2, n)).astype(np.int8)
    keys = {"UserId": place // 50 + 7, "QuestionId": place % 50}
    return pd.DataFrame({**keys, "truth": truth, "predicted": predicted})


def same(one: Outcomes, other: Outcomes) -> bool:
    return all(map(np.array_equal, vars(one).values(), vars(other).values()))


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_each_student_in_each_part(seed: int) -> None:
    part = np.random.default_rng(seed).permutation(np.arange(200) % 3)
    answers = example(seed).assign(part=part)
    kept = outcomes.of_predictions(answers)
    student = answers.UserId.to_numpy()
    own = (student == np.unique(student)[:, None]) & (part == np.arange(3)[:, None, None])
    assert np.array_equal(kept.counts, own.sum(axis=2))
    is_right = (answers.truth == answers.predicted).to_numpy()
    assert np.array_equal(kept.count_right(), (own & is_right).sum(axis=2))
    # The order of the answers does not matter.
    for given in (answers, answers.drop(columns="part")):
        shuffled = given.sample(frac=1, random_state=seed)
        assert same(outcomes.of_predictions(given), outcomes.of_predictions(shuffled))


def test_another_test_set_is_told_apart() -> None:
    """Other students, questions, true values or folds; other predictions are the same test."""
    answers = example(0)
    own = outcomes.of_predictions(answers).answers
    other_predictions = answers.assign(predicted=1 - answers.predicted)
    assert outcomes.of_predictions(other_predictions).answers == own
    part = (np.arange(200) % 2).astype(np.int8)
    others = [
        answers.assign(UserId=answers.UserId + 1),
        answers.assign(QuestionId=answers.QuestionId + 1),
        answers.assign(truth=np.where(answers.index == 5, 1 - answers.truth, answers.truth)),
        answers.assign(part=part),
        answers.assign(part=1 - part),
        answers[1:],
    ]
    found = [outcomes.of_predictions(other) for other in others]
    assert len({own, *(other.answers for other in found)}) == 7
    # Answers that count several times are known.
    twice = pd.concat([answers.assign(part=0), answers.assign(part=1)])
    assert found[3].distinct
    assert not outcomes.of_predictions(twice).distinct


def test_judgements_count_where_there_are_any() -> None:
    pairs = pd.MultiIndex.from_arrays([[1, 2, 3], [4, 5, 6]])
    judgements = pd.DataFrame({"a": [1, 2, np.nan], "b": [np.nan, 2, 1]}, pairs)
    agrees = pd.DataFrame({"a": [1, 0, np.nan], "b": [np.nan, 0, 1]}, pairs)
    kept = outcomes.of_judgements(judgements, agrees)
    assert kept.counts.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert kept.count_right().tolist() == [[1, 0, 0], [0, 0, 1]]
    for changed in (judgements.set_axis(pairs.swaplevel()), 3 - judgements):
        assert kept.answers != outcomes.of_judgements(changed, agrees).answers


def test_what_is_written_is_read_once_whole_and_under_its_name(tmp_path: Path) -> None:
    # Of one student with more answers than a byte can count, too.
    for answers in (example(0, 2000).assign(UserId=7), example(1), example(1)):
        kept = outcomes.of_predictions(answers)
        path = tmp_path / f"{outcomes.write(tmp_path, kept)}.npz"
        assert same(outcomes.read(path), kept)
    assert len([*tmp_path.iterdir()]) == 2
    other = Path(shutil.copy(path, tmp_path / f"{'0' * 16}.npz"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    for file in (path, other):
        with pytest.raises(InputError, match=rf"{file.name}: is damaged or holds other outcomes"):
            outcomes.read(file)
