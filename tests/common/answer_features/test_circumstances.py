"""Features from the answer metadata, counted by hand."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from common.answer_features import Columns, Known, Pairs, know, table
from common.answers import Answers

Read = Callable[..., tuple[Pairs, Answers]]
World = dict[str, pd.DataFrame]
N_TEMPLATE = 40


class Joined(NamedTuple):
    """Pairs, known answers, and all rows with their metadata."""

    pairs: Pairs
    known: Known
    whole: pd.DataFrame

    @property
    def asked(self) -> pd.DataFrame:
        return self.whole[-N_TEMPLATE:]

    def features(self, *groups: str) -> Columns:
        return table(self.pairs, self.known, self.asked.index.to_numpy(), groups)


@pytest.fixture
def joined(read: Read, world: World) -> Joined:
    frame = world.pop("answers")
    pairs, answers = read(frame, N_TEMPLATE, **world)
    known = know(pairs, answers)
    whole = frame.merge(world["ANSWER_METADATA_TASK_1_2"], on="AnswerId", validate="1:1")
    whole["date"] = pd.to_datetime(whole.DateAnswered)
    whole["day"] = whole.date.dt.date
    whole["residual"] = np.append(known.residual, np.full(N_TEMPLATE, np.nan))
    return Joined(pairs, known, whole)


@pytest.mark.parametrize(
    ("group", "name", "keys"),
    [
        ("quiz", "student_quiz", ["UserId", "QuizId"]),
        ("quiz", "question_quiz", ["QuestionId", "QuizId"]),
        ("quiz", "quiz", ["QuizId"]),
        ("classes", "group", ["GroupId"]),
        ("classes", "question_group", ["QuestionId", "GroupId"]),
        ("classes", "group_quiz", ["GroupId", "QuizId"]),
        ("classes", "scheme", ["SchemeOfWorkId"]),
        ("classes", "question_scheme", ["QuestionId", "SchemeOfWorkId"]),
        ("time", "student_day", ["UserId", "day"]),
    ],
)
def test_rates(joined: Joined, group: str, name: str, keys: list[str]) -> None:
    """The smoothed rate and the count of each template row, by pandas."""
    grouped = joined.whole[:-N_TEMPLATE].groupby(keys).residual.agg(["sum", "count"])
    expected = joined.asked[keys].merge(grouped.reset_index(), how="left", on=keys)
    is_known = joined.asked[keys].notna().all(axis=1).to_numpy()
    count = expected["count"].fillna(0).where(is_known)
    found = joined.features(group)
    rate = (expected["sum"].fillna(0) / (count + 5)).where(is_known)
    np.testing.assert_allclose(found[f"{name}_rate"], rate, atol=1e-5)
    np.testing.assert_array_equal(found[f"{name}_count"], count)


def test_time(joined: Joined) -> None:
    found, whole, asked = joined.features("time"), joined.whole, joined.asked
    assert found["hour"] == pytest.approx(asked.date.dt.hour + asked.date.dt.minute / 60)
    assert found["weekday"].tolist() == asked.date.dt.day_of_week.tolist()
    for i, row in enumerate(asked.itertuples()):
        own = whole[whole.UserId == row.UserId]
        earlier = own.date[own.date < row.date]
        assert found["place_in_quiz"][i] == len(earlier[own.QuizId == row.QuizId])
        gap = (row.date - earlier.max()) / pd.Timedelta(1, "min") if len(earlier) else np.nan
        assert found["gap"][i] == pytest.approx(gap, nan_ok=True)
    is_odd = asked.UserId % 2 == 1
    assert found["age_then"][is_odd] == pytest.approx(12.75, abs=0.02)
    assert np.isnan(found["age_then"][~is_odd]).all()


def test_size_of_the_quiz_and_habits_in_it(joined: Joined) -> None:
    """The template counts for the size, of course not for the habits."""
    pairs, known, whole = joined
    found = joined.features("quiz")
    size = whole.groupby(["UserId", "QuizId"]).AnswerId.transform("count")
    assert found["quiz_size"].tolist() == size[-N_TEMPLATE:].tolist()
    row = len(whole) - N_TEMPLATE
    own = (whole.UserId == whole.UserId[row]) & (whole.QuizId == whole.QuizId[row])
    own = own[:row].to_numpy()
    for option in range(4):
        excess = (known.option[own] == option + 1) - known.option_share[known.question[own], option]
        outcome = known.outcome_of_option[pairs.numbers["question"][row], option]
        expected = excess.sum() / (own.sum() + 5)
        assert found[f"quiz_habit_{outcome}"][0] == pytest.approx(expected, abs=1e-5)


def test_order_is_that_of_the_minutes_within_the_quiz(joined: Joined) -> None:
    found, known = joined.features("order"), joined.whole[:-N_TEMPLATE]
    n_seen = 0
    for i, row in enumerate(joined.asked.itertuples()):
        own = known[(known.UserId == row.UserId) & (known.QuizId == row.QuizId)]
        own = own.sort_values("date", kind="stable")
        before, after = own[own.date < row.date][::-1], own[own.date >= row.date]
        for name, others in (("before", before), ("after", after)):
            for nth in (1, 2):
                value, option = found[f"{name}_{nth}"][i], found[f"{name}_{nth}_option"][i]
                if len(others) < nth:
                    assert np.isnan(value) and np.isnan(option)
                    continue
                n_seen += 1
                other = others.iloc[nth - 1]
                if (others.date == other.date).sum() > 1:
                    continue  # Answers of the same minute have no order.
                assert value == pytest.approx(other.residual)
                assert (option == 0) == (other.AnswerValue == row.CorrectAnswer)
                assert option in range(4)
    assert n_seen > 50


def test_confidence(joined: Joined) -> None:
    found, asked = joined.features("confidence"), joined.asked
    np.testing.assert_array_equal(found["confidence"], asked.Confidence)
    stated = joined.whole.dropna(subset="Confidence")
    grouped = stated.groupby("UserId").Confidence.agg(["sum", "count"]).reindex(asked.UserId)
    usual = (grouped["sum"] + 5 * stated.Confidence.mean()) / (grouped["count"] + 5)
    np.testing.assert_allclose(found["usual_confidence"], usual, rtol=1e-5)
    above = asked.Confidence.to_numpy() - usual.to_numpy()
    np.testing.assert_allclose(found["confidence_above_usual"], above, atol=1e-3)
    np.testing.assert_array_equal(found["confidence_count"], grouped["count"].fillna(0))


def test_missing_circumstances_are_no_number(read: Read, world: World) -> None:
    frame, metadata = world["answers"], world["ANSWER_METADATA_TASK_1_2"]
    metadata = metadata.assign(QuizId=np.nan, DateAnswered="", Confidence=np.nan)
    pairs, answers = read(frame, N_TEMPLATE, ANSWER_METADATA_TASK_1_2=metadata)
    rows = np.arange(len(answers), len(pairs))
    found = table(pairs, know(pairs, answers), rows, ["quiz", "order", "time", "confidence"])
    for name, column in found.items():
        if name != "confidence_count":
            assert np.isnan(column).all(), name
