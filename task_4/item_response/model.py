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
something before any answer is seen. First, the mask shifts the mean. Second, it betrays *targets*,
the hidden answers: if students usually answer a question outside the mask together with those in
the mask, that question is probably a target.

*The population* says how the students who are asked differ from the training students. It is
estimated from the answers of all of them together.

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

# A question that may not be asked counts as a hidden answer if the student answered it with more
# than this probability.
_MIN_PROBABILITY = 0.3
# If there are fewer likely hidden answers than this share of the askable ones, the model concludes
# that the rules let targets be asked.
_MAX_SHARE_HIDDEN = 0.05
# Share of a logit's variance that ten answers are expected to remove.
_RESOLUTION = 0.7
# Smallest variance of the mean logit's future moves (`select`).
_MIN_SPREAD = 0.05
# If targets may be asked: weight, in the promise of a question (`select`), of the chance that its
# own answer would be predicted wrongly.
_OWN_UNCERTAINTY = 20.0
# The population is estimated when the student with the most answers has given this many.
_ADAPT_AFTER = (3, 6, 10)
# Prior standard deviations of the fields of `Population`.
_DEVIATIONS = np.array([0.3, 0.15, 0.3])
# Step of each field of `Population` for finite differences. A Newton step is at most twice as long.
_STEPS = np.array([0.2, 0.1, 0.1])
# Smallest variance of a logit.
_MIN_VARIANCE = 1e-5

# Gauss-Hermite quadrature: the mean of f(z) over a standard normal z is Σ weight f(node).
_nodes, _node_weights = np.polynomial.hermite_e.hermegauss(11)
_NODES = _nodes.astype(np.float32)
_NODE_WEIGHTS = _node_weights.astype(np.float32)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Model:
    """The learned parameters: float32, for Q questions and k dimensions of ability."""

    # Mean logit of each question for students of whom nothing is known, shape (Q,).
    intercept: FloatArray
    # Discriminations, shape (Q, k). Abilities have variance 1.
    slopes: FloatArray
    # Covariance of a student's quiz effects, shape (Q, Q).
    quiz_covariance: FloatArray
    # Probability that a student who does not know an answer guesses it, shape ().
    guessing: FloatArray
    # The expected ability of a student differs from the average by (m − mask_mean) @ mask_weights.
    # Here m is the student's answered mask, 1 answered and 0 not, divided by the root of the number
    # of answers. Shapes (Q,) and (Q, k).
    mask_mean: FloatArray
    mask_weights: FloatArray
    # If a fifth of the answers is hidden, visible mask @ completion estimates the probability that
    # the student answered each question. Shape (Q, Q). All 0: do not look for hidden answers.
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
        """Return the model for another number of questions.

        Questions beyond that number are cut off. A new question has the mean intercept. Its logit
        has no variance: other answers tell nothing about it, and its answer tells nothing.
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
    """How the students who are asked differ from the training students."""

    # Logarithm of the variance of the abilities.
    log_variance: float = 0.0
    # The mean logits are those of the training students, times exp(log_stretch), plus shift.
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
        False if this is not known.

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
        self.model = model
        self.n_answers = np.zeros(len(answered_mask), np.int64)
        # An entry for each call of `observe`: which students, which questions, right or wrong.
        self._observed: list[tuple[IntArray, IntArray, IntArray]] = []

        likely_hidden = self._likely_hidden(answered_mask)
        # With almost no hidden answers, the targets must be among the answers that may be asked.
        self.targets_may_be_asked = bool(
            model.completion.any() and likely_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        )
        if self.targets_may_be_asked:
            likely_hidden[:] = 0
        # For a student without likely targets, all askable questions get the same probability.
        has_targets = likely_hidden.any(axis=1, keepdims=True)
        self.target_weight = np.where(has_targets, likely_hidden, answered_mask).astype(np.float32)

        ability = self._expected_ability(answered_mask | (likely_hidden > 0.5))
        # Mean logits before any answer, for the population of the training students.
        self._expected_logits = model.intercept + ability @ model.slopes.T
        self._begin(Population())

    def _likely_hidden(self, answered_mask: BoolArray) -> FloatArray:
        """Return the probability that an answer exists but is hidden.

        It is 0 where it would be at most `_MIN_PROBABILITY`.
        """
        completed = answered_mask.astype(np.float32) @ self.model.completion
        probability = np.where(answered_mask, 0, completed)
        return np.minimum(probability, 1) * (probability > _MIN_PROBABILITY)

    def _expected_ability(self, answered_mask: BoolArray) -> FloatArray:
        """Return the abilities to be expected from the answered mask, shape (S, k)."""
        answered = answered_mask.astype(np.float32)
        count = answered.sum(axis=1, keepdims=True)
        mask_mean = self.model.mask_mean
        # `scaled` is m in the comment on `Model.mask_mean`. An empty mask means that the answered
        # questions are unknown. It becomes the mean mask, for which an average ability is expected.
        scaled = np.where(count > 0, answered / np.sqrt(np.maximum(count, 1)), mask_mean)
        return np.asarray((scaled - mask_mean) @ self.model.mask_weights)

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
        # The answer is known now and need not be predicted.
        self.target_weight[student, question] = 0
        if int(self.n_answers.max()) not in _ADAPT_AFTER:
            self._update(student, question, is_right)
            return
        # The population changes the prior, so go through all answers again.
        self._begin(self._estimate_population())
        for answers in self._observed:
            self._update(*answers)

    def _begin(self, population: Population) -> None:
        """Set the distribution of the logits to that before any answer."""
        self.population = population
        self.mean, slopes = self._prior(population)
        self.covariance = slopes @ slopes.T + self.model.quiz_covariance
        variance = np.maximum(np.diagonal(self.covariance), _MIN_VARIANCE)
        self.variance = np.tile(variance, (len(self.mean), 1))
        self.factors = np.zeros((len(self.mean), 0, self.mean.shape[1]), np.float32)

    def _prior(self, population: Population) -> tuple[FloatArray, FloatArray]:
        """Return a population's mean logits, (S, Q), and its slopes, (Q, k).

        The slopes contain the population's standard deviation of the abilities, so the abilities
        keep the variance 1.
        """
        deviation = np.float32(np.exp(population.log_variance / 2))
        stretch = np.float32(np.exp(population.log_stretch))
        mean = stretch * self._expected_logits + np.float32(population.shift)
        return mean, self.model.slopes * deviation

    def _update(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Update the distribution of the logits by moment matching; arguments as of `observe`."""
        gradient, curvature, _ = _match_moments(
            self.mean[student, question],
            self.variance[student, question],
            is_right,
            self.model.guessing,
        )
        factors = self.factors[student]
        # Covariance of the answered question's logit with all logits, shape (answers, Q).
        covariance = self.covariance[question]
        if factors.shape[1]:
            # The entry of each factor for the answered question, shape (answers, factors).
            at_question = factors[range(len(student)), :, question]
            # Batched product of a row and a matrix.
            covariance -= (at_question[:, None] @ factors)[:, 0]
        factor = covariance * np.sqrt(curvature)[:, None]
        self.mean[student] += covariance * gradient[:, None]
        self.variance[student] = np.maximum(self.variance[student] - factor**2, _MIN_VARIANCE)
        # The factor of a student who did not answer is 0.
        new = np.zeros((len(self.mean), 1, factor.shape[1]), np.float32)
        new[student, 0] = factor
        self.factors = np.concatenate([self.factors, new], axis=1)

    def _estimate_population(self) -> Population:
        """Estimate the population from all answers by one Newton step of limited length.

        The step goes up the log posterior, whose derivatives are finite differences.
        """
        here = np.array(self.population)
        value_here = self._log_posterior(here)
        value_plus = np.array([self._log_posterior(here + step) for step in np.diag(_STEPS)])
        value_minus = np.array([self._log_posterior(here - step) for step in np.diag(_STEPS)])
        gradient = (value_plus - value_minus) / (2 * _STEPS)
        curvature = (2 * value_here - value_plus - value_minus) / _STEPS**2
        # At least the curvature of the prior, 1 / deviation², so that the step goes uphill.
        curvature = np.maximum(curvature, _DEVIATIONS**-2.0)
        newton_step = np.clip(gradient / curvature, -2 * _STEPS, 2 * _STEPS)
        return Population(*(here + newton_step).tolist())

    def _log_posterior(self, parameters: npt.NDArray[np.float64]) -> float:
        """Return the log posterior of the fields of a `Population`, up to a constant.

        This is the logarithm of the prior times the probability of all answers so far. The
        probability of each answer is computed by moment matching, given the answers before it.
        """
        # The question of each student in each round, shape (S, rounds).
        question = np.zeros((len(self._expected_logits), len(self._observed)), np.int64)
        for t, (student, asked, _) in enumerate(self._observed):
            question[student, t] = asked
        # Mean and covariance of these questions' logits only.
        mean_of_all, slopes_of_all = self._prior(Population(*parameters.tolist()))
        mean = np.take_along_axis(mean_of_all, question, axis=1)
        slopes = slopes_of_all[question]
        covariance = slopes @ slopes.transpose(0, 2, 1)
        covariance += self.model.quiz_covariance[question[:, :, None], question[:, None, :]]

        total = -0.5 * float(((parameters / _DEVIATIONS) ** 2).sum())
        for t, (student, _, is_right) in enumerate(self._observed):
            # Covariance of the asked question's logit with the logits of all rounds.
            with_asked = covariance[student, t]
            variance = np.maximum(with_asked[:, t], _MIN_VARIANCE)
            gradient, curvature, probability = _match_moments(
                mean[student, t], variance, is_right, self.model.guessing
            )
            mean[student] += with_asked * gradient[:, None]
            scaled = with_asked * curvature[:, None]
            covariance[student] -= scaled[:, :, None] * with_asked[:, None, :]
            total += float(np.log(probability).sum())
        return total

    # ---- Predicting and asking -------------------------------------------------------------------

    def probability(self) -> FloatArray:
        """Return P(right) of every student and question, shape (S, Q)."""
        return self.model.guessing + (1 - self.model.guessing) * self._knows()

    def _knows(self) -> FloatArray:
        """Return the probability that the student knows the answer, shape (S, Q).

        It is E[sigmoid(x)], by MacKay's approximation (1992).
        """
        return _sigmoid(self.mean / np.sqrt(1 + np.float32(np.pi / 8) * self.variance))

    def predict(self) -> FloatArray:
        """Return P(right), shape (S, Q), with 1 (right) or 0 (wrong) for known answers."""
        prediction = self.probability()
        for student, question, is_right in self._observed:
            prediction[student, question] = is_right
        return prediction

    def select(self, askable: BoolArray) -> IntArray:
        """Select for each student the question after which most predictions should be right.

        Parameters
        ----------
        askable
            Which questions may be asked, shape (S, Q).

        Returns
        -------
        array of int64, shape (S,)
            A column for each student, 0 for students who may not be asked anything.

        Notes
        -----
        The promise of question j is a weighted sum over all questions q,

            promise(j) = Σ weight(q) · covariance(j, q)² / (variance(j) + noise(j)).

        The fraction is the variance that the answer to j takes from the logit of q. The weight is
        the probability that q is a target, times a density at the boundary where P(right) = ½: that
        of the mean logit of q after the last round, as far as it can be foreseen. Only at the
        boundary does better knowledge of a logit change the prediction. If targets may be asked,
        the chance that the prediction for j is wrong is added: once j has been asked, its
        prediction is certainly right.
        """
        guessing = self.model.guessing
        knows = self._knows()
        right = guessing + (1 - guessing) * knows
        # Variance of the answer as a measurement of the logit: 1 / Fisher information.
        information = ((1 - guessing) * knows * (1 - knows)) ** 2 / (right * (1 - right))
        # The lower bound keeps the noise finite.
        noise = 1 / np.maximum(information, 0.005)
        rounds_left = np.clip(N_ROUNDS - self.n_answers, 1, N_ROUNDS)[:, None]
        # How far the mean logit may still move until the last round, as a variance.
        spread = _RESOLUTION * rounds_left / N_ROUNDS * self.variance + _MIN_SPREAD
        # P(right) = ½ where sigmoid(x) = (0.5 − guessing) / (1 − guessing).
        boundary = np.log((0.5 - guessing) / 0.5)
        density = np.exp(-((self.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
        weight = (self.target_weight * density).astype(np.float32)

        selected = np.zeros(len(askable), np.int64)
        for row in np.flatnonzero(askable.any(axis=1)):
            questions = np.flatnonzero(askable[row])
            targets = np.flatnonzero(weight[row])
            factors = self.factors[row]
            covariance = self.covariance[np.ix_(questions, targets)]
            covariance -= factors[:, questions].T @ factors[:, targets]
            promise = covariance**2 @ weight[row, targets]
            promise /= self.variance[row, questions] + noise[row, questions]
            if self.targets_may_be_asked:
                p = right[row, questions]
                promise += _OWN_UNCERTAINTY * np.minimum(p, 1 - p)
            selected[row] = questions[promise.argmax()]
        return selected


def _match_moments(
    mean: FloatArray, variance: FloatArray, is_right: IntArray, guessing: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit a Gaussian to the product of a logit's Gaussian and the likelihood of an answer.

    Parameters
    ----------
    mean, variance
        Moments of the logits before the answers, shape (answers,) each.
    is_right
        1 for a right and 0 for a wrong answer, shape (answers,).
    guessing
        Probability that a student who does not know an answer guesses it.

    Returns
    -------
    gradient, curvature
        The fitted Gaussian has the mean ``mean + variance * gradient`` and the variance
        ``variance - variance**2 * curvature``. The curvature is at least 0: by exact moment
        matching, a surprising right answer, which may be guessed, would increase the variance; here
        the variance then stays the same.
    probability
        Probability of the answers given.
    """
    deviation = np.sqrt(variance)
    # P(right) and the posterior weight at each node of the quadrature, shape (answers, nodes).
    right = guessing + (1 - guessing) * _sigmoid(mean[:, None] + deviation[:, None] * _NODES)
    weight = _NODE_WEIGHTS * np.where(is_right[:, None] == 1, right, 1 - right)
    probability = weight.sum(axis=1)
    # Moments of the standardised logit, (x − mean) / deviation.
    first = weight @ _NODES / probability
    second = weight @ _NODES**2 / probability
    curvature = np.maximum(1 - (second - first**2), 0) / variance
    return first / deviation, curvature, probability


def _sigmoid(x: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x)), without overflow and without leaving float32."""
    return np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))
