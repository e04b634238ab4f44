"""Features of answers equal plain counts, and none depends on the outcome of its own answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from common import layout
from common.adaptive.answered_mask import count_together
from common.answer_features import GROUPS, Known, Pairs, read_pairs, table, tables
from common.answer_features.asked import Asked
from common.answer_features.groups import rates_of
from common.answer_features.nearest_answers import visit_nearest
from common.answer_features.parts import cut_into_parts
from common.answer_features.similar_questions import similar_questions

import numpy as np
import pandas as pd
import pytest
from conftest import answers_frame
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

Read = Callable[..., tuple[Pairs, Known]]
# Number of pairs to predict in the tests with metadata.
N_TEMPLATE = 40
NEAREST = "common.answer_features.nearest_answers"
SIMILAR = "common.answer_features.similar_questions"


@dataclass
class World:
    """Answers, and tables of metadata.

    Each key of `metadata` is the name of the constant in `layout` that holds the file's name.
    """

    answers: pd.DataFrame
    metadata: dict[str, pd.DataFrame]


def read_world(
    folder: Path, answers: pd.DataFrame, n_template: int, **metadata: pd.DataFrame
) -> tuple[Pairs, Known]:
    """Write metadata to a folder, and read answers with them.

    The last `n_template` answers are the pairs to predict.
    """
    for name, content in metadata.items():
        content.to_csv(folder / getattr(layout, name), index=False)
    rows = answers.astype("i4").reset_index(drop=True)
    train = rows[:-n_template]
    pairs = read_pairs(train, rows[-n_template:], folder)
    return pairs, Known(pairs, train)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return `read_world` with a folder of its own."""
    return partial(read_world, tmp_path)


def load_world(kit: Path) -> World:
    """Load the answers of two simulated classes, with all metadata.

    Dates are rounded down to ten minutes, so that some answers have the same date.
    """
    metadata = {
        name: pd.read_csv(kit / "data/metadata" / getattr(layout, name))
        for name in (
            "ANSWER_METADATA_TASK_1_2",
            "STUDENT_METADATA_TASK_1_2",
            "QUESTION_METADATA_TASK_1_2",
            "SUBJECT_METADATA",
        )
    }
    of_answers = metadata["ANSWER_METADATA_TASK_1_2"]
    of_answers["DateAnswered"] = pd.to_datetime(of_answers.DateAnswered).dt.floor("10min")
    answers = pd.read_csv(kit / "data/train_data" / layout.TRAIN_TASK_1_2)
    is_of_two_classes = answers.AnswerId.isin(of_answers.AnswerId[of_answers.GroupId < 2])
    return World(answers[is_of_two_classes].reset_index(drop=True), metadata)


@pytest.fixture
def world(simulated_kit: Path) -> World:
    return load_world(simulated_kit)


def template_features(pairs: Pairs, known: Known, *groups: str) -> pd.DataFrame:
    """Return features of the pairs to predict."""
    return table(pairs, known, np.arange(len(known.rows), len(pairs)), groups)


# ---- From the answers alone ---------------------------------------------------------------------


@pytest.fixture
def few_answers(read: Read) -> tuple[Pairs, Known]:
    """Four training answers, two of which are right; two pairs to predict."""
    rows = [
        # Student, question, right or wrong, chosen option, right option.
        (5, 10, 1, 1, 1),
        (5, 11, 0, 4, 2),
        (5, 12, 0, 4, 2),
        (6, 10, 1, 1, 1),
        # To predict. Student 7 and question 13 have no answers.
        (6, 11, 0, 3, 2),
        (7, 13, 0, 3, 1),
    ]
    return read(answers_frame(*np.transpose(rows)), 2)


def test_rates_of_questions_by_hand(few_answers: tuple[Pairs, Known]) -> None:
    """The rate is (n_right + 5 · overall share) / (n + 5), with an overall share of 0.5."""
    rates = template_features(*few_answers, "rates")
    assert rates["question_rate"].tolist() == pytest.approx([2.5 / 6, 0.5])
    assert rates["question_count"].tolist() == [1, 0]


def test_rates_of_students_by_hand(few_answers: tuple[Pairs, Known]) -> None:
    """The rate is Σ (outcome − rate of the question) / (n + 5) over the student's n answers."""
    rates = template_features(*few_answers, "rates")
    # Student 6 has answered question 10, whose rate is (2 + 2.5) / 7.
    assert rates["student_rate"].tolist() == pytest.approx([(1 - 4.5 / 7) / 6, 0])
    assert rates["student_count"].tolist() == [1, 0]


def test_options_of_a_question_without_answers_are_ranked_by_their_popularity(
    few_answers: tuple[Pairs, Known],
) -> None:
    _, known = few_answers
    # Of all answers, two chose option 1, two option 4, and none option 2 or 3. Options that were
    # chosen equally often keep their order.
    number_of_question_13 = 3
    assert known.outcome_of_option[number_of_question_13].tolist() == [0, 2, 3, 1]


@dataclass(frozen=True)
class Distractors:
    """Answers to questions with equally popular distractors, and features of 100 pairs to predict.

    Distractors are wrong options. Option 1 of each question is right.
    """

    known: Known
    # Features of the pairs to predict, and the numbers of their questions.
    found: pd.DataFrame
    question: np.ndarray
    # The wrong option that the student of each pair prefers, 2 or 3.
    preferred: np.ndarray


@pytest.fixture
def distractors(read: Read) -> Distractors:
    """Plant two distractors, options 2 and 3, that are equally popular.

    To questions of even numbers, students of even numbers prefer option 2 and all others option 3;
    to questions of odd numbers it is the other way round.
    """
    student, question = (index.ravel() for index in np.indices((40, 30)))
    rng = np.random.default_rng(0)
    preferred = np.where((question % 2 == 0) == (student % 2 == 0), 2, 3)
    is_right = rng.random(1200) < 0.2
    takes_preferred = rng.random(1200) < 0.9
    option = np.where(is_right, 1, np.where(takes_preferred, preferred, 4))
    frame = answers_frame(student, question, option == 1, option, np.ones(1200))
    # The last 100 of the shuffled rows are the pairs to predict.
    frame = frame.sample(frac=1, random_state=0)
    pairs, known = read(frame, 100)
    return Distractors(
        known=known,
        found=template_features(pairs, known, "distractors"),
        question=pairs.numbers["question"][-100:],
        preferred=preferred[frame.index][-100:],
    )


@pytest.mark.parametrize("option", [1, 2, 3, 4])
def test_distractors_tell_how_often_an_option_is_chosen(
    distractors: Distractors, option: int
) -> None:
    known = distractors.known
    is_chosen = pd.Series(known.option == option)
    by_question = is_chosen.groupby(known.question).agg(["sum", "count"])
    # Shrunk towards the option's share of all answers, with the weight of five answers.
    share = (by_question["sum"] + 5 * is_chosen.mean()) / (by_question["count"] + 5)
    # There is a column of shares for each rank of an option; rank 0 is the right option.
    rank = known.outcome_of_option[distractors.question, option - 1]
    shares = distractors.found.filter(like="share").to_numpy()[np.arange(100), rank]
    assert_allclose(shares, share[distractors.question], atol=1e-5)


def test_distractors_tell_which_of_two_a_student_prefers(distractors: Distractors) -> None:
    rank = distractors.known.outcome_of_option[distractors.question, distractors.preferred - 1]
    prefers_first = rank == 1
    value = distractors.found["distractor"]
    assert value[prefers_first].min() > value[~prefers_first].max()


def test_subjects_are_those_of_the_tree_or_else_those_from_the_root_down(
    read: Read, world: World
) -> None:
    """With a tree, subjects are found by their level; without one, by their position in the list.

    The features are the same if each question has a single branch of four subjects, from the root
    down, as here.
    """
    tree = world.metadata["SUBJECT_METADATA"]
    level = tree.set_index("SubjectId").Level
    lists = world.metadata["QUESTION_METADATA_TASK_1_2"].SubjectId.map(json.loads)
    # Each of 100 questions gets the branch of a random question, as text, from the root down.
    branches = lists[lists.map(len) == 4].map(lambda branch: str(sorted(branch, key=level.get)))
    drawn = branches.sample(100, replace=True, random_state=0)
    subjects = pd.DataFrame({"QuestionId": range(100), "SubjectId": drawn.to_numpy()})

    def find_features(**tree: pd.DataFrame) -> pd.DataFrame:
        pairs, known = read(world.answers, 10, QUESTION_METADATA_TASK_1_2=subjects, **tree)
        return template_features(pairs, known, "subjects")

    without_tree = find_features()
    with_tree = find_features(SUBJECT_METADATA=tree)
    pd.testing.assert_frame_equal(without_tree, with_tree)


@dataclass(frozen=True)
class TwoQuizzes:
    """Answers in two quizzes, questions 0 to 5 and 6 to 11, and features of two pairs.

    Both pairs are of student 0, who has answered both quizzes, and has always chosen option 3 in
    the first one. The pairs are questions 0 and 6; the right option of question 0 is option 1.
    """

    pairs: Pairs
    known: Known
    first: pd.Series
    second: pd.Series

    @property
    def third_option(self) -> int:
        """Rank of option 3 at question 0; the right option has rank 0."""
        return int(self.known.outcome_of_option[0, 2])


@pytest.fixture
def two_quizzes(read: Read) -> TwoQuizzes:
    student, question = (index.ravel() for index in np.indices((30, 12)))
    # Students 0 and 1 answer both quizzes, and all others one.
    quiz = question // 6
    is_answered = (quiz == student % 2) | (student < 2)
    student = student[is_answered]
    question = question[is_answered]
    right_option = 1 + question % 4
    option = np.random.default_rng(0).integers(1, 5, len(student))
    option[(student == 0) & (question < 6)] = 3
    is_asked = (student == 0) & np.isin(question, [0, 6])
    frame = answers_frame(student, question, option == right_option, option, right_option)
    # The two asked pairs come last, where the template is.
    frame = pd.concat([frame[~is_asked], frame[is_asked]])
    pairs, known = read(frame, 2)
    found = template_features(pairs, known, "context", "habits")
    return TwoQuizzes(pairs, known, found.iloc[0], found.iloc[1])


def test_habits_are_those_of_the_same_quiz(two_quizzes: TwoQuizzes) -> None:
    first = two_quizzes.first
    assert first[f"habit_15_{two_quizzes.third_option}"] > 0.5
    assert sum(first[f"habit_15_{option}"] for option in range(4)) == pytest.approx(0, abs=1e-5)
    third_option_of_second = int(two_quizzes.known.outcome_of_option[6, 2])
    assert abs(two_quizzes.second[f"habit_15_{third_option_of_second}"]) < 0.5


def test_the_nearest_answers_tell_their_options(two_quizzes: TwoQuizzes) -> None:
    nearest = [two_quizzes.first[f"near_option_{nth}"] for nth in range(4)]
    assert nearest == [two_quizzes.third_option] * 4


def test_places_of_options_are_told(two_quizzes: TwoQuizzes) -> None:
    places = [two_quizzes.first[f"place_{option}"] for option in range(4)]
    assert places == np.argsort(two_quizzes.known.outcome_of_option[0]).tolist()


@pytest.mark.parametrize(("power", "shrinkage"), [(2, 2.0), (6, 1.0), (15, 0.5)])
def test_means_of_a_student_s_answers_are_weighted_by_powers_of_similarity(
    two_quizzes: TwoQuizzes, power: int, shrinkage: float
) -> None:
    """Sums are over the student's answers, with their similarity s and residual r.

    nearness_p = Σ sᵖ and near_p = Σ sᵖ r / (Σ sᵖ + shrinkage).
    """
    pairs = two_quizzes.pairs
    known = two_quizzes.known
    is_own = known.student == 0
    nearness = np.zeros(pairs.n_questions)
    nearness[pairs.neighbours[0]] = pairs.similarity[0]
    weight = nearness[known.question[is_own]] ** power
    assert two_quizzes.first[f"nearness_{power}"] == pytest.approx(weight.sum(), rel=1e-4)
    mean = (weight * known.residual[is_own]).sum() / (weight.sum() + shrinkage)
    assert two_quizzes.first[f"near_{power}"] == pytest.approx(mean, rel=1e-4)


def test_models_know_where_students_know_the_right_option(read: Read, world: World) -> None:
    frame = world.answers
    # All students but one choose every right option. The answers of that student, all wrong, are
    # sorted to the front, so that the pairs to predict, which come last, are of the other students.
    frame["IsCorrect"] = (frame.UserId != frame.UserId[0]).astype(int)
    frame["AnswerValue"] = (frame.CorrectAnswer - frame.IsCorrect) % 4 + 1
    found = template_features(*read(frame.sort_values("IsCorrect"), 10), "model", "options")
    # The logit of a right answer.
    assert (found["model"] > 1).all()
    # The logarithms of the probabilities of options; the right one has number 0.
    p = np.exp([found[f"model_{option}"] for option in range(4)])
    assert p.sum(axis=0) == pytest.approx(1, abs=1e-4)
    assert (p[0] > 0.6).all()


# ---- From the answer metadata -------------------------------------------------------------------


@dataclass(frozen=True)
class Joined:
    """The pairs as the kit reads them, and for comparison the rows that pandas joins."""

    pairs: Pairs
    known: Known
    # The training answers, then the pairs to predict, with their metadata.
    rows: pd.DataFrame

    @property
    def asked(self) -> pd.DataFrame:
        """The rows to predict, which are the last ones."""
        return self.rows[-N_TEMPLATE:]

    @property
    def train(self) -> pd.DataFrame:
        """The rows of the training answers."""
        return self.rows[:-N_TEMPLATE]

    def features(self, *groups: str) -> pd.DataFrame:
        """Return features of the rows to predict."""
        return template_features(self.pairs, self.known, *groups)


@pytest.fixture(scope="module")
def joined(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Joined:
    """Return the data of two classes. Tests share them and must not change them."""
    world = load_world(simulated_kit)
    folder = tmp_path_factory.mktemp("joined")
    pairs, known = read_world(folder, world.answers, N_TEMPLATE, **world.metadata)
    rows = world.answers.merge(world.metadata["ANSWER_METADATA_TASK_1_2"], on="AnswerId")
    rows = rows.merge(world.metadata["STUDENT_METADATA_TASK_1_2"], on="UserId")
    rows["date"] = pd.to_datetime(rows.DateAnswered)
    # Columns named as in the names of features.
    rows["day"] = rows.date.dt.date
    rows["student"] = rows.UserId
    rows["question"] = rows.QuestionId
    rows["quiz"] = rows.QuizId
    rows["group"] = rows.GroupId
    rows["scheme"] = rows.SchemeOfWorkId
    questions = world.metadata["QUESTION_METADATA_TASK_1_2"].set_index("QuestionId")
    subject = questions.SubjectId.map(json.loads).explode()
    level = subject.map(world.metadata["SUBJECT_METADATA"].set_index("SubjectId").Level)
    for n in (1, 2, 3):
        # If a question has several subjects of a level, the kit takes the last one.
        last_of_level = subject[level == n].groupby(level=0).last()
        rows[f"subject_{n}"] = rows.QuestionId.map(last_of_level)
    rows["residual"] = np.append(known.residual, np.full(N_TEMPLATE, np.nan))
    return Joined(pairs, known, rows)


# Rates by group of features. The rate with columns a and b, which is called a_b, is that of all
# training answers with the same values in both columns.
RATES = {
    "quiz": [("student", "quiz"), ("question", "quiz"), ("quiz",)],
    "classes": [
        ("group",),
        ("question", "group"),
        ("group", "quiz"),
        ("scheme",),
        ("question", "scheme"),
    ],
    "time": [("student", "day")],
    "subjects": [("student", "subject_1"), ("student", "subject_2"), ("student", "subject_3")],
}


@pytest.mark.parametrize("group", RATES)
def test_rates_of_groups_are_those_that_pandas_counts(joined: Joined, group: str) -> None:
    """A rate is (sum of residuals) / (count + 5). It is NaN if one of its columns is missing."""
    found = joined.features(group)
    for columns in map(list, RATES[group]):
        name = "_".join(columns)
        of_groups = joined.train.groupby(columns).residual.agg(["sum", "count"])
        expected = joined.asked[columns].merge(of_groups.reset_index(), how="left", on=columns)
        is_known = joined.asked[columns].notna().all(axis=1).to_numpy()
        count = expected["count"].fillna(0).where(is_known)
        rate = (expected["sum"].fillna(0) / (count + 5)).where(is_known)
        assert_allclose(found[f"{name}_rate"], rate, atol=1e-5, err_msg=name)
        assert_array_equal(found[f"{name}_count"], count, err_msg=name)


def test_students_have_their_age_gender_and_premium(joined: Joined) -> None:
    found = joined.features("students", "time")
    birth = pd.to_datetime(joined.asked.DateOfBirth)
    for name, date in (("age", pd.Timestamp("2019-01-01")), ("age_then", joined.asked.date)):
        years = (date - birth) / pd.Timedelta(365.25, "D")
        assert_allclose(found[name], years, rtol=1e-5, err_msg=name)
    assert_array_equal(found["gender"], joined.asked.Gender)
    assert_array_equal(found["premium"], joined.asked.PremiumPupil)


def test_an_answer_has_its_hour_and_weekday(joined: Joined) -> None:
    found = joined.features("time")
    date = joined.asked.date.dt
    assert found["hour"].tolist() == pytest.approx((date.hour + date.minute / 60).tolist())
    assert found["weekday"].tolist() == date.day_of_week.tolist()


def test_an_answer_has_its_place_in_the_quiz_and_the_minutes_since_the_last_answer(
    joined: Joined,
) -> None:
    found = joined.features("time")
    for i, row in enumerate(joined.asked.itertuples()):
        own = joined.rows[joined.rows.UserId == row.UserId]
        earlier = own.date[own.date < row.date]
        assert found["place_in_quiz"][i] == len(earlier[own.QuizId == row.QuizId])
        gap = (row.date - earlier.max()) / pd.Timedelta(1, "min") if len(earlier) else np.nan
        assert found["gap"][i] == pytest.approx(gap, nan_ok=True)


def test_the_size_of_a_quiz_counts_the_pairs_to_predict_too(joined: Joined) -> None:
    found = joined.features("quiz")
    size = joined.rows.groupby(["UserId", "QuizId"]).AnswerId.transform("count")
    assert_array_equal(found["quiz_size"], size[-N_TEMPLATE:])


@pytest.mark.parametrize("option", [1, 2, 3, 4])
def test_habits_in_a_quiz_are_the_mean_excess_over_the_shares_of_options(
    joined: Joined, option: int
) -> None:
    """A habit is Σ (is the option − share of the option at the question) / (n + 5).

    The sum is over the student's n answers in the quiz. Only the first pair to predict is checked.
    """
    found = joined.features("quiz")
    known = joined.known
    first = joined.asked.iloc[0]
    is_own = (joined.train.UserId == first.UserId) & (joined.train.QuizId == first.QuizId)
    own = is_own.to_numpy()
    share = known.option_share[known.question[own], option - 1]
    excess = (known.option[own] == option) - share
    rank = known.outcome_of_option[joined.pairs.numbers["question"][-N_TEMPLATE], option - 1]
    expected = excess.sum() / (own.sum() + 5)
    assert found[f"quiz_habit_{rank}"][0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("nth", [1, 2])
def test_order_tells_the_nth_answer_before_and_after_in_the_same_quiz(
    joined: Joined, nth: int
) -> None:
    found = joined.features("order")
    train = joined.train
    for i, row in enumerate(joined.asked.itertuples()):
        own = train[(train.UserId == row.UserId) & (train.QuizId == row.QuizId)]
        own = own.sort_values("date", kind="stable")
        before = own[own.date < row.date][::-1]
        after = own[own.date >= row.date]
        for name, others in (("before", before), ("after", after)):
            residual = found[f"{name}_{nth}"][i]
            option = found[f"{name}_{nth}_option"][i]
            if len(others) < nth:
                assert np.isnan(residual)
                assert np.isnan(option)
                continue
            other = others.iloc[nth - 1]
            # Answers of the same date have no order.
            if (others.date == other.date).sum() == 1:
                assert residual == pytest.approx(other.residual)
                # A rank among the options of the asked question: 0 is its right option.
                assert (option == 0) == (other.AnswerValue == row.CorrectAnswer)
                assert option in range(4)


def test_confidence_is_compared_with_the_student_s_usual_one(joined: Joined) -> None:
    found = joined.features("confidence")
    asked = joined.asked
    assert_array_equal(found["confidence"], asked.Confidence)
    stated = joined.rows.dropna(subset="Confidence")
    of_students = stated.groupby("UserId").Confidence.agg(["sum", "count"]).reindex(asked.UserId)
    # Shrunk towards the mean of all answers, with the weight of five answers.
    usual = (of_students["sum"] + 5 * stated.Confidence.mean()) / (of_students["count"] + 5)
    assert_allclose(found["usual_confidence"], usual, rtol=1e-5)
    above = asked.Confidence.to_numpy() - usual.to_numpy()
    assert_allclose(found["confidence_above_usual"], above, atol=1e-3)
    assert_array_equal(found["confidence_count"], of_students["count"].fillna(0))


def test_features_of_missing_circumstances_are_nan(read: Read, world: World) -> None:
    metadata = world.metadata["ANSWER_METADATA_TASK_1_2"]
    metadata = metadata.assign(QuizId=np.nan, DateAnswered="", Confidence=np.nan)
    pairs, known = read(world.answers, N_TEMPLATE, ANSWER_METADATA_TASK_1_2=metadata)
    found = template_features(pairs, known, "quiz", "order", "time", "confidence")
    assert found.drop(columns="confidence_count").isna().all(axis=None)


def test_a_template_without_answer_ids_has_no_circumstances(
    read: Read, world: World, tmp_path: Path
) -> None:
    # Writes the metadata.
    read(world.answers, N_TEMPLATE, **world.metadata)
    template = world.answers[["UserId", "QuestionId"]]
    assert read_pairs(world.answers, template, tmp_path).circumstances is None


# ---- Similar questions and nearest answers equal those that plain loops find --------------------


@dataclass(frozen=True)
class Nearest:
    """Random pairs, known answers and pairs to predict, with what the functions find for them."""

    # Whether a student has a known answer or a pair to predict, shape (students, questions).
    has_pair: np.ndarray
    # Students and questions of the known answers and of the pairs to predict, shape (2, pairs).
    known: np.ndarray
    asked: np.ndarray
    n_nearest: int
    # Number of similar questions of each question.
    n_neighbours: int
    # Limit on Σ n² over the students by whom questions are compared, who have n pairs each. Beyond
    # the limit, only some students count.
    max_products: int
    # Similar questions of each question, and their similarity, shape (questions, neighbours).
    neighbours: np.ndarray
    similarity: np.ndarray
    # Positions in `asked`, in the order in which `visit_nearest` has passed on these pairs.
    rows: np.ndarray
    # The nearest known answers of each of these pairs, and the similarity of their questions, shape
    # (rows, nearest).
    answers: np.ndarray
    answer_similarity: np.ndarray


@pytest.fixture(scope="module", params=range(50))
def nearest(request: pytest.FixtureRequest) -> Nearest:
    """Find nearest answers in parts, whose size is a random limit on memory."""
    rng = np.random.default_rng(request.param)
    n_questions, n_nearest, n_neighbours = rng.integers(1, (11, 7, 10)).tolist()
    max_cells = int(rng.choice([1, 30, 200, 10**6]))
    max_products = int(rng.choice([200, 10**9]))
    has_pair = rng.random((20, n_questions)) < 0.5
    pairs = rng.permutation(np.argwhere(has_pair).astype(np.int32)).T
    known, asked = np.array_split(pairs, 2, axis=1)
    parts: list[Any] = []
    # Small limits, so that the work is cut into many parts.
    limits = {"_N_NEIGHBOURS": n_neighbours, "_MAX_PRODUCTS": max_products, "_BLOCK": 4}
    with patch.multiple(NEAREST, _MAX_CELLS=max_cells), patch.multiple(SIMILAR, **limits):
        similar = similar_questions(*pairs, 20, n_questions)
        visit_nearest(
            tuple(known),
            tuple(asked),
            20,
            *similar,
            n_nearest,
            lambda *part: parts.append(part),
        )
    rows, answers, answer_similarity = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    neighbours, similarity = similar
    return Nearest(
        has_pair=has_pair,
        known=known,
        asked=asked,
        n_nearest=n_nearest,
        n_neighbours=min(n_neighbours, n_questions - 1),
        max_products=max_products,
        neighbours=neighbours,
        similarity=similarity,
        rows=rows,
        answers=answers,
        answer_similarity=answer_similarity,
    )


def test_similar_questions_are_those_that_the_same_students_answered(nearest: Nearest) -> None:
    """Questions are compared by the cosine of who has a pair with them.

    Students count in a random order, which is that of the kit, until Σ n² reaches its limit.
    """
    has_pair = nearest.has_pair
    drawn = np.random.default_rng(0).permutation(20)
    n_products = np.cumsum(has_pair.sum(axis=1)[drawn] ** 2)
    drawn = drawn[n_products <= nearest.max_products]
    cosine = count_together(has_pair[drawn].astype("f"))[1]
    np.fill_diagonal(cosine, -1)
    largest = -np.sort(-cosine, axis=1)[:, : nearest.n_neighbours]
    assert_allclose(nearest.similarity, largest, rtol=1e-6)
    of_neighbours = np.take_along_axis(cosine, nearest.neighbours, 1)
    assert_allclose(nearest.similarity, of_neighbours, rtol=1e-6)


def test_the_neighbours_of_a_question_are_different_and_not_itself(nearest: Nearest) -> None:
    for question, neighbours in enumerate(nearest.neighbours.tolist()):
        assert len({*neighbours, question}) == nearest.n_neighbours + 1


def test_each_pair_that_is_asked_for_is_visited_once(nearest: Nearest) -> None:
    assert sorted(nearest.rows) == list(range(nearest.asked.shape[1]))


def test_the_nearest_answers_are_the_student_s_to_the_most_similar_questions(
    nearest: Nearest,
) -> None:
    position = {pair: i for i, pair in enumerate(zip(*nearest.known.tolist(), strict=True))}
    n_found = min(nearest.n_nearest, nearest.n_neighbours)
    students, questions = nearest.asked[:, nearest.rows].tolist()
    for student, question, answers, similarities in zip(
        students, questions, nearest.answers, nearest.answer_similarity, strict=True
    ):
        expected = []
        for other, similarity in zip(
            nearest.neighbours[question].tolist(), nearest.similarity[question], strict=True
        ):
            if (student, other) in position:
                expected.append((position[student, other], similarity))
        # Places without an answer hold -1.
        expected += [(-1, 0.0)] * nearest.n_nearest
        assert list(zip(answers, similarities, strict=True)) == expected[:n_found]


# ---- No feature depends on the outcome of its own answer ----------------------------------------


def change_options(answers: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Return the answers with another option chosen in some rows, given as booleans."""
    option = answers["AnswerValue"].where(~rows, answers["AnswerValue"] % 4 + 1)
    is_correct = (option == answers["CorrectAnswer"]).astype(np.int8)
    return answers.assign(AnswerValue=option, IsCorrect=is_correct)


@pytest.mark.parametrize("group", GROUPS)
def test_held_out_outcomes_change_no_feature_of_their_rows(joined: Joined, group: str) -> None:
    answers = joined.train
    held_out = np.random.default_rng(1).random(len(answers)) < 0.2
    rows = np.flatnonzero(held_out)

    def find_features(outcomes: pd.DataFrame) -> pd.DataFrame:
        return table(joined.pairs, Known(joined.pairs, outcomes, held_out), rows, [group])

    before = find_features(answers)
    after = find_features(change_options(answers, held_out))
    assert len(before) == len(rows)
    assert set(before.dtypes) == {np.dtype(np.float32)}
    pd.testing.assert_frame_equal(before, after, check_exact=True)


# The largest number of answers to hold out, and the number of parts that are therefore held out.
@pytest.mark.parametrize(
    ("max_held_out", "n_held_out"), [(125_000, 10), (1_000, 2), (300, 1), (30, 1)]
)
def test_outcomes_of_a_part_change_features_of_all_other_parts_but_not_its_own(
    joined: Joined, monkeypatch: pytest.MonkeyPatch, max_held_out: int, n_held_out: int
) -> None:
    """Models learn from all parts but the one whose features they give.

    The test fails, for instance, if such a model starts from one that was fitted to all answers.
    """
    answers = joined.train
    monkeypatch.setattr("common.answer_features.parts._MAX_HELD_OUT", max_held_out)
    groups = ["model", "rates", "distractors", "context", "quiz", "order"]
    before = list(tables(joined.pairs, answers, groups, seed=0))
    # A table for each held-out part, then that of the template.
    assert len(before) == n_held_out + 1
    rows = np.concatenate([part.rows for part in before])
    assert len({*rows}) == len(rows)
    if n_held_out == 10:
        assert len(rows) == len(joined.pairs)
    # Change the outcomes of the first part, and those of another one if there are many.
    for number in {0, n_held_out // 3}:
        is_of_part = np.isin(np.arange(len(answers)), before[number].rows)
        after = tables(joined.pairs, change_options(answers, is_of_part), groups, seed=0)
        is_same = [a.table.equals(b.table) for a, b in zip(before, after, strict=True)]
        # If only some 30 answers are held out, the features of the template, too, are computed
        # without their outcomes. Then neither table changes.
        unchanged = [0, 1] if max_held_out == 30 else [number]
        assert np.flatnonzero(is_same).tolist() == unchanged


@dataclass(frozen=True)
class RandomOutcomes:
    """Answers whose outcomes are random: no honest feature tells anything about them."""

    pairs: Pairs
    answers: pd.DataFrame
    # Rows of the answers that have features.
    rows: np.ndarray
    # Their features from `tables`, which do not use the outcomes of these rows.
    honest: pd.DataFrame
    is_right: np.ndarray

    def score(self, features: pd.DataFrame) -> float:
        """Return the accuracy of trees on these features, each learned from half of the students.

        The trees predict the answers of the other half.
        """
        is_even = self.pairs.numbers["student"][self.rows] % 2 == 0
        is_hit = np.empty(len(self.rows), bool)
        for asked in (is_even, ~is_even):
            trees = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, random_state=0)
            trees.fit(features[~asked], self.is_right[~asked])
            is_hit[asked] = trees.predict(features[asked]) == self.is_right[asked]
        return float(is_hit.mean())


@pytest.fixture(scope="module")
def random_outcomes(joined: Joined) -> RandomOutcomes:
    right = np.random.default_rng(2).integers(0, 2, len(joined.train)).astype(np.int8)
    answers = joined.train[["UserId", "QuestionId"]].assign(IsCorrect=right)
    groups = ["model", "rates", "context", "quiz", "order"]
    *parts, _ = tables(joined.pairs, answers, groups, seed=0)
    rows = np.concatenate([part.rows for part in parts])
    honest = pd.concat([part.table for part in parts])
    return RandomOutcomes(joined.pairs, answers, rows, honest, right[rows])


def test_features_predict_random_outcomes_at_chance_and_a_leak_predicts_them(
    random_outcomes: RandomOutcomes,
) -> None:
    n = len(random_outcomes.rows)
    # Four standard errors of a share of one half: 0.043 with some 2,200 answers.
    tolerance = 4 * 0.5 / np.sqrt(n)
    assert tolerance < 0.05
    assert abs(random_outcomes.score(random_outcomes.honest) - 0.5) < tolerance
    # A planted leak: rates over all answers, including the outcome of the row.
    known = Known(random_outcomes.pairs, random_outcomes.answers)
    asked = Asked(random_outcomes.pairs, known, random_outcomes.rows)
    rates = rates_of(asked, [("student", "quiz")])
    assert random_outcomes.score(pd.DataFrame(rates)) > 0.6


def test_the_model_s_logit_ranks_random_outcomes_at_chance(
    random_outcomes: RandomOutcomes,
) -> None:
    """The test fails if the model of a held-out part starts from one fitted to all answers."""
    # The AUC of a guess has a standard error of 1 / √(3 n) if half of n answers are right.
    tolerance = 4 / np.sqrt(3 * len(random_outcomes.rows))
    assert tolerance < 0.055
    auc = roc_auc_score(random_outcomes.is_right, random_outcomes.honest["model"])
    assert abs(auc - 0.5) < tolerance


@pytest.mark.parametrize(
    ("n_answers", "n_parts", "n_held_out"),
    [(1003, 10, 10), (200_000, 5, 3), (4_000_000, 32, 1)],
)
def test_parts_have_equal_sizes_and_only_as_many_as_needed_are_held_out(
    n_answers: int, n_parts: int, n_held_out: int
) -> None:
    split = cut_into_parts(n_answers, 0)
    part_of_answer = split.part
    assert (split.n_parts, split.n_held_out) == (n_parts, n_held_out)
    assert len(part_of_answer) == n_answers
    assert {*np.bincount(part_of_answer)} <= {n_answers // n_parts, n_answers // n_parts + 1}
    # At most this many answers are held out.
    assert (part_of_answer < n_held_out).sum() <= 125_000


def test_the_seed_decides_which_answers_make_a_part() -> None:
    assert (cut_into_parts(1003, 0).part != cut_into_parts(1003, 1).part).any()
