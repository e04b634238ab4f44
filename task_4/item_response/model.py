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

# A question outside the answered mask may have a hidden answer. The model assumes one if its
# estimate of the probability is above this.
_MIN_PROBABILITY = 0.3
# In the game, the entry asks students questions, then predicts some of their answers, the targets.
# By most rules the targets are hidden. By others they may be asked too, and are in the answered
# mask. The model concludes the latter if it finds almost no hidden answers: fewer than this share
# of the number of answers in the mask.
_MAX_SHARE_HIDDEN = 0.05
# Share of a logit's variance that ten answers are expected to remove.
_RESOLUTION = 0.7
# The answers of later rounds will change the mean of a logit. `_weight` assumes that the change has
# at least this variance.
_MIN_SPREAD = 0.05
# If targets may be asked, a target that is asked need not be predicted any more: its answer is
# known. `select` therefore adds, to the value of asking a question, this number times the
# probability that the prediction of its answer would be wrong.
_OWN_UNCERTAINTY = 20.0
# The population is estimated anew when the first student reaches each of these numbers of answers.
_ADAPT_AFTER = (3, 6, 10)
# Prior standard deviations of the fields of `Population`.
_DEVIATIONS = np.array([0.3, 0.15, 0.3])
# Step of each field of `Population` for finite differences. A Newton step is at most twice as long
# as this step.
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

    # Mean logit of each question for a student without known answers, shape (Q,).
    intercept: FloatArray
    # Discriminations, shape (Q, k). Abilities have variance 1.
    slopes: FloatArray
    # A student's quiz effect on a question is a random number added to the logit. It is similar
    # for questions of the same quiz. This is the covariance of the effects on each two questions,
    # shape (Q, Q).
    quiz_covariance: FloatArray
    # Probability that a student who does not know an answer guesses it, shape ().
    guessing: FloatArray
    # The next two fields predict a student's ability from the questions that the student has
    # answered, before any answer is seen: a linear regression, whose predictors are the scaled
    # mask. A student's answered mask is 1 for answered questions and 0 for others. Divided by the
    # root of its sum, it is the scaled mask. The expected ability differs from the average by
    # (scaled mask − mask_mean) @ mask_weights.
    # Mean of the training students' scaled masks, shape (Q,).
    mask_mean: FloatArray
    # Coefficients of this regression, shape (Q, k).
    mask_weights: FloatArray
    # Regression of all answers on those that are not hidden: answered mask @ completion estimates
    # the probability that the student answered each question. The coefficients assume that a fifth
    # of a student's answers is hidden. Shape (Q, Q). All 0: do not look for hidden answers.
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

        Questions beyond that number are cut off. A new question has the mean intercept. The logit
        of a new question is the same for all students, so its answer tells nothing about other
        questions, and their answers tell nothing about it.
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
    """How the students of the test, who are asked questions, differ from the training students."""

    # Logarithm of the variance of the abilities. The training students have the variance 1.
    log_variance: float = 0.0
    # The mean logits are those of the training students, multiplied by a factor, plus `shift`.
    # `log_stretch` is the logarithm of the factor.
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
        """Begin with what is known before any answer: which questions each student may be asked.

        In the game, some answers of every student are the *targets*: they have to be predicted.
        Nobody tells which ones. By most rules they are hidden, that is, outside the answered mask:
        the model guesses them. By other rules targets may be asked, and the mask holds them.
        """
        self.model = model
        self.n_answers = np.zeros(len(answered_mask), np.int64)
        # An entry for each call of `observe`: which students, which questions, right or wrong.
        self._observed: list[tuple[IntArray, IntArray, IntArray]] = []

        # The probability that a student has a hidden answer to a question, shape (S, Q).
        p_hidden = self._hidden_probability(answered_mask)
        # Every student has targets. If the model finds almost no hidden answers, although it looks
        # for them, the targets must be in the mask. A model whose `completion` is 0 does not look.
        looks_for_hidden = model.completion.any()
        finds_few = p_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        self.targets_may_be_asked = bool(looks_for_hidden and finds_few)
        if self.targets_may_be_asked:
            p_hidden[:] = 0
        # A student's targets are the hidden answers. If the model finds none, all answers in the
        # student's mask are equally likely to be targets.
        has_hidden = p_hidden.any(axis=1, keepdims=True)
        self.target_weight = np.where(has_hidden, p_hidden, answered_mask).astype(np.float32)

        # The choice of questions that students answered says something about their abilities.
        ability = self._expected_ability(answered_mask | (p_hidden > 0.5))
        # Mean logits before any answer, for the population of the training students.
        self._expected_logits = model.intercept + ability @ model.slopes.T
        self._begin(Population())

    def _hidden_probability(self, answered_mask: BoolArray) -> FloatArray:
        """Return the probability that a student has answered a question outside the mask.

        The shape is (S, Q). Questions in the mask get 0. Probabilities up to `_MIN_PROBABILITY` are
        replaced by 0 too.
        """
        p_answered = answered_mask.astype(np.float32) @ self.model.completion
        p_hidden = np.where(answered_mask, 0, p_answered)
        return np.minimum(p_hidden, 1) * (p_hidden > _MIN_PROBABILITY)

    def _expected_ability(self, answered_mask: BoolArray) -> FloatArray:
        """Predict students' abilities, shape (S, k), from which questions they have answered.

        The abilities are relative to the average ability.
        """
        answered = answered_mask.astype(np.float32)
        count = answered.sum(axis=1, keepdims=True)
        scaled_mask = answered / np.sqrt(np.maximum(count, 1))
        # An empty mask means that the answered questions are unknown: expect an average ability.
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
        # The answer is known now and need not be predicted.
        self.target_weight[student, question] = 0
        # In each round every student is asked one question. So the student with the most answers
        # has an answer for each round.
        n_rounds = int(self.n_answers.max())
        if n_rounds not in _ADAPT_AFTER:
            self._update(student, question, is_right)
            return
        # After a few of the rounds, the model estimates anew how the students who are asked differ
        # from the training students: their population. This changes the prior, the distribution
        # before any answer. So begin with the new prior and go through all answers again.
        self._begin(self._estimate_population())
        for answers in self._observed:
            self._update(*answers)

    def _begin(self, population: Population) -> None:
        """Set the distribution of the logits to the prior, as before any answer."""
        self.population = population
        self.mean, slopes = self._prior(population)
        self.covariance = slopes @ slopes.T + self.model.quiz_covariance
        variance = np.maximum(np.diagonal(self.covariance), _MIN_VARIANCE)
        self.variance = np.tile(variance, (len(self.mean), 1))
        self.factors = np.zeros((len(self.mean), 0, self.mean.shape[1]), np.float32)

    def _prior(self, population: Population) -> tuple[FloatArray, FloatArray]:
        """Return a population's mean logits, (S, Q), and its slopes, (Q, k).

        Abilities have the variance 1 in every population. The slopes are multiplied by the standard
        deviation instead.
        """
        deviation = np.float32(np.exp(population.log_variance / 2))
        stretch = np.float32(np.exp(population.log_stretch))
        mean = stretch * self._expected_logits + np.float32(population.shift)
        return mean, self.model.slopes * deviation

    def _update(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Update the distribution of the logits of students, by moment matching.

        The parameters are those of `observe`. If c is the covariance of the answered question's
        logit with all logits, the answer adds ``gradient * c`` to the mean, and subtracts f fᵀ from
        the covariance matrix, with the vector f = ``sqrt(curvature) * c``.

        A matrix (Q, Q) for each student would need too much memory. So only the vectors f, the
        factors, are stored. The covariance matrix of a student is `self.covariance`, which is that
        of all students before any answer, minus f fᵀ of each of the student's answers.
        """
        gradient, curvature, _ = _match_moments(
            self.mean[student, question],
            self.variance[student, question],
            is_right,
            self.model.guessing,
        )
        # Factors of the students' earlier answers, shape (answers, earlier, Q). The axis `answers`
        # is that of the new answers, one for each student.
        factors = self.factors[student]
        # Covariance of the answered question's logit with all logits, shape (answers, Q). It is the
        # answered question's row in the covariance matrix: the row before any answer, minus the
        # same row of f fᵀ for each earlier factor f. This row is f[question] · f.
        covariance = self.covariance[question]
        if factors.shape[1]:
            f_of_question = factors[range(len(student)), :, question]
            covariance -= (f_of_question[:, None] @ factors)[:, 0]
        factor = covariance * np.sqrt(curvature)[:, None]
        self.mean[student] += covariance * gradient[:, None]
        self.variance[student] = np.maximum(self.variance[student] - factor**2, _MIN_VARIANCE)
        # All students need the same number of factors. The new factor of a student who did not
        # answer is 0, so that it subtracts nothing from the covariance.
        new_factor = np.zeros((len(self.mean), 1, factor.shape[1]), np.float32)
        new_factor[student, 0] = factor
        self.factors = np.concatenate([self.factors, new_factor], axis=1)

    def _estimate_population(self) -> Population:
        """Estimate the population from all answers by one Newton step from the last estimate.

        Each field takes a step of its own, up the log posterior as a function of this field. The
        step is gradient / curvature. Both are finite differences of the log posterior at the last
        estimate and at the field's entry of `_STEPS` above and below it. The step is at most twice
        this entry.
        """
        here = np.array(self.population)
        value_here = self._log_posterior(here)
        # A row for each field: the step of this field, and 0 for the others.
        steps = np.diag(_STEPS)
        value_plus = np.array([self._log_posterior(here + step) for step in steps])
        value_minus = np.array([self._log_posterior(here - step) for step in steps])
        gradient = (value_plus - value_minus) / (2 * _STEPS)
        # Minus the second derivative. Only if it is positive, as near a maximum, does the step go
        # uphill. The prior alone has the curvature 1 / deviation²: no smaller curvature is used.
        curvature = (2 * value_here - value_plus - value_minus) / _STEPS**2
        prior_curvature = _DEVIATIONS**-2.0
        curvature = np.maximum(curvature, prior_curvature)
        newton_step = np.clip(gradient / curvature, -2 * _STEPS, 2 * _STEPS)
        return Population(*(here + newton_step).tolist())

    def _log_posterior(self, parameters: npt.NDArray[np.float64]) -> float:
        """Return the log posterior of the fields of a `Population`, up to a constant.

        This is the logarithm of the prior times the probability of all answers so far. Take a
        student's answers one after the other: the Gaussian distribution of the logits gives the
        probability of the next answer, which then updates the distribution. As in `_update`, the
        answer adds gradient · c to the mean and subtracts curvature · c cᵀ from the covariance, if
        c is the covariance of the answered question's logit with all logits. Here only the logits
        of the questions that a student was asked are needed.
        """
        # The question of each student in each round, shape (S, rounds).
        question = np.zeros((len(self._expected_logits), len(self._observed)), np.int64)
        for t, (student, asked, _) in enumerate(self._observed):
            question[student, t] = asked
        # Prior mean and covariance of the logits of the asked questions, shapes (S, rounds) and
        # (S, rounds, rounds).
        mean_of_all, slopes_of_all = self._prior(Population(*parameters.tolist()))
        mean = np.take_along_axis(mean_of_all, question, axis=1)
        # A logit is slopes · ability + quiz effect + intercept. Abilities have the covariance I.
        slopes = slopes_of_all[question]
        covariance = slopes @ slopes.transpose(0, 2, 1)
        covariance += self.model.quiz_covariance[question[:, :, None], question[:, None, :]]

        log_prior = -0.5 * float(((parameters / _DEVIATIONS) ** 2).sum())
        total = log_prior
        for t, (student, _, is_right) in enumerate(self._observed):
            # Covariance of the asked question's logit with the logits of all rounds.
            c = covariance[student, t]
            variance = np.maximum(c[:, t], _MIN_VARIANCE)
            gradient, curvature, probability = _match_moments(
                mean[student, t], variance, is_right, self.model.guessing
            )
            mean[student] += c * gradient[:, None]
            scaled = c * curvature[:, None]
            covariance[student] -= scaled[:, :, None] * c[:, None, :]
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
        """Select for each student the question whose answer should help the predictions most.

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

        Covariance and variance are those of the logits. The answer to j is approximated by a
        measurement of its logit with Gaussian noise (`_answer_noise`). The fraction is then the
        variance that the answer removes from the logit of q. The weight says how much a better
        known logit of q should improve the predictions (`_weight`).

        If targets may be asked, the probability that the prediction for j is wrong is added: once j
        has been asked, its prediction is certainly right.
        """
        knows = self._knows()
        right = self.model.guessing + (1 - self.model.guessing) * knows
        noise = _answer_noise(knows, self.model.guessing)
        weight = self._weight()

        selected = np.zeros(len(askable), np.int64)
        for row in np.flatnonzero(askable.any(axis=1)):
            questions = np.flatnonzero(askable[row])
            targets = np.flatnonzero(weight[row])
            # Covariance of the student's logits after the answers so far, (questions, targets).
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

    def _weight(self) -> FloatArray:
        """Return how much a better known logit should improve the predictions, shape (S, Q).

        A better known logit changes the prediction only if its mean crosses the boundary where
        P(right) = ½. The weight is therefore the probability that the question is a target, times
        the density at the boundary of the mean logit after the last round. The mean logit is
        assumed to move until then by a normal variable, whose variance (`spread`) is a rule of
        thumb: a share of the logit's variance, in proportion to the rounds left.
        """
        rounds_left = np.clip(N_ROUNDS - self.n_answers, 1, N_ROUNDS)[:, None]
        spread = _RESOLUTION * rounds_left / N_ROUNDS * self.variance + _MIN_SPREAD
        # P(right) = guessing + (1 − guessing) sigmoid(x) is ½ where exp(x) = (½ − guessing) / ½.
        boundary = np.log((0.5 - self.model.guessing) / 0.5)
        density = np.exp(-((self.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
        return np.asarray((self.target_weight * density).astype(np.float32))


def _answer_noise(knows: FloatArray, guessing: FloatArray) -> FloatArray:
    """Return the noise variance if answers are taken as Gaussian measurements of their logits.

    It is 1 / Fisher information of the answer about the logit. `knows` is sigmoid(logit).
    """
    right = guessing + (1 - guessing) * knows
    information = ((1 - guessing) * knows * (1 - knows)) ** 2 / (right * (1 - right))
    # An answer that is nearly certain tells almost nothing. The bound keeps its noise finite.
    return np.asarray(1 / np.maximum(information, 0.005))


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
        ``variance - variance**2 * curvature``. The curvature is at least 0, so that an answer never
        increases the variance. By exact moment matching, a surprising right answer would increase
        it, since the student may have guessed.
    probability
        Probability of the answers given.
    """
    deviation = np.sqrt(variance)
    # P(right) and the posterior weight at each node of the quadrature, shape (answers, nodes).
    right = guessing + (1 - guessing) * _sigmoid(mean[:, None] + deviation[:, None] * _NODES)
    weight = _NODE_WEIGHTS * np.where(is_right[:, None] == 1, right, 1 - right)
    probability = weight.sum(axis=1)
    # The first two moments of x = (logit − mean) / deviation, given the answer. So the logit then
    # has the mean `mean + deviation * first` and the variance `variance * (second - first**2)`.
    first = weight @ _NODES / probability
    second = weight @ _NODES**2 / probability
    curvature = np.maximum(1 - (second - first**2), 0) / variance
    return first / deviation, curvature, probability


def _sigmoid(x: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x)), without overflow and without leaving float32."""
    return np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))
