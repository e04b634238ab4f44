"""Question features: worked examples, other implementations, properties, real answers."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import question_features as qf
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from common.answers import Answers
from common.errors import InputError

RNG = np.random.default_rng


def make_answers(rows: list[tuple[int, int, int]], key: int = 1) -> Answers:
    """Answers from (student, question, option); the right option is the same everywhere."""
    student, question, option = np.array(rows).reshape(-1, 3).T
    return Answers(
        student, question, (option == key).astype(np.int8), option, np.full_like(option, key)
    )


def simulate(n_students: int, slopes: np.ndarray, share: float = 1.0, seed: int = 0) -> Answers:
    """Answers to two-parameter questions of easiness 0; wrong answers fall on options 2 to 4."""
    rng = RNG(seed)
    ability = rng.standard_normal(n_students)
    student, question = np.divmod(np.arange(n_students * len(slopes)), len(slopes))
    right = rng.random(len(student)) < 1 / (1 + np.exp(-slopes[question] * ability[student]))
    option = np.where(right, 1, rng.integers(2, 5, len(student)))
    kept = rng.random(len(student)) < share
    return make_answers(np.stack([student, question, option], axis=1)[kept].tolist())


@pytest.fixture(scope="module")
def example() -> tuple[qf.QuestionAnswers, pd.DataFrame]:
    """Answers of 120 students to half of 12 questions, and the same as a table."""
    answers = simulate(120, np.linspace(0.2, 2, 12), share=0.5)
    columns = ("student", "question", "is_correct", "option")
    table = pd.DataFrame({name: getattr(answers, name) for name in columns})
    by_student = table.groupby("student").is_correct
    table["rate"] = by_student.transform("mean")
    n = by_student.transform("size")
    table["rest"] = (by_student.transform("sum") - table.is_correct) / (n - 1)
    return qf.number_answers(answers, np.arange(12)), table.assign(quiz=table.student % 3)


# ---- How the answers spread -------------------------------------------------------------------


def test_entropy_of_a_worked_example() -> None:
    # Half, a quarter, a quarter: 1/2 · 1 + 1/4 · 2 + 1/4 · 2 bits; and one option alone: none.
    answers = make_answers([(0, 7, 1), (1, 7, 1), (2, 7, 2), (3, 7, 3), (0, 9, 4), (1, 9, 4)])
    data = qf.number_answers(answers, np.array([7, 8, 9]))
    for feature, expected in (
        (qf.option_entropy, [1.5, np.nan, 0]),
        (qf.correct_entropy, [1, np.nan, 0]),
        (qf.correct_rate, [0.5, np.nan, 0]),
    ):
        value, n = feature(data)
        assert np.array_equal(value, expected, equal_nan=True)
        assert n.tolist() == [4, 0, 2]


@given(st.lists(st.lists(st.integers(0, 50), min_size=5, max_size=5), min_size=1, max_size=9))
def test_entropy_as_scipy(counts: list[list[int]]) -> None:
    known = [row for row in counts if sum(row)]
    value = qf.entropy(np.array(counts))
    assert np.isnan(value).tolist() == [not sum(row) for row in counts]
    assert value[~np.isnan(value)] == pytest.approx(
        [scipy.stats.entropy(row, base=2) for row in known], abs=1e-12
    )


def test_entropy_within_quizzes(example: tuple[qf.QuestionAnswers, pd.DataFrame]) -> None:
    data, table = example
    quiz = (data.student % 3).astype(np.int32)
    quiz[:40] = -1
    value, n = qf.entropy_within_quiz(replace(data, quiz=quiz))
    known = table.iloc[40:]

    def within(rows: pd.DataFrame) -> float:
        counts = pd.crosstab(rows.quiz, rows.option).to_numpy()
        return float(np.average(scipy.stats.entropy(counts, base=2, axis=1), weights=counts.sum(1)))

    expected = [within(known[known.question == q]) for q in range(12)]
    assert value == pytest.approx(expected)
    assert n.tolist() == known.question.value_counts().sort_index().tolist()
    # A condition can only take uncertainty away.
    unconditional, _ = qf.option_entropy(data.take(quiz >= 0))
    assert (value <= unconditional + 1e-12).all()
    # The same for the groups of students.
    assert np.array_equal(qf.entropy_within_group(replace(data, group=quiz))[0], value)


# ---- How the answers depend on ability ----------------------------------------------------------


def test_mean_absolute_residual(example: tuple[qf.QuestionAnswers, pd.DataFrame]) -> None:
    data, table = example
    expected = (table.rate - table.is_correct).abs().groupby(table.question).mean()
    assert qf.mean_absolute_residual(data)[0] == pytest.approx(expected.to_numpy())


def test_point_biserial_as_pandas(example: tuple[qf.QuestionAnswers, pd.DataFrame]) -> None:
    data, table = example
    by_question = [rows for _, rows in table.groupby("question")]
    expected = [rows.is_correct.corr(rows.rest) for rows in by_question]
    assert qf.point_biserial(data)[0] == pytest.approx(expected)
    options = qf.option_point_biserial(data)
    assert options[:, 0] == pytest.approx(expected)
    assert options[:, 2] == pytest.approx(
        [(rows.option == 3).corr(rows.rest) for rows in by_question]
    )


def test_slopes_of_the_two_parameter_model_are_recovered() -> None:
    slopes = np.linspace(0, 2.5, 30)
    value, _ = qf.irt_slope(qf.number_answers(simulate(1500, slopes, share=0.7), np.arange(31)))
    assert np.isnan(value[30])
    # Steep slopes are shrunk towards the others, but keep their order.
    assert 0.8 < np.polyfit(slopes, value[:30], 1)[0] < 1.1
    assert np.corrcoef(value[:30], slopes)[0, 1] > 0.98


def test_distractors_of_a_worked_example() -> None:
    # 40 students, ability rising. Question 0: weak ones choose 2, able ones 1, one of them 4, less
    # than 5 %. Question 1: the key is wrong, able students choose 3. The others set the rest score.
    rows = []
    for student in range(40):
        able = student >= 20
        rows += [(student, 0, 4 if student == 39 else 1 if able else 2)]
        rows += [(student, 1, 3 if able else 1)]
        rows += [(student, question, 1 if able else 2) for question in range(2, 8)]
    data = qf.number_answers(make_answers(rows), np.arange(8))
    assert qf.working_distractors(data)[0][:2].tolist() == [1, 1]
    worst = qf.worst_distractor(data)[0]
    assert worst[0] < -0.8
    assert worst[1] > 0.8


def test_where_all_answer_alike_there_is_neither_correlation_nor_distractor() -> None:
    data = qf.number_answers(make_answers([(s, 0, 1) for s in range(9)]), np.arange(1))
    assert np.isnan(qf.point_biserial(data)[0]).all()
    assert qf.working_distractors(data)[0].tolist() == [0]
    assert np.isnan(qf.worst_distractor(data)[0]).all()


def test_key_is_the_most_frequent_correct_answer() -> None:
    option = np.array([1, 2, 2, 1])
    key = np.array([1, 2, 2, 2])
    answers = Answers(np.arange(4), np.zeros(4, int), (option == key).astype(np.int8), option, key)
    assert qf.number_answers(answers, np.array([0, 5])).key.tolist() == [1, -1]  # type: ignore[union-attr]


def test_quarters_rise_in_ability(example: tuple[qf.QuestionAnswers, pd.DataFrame]) -> None:
    data, _ = example
    counts = qf.option_counts_by_ability(data, row=11)
    assert counts.shape == (4, 4)
    assert counts.sum(axis=0).tolist() == qf.option_counts(data)[11].tolist()
    assert np.ptp(counts.sum(axis=1)) <= 1
    shares = counts / counts.sum(axis=1, keepdims=True)
    # A question of slope 2: able students answer it correctly more often.
    assert shares[3, 0] > shares[0, 0] + 0.3
    overall = qf.option_counts(data)[11] / qf.option_counts(data)[11].sum()
    assert shares.mean(axis=0) == pytest.approx(overall, abs=0.03)
    assert not qf.option_counts_by_ability(data.take(data.question != 11), row=11).any()


# ---- What students and authors say ------------------------------------------------------------


def test_confidence() -> None:
    data = qf.number_answers(make_answers([(s, s % 2, 1) for s in range(6)]), np.arange(3))
    stated = np.array([100, np.nan, 50, np.nan, np.nan, np.nan], np.float32)
    data = replace(data, confidence=stated)
    value, n = qf.mean_confidence(data)
    assert value[0] == 75
    assert np.isnan(value[1:]).all()
    assert n.tolist() == [2, 0, 0]
    missing, n = qf.confidence_missing(data)
    assert missing[:2] == pytest.approx([1 / 3, 1])
    assert n.tolist() == [3, 3, 0]


# ---- Few answers, ranks -----------------------------------------------------------------------


def test_a_question_with_few_answers_does_not_top_the_list() -> None:
    rng = RNG(5)
    rows = [(s, q, 1 if rng.random() < 0.7 else 2) for s in range(400) for q in range(1, 30)]
    rows += [(s, 0, 1) for s in range(7)]
    data = qf.number_answers(make_answers(rows), np.arange(30))
    raw, _ = qf.correct_rate(data)
    assert raw.argmax() == 0
    value, weight = qf.shrink(qf.FEATURES["correct_rate"], data)
    assert weight[0] < 0.2
    assert abs(value[0] - raw[1:].mean()) < 0.1
    # Equal questions differ by chance alone: even many answers say little about their order.
    assert weight[1:].max() < 0.7


def test_shrinking_brings_values_closer_to_the_truth() -> None:
    rng = RNG(2)
    truth = rng.beta(8, 6, 200)
    n = rng.integers(10, 150, 200)
    rows = [(s, q, 1 if rng.random() < truth[q] else 2) for q in range(200)
            for s in rng.permutation(400)[: n[q]]]  # fmt: skip
    data = qf.number_answers(make_answers(rows), np.arange(200))
    raw, _ = qf.correct_rate(data)
    value, weight = qf.shrink(qf.FEATURES["correct_rate"], data)
    assert np.mean((value - truth) ** 2) < 0.8 * np.mean((raw - truth) ** 2)
    # The more answers, the more weight: w = t / (t + s / n) with t and s of the beta distribution.
    between, within = truth.var(), np.mean(truth * (1 - truth))
    assert weight == pytest.approx(between / (between + within / n), abs=0.12)


def test_shrinking_is_repeatable_and_leaves_what_is_no_sample() -> None:
    data = qf.number_answers(simulate(80, np.ones(6)), np.arange(6))
    first, again = (qf.shrink(qf.FEATURES["option_entropy"], data)[0] for _ in range(2))
    assert np.array_equal(first, again)
    data = replace(data, n_subjects=np.array([4.0, 4, 5, 4, np.nan, 4]))
    value, weight = qf.shrink(qf.FEATURES["number_of_subjects"], data)
    assert np.array_equal(value, data.n_subjects, equal_nan=True)
    assert np.array_equal(weight, [1, 1, 1, 1, np.nan, 1], equal_nan=True)


@pytest.mark.parametrize("name", qf.FEATURES)
def test_every_feature_survives_scarce_answers(name: str) -> None:
    """One answer, all answers alike, unanswered questions: no warning, NaN where unknown."""
    for rows in (
        [(0, 3, 2)],
        [(s, 3, 1) for s in range(30)],
        [(s, s % 2, 1 + s % 4) for s in range(8)],
    ):
        data = qf.number_answers(make_answers(rows), np.arange(5))
        data = replace(
            data,
            confidence=np.full(len(rows), np.nan, np.float32),
            group=np.full(len(rows), -1),
            quiz=np.zeros(len(rows), int),
            n_subjects=np.full(5, 4.0),
        )
        with np.errstate(all="raise"):
            value, weight = qf.shrink(qf.FEATURES[name], data)
        assert value.shape == weight.shape == (5,)
        assert not np.isinf(value).any()
        if name != "number_of_subjects":
            assert np.isnan(value[4])


@given(st.lists(st.sampled_from([0.0, 1, 2, 3, np.nan]), min_size=1, max_size=20))
def test_average_ranks_as_scipy(quality: list[float]) -> None:
    expected = scipy.stats.rankdata(np.nan_to_num(-np.array(quality), nan=99))
    assert qf.average_ranks(np.array(quality)).tolist() == expected.tolist()


# ---- Reading ----------------------------------------------------------------------------------


def test_several_files_are_put_together(write: Callable[[str, str], Path], tmp_path: Path) -> None:
    header = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue\n"
    one = write("one.csv", header + "5,1,0,1,2,2\n")
    two = write("two.csv", header + "5,2,1,0,2,3\n")
    data = qf.read_for_features(["option_entropy"], [one, two], np.array([5, 6]), tmp_path)
    assert qf.option_entropy(data)[0][0] == 1
    with pytest.raises(InputError, match="both hold UserId 1 and QuestionId 5"):
        qf.read_for_features(["option_entropy"], [one, one], np.array([5]), tmp_path)
    assert "mean_confidence" not in qf.available_features(tmp_path)
    assert "irt_slope" in qf.available_features(tmp_path)


# ---- Real answers -----------------------------------------------------------------------------


def test_the_doubted_key_of_sat12_is_found(real_data: Path) -> None:
    table = pd.read_csv(real_data / "sat12/sat12_600x32.csv").astype(int)
    columns = ("UserId", "QuestionId", "IsCorrect", "AnswerValue", "CorrectAnswer")
    answers = Answers(*(table[name].to_numpy() for name in columns))
    data = qf.number_answers(answers, np.arange(32))
    assert data.n_options == 5
    assert qf.point_biserial(data)[0].argmin() == 31
    assert qf.irt_slope(data)[0].argmin() == 31
    assert np.nanargmax(qf.worst_distractor(data)[0]) == 31
