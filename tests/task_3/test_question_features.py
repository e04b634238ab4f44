"""Question features: worked examples, other implementations, properties, real answers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import question_features as qf
import scipy.stats
from conftest import answers_frame

RNG = np.random.default_rng
Example = tuple[qf.QuestionAnswers, pd.DataFrame]


def make_answers(rows: list[tuple[int, int, int]]) -> pd.DataFrame:
    """Answers from (student, question, option); option 1 is right everywhere."""
    student, question, option = np.array(rows).reshape(-1, 3).T
    return answers_frame(student, question, (option == 1).astype(np.int8), option, 1)


def simulate(n_students: int, slopes: np.ndarray, share: float = 1.0) -> pd.DataFrame:
    """Answers to two-parameter questions of easiness 0; wrong answers fall on options 2 to 4."""
    rng = RNG(0)
    ability = rng.standard_normal(n_students)
    student, question = np.divmod(np.arange(n_students * len(slopes)), len(slopes))
    right = rng.random(len(student)) < 1 / (1 + np.exp(-slopes[question] * ability[student]))
    option = np.where(right, 1, rng.integers(2, 5, len(student)))
    kept = rng.random(len(student)) < share
    return make_answers(np.stack([student, question, option], axis=1)[kept].tolist())


def having(data: qf.QuestionAnswers, **columns: object) -> qf.QuestionAnswers:
    """Add metadata to the answers."""
    return qf.QuestionAnswers(data.answers.assign(**columns), data.questions, data.n_options)


def compute(name: str, data: qf.QuestionAnswers) -> tuple[np.ndarray, np.ndarray]:
    """Return a feature of every question, and the number of answers that it rests on."""
    counted = qf.FEATURES[name].relevant_answers(data)
    return qf.FEATURES[name].values(counted), counted.n_answers


@pytest.fixture(scope="module")
def example() -> Example:
    """Answers of 120 students to half of 12 questions, and the same as a table."""
    answers = simulate(120, np.linspace(0.2, 2, 12), share=0.5)
    columns = {"UserId": "student", "QuestionId": "question", "AnswerValue": "option"}
    table = answers.rename(columns={**columns, "IsCorrect": "is_correct"})
    by_student = table.groupby("student").is_correct
    table["rate"] = by_student.transform("mean")
    n = by_student.transform("size")
    table["rest"] = (by_student.transform("sum") - table.is_correct) / (n - 1)
    return qf.number_answers(answers, np.arange(12)), table.assign(quiz=table.student % 3)


def test_entropy_of_a_worked_example() -> None:
    # Half, a quarter, a quarter: 1/2 · 1 + 1/4 · 2 + 1/4 · 2 bits; and one option alone: none.
    answers = make_answers([(0, 7, 1), (1, 7, 1), (2, 7, 2), (3, 7, 3), (0, 9, 4), (1, 9, 4)])
    data = qf.number_answers(answers, np.array([7, 8, 9]))
    assert data.n_answers.tolist() == [4, 0, 2]
    for feature, expected in (
        (qf.option_entropy, [1.5, np.nan, 0]),
        (qf.correct_entropy, [1, np.nan, 0]),
        (qf.correct_rate, [0.5, np.nan, 0]),
    ):
        assert np.array_equal(feature(data), expected, equal_nan=True)
    # The key is the most frequent correct answer.
    answers = make_answers([(0, 0, 1), (1, 0, 1), (2, 0, 2)]).assign(CorrectAnswer=[1, 2, 2])
    assert qf.number_answers(answers, np.array([0, 5])).questions.CorrectAnswer.tolist() == [2, 0]


def test_entropy_within_quizzes(example: Example) -> None:
    data, table = example
    quiz = data.answers.UserId.to_numpy() % 3
    quiz[:40] = -1
    value, n = compute("entropy_within_quiz", having(data, QuizId=quiz))
    known = table.iloc[40:]

    def within(rows: pd.DataFrame) -> float:
        counts = pd.crosstab(rows.quiz, rows.option).to_numpy()
        return float(np.average(scipy.stats.entropy(counts, base=2, axis=1), weights=counts.sum(1)))

    expected = [within(known[known.question == q]) for q in range(12)]
    assert value == pytest.approx(expected)
    assert n.tolist() == known.question.value_counts().sort_index().tolist()
    # The same for the groups of students.
    assert np.array_equal(compute("entropy_within_group", having(data, GroupId=quiz))[0], value)


def test_residuals_and_correlations_as_pandas(example: Example) -> None:
    data, table = example
    rows = [rows for _, rows in table.groupby("question")]
    residuals = [(one.rate - one.is_correct).abs().mean() for one in rows]
    assert qf.mean_absolute_residual(data) == pytest.approx(residuals)
    options = qf.option_point_biserial(data)
    for value, chosen in ((qf.point_biserial(data), 1), (options[:, 0], 1), (options[:, 2], 3)):
        assert value == pytest.approx([(one.option == chosen).corr(one.rest) for one in rows])


def test_slopes_of_the_two_parameter_model_are_recovered() -> None:
    slopes = np.linspace(0, 2.5, 30)
    value = qf.irt_slope(qf.number_answers(simulate(1500, slopes, share=0.7), np.arange(31)))
    assert np.isnan(value[30])
    # Steep slopes are shrunk towards the others, but keep their order. Each of a slope's 1,050
    # answers tells 0.1 or more (Fisher's information), so that its standard error is at most 0.1.
    # Slopes deviate by 0.75, which leaves a correlation of 1 - (0.1 / 0.75)² / 2 = 0.99.
    assert 0.8 < np.polyfit(slopes, value[:30], 1)[0] < 1.1
    assert np.corrcoef(value[:30], slopes)[0, 1] > 0.98


def test_distractors_of_a_worked_example() -> None:
    # 40 students, able ones last. Question 0: weak ones choose 2, able ones 1, one of them 4, less
    # than 5 %. Question 1: the key is wrong, able students choose 3. The others set the rest score.
    weak, able = [2, 1, *[2] * 6], [1, 3, *[1] * 6]
    options = [*[weak] * 20, *[able] * 19, [4, *able[1:]]]
    rows = [(39 - s, q, option) for s, row in enumerate(options) for q, option in enumerate(row)]
    data = qf.number_answers(make_answers(rows), np.arange(8))
    assert qf.working_distractors(data)[:2].tolist() == [1, 1]
    worst = qf.worst_distractor(data)
    assert worst[0] < -0.8 < 0.8 < worst[1]
    # Quarters of the students, the weakest first, whatever their ids.
    quarters = [[0, 10, 0, 0], [0, 10, 0, 0], [9, 0, 0, 1], [10, 0, 0, 0]]
    assert qf.option_counts_by_ability(data, question=0).tolist() == quarters
    assert not qf.option_counts_by_ability(data, question=99).any()
    # Where all answer alike, there is neither correlation nor distractor.
    data = qf.number_answers(make_answers([(s, 0, 1) for s in range(9)]), np.arange(1))
    assert np.isnan(qf.point_biserial(data)).all()
    assert qf.working_distractors(data).tolist() == [0]
    assert np.isnan(qf.worst_distractor(data)).all()


def test_confidence() -> None:
    data = qf.number_answers(make_answers([(s, s % 2, 1) for s in range(6)]), np.arange(3))
    data = having(data, Confidence=np.array([100, *[np.nan] * 3, 50, np.nan], np.float32))
    for name, expected, n_expected in (
        ("mean_confidence", [75, np.nan, np.nan], [2, 0, 0]),
        ("confidence_missing", [1 / 3, 1, np.nan], [3, 3, 0]),
    ):
        value, n = compute(name, data)
        assert value == pytest.approx(expected, nan_ok=True)
        assert n.tolist() == n_expected


def test_shrinking_brings_values_closer_to_the_truth() -> None:
    rng = RNG(2)
    truth = rng.beta(8, 6, 200)
    n = rng.integers(10, 150, 200)
    rows = [(s, q, 1 if rng.random() < truth[q] else 2) for q in range(200)
            for s in rng.permutation(400)[: n[q]]]  # fmt: skip
    data = qf.number_answers(make_answers(rows), np.arange(200))
    raw = qf.correct_rate(data)
    value = qf.shrink(qf.FEATURES["correct_rate"], data)
    assert np.mean((value - truth) ** 2) < 0.8 * np.mean((raw - truth) ** 2)
    # The more answers, the more weight, by the variances of the beta distribution and of answers.
    expected = truth.var() / (truth.var() + np.mean(truth * (1 - truth)) / n)
    far = np.abs(raw - truth.mean()) > 0.1
    # The mean of all 200 questions has a standard error of 0.13 / √200 = 0.009, a tenth of what the
    # values here lie apart from it.
    weight = ((value - truth.mean()) / (raw - truth.mean()))[far]
    assert weight == pytest.approx(expected[far], abs=0.15)
    assert np.array_equal(value, qf.shrink(qf.FEATURES["correct_rate"], data))


@pytest.mark.parametrize("name", qf.FEATURES)
def test_every_feature_survives_scarce_answers(name: str) -> None:
    """One answer, all answers alike, unanswered questions: no warning, NaN where unknown."""
    for rows in ([(0, 3, 2)], [(s, 3, 1) for s in range(30)],
                 [(s, s % 2, 1 + s % 4) for s in range(8)]):  # fmt: skip
        data = qf.number_answers(make_answers(rows), np.arange(5))
        data = having(data, Confidence=np.float32(np.nan), GroupId=-1, QuizId=0)
        data.questions["n_subjects"] = 4.0
        with np.errstate(all="raise"):
            value = qf.shrink(qf.FEATURES[name], data)
        assert value.shape == (5,)
        assert not np.isinf(value).any()
        assert np.isnan(value[4]) or name == "number_of_subjects"


def test_the_doubted_key_of_sat12_is_found(real_data: Path) -> None:
    table = pd.read_csv(real_data / "sat12/sat12_600x32.csv").astype(int)
    data = qf.number_answers(table, np.arange(32))
    assert data.n_options == 5
    assert qf.point_biserial(data).argmin() == 31
    assert qf.irt_slope(data).argmin() == 31
    assert np.nanargmax(qf.worst_distractor(data)) == 31
