"""Features of answers equal plain counts, and none depends on the outcome of its own answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

from common import layout
from common.adaptive.answered_mask import count_together
from common.answer_features import GROUPS, Known, Pairs, read_pairs, table, tables
from common.answer_features.asked import Asked
from common.answer_features.groups import rates_of
from common.answer_features.nearest_answers import visit_nearest
from common.answer_features.parts import Part, cut_into_parts
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
# Number of students in the tests of `similar_questions` and `visit_nearest`.
N_STUDENTS = 20
# Modules that limit their memory and their work by constants. The tests change these constants.
NEAREST = "common.answer_features.nearest_answers"
SIMILAR = "common.answer_features.similar_questions"


@dataclass
class World:
    """Answers, and tables of metadata.

    A key of `metadata` is the name of a constant in `layout`, such as SUBJECT_METADATA, whose value
    is the name of the table's file.
    """

    answers: pd.DataFrame
    metadata: dict[str, pd.DataFrame]


def read_world(
    folder: Path, answers: pd.DataFrame, n_template: int, **metadata: pd.DataFrame
) -> tuple[Pairs, Known]:
    """Write tables of metadata to a folder, and read answers together with the metadata.

    The last `n_template` answers become the pairs to predict (the template), and all others the
    training answers, whose outcomes are known. A key of `metadata` says which table it holds: the
    key is the name of the constant in `layout`, such as SUBJECT_METADATA, whose value is the name
    of the table's file.
    """
    for constant, content in metadata.items():
        file_name = getattr(layout, constant)
        content.to_csv(folder / file_name, index=False)
    # The kit reads answers as 32-bit integers.
    rows = answers.astype("i4").reset_index(drop=True)
    train = rows[:-n_template]
    template = rows[-n_template:]
    pairs = read_pairs(train, template, folder)
    return pairs, Known(pairs, train)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return the function `read_world` with the test's folder as its folder."""
    return partial(read_world, tmp_path)


def load_world(kit: Path) -> World:
    """Load the answers of two simulated classes, with all metadata.

    Dates are rounded down to ten minutes, so that some answers have the same date.
    """
    # Names of constants in `layout`, whose values are names of files.
    constants = (
        "ANSWER_METADATA_TASK_1_2",
        "STUDENT_METADATA_TASK_1_2",
        "QUESTION_METADATA_TASK_1_2",
        "SUBJECT_METADATA",
    )
    folder = kit / "data/metadata"
    metadata = {name: pd.read_csv(folder / getattr(layout, name)) for name in constants}
    answer_metadata = metadata["ANSWER_METADATA_TASK_1_2"]
    dates = pd.to_datetime(answer_metadata.DateAnswered)
    answer_metadata["DateAnswered"] = dates.dt.floor("10min")

    answers = pd.read_csv(kit / "data/train_data" / layout.TRAIN_TASK_1_2)
    ids_of_two_classes = answer_metadata.AnswerId[answer_metadata.GroupId < 2]
    is_of_two_classes = answers.AnswerId.isin(ids_of_two_classes)
    return World(answers[is_of_two_classes].reset_index(drop=True), metadata)


@pytest.fixture
def world(simulated_kit: Path) -> World:
    return load_world(simulated_kit)


def template_features(pairs: Pairs, known: Known, *groups: str) -> pd.DataFrame:
    """Return features of the pairs to predict; `groups` names groups such as "rates"."""
    return table(pairs, known, np.arange(len(known.rows), len(pairs)), groups)


# ---- From the answers alone ---------------------------------------------------------------------


@pytest.fixture
def few_answers(read: Read) -> tuple[Pairs, Known]:
    """Return four training answers, two of which are right, and two pairs to predict."""
    rows = [
        # Student, question, right (1) or wrong (0), chosen option, right option.
        (5, 10, 1, 1, 1),
        (5, 11, 0, 4, 2),
        (5, 12, 0, 4, 2),
        (6, 10, 1, 1, 1),
        # The pairs to predict. Student 7 and question 13 have no training answers.
        (6, 11, 0, 3, 2),
        (7, 13, 0, 3, 1),
    ]
    students, questions, is_right, options, right_options = np.transpose(rows)
    answers = answers_frame(students, questions, is_right, options, right_options)
    return read(answers, n_template=2)


def test_rates_of_questions_by_hand(few_answers: tuple[Pairs, Known]) -> None:
    """A question with n answers has the rate (n_right + 5 · 0.5) / (n + 5).

    Rates are shrunk towards the share of right answers among all answers, here 0.5.
    """
    rates = template_features(*few_answers, "rates")

    # Question 11 has one answer, which is wrong. Shrinking adds five answers with the overall
    # share.
    rate_of_question_11 = (0 + 5 * 0.5) / (1 + 5)
    # Question 13 has no answer, so its rate is the overall share.
    assert rates["question_rate"].tolist() == pytest.approx([rate_of_question_11, 0.5])
    assert rates["question_count"].tolist() == [1, 0]


def test_rates_of_students_by_hand(few_answers: tuple[Pairs, Known]) -> None:
    """A student's rate is Σ (outcome − rate of the question) / (n + 5) over the n answers.

    The outcome is 1 for a right answer and 0 for a wrong one.
    """
    rates = template_features(*few_answers, "rates")

    # Student 6 has answered only question 10, and is right. Both answers to question 10 are right;
    # its rate is shrunk towards 0.5 with the weight of five answers.
    rate_of_question_10 = (2 + 5 * 0.5) / (2 + 5)
    rate_of_student_6 = (1 - rate_of_question_10) / (1 + 5)
    # Student 7 has no answers.
    assert rates["student_rate"].tolist() == pytest.approx([rate_of_student_6, 0])
    assert rates["student_count"].tolist() == [1, 0]


def test_options_of_a_question_without_answers_are_ranked_by_their_popularity(
    few_answers: tuple[Pairs, Known],
) -> None:
    _, known = few_answers
    # In the training answers, options 1 and 4 were chosen twice each, and options 2 and 3 never.
    # Options that were chosen equally often keep their order.
    number_of_question_13 = 3
    assert known.outcome_of_option[number_of_question_13].tolist() == [0, 2, 3, 1]


@dataclass(frozen=True)
class Distractors:
    """Answers to questions with equally popular distractors, and features of 100 pairs to predict.

    Distractors are wrong options. Option 1 of each question is right.
    """

    known: Known
    # Features of the pairs to predict, a row for each pair.
    found: pd.DataFrame
    # Question of each pair to predict, numbered from 0.
    question: np.ndarray
    # The wrong option that the student of each pair prefers, 2 or 3.
    preferred: np.ndarray


@pytest.fixture
def distractors(read: Read) -> Distractors:
    """Simulate answers of 40 students to 30 questions, each of which has the right option 1.

    An answer is right with probability 0.2. A wrong answer takes the option that the student
    prefers with probability 0.9, and option 4 otherwise. A student prefers option 2 if student and
    question both have even numbers, or both odd ones, and option 3 otherwise. So options 2 and 3
    are equally popular at each question.
    """
    # Each element of these arrays belongs to one answer.
    student, question = (index.ravel() for index in np.indices((40, 30)))
    n_answers = len(student)
    rng = np.random.default_rng(0)
    preferred = np.where(student % 2 == question % 2, 2, 3)
    is_right = rng.random(n_answers) < 0.2
    takes_preferred = rng.random(n_answers) < 0.9
    wrong_option = np.where(takes_preferred, preferred, 4)
    option = np.where(is_right, 1, wrong_option)
    answers = answers_frame(student, question, is_right, option, np.ones(n_answers))
    # `read` takes the last `n_template` rows as the pairs to predict. So shuffle the answers first.
    n_template = 100
    shuffled = answers.sample(frac=1, random_state=0)
    pairs, known = read(shuffled, n_template)
    return Distractors(
        known=known,
        found=template_features(pairs, known, "distractors"),
        question=pairs.numbers["question"][-n_template:],
        # `preferred` has the order before shuffling. The index of `shuffled` tells the position of
        # each answer in that order.
        preferred=preferred[shuffled.index[-n_template:]],
    )


@pytest.mark.parametrize("option", [1, 2, 3, 4])
def test_distractors_tell_how_often_an_option_is_chosen(
    distractors: Distractors, option: int
) -> None:
    """The feature share_k is the share of answers to the question that chose the option of rank k.

    Rank 0 is the right option, rank 1 the most popular wrong one, and so on.
    """
    known = distractors.known
    is_chosen = pd.Series(known.option == option)
    by_question = is_chosen.groupby(known.question).agg(["sum", "count"])
    # Shares are shrunk towards the option's share of all answers, with the weight of five answers.
    expected_share = (by_question["sum"] + 5 * is_chosen.mean()) / (by_question["count"] + 5)

    for pair, question in enumerate(distractors.question):
        rank = known.outcome_of_option[question, option - 1]
        share = distractors.found[f"share_{rank}"].iloc[pair]
        assert share == pytest.approx(expected_share[question], abs=1e-5)


def test_distractors_tell_which_of_two_a_student_prefers(distractors: Distractors) -> None:
    """The feature `distractor` is the logit of choosing the most popular wrong option.

    It is larger for students who prefer this option than for all others.
    """
    rank = distractors.known.outcome_of_option[distractors.question, distractors.preferred - 1]
    prefers_most_popular = rank == 1
    logit = distractors.found["distractor"]
    assert logit[prefers_most_popular].min() > logit[~prefers_most_popular].max()


def test_without_a_tree_a_subject_s_level_is_its_position_in_the_list_of_a_question(
    read: Read, world: World
) -> None:
    """The features of a question need the level of each subject in the question's list.

    The kit looks the levels up in the tree of subjects. Without a tree, it takes the positions in
    the list. The test gives each question a list that is a whole branch of the tree: the root at
    level 0, then one subject of each of the levels 1 to 3. Both ways then give the same features.
    """
    tree = world.metadata["SUBJECT_METADATA"]
    questions = draw_questions_with_sorted_branches(world)

    def find_features(**metadata: pd.DataFrame) -> pd.DataFrame:
        pairs, known = read(
            world.answers, n_template=10, QUESTION_METADATA_TASK_1_2=questions, **metadata
        )
        return template_features(pairs, known, "subjects")

    without_tree = find_features()
    with_tree = find_features(SUBJECT_METADATA=tree)
    pd.testing.assert_frame_equal(without_tree, with_tree)


def draw_questions_with_sorted_branches(world: World) -> pd.DataFrame:
    """Return metadata of questions 0 to 99: each question has a branch of the tree of subjects.

    The list of a question begins with the root of the tree, at level 0, and goes down one level at
    a time. So the position of a subject in the list is its level.
    """
    level_of_subject = world.metadata["SUBJECT_METADATA"].set_index("SubjectId").Level
    lists = world.metadata["QUESTION_METADATA_TASK_1_2"].SubjectId.map(json.loads)
    # A list of four subjects is a branch, because each branch has four levels.
    branches = lists[lists.map(len) == 4]
    sorted_lists = branches.map(lambda branch: str(sorted(branch, key=level_of_subject.get)))
    # Each question gets the list of a question drawn at random.
    drawn = sorted_lists.sample(100, replace=True, random_state=0)
    return pd.DataFrame({"QuestionId": range(100), "SubjectId": drawn.to_numpy()})


@dataclass(frozen=True)
class TwoQuizzes:
    """Answers in two quizzes, questions 0 to 5 and 6 to 11, and features of two pairs to predict.

    The pairs are student 0 with question 0 and with question 6. Student 0 has answered both
    quizzes, and has always chosen option 3 in the first quiz. Option 1 of question 0 is right.
    """

    pairs: Pairs
    known: Known
    # Features of student 0 at question 0, in the first quiz.
    features_at_question_0: pd.Series
    # Features of student 0 at question 6, in the second quiz.
    features_at_question_6: pd.Series

    @property
    def rank_of_option_3(self) -> int:
        """The rank of option 3 of question 0: 0 for the right option, 1 to 3 for wrong ones."""
        return int(self.known.outcome_of_option[0, 2])


@pytest.fixture
def two_quizzes(read: Read) -> TwoQuizzes:
    """Simulate answers of 30 students in two quizzes with six questions each.

    The options are random, except that student 0 always chooses option 3 in the first quiz: this
    habit in one quiz must show in features of that quiz alone. The two pairs to predict are student
    0 with the first question of each quiz, questions 0 and 6.
    """
    n_students, n_questions = 30, 12
    all_students = np.arange(n_students)[:, None]
    quiz_of_question = np.arange(n_questions) // 6
    # Students with even numbers answer quiz 0, students with odd numbers answer quiz 1. Students 0
    # and 1 answer both quizzes.
    has_answered = (quiz_of_question == all_students % 2) | (all_students < 2)
    # From here on, an element of each array belongs to one answer.
    student, question = np.nonzero(has_answered)
    quiz = quiz_of_question[question]
    right_option = 1 + question % 4
    option = np.random.default_rng(0).integers(1, 5, len(student))
    is_habitual = (student == 0) & (quiz == 0)
    option[is_habitual] = 3
    answers = answers_frame(student, question, option == right_option, option, right_option)

    # `read` takes the last rows as the pairs to predict.
    is_to_predict = (student == 0) & np.isin(question, [0, 6])
    answers = pd.concat([answers[~is_to_predict], answers[is_to_predict]])
    pairs, known = read(answers, n_template=2)
    found = template_features(pairs, known, "context", "habits")
    return TwoQuizzes(
        pairs, known, features_at_question_0=found.iloc[0], features_at_question_6=found.iloc[1]
    )


def test_habits_are_those_of_the_same_quiz(two_quizzes: TwoQuizzes) -> None:
    """Student 0 has the habit of choosing option 3 in the first quiz only.

    A student may prefer a position in the list of options: option 3 has position 3. The options of
    a question also have ranks: 0 for the right option, 1 to 3 for the wrong ones. The feature
    habit_15_k takes the option with rank k at the question to predict. It says how much more often
    than usual the student has chosen the position of this option at other questions. An answer to
    another question counts with the 15th power of the similarity between the two questions.
    """
    in_first_quiz = two_quizzes.features_at_question_0
    in_second_quiz = two_quizzes.features_at_question_6
    assert in_first_quiz[f"habit_15_{two_quizzes.rank_of_option_3}"] > 0.5
    # The four features add up to 0: a student who chooses one position more often than usual
    # chooses the other positions less often.
    habits = [in_first_quiz[f"habit_15_{rank}"] for rank in range(4)]
    assert sum(habits) == pytest.approx(0, abs=1e-5)
    rank_at_question_6 = int(two_quizzes.known.outcome_of_option[6, 2])
    assert abs(in_second_quiz[f"habit_15_{rank_at_question_6}"]) < 0.5


def test_the_nearest_answers_tell_their_options(two_quizzes: TwoQuizzes) -> None:
    found = two_quizzes.features_at_question_0
    nearest = [found[f"near_option_{nth}"] for nth in range(4)]
    assert nearest == [two_quizzes.rank_of_option_3] * 4


def test_features_place_are_the_positions_of_the_options(two_quizzes: TwoQuizzes) -> None:
    found = two_quizzes.features_at_question_0
    places = [found[f"place_{option}"] for option in range(4)]
    assert places == np.argsort(two_quizzes.known.outcome_of_option[0]).tolist()


@pytest.mark.parametrize(("power", "shrinkage"), [(2, 2.0), (6, 1.0), (15, 0.5)])
def test_means_of_a_student_s_answers_are_weighted_by_powers_of_similarity(
    two_quizzes: TwoQuizzes, power: int, shrinkage: float
) -> None:
    """The feature nearness_2 is a sum of weights, and near_2 is a mean residual.

    nearness_6, near_6, nearness_15 and near_15 have other powers. For the power p, the weight of an
    answer is the p-th power of the similarity between its question and the question to predict. The
    features are

        nearness_p = Σ weight    and    near_p = Σ weight · residual / (Σ weight + shrinkage).
    """
    pairs = two_quizzes.pairs
    known = two_quizzes.known
    found = two_quizzes.features_at_question_0
    # The pair to predict is student 0 with question 0.
    is_of_student = known.student == 0
    # The similarity of each question to question 0. `pairs` holds it only for the neighbours of
    # question 0; all other questions have similarity 0.
    similarity_to_question_0 = np.zeros(pairs.n_questions)
    similarity_to_question_0[pairs.neighbours[0]] = pairs.similarity[0]
    weight = similarity_to_question_0[known.question[is_of_student]] ** power
    residual = known.residual[is_of_student]

    assert found[f"nearness_{power}"] == pytest.approx(weight.sum(), rel=1e-4)
    mean_residual = (weight * residual).sum() / (weight.sum() + shrinkage)
    assert found[f"near_{power}"] == pytest.approx(mean_residual, rel=1e-4)


@pytest.fixture
def default_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models take their default settings: to choose settings would take most of the time.

    A model that learns from more than `_MAX_ANSWERS` answers does not choose its settings.
    """
    monkeypatch.setattr("common.item_response.choice._MAX_ANSWERS", 0)


@pytest.mark.usefixtures("default_settings")
def test_models_know_where_students_know_the_right_option(read: Read, world: World) -> None:
    """A model that learned from right answers predicts the right option with high probability.

    All students but one always choose the right option here, and the remaining student never does.
    The pairs to predict belong to students who always choose the right option.
    """
    frame = world.answers
    # The student of the first answer is the one who is always wrong.
    is_right = frame.UserId != frame.UserId[0]
    next_option = frame.CorrectAnswer % 4 + 1
    frame["IsCorrect"] = is_right.astype(int)
    frame["AnswerValue"] = frame.CorrectAnswer.where(is_right, next_option)
    # `read` takes the last ten answers as the pairs to predict. Sorting puts wrong answers first.
    wrong_answers_first = frame.sort_values("IsCorrect")
    pairs, known = read(wrong_answers_first, n_template=10)

    found = template_features(pairs, known, "model", "options")

    # The feature "model" is the logit of the probability that the answer is right.
    assert (found["model"] > 1).all()
    # The options of a question are ranked: rank 0 is the right option, rank 1 the most popular
    # wrong option, and so on. The feature model_1 is the log probability of the option of rank 1.
    probability = np.exp([found[f"model_{rank}"] for rank in range(4)])
    assert probability.sum(axis=0) == pytest.approx(1, abs=1e-4)
    assert (probability[0] > 0.6).all()


# ---- From the answer metadata -------------------------------------------------------------------


@dataclass(frozen=True)
class Joined:
    """The pairs as the kit reads them, and for comparison the rows that pandas joins."""

    pairs: Pairs
    known: Known
    # A row for each training answer, and then for each pair to predict, with its metadata.
    rows: pd.DataFrame

    @property
    def asked(self) -> pd.DataFrame:
        """The rows of the pairs to predict, which are the last rows."""
        return self.rows[-N_TEMPLATE:]

    @property
    def train(self) -> pd.DataFrame:
        """The rows of the training answers."""
        return self.rows[:-N_TEMPLATE]

    def features(self, *groups: str) -> pd.DataFrame:
        """Return features of the pairs to predict."""
        return template_features(self.pairs, self.known, *groups)


@pytest.fixture(scope="module")
def joined(simulated_kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Joined:
    """Return the simulated answers of two school classes, as the kit and as pandas join them.

    Both add metadata to each answer, for instance its date and its quiz. Tests share these data and
    must not change them. The kit has short names for columns, which its features contain: the
    feature student_quiz_rate groups answers by student and quiz. So the rows that pandas joins get
    columns with the same short names.
    """
    world = load_world(simulated_kit)
    folder = tmp_path_factory.mktemp("joined")
    pairs, known = read_world(folder, world.answers, N_TEMPLATE, **world.metadata)
    rows = world.answers.merge(world.metadata["ANSWER_METADATA_TASK_1_2"], on="AnswerId")
    rows = rows.merge(world.metadata["STUDENT_METADATA_TASK_1_2"], on="UserId")
    rows["date"] = pd.to_datetime(rows.DateAnswered)
    rows["day"] = rows.date.dt.date
    rows["student"] = rows.UserId
    rows["question"] = rows.QuestionId
    rows["quiz"] = rows.QuizId
    rows["group"] = rows.GroupId
    rows["scheme"] = rows.SchemeOfWorkId
    for level in (1, 2, 3):
        rows[f"subject_{level}"] = rows.QuestionId.map(find_subjects(world, level))
    # The residual of a training answer is its outcome minus the expected outcome. The pairs to
    # predict have no known outcomes, and so no residuals.
    rows["residual"] = np.append(known.residual, np.full(N_TEMPLATE, np.nan))
    return Joined(pairs, known, rows)


def find_subjects(world: World, level: int) -> pd.Series:
    """Return the subject of each question at a level of the tree of subjects, by QuestionId.

    Some questions have two subjects of one level. The kit takes the last one in the list.
    """
    lists = world.metadata["QUESTION_METADATA_TASK_1_2"].set_index("QuestionId").SubjectId
    # A row for each subject of a question.
    subject = lists.map(json.loads).explode()
    level_of_subject = world.metadata["SUBJECT_METADATA"].set_index("SubjectId").Level
    is_of_level = subject.map(level_of_subject) == level
    return subject[is_of_level].groupby("QuestionId").last()


# For each group of features, the columns of its rates. For example, the rate of a pair by student
# and quiz is the mean residual of the training answers of the same student in the same quiz. A
# residual is an outcome minus the expected outcome.
COLUMNS_OF_RATES = {
    "quiz": [["student", "quiz"], ["question", "quiz"], ["quiz"]],
    "classes": [
        ["group"],
        ["question", "group"],
        ["group", "quiz"],
        ["scheme"],
        ["question", "scheme"],
    ],
    "time": [["student", "day"]],
    "subjects": [["student", "subject_1"], ["student", "subject_2"], ["student", "subject_3"]],
}


@pytest.mark.parametrize("group", COLUMNS_OF_RATES)
def test_rates_of_groups_are_those_that_pandas_counts(joined: Joined, group: str) -> None:
    """The rate of a pair to predict is (sum of residuals) / (count + 5).

    A residual is the outcome of a training answer minus its expected outcome. The sum is over the
    training answers that resemble the pair. For the feature student_quiz_rate, these are the
    answers of the same student in the same quiz. The rate is NaN if the pair lacks a value that the
    rate needs, such as its quiz.
    """
    found = joined.features(group)
    for columns in COLUMNS_OF_RATES[group]:
        name = "_".join(columns)
        sums = joined.train.groupby(columns).residual.agg(["sum", "count"]).reset_index()
        of_pairs = joined.asked[columns].merge(sums, how="left", on=columns)
        # A pair that no training answer resembles has no row in `sums`: its sum and count are 0.
        of_pairs = of_pairs.fillna({"sum": 0, "count": 0})
        # If a pair lacks a value, such as its quiz, its count is NaN, and so is its rate.
        has_all_values = joined.asked[columns].notna().all(axis=1).to_numpy()
        count = of_pairs["count"].where(has_all_values)
        rate = of_pairs["sum"] / (count + 5)
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
        of_student = joined.rows[joined.rows.UserId == row.UserId]
        earlier = of_student.date[of_student.date < row.date]
        assert found["place_in_quiz"][i] == len(earlier[of_student.QuizId == row.QuizId])
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
    """A student's habit of choosing an option is Σ (c − share) / (n + 5).

    The sum goes over the student's n answers in the quiz. For each answer, c is 1 if the student
    chose the option and 0 if not; `share` is the share of all answers to the same question that
    chose the option. The 5 keeps the habit near 0 if n is small.

    The options of the question to predict have ranks: 0 for the right one, higher ranks for the
    wrong ones. The feature quiz_habit_k is the habit of choosing the option with the rank k.
    """
    found = joined.features("quiz")
    known = joined.known
    train = joined.train
    # Check only the first pair to predict. `joined.pairs` holds the training answers first, then
    # the `N_TEMPLATE` pairs to predict.
    pair = joined.asked.iloc[0]
    question_to_predict = joined.pairs.numbers["question"][-N_TEMPLATE]
    rank = known.outcome_of_option[question_to_predict, option - 1]

    is_of_quiz = ((train.UserId == pair.UserId) & (train.QuizId == pair.QuizId)).to_numpy()
    is_chosen = known.option[is_of_quiz] == option
    share = known.option_share[known.question[is_of_quiz], option - 1]
    expected = (is_chosen - share).sum() / (is_of_quiz.sum() + 5)

    assert found[f"quiz_habit_{rank}"][0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("nth", [1, 2])
def test_order_tells_the_nth_answer_before_and_after_in_the_same_quiz(
    joined: Joined, nth: int
) -> None:
    """Features describe the student's answers just before and after the pair to predict.

    The feature before_1 is the residual of the student's last answer before the pair. The feature
    before_1_option tells which option this answer chose. It does not hold the number of the option,
    but the rank that this number has at the question to predict: 0 for the right option. For
    example, it is 0 if the answer chose option 3, and option 3 is right at the question to predict.

    The features after_1 and after_1_option describe the next answer. An answer with the same date
    as the pair counts as later. Without an nth answer, the features are NaN.
    """
    found = joined.features("order")
    train = joined.train
    for i, pair in enumerate(joined.asked.itertuples()):
        in_quiz = train[(train.UserId == pair.UserId) & (train.QuizId == pair.QuizId)]
        in_quiz = in_quiz.sort_values("date", kind="stable")
        # In each of the two tables, the answer nearest in time to the pair comes first.
        before = in_quiz[in_quiz.date < pair.date][::-1]
        after = in_quiz[in_quiz.date >= pair.date]
        for name, answers in (("before", before), ("after", after)):
            residual = found[f"{name}_{nth}"][i]
            rank = found[f"{name}_{nth}_option"][i]
            if len(answers) < nth:
                assert np.isnan(residual)
                assert np.isnan(rank)
                continue
            nth_answer = answers.iloc[nth - 1]
            # Answers with the same date have no order: any of them may be the nth answer. So check
            # the nth answer only if no other answer has its date.
            n_of_same_date = (answers.date == nth_answer.date).sum()
            if n_of_same_date == 1:
                chooses_right_option = nth_answer.AnswerValue == pair.CorrectAnswer
                assert residual == pytest.approx(nth_answer.residual)
                assert (rank == 0) == chooses_right_option
                assert rank in range(4)


def test_confidence_is_compared_with_the_student_s_usual_one(joined: Joined) -> None:
    """The usual confidence comes from all answers for which the student stated a confidence.

    The feature confidence_count is the number of these answers.
    """
    found = joined.features("confidence")
    asked = joined.asked
    stated = joined.rows.dropna(subset="Confidence")
    by_student = stated.groupby("UserId").Confidence.agg(["sum", "count"])
    # For each pair to predict, the sum and the number of its student's stated confidences.
    of_pairs = by_student.reindex(asked.UserId)
    # A student's mean confidence is shrunk towards the mean over all answers, which gets the weight
    # of five answers.
    usual = (of_pairs["sum"] + 5 * stated.Confidence.mean()) / (of_pairs["count"] + 5)
    above_usual = asked.Confidence.to_numpy() - usual.to_numpy()

    assert_array_equal(found["confidence"], asked.Confidence)
    assert_allclose(found["usual_confidence"], usual, rtol=1e-5)
    assert_allclose(found["confidence_above_usual"], above_usual, atol=1e-3)
    assert_array_equal(found["confidence_count"], of_pairs["count"].fillna(0))


def test_features_of_missing_circumstances_are_nan(read: Read, world: World) -> None:
    metadata = world.metadata["ANSWER_METADATA_TASK_1_2"]
    metadata = metadata.assign(QuizId=np.nan, DateAnswered="", Confidence=np.nan)
    pairs, known = read(world.answers, N_TEMPLATE, ANSWER_METADATA_TASK_1_2=metadata)
    found = template_features(pairs, known, "quiz", "order", "time", "confidence")
    assert found.drop(columns="confidence_count").isna().all(axis=None)


def test_a_template_without_answer_ids_has_no_circumstances(
    read: Read, world: World, tmp_path: Path
) -> None:
    # Calling `read` writes the metadata to `tmp_path`.
    read(world.answers, N_TEMPLATE, **world.metadata)
    template = world.answers[["UserId", "QuestionId"]]
    assert read_pairs(world.answers, template, tmp_path).circumstances is None


# ---- Similar questions and nearest answers equal those that plain loops find --------------------


@dataclass(frozen=True)
class Nearest:
    """Random pairs, and what `similar_questions` and `visit_nearest` find for them.

    A pair is a student and a question: half of the pairs are known answers, the others are to be
    predicted.
    """

    # Whether a student has a known answer or a pair to predict, shape (students, questions).
    has_pair: np.ndarray
    # Student (row 0) and question (row 1) of each known answer, shape (2, known answers).
    known: np.ndarray
    # Student (row 0) and question (row 1) of each pair to predict, shape (2, pairs to predict).
    asked: np.ndarray
    # Number of nearest answers to find for each pair to predict.
    n_nearest: int
    # Number of similar questions to find for each question.
    n_neighbours: int
    # Upper limit on the work of `similar_questions`. For each student, this function multiplies the
    # values of `has_pair` of every two of the student's questions: n² products for n questions. If
    # all students together need more products than the limit, the function uses only some of them.
    max_products: int
    # Similar questions of each question, shape (questions, neighbours), the most similar first.
    neighbours: np.ndarray
    # The similarity of each of `neighbours`, of the same shape.
    similarity: np.ndarray
    # `visit_nearest` visits the pairs to predict in an order of its own. The next three arrays have
    # this order.

    # The column of `asked` that is visited, shape (pairs to predict,).
    asked_columns: np.ndarray
    # The nearest answers of the visited pair: their columns in `known`, or -1 where there is no
    # further answer. Shape (pairs to predict, nearest).
    answer_columns: np.ndarray
    # How similar the question of each nearest answer is to the question of the visited pair, or 0
    # where there is no answer. Shape (pairs to predict, nearest).
    answer_similarity: np.ndarray


@pytest.fixture(scope="module", params=range(50))
def nearest(request: pytest.FixtureRequest) -> Nearest:
    """Draw pairs of students and questions, and find similar questions and nearest answers.

    The functions under test limit their memory and work: `_BLOCK` questions are compared at a time,
    `_MAX_CELLS` numbers are held at a time, and at most `_MAX_PRODUCTS` products are added.
    `_BLOCK` is 4 here and the other two limits are random, often so small that even little data
    needs many blocks.
    """
    rng = np.random.default_rng(request.param)
    # 1 to 10 questions, 1 to 6 nearest answers and 1 to 9 neighbours.
    n_questions, n_nearest, n_neighbours = rng.integers(1, (11, 7, 10)).tolist()
    max_cells = int(rng.choice([1, 30, 200, 10**6]))
    max_products = int(rng.choice([200, 10**9]))

    # Half of the pairs, in random order, are known answers; the others are to be predicted.
    has_pair = rng.random((N_STUDENTS, n_questions)) < 0.5
    pairs = rng.permutation(np.argwhere(has_pair).astype(np.int32)).T
    known, asked = np.array_split(pairs, 2, axis=1)

    limits = {"_N_NEIGHBOURS": n_neighbours, "_MAX_PRODUCTS": max_products, "_BLOCK": 4}
    with patch.multiple(SIMILAR, **limits):
        student, question = pairs
        neighbours, similarity = similar_questions(student, question, N_STUDENTS, n_questions)

    # `visit_nearest` visits a block of pairs at a time: it calls `visit` with three arrays, which
    # `blocks` collects.
    blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def visit(columns: np.ndarray, answer_columns: np.ndarray, similarity: np.ndarray) -> None:
        blocks.append((columns, answer_columns, similarity))

    with patch.multiple(NEAREST, _MAX_CELLS=max_cells):
        visit_nearest(
            known_pairs=(known[0], known[1]),
            asked_pairs=(asked[0], asked[1]),
            n_students=N_STUDENTS,
            neighbours=neighbours,
            similarity=similarity,
            n_nearest=n_nearest,
            visit=visit,
        )
    arrays = map(np.concatenate, zip(*blocks, strict=True))
    asked_columns, answer_columns, answer_similarity = arrays
    return Nearest(
        has_pair=has_pair,
        known=known,
        asked=asked,
        n_nearest=n_nearest,
        n_neighbours=min(n_neighbours, n_questions - 1),
        max_products=max_products,
        neighbours=neighbours,
        similarity=similarity,
        asked_columns=asked_columns,
        answer_columns=answer_columns,
        answer_similarity=answer_similarity,
    )


def test_similar_questions_are_those_that_the_same_students_answered(nearest: Nearest) -> None:
    """The similarity of two questions is the cosine of their columns of `has_pair`.

    The neighbours of a question are the questions of the largest similarities to it, and
    `similarity` holds these similarities.
    """
    has_pair = nearest.has_pair[find_students_used(nearest)]
    _, cosine = count_together(has_pair.astype(np.float32))
    # A question is not its own neighbour; no cosine is below 0.
    np.fill_diagonal(cosine, -1)

    decreasing = -np.sort(-cosine, axis=1)
    largest = decreasing[:, : nearest.n_neighbours]
    assert_allclose(nearest.similarity, largest, rtol=1e-6)
    cosine_of_neighbours = np.take_along_axis(cosine, nearest.neighbours, axis=1)
    assert_allclose(nearest.similarity, cosine_of_neighbours, rtol=1e-6)


def find_students_used(nearest: Nearest) -> np.ndarray:
    """Return the students whose pairs `similar_questions` uses.

    To limit its work, the function may use only some students: a student with n pairs costs n²
    products. It takes students in a random order, and stops before their products add up to more
    than `max_products`.
    """
    # `similar_questions` takes the students in the same order: it has the same seed, 0.
    order = np.random.default_rng(0).permutation(N_STUDENTS)
    n_pairs = nearest.has_pair.sum(axis=1)
    n_products = n_pairs[order] ** 2
    n_products_so_far = np.cumsum(n_products)
    used: np.ndarray = order[n_products_so_far <= nearest.max_products]
    return used


def test_the_neighbours_of_a_question_are_different_and_not_itself(nearest: Nearest) -> None:
    for question, neighbours in enumerate(nearest.neighbours.tolist()):
        assert len({*neighbours, question}) == nearest.n_neighbours + 1


def test_each_pair_that_is_asked_for_is_visited_once(nearest: Nearest) -> None:
    assert sorted(nearest.asked_columns) == list(range(nearest.asked.shape[1]))


def test_nearest_answers_are_those_of_the_student_to_the_most_similar_questions(
    nearest: Nearest,
) -> None:
    """The nearest answers of a pair to predict are found in two steps.

    `nearest.neighbours` lists the questions most similar to the question of the pair. The nearest
    answers are the known answers that the student of the pair gave to these questions, in the same
    order. The results have a row for each pair. If a student gave too few answers, the row ends
    with -1 in `nearest.answer_columns` and 0 in `nearest.answer_similarity`.
    """
    # The key is a known answer, as the pair (student, question). The value is the column of
    # `nearest.known` that holds this pair.
    known_pairs = zip(*nearest.known.tolist(), strict=True)
    column_of_pair = {pair: column for column, pair in enumerate(known_pairs)}
    # A row cannot have more nearest answers than the question has neighbours.
    row_length = min(nearest.n_nearest, nearest.n_neighbours)

    for row, asked_column in enumerate(nearest.asked_columns):
        student, question = nearest.asked[:, asked_column].tolist()
        # For each nearest answer, its column in `nearest.known`, and its similarity.
        expected = []
        neighbours = nearest.neighbours[question].tolist()
        for neighbour, similarity in zip(neighbours, nearest.similarity[question], strict=True):
            if (student, neighbour) in column_of_pair:
                expected.append((column_of_pair[student, neighbour], similarity))
        expected = expected[:row_length]
        n_missing = row_length - len(expected)
        expected += [(-1, 0.0)] * n_missing
        found = list(zip(nearest.answer_columns[row], nearest.answer_similarity[row], strict=True))
        assert found == expected


# ---- No feature depends on the outcome of its own answer ----------------------------------------


def change_options(answers: pd.DataFrame, rows: np.ndarray) -> pd.DataFrame:
    """Return the answers with another option chosen where the boolean array `rows` is true."""
    option = answers["AnswerValue"].where(~rows, answers["AnswerValue"] % 4 + 1)
    is_correct = (option == answers["CorrectAnswer"]).astype(np.int8)
    return answers.assign(AnswerValue=option, IsCorrect=is_correct)


@pytest.mark.usefixtures("default_settings")
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


@pytest.mark.usefixtures("default_settings")
@pytest.mark.parametrize(
    ("max_held_out", "n_held_out", "changed_part", "unchanged_tables"),
    [
        # All ten parts are held out in turn. Tables 0 to 9 hold the features of the parts, and
        # table 10 holds the features of the template.
        (125_000, 10, 0, [0]),
        (125_000, 10, 3, [3]),
        (1_000, 2, 0, [0]),
        (300, 1, 0, [0]),
        # Only one part is held out, with less than 2 % of the answers. Then the features of the
        # template (table 1), like those of the part (table 0), do not use the part's outcomes: one
        # fit gives both tables.
        (30, 1, 0, [0, 1]),
    ],
)
def test_outcomes_of_a_part_change_features_of_all_other_parts_but_not_its_own(
    joined: Joined,
    monkeypatch: pytest.MonkeyPatch,
    max_held_out: int,
    n_held_out: int,
    changed_part: int,
    unchanged_tables: list[int],
) -> None:
    """Features of a held-out part do not depend on its own outcomes.

    `tables` cuts the training answers into parts at random. It holds out `n_held_out` of the parts,
    one after another; together they have at most about `max_held_out` answers. For each held-out
    part it yields a table: the features of the part's answers, computed without the outcomes of
    these answers. The last table holds the features of the template (the pairs to predict).

    The test changes the outcomes of the part `changed_part`. The tables in `unchanged_tables` (a
    list of their numbers) must stay as they were, and all other tables must change. The test fails,
    for instance, if the model for a part is warm-started from a model that was fitted to all
    answers.
    """
    monkeypatch.setattr("common.answer_features.parts._MAX_HELD_OUT", max_held_out)

    def find_tables(answers: pd.DataFrame) -> list[Part]:
        groups = ["model", "rates", "distractors", "context", "quiz", "order"]
        return list(tables(joined.pairs, answers, groups, seed=0))

    answers = joined.train
    before = find_tables(answers)
    assert len(before) == n_held_out + 1
    # No training answer and no pair to predict is in two tables.
    rows = np.concatenate([part.rows for part in before])
    assert len({*rows}) == len(rows)
    # If all ten parts are held out, every training answer and every pair to predict is in a table.
    if n_held_out == 10:
        assert len(rows) == len(joined.pairs)

    is_of_part = np.isin(np.arange(len(answers)), before[changed_part].rows)
    after = find_tables(change_options(answers, is_of_part))

    is_same = [old.table.equals(new.table) for old, new in zip(before, after, strict=True)]
    assert np.flatnonzero(is_same).tolist() == unchanged_tables


@dataclass(frozen=True)
class RandomOutcomes:
    """Answers whose outcomes are random: an honest feature has no information about them."""

    pairs: Pairs
    answers: pd.DataFrame
    # The rows of `answers` that the function `tables` holds out, one part after another.
    rows: np.ndarray
    # The features of the answers in `rows`, which `tables` computes without the answer's own
    # outcome.
    honest: pd.DataFrame
    # Whether each of the answers in `rows` is right.
    is_right: np.ndarray

    def score(self, features: pd.DataFrame) -> float:
        """Return the accuracy of boosted trees that predict the outcomes from these features.

        The trees learn from half of the students and predict the answers of the other half.
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
    with pytest.MonkeyPatch.context() as patch:
        # A model that learns from more than `_MAX_ANSWERS` answers takes its default settings. To
        # choose settings would take most of the time.
        patch.setattr("common.item_response.choice._MAX_ANSWERS", 0)
        *parts, _ = tables(joined.pairs, answers, groups, seed=0)
    rows = np.concatenate([part.rows for part in parts])
    honest = pd.concat([part.table for part in parts])
    return RandomOutcomes(joined.pairs, answers, rows, honest, right[rows])


def test_features_predict_random_outcomes_at_chance_and_a_leak_predicts_them(
    random_outcomes: RandomOutcomes,
) -> None:
    """Trees that learn from honest features are right half of the time.

    An honest feature of an answer does not use the outcome of this answer. The test then adds a
    leak, to show that the accuracy of the trees reveals leaks.
    """
    n = len(random_outcomes.rows)
    # The tolerance is four standard errors. An accuracy of one half over n answers has the standard
    # error 0.5 / √n, so with some 2,200 answers the tolerance is 0.043.
    tolerance = 4 * 0.5 / np.sqrt(n)
    assert tolerance < 0.05
    accuracy = random_outcomes.score(random_outcomes.honest)
    assert abs(accuracy - 0.5) < tolerance
    # Now plant a leak: the only feature is the student's rate in the quiz, and no answer is held
    # out. So the rate at an answer includes the answer's own outcome.
    known = Known(random_outcomes.pairs, random_outcomes.answers)
    asked = Asked(random_outcomes.pairs, known, random_outcomes.rows)
    leaking_rates = rates_of(asked, [("student", "quiz")])
    accuracy_with_leak = random_outcomes.score(pd.DataFrame(leaking_rates))
    # The accuracy exceeds 0.5 by more than twice the tolerance.
    assert accuracy_with_leak > 0.6


def test_the_model_s_logit_ranks_random_outcomes_at_chance(
    random_outcomes: RandomOutcomes,
) -> None:
    """The item response model has not seen the outcomes that it predicts here.

    The outcomes are random. If the model had seen them, it would rank right answers above wrong
    ones more often than by chance. The settings of the model are the default ones (see
    `random_outcomes`).
    """
    # The tolerance is four standard errors. The AUC of random predictions of n answers, half of
    # which are right, has the standard error 1 / √(3 n).
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
    assert (part_of_answer < n_held_out).sum() <= 125_000


def test_the_seed_decides_which_answers_make_a_part() -> None:
    assert (cut_into_parts(1003, 0).part != cut_into_parts(1003, 1).part).any()
