"""The map of misconceptions: it finds planted groups, finds none by chance, and says how sure."""

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from common import layout
from common.arrays import BoolArray, IntArray
from common.errors import InputError
from common.schema import N_OPTIONS

import generate_sample
import misconception_groups as groups
import misconceptions
import numpy as np
import pandas as pd
import pytest
from browser import needs_browser, open_browser
from conftest import fails, succeeds
from misconception_groups import Pairs, Ratio, WrongAnswers
from page_reading import read_page
from scipy import sparse
from sklearn.metrics import adjusted_rand_score
from subject_tree import make_subjects

N_STUDENTS = 3000
N_QUESTIONS = 40
N_GROUPS = 5
# The planted group of each item, -1 for none. Item N_OPTIONS · q + o is option o of question q.
# Groups 0 to 4 hold option 1 of four questions each: questions 0 to 3, 4 to 7 and so on. Questions
# 20 to 39 are in no group.
PLANTED = np.full(N_QUESTIONS * N_OPTIONS, -1)
PLANTED[1 : N_QUESTIONS * N_OPTIONS // 2 : N_OPTIONS] = np.repeat(np.arange(N_GROUPS), 4)


def draw_wrong_answers(seed: int = 0) -> WrongAnswers:
    """Draw wrong answers of students, some of whom have misconceptions.

    Option 0 of each question is right; options 1, 2 and 3 are wrong. Each planted group (`PLANTED`)
    stands for a misconception that a student has with probability 0.25. On a question of the group,
    a student with the misconception follows it with probability 0.85 and then chooses option 1.
    Every other choice is random, with probability 1/3 for each wrong option.

    `WrongAnswers.probability` holds, for each answer, the probability of each option if it is
    unknown whether the student has a misconception.
    """
    p_misconception = 0.25
    p_follow = 0.85
    rng = np.random.default_rng(seed)
    # Each student gets each question wrong with probability 0.8.
    student, question = np.nonzero(rng.random((N_STUDENTS, N_QUESTIONS)) < 0.8)
    n_answers = len(student)
    # `PLANTED` has the group of each option, question after question. Look up option 1 of the
    # question of each answer; -1 means that the option is in no group.
    group = PLANTED[question * N_OPTIONS + 1]
    is_in_group = group >= 0
    has_misconception = rng.random((N_STUDENTS, N_GROUPS)) < p_misconception
    may_follow = np.zeros(n_answers, bool)
    may_follow[is_in_group] = has_misconception[student[is_in_group], group[is_in_group]]
    follows = may_follow & (rng.random(n_answers) < p_follow)
    option = np.where(follows, 1, rng.integers(1, N_OPTIONS, n_answers))
    # Students who follow a misconception choose option 1. A third of the others choose it.
    p_follows = np.where(is_in_group, p_misconception * p_follow, 0)
    p_option_1 = p_follows + (1 - p_follows) / 3
    # Options 2 and 3 are equally probable.
    p_option_2_or_3 = (1 - p_option_1) / 2
    p_option_0 = np.zeros(n_answers)
    p_options = [p_option_0, p_option_1, p_option_2_or_3, p_option_2_or_3]
    return WrongAnswers(
        student=student.astype(np.int32),
        question=question.astype(np.int32),
        option=option.astype(np.int8),
        probability=np.stack(p_options, axis=1).astype(np.float32),
        n_students=N_STUDENTS,
        n_questions=N_QUESTIONS,
    )


def first_students(n: int) -> BoolArray:
    """Return whether each student is one of the first n, shape (students,)."""
    return np.arange(N_STUDENTS) < n


# Whether each student belongs to the first, the second or the third part of the students.
# `find_groups` finds groups of options in the answers of the first part, and chooses the best
# threshold by the answers of the second part. The answers of the third part only check the groups.
IS_SEARCHING = first_students(1800)
IS_CHOOSING = first_students(2400) & ~IS_SEARCHING
IS_CHECKING = ~first_students(2400)


def permute_within_questions(wrong: WrongAnswers, seed: int = 0) -> WrongAnswers:
    """Shuffle, for each question, the chosen options among the students who got it wrong."""
    random = np.random.default_rng(seed).random(len(wrong.question))
    option = wrong.option.copy()
    for question in range(wrong.n_questions):
        rows = np.flatnonzero(wrong.question == question)
        # Sort the rows by random numbers, which shuffles them.
        shuffled_rows = rows[np.argsort(random[rows])]
        option[rows] = wrong.option[shuffled_rows]
    return replace(wrong, option=option)


def find_groups(wrong: WrongAnswers) -> IntArray:
    """Find groups of options in the answers of the first part of the students.

    At first each option is a group; groups are merged while the evidence for merging exceeds a
    threshold. Several thresholds are tried. The result is the groups of the threshold with which
    they predict the answers of the second part of the students best.
    """
    pairs = groups.compare_pairs(wrong.of_students(IS_SEARCHING))
    return groups.choose_groups(pairs, wrong.of_students(IS_CHOOSING))


def measure_gain(wrong: WrongAnswers, group: IntArray) -> Ratio:
    """Return how much the groups of options lower the log loss, on average over answers.

    The answers are those of the third part of the students, which had no influence on the groups.
    Each answer is predicted from the student's other answers.
    """
    checking = wrong.of_students(IS_CHECKING)
    gains, n_answers = groups.gain_by_student(known=checking, asked=checking, group=group)
    return groups.ratio_by_student(gains, n_answers)


def standard_error(ratio: Ratio) -> float:
    """Return the standard error of a ratio, from the width of its 95 % interval."""
    return (ratio.high - ratio.low) / (2 * groups.Z_95)


def number_item(*, question: int, option: int) -> int:
    """Return the number of this option of this question, which the code calls an item."""
    return N_OPTIONS * question + option


# ---- Finding groups ------------------------------------------------------------------------------


def test_planted_groups_are_found_exactly() -> None:
    """The evidence for two options of a planted group is about 8 standard deviations.

    If n students got both questions wrong, the evidence is √n · covariance / deviation, here
    √1,152 · 0.06 / 0.25 = 8:

    - Each of 1,800 students gets a question wrong with probability 0.8. So n is about
      1,800 · 0.8² = 1,152.
    - `covariance` is the covariance of choosing the one option and choosing the other option. A
      quarter of the students have the misconception and choose each of the two options with
      probability 0.85 + 0.15 / 3 = 0.9. Other students choose each option with probability 1/3. So
      the covariance is 0.25 · 0.75 · (0.9 - 1/3)² = 0.06.
    - `deviation` is the standard deviation of the product of the two residuals, if the two choices
      were independent. A student chooses an option with probability 0.25 · 0.9 + 0.75 / 3 = 0.475,
      so a residual has the variance 0.475 · 0.525 = 0.25. The product has the standard deviation
      √(0.25 · 0.25) = 0.25.
    """
    group = find_groups(draw_wrong_answers())
    assert ((group >= 0) == (PLANTED >= 0)).all()
    assert adjusted_rand_score(PLANTED, group) == 1


@pytest.mark.parametrize("seed", range(5))
def test_groups_of_permuted_options_predict_no_answers_of_other_students(seed: int) -> None:
    """If options are shuffled among students, no group is real, and groups predict no answers.

    The gain is the decrease in log loss if predictions use the groups. The gain is measured on
    students whose answers were used neither to find groups nor to choose the threshold.
    """
    permuted = permute_within_questions(draw_wrong_answers(seed), seed)
    group = find_groups(permuted)
    gain = measure_gain(permuted, group)
    # The limit is four standard errors: by chance, a gain exceeds it at most once in 30,000 tests.
    assert gain.value <= 4 * standard_error(gain)
    # By chance, two pairs of options may still look like groups. These are 4 of the 120 options.
    assert (group >= 0).sum() <= 4


def test_groups_predict_the_choices_of_students_who_took_no_part_in_the_search() -> None:
    wrong = draw_wrong_answers()
    gain = measure_gain(wrong, find_groups(wrong))
    assert gain.low > 0.005


def test_without_enough_students_no_group_is_found() -> None:
    wrong = draw_wrong_answers().of_students(first_students(10))
    pairs = groups.compare_pairs(wrong)
    assert (groups.choose_groups(pairs, wrong) == -1).all()


def test_two_options_of_one_question_are_never_in_one_group() -> None:
    """An item is an option of a question. Items 0 and 1 are options of the same question.

    So only one of them may join item 2.

    The evidence for items 1 and 2 is 7 standard deviations, for items 0 and 2 only 6: item 1 joins.
    """
    covariance = np.array([[0.0, 99.0, 6.0], [99.0, 0.0, 7.0], [6.0, 7.0, 0.0]])
    group = groups.merge_groups(covariance, np.ones((3, 3)), np.array([0, 0, 1]), 5.0)
    assert group.tolist() == [-1, 0, 0]


def test_evidence_of_pairs_adds_up_when_groups_are_merged() -> None:
    """The evidence for adding item 2 to a group of items 0 and 1 comes from both pairs together.

    An item is an option of a question. Items 0 and 1 are merged first. All variances are 1. The
    evidence for items 0 and 2 is 2.9 standard deviations, and the evidence for items 1 and 2 is
    also 2.9. Together, the evidence is (2.9 + 2.9) / √(1 + 1) = 4.1. So item 2 joins the group if
    the threshold is 4.0, but not if it is 4.2.
    """
    covariance = np.array([[0.0, 9.0, 2.9], [9.0, 0.0, 2.9], [2.9, 2.9, 0.0]])
    question = np.arange(3)
    assert groups.merge_groups(covariance, np.ones((3, 3)), question, 4.0).tolist() == [0, 0, 0]
    assert groups.merge_groups(covariance, np.ones((3, 3)), question, 4.2).tolist() == [0, 0, -1]


def test_pairs_are_sums_over_the_students_who_got_both_questions_wrong() -> None:
    """A pair of options has a covariance and a variance; both are sums over these students.

    Students 0, 1 and 2 get questions 0 and 1 wrong. Student 3 gets only question 0 wrong, and so
    does not count.
    """
    probability = np.array([[0, 0.5, 0.3, 0.2]] * 7, np.float32)
    wrong = WrongAnswers(
        student=np.array([0, 0, 1, 1, 2, 2, 3], np.int32),
        question=np.array([0, 1, 0, 1, 0, 1, 0], np.int32),
        option=np.array([1, 1, 1, 2, 3, 1, 1], np.int8),
        probability=probability,
        n_students=4,
        n_questions=2,
    )
    pairs = groups.compare_pairs(wrong)
    # Compare option 1 of question 0 with option 1 of question 1. Both have probability 0.5.
    first = number_item(question=0, option=1)
    second = number_item(question=1, option=1)
    # A residual is 1 − 0.5 if the student chose the option, otherwise 0 − 0.5. Student 0 chose both
    # options, student 1 only the first, and student 2 only the second.
    products = [0.5 * 0.5, 0.5 * -0.5, -0.5 * 0.5]
    assert pairs.covariance[first, second] == pytest.approx(sum(products))
    # Each residual has the variance 0.5 · 0.5 = 0.25. So the product of two independent residuals
    # has the variance 0.25 · 0.25. The variances of three students add up.
    expected_variance = 3 * 0.25 * 0.25 + groups.EXTRA_VARIANCE
    assert pairs.variance[first, second] == pytest.approx(expected_variance)
    # Two options of the same question make no pair.
    other_option_of_question_0 = number_item(question=0, option=2)
    assert pairs.covariance[first, other_option_of_question_0] == 0
    # The matrix has one entry for a pair: in the row of the item with the smaller number.
    assert pairs.covariance[second, first] == 0


def test_pairs_are_the_same_in_blocks_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = draw_wrong_answers().of_students(first_students(300))
    whole = groups.compare_pairs(wrong)
    monkeypatch.setattr(groups, "BLOCK", 7)
    parts = groups.compare_pairs(wrong)
    assert whole.covariance.nnz == 9 * N_QUESTIONS * (N_QUESTIONS - 1) / 2
    for one, other in ((whole.covariance, parts.covariance), (whole.variance, parts.variance)):
        assert one.nnz == other.nnz
        # With another block size, the same float32 numbers are added in another order, so the
        # rounding errors differ.
        assert abs(one - other).max() < 1e-3


def test_only_the_pairs_that_most_students_got_wrong_are_compared() -> None:
    """With `most_pairs` = 400, only pairs that at least `min_students` got wrong are compared.

    There are 40 · 39 / 2 = 780 pairs of questions. `min_students` is the smallest number that
    leaves at most 400 of them. A student counts for a pair if they got both questions wrong.
    """
    wrong = draw_wrong_answers()
    is_wrong = groups._wrong_matrix(wrong)
    min_students, questions = groups._frequent_questions(is_wrong, most_pairs=400)

    # Entry (i, j) is the number of students who got both question i and question j wrong.
    n_both_wrong = (is_wrong.T @ is_wrong).toarray()
    n_students = {pair: n_both_wrong[pair] for pair in combinations(range(N_QUESTIONS), 2)}
    compared = [pair for pair in n_students if n_students[pair] >= min_students]
    assert len(compared) <= 400
    # With a smaller `min_students`, more than 400 pairs would be left.
    left_by_smaller = [pair for pair in n_students if n_students[pair] >= min_students - 1]
    assert len(left_by_smaller) > 400
    # `questions` are the questions of the compared pairs.
    assert questions.tolist() == np.unique(compared).tolist()
    pairs = groups.compare_pairs(wrong, most_pairs=400)
    # Each pair of questions has 3 · 3 pairs of wrong options, and each of these has an entry.
    assert pairs.covariance.nnz == 3 * 3 * len(compared)


# ---- How sure groups are -------------------------------------------------------------------------


def test_lift_is_one_where_choices_are_independent_and_higher_in_planted_groups() -> None:
    """The lift of a group is how often students choose two of its options, divided by chance.

    A quarter of the students have the misconception and choose each option of the group with
    probability p = 0.9, other students with p = 1/3. On average over the students, they choose two
    options together with probability E[p²] = 0.25 · 0.81 + 0.75 / 9. Independent choices would give
    E[p]² = 0.475². So the lift is E[p²] / E[p]² = 1.267. The tolerance is four standard errors,
    which are less than 0.2.
    """
    wrong = draw_wrong_answers()
    permuted = permute_within_questions(wrong)
    for expected, answers in ((1.267, wrong), (1, permuted)):
        for lift in groups.measure_lift(answers, PLANTED):
            tolerance = 4 * standard_error(lift)
            assert tolerance < 0.2
            assert lift.value == pytest.approx(expected, abs=tolerance)


def test_a_ratio_of_few_students_has_no_interval() -> None:
    few = groups.ratio_by_student(np.ones(19), np.full(19, 0.5))
    assert few.value == 2 and np.isnan(few.low) and np.isnan(few.high)
    enough = groups.ratio_by_student(np.ones(20), np.full(20, 0.5))
    assert enough == Ratio(2, 2, 2)
    assert np.isnan(groups.ratio_by_student(np.zeros(3), np.zeros(3)).value)


def test_each_answer_is_predicted_from_the_others_alone() -> None:
    """The prediction of an answer depends on the student's other answers, not on the answer itself.

    If one answer is changed, its own prediction stays the same, and predictions of other answers
    change. `predict_with_groups` takes known answers and answers to predict. The test passes the
    same object for both, so the function predicts each answer from the student's other answers.
    """
    wrong = draw_wrong_answers().of_students(first_students(50))
    before = groups.predict_with_groups(wrong, wrong, PLANTED)
    # Take the first answer that chooses an option of a planted group. It chooses option 1; change
    # it to option 2, which is in no group.
    chosen_group = PLANTED[wrong.question * N_OPTIONS + wrong.option]
    changed_row, *_ = np.flatnonzero(chosen_group >= 0)
    option = wrong.option.copy()
    option[changed_row] = 2
    changed = replace(wrong, option=option)

    after = groups.predict_with_groups(changed, changed, PLANTED)

    np.testing.assert_allclose(after[changed_row], before[changed_row], rtol=1e-12)
    largest_change_by_answer = np.abs(after - before).max(axis=1)
    assert (largest_change_by_answer > 1e-6).any()


def test_a_student_concerns_a_group_with_two_of_its_options() -> None:
    wrong = WrongAnswers(
        student=np.array([0, 0, 1, 1], np.int32),
        question=np.array([0, 1, 0, 1], np.int32),
        option=np.array([1, 1, 1, 2], np.int8),
        probability=np.full((4, N_OPTIONS), 0.25, np.float32),
        n_students=2,
        n_questions=2,
    )
    group = np.array([-1, 0, -1, -1, -1, 0, -1, -1])
    assert groups.count_students(wrong, group).tolist() == [1]


def test_the_subjects_of_a_group_are_those_of_most_questions_and_may_hold_a_comma() -> None:
    def option(*subjects: str) -> misconceptions.WrongOption:
        return misconceptions.WrongOption(1, 2, 3, 0.5, 10, list(subjects), "", "")

    options = [option("Area, volume"), option("Area, volume", "Angles"), option("Angles"), option()]
    group = misconceptions.Group(5, Ratio(1.0, 1.0, 1.0), [*options, option("Area, volume")])
    assert group.common_subjects == ["Area, volume"]


def test_a_few_rare_choices_are_no_evidence_of_a_misconception() -> None:
    """If only three students choose both of two rare options, the options form no group.

    The three students get two questions wrong, and choose option 1 of both questions. The model of
    answers gives option 1 a probability of only 0.05.
    """
    wrong = WrongAnswers(
        student=np.array([0, 0, 1, 1, 2, 2], np.int32),
        question=np.array([0, 1, 0, 1, 0, 1], np.int32),
        option=np.full(6, 1, np.int8),
        probability=np.array([[0, 0.05, 0.5, 0.45]] * 6, np.float32),
        n_students=3,
        n_questions=2,
    )
    pairs = groups.compare_pairs(wrong)
    first = number_item(question=0, option=1)
    second = number_item(question=1, option=1)
    # Each student has the residual 1 − 0.05 for both options. The covariance is the sum of the
    # products of three students: 3 · 0.95² = 2.7.
    assert pairs.covariance[first, second] == pytest.approx(2.7, abs=0.01)
    # A residual has the variance 0.05 · 0.95 = 0.0475, so the covariance has the standard deviation
    # √3 · 0.0475 = 0.08. Without EXTRA_VARIANCE, the evidence would be 2.7 / 0.08 = 33 standard
    # deviations. EXTRA_VARIANCE adds 1 to the variance, so the evidence is only
    # 2.7 / √(0.08² + 1) = 2.7, which is below 3.5, the lowest threshold in use. So all items get
    # -1, for no group.
    assert (groups.find_groups(pairs, threshold=3.5) == -1).all()


# Groups of the items of three questions with four options: group 0 holds option 1 of each question.
GROUP_OF_OPTIONS_1 = np.array([-1, 0, -1, -1] * 3)


def answers_of_one_student(questions: list[int], options: list[int]) -> WrongAnswers:
    """Return answers of one student to these questions, with these options.

    Option 1 of each question has probability 0.5.
    """
    probability = np.array([[0, 0.5, 0.3, 0.2]] * len(questions), np.float32)
    return WrongAnswers(
        student=np.zeros(len(questions), np.int32),
        question=np.array(questions, np.int32),
        option=np.array(options, np.int8),
        probability=probability,
        n_students=1,
        n_questions=3,
    )


def test_choices_in_other_answers_are_counted_for_each_group() -> None:
    """A student's choices of two options of the same group make a pair, and pairs are counted.

    The first choice of a pair is in the answers `known`, and the second one in the answers `asked`.
    All answers are of student 0 here.
    """
    known = answers_of_one_student(questions=[0], options=[1])
    asked = answers_of_one_student(questions=[1, 2], options=[1, 2])
    choices = groups.pair_choices(known, asked, GROUP_OF_OPTIONS_1)
    # Group 0 holds option 1 of each question. Student 0 chose it in question 0 (in `known`) and in
    # question 1 (in `asked`): one pair.
    assert choices.n_pairs[0, 0] == 1
    # The expected number of pairs: the student chooses option 1 with probability 0.5 in each of the
    # two answers `asked`.
    assert choices.n_expected[0, 0] == 0.5 + 0.5


def test_a_choice_makes_no_pair_with_itself() -> None:
    """Two choices of options of the same group make a pair, but a choice makes none with itself.

    `pair_choices` pairs choices in `known` with choices in `asked`, here the same answers.
    """
    answers = answers_of_one_student(questions=[0, 1, 2], options=[1, 1, 2])
    choices = groups.pair_choices(answers, answers, GROUP_OF_OPTIONS_1)
    # Option 1 is chosen in the answers to questions 0 and 1. These make two pairs of questions,
    # because the order counts: (0, 1) and (1, 0).
    assert choices.n_pairs[0, 0] == 2
    # The expected number of pairs takes the first choice of a pair as given. There are two such
    # choices, in questions 0 and 1. For each, the second choice can be in the two other questions.
    # In each of these, option 1 has the probability 0.5.
    assert choices.n_expected[0, 0] == 2 * (0.5 + 0.5)


def test_no_groups_are_found_without_pairs() -> None:
    nothing = sparse.csr_array((8, 8), dtype=np.float32)
    assert (groups.find_groups(Pairs(nothing, nothing, N_OPTIONS), 4.0) == -1).all()


# ---- Planting misconceptions ---------------------------------------------------------------------


def simulate(n_misconceptions: int) -> generate_sample.School:
    """Simulate the answers of tasks 1 and 2 in the size "tiny"."""
    setting = generate_sample.settings("tiny").tasks_1_2
    rng = np.random.default_rng(0)
    return generate_sample.simulate(rng, setting, make_subjects(), n_misconceptions)


def number_students(school: generate_sample.School, user_id: pd.Series) -> IntArray:
    """Return the number of the student with each UserId.

    The number of a student is the row in `school.students` and in `school.misconceptions.has`. The
    UserIds are 0, 1, … in a random order.
    """
    # `students["UserId"]` is a permutation that maps numbers to UserIds. The argsort of a
    # permutation is its inverse, which maps UserIds to numbers.
    number_of_user_id = np.argsort(school.students["UserId"].to_numpy())
    numbers: IntArray = number_of_user_id[user_id]
    return numbers


def find_answers_with_misconception(
    planted: generate_sample.School, listed: pd.DataFrame
) -> BoolArray:
    """Return, for each answer, whether the student has the misconception of the question.

    `listed` holds the questions with a misconception. The result is False for all other questions.
    """
    assert planted.misconceptions is not None
    misconception_of_question = listed.set_index("QuestionId")["Misconception"]
    # NaN for a question without a misconception.
    misconception = planted.answers["QuestionId"].map(misconception_of_question)
    is_listed = misconception.notna().to_numpy()
    student = number_students(planted, planted.answers["UserId"])
    has_misconception: BoolArray = np.zeros(len(student), bool)
    has_misconception[is_listed] = planted.misconceptions.has[
        student[is_listed], misconception[is_listed].astype(int)
    ]
    return has_misconception


def test_planting_changes_only_answers_of_students_with_the_misconception() -> None:
    """If misconceptions are added to a simulation, only answers of students who have them change.

    `plain` is simulated without misconceptions, `planted` with five, both with the same seed.
    """
    plain = simulate(0)
    planted = simulate(5)
    assert plain.misconceptions is None and planted.misconceptions is not None
    # The QuestionId of each question with a misconception, and the number of the misconception.
    # Each of the five misconceptions has eight questions.
    listed = generate_sample.list_misconceptions(planted, planted.misconceptions)
    assert listed["Misconception"].value_counts().tolist() == [8] * 5
    changing = ("AnswerValue", "IsCorrect", "confidence")
    kept = [column for column in plain.answers if column not in changing]
    pd.testing.assert_frame_equal(plain.answers[kept], planted.answers[kept])

    # For each answer, whether the student has the misconception of the question.
    has_misconception = find_answers_with_misconception(planted, listed)
    is_changed = plain.answers["AnswerValue"] != planted.answers["AnswerValue"]
    assert is_changed.any() and has_misconception[is_changed].all()
    # A misconception decides which wrong option a student chooses. It does not change the
    # probability of the right option, so the shares of right answers differ by chance alone. Each
    # is a share of about 1,200 answers: the standard error of their difference is at most
    # √(2 · 0.25 / 1200) = 0.02, and four of these are 0.08.
    right_before = plain.answers["IsCorrect"][has_misconception].mean()
    right_after = planted.answers["IsCorrect"][has_misconception].mean()
    assert right_after == pytest.approx(right_before, abs=0.08)


def test_a_planted_misconception_leads_to_its_option() -> None:
    """If students with a misconception answer wrongly, most choose the misconception's option.

    The misconception makes them choose its option in a share of 0.8 of their wrong answers. In a
    third of the remaining 0.2, they choose this option for other reasons: 0.8 + 0.2 / 3 = 0.87.
    Students without the misconception choose the option in about a third of their wrong answers.
    """
    planted = simulate(5)
    assert planted.misconceptions is not None
    # The questions of each misconception, and the option to which it leads.
    listed = generate_sample.list_misconceptions(planted, planted.misconceptions)
    answers = planted.answers.merge(listed, on="QuestionId", suffixes=("", "_planted"))
    wrong = answers[answers["IsCorrect"] == 0]
    student = number_students(planted, wrong["UserId"])
    has_misconception = planted.misconceptions.has[student, wrong["Misconception"]]
    chose_its_option = wrong["AnswerValue"] == wrong["AnswerValue_planted"]
    # The expected shares are 0.87 and about 1/3. With about 400 answers, the standard error of a
    # share is about 0.02.
    assert chose_its_option[has_misconception].mean() > 0.75
    assert chose_its_option[~has_misconception].mean() < 0.5


def test_more_misconceptions_than_the_questions_have_room_for_are_refused() -> None:
    with pytest.raises(InputError, match="100 questions have room for 12 misconceptions"):
        simulate(13)


def test_misconceptions_without_room_are_refused_before_anything_is_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are too few questions in tasks 3/4 for 38 misconceptions, but enough in tasks 1/2.

    `simulate` is deleted, so that the test fails if anything is simulated first.
    """
    monkeypatch.delattr(generate_sample, "simulate")
    with pytest.raises(InputError, match="the 300 questions have room for 37 misconceptions"):
        generate_sample.generate(tmp_path / "data", "small", 0, n_misconceptions=38)
    assert not list(tmp_path.rglob("*.csv"))


# ---- The script ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulate small data with few questions, so that 12 misconceptions can be found."""
    folder = tmp_path_factory.mktemp("planted")
    sizes = generate_sample.SIZES
    # The map of misconceptions (the script misconceptions.py) reads only the answers of tasks 3/4.
    # So simulate few answers of tasks 1/2, to save time.
    small = replace(sizes["small"], tasks_1_2=sizes["tiny"].tasks_1_2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sizes, "small", small)
        generate_sample.generate(folder, "small", 0, n_questions=120, n_misconceptions=12)
    return folder


def command_of_map(data: Path, output: Path) -> list[str | Path]:
    """Return the command that finds groups of options in `data` and writes their page and table."""
    script = Path(misconceptions.__file__)
    folders: list[str | Path] = ["--input_dir", data / "train_data"]
    folders += ["--metadata_dir", data / "metadata", "--images_dir", data / "images"]
    return [script, *folders, "--output_dir", output]


@pytest.fixture(scope="module")
def planted_map(planted_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page and the table that the script misconceptions.py writes.

    Both list the groups of options found in `planted_data`; the kit calls them the map of
    misconceptions. The folder also holds a page about question 5, to which the map's page links.
    """
    folder = tmp_path_factory.mktemp("map")
    report = folder / "question_report" / "question_5.html"
    report.parent.mkdir()
    report.touch()
    succeeds(command_of_map(planted_data, folder))
    return folder


def read_html(planted_map: Path) -> str:
    """Return the HTML of the map's page."""
    return (planted_map / misconceptions.PAGE).read_text(encoding="utf-8")


def links_to_files(html: str) -> list[str]:
    """Return the addresses of files to which a page links."""
    return re.findall(r'href="(file:[^"]*)"', html)


def test_the_table_lists_the_planted_misconceptions(planted_data: Path, planted_map: Path) -> None:
    """The table has a row for each option in a group, and its groups are like the planted groups.

    The folder `planted_map` holds the table, which was made from the simulated `planted_data`.
    """
    table = pd.read_csv(planted_map / misconceptions.TABLE)
    planted_file = planted_data / "test_data" / "planted_misconceptions_task_3_4.csv"
    both = table.merge(pd.read_csv(planted_file), on=["QuestionId", "AnswerValue"], how="outer")
    # An option in no found group, or in no planted group, counts as a group of one option. This
    # group gets a negative number that no other group has.
    groups_of_one = pd.Series(-1.0 - np.arange(len(both)))
    found = both["Group"].fillna(groups_of_one)
    planted = both["Misconception"].fillna(groups_of_one)
    # With this seed, the adjusted Rand index is 0.56. For random groups, it would be about 0.
    assert adjusted_rand_score(planted, found) > 0.2
    assert not table.duplicated(["Group", "QuestionId"]).any()
    # The groups with the most students come first.
    assert table["Students"].is_monotonic_decreasing


def test_the_page_of_the_map_links_to_images_and_reports(
    planted_data: Path, planted_map: Path
) -> None:
    """The page links to the image of each question in a group, and to the report of question 5.

    There is no report of another question.
    """
    table = pd.read_csv(planted_map / misconceptions.TABLE)
    report = planted_map / "question_report" / "question_5.html"
    images = [planted_data / "images" / f"{question}.jpg" for question in table["QuestionId"]]
    expected = {image.as_uri() for image in images} | {report.resolve().as_uri()}
    assert {*links_to_files(read_html(planted_map))} == expected


def test_the_page_of_the_map_shows_the_groups_of_the_table(planted_map: Path) -> None:
    table = pd.read_csv(planted_map / misconceptions.TABLE)
    html = read_html(planted_map)
    # `read_page` refuses scripts, so the page's script is removed.
    without_scripts = re.sub(r"<script>.*</script>", "", html, flags=re.DOTALL)
    page = read_page(without_scripts, links_to_files(html))
    assert "From simulated answers" in page.text
    assert f"{table['Group'].max()} groups" in page.text
    first_group = table[table["Group"] == 1]
    shown = page.table("Group 1:")
    assert shown.column("wrong option") == first_group["AnswerValue"].astype(str).tolist()
    assert shown.column("subjects") == first_group["Subjects"].tolist()


def groups_by_search(table: pd.DataFrame) -> dict[str, list[int]]:
    """Return texts to type into the search field of the map's page, and what each must show.

    The keys of the result are the texts. A value lists the numbers of the groups of options that
    the page must then show. `table` lists the groups: it has a row for each option in a group.
    """
    n_groups = table["Group"].max()
    # Search for the smallest QuestionId, such as 1. Other QuestionIds, such as 10, contain it; the
    # search must not find them.
    question = table["QuestionId"].min()
    groups_with_question = table["Group"][table["QuestionId"] == question].unique().tolist()
    subject = table["Subjects"].iloc[0]
    has_subject = table["Subjects"].str.contains(subject, regex=False)
    groups_with_subject = table["Group"][has_subject].unique().tolist()
    # Each search must find some groups, but not all.
    assert 0 < len(groups_with_question) < n_groups
    assert 0 < len(groups_with_subject) < n_groups
    return {
        str(question): groups_with_question,
        f"Question {question}": groups_with_question,
        # The subject in capitals, without its last letter.
        subject.upper()[:-1]: groups_with_subject,
        f"{subject} no-such-word": [],
        # An empty search shows all groups.
        "": list(range(1, n_groups + 1)),
    }


@needs_browser
def test_the_search_shows_the_groups_with_all_words(planted_map: Path, tmp_path: Path) -> None:
    """A search shows the groups that contain all its words.

    A number finds only the question with exactly this number. Other words are also found inside
    longer words, and capitals make no difference.
    """
    table = pd.read_csv(planted_map / misconceptions.TABLE, keep_default_na=False)
    n_groups = table["Group"].max()
    with open_browser(tmp_path / "profile", tmp_path) as tab:
        tab.open(planted_map / misconceptions.PAGE)
        assert f"{n_groups} groups" in tab.text()
        tab.click("search")
        for words, expected in groups_by_search(table).items():
            # Typing replaces the words of the search before, which are selected.
            tab.run("document.getElementById('search').select()")
            if words:
                tab.type(words)
            else:
                tab.press("Backspace")
            text = tab.text()
            shown = [int(number) for number in re.findall(r"Group (\d+):", text)]
            assert shown == expected, words
            assert f"{len(expected)} of {n_groups} groups" in text
        assert not tab.complaints


def test_data_without_groups_give_a_page_that_says_so(planted_data: Path, tmp_path: Path) -> None:
    """The answers of ten students are too few to find any group of options."""
    train = pd.read_csv(planted_data / "train_data" / layout.TRAIN_TASK_3_4)
    few = train[train["UserId"].isin(train["UserId"].unique()[:10])]
    folder = tmp_path / "train_data"
    folder.mkdir()
    few.to_csv(folder / layout.TRAIN_TASK_3_4, index=False)
    succeeds(command_of_map(tmp_path, tmp_path))
    page = read_page((tmp_path / misconceptions.PAGE).read_text(encoding="utf-8"))
    assert "No group was found." in page.text
    assert pd.read_csv(tmp_path / misconceptions.TABLE).empty


def test_answers_without_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train_data").mkdir()
    file = tmp_path / "train_data" / layout.TRAIN_TASK_3_4
    file.write_text("QuestionId,UserId,IsCorrect\n1,1,1\n", encoding="utf-8")
    message = fails(command_of_map(tmp_path, tmp_path))
    assert "CorrectAnswer" in message and str(file) in message
    assert not (tmp_path / misconceptions.PAGE).exists()


def test_the_three_parts_of_the_students_have_the_shares_they_should() -> None:
    part = misconceptions.draw_parts(10_000, seed=0)
    share = np.bincount(part) / len(part)
    # The tolerance is four standard errors of a share of 0.6 among 10,000 students.
    np.testing.assert_allclose(share, misconceptions.SHARES, atol=0.02)
