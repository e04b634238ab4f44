"""Features of a question's quality equal worked examples and other implementations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import question_features as qf
import scipy.stats
from conftest import answers_frame
from planted_answers import pair_all

RNG = np.random.default_rng
Example = tuple[qf.QuestionAnswers, pd.DataFrame]


def make_answers(rows: list[tuple[int, int, int]]) -> pd.DataFrame:
    """Return answers from rows of (student, question, option); option 1 is always right."""
    student, question, option = np.array(rows).reshape(-1, 3).T
    return answers_frame(student, question, (option == 1).astype(np.int8), option, 1)


def simulate(n_students: int, slopes: np.ndarray, share: float = 1.0) -> pd.DataFrame:
    """Return simulated answers to questions with these slopes (discriminations) and easiness 0.

    Wrong answers fall on options 2 to 4 at random. A student answers each question with probability
    `share`.
    """
    rng = RNG(0)
    n_questions = len(slopes)
    ability = rng.standard_normal(n_students)
    student, question = pair_all(n_students, n_questions)
    p_right = 1 / (1 + np.exp(-slopes[question] * ability[student]))
    is_right = rng.random(len(student)) < p_right
    option = np.where(is_right, 1, rng.integers(2, 5, len(student)))
    is_answered = rng.random(len(student)) < share
    rows = np.stack([student, question, option], axis=1)
    return make_answers(rows[is_answered].tolist())


def with_columns(data: qf.QuestionAnswers, **columns: object) -> qf.QuestionAnswers:
    """Return the answers with further columns, such as metadata."""
    return qf.QuestionAnswers(data.answers.assign(**columns), data.questions, data.n_options)


def compute(name: str, data: qf.QuestionAnswers) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a feature for all questions, and how many answers each value uses."""
    counted = qf.FEATURES[name].relevant_answers(data)
    return qf.FEATURES[name].values(counted), counted.n_answers


@pytest.fixture(scope="module")
def example() -> Example:
    """Return answers of 120 students to 12 questions, and the same answers as a plain table.

    A student answers each question with probability 1/2. The table has three further columns:
    `rate` is the student's rate of right answers. `rest` is the student's rate of right answers to
    all other questions than the one of the row. `quiz` is one of three quizzes.
    """
    slopes = np.linspace(0.2, 2, 12)
    answers = simulate(120, slopes, share=0.5)
    new_names = {
        "UserId": "student",
        "QuestionId": "question",
        "AnswerValue": "option",
        "IsCorrect": "is_correct",
    }
    table = answers.rename(columns=new_names)
    by_student = table.groupby("student").is_correct
    table["rate"] = by_student.transform("mean")
    n_other_answers = by_student.transform("size") - 1
    n_others_right = by_student.transform("sum") - table.is_correct
    table["rest"] = n_others_right / n_other_answers
    # All answers of a student belong to the same quiz: 0, 1 or 2.
    table["quiz"] = table.student % 3
    return qf.number_answers(answers, np.arange(12)), table


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        # Options with the shares 1/2, 1/4 and 1/4 have an entropy of
        # 1/2 · 1 + 1/4 · 2 + 1/4 · 2 = 1.5 bits. If all students choose one option, the entropy is
        # 0.
        (qf.option_entropy, [1.5, np.nan, 0]),
        (qf.correct_entropy, [1, np.nan, 0]),
        (qf.correct_rate, [0.5, np.nan, 0]),
    ],
)
def test_entropy_of_a_worked_example(feature: Any, expected: list[float]) -> None:
    """Question 7 has four answers, question 8 none, question 9 two."""
    answers = make_answers([(0, 7, 1), (1, 7, 1), (2, 7, 2), (3, 7, 3), (0, 9, 4), (1, 9, 4)])
    data = qf.number_answers(answers, np.array([7, 8, 9]))
    assert data.n_answers.tolist() == [4, 0, 2]
    assert np.array_equal(feature(data), expected, equal_nan=True)


def test_the_right_option_of_a_question_is_the_most_frequent_one_in_the_answers() -> None:
    """Question 5 has no answers, so 0 stands for its right option."""
    answers = make_answers([(0, 0, 1), (1, 0, 1), (2, 0, 2)])
    answers["CorrectAnswer"] = [1, 2, 2]
    questions = qf.number_answers(answers, np.array([0, 5])).questions
    assert questions.CorrectAnswer.tolist() == [2, 0]


def test_entropy_within_quizzes_is_the_weighted_mean_of_the_quizzes(example: Example) -> None:
    """The entropy in each quiz is weighted by the number of answers to the question in this quiz.

    Answers without a quiz are left out. Entropy within classes is computed in the same way.
    `example` holds some answers in two forms with the same rows: `data` for the functions under
    test, and `table` to compute the expected values.
    """
    data, table = example
    quiz = table.quiz.to_numpy()
    is_without_quiz = np.arange(len(table)) < 40
    # The number -1 stands for no quiz.
    quiz_or_none = np.where(is_without_quiz, -1, quiz)
    with_quiz = table[~is_without_quiz]

    value, n_answers = compute("entropy_within_quiz", with_columns(data, QuizId=quiz_or_none))

    expected = []
    for question in range(12):
        rows = with_quiz[with_quiz.question == question]
        # How often each option (column) was chosen in each quiz (row).
        counts = pd.crosstab(rows.quiz, rows.option).to_numpy()
        entropy_by_quiz = scipy.stats.entropy(counts, base=2, axis=1)
        expected.append(np.average(entropy_by_quiz, weights=counts.sum(axis=1)))
    assert value == pytest.approx(expected)
    assert n_answers.tolist() == with_quiz.question.value_counts().sort_index().tolist()
    within_class, _ = compute("entropy_within_group", with_columns(data, GroupId=quiz_or_none))
    assert np.array_equal(within_class, value)


def test_the_mean_absolute_residual_agrees_with_pandas(example: Example) -> None:
    data, table = example
    residual = (table.rate - table.is_correct).abs()
    expected = residual.groupby(table.question).mean()
    assert qf.mean_absolute_residual(data) == pytest.approx(expected.to_numpy())


def test_point_biserial_correlations_agree_with_pandas(example: Example) -> None:
    """The correlation of an option is the correlation of choosing it with the student's ability.

    The student's rate of right answers to other questions (`rest`) stands for the ability. Option 1
    is right, so its correlation is also the correlation of the question.
    """
    data, table = example

    def expected(option: int) -> list[float]:
        """Return the correlation of an option for each question."""
        by_question = table.groupby("question")
        return [(rows.option == option).corr(rows.rest) for _, rows in by_question]

    # A row for each question, a column for each option: column 0 is option 1.
    by_option = qf.option_point_biserial(data)
    assert by_option[:, 0] == pytest.approx(expected(option=1))
    assert by_option[:, 2] == pytest.approx(expected(option=3))
    by_question = qf.point_biserial(data)
    assert by_question == pytest.approx(expected(option=1))


def test_slopes_of_the_two_parameter_model_are_recovered() -> None:
    slopes = np.linspace(0, 2.5, 30)
    value = qf.irt_slope(qf.number_answers(simulate(1500, slopes, share=0.7), np.arange(31)))
    assert np.isnan(value[30])
    # Steep slopes are shrunk towards the others, but keep their order. Each question has 1,050
    # answers with a Fisher information of 0.1 or more, so that a slope has a standard error of at
    # most 0.1. The true slopes have a standard deviation of 0.75. Therefore estimated and true
    # slopes should have a correlation of about 1 - (0.1 / 0.75)² / 2 = 0.99.
    assert 0.8 < np.polyfit(slopes, value[:30], 1)[0] < 1.1
    assert np.corrcoef(value[:30], slopes)[0, 1] > 0.98


@pytest.fixture(scope="module")
def with_distractors() -> qf.QuestionAnswers:
    """Return answers of 20 weak and 20 able students to eight questions.

    Option 1 is right in every question.

    - Question 0: weak students choose option 2. Able students choose option 1, except for one, who
      chooses option 4.
    - Question 1: weak students choose option 1, able students option 3. So the right option seems
      to be wrong.
    - Questions 2 to 7: able students choose option 1, weak students option 2.
    """
    options_of_weak = [2, 1, 2, 2, 2, 2, 2, 2]
    options_of_able = [1, 3, 1, 1, 1, 1, 1, 1]
    options_of_exception = [4, 3, 1, 1, 1, 1, 1, 1]
    # The options that each student chooses. Able students have the lower ids, so that sorting by id
    # does not sort by ability.
    options_by_student = [options_of_exception] + [options_of_able] * 19 + [options_of_weak] * 20
    rows = []
    for student, options in enumerate(options_by_student):
        for question, option in enumerate(options):
            rows.append((student, question, option))
    return qf.number_answers(make_answers(rows), np.arange(8))


def test_a_distractor_works_if_at_least_a_twentieth_of_the_students_choose_it(
    with_distractors: qf.QuestionAnswers,
) -> None:
    assert qf.working_distractors(with_distractors)[:2].tolist() == [1, 1]


def test_the_worst_distractor_is_the_one_that_able_students_choose(
    with_distractors: qf.QuestionAnswers,
) -> None:
    worst = qf.worst_distractor(with_distractors)
    assert worst[0] < -0.8
    assert worst[1] > 0.8


def test_options_are_counted_in_quarters_of_the_students_by_ability(
    with_distractors: qf.QuestionAnswers,
) -> None:
    """The students are divided into quarters by ability; the weakest quarter comes first."""
    quarters = [[0, 10, 0, 0], [0, 10, 0, 0], [9, 0, 0, 1], [10, 0, 0, 0]]
    assert qf.option_counts_by_ability(with_distractors, question=0).tolist() == quarters
    assert not qf.option_counts_by_ability(with_distractors, question=99).any()


def test_a_question_that_all_answer_alike_has_no_correlation_and_no_distractor() -> None:
    answers = make_answers([(student, 0, 1) for student in range(9)])
    data = qf.number_answers(answers, np.arange(1))
    assert np.isnan(qf.point_biserial(data)).all()
    assert qf.working_distractors(data).tolist() == [0]
    assert np.isnan(qf.worst_distractor(data)).all()


@pytest.mark.parametrize(
    ("name", "expected", "n_expected"),
    [
        ("mean_confidence", [75, np.nan, np.nan], [2, 0, 0]),
        ("confidence_missing", [1 / 3, 1, np.nan], [3, 3, 0]),
    ],
)
def test_features_of_confidence_by_hand(
    name: str, expected: list[float], n_expected: list[int]
) -> None:
    """Question 0 has three answers, two of them with a confidence; question 2 has no answers."""
    rows = [(0, 0, 1), (1, 1, 1), (2, 0, 1), (3, 1, 1), (4, 0, 1), (5, 1, 1)]
    confidence = np.array([100, np.nan, np.nan, np.nan, 50, np.nan], np.float32)
    data = with_columns(qf.number_answers(make_answers(rows), np.arange(3)), Confidence=confidence)
    value, n = compute(name, data)
    assert value == pytest.approx(expected, nan_ok=True)
    assert n.tolist() == n_expected


@dataclass(frozen=True)
class Rates:
    """Simulated answers to 200 questions whose rates of right answers are known."""

    data: qf.QuestionAnswers
    # The true rate of right answers to each question.
    truth: np.ndarray
    # The number of answers to each question.
    n_answers: np.ndarray


@pytest.fixture(scope="module")
def rates() -> Rates:
    """Return answers of 400 students, of whom 10 to 149 answer each question."""
    rng = RNG(2)
    truth = rng.beta(8, 6, 200)
    n_answers = rng.integers(10, 150, 200)
    rows = []
    for question in range(200):
        for student in rng.permutation(400)[: n_answers[question]]:
            option = 1 if rng.random() < truth[question] else 2
            rows.append((student, question, option))
    return Rates(qf.number_answers(make_answers(rows), np.arange(200)), truth, n_answers)


def test_shrinking_brings_values_closer_to_the_truth(rates: Rates) -> None:
    raw = qf.correct_rate(rates.data)
    value = qf.shrink(qf.FEATURES["correct_rate"], rates.data)
    assert np.mean((value - rates.truth) ** 2) < 0.8 * np.mean((raw - rates.truth) ** 2)


def test_a_value_is_shrunk_by_its_reliability(rates: Rates) -> None:
    """The distance from the mean is multiplied by the reliability.

    The reliability is the share of a value's variance that comes from the true values and not from
    chance. The more answers, the greater the reliability.
    """
    raw = qf.correct_rate(rates.data)
    shrunk = qf.shrink(qf.FEATURES["correct_rate"], rates.data)

    mean = rates.truth.mean()
    true_variance = rates.truth.var()
    # The variance of a share of n right answers, each right with probability p, is p (1 - p) / n.
    variance_by_chance = np.mean(rates.truth * (1 - rates.truth)) / rates.n_answers
    reliability = true_variance / (true_variance + variance_by_chance)
    # Compare only values whose distance from the mean is more than 0.1. For other values, the
    # quotient of the two distances below would be inexact. The reason is that `shrink` estimates
    # the mean from 200 rates with a standard deviation of 0.13, so the estimated mean has an error
    # of 0.13 / √200 = 0.009. This error is less than a tenth of a distance above 0.1.
    is_far = np.abs(raw - mean) > 0.1
    distance = (raw - mean)[is_far]
    shrunk_distance = (shrunk - mean)[is_far]
    assert shrunk_distance / distance == pytest.approx(reliability[is_far], abs=0.15)


def test_shrinking_twice_gives_the_same_values(rates: Rates) -> None:
    """To estimate the noise, `shrink` halves the students at random, each time in the same way."""
    first = qf.shrink(qf.FEATURES["correct_rate"], rates.data)
    second = qf.shrink(qf.FEATURES["correct_rate"], rates.data)
    assert np.array_equal(first, second)


# Some answers to questions 0 to 3, as rows of (student, question, option). Option 1 is right.
SCARCE_ANSWERS = {
    "one answer": [(0, 3, 2)],
    "equal answers": [(student, 3, 1) for student in range(30)],
    "eight answers": [(student, student % 2, 1 + student % 4) for student in range(8)],
}


@pytest.mark.parametrize("rows", SCARCE_ANSWERS.values(), ids=SCARCE_ANSWERS.keys())
@pytest.mark.parametrize("name", qf.FEATURES)
def test_scarce_answers_cause_no_warning_and_unanswered_questions_get_nan(
    name: str, rows: list[tuple[int, int, int]]
) -> None:
    """Every feature of questions 0 to 4 can be computed from the few answers in `rows`.

    Nobody has answered question 4, so its value is NaN. Some features need metadata: the confidence
    of an answer, the student's class, the quiz, and the number of a question's subjects.
    """
    data = qf.number_answers(make_answers(rows), np.arange(5))
    unknown_class = -1
    unknown_confidence = np.float32(np.nan)
    data = with_columns(data, Confidence=unknown_confidence, GroupId=unknown_class, QuizId=0)
    data.questions["n_subjects"] = 4.0
    # A numerical warning, such as for a division by 0, becomes an error.
    with np.errstate(all="raise"):
        value = qf.shrink(qf.FEATURES[name], data)
    assert value.shape == (5,)
    assert not np.isinf(value).any()
    # The number of subjects is known for questions without answers too.
    assert np.isnan(value[4]) or name == "number_of_subjects"


def test_the_question_of_sat12_with_a_doubtful_right_option_is_found(real_data: Path) -> None:
    table = pd.read_csv(real_data / "sat12/sat12_600x32.csv").astype(int)
    data = qf.number_answers(table, np.arange(32))
    assert data.n_options == 5
    assert qf.point_biserial(data).argmin() == 31
    assert qf.irt_slope(data).argmin() == 31
    assert np.nanargmax(qf.worst_distractor(data)) == 31
