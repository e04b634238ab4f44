"""Kept outcomes: one order for the same answers, small files, and nothing read from damage."""

from pathlib import Path

from common.errors import InputError
from common.evaluation import outcomes
from common.evaluation.outcomes import Outcomes

import numpy as np
import pytest


def example(seed: int, n: int = 200) -> list[np.ndarray]:
    """Return UserId, QuestionId, truth and prediction of distinct pairs, in a random order."""
    rng = np.random.default_rng(seed)
    place = rng.choice(40 * 50, n, replace=False)
    student, question = (place // 50 + 7).astype(np.int32), (place % 50).astype(np.int32)
    truth, predicted = rng.integers(2, size=(2, n)).astype(np.int8)
    return [student, question, truth, predicted]


def same(one: Outcomes, other: Outcomes) -> bool:
    return all(map(np.array_equal, vars(one).values(), vars(other).values()))


@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_each_student_in_each_part(seed: int) -> None:
    student, _, truth, predicted = columns = example(seed)
    rng = np.random.default_rng(seed)
    part = rng.permutation(np.arange(200) % 3)
    kept = outcomes.of_predictions(*columns, part)
    own = (student == np.unique(student)[:, None]) & (part == np.arange(3)[:, None, None])
    assert np.array_equal(kept.counts, own.sum(axis=2))
    assert np.array_equal(kept.count_right(), (own & (truth == predicted)).sum(axis=2))
    # The order of the answers does not matter.
    order = rng.permutation(200)
    for given in (columns, [*columns, part]):
        shuffled = (values[order] for values in given)
        assert same(outcomes.of_predictions(*given), outcomes.of_predictions(*shuffled))


def test_another_test_set_is_told_apart() -> None:
    """Other students, questions, true values or folds; other predictions are the same test."""
    student, question, truth, predicted = columns = example(0)
    own = outcomes.of_predictions(*columns).answers
    assert outcomes.of_predictions(student, question, truth, 1 - predicted).answers == own
    changed = truth.copy()
    changed[5] ^= 1
    part = (np.arange(200) % 2).astype(np.int8)
    others = [
        [student + 1, question, truth, predicted],
        [student, question + 1, truth, predicted],
        [student, question, changed, predicted],
        [*columns, part],
        [*columns, 1 - part],
        [values[1:] for values in columns],
    ]
    found = [outcomes.of_predictions(*other) for other in others]
    assert len({own, *(other.answers for other in found)}) == 7
    # Answers that count several times are known.
    twice = [np.concatenate([values, values]) for values in columns]
    assert found[3].distinct
    assert not outcomes.of_predictions(*twice, np.repeat([0, 1], 200)).distinct


def test_what_is_written_is_read_and_stored_once(tmp_path: Path) -> None:
    examples = [example(n, n) for n in (1, 8, 200)]
    student, question, truth, predicted = examples[-1]
    examples += [[student, question, truth, 1 - predicted], examples[-1]]
    names = []
    for columns in examples:
        kept = outcomes.of_predictions(*columns)
        names.append(outcomes.write(tmp_path, kept))
        assert same(outcomes.read(tmp_path / f"{names[-1]}.npz"), kept)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted({*names})
    assert len({*names}) == 4


def test_two_million_answers_take_little_room(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    student = np.sort(rng.integers(119_000, size=2_000_000)).astype(np.int32)
    question = np.arange(2_000_000, dtype=np.int32)
    truth = np.ones(2_000_000, np.int8)
    kept = outcomes.of_predictions(student, question, truth, rng.random(2_000_000) < 0.75)
    path = tmp_path / f"{outcomes.write(tmp_path, kept)}.npz"
    assert path.stat().st_size < 500_000


def test_judgements_count_where_there_are_any() -> None:
    judgements = np.array([[1, 2, np.nan], [np.nan, 2, 1]])
    agrees = np.array([[1, 0, np.nan], [np.nan, 0, 1]])
    ids = np.array([1, 2, 3])
    kept = outcomes.of_judgements(ids, ids + 3, judgements, agrees)
    assert kept.counts.tolist() == [[1, 1, 0], [0, 1, 1]]
    assert kept.count_right().tolist() == [[1, 0, 0], [0, 0, 1]]
    assert kept.answers != outcomes.of_judgements(ids, ids + 4, judgements, agrees).answers


@pytest.mark.parametrize("fault", ["cut", "renamed", "one bit"])
def test_a_file_of_other_outcomes_than_its_name_says_is_named(tmp_path: Path, fault: str) -> None:
    path = tmp_path / f"{outcomes.write(tmp_path, outcomes.of_predictions(*example(0)))}.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes({"cut": content[:300], "one bit": content}.get(fault, path.read_bytes()))
    if fault == "renamed":
        path = path.rename(tmp_path / f"{'0' * 16}.npz")
    with pytest.raises(InputError, match=rf"{path.name}: is damaged or holds other outcomes"):
        outcomes.read(path)
