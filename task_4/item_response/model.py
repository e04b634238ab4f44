"""Item response model with guessing: ask what helps to predict the hidden answers, then predict.

The model describes a student by a Gaussian distribution over the logits x of all questions:

    P(right) = guessing + (1 − guessing) sigmoid(x),
    x = slopes · ability + quiz effect + intercept.

*Abilities* have several dimensions. *Quiz effects* are shared by questions that are usually
answered together (testlets; Bradlow, Wainer and Wang 1999). Both are Gaussian, so the logits have a
mean and a covariance between questions.

*Answers* change the mean and the covariance by moment matching (assumed density filtering; Minka
2001, "A family of algorithms for approximate Bayesian inference").

*The answered mask* marks the questions that a student has answered, except hidden ones. It tells
something before any answer is seen. First, the mask shifts the mean. Second, the mask betrays
*targets*, the hidden answers: if students usually answer a question outside the mask together with
the questions in the mask, that question is probably a target.

*The population* says how the students who are asked differ from the training students. The answers
of all students who are asked serve to estimate the population.

This file needs NumPy only, and no other file of the kit, because it goes into the zip to upload.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]

WEIGHTS = "model_task_4_item_response.npz"
N_ROUNDS = 10

# ---- Settings, chosen by cross-validation over training students ---------------------------------

# The answered mask marks the questions that a student may be asked. The student may also have
# hidden answers to other questions. The model estimates how probable a hidden answer to each
# question is, and replaces probabilities up to this number by 0.
_MIN_PROBABILITY = 0.3
# The *targets* are the answers that the model has to predict in the game. By most rules, they are
# hidden. If the rules allow asking them, they are in the answered mask instead. The model concludes
# that the rules allow it if it finds almost no hidden answers: if their expected number is below
# this share of the number of answers in the mask.
_MAX_SHARE_HIDDEN = 0.05
# `_weight` assumes that the ten answers of a whole game remove this share of a logit's variance.
_RESOLUTION = 0.7
# The answers of later rounds will move the estimated mean of a logit, by an amount that is not
# known now. `_weight` assumes that this amount has at least this variance.
_MIN_SPREAD = 0.05
# If a target may be asked, asking it reveals the answer, and no prediction for it can be wrong any
# more. So `select` adds a term to the value of asking a question: this number times the probability
# that the prediction for the question would otherwise be wrong.
_OWN_UNCERTAINTY = 20.0
# The model estimates anew, after these numbers of rounds, how the students who are asked differ
# from the training students (`Population`).
_ADAPT_AFTER = (3, 6, 10)
# Prior standard deviations of the three fields of `Population`.
_DEVIATIONS = np.array([0.3, 0.15, 0.3])
# To estimate the population, the model computes derivatives by finite differences: it increases and
# decreases each field of `Population` by this number. A Newton step changes a field by at most
# twice this number.
_STEPS = np.array([0.2, 0.1, 0.1])
# Smallest variance of a logit.
_MIN_VARIANCE = 1e-5

# Gauss-Hermite quadrature: if z is standard normal, the mean of f(z) is about Σ weight · f(node).
_nodes, _node_weights = np.polynomial.hermite_e.hermegauss(11)
_NODES = _nodes.astype(np.float32)
_NODE_WEIGHTS = _node_weights.astype(np.float32)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Model:
    """The learned parameters: float32, for Q questions and k dimensions of ability."""

    # Logit of each question for a student with average abilities and no quiz effect, shape (Q,).
    intercept: FloatArray
    # Discriminations, shape (Q, k). Abilities have variance 1.
    slopes: FloatArray
    # A student does better or worse in all questions of a quiz. So a random *quiz effect* is added
    # to the logit of each question, and the effects on questions of the same quiz are correlated.
    # This is the covariance of the quiz effects between every two questions, shape (Q, Q).
    quiz_covariance: FloatArray
    # Probability that a student who does not know an answer guesses it right, shape ().
    guessing: FloatArray
    # A linear regression predicts a student's abilities from which questions the student has
    # answered, whether right or wrong. The *answered mask* is 1 for answered questions and 0 for
    # others. The *scaled mask* is the answered mask divided by the square root of its sum. The
    # predicted abilities, as differences from the average, are
    # (scaled mask − mask_mean) @ mask_weights.
    # Mean of the training students' scaled masks, shape (Q,).
    mask_mean: FloatArray
    # Coefficients of this regression, shape (Q, k).
    mask_weights: FloatArray
    # Coefficients of another linear regression, shape (Q, Q). The answered mask lacks the student's
    # hidden answers. This regression predicts from the mask the probability that the student has
    # answered each question, hidden or not: answered mask @ completion. It assumes that a fifth of
    # a student's answers is hidden. If all coefficients are 0, the model does not look for hidden
    # answers.
    completion: FloatArray

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        np.savez(folder / WEIGHTS, **asdict(self))

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        with np.load(folder / WEIGHTS) as weights:
            return Model(**weights)

    def pad_questions(self, n_questions: int) -> "Model":
        """Return a copy of the model that has `n_questions` questions.

        If the model has more questions, the last ones are cut off. If it has fewer, new questions
        get the mean intercept. The logit of a new question is the same for all students, so its
        answer tells nothing about other questions, and their answers tell nothing about it.
        """
        intercept = _pad_rows(self.intercept, n_questions)
        intercept[len(self.intercept) :] = self.intercept.mean()
        return replace(
            self,
            intercept=intercept,
            slopes=_pad_rows(self.slopes, n_questions),
            quiz_covariance=_pad_square(self.quiz_covariance, n_questions),
            mask_mean=_pad_rows(self.mask_mean, n_questions),
            mask_weights=_pad_rows(self.mask_weights, n_questions),
            completion=_pad_square(self.completion, n_questions),
        )


def _pad_rows(array: FloatArray, n_questions: int) -> FloatArray:
    """Cut or pad the first axis of an array to a number of questions; new entries are 0."""
    n_new = max(0, n_questions - len(array))
    other_axes = [(0, 0)] * (array.ndim - 1)
    return np.pad(array[:n_questions], [(0, n_new), *other_axes])


def _pad_square(array: FloatArray, n_questions: int) -> FloatArray:
    """Cut or pad both axes of a square matrix to a number of questions; new entries are 0."""
    n_new = max(0, n_questions - len(array))
    return np.pad(array[:n_questions, :n_questions], (0, n_new))


class Population(NamedTuple):
    """How the students who are asked questions in the game differ from the training students."""

    # Logarithm of the variance of these students' abilities. The training students have the
    # variance 1.
    log_variance: float = 0.0
    # These students' mean logit of a question is the mean logit of the training students,
    # multiplied by exp(`log_stretch`), plus `shift`.
    log_stretch: float = 0.0
    shift: float = 0.0


class StudentPosterior:
    """The posterior distribution of S students, who are asked together.

    Parameters
    ----------
    model
        The model, of Q questions.
    answered_mask
        Which answers of each student may be asked or have been revealed, bool, shape (S, Q). All
        False if this is not known. By some rules the mask holds the targets, which are to be
        predicted; by other rules the targets are outside the mask.

    Attributes
    ----------
    mean, variance
        Mean and variance of the logits, each of shape (S, Q).
    covariance
        Covariance of a student's logits before any answer, shape (Q, Q).
    factors
        A factor for each answer, shape (S, answers, Q). The covariance of a student's logits after
        the answers is `covariance` minus the sum of the outer products of the student's factors.
    population
        How the students differ from the training students.
    target_weight
        Probability that the answer is a target and not yet known, shape (S, Q). It is not
        normalised: only the ratios within a student count.
    targets_may_be_asked
        Whether the rules seem to let targets be asked, to judge by the answered mask.
    n_answers
        The number of known answers of each student, shape (S,).
    """

    def __init__(self, model: Model, answered_mask: BoolArray) -> None:
        """Set the distribution before any answer.

        It depends on the answered mask, which marks the questions that each student may be asked.
        The *targets* are those answers of a student that the model has to predict in the game. The
        game does not tell the model which answers these are. By most rules, the targets are hidden:
        they may not be asked, they are outside the answered mask, and the model estimates where
        they are. By other rules, the targets may be asked, so they are in the mask.
        """
        self.model = model
        self.n_answers = np.zeros(len(answered_mask), np.int64)
        # An entry for each call of `observe`: which students, which questions, right or wrong.
        self._observed: list[tuple[IntArray, IntArray, IntArray]] = []

        # The probability that a student has a hidden answer to a question, shape (S, Q).
        p_hidden = self._hidden_probability(answered_mask)
        # Every student has targets: hidden answers outside the answered mask or, by other rules,
        # answers inside it. So if the model looks for hidden answers and finds almost none, the
        # targets must be inside. A model whose `completion` is 0 does not look for hidden answers.
        looks_for_hidden = model.completion.any()
        finds_few = p_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        self.targets_may_be_asked = bool(looks_for_hidden and finds_few)
        if self.targets_may_be_asked:
            p_hidden[:] = 0
        # The weight of a question says how likely its answer is to be a target. The targets of a
        # student are the hidden answers. If the model finds no hidden answer of a student, all
        # answers in the student's mask are equally likely to be targets.
        has_hidden = p_hidden.any(axis=1, keepdims=True)
        self.target_weight = np.where(has_hidden, p_hidden, answered_mask).astype(np.float32)

        # Predict the abilities from which questions a student has answered. These are the questions
        # in the mask and the questions whose answers are probably hidden.
        probably_answered = answered_mask | (p_hidden > 0.5)
        ability = self._expected_ability(probably_answered)
        # Mean logits (S, Q) before any answer, if the students are like the training students.
        self._expected_logits = model.intercept + ability @ model.slopes.T
        # Begin as if the students were like the training students: `Population()` says so.
        self._begin(Population())

    def _hidden_probability(self, answered_mask: BoolArray) -> FloatArray:
        """Return how probable a hidden answer of each student to each question is, shape (S, Q).

        A hidden answer is an answer to a question outside the answered mask, so questions in the
        mask get 0. Probabilities up to `_MIN_PROBABILITY` are replaced by 0.
        """
        p_answered = answered_mask.astype(np.float32) @ self.model.completion
        p_hidden = np.where(answered_mask, 0, p_answered)
        return np.minimum(p_hidden, 1) * (p_hidden > _MIN_PROBABILITY)

    def _expected_ability(self, answered_mask: BoolArray) -> FloatArray:
        """Predict students' abilities, shape (S, k), from which questions they have answered.

        The result is the difference from the average abilities of the training students.
        """
        answered = answered_mask.astype(np.float32)
        count = answered.sum(axis=1, keepdims=True)
        scaled_mask = answered / np.sqrt(np.maximum(count, 1))
        # If the mask is empty, nobody knows which questions the student has answered: expect the
        # average abilities.
        mask_mean = self.model.mask_mean
        scaled_mask = np.where(count > 0, scaled_mask, mask_mean)
        return np.asarray((scaled_mask - mask_mean) @ self.model.mask_weights)

    # ---- Learning from answers -------------------------------------------------------------------

    def observe(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Learn from at most one answer of each student.

        Parameters
        ----------
        student
            The students' rows, distinct, shape (answers,).
        question
            The questions' columns, shape (answers,).
        is_right
            1 for a right and 0 for a wrong answer, shape (answers,).
        """
        self._observed.append((student, question, is_right))
        self.n_answers[student] += 1
        # These answers are known now and need not be predicted.
        self.target_weight[student, question] = 0
        # A student is asked one question in each round, until no question is left to ask. So the
        # number of rounds so far is the largest number of answers of a student.
        n_rounds = int(self.n_answers.max())
        if n_rounds not in _ADAPT_AFTER:
            self._update(student, question, is_right)
            return
        # Estimate the *population*: how the students who are asked differ from the training
        # students. The estimate changes the prior, the distribution of the logits before any
        # answer. So start again from the new prior, and learn from all answers once more.
        self._begin(self._estimate_population())
        for answers in self._observed:
            self._update(*answers)

    def _begin(self, population: Population) -> None:
        """Set the distribution of the logits before any answer, for students of `population`."""
        self.population = population
        self.mean, slopes = self._prior(population)
        self.covariance = slopes @ slopes.T + self.model.quiz_covariance
        variance = np.maximum(np.diagonal(self.covariance), _MIN_VARIANCE)
        self.variance = np.tile(variance, (len(self.mean), 1))
        self.factors = np.zeros((len(self.mean), 0, self.mean.shape[1]), np.float32)

    def _prior(self, population: Population) -> tuple[FloatArray, FloatArray]:
        """Return a population's mean logits before any answer, (S, Q), and its slopes, (Q, k).

        The code assumes that abilities have the variance 1. If the abilities in the population have
        another variance, the slopes are multiplied by the standard deviation of these abilities.
        Then the logits have the right variance, although the abilities count as if their variance
        was 1.
        """
        deviation = np.float32(np.exp(population.log_variance / 2))
        stretch = np.float32(np.exp(population.log_stretch))
        mean = stretch * self._expected_logits + np.float32(population.shift)
        return mean, self.model.slopes * deviation

    def _update(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Update the distribution of the logits of the students who answered, by moment matching.

        The parameters are the same as in `observe`. Let c be the covariance of the answered
        question's logit with all logits of the student, and let `_match_moments` return `gradient`
        and `curvature`. The answer adds ``gradient * c`` to the mean. From the covariance matrix,
        it subtracts f fᵀ with the vector f = ``sqrt(curvature) * c``.

        A covariance matrix (Q, Q) for each student would need too much memory. So only the vectors
        f are stored, the *factors*. The matrix `self.covariance` is the covariance before any
        answer, which all students share. The covariance of a student is this matrix minus f fᵀ for
        each of the student's answers.
        """
        gradient, curvature, _ = _match_moments(
            self.mean[student, question],
            self.variance[student, question],
            is_right,
            self.model.guessing,
        )
        # Each of these students gives one new answer. `earlier_factors` holds the factors of their
        # earlier answers, shape (new answers, earlier answers, Q).
        earlier_factors = self.factors[student]
        # `covariance` is the covariance of the answered question's logit with all logits, shape
        # (new answers, Q). It is a row of the student's covariance matrix. Start with this row of
        # the matrix before any answer. Then subtract the same row of f fᵀ for each earlier factor
        # f: the number f[question] times the vector f.
        covariance = self.covariance[question]
        if earlier_factors.shape[1]:
            # The number f[question] of each earlier factor f, shape (new answers, earlier answers).
            f_of_question = earlier_factors[range(len(student)), :, question]
            # For each student, a product of two matrices, (1, earlier answers) and (earlier
            # answers, Q), computes the sum of f[question] · f over the earlier factors f.
            covariance -= (f_of_question[:, None] @ earlier_factors)[:, 0]
        factor = covariance * np.sqrt(curvature)[:, None]
        self.mean[student] += covariance * gradient[:, None]
        self.variance[student] = np.maximum(self.variance[student] - factor**2, _MIN_VARIANCE)
        # All students must have the same number of factors, so each student gets a new one. The
        # factor of a student who gave no answer is 0, and so changes no covariance.
        new_factor = np.zeros((len(self.mean), 1, factor.shape[1]), np.float32)
        new_factor[student, 0] = factor
        self.factors = np.concatenate([self.factors, new_factor], axis=1)

    def _estimate_population(self) -> Population:
        """Estimate the population from all answers by one Newton step from the last estimate.

        Each field of `Population` takes its own Newton step, gradient / curvature, towards the
        maximum of the log posterior. Gradient and curvature are computed from three values of the
        log posterior: at the last estimate, and with the field increased and decreased by its entry
        in `_STEPS`. The Newton step is at most twice this entry.
        """
        here = np.array(self.population)
        value_here = self._log_posterior(here)
        # Row i moves field i by its step and leaves the other fields as they are.
        steps = np.diag(_STEPS)
        value_plus = np.array([self._log_posterior(here + step) for step in steps])
        value_minus = np.array([self._log_posterior(here - step) for step in steps])
        gradient = (value_plus - value_minus) / (2 * _STEPS)
        # The curvature is minus the second derivative. Far from a maximum it may be negative, and
        # the Newton step would go downhill. So the curvature is at least that of the log prior
        # alone, which is 1 / deviation².
        curvature = (2 * value_here - value_plus - value_minus) / _STEPS**2
        prior_curvature = _DEVIATIONS**-2.0
        curvature = np.maximum(curvature, prior_curvature)
        newton_step = np.clip(gradient / curvature, -2 * _STEPS, 2 * _STEPS)
        return Population(*(here + newton_step).tolist())

    def _log_posterior(self, parameters: npt.NDArray[np.float64]) -> float:
        """Return the log posterior of the fields of a `Population`, up to a constant.

        This is the log prior plus the log probability of all answers so far. A student's answers
        are taken one after the other: the Gaussian distribution of the logits gives the probability
        of the next answer, and then the answer updates the distribution as in `_update`. Let c be
        the covariance of the answered question's logit with the logits of all questions that the
        student was asked (other logits are not needed here). The answer adds gradient · c to the
        mean and subtracts curvature · c cᵀ from the covariance, with the gradient and the curvature
        that `_match_moments` returns.
        """
        # The question that each student was asked in each round, shape (S, rounds). The entry of a
        # student who was not asked in a round stays 0. It has no effect, because the loop below
        # uses a round only for the students who were asked in it.
        question = np.zeros((len(self._expected_logits), len(self._observed)), np.int64)
        for t, (student, asked, _) in enumerate(self._observed):
            question[student, t] = asked
        # Mean and covariance of the logits of the asked questions before any answer, shapes
        # (S, rounds) and (S, rounds, rounds), if `parameters` describe the population.
        mean_of_all, slopes_of_all = self._prior(Population(*parameters.tolist()))
        mean = np.take_along_axis(mean_of_all, question, axis=1)
        # A logit is slopes · ability + quiz effect + intercept, and abilities have the covariance
        # I. So the covariance of the logits is slopes slopesᵀ plus the covariance of the quiz
        # effects.
        slopes = slopes_of_all[question]
        covariance = slopes @ slopes.transpose(0, 2, 1)
        covariance += self.model.quiz_covariance[question[:, :, None], question[:, None, :]]

        log_prior = -0.5 * float(((parameters / _DEVIATIONS) ** 2).sum())
        total = log_prior
        for t, (student, _, is_right) in enumerate(self._observed):
            # For each answer of round t, the covariance of its question's logit with the logits of
            # the questions of all rounds, shape (answers, rounds). Column t is the covariance of
            # the logit with itself: its variance.
            c = covariance[student, t]
            variance = np.maximum(c[:, t], _MIN_VARIANCE)
            gradient, curvature, probability = _match_moments(
                mean[student, t], variance, is_right, self.model.guessing
            )
            mean[student] += c * gradient[:, None]
            curvature_times_c = c * curvature[:, None]
            # For each answer, subtract curvature · c cᵀ, shape (rounds, rounds).
            covariance[student] -= curvature_times_c[:, :, None] * c[:, None, :]
            total += float(np.log(probability).sum())
        return total

    # ---- Predicting and asking -------------------------------------------------------------------

    def probability(self) -> FloatArray:
        """Return P(right) of every student and question, shape (S, Q)."""
        return self.model.guessing + (1 - self.model.guessing) * self._knows()

    def _knows(self) -> FloatArray:
        """Return the probability that the student knows the answer, shape (S, Q).

        It is the mean of sigmoid(x) over the Gaussian logit x, by MacKay's approximation (1992).
        """
        return _sigmoid(self.mean / np.sqrt(1 + np.float32(np.pi / 8) * self.variance))

    def predict(self) -> FloatArray:
        """Return P(right), shape (S, Q), with 1 (right) or 0 (wrong) for known answers."""
        prediction = self.probability()
        for student, question, is_right in self._observed:
            prediction[student, question] = is_right
        return prediction

    def select(self, askable: BoolArray) -> IntArray:
        """Select for each student the question whose answer should help the predictions most.

        Parameters
        ----------
        askable
            Which questions may be asked, shape (S, Q).

        Returns
        -------
        array of int64, shape (S,)
            The question selected for each student, as a column of `askable`; 0 for students who may
            not be asked anything.

        Notes
        -----
        The value of question j is a weighted sum over all questions q,

            value(j) = Σ weight(q) · covariance(j, q)² / (variance(j) + noise(j)).

        Covariances and variances are those of the logits. The answer to j is treated as a
        measurement of the logit of j with Gaussian noise (`_answer_noise`). The fraction is the
        variance that the answer removes from the logit of q. The weight says how much a better
        known logit of q should improve the predictions (`_weight`).

        If targets may be asked, asking j makes the prediction for j certain. So the probability
        that this prediction would otherwise be wrong is added, times `_OWN_UNCERTAINTY`.
        """
        knows = self._knows()
        right = self.model.guessing + (1 - self.model.guessing) * knows
        noise = _answer_noise(knows, self.model.guessing)
        weight = self._weight()

        selected = np.zeros(len(askable), np.int64)
        for row in np.flatnonzero(askable.any(axis=1)):
            questions = np.flatnonzero(askable[row])
            targets = np.flatnonzero(weight[row])
            # Covariance between the logits of the askable questions and the logits of the possible
            # targets, shape (questions, targets). `self.covariance` is the covariance before any
            # answer. Each answer of the student has a factor f, and lowers the covariance by f fᵀ.
            factors = self.factors[row]
            covariance = self.covariance[np.ix_(questions, targets)]
            covariance -= factors[:, questions].T @ factors[:, targets]
            value = covariance**2 @ weight[row, targets]
            value /= self.variance[row, questions] + noise[row, questions]
            if self.targets_may_be_asked:
                p = right[row, questions]
                value += _OWN_UNCERTAINTY * np.minimum(p, 1 - p)
            selected[row] = questions[value.argmax()]
        return selected

    def _weight(self) -> FloatArray:
        """Return how much a better known logit should improve the predictions, shape (S, Q).

        A better known logit helps only if it can change the prediction, that is, if the mean logit
        can cross the boundary where P(right) = ½. Answers of later rounds will move the mean logit.
        Its value after the last round is assumed to be normal around its present value. The
        variance (`spread`) is a rule of thumb: a share of the logit's variance, in proportion to
        the rounds left. The weight is the density of this distribution at the boundary, times the
        probability that the question is a target.
        """
        rounds_left = np.clip(N_ROUNDS - self.n_answers, 1, N_ROUNDS)[:, None]
        spread = _RESOLUTION * rounds_left / N_ROUNDS * self.variance + _MIN_SPREAD
        # At the boundary, P(right) = guessing + (1 − guessing) sigmoid(x) is ½. Solved for the odds
        # of knowing the answer, exp(x), this gives (½ − guessing) / ½.
        boundary = np.log((0.5 - self.model.guessing) / 0.5)
        density = np.exp(-((self.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
        return np.asarray((self.target_weight * density).astype(np.float32))


def _answer_noise(knows: FloatArray, guessing: FloatArray) -> FloatArray:
    """Return the variance of the noise of an answer that is treated as a measurement of its logit.

    A measurement whose noise has the variance v has the Fisher information 1 / v. So the variance
    is 1 divided by the Fisher information of the answer about its logit. `knows` is sigmoid(logit).
    """
    right = guessing + (1 - guessing) * knows
    information = ((1 - guessing) * knows * (1 - knows)) ** 2 / (right * (1 - right))
    # An answer that is nearly certain has almost no information. The bound keeps its noise finite.
    return np.asarray(1 / np.maximum(information, 0.005))


def _match_moments(
    mean: FloatArray, variance: FloatArray, is_right: IntArray, guessing: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit a Gaussian to the distribution of a logit after an answer.

    That distribution is the Gaussian before the answer times the likelihood of the answer,
    normalised. The fitted Gaussian has the same mean. It also has the same variance, except if the
    answer increases the variance: then the variance stays the same as before the answer.

    Parameters
    ----------
    mean, variance
        Mean and variance of the logits before the answers, shape (answers,) each.
    is_right
        1 for a right and 0 for a wrong answer, shape (answers,).
    guessing
        Probability that a student who does not know an answer guesses it right.

    Returns
    -------
    gradient, curvature
        The fitted Gaussian has the mean ``mean + variance * gradient`` and the variance
        ``variance - variance**2 * curvature``. The curvature is at least 0, so that the variance of
        the fitted Gaussian never increases. The exact variance may increase after a surprising
        right answer, because the student may have guessed.
    probability
        Probability of each given answer before it is known, shape (answers,).
    """
    deviation = np.sqrt(variance)
    # Let z be (logit − mean) / deviation. Before the answer, z is standard normal. So the mean of a
    # function f of z is about Σ weight · f(node), a sum over the nodes of the quadrature. `right`
    # is P(right) at each node, shape (answers, nodes).
    right = guessing + (1 - guessing) * _sigmoid(mean[:, None] + deviation[:, None] * _NODES)
    likelihood = np.where(is_right[:, None] == 1, right, 1 - right)
    weight = _NODE_WEIGHTS * likelihood
    probability = weight.sum(axis=1)
    # The means of z and of z² after the answer. The logit is mean + deviation · z. So after the
    # answer, it has the mean `mean + deviation * mean_z` and the variance `variance * variance_z`.
    mean_z = weight @ _NODES / probability
    mean_z_squared = weight @ _NODES**2 / probability
    variance_z = mean_z_squared - mean_z**2
    # Set this mean and this variance equal to the formulas in the docstring, and solve for the
    # gradient and the curvature.
    gradient = mean_z / deviation
    curvature = np.maximum(1 - variance_z, 0) / variance
    return gradient, curvature, probability


def _sigmoid(x: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x)) in float32, by an equivalent formula that does not overflow."""
    return np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))
