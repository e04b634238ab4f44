"""Statistics of questions: their parameters, and whether the item response model fits them.

    statistics = QuestionStatistics(model, student, question, is_correct)
    statistics.parameters()

All statistics compare each answer with its prediction from the student's other answers
(`left_out`). So an answer does not count as evidence for itself. If the model is true, the
residuals have mean 0 and the variance P(right) (1 − P(right)).
"""

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from common.answers import find_ids
from common.arrays import Array, FloatArray, IntArray
from common.errors import InputError
from common.item_response import checks, dependence, differential
from common.item_response.base import as_answers
from common.item_response.fitting import Answers
from common.item_response.left_out import find_abilities, predict_left_out
from common.item_response.observations import sort_answers
from common.item_response.significance import adjust_for_many

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import chdtrc

if TYPE_CHECKING:
    from common.item_response.estimator import ItemResponse

# To test whether the model fits a question, its answers are cut into at most this many groups, with
# at least `_MIN_ANSWERS_IN_GROUP` answers in each.
_MAX_GROUPS = 10
_MIN_ANSWERS_IN_GROUP = 20
# A question with fewer groups is not tested. With two groups, the two estimated parameters of the
# question can always match the shares of right answers in both.
_MIN_GROUPS = 3
# The parameters of a question with fewer answers are NaN.
_MIN_ANSWERS = 30
# The table of reliabilities has a row for each range of numbers of answers: students with 1 to 4
# answers, with 5 to 9, and so on. These are the first numbers of the ranges.
_FIRST_NUMBERS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)


class QuestionStatistics:
    """Statistics of questions, from a fitted estimator and answers.

    Parameters
    ----------
    model
        A fitted `ItemResponse`. It must have been fitted without contexts.
    student, question, is_correct
        The answers, as in `ItemResponse.fit`; usually those of the fit. The abilities of the
        students are found from these answers alone. A question that the fit does not know counts
        as average.

    Raises
    ------
    InputError
        If the estimator is not fitted or was fitted with contexts, if there are no answers, or if
        an argument has a wrong shape, dtype or value.
    """

    def __init__(
        self,
        model: "ItemResponse",
        student: npt.ArrayLike,
        question: npt.ArrayLike,
        is_correct: npt.ArrayLike,
    ) -> None:
        """Find the abilities of the students, then predict each answer.

        Each answer is predicted from the student's other answers. All statistics are computed from
        these predictions.
        """
        # Raises `InputError` if the model is not fitted.
        posterior = model._check_fitted()
        if posterior.levels:
            raise InputError(
                "this estimator was fitted with contexts, expected none for statistics of questions"
            )
        student_ids, question_ids = as_answers(student, question)
        n_answers = len(student_ids)
        is_right = checks.as_category("is_correct", is_correct, n_answers, low=0, high=1)
        no_contexts = np.zeros((n_answers, 0), np.int32)
        answers = Answers.of_right_or_wrong(student_ids, question_ids, is_right, no_contexts)
        self._answers = find_abilities(posterior, answers)
        self._predictions = predict_left_out(self._answers)

    # ---- Questions -----------------------------------------------------------------------------

    def parameters(self) -> pd.DataFrame:
        """Return difficulty and discrimination of each question, with standard errors.

        A student may have several abilities. The overall ability is their combination in the
        direction of the mean slopes of all questions. The discrimination is the slope in this
        direction. The slopes in the other directions are not estimated anew: they are those of the
        fit.

        The likelihood is the product of the probabilities of all answers, each given the student's
        other answers. One step of Newton's method goes from the fitted parameters towards the
        greatest likelihood. The standard errors come from the Fisher information of this
        likelihood. Unlike the attributes of the estimator, the estimates are not shrunk towards the
        average question.

        Returns
        -------
        DataFrame
            A row for each question, in the order of their ids:

            - question, n_answers, share_right;
            - difficulty, difficulty_error: an average student knows the answer with probability
              sigmoid(−difficulty);
            - discrimination, discrimination_error;
            - guessing: as given to the estimator.

            Estimates from fewer than 30 answers are NaN.

        Notes
        -----
        Le Cam (1956), On the asymptotic theory of estimation and testing hypotheses, for one step
        in place of many. In simulations with one ability and 20 answers per student or more, the
        intervals estimate ± 1.645 errors hold the true value in 88 to 92 of 100 cases (a test).
        With several abilities it is 87 to 92, since their overall direction is estimated too.
        """
        predictions = self._predictions
        # The derivatives of P(right) by the two parameters of the question: intercept and slope.
        derivatives = np.stack([predictions.by_intercept, predictions.by_slope])
        residual_variance = predictions.residual_variance
        n_questions = len(self._answers.question_ids)
        # For each question, `score` holds the gradient of the log likelihood: the derivatives by
        # the intercept and by the slope. `information` holds the Fisher information matrix of these
        # two.
        information = np.empty((n_questions, 2, 2))
        score = np.empty((n_questions, 2))
        for i in range(2):
            score[:, i] = self._sum(derivatives[i] * predictions.residual / residual_variance)
            for j in range(i + 1):
                sums = self._sum(derivatives[i] * derivatives[j] / residual_variance)
                information[:, i, j] = information[:, j, i] = sums
        n_answers = self._sum(None)
        is_enough = n_answers >= _MIN_ANSWERS
        covariance = np.full((n_questions, 2, 2), np.nan)
        covariance[is_enough] = np.linalg.inv(information[is_enough])
        items = self._answers.items.mean
        # Make one step of Newton's method. It starts from the intercept and the slope of the fit.
        start = np.stack([items[:, -1], items[:, :-1] @ self._answers.direction], axis=1)
        estimate = start + np.einsum("nij,nj->ni", covariance, score)
        error = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        return pd.DataFrame(
            {
                "question": self._answers.question_ids,
                "n_answers": n_answers.astype(np.int64),
                "share_right": self._sum(self._answers.is_right) / n_answers,
                "difficulty": -estimate[:, 0],
                "difficulty_error": error[:, 0],
                "discrimination": estimate[:, 1],
                "discrimination_error": error[:, 1],
                "guessing": self._answers.guessing,
            }
        )

    def fit_groups(self) -> pd.DataFrame:
        """Return observed and expected shares of right answers, by groups of students.

        The students who answered a question are sorted by their expected P(right) and cut into up
        to ten groups of equal size, with at least 20 students in each.

        Returns
        -------
        DataFrame
            A row for each question and group, the least able students first: question, group (from
            0), n, observed, expected, and error, the standard error of observed. Questions with
            fewer than 60 answers have no rows.
        """
        groups = self._groups
        n = groups["n"]
        # Residuals are right (1) or wrong (0) minus P(right). So the sum of P(right) and the sum of
        # the residuals add up to the number of right answers.
        n_right = groups["expected"] + groups["residual"]
        return pd.DataFrame(
            {
                "question": self._answers.question_ids[groups["question"]],
                "group": groups["group"],
                "n": n,
                "observed": n_right / n,
                "expected": groups["expected"] / n,
                "error": np.sqrt(groups["residual_variance"]) / n,
            }
        )

    def item_fit(self) -> pd.DataFrame:
        """Test whether the share of right answers rises with ability as the model says.

        There is a test for each question. Its students are divided into groups by expected
        P(right), as in `fit_groups`. The residual of an answer is right (1) or wrong (0) minus
        P(right). If the model is true, the sum of the residuals of a group, divided by its standard
        deviation, is a standard normal number.

        If the question had another difficulty or discrimination, these sums would change. The part
        of the sums that such a change explains is subtracted by a projection. So it does not matter
        how difficulty and discrimination were estimated. The sum of squares of what remains is χ²
        with (groups − 2) degrees of freedom.

        Returns
        -------
        DataFrame
            A row for each question:

            - question, n_groups;
            - misfit: root mean square distance of observed and expected shares over the groups,
              after the part that chance adds is subtracted; 0.05 means that shares are off by five
              percentage points;
            - chi_square, p;
            - p_adjusted: p for many questions at once (Benjamini and Hochberg 1995).

            Questions with fewer than 60 answers have NaN.

        Notes
        -----
        As in Orlando and Thissen (2000), Likelihood-based item-fit indices, a question's answers
        are not used to form its groups. The projection comes from Neyman (1959), Optimal asymptotic
        tests of composite statistical hypotheses.
        """
        groups = self._groups
        n_questions = len(self._answers.question_ids)
        n_groups = np.bincount(groups["question"], minlength=n_questions)
        has_groups = n_groups > 0
        chi_square = _chi_square(groups, n_questions)
        # For a question without groups, any valid number will do, since its p becomes NaN.
        degrees_of_freedom = np.where(has_groups, n_groups - 2, 1)
        p = np.where(has_groups, chdtrc(degrees_of_freedom, chi_square), np.nan)
        return pd.DataFrame(
            {
                "question": self._answers.question_ids,
                "n_groups": n_groups,
                "misfit": np.where(has_groups, _misfit(groups, n_questions), np.nan),
                "chi_square": np.where(has_groups, chi_square, np.nan),
                "p": p,
                "p_adjusted": adjust_for_many(p),
            }
        )

    @cached_property
    def _groups(self) -> pd.DataFrame:
        """Return sums over the answers in each group of `_group_answers`, for the item fit.

        Returns
        -------
        DataFrame
            A row for each question and group:

            - question: position in `question_ids`;
            - group: number of the group, from 0; group 0 has the smallest P(right);
            - n: the number of answers;
            - expected: the sum of P(right);
            - residual: the sum of the residuals, which are right (1) or wrong (0) minus P(right);
            - residual_variance: the variance of the sum of residuals, if the model is true;
            - by_intercept, by_slope: derivatives of `expected` by the question's intercept, and by
              its slope along the overall ability.
        """
        predictions = self._predictions
        n_questions = len(self._answers.question_ids)
        group, n_groups = _group_answers(self._answers.question, predictions.p_right, n_questions)
        # Compute the sums for each cell, a pair of a question and a group. There are `_MAX_GROUPS`
        # cells for each question, and the cells of question 0 come first.
        cell_of_answer = self._answers.question * _MAX_GROUPS + group
        n_cells = n_questions * _MAX_GROUPS
        columns = {
            # Without values (None), `bincount` counts the answers.
            "n": None,
            "expected": predictions.p_right,
            "residual": predictions.residual,
            "residual_variance": predictions.residual_variance,
            "by_intercept": predictions.by_intercept,
            "by_slope": predictions.by_slope,
        }
        sums = {
            name: np.bincount(cell_of_answer, column, n_cells) for name, column in columns.items()
        }
        cell = np.arange(n_cells)
        question = cell // _MAX_GROUPS
        group_of_cell = cell % _MAX_GROUPS
        table = pd.DataFrame({"question": question, "group": group_of_cell, **sums})
        # A question with few answers has fewer than `_MAX_GROUPS` groups. Drop its empty cells.
        exists = group_of_cell < n_groups[question]
        groups: pd.DataFrame = table[exists].reset_index(drop=True)
        return groups

    def _sum(self, values: Array | None) -> FloatArray:
        """Return the sum of `values` over the answers of each question; if None, their number."""
        n_questions = len(self._answers.question_ids)
        sums = np.bincount(self._answers.question, values, n_questions)
        return np.asarray(sums, np.float64)

    # ---- Pairs of questions, and groups of students --------------------------------------------

    def local_dependence(self, min_students: int = 100) -> pd.DataFrame:
        """Test whether answers to two questions agree more than the abilities explain.

        The statistic is Yen's Q3: the correlation of the residuals of two questions, over the
        students who answered both. The residual is 1 for a right answer or 0 for a wrong one,
        minus the probability of a right answer, which is predicted from the student's other
        answers. It is divided by its standard deviation. Even without dependence, the residuals
        are correlated, because they rest on estimates of the same student's abilities. This part of
        the correlation is subtracted.

        Parameters
        ----------
        min_students
            Pairs of questions with fewer common students are left out.

        Returns
        -------
        DataFrame
            A row for each pair, the clearest dependence first:

            - question, other: the two questions, question < other;
            - n_students: the number of students who answered both;
            - correlation, and error, its standard error without dependence;
            - p;
            - p_adjusted: p for many pairs at once (Benjamini and Hochberg 1995).

        Notes
        -----
        Yen (1984), Effects of local item dependence on the fit and equating performance of the
        three-parameter logistic model. If the answers have very many pairs, the table is that of
        a sample of the students.
        """
        if min_students < 2:
            raise InputError(f"min_students is {min_students}, expected at least 2")
        return dependence.find_pairs(self._answers, self._predictions, min_students)

    def differential_functioning(self, group: pd.Series, min_answers: int = 30) -> pd.DataFrame:
        """Test whether questions are easier for one group than for equally able other students.

        The group with most students is the reference. Each other group is compared with it, after
        a difference of the mean abilities of the groups is taken into account.

        Parameters
        ----------
        group
            The group of each student, values of any type; the index has the ids of the students.
            Students with the value NaN, or who are not in the index, are left out.
        min_answers
            A question is tested if both groups have at least this many answers to it.

        Returns
        -------
        DataFrame
            A row for each question and group, sorted by question, then by group:

            - question, group, reference;
            - n_group, n_reference: numbers of answers;
            - effect: how much easier the question is for the group, as a difference of logits, with
              its standard error (error) and the ends of its 90 % interval (low, high);
            - p;
            - p_adjusted: p for many rows at once (Benjamini and Hochberg 1995);
            - size: negligible, moderate or large.

        Raises
        ------
        InputError
            If `group` names a student twice, or has fewer than two groups among the students.

        Notes
        -----
        The effect is one step of Newton's method from the model without the effect, so an effect
        of more than about 1 is estimated too small in size. Swaminathan and Rogers (1990),
        Detecting differential item functioning using logistic regression procedures. The sizes are
        those of the Educational Testing Service (Zwick and Ercikan 1989): negligible if the effect
        is below 0.43 or not significantly different from 0, large if it is at least 0.64 and
        significantly above 0.43.
        """
        return differential.find_effects(self._answers, group, min_answers)

    # ---- The test as a whole -------------------------------------------------------------------

    def reliability(self) -> pd.DataFrame:
        """Return how reliable the overall abilities of the students are, by numbers of answers.

        The reliability is 1 − (mean posterior variance) / (variance of the abilities): the squared
        correlation of estimated with true abilities.

        Returns
        -------
        DataFrame
            A row for all students, then a row for each range of numbers of answers:

            - first, last: the smallest and the largest number of answers of a student in the range;
            - n_students, reliability;
            - error: the root mean square of the standard errors of the students' abilities. The
              unit is the standard deviation of the abilities of all students of the fit.

        Notes
        -----
        Green and others (1984), Technical guidelines for assessing computerized adaptive tests,
        on the marginal reliability.
        """
        students = self._answers.students
        # The overall ability of a student is one number: direction · abilities. The vector
        # `direction` has the length 1.
        direction = self._answers.direction
        mean = students.mean @ direction
        variance = np.einsum("i,nij,j->n", direction, students.covariance, direction)
        n_answers = np.diff(self._answers.start)
        no_limit = np.iinfo(np.int64).max
        # A range (low, high) holds the students with `low` to `high` − 1 answers. The first range
        # holds all students.
        ranges = [(1, no_limit), *pairwise([*_FIRST_NUMBERS, no_limit])]
        rows = []
        for low, high in ranges:
            is_here = (n_answers >= low) & (n_answers < high)
            if not is_here.any():
                continue
            error_variance = float(variance[is_here].mean(dtype=np.float64))
            # The variance of the true abilities is the variance of the posterior means, plus the
            # mean posterior variance.
            true_variance = float(mean[is_here].var(dtype=np.float64)) + error_variance
            rows.append(
                {
                    "first": int(n_answers[is_here].min()),
                    "last": int(n_answers[is_here].max()),
                    "n_students": int(is_here.sum()),
                    "reliability": 1 - error_variance / true_variance,
                    "error": np.sqrt(error_variance),
                }
            )
        return pd.DataFrame(rows)

    def information(
        self, question: npt.ArrayLike | None = None, ability: npt.ArrayLike | None = None
    ) -> pd.DataFrame:
        """Return the Fisher information of a test of some questions, for each overall ability.

        It says how exactly the test measures the ability of a student. Abilities in other
        directions than the overall one are those of an average student.

        Parameters
        ----------
        question
            Ids of the questions of the test; by default, all questions.
        ability
            Overall abilities, in standard deviations from the average; by default −3 to 3.

        Returns
        -------
        DataFrame
            A row for each ability: ability, information (Fisher's, the sum over the questions),
            error (the standard error of an ability from these answers alone), and expected_share
            of right answers.

        Notes
        -----
        Birnbaum (1968), in Lord and Novick, Statistical theories of mental test scores.
        For several abilities, this is the information in a direction: Reckase (2009),
        Multidimensional item response theory.
        """
        abilities = np.linspace(-3, 3, 61) if ability is None else np.atleast_1d(ability)
        items = self._answers.items.mean.astype(np.float64)
        guessing = self._answers.guessing.astype(np.float64)
        if question is not None:
            position = self._find_questions(checks.as_ids("question", question))
            items = items[position]
            guessing = guessing[position]
        slope = items[:, :-1] @ self._answers.direction
        information = np.empty(len(abilities))
        share = np.empty(len(abilities))
        for number, value in enumerate(abilities):
            knows = 0.5 + 0.5 * np.tanh(0.5 * (slope * value + items[:, -1]))
            p_right = guessing + (1 - guessing) * knows
            # The Fisher information is (dP(right) / d ability)² / (P(right) P(wrong)). Here,
            # dP(right) / d ability = slope (1 − guessing) P(knows) (1 − P(knows)), and
            # P(wrong) = (1 − guessing) (1 − P(knows)), which cancels some of these factors.
            of_question = slope**2 * (1 - guessing) * knows**2 * (1 - knows) / p_right
            information[number] = of_question.sum()
            share[number] = p_right.mean()
        return pd.DataFrame(
            {
                "ability": abilities,
                "information": information,
                "error": 1 / np.sqrt(information),
                "expected_share": share,
            }
        )

    def _find_questions(self, wanted: IntArray) -> IntArray:
        """Return the positions of questions, or raise `InputError` for one without answers."""
        position = find_ids(self._answers.question_ids, wanted)
        is_unknown = position == len(self._answers.question_ids)
        if is_unknown.any():
            raise InputError(
                f"question holds {wanted[is_unknown][0]}, which has no answers here, expected "
                "questions with answers"
            )
        return position


# ---- Item fit ----------------------------------------------------------------------------------


def _group_answers(
    question: IntArray, p_right: FloatArray, n_questions: int
) -> tuple[IntArray, IntArray]:
    """Cut the answers to each question into groups of equal size, by their expected P(right).

    A question has up to `_MAX_GROUPS` groups of at least `_MIN_ANSWERS_IN_GROUP` answers. A
    question with too few answers for `_MIN_GROUPS` such groups has no groups.

    Parameters
    ----------
    question, p_right
        Question of each answer (from 0), and P(right), shape (answers,).
    n_questions
        Number of questions.

    Returns
    -------
    group : array of int32, shape (answers,)
        The number of each answer's group among the groups of its question. Group 0 has the smallest
        P(right). The number is 0 if the question has no groups.
    n_groups : array of int, shape (questions,)
        The number of groups of each question.
    """
    # `order` sorts the answers by question, and the answers to one question by P(right). Sort by
    # P(right) first: the sort by question then keeps this order among the answers to one question.
    # P(right) is rounded to 16 bits, since NumPy sorts such integers by counting, which is fast.
    rounded = (p_right * np.float32(65535)).astype(np.uint16)
    by_probability = np.argsort(rounded, kind="stable")
    # The first argument of `sort_answers` is usually the student of each answer. Pass the question
    # instead, to sort by question.
    by_question, start, _ = sort_answers(question[by_probability], [], n_questions)
    order = by_probability[by_question]

    # In this order, the answers to question i are start[i] to start[i + 1].
    n_answers = np.diff(start)
    n_groups = np.minimum(n_answers // _MIN_ANSWERS_IN_GROUP, _MAX_GROUPS)
    n_groups[n_groups < _MIN_GROUPS] = 0
    sorted_question = question[order]
    # The position of each answer among the answers to its question.
    position = np.arange(len(order)) - start[sorted_question]
    # If n answers are cut into g groups, the answer at position i is in the group ⌊i · g / n⌋.
    group = np.empty(len(order), np.int32)
    group[order] = position * n_groups[sorted_question] // n_answers[sorted_question]
    return group, n_groups


def _chi_square(groups: pd.DataFrame, n_questions: int) -> FloatArray:
    """Return χ² of the misfit of each question, shape (questions,), or 0 without groups.

    If the model is true, the sum of a group's residuals, divided by its standard deviation, is a
    standard normal number. χ² is the sum of the squares of these numbers, less a part. For the
    difficulty and the discrimination of the question are only estimates: residuals that other
    estimates would remove are no sign of misfit. A projection finds this part of the residuals.

    `groups` has a row for each question and group of its answers. The columns are question and
    group (both from 0), residual (number of right answers minus the sum of their P(right)),
    residual_variance, and by_intercept and by_slope: the derivatives of the sum of P(right) by the
    question's intercept (easiness) and by its slope (discrimination).
    """
    # The row (question) and the column (group) of each group in the matrices below.
    row_and_column = groups["question"].to_numpy(), groups["group"].to_numpy()
    deviation = np.sqrt(groups["residual_variance"].to_numpy())

    def standardised_matrix(name: str) -> FloatArray:
        """Return a column of `groups`, divided by `deviation`, as a matrix (questions, groups)."""
        # A question may have fewer than `_MAX_GROUPS` groups. The elements of the missing groups
        # stay 0, and so they add nothing.
        matrix = np.zeros((n_questions, _MAX_GROUPS))
        matrix[row_and_column] = groups[name].to_numpy() / deviation
        return matrix

    residuals = standardised_matrix("residual")
    # For each question, two vectors with an element for each group. They say by how much the
    # standardised residuals fall if the intercept, or the slope, grows by 1.
    by_intercept = standardised_matrix("by_intercept")
    by_slope = standardised_matrix("by_slope")
    changes = np.stack([by_intercept, by_slope], axis=2)
    # The columns of `basis` are orthonormal and span the same plane as the two vectors.
    basis, _ = np.linalg.qr(changes)
    # `explained` has the coordinates of the projection of the residuals onto this plane. In
    # `einsum`, n stands for questions, g for groups, and d for the columns of `basis`.
    explained = np.einsum("ngd,ng->nd", basis, residuals)
    chi_square: FloatArray = (residuals**2).sum(axis=1) - (explained**2).sum(axis=1)
    return np.maximum(chi_square, 0)


def _misfit(groups: pd.DataFrame, n_questions: int) -> FloatArray:
    """Return how far the observed shares of right answers are from the expected shares.

    For each question, this is the root of the mean squared distance over its groups. The part of
    the squared distance that chance adds is subtracted.

    `groups` has a row for each question and group of its answers. The columns are question (from
    0), n (number of answers), residual (number of right answers minus the sum of their P(right))
    and residual_variance (the variance of the residual, if the model is true).
    """
    question = groups["question"].to_numpy()
    n = groups["n"].to_numpy()
    # The squared distance of a group is (residual / n)², to which chance adds
    # residual_variance / n². In the mean over the groups of a question, a group has the weight n:
    #
    #     mean_square = Σ n · (residual² − residual_variance) / n² / Σ n,
    #
    # where n / n² is 1 / n.
    weighted_square = (groups["residual"] ** 2 - groups["residual_variance"]).to_numpy() / n
    n_answers = np.bincount(question, n, n_questions)
    mean_square = np.bincount(question, weighted_square, n_questions) / np.maximum(n_answers, 1)
    return np.asarray(np.sqrt(np.maximum(mean_square, 0)))
