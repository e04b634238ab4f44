"""Statistics of questions find what was planted, and nothing where nothing was planted."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from common.errors import InputError
from common.item_response import ItemResponse
from common.item_response.fitting import Answers
from common.item_response.left_out import find_abilities, predict_left_out
from common.item_response.model import Gaussians
from common.item_response.question_statistics import QuestionStatistics
from common.item_response.significance import adjust_for_many

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

_N_STUDENTS = 1_000
_N_QUESTIONS = 60


@dataclass(frozen=True)
class Planted:
    """Answers of students who each answer half of the questions, with one ability."""

    student: np.ndarray
    question: np.ndarray
    is_correct: np.ndarray
    # The abilities have the mean 0 and the standard deviation 1.
    ability: np.ndarray
    discrimination: np.ndarray
    difficulty: np.ndarray
    # 1 or 0 for each student; students of group 1 are less able on average.
    group: np.ndarray

    def statistics(self, guessing: float = 0.0) -> QuestionStatistics:
        columns = self.student, self.question, self.is_correct
        return QuestionStatistics(
            ItemResponse(n_dimensions=1, guessing=guessing).fit(*columns), *columns
        )

    def group_column(self) -> pd.Series:
        return pd.Series(np.where(self.group, "few", "many"), index=np.arange(_N_STUDENTS))


def plant(
    seed: int, guessing: float = 0.0, change: Callable[[Planted, np.ndarray], None] | None = None
) -> Planted:
    """Simulate students, questions and answers. Each student answers about half of the questions.

    Before the answers are drawn, `change` may change the logits, shape (students, questions). It
    gets the planted students and questions, still without answers.
    """
    rng = np.random.default_rng(seed)
    drawn_ability = rng.standard_normal(_N_STUDENTS)
    # Make the mean exactly 0 and the standard deviation exactly 1.
    ability = (drawn_ability - drawn_ability.mean()) / drawn_ability.std()
    # Even the least discriminating questions discriminate a little.
    discrimination = np.maximum(rng.normal(1.2, 0.3, _N_QUESTIONS), 0.2)
    difficulty = rng.normal(0, 1, _N_QUESTIONS)
    # A logistic number exceeds x with the probability sigmoid(-x). So P(group 1) is
    # sigmoid(-0.5 - ability): able students are seldom in group 1.
    is_in_group_1 = rng.logistic(size=_N_STUDENTS) > 0.5 + ability
    no_answers = np.zeros(0)
    planted = Planted(
        student=no_answers,
        question=no_answers,
        is_correct=no_answers,
        ability=ability,
        discrimination=discrimination,
        difficulty=difficulty,
        group=is_in_group_1.astype(int),
    )
    logit = ability[:, None] * discrimination - difficulty
    if change is not None:
        change(planted, logit)
    p_right = guessing + (1 - guessing) / (1 + np.exp(-logit))
    # Draw an outcome for every pair of student and question, and keep half of the outcomes.
    is_right = rng.random(p_right.shape) < p_right
    is_answered = rng.random(p_right.shape) < 0.5
    student, question = np.nonzero(is_answered)
    is_correct = is_right[student, question]
    return replace(planted, student=student, question=question, is_correct=is_correct)


@pytest.fixture(scope="module")
def simulations() -> list[tuple[Planted, QuestionStatistics]]:
    """Six data sets that follow the model, three of them with guessing."""
    result = []
    for seed in range(6):
        guessing = 0.2 if seed % 2 else 0.0
        planted = plant(seed, guessing)
        result.append((planted, planted.statistics(guessing)))
    return result


Simulations = list[tuple[Planted, QuestionStatistics]]


# ---- The model is true -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["difficulty", "discrimination"])
def test_intervals_hold_the_true_parameter_as_often_as_they_say(
    simulations: Simulations, name: str
) -> None:
    is_inside = []
    for planted, statistics in simulations:
        table = statistics.parameters()
        distance = np.abs(table[name] - getattr(planted, name)) / table[f"{name}_error"]
        is_inside.append(distance < 1.645)
    # A true coverage of 88 % to 92 % is allowed. The coverage of 360 intervals has a sampling error
    # of √(0.9 · 0.1 / 360) = 0.016, and twice this error is allowed in addition.
    assert abs(np.mean(is_inside) - 0.9) < 0.02 + 2 * 0.016


def plant_three_abilities(
    seed: int,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], dict[str, np.ndarray]]:
    """Simulate answers of 2,000 students that depend on three abilities of each student.

    Returns
    -------
    columns
        The student and the question of each answer, and whether the answer is right.
    parameters
        The true difficulty and discrimination of each of the 120 questions. The statistics have one
        overall ability: the direction of the mean slopes of all questions. A question's
        discrimination is its slope in this direction.
    """
    n_students, n_questions = 2_000, 120
    rng = np.random.default_rng(seed)
    ability = rng.standard_normal((n_students, 3))
    slopes = rng.normal([1.2, 0, 0], [0.3, 0.5, 0.5], (n_questions, 3))
    difficulty = rng.normal(0, 1, n_questions)
    is_answered = rng.random((n_students, n_questions)) < 0.5
    student, question = np.nonzero(is_answered)
    logit = (ability[student] * slopes[question]).sum(axis=1) - difficulty[question]
    # A logistic number is below the logit with the probability sigmoid(logit).
    is_correct = rng.logistic(size=len(logit)) < logit
    mean_slopes = slopes.mean(axis=0)
    direction = mean_slopes / np.linalg.norm(mean_slopes)
    parameters = {"difficulty": difficulty, "discrimination": slopes @ direction}
    return (student, question, is_correct), parameters


def test_intervals_hold_with_several_abilities() -> None:
    """90 % intervals of difficulty and discrimination hold the planted values 90 % of the time.

    Here answers depend on three abilities.
    """
    # An array for each seed and parameter: whether the interval of each question holds the planted
    # value.
    is_inside = []
    for seed in range(2):
        columns, parameters = plant_three_abilities(seed)
        # The model has the default number of abilities, which is more than three. Users do not know
        # how many abilities their answers depend on, and the intervals must hold nevertheless.
        model = ItemResponse(guessing=0.0).fit(*columns)
        table = QuestionStatistics(model, *columns).parameters()
        for name, truth in parameters.items():
            # A normal number lies within 1.645 standard deviations in 90 % of all cases.
            half_width = 1.645 * table[f"{name}_error"]
            is_inside.append(np.abs(table[name] - truth) < half_width)
    # A true coverage of 87 % to 92 % is allowed. The coverage of 480 intervals has a sampling error
    # of √(0.9 · 0.1 / 480) = 0.014, and twice this error is allowed in addition.
    assert 0.87 - 2 * 0.014 < np.mean(is_inside) < 0.92 + 2 * 0.014


@pytest.mark.parametrize("name", ["item_fit", "local_dependence", "differential_functioning"])
def test_5_percent_of_p_values_are_below_0_05_if_nothing_is_planted(
    simulations: Simulations, name: str
) -> None:
    """The answers follow the model here, so p-values should be uniform between 0 and 1.

    The test looks at the shares of p-values below 0.05 and below 0.5. `name` is a method of
    QuestionStatistics that makes a significance test for each question, or for each pair of
    questions.
    """
    p_values = []
    for planted, statistics in simulations:
        if name == "differential_functioning":
            # This test asks whether questions are more difficult for one group of students. These
            # groups differ in ability, but the questions are equally difficult for both.
            table = statistics.differential_functioning(planted.group_column())
        else:
            table = getattr(statistics, name)()
        p_values.append(table["p"])
    p = np.concatenate(p_values)
    # There are six simulations of 60 questions, so at least 360 p-values. Pairs of questions have
    # many more p-values, but these depend on each other. So for each method and each level, the
    # error of the share may be three standard errors of a share among 360 independent p-values.
    assert len(p) >= 360
    for level in (0.05, 0.5):
        assert abs((p < level).mean() - level) < 3 * np.sqrt(level * (1 - level) / 360)


def test_nothing_is_called_significant_where_nothing_is_planted(simulations: Simulations) -> None:
    n_false_alarms = 0
    for _, statistics in simulations:
        n_false_alarms += (statistics.item_fit()["p_adjusted"] < 0.05).sum()
        n_false_alarms += (statistics.local_dependence()["p_adjusted"] < 0.05).sum()
    # There are twelve tables of adjusted p-values, two for each of six data sets. A table has a
    # false alarm with a probability of 5 %. By the binomial distribution, more than three of the
    # twelve tables have a false alarm with a probability of 0.2 %. (It is neglected that a table
    # may have two.)
    assert n_false_alarms <= 3


def test_residuals_of_pairs_are_uncorrelated_on_average(simulations: Simulations) -> None:
    """A residual is the answer minus its prediction from the student's other answers.

    The residuals of two questions are correlated even if no dependence of the questions is planted,
    because both predictions estimate the same ability. `local_dependence` subtracts this
    correlation.
    """
    for _, statistics in simulations:
        pairs = statistics.local_dependence()
        z = pairs["correlation"] / pairs["error"]
        # The mean of 1,770 numbers with standard deviation 1 has a standard error of 0.024.
        assert abs(z.mean()) < 3 * 0.024


def test_wrong_difficulties_are_no_misfit() -> None:
    """The test of a question's fit finds a wrong shape of its curve, not a wrong difficulty.

    The curve is P(right) as a function of the ability. The simulated answers follow the model. But
    before the test of fit, the intercepts of the fitted model are changed by 0.3. Even then, only
    5 % of the p-values may be below 0.05.
    """
    planted = plant(seed=16)
    columns = planted.student, planted.question, planted.is_correct
    model = ItemResponse(n_dimensions=1, guessing=0.0).fit(*columns)
    # `mean` has a row for each question, with the slope in column 0 and the intercept in column 1.
    # A further row, the last one, stands for unknown questions.
    items = model.posterior_.items
    mean = items.mean.copy()
    # Make every other question easier and the others more difficult, by the same number. So the
    # estimated abilities stay the same on average.
    mean[0:_N_QUESTIONS:2, 1] += 0.3
    mean[1:_N_QUESTIONS:2, 1] -= 0.3
    # The estimator computes its fitted attributes anew from the changed posterior.
    model._set_attributes(replace(model.posterior_, items=Gaussians(mean, items.covariance)))
    p = QuestionStatistics(model, *columns).item_fit()["p"]
    # Among 60 p-values, the share below 0.05 has the sampling error √(0.05 · 0.95 / 60) = 0.028.
    # Three times this error is allowed.
    assert (p < 0.05).mean() < 0.05 + 3 * 0.028


def test_reliability_is_the_squared_correlation_with_the_true_ability(
    simulations: Simulations,
) -> None:
    """`reliability` returns a table; its first row is about all students."""
    for planted, statistics in simulations:
        row_of_all = statistics.reliability().iloc[0]
        # The model describes a student's ability by a vector. The statistics reduce it to one
        # number, the overall ability: its component in the direction of the mean slopes.
        answers = statistics._answers
        estimated_ability = answers.students.mean @ answers.direction
        correlation = np.corrcoef(estimated_ability, planted.ability)[0, 1]
        # With 1,000 students, a correlation of about 0.9 has a standard error of 0.006, and the
        # square of the correlation has a standard error of 0.011. Twice this error is allowed. The
        # posteriors of abilities are a little too narrow, so the reliability may be too high by up
        # to 0.025.
        assert abs(row_of_all["reliability"] - correlation**2) < 0.025 + 2 * 0.011
        assert row_of_all["n_students"] == _N_STUDENTS


def test_observed_shares_are_those_of_the_answers(simulations: Simulations) -> None:
    """`fit_groups` sorts the students of each question by the expected P(right) and groups them.

    For each group it returns the number of answers, the observed share of right answers, and the
    share that the model expects. Group 0 has the lowest expected P(right).
    """
    planted, statistics = simulations[0]
    groups = statistics.fit_groups()
    table = statistics.parameters()
    # The groups of a question divide the students who answered it. So the counts of the groups add
    # up to the counts of all answers to the question.
    n_right_in_group = groups["n"] * groups["observed"]
    n_right = n_right_in_group.groupby(groups["question"]).sum()
    n_answers = groups.groupby("question")["n"].sum()
    assert_allclose(n_answers, np.bincount(planted.question))
    assert_allclose(n_right / n_answers, table["share_right"], atol=1e-5)
    planted_n_right = np.bincount(planted.question, planted.is_correct)
    assert_allclose(table["share_right"] * table["n_answers"], planted_n_right)
    # For each question, the expected share rises from one group of students to the next.
    rises = groups["expected"].diff()[groups["group"] > 0]
    assert (rises > 0).all()


# ---- Something is planted ----------------------------------------------------------------------


def test_a_question_that_able_students_fail_does_not_fit() -> None:
    def turn(planted: Planted, logit: np.ndarray) -> None:
        # Above the average ability, the share of right answers falls.
        logit[:, 7] = 1.5 - 2 * np.abs(planted.ability)

    table = plant(seed=10, change=turn).statistics().item_fit()
    worst = table.sort_values("p").iloc[0]
    assert worst["question"] == 7
    assert worst["p_adjusted"] < 0.01
    assert worst["misfit"] > 0.05
    assert (table["p_adjusted"] < 0.05).sum() <= 2


def test_two_questions_with_a_common_cause_depend_on_each_other() -> None:
    def share_a_cause(planted: Planted, logit: np.ndarray) -> None:
        cause = np.random.default_rng(5).normal(0, 2.5, _N_STUDENTS)
        logit[:, [11, 40]] += cause[:, None]

    table = plant(seed=11, change=share_a_cause).statistics().local_dependence()
    first = table.iloc[0]
    assert (first["question"], first["other"]) == (11, 40)
    assert first["p_adjusted"] < 0.001
    assert first["correlation"] > 0.15
    # Only one pair was planted. The next pair in the table must not be significant.
    assert table["p_adjusted"].iloc[1] > 0.001


def test_a_question_that_is_easier_for_a_group_is_found() -> None:
    """Question 3 is easier for the students of group 1 ("few"): their logits are larger by 1.

    All other questions are equally easy for both groups. An effect of 1 counts as large.
    """
    planted_effect = 1.0

    def ease_question_3(planted: Planted, logit: np.ndarray) -> None:
        # A column of `logit` belongs to a question. `group` is 1 for the students of group 1, and 0
        # for all others.
        logit[:, 3] += planted_effect * planted.group

    planted = plant(seed=12, change=ease_question_3)
    table = planted.statistics().differential_functioning(planted.group_column())
    assert (table["reference"] == "many").all()
    assert (table["group"] == "few").all()
    easier = table.set_index("question").loc[3]
    # The estimate of the effect is a single Newton step from 0, which ends a little short of the
    # maximum of the likelihood. So 2.5 in place of 2 standard errors are allowed. `low` is the
    # lower end of the interval of the effect.
    assert easier["low"] < planted_effect
    assert abs(easier["effect"] - planted_effect) < 2.5 * easier["error"]
    assert easier["p_adjusted"] < 0.05
    assert easier["size"] == "large"
    others = table[table["question"] != 3]
    assert (others["p_adjusted"] < 0.05).sum() <= 1
    assert (others["size"] == "negligible").mean() > 0.9


def test_a_difference_of_ability_alone_is_no_difference_of_questions() -> None:
    planted = plant(seed=13)
    statistics = planted.statistics()
    gap = planted.ability[planted.group == 0].mean() - planted.ability[planted.group == 1].mean()
    assert gap > 0.5
    table = statistics.differential_functioning(planted.group_column())
    z = table["effect"] / table["error"]
    # The mean of 60 numbers with standard deviation 1 has a standard error of 0.13. If each group
    # did not get its own mean ability, all questions would seem harder for the less able group.
    assert abs(z.mean()) < 0.13 * 3


# ---- Known answers -----------------------------------------------------------------------------


def with_items(items: np.ndarray, guessing: float, n_students: int = 3) -> ItemResponse:
    """Return an estimator with one ability and known questions.

    A row of `items` holds the slope and the intercept of a question. The estimator is first fitted
    to arbitrary answers of all students to all questions, and then gets these items.
    """
    n_questions = len(items)
    student, question = np.indices((n_students, n_questions)).reshape(2, -1)
    model = ItemResponse(n_dimensions=1, guessing=guessing, n_steps=1)
    model.fit(student, question, (student + question) % 2)
    # The last row of a posterior's items stands for unknown questions.
    unknown_question = np.zeros((1, 2))
    mean = np.concatenate([items, unknown_question]).astype(np.float32)
    # The slopes and intercepts are known exactly, so their variances and covariances are 0.
    no_covariance = np.zeros((n_questions + 1, 2, 2), np.float32)
    posterior = replace(model.posterior_, items=Gaussians(mean, no_covariance))
    model._set_attributes(posterior)
    return model


def test_information_of_one_question_is_that_of_the_formula() -> None:
    # The slope is 2 and the intercept is 0. A single answer is right: student 0, question 0.
    model = with_items(np.array([[2.0, 0.0]]), guessing=0.0)
    statistics = QuestionStatistics(model, [0], [0], [1])
    table = statistics.information(ability=[0.0, np.log(3) / 2])
    # The information is slope² · P(right) · P(wrong). It is 4 · 1/2 · 1/2 at the ability 0. At the
    # second ability, the logit is log 3 and P(right) is 3/4, so the information is 4 · 3/4 · 1/4.
    assert_allclose(table["information"], [1.0, 0.75])
    assert_allclose(table["error"], [1.0, np.sqrt(4 / 3)])
    assert_allclose(table["expected_share"], [0.5, 0.75])


def test_guessing_lowers_the_information() -> None:
    # The slope is 2 and the intercept is 0. A single answer is right: student 0, question 0.
    model = with_items(np.array([[2.0, 0.0]]), guessing=0.2)
    statistics = QuestionStatistics(model, [0], [0], [1])
    table = statistics.information(question=[0], ability=[0.0])
    # The information is P'² / (P(right) · P(wrong)), where P' is the derivative of P(right) by the
    # ability. With guessing, P(right) is 0.2 + 0.8 / 2 = 0.6, and P' is 0.8 · 2 · 1/4 = 0.4. So the
    # information is 0.4² / (0.6 · 0.4) = 2/3.
    assert_allclose(table["information"], [2 / 3], rtol=1e-5)
    assert_allclose(table["expected_share"], [0.6], rtol=1e-6)


def test_information_of_a_test_is_the_sum_over_its_questions() -> None:
    model = with_items(np.array([[1.0, 0.5], [2.0, -1.0], [1.5, 0.0]]), guessing=0.0)
    statistics = QuestionStatistics(model, [0, 0, 0], [0, 1, 2], [1, 0, 1])
    of_question_0 = statistics.information(question=[0])["information"]
    of_question_2 = statistics.information(question=[2])["information"]
    of_both = statistics.information(question=[0, 2])["information"]
    assert_allclose(of_both, of_question_0 + of_question_2)


@pytest.mark.parametrize("guessing", [0.0, 0.25])
def test_an_answer_is_predicted_from_the_other_answers_alone(guessing: float) -> None:
    """`predict_left_out` predicts each of a student's four answers from the other three answers."""
    # The slope and the intercept of each question.
    items = np.array([[1.0, 0.5], [1.5, -1.0], [0.8, 0.0], [1.2, 1.0]])
    model = with_items(items, guessing, n_students=2)
    is_right = np.array([1, 0, 0, 1])
    answers = Answers(
        student=np.zeros(4, np.int32),
        question=np.arange(4),
        # In `Answers`, the outcome of a right answer is 0, and the outcome of a wrong answer is 1.
        outcome=1 - is_right,
        # A column for each level of contexts (such as quizzes). Here there are no contexts.
        context=np.zeros((4, 0), np.int32),
        n_stages=1,
    )
    predictions = predict_left_out(find_abilities(model.posterior_, answers))
    # The expected prediction is the mean of P(right) over the posterior of the ability, given the
    # other three answers. It is computed by sums over a fine grid of abilities. `logit`, `p_right`
    # and `likelihood` have the shape (abilities in the grid, questions).
    grid = np.linspace(-6, 6, 2_001)
    slope, intercept = items.T
    logit = grid[:, None] * slope + intercept
    p_right = guessing + (1 - guessing) / (1 + np.exp(-logit))
    likelihood = np.where(is_right, p_right, 1 - p_right)
    prior = np.exp(-(grid**2) / 2)
    expected = []
    for left_out in range(4):
        likelihood_of_others = np.delete(likelihood, left_out, axis=1).prod(axis=1)
        posterior = prior * likelihood_of_others
        expected.append((posterior * p_right[:, left_out]).sum() / posterior.sum())
    # `find_abilities` approximates the posterior by a Gaussian, which is not quite exact if a
    # student has so few answers.
    assert_allclose(predictions.p_right, expected, atol=0.02)
    assert_allclose(predictions.residual, is_right - predictions.p_right, atol=1e-6)


def test_p_values_are_adjusted_for_many_tests() -> None:
    p = np.array([0.01, 0.04, 0.03, np.nan, 0.5])
    # The method of Benjamini and Hochberg multiplies the p of rank i by n / i. There are n = 4
    # tests, since NaN does not count. The smallest p becomes 0.01 · 4/1 = 0.04. The next two become
    # 0.03 · 4/2 = 0.06 and 0.04 · 4/3 = 0.0533. A smaller p must not get the larger result, so both
    # get 0.0533 = 0.16 / 3.
    assert_allclose(adjust_for_many(p), [0.04, 0.16 / 3, 0.16 / 3, np.nan, 0.5])


# ---- Properties --------------------------------------------------------------------------------


def test_the_order_of_answers_does_not_matter(simulations: Simulations) -> None:
    """Answers in a random order have the same statistics, apart from rounding.

    The results of the tests of fit ("p", "misfit" and so on) are not compared. These tests divide
    the students into groups by ability. Rounding may move a student to the next group, and this
    changes the results by more than rounding.
    """
    planted, statistics = simulations[0]
    columns = planted.student, planted.question, planted.is_correct
    order = np.random.default_rng(1).permutation(len(planted.student))
    shuffled_columns = [column[order] for column in columns]
    # This estimator equals the estimator of `statistics`: both are fitted to the same answers, in
    # the same order. Only the statistics get the shuffled answers.
    model = ItemResponse(n_dimensions=1, guessing=0.0).fit(*columns)
    of_shuffled = QuestionStatistics(model, *shuffled_columns)
    tables = [
        (statistics.parameters(), of_shuffled.parameters()),
        (statistics.item_fit(), of_shuffled.item_fit()),
    ]
    for expected, found in tables:
        compared = expected.columns.difference(["p", "p_adjusted", "chi_square", "misfit"])
        assert_allclose(expected[compared], found[compared], rtol=2e-3, atol=2e-3)


def test_questions_with_few_answers_have_no_estimates() -> None:
    """Question 5 has fewer than the 30 answers that estimates need.

    Its estimates are NaN, and tables other than those of parameters and of fit leave it out.
    """
    planted = plant(seed=14)
    # Half of the students have answered question 5. Keep only the answers to it by the first 50
    # students, about 25 answers.
    is_kept = (planted.question != 5) | (planted.student < 50)
    columns = planted.student[is_kept], planted.question[is_kept], planted.is_correct[is_kept]
    statistics = QuestionStatistics(
        ItemResponse(n_dimensions=1, guessing=0.0).fit(*columns), *columns
    )

    table = statistics.parameters().set_index("question")
    assert table["n_answers"][5] < 30
    assert table.loc[5, ["difficulty", "discrimination_error"]].isna().all()
    assert table.drop(5).notna().all(axis=None)
    fit = statistics.item_fit().set_index("question")
    assert fit.loc[5, ["misfit", "p", "p_adjusted"]].isna().all()

    assert 5 not in statistics.fit_groups()["question"].to_numpy()
    # A row is about a pair of questions: "question" and "other".
    pairs = statistics.local_dependence()
    assert 5 not in pairs[["question", "other"]].to_numpy()
    groups = statistics.differential_functioning(planted.group_column())
    assert 5 not in groups["question"].to_numpy()


def test_several_groups_are_each_compared_with_the_largest() -> None:
    planted = plant(seed=15)
    names = np.array(["a", "b", "b", "c"])[np.arange(_N_STUDENTS) % 4]
    group = pd.Series(names, index=np.arange(_N_STUDENTS)).replace("c", np.nan)
    group[:100] = "d"
    table = planted.statistics().differential_functioning(group)
    assert (table["reference"] == "b").all()
    assert set(table["group"]) == {"a", "d"}
    counts = table.groupby("question")["n_reference"].nunique()
    assert (counts == 1).all()


# ---- Faults ------------------------------------------------------------------------------------


def test_an_estimator_with_contexts_is_refused() -> None:
    columns = [1, 1, 2], [5, 6, 5], [1, 0, 1]
    with_context = ItemResponse(n_steps=1).fit(*columns, context=[3, 4, 3])
    with pytest.raises(InputError, match="was fitted with contexts, expected none"):
        QuestionStatistics(with_context, *columns)
    with pytest.raises(InputError, match="is not fitted"):
        QuestionStatistics(ItemResponse(), *columns)


def test_faults_of_arguments_are_named() -> None:
    columns = [1, 1, 2], [5, 6, 5], [1, 0, 1]
    statistics = QuestionStatistics(ItemResponse(n_steps=1).fit(*columns), *columns)
    with pytest.raises(InputError, match="min_students is 1, expected at least 2"):
        statistics.local_dependence(min_students=1)
    with pytest.raises(InputError, match="group names student 2 twice"):
        statistics.differential_functioning(pd.Series(["a", "b", "a"], index=[1, 2, 2]))
    with pytest.raises(InputError, match="group has 1 groups among the students with answers"):
        statistics.differential_functioning(pd.Series(["a", "a", "b"], index=[1, 2, 3]))
    with pytest.raises(InputError, match="question holds 7, which has no answers here"):
        statistics.information(question=[5, 7])
