"""Features from the answer metadata, counted by hand."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from common.answer_features import Columns, Known, Pairs, know, table
from common.answers import Answers

Read = Callable[..., tuple[Pairs, Answers]]
World = dict[str, pd.DataFrame]
N_TEMPLATE = 40


@pytest.fixture
def joined(read: Read, world: World) -> tuple[Pairs, Known, Callable[[str], Columns], pd.DataFrame]:
    """Return pairs, known answers, a function that makes features, and all rows joined."""
    frame = world.pop("answers")
    pairs, answers = read(frame, N_TEMPLATE, **world)
    known = know(pairs, answers)
    rows = np.arange(len(answers), len(pairs))
    whole = frame.merge(world["ANSWER_METADATA_TASK_1_2"], on="AnswerId", validate="1:1")
    whole["date"] = pd.to_datetime(whole.DateAnswered)
    whole["residual"] = np.append(known.residual, np.full(N_TEMPLATE, np.nan))
    return pairs, known, lambda group: table(pairs, known, rows, [group]), whole


def rates(whole: pd.DataFrame, keys: list[str]) -> tuple[pd.Series, pd.Series]:
    """Return the smoothed rate and the count of each template row, by pandas."""
    asked, known = whole[-N_TEMPLATE:], whole[:-N_TEMPLATE]
    grouped = known.groupby(keys).residual.agg(["sum", "count"]).reset_index()
    found = asked[keys].merge(grouped, how="left", on=keys)
    missing = asked[keys].isna().any(axis=1).to_numpy()
    count = found["count"].fillna(0).where(~missing)
    return (found["sum"].fillna(0) / (count + 5)).where(~missing), count


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
def test_rates(joined, group: str, name: str, keys: list[str]) -> None:  # type: ignore[no-untyped-def]
    _, _, features, whole = joined
    whole["day"] = whole.date.dt.date
    rate, count = rates(whole, keys)
    found = features(group)
    np.testing.assert_allclose(found[f"{name}_rate"], rate, atol=1e-5)
    np.testing.assert_array_equal(found[f"{name}_count"], count)


def test_time(joined) -> None:  # type: ignore[no-untyped-def]
    _, _, features, whole = joined
    found = features("time")
    asked = whole[-N_TEMPLATE:]
    assert found["hour"] == pytest.approx(asked.date.dt.hour + asked.date.dt.minute / 60)
    assert found["weekday"].tolist() == asked.date.dt.day_of_week.tolist()
    for i, row in enumerate(asked.itertuples()):
        own = whole[whole.UserId == row.UserId]
        earlier = own.date[own.date < row.date]
        in_quiz = earlier[own.QuizId == row.QuizId]
        assert found["place_in_quiz"][i] == len(in_quiz)
        gap = (row.date - earlier.max()) / pd.Timedelta(1, "min") if len(earlier) else np.nan
        assert found["gap"][i] == pytest.approx(gap, nan_ok=True)
    is_odd = asked.UserId % 2 == 1
    assert found["age_then"][is_odd] == pytest.approx(12.75, abs=0.02)
    assert np.isnan(found["age_then"][~is_odd]).all()


def test_size_of_the_quiz_counts_the_template_too(joined) -> None:  # type: ignore[no-untyped-def]
    _, _, features, whole = joined
    size = whole.groupby(["UserId", "QuizId"]).AnswerId.transform("count")[-N_TEMPLATE:]
    assert features("quiz")["quiz_size"].tolist() == size.tolist()


def test_habits_in_the_quiz(joined) -> None:  # type: ignore[no-untyped-def]
    pairs, known, features, whole = joined
    found = features("quiz")
    row = len(whole) - N_TEMPLATE
    own = (whole.UserId == whole.UserId[row]) & (whole.QuizId == whole.QuizId[row])
    own = own[:row].to_numpy()
    for option in range(4):
        excess = (known.option[own] == option + 1) - known.option_share[known.question[own], option]
        outcome = known.outcome_of_option[pairs.numbers["question"][row], option]
        expected = excess.sum() / (own.sum() + 5)
        assert found[f"quiz_habit_{outcome}"][0] == pytest.approx(expected, abs=1e-5)


def test_order_is_that_of_the_minutes_within_the_quiz(joined) -> None:  # type: ignore[no-untyped-def]
    _, known, features, whole = joined
    found = features("order")
    n_seen = 0
    for i, row in enumerate(whole[-N_TEMPLATE:].itertuples()):
        own = whole[:-N_TEMPLATE]
        own = own[(own.UserId == row.UserId) & (own.QuizId == row.QuizId)]
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
                question = known.question[known.rows == row.Index]
                assert len(question) == 0
                if other.AnswerValue == row.CorrectAnswer:
                    assert option == 0
                else:
                    assert option in (1, 2, 3)
    assert n_seen > 50


def test_confidence(joined) -> None:  # type: ignore[no-untyped-def]
    _, _, features, whole = joined
    found = features("confidence")
    asked = whole[-N_TEMPLATE:]
    np.testing.assert_array_equal(found["confidence"], asked.Confidence)
    stated = whole.dropna(subset="Confidence")
    mean = stated.Confidence.mean()
    grouped = stated.groupby("UserId").Confidence.agg(["sum", "count"])
    usual = ((grouped["sum"] + 5 * mean) / (grouped["count"] + 5)).reindex(asked.UserId).to_numpy()
    np.testing.assert_allclose(found["usual_confidence"], usual, rtol=1e-5)
    np.testing.assert_allclose(found["confidence_above_usual"], asked.Confidence - usual, atol=1e-3)


def test_missing_circumstances_are_no_number(read: Read, world: World) -> None:
    frame = world.pop("answers")
    metadata = world.pop("ANSWER_METADATA_TASK_1_2")
    metadata = metadata.assign(QuizId=np.nan, DateAnswered="", Confidence=np.nan)
    pairs, answers = read(frame, N_TEMPLATE, ANSWER_METADATA_TASK_1_2=metadata)
    rows = np.arange(len(answers), len(pairs))
    found = table(pairs, know(pairs, answers), rows, ["quiz", "order", "time", "confidence"])
    for name, column in found.items():
        if name != "confidence_count":
            assert np.isnan(column).all(), name
