"""Item response model with guessing: ask what helps to predict the hidden answers, then predict.

What is known of a student is one Gaussian distribution over the logits x of all questions, where

    P(right) = guessing + (1 − guessing) sigmoid(x),
    x = slopes · ability + quiz effect + intercept.

Abilities are multidimensional; quiz effects are shared by questions that are usually answered
together (testlets; Bradlow, Wainer and Wang 1999). Both are Gaussian, so all that has to be kept is
a mean and a covariance between questions. A question answered changes them by moment matching
(assumed density filtering; Minka 2001, "A family of algorithms for approximate Bayesian
inference"). Which questions a student has answered, the answered mask, tells something before any
answer is seen: it shifts the mean, and what usually goes with these questions is probably answered
as well, but hidden, and so to be predicted. The answers of all students together tell how they
differ from the training students.

Needs only NumPy, no other file of the kit: it goes into the zip.
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

# The settings were chosen by cross-validation over training students.
# A question that may not be asked counts as a hidden answer from this probability on.
_MIN_PROBABILITY = 0.3
# Targets may be asked if the likely hidden answers are fewer than this share of the askable ones.
_MAX_SHARE_HIDDEN = 0.05
# Share of a logit's variance that later answers are expected to remove, before the first round.
_RESOLUTION = 0.7
# Weight of a question's own uncertainty, beside its information, where it may be a target.
_OWN_UNCERTAINTY = 20.0
# After this many answers of a student the difference to the training students is estimated.
_ADAPT_AFTER = (3, 6, 10)
# That difference (see `Population`): its standard deviation before any answer, and steps for finite
# differences.
_DEVIATIONS = np.array([0.3, 0.15, 0.3])
_STEPS = np.array([0.2, 0.1, 0.1])

_NODES, _NODE_WEIGHTS = (
    array.astype(np.float32) for array in np.polynomial.hermite_e.hermegauss(11)
)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Model:
    """What training has learned; Q questions, k dimensions of ability, float32."""

    # Mean logit of every question for students of whom nothing is known, shape (Q,).
    intercept: FloatArray
    # Discriminations, shape (Q, k); abilities have variance 1.
    slopes: FloatArray
    # Covariance of a student's quiz effects, shape (Q, Q).
    quiz_covariance: FloatArray
    # Probability that a student who does not know an answer guesses it, shape ().
    guessing: FloatArray
    # The ability expected of a student with the answered mask m (1 answered, 0 not, divided by the
    # root of their number) differs from the mean by (m − mask_mean) @ mask_weights: (Q,), (Q, k).
    mask_mean: FloatArray
    mask_weights: FloatArray
    # An answered mask with a fifth of the answers hidden, times this, gives the probability that
    # each question is answered, shape (Q, Q).
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
        """Cut or pad to another number of questions; new ones are like a mean one, independent."""
        new = max(0, n_questions - len(self.intercept))

        def pad(array: FloatArray, n_axes: int) -> FloatArray:
            kept = array[(slice(n_questions),) * n_axes]
            return np.pad(kept, [(0, new)] * n_axes + [(0, 0)] * (array.ndim - n_axes))

        square = {"quiz_covariance", "completion"}
        arrays = {name: array for name, array in vars(self).items() if name != "guessing"}
        padded = {name: pad(array, 1 + (name in square)) for name, array in arrays.items()}
        padded["intercept"][len(self.intercept) :] = self.intercept.mean()
        return replace(self, **padded)


class Population(NamedTuple):
    """How the students who are asked differ from the training students."""

    # Logarithm of the variance of their abilities.
    log_variance: float = 0.0
    # Their mean logits are those of the training students, times exp(log_stretch), plus shift.
    log_stretch: float = 0.0
    shift: float = 0.0


class StudentPosterior:
    """What is known of S students who are asked; the answered mask, bool (S, Q), Q as in the model,
    tells which answers may be asked or have been, all False if that is not known.
    """

    def __init__(self, model: Model, answered_mask: BoolArray) -> None:
        self.model = model
        probability = np.where(
            answered_mask, 0, answered_mask.astype(np.float32) @ model.completion
        )
        likely_hidden = np.minimum(probability, 1) * (probability > _MIN_PROBABILITY)
        self.targets_may_be_asked = bool(
            model.completion.any() and likely_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        )
        if self.targets_may_be_asked:
            likely_hidden[:] = 0
        is_known = likely_hidden.any(axis=1, keepdims=True)
        self.target_weight = np.where(is_known, likely_hidden, answered_mask).astype(np.float32)

        answered = (answered_mask | (likely_hidden > 0.5)).astype(np.float32)
        count = answered.sum(axis=1, keepdims=True)
        relative = np.where(count > 0, answered / np.sqrt(np.maximum(count, 1)), model.mask_mean)
        ability = (relative - model.mask_mean) @ model.mask_weights
        self._expected = model.intercept + ability @ model.slopes.T
        # One entry for each call of `observe`: which students, which questions, right or wrong.
        self._observed: list[tuple[IntArray, IntArray, IntArray]] = []
        # How many answers of each student are known, shape (S,).
        self.n_answers = np.zeros(len(answered_mask), np.int64)
        self._begin(Population())

    def _begin(self, population: Population) -> None:
        """Set means and covariance of the logits to what is known before any answer."""
        self.population = population
        # Mean and variance of every student's logits, (S, Q).
        self.mean, slopes = self._prior(population)
        # Covariance of a student's logits before any answer, (Q, Q). Now it is that less the sum
        # of the outer products of the student's factors, one for each answer, (S, answers, Q).
        self.covariance = slopes @ slopes.T + self.model.quiz_covariance
        # A question that the model lacks has no variance; its answer tells nothing.
        variance = np.maximum(np.diagonal(self.covariance), 1e-5)
        self.variance = np.tile(variance, (len(self.mean), 1))
        self.factors = np.zeros((len(self.mean), 0, self.mean.shape[1]), np.float32)

    def _prior(self, population: Population) -> tuple[FloatArray, FloatArray]:
        """Return mean logits, (S, Q), and slopes for abilities of variance 1, (Q, k)."""
        spread, stretch = np.exp(population.log_variance / 2), np.exp(population.log_stretch)
        mean = np.float32(stretch) * self._expected + np.float32(population.shift)
        return mean, self.model.slopes * np.float32(spread)

    def observe(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Learn from at most one answer of each student: rows, columns, 1 right or 0 wrong."""
        self._observed.append((student, question, is_right))
        self.n_answers[student] += 1
        self.target_weight[student, question] = 0
        if int(self.n_answers.max()) not in _ADAPT_AFTER:
            self._update(student, question, is_right)
            return
        self._begin(self._adapt())
        for earlier in self._observed:
            self._update(*earlier)

    def _update(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        slope, curvature, _ = _match_moments(
            self.mean[student, question],
            self.variance[student, question],
            is_right,
            self.model.guessing,
        )
        factors = self.factors[student]
        covariance = self.covariance[question]
        if factors.shape[1]:
            covariance -= (factors[range(len(student)), :, question][:, None] @ factors)[:, 0]
        factor = covariance * np.sqrt(curvature)[:, None]
        self.mean[student] += covariance * slope[:, None]
        self.variance[student] = np.maximum(self.variance[student] - factor**2, 1e-5)
        new = np.zeros((len(self.mean), 1, factor.shape[1]), np.float32)
        new[student, 0] = factor
        self.factors = np.concatenate([self.factors, new], axis=1)

    def _adapt(self) -> Population:
        """Estimate the population from all answers: one Newton step towards the most probable."""
        now = np.array(self.population)
        height = self._log_posterior(now)
        above = np.array([self._log_posterior(now + step) for step in np.diag(_STEPS)])
        below = np.array([self._log_posterior(now - step) for step in np.diag(_STEPS)])
        gradient = (above - below) / (2 * _STEPS)
        curvature = np.maximum((2 * height - above - below) / _STEPS**2, _DEVIATIONS**-2.0)
        return Population(*(now + np.clip(gradient / curvature, -2 * _STEPS, 2 * _STEPS)).tolist())

    def _log_posterior(self, parameters: npt.NDArray[np.float64]) -> float:
        """Logarithm of prior times P(answers), up to a constant, of the fields of `Population`."""
        question = np.zeros((len(self._expected), len(self._observed)), np.int64)
        for t, (student, asked, _) in enumerate(self._observed):
            question[student, t] = asked
        mean, slopes = self._prior(Population(*parameters.tolist()))
        mean, slopes = np.take_along_axis(mean, question, axis=1), slopes[question]
        covariance = slopes @ slopes.transpose(0, 2, 1)
        covariance += self.model.quiz_covariance[question[:, :, None], question[:, None, :]]
        total = -0.5 * float(((parameters / _DEVIATIONS) ** 2).sum())
        for t, (student, _, is_right) in enumerate(self._observed):
            row = covariance[student, t]
            slope, curvature, probability = _match_moments(
                mean[student, t], np.maximum(row[:, t], 1e-5), is_right, self.model.guessing
            )
            mean[student] += row * slope[:, None]
            covariance[student] -= (row * curvature[:, None])[:, :, None] * row[:, None, :]
            total += float(np.log(probability).sum())
        return total

    def probability(self) -> FloatArray:
        """Return every student's probability to answer every question correctly, in their shape."""
        return self.model.guessing + (1 - self.model.guessing) * self._knows()

    def _knows(self) -> FloatArray:
        """E[sigmoid(x)] by MacKay's approximation (1992)."""
        return _sigmoid(self.mean / np.sqrt(1 + np.float32(np.pi / 8) * self.variance))

    def predict(self) -> FloatArray:
        """As `probability`, with 1 (right) or 0 (wrong) for what has been seen."""
        prediction = self.probability()
        for student, question, is_right in self._observed:
            prediction[student, question] = is_right
        return prediction

    def select(self, askable: BoolArray) -> IntArray:
        """Select for every student the question that promises most right predictions in the end.

        The promise of question j is the sum over targets q

            promise(j) = Σ weight(q) · covariance(j, q)² / (variance(j) + noise(j)),

        of the variance that the answer to j takes from the logit of q. The weight is the
        probability that q is a target, times the density of its logit where P(right) = ½: to know a
        logit better helps where that may change the prediction. Where targets may be asked, the
        chance that the prediction for j itself would have been wrong is added.
        """
        guessing = self.model.guessing
        knows = self._knows()
        right = guessing + (1 - guessing) * knows
        # Variance of the answer as a measurement of the logit: 1 / Fisher information.
        information = ((1 - guessing) * knows * (1 - knows)) ** 2 / (right * (1 - right))
        noise = 1 / np.maximum(information, 0.005)
        rounds_left = np.clip(N_ROUNDS - self.n_answers, 1, N_ROUNDS)[:, None]
        spread = _RESOLUTION * rounds_left / N_ROUNDS * self.variance + 0.05
        boundary = np.log((0.5 - guessing) / 0.5)
        density = np.exp(-((self.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
        weight = (self.target_weight * density).astype(np.float32)

        selected = np.zeros(len(askable), np.int64)
        for row in np.flatnonzero(askable.any(axis=1)):
            question = np.flatnonzero(askable[row])
            target = np.flatnonzero(weight[row])
            factors = self.factors[row]
            covariance = self.covariance[np.ix_(question, target)]
            covariance -= factors[:, question].T @ factors[:, target]
            promise = covariance**2 @ weight[row, target]
            promise /= self.variance[row, question] + noise[row, question]
            if self.targets_may_be_asked:
                p = right[row, question]
                promise += _OWN_UNCERTAINTY * np.minimum(p, 1 - p)
            selected[row] = question[promise.argmax()]
        return selected


def _match_moments(
    mean: FloatArray, variance: FloatArray, is_right: IntArray, guessing: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit a Gaussian, mean + variance · slope and variance − variance² · curvature, to a Gaussian
    times an answer's likelihood; return slope, curvature and P(answer); a surprising right answer,
    which looks guessed, would make the variance larger: it is left as it is.
    """
    deviation = np.sqrt(variance)
    right = guessing + (1 - guessing) * _sigmoid(mean[:, None] + deviation[:, None] * _NODES)
    weight = _NODE_WEIGHTS * np.where(is_right[:, None] == 1, right, 1 - right)
    probability = weight.sum(axis=1)
    first = weight @ _NODES / probability
    second = weight @ _NODES**2 / probability
    curvature = np.maximum(1 - (second - first**2), 0) / variance
    return first / deviation, curvature, probability


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))
