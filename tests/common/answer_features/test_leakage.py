"""Nothing of a training answer's own outcome may be in its features."""

from collections.abc import Callable

from common.answer_features import GROUPS, Known, Pairs, known, table, tables
from common.answer_features.known import cut

import numpy as np
import pandas as pd
import pytest

Data = tuple[Pairs, pd.DataFrame]


@pytest.fixture
def data(read: Callable[..., Data], world: dict[str, pd.DataFrame]) -> Data:
    return read(world.pop("answers"), 100, **world)


def change(answers: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Return the answers with another option chosen in some rows."""
    option = answers["AnswerValue"].where(~rows, answers["AnswerValue"] % 4 + 1)
    is_correct = (option == answers["CorrectAnswer"]).astype(np.int8)
    return answers.assign(AnswerValue=option, IsCorrect=is_correct)


@pytest.mark.parametrize("group", GROUPS)
def test_other_outcomes_same_features(data: Data, group: str) -> None:
    """Whatever the outcomes that are held out, no feature of theirs changes."""
    pairs, answers = data
    held_out = np.random.default_rng(1).random(len(answers)) < 0.2
    rows = np.flatnonzero(held_out)
    first, second = (
        table(pairs, Known(pairs, outcomes, held_out), rows, [group])
        for outcomes in (answers, change(answers, held_out))
    )
    assert set(first.dtypes) == {np.dtype(np.float32)} and len(first) == len(rows)
    pd.testing.assert_frame_equal(first, second, check_exact=True)


@pytest.mark.parametrize(("enough", "n_held_out"), [(125_000, 10), (1_000, 2), (300, 1), (30, 1)])
def test_models_of_a_part_do_not_begin_with_its_outcomes(
    data: Data, monkeypatch: pytest.MonkeyPatch, enough: int, n_held_out: int
) -> None:
    """Other outcomes of a part change no feature of it, although they do those of the others."""
    pairs, answers = data
    monkeypatch.setattr(known, "_ENOUGH", enough)
    groups = ["model", "rates", "distractors", "context", "quiz", "order"]
    first = list(tables(pairs, answers, groups, seed=0))
    assert len(first) == n_held_out + 1
    rows = np.concatenate([part.rows for part in first])
    assert len({*rows}) == len(rows)
    assert n_held_out < 10 or len(rows) == len(pairs)
    for number in {0, n_held_out // 3}:
        other = change(answers, np.isin(np.arange(len(answers)), first[number].rows))
        second = tables(pairs, other, groups, seed=0)
        same = [a.table.equals(b.table) for a, b in zip(first, second, strict=True)]
        # Where so few are held out, nothing is learned from them for the template either.
        assert np.flatnonzero(same).tolist() == ([0, 1] if enough == 30 else [number])


def test_parts_held_out_are_a_tenth_or_a_fifth_or_less_and_each_answer_is_in_one() -> None:
    (part, n), (same, _), (other, _) = (cut(1003, seed) for seed in (0, 0, 1))
    assert n == 10
    assert sorted(np.bincount(part)) == [100] * 7 + [101] * 3
    assert (same == part).all() and (other != part).any()
    # Of many answers fewer are held out: as many as are enough.
    for n_answers, n_parts, n_held_out in ((200_000, 5, 3), (4_000_000, 32, 1)):
        part, n = cut(n_answers, 0)
        assert (part.max() + 1, n) == (n_parts, n_held_out)
        assert 100_000 < (part < n).sum() <= 125_000
