"""Every feature of the answers, counted by hand; no feature knows an answer's own outcome."""

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from common import layout
from common.adaptive.answered_mask import count_together
from common.answer_features import GROUPS, Known, Pairs, read_pairs, table, tables
from common.answer_features.asked import Asked
from common.answer_features.groups import rates_of
from common.answer_features.nearest_answers import visit_nearest
from common.answer_features.parts import split_answers
from common.answer_features.similar_questions import similar_questions

import numpy as np
import pandas as pd
import pytest
from conftest import answers_frame
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

Read = Callable[..., tuple[Pairs, Known]]
World = dict[str, pd.DataFrame]
N_TEMPLATE = 40
NEAREST = "common.answer_features.nearest_answers"
SIMILAR = "common.answer_features.similar_questions"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Read answers, the last ones as the template, with metadata given as frames."""

    def read_world(frame: pd.DataFrame, n_template: int, **files: pd.DataFrame) -> Any:
        for name, content in files.items():
            content.to_csv(tmp_path / getattr(layout, name), index=False)
        rows = frame.astype("i4").reset_index(drop=True)
        answers, template = rows[:-n_template], rows[-n_template:]
        pairs = read_pairs(answers, template, tmp_path)
        return pairs, Known(pairs, answers)

    return read_world


@pytest.fixture
def world(simulated_kit: Path) -> World:
    """Answers of two simulated classes, ten minutes rounded to one, and all metadata."""
    data = simulated_kit / "data"
    names = [f"{of}_METADATA_TASK_1_2" for of in ("ANSWER", "STUDENT", "QUESTION")]
    tables = {
        name: pd.read_csv(data / "metadata" / getattr(layout, name))
        for name in (*names, "SUBJECT_METADATA")
    }
    given = tables["ANSWER_METADATA_TASK_1_2"]
    given["DateAnswered"] = pd.to_datetime(given.DateAnswered).dt.floor("10min")
    answers = pd.read_csv(data / "train_data" / layout.TRAIN_TASK_1_2)
    answers = answers[answers.AnswerId.isin(given.AnswerId[given.GroupId < 2])]
    return {"answers": answers.reset_index(drop=True), **tables}


def features(pairs: Pairs, known: Known, *groups: str) -> pd.DataFrame:
    """Return the features of the template."""
    return table(pairs, known, np.arange(len(known.rows), len(pairs)), groups)


def test_rates(read: Read) -> None:
    """Student 5 is right, wrong, wrong, student 6 right once; asked: 6 the second question."""
    rows = [
        (5, 10, 1, 1, 1), (5, 11, 0, 4, 2), (5, 12, 0, 4, 2), (6, 10, 1, 1, 1), (6, 11, 0, 3, 2),
        (7, 13, 0, 3, 1),
    ]  # fmt: skip
    pairs, known = read(answers_frame(*np.transpose(rows)), 2)
    found = features(pairs, known, "rates")
    # Half of four known answers are right; a rate counts five more of these.
    assert found["question_rate"].tolist() == pytest.approx([2.5 / 6, 0.5])
    assert found["question_count"].tolist() == [1, 0]
    # Student 6 exceeds the rate 4.5 / 7 of the first question once; student 7 is not known.
    assert found["student_rate"].tolist() == pytest.approx([(1 - 4.5 / 7) / 6, 0])
    assert found["student_count"].tolist() == [1, 0]
    # A question that nobody answered has its options by popularity: 1 and 4 were chosen twice each.
    assert known.outcome_of_option[3].tolist() == [0, 2, 3, 1]


def test_distractors_tell_how_often_options_are_chosen_and_by_whom(read: Read) -> None:
    """Two wrong options are as popular: one half of the students prefers the first, and so on."""
    student, question = (a.ravel() for a in np.indices((40, 30)))
    rng = np.random.default_rng(0)
    prefers = np.where((question % 2 == 0) == (student % 2 == 0), 2, 3)
    option = np.where(rng.random(1200) < 0.2, 1, np.where(rng.random(1200) < 0.9, prefers, 4))
    frame = answers_frame(student, question, option == 1, option, np.ones(1200))
    frame = frame.sample(frac=1, random_state=0)
    pairs, known = read(frame, 100)
    found, asked = features(pairs, known, "distractors"), pairs.numbers["question"][-100:]
    for o in range(4):
        is_chosen = pd.Series(known.option == o + 1)
        chosen, overall = is_chosen.groupby(known.question).agg(["sum", "count"]), is_chosen.mean()
        share = (chosen["sum"] + 5 * overall) / (chosen["count"] + 5)
        outcome = known.outcome_of_option[asked, o]
        of_option = found.filter(like="share").to_numpy()[np.arange(100), outcome]
        assert_allclose(of_option, share[asked], atol=1e-5)
    own = prefers[frame.index][-100:]
    is_first = known.outcome_of_option[asked, own - 1] == 1
    assert found["distractor"][is_first].min() > found["distractor"][~is_first].max()


def test_subjects_are_those_of_the_tree_else_from_the_root_down(read: Read, world: World) -> None:
    """Here all questions have one branch of four; features by the tree are checked below."""
    answers, tree = world["answers"], world["SUBJECT_METADATA"]
    level = tree.set_index("SubjectId").Level
    lists = world["QUESTION_METADATA_TASK_1_2"].SubjectId.map(json.loads)
    branches = lists[lists.map(len) == 4].map(lambda own: str(sorted(own, key=level.get)))
    listed = branches.sample(100, replace=True, random_state=0)
    subjects = pd.DataFrame({"QuestionId": range(100), "SubjectId": listed.to_numpy()})
    without, by_tree = (
        features(*read(answers, 10, QUESTION_METADATA_TASK_1_2=subjects, **files), "subjects")
        for files in ({}, {"SUBJECT_METADATA": tree})
    )
    pd.testing.assert_frame_equal(without, by_tree)


def test_context_and_habits_are_those_of_the_same_quiz(read: Read) -> None:
    """Student 0 chooses option 3 only; asked are questions 0 and 6, both with option 1 right."""
    # Students answer one of two quizzes, the first two of them both.
    student, question = (a.ravel() for a in np.indices((30, 12)))
    kept = (question // 6 == student % 2) | (student < 2)
    student, question = student[kept], question[kept]
    key = 1 + question % 4
    option = np.random.default_rng(0).integers(1, 5, len(student))
    option[(student == 0) & (question < 6)] = 3
    order = np.argsort((student == 0) & np.isin(question, [0, 6]), kind="stable")
    frame = answers_frame(student, question, option == key, option, key)
    pairs, known = read(frame.iloc[order], 2)
    of_quiz, other = (row for _, row in features(pairs, known, "context", "habits").iterrows())
    outcome = int(known.outcome_of_option[0, 2])
    assert of_quiz[f"habit_15_{outcome}"] > 0.5
    assert sum(of_quiz[f"habit_15_{o}"] for o in range(4)) == pytest.approx(0, abs=1e-5)
    assert abs(other[f"habit_15_{int(known.outcome_of_option[6, 2])}"]) < 0.5
    # The four nearest answers chose the third option, too.
    assert [of_quiz[f"near_option_{nth}"] for nth in range(4)] == [outcome] * 4
    place = [of_quiz[f"place_{o}"] for o in range(4)]
    assert place == np.argsort(known.outcome_of_option[0]).tolist()
    # Means over the student's answers, weighted by powers of the similarity of the questions.
    own = known.student == 0
    nearness = np.zeros(pairs.n_questions)
    nearness[pairs.neighbours[0]] = pairs.similarity[0]
    for power, shrinkage in ((2, 2.0), (6, 1.0), (15, 0.5)):
        weight = nearness[known.question[own]] ** power
        assert of_quiz[f"nearness_{power}"] == pytest.approx(weight.sum(), rel=1e-4)
        mean = (weight * known.residual[own]).sum() / (weight.sum() + shrinkage)
        assert of_quiz[f"near_{power}"] == pytest.approx(mean, rel=1e-4)


def test_models_predict(read: Read, world: World) -> None:
    """The logit and the options agree with the key, where all students but one know it."""
    frame = world["answers"]
    frame["IsCorrect"] = (frame.UserId != frame.UserId[0]).astype(int)
    frame["AnswerValue"] = (frame.CorrectAnswer - frame.IsCorrect) % 4 + 1
    found = features(*read(frame.sort_values("IsCorrect"), 10), "model", "options")
    assert (found["model"] > 1).all()
    p = np.exp([found[f"model_{o}"] for o in range(4)])
    assert p.sum(axis=0) == pytest.approx(1, abs=1e-4)
    assert (p[0] > 0.6).all()


# ---- From the answer metadata -------------------------------------------------------------------


class Joined(NamedTuple):
    """Pairs, known answers, and all rows with their metadata."""

    pairs: Pairs
    known: Known
    whole: pd.DataFrame
    asked: pd.DataFrame  # The last of them.

    def features(self, *groups: str) -> pd.DataFrame:
        return features(self.pairs, self.known, *groups)


@pytest.fixture
def joined(read: Read, world: World) -> Joined:
    frame = world.pop("answers")
    pairs, known = read(frame, N_TEMPLATE, **world)
    whole = frame.merge(world["ANSWER_METADATA_TASK_1_2"], on="AnswerId")
    whole = whole.merge(world["STUDENT_METADATA_TASK_1_2"], on="UserId")
    whole["date"] = pd.to_datetime(whole.DateAnswered)
    whole["day"] = whole.date.dt.date
    ids = ["UserId", "QuestionId", "QuizId", "GroupId", "SchemeOfWorkId"]
    whole[["student", "question", "quiz", "group", "scheme"]] = whole[ids]
    lists = world["QUESTION_METADATA_TASK_1_2"].set_index("QuestionId").SubjectId
    subject = lists.map(json.loads).explode()
    level = subject.map(world["SUBJECT_METADATA"].set_index("SubjectId").Level)
    for n in (1, 2, 3):
        whole[f"subject_{n}"] = whole.QuestionId.map(subject[level == n].groupby(level=0).last())
    whole["residual"] = np.append(known.residual, np.full(N_TEMPLATE, np.nan))
    return Joined(pairs, known, whole, whole[-N_TEMPLATE:])


RATES = {
    "quiz": "student_quiz question_quiz quiz",
    "classes": "group question_group group_quiz scheme question_scheme",
    "time": "student_day",
    "subjects": "student_subject_1 student_subject_2 student_subject_3",
}


@pytest.mark.parametrize("group", RATES)
def test_rates_of_groups(joined: Joined, group: str) -> None:
    """The smoothed rate and the count of each template row, by pandas."""
    found = joined.features(group)
    for name in RATES[group].split():
        keys = re.findall(r"subject_\d|[a-z]+", name)
        grouped = joined.whole[:-N_TEMPLATE].groupby(keys).residual.agg(["sum", "count"])
        expected = joined.asked[keys].merge(grouped.reset_index(), how="left", on=keys)
        is_known = joined.asked[keys].notna().all(axis=1).to_numpy()
        count = expected["count"].fillna(0).where(is_known)
        rate = (expected["sum"].fillna(0) / (count + 5)).where(is_known)
        assert_allclose(found[f"{name}_rate"], rate, atol=1e-5)
        assert_array_equal(found[f"{name}_count"], count)


def test_students_and_time(joined: Joined) -> None:
    found, whole, asked = joined.features("students", "time"), joined.whole, joined.asked
    birth = pd.to_datetime(asked.DateOfBirth)
    for name, date in (("age", pd.Timestamp("2019-01-01")), ("age_then", asked.date)):
        assert_allclose(found[name], (date - birth) / pd.Timedelta(365.25, "D"), rtol=1e-5)
    assert_array_equal(found["gender"], asked.Gender)
    assert_array_equal(found["premium"], asked.PremiumPupil)
    hour = asked.date.dt.hour + asked.date.dt.minute / 60
    assert found["hour"].tolist() == pytest.approx(hour.tolist())
    assert found["weekday"].tolist() == asked.date.dt.day_of_week.tolist()
    for i, row in enumerate(asked.itertuples()):
        own = whole[whole.UserId == row.UserId]
        earlier = own.date[own.date < row.date]
        assert found["place_in_quiz"][i] == len(earlier[own.QuizId == row.QuizId])
        gap = (row.date - earlier.max()) / pd.Timedelta(1, "min") if len(earlier) else np.nan
        assert found["gap"][i] == pytest.approx(gap, nan_ok=True)


def test_size_of_the_quiz_and_habits_in_it(joined: Joined) -> None:
    """The template counts for the size, of course not for the habits."""
    pairs, known, whole, _ = joined
    found = joined.features("quiz")
    size = whole.groupby(["UserId", "QuizId"]).AnswerId.transform("count")
    assert_array_equal(found["quiz_size"], size[-N_TEMPLATE:])
    first = joined.asked.iloc[0]
    own = (whole.UserId == first.UserId) & (whole.QuizId == first.QuizId)
    own = own[:-N_TEMPLATE].to_numpy()
    for option in range(4):
        excess = (known.option[own] == option + 1) - known.option_share[known.question[own], option]
        outcome = known.outcome_of_option[pairs.numbers["question"][-N_TEMPLATE], option]
        expected = excess.sum() / (own.sum() + 5)
        assert found[f"quiz_habit_{outcome}"][0] == pytest.approx(expected, abs=1e-5)


def test_order_is_that_of_the_minutes_within_the_quiz(joined: Joined) -> None:
    found, known = joined.features("order"), joined.whole[:-N_TEMPLATE]
    for (i, row), nth in itertools.product(enumerate(joined.asked.itertuples()), (1, 2)):
        own = known[(known.UserId == row.UserId) & (known.QuizId == row.QuizId)]
        own = own.sort_values("date", kind="stable")
        before, after = own[own.date < row.date][::-1], own[own.date >= row.date]
        for name, others in (("before", before), ("after", after)):
            value, option = found[f"{name}_{nth}"][i], found[f"{name}_{nth}_option"][i]
            if len(others) < nth:
                assert np.isnan(value) and np.isnan(option)
                continue
            other = others.iloc[nth - 1]
            # Answers of the same minute have no order.
            if (others.date == other.date).sum() == 1:
                assert value == pytest.approx(other.residual)
                assert (option == 0) == (other.AnswerValue == row.CorrectAnswer)
                assert option in range(4)


def test_confidence(joined: Joined) -> None:
    found, asked = joined.features("confidence"), joined.asked
    assert_array_equal(found["confidence"], asked.Confidence)
    stated = joined.whole.dropna(subset="Confidence")
    grouped = stated.groupby("UserId").Confidence.agg(["sum", "count"]).reindex(asked.UserId)
    usual = (grouped["sum"] + 5 * stated.Confidence.mean()) / (grouped["count"] + 5)
    assert_allclose(found["usual_confidence"], usual, rtol=1e-5)
    above = asked.Confidence.to_numpy() - usual.to_numpy()
    assert_allclose(found["confidence_above_usual"], above, atol=1e-3)
    assert_array_equal(found["confidence_count"], grouped["count"].fillna(0))


def test_missing_circumstances_are_no_number(read: Read, world: World, tmp_path: Path) -> None:
    metadata = world["ANSWER_METADATA_TASK_1_2"]
    metadata = metadata.assign(QuizId=np.nan, DateAnswered="", Confidence=np.nan)
    pairs, known = read(world["answers"], N_TEMPLATE, ANSWER_METADATA_TASK_1_2=metadata)
    found = features(pairs, known, "quiz", "order", "time", "confidence")
    assert found.drop(columns="confidence_count").isna().all(axis=None)
    # Without the ids of what is to be predicted none are known.
    answers = world["answers"]
    assert read_pairs(answers, answers[["UserId", "QuestionId"]], tmp_path).circumstances is None


# ---- Similar questions and the answers to them, against plain loops -----------------------------


@pytest.mark.parametrize("seed", range(50))
def test_nearest_answers_are_those_to_the_most_similar_questions(seed: int) -> None:
    """Of the same student; similar is what the same students, all or some, answered."""
    rng = np.random.default_rng(seed)
    n_questions, n_nearest, n_neighbours = rng.integers(1, (11, 7, 10)).tolist()
    max_cells, max_products = int(rng.choice([1, 30, 200, 10**6])), int(rng.choice([200, 10**9]))
    mask = rng.random((20, n_questions)) < 0.5
    pairs = rng.permutation(np.argwhere(mask).astype(np.int32)).T
    known, asked = np.array_split(pairs, 2, axis=1)
    place = {pair: i for i, pair in enumerate(zip(*known.tolist(), strict=True))}
    parts: list[Any] = []
    limits = {"_MAX_PRODUCTS": max_products, "_BLOCK": 4, "_N_NEIGHBOURS": n_neighbours}
    with patch.multiple(NEAREST, _MAX_CELLS=max_cells), patch.multiple(SIMILAR, **limits):
        neighbours, similarity = similar = similar_questions(*pairs, 20, n_questions)
        both = tuple(known), tuple(asked)
        visit_nearest(*both, 20, *similar, n_nearest, lambda *part: parts.append(part))
        rows, *found = (np.concatenate(column) for column in zip(*parts, strict=True))
    k = min(n_neighbours, n_questions - 1)
    drawn = np.random.default_rng(0).permutation(20)
    drawn = drawn[np.cumsum(mask.sum(axis=1)[drawn] ** 2) <= max_products]
    cosine = count_together(mask[drawn].astype("f"))[1]
    np.fill_diagonal(cosine, -1)
    for expected in (np.take_along_axis(cosine, neighbours, 1), -np.sort(-cosine, axis=1)[:, :k]):
        assert_allclose(similarity, expected, rtol=1e-6)
    assert all(len({*row, i}) == k + 1 for i, row in enumerate(neighbours.tolist()))
    assert sorted(rows) == list(range(len(asked[0])))
    for student, question, *own in zip(*asked[:, rows].tolist(), *found, strict=True):
        others = zip(neighbours[question].tolist(), similarity[question], strict=True)
        expected = [
            (place[student, other], value) for other, value in others if (student, other) in place
        ]
        expected += [(-1, 0.0)] * n_nearest
        assert list(zip(*own, strict=True)) == expected[: min(n_nearest, k)]


# ---- Nothing of a training answer's own outcome -------------------------------------------------


def change(answers: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Return the answers with another option chosen in some rows."""
    option = answers["AnswerValue"].where(~rows, answers["AnswerValue"] % 4 + 1)
    is_correct = (option == answers["CorrectAnswer"]).astype(np.int8)
    return answers.assign(AnswerValue=option, IsCorrect=is_correct)


@pytest.mark.parametrize("group", GROUPS)
def test_other_outcomes_same_features(joined: Joined, group: str) -> None:
    """Whatever the outcomes that are held out, no feature of theirs changes."""
    pairs, answers = joined.pairs, joined.whole[:-N_TEMPLATE]
    held_out = np.random.default_rng(1).random(len(answers)) < 0.2
    rows = np.flatnonzero(held_out)
    first, second = (
        table(pairs, Known(pairs, outcomes, held_out), rows, [group])
        for outcomes in (answers, change(answers, held_out))
    )
    assert set(first.dtypes) == {np.dtype(np.float32)} and len(first) == len(rows)
    pd.testing.assert_frame_equal(first, second, check_exact=True)


@pytest.mark.parametrize(
    ("max_held_out", "n_held_out"), [(125_000, 10), (1_000, 2), (300, 1), (30, 1)]
)
def test_models_of_a_part_do_not_begin_with_its_outcomes(
    joined: Joined, monkeypatch: pytest.MonkeyPatch, max_held_out: int, n_held_out: int
) -> None:
    """Other outcomes of a part change no feature of it, although they do those of the others."""
    pairs, answers = joined.pairs, joined.whole[:-N_TEMPLATE]
    monkeypatch.setattr("common.answer_features.parts._MAX_HELD_OUT", max_held_out)
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
        assert np.flatnonzero(same).tolist() == ([0, 1] if max_held_out == 30 else [number])


def test_random_labels_score_at_chance_and_a_leak_is_caught(joined: Joined) -> None:
    pairs, answers = joined.pairs, joined.whole[:-N_TEMPLATE]
    right = np.random.default_rng(2).integers(0, 2, len(answers)).astype(np.int8)
    answers = answers[["UserId", "QuestionId"]].assign(IsCorrect=right)
    *parts, _ = tables(pairs, answers, ["model", "rates", "context", "quiz", "order"], seed=0)
    rows = np.concatenate([part.rows for part in parts])
    y, is_even = right[rows], pairs.numbers["student"][rows] % 2 == 0

    def score(x: pd.DataFrame) -> float:
        """Return the accuracy on all answers, by trees that learned from the other students'."""
        is_hit = np.empty(len(y), bool)
        for asked in (is_even, ~is_even):
            trees = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0)
            is_hit[asked] = trees.fit(x[~asked], y[~asked]).predict(x[asked]) == y[asked]
        return float(is_hit.mean())

    honest = pd.concat([part.table for part in parts])
    # Four standard errors of a share of one half: some 2,200 answers make that 0.043.
    assert abs(score(honest) - 0.5) < 4 * 0.5 / np.sqrt(len(y)) < 0.05
    # A model that begins with what one of all answers has learned knows their outcomes. The
    # standard error of an AUC without any information is 1 / √(3 n) if half of n answers are right.
    assert abs(roc_auc_score(y, honest["model"]) - 0.5) < 4 / np.sqrt(3 * len(y)) < 0.055
    # Rates among all answers, the row's own outcome included.
    leak = pd.DataFrame(rates_of(Asked(pairs, Known(pairs, answers), rows), [("student", "quiz")]))
    assert score(leak) > 0.6


def test_parts_held_out_are_a_tenth_or_a_fifth_or_less_and_each_answer_is_in_one() -> None:
    """Of many answers fewer are held out: as many as are enough."""
    for n_answers, n_parts, n_held_out in ((1003, 10, 10), (200_000, 5, 3), (4_000_000, 32, 1)):
        split = split_answers(n_answers, 0)
        part = split.part
        assert (split.n_parts, split.n_held_out) == (n_parts, n_held_out)
        assert {*np.bincount(part)} <= {n_answers // n_parts, n_answers // n_parts + 1}
        assert len(part) == n_answers and (part < n_held_out).sum() <= 125_000
    assert (split_answers(1003, 0).part != split_answers(1003, 1).part).any()
