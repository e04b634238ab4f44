"""Nothing of a training answer's own outcome may be in its features."""

from collections.abc import Callable

from common.answer_features import GROUPS, Columns, Known, Pairs, hold_out, know, table
from common.answer_features.rates import rates_of
from common.answers import IntArray

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

Read = Callable[..., tuple[Pairs, pd.DataFrame]]
World = dict[str, pd.DataFrame]
N_TEMPLATE = 100


@pytest.fixture
def data(read: Read, world: World) -> tuple[Pairs, pd.DataFrame]:
    return read(world.pop("answers"), N_TEMPLATE, **world)


@pytest.mark.parametrize("group", GROUPS)
def test_other_outcomes_same_features(data: tuple[Pairs, pd.DataFrame], group: str) -> None:
    """Whatever the outcomes that are held out, no feature of theirs changes."""
    pairs, answers = data
    held_out = np.random.default_rng(1).random(len(answers)) < 0.2
    option = np.where(held_out, answers["AnswerValue"] % 4 + 1, answers["AnswerValue"])
    is_correct = (option == answers["CorrectAnswer"]).astype(np.int8)
    other = answers.assign(AnswerValue=option, IsCorrect=is_correct)
    rows = np.flatnonzero(held_out)
    first, second = (
        table(pairs, know(pairs, outcomes, held_out), rows, [group])
        for outcomes in (answers, other)
    )
    assert first.keys() == second.keys()
    for name, column in first.items():
        assert column.dtype == np.float32 and column.shape == rows.shape
        np.testing.assert_array_equal(column, second[name], err_msg=name)


def score(
    pairs: Pairs, answers: pd.DataFrame, features: Callable[[Known, IntArray], Columns]
) -> float:
    """Return the accuracy of trees on training rows that they have not learned from."""
    tables, rows = [], []
    for held_out in hold_out(len(answers), 0):
        rows.append(np.flatnonzero(held_out))
        columns = features(know(pairs, answers, held_out), rows[-1])
        tables.append(np.column_stack(list(columns.values())))
    x, y = np.concatenate(tables), answers["IsCorrect"].to_numpy()[np.concatenate(rows)]
    half = len(y) // 2
    trees = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0)
    return float(trees.fit(x[:half], y[:half]).score(x[half:], y[half:]))


def test_random_labels_score_at_chance_and_a_leak_is_caught(
    data: tuple[Pairs, pd.DataFrame],
) -> None:
    pairs, answers = data
    right = np.random.default_rng(2).integers(0, 2, len(answers)).astype(np.int8)
    answers = answers[["UserId", "QuestionId"]].assign(IsCorrect=right)
    groups = ["model", "rates", "context", "quiz", "order"]
    honest = score(pairs, answers, lambda known, rows: table(pairs, known, rows, groups))
    assert honest == pytest.approx(0.5, abs=0.06)
    # Rates among all answers, the row's own outcome included.
    everything, of_quiz = know(pairs, answers), [("student", "quiz")]
    leak = score(pairs, answers, lambda _, rows: rates_of(pairs, everything, rows, of_quiz))
    assert leak > 0.6


def test_parts_held_out_are_a_twentieth_and_each_answer_once() -> None:
    parts, same, other = (np.array(list(hold_out(1003, seed))) for seed in (0, 0, 1))
    assert (parts.sum(axis=0) == 1).all()
    assert parts.sum(axis=1).min() >= 50 and parts.sum(axis=1).max() <= 51
    assert (same == parts).all() and (other != parts).any()
    # Many answers are held out less often.
    assert len(list(hold_out(4_000_000, 0))) == 1
    parts = np.array(list(hold_out(500_000, 0)))
    assert len(parts) == 8 and np.sum(parts, axis=0, dtype=np.int8).max() == 1
