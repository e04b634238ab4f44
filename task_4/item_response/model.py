"""Item response model with guessing: ask what helps to predict the hidden answers, then predict.

What is known of a student is one Gaussian distribution over the logits x of all questions, where

    P(right) = guessing + (1 − guessing) sigmoid(x),
    x = slopes · ability + quiz effect + intercept.

Abilities are multidimensional; quiz effects are shared by questions that are usually answered
together (testlets; Bradlow, Wainer and Wang 1999). Both are Gaussian, so all that has to be kept is
a mean and a covariance between questions. A question answered changes them by moment matching
(assumed density filtering; Minka 2001, "A family of algorithms for approximate Bayesian
inference"). Which questions a student has answered tells something before any answer is seen: it
shifts the mean, and its gaps tell which answers are hidden and are to be predicted. The answers of
all students together tell how they differ from the training students.

Needs only NumPy, no other file of the kit: it goes into the zip.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]

WEIGHTS = "model_task_4_item_response.npz"
N_ROUNDS = 10

# The settings were chosen by cross-validation over training students.
# A gap counts as a hidden answer from this probability on.
_LEAST_PROBABILITY = 0.3
# Targets may be asked if the gaps are fewer than this share of the questions to ask from.
_SHARE_OF_GAPS = 0.05
# Share of a logit's variance that later answers are expected to remove, before the first round.
_RESOLUTION = 0.7
# Weight of a question's own uncertainty, beside its information, where it may be a target.
_OWN_UNCERTAINTY = 20.0
# After so many answers of a student the difference to the training students is estimated.
_ADAPT_AFTER = (3, 6, 10)
# That difference (see `Population`): its standard deviation before any answer, and steps for finite
# differences.
_DEVIATIONS = np.array([0.3, 0.15, 0.3])
_STEPS = np.array([0.2, 0.1, 0.1])
# Students who are worked on together: their arrays fit the processor's cache.
_BLOCK = 8

_NODES, _NODE_WEIGHTS = (
    array.astype(np.float32) for array in np.polynomial.hermite_e.hermegauss(11)
)
_NODE_WEIGHTS /= _NODE_WEIGHTS.sum()


@dataclass(frozen=True)
class Model:
    """What training has learned; Q questions, k dimensions of ability, float32.

    Attributes
    ----------
    intercept
        Mean logit of every question for students of whom nothing is known, shape (Q,).
    slopes
        Discriminations, shape (Q, k); abilities have variance 1.
    quiz_covariance
        Covariance of a student's quiz effects, shape (Q, Q).
    guessing
        Probability that a student who does not know an answer guesses it, shape ().
    pattern_mean, pattern_weights
        The ability expected of a student with the answered pattern p (1 answered, 0 not, divided by
        the root of their number) differs from the mean by (p − pattern_mean) @ pattern_weights,
        shapes (Q,) and (Q, k).
    completion
        A pattern with a fifth of the answers hidden, times this, gives the probability that each
        question is answered, shape (Q, Q).
    """

    intercept: FloatArray
    slopes: FloatArray
    quiz_covariance: FloatArray
    guessing: FloatArray
    pattern_mean: FloatArray
    pattern_weights: FloatArray
    completion: FloatArray

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        np.savez(folder / WEIGHTS, **asdict(self))

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        with np.load(folder / WEIGHTS) as weights:
            return Model(**weights)

    def fit_width(self, n_questions: int) -> "Model":
        """Cut or fill up for another number of questions: new students may answer new ones.

        A new question is like a mean one, and independent of the others.
        """
        new = max(0, n_questions - len(self.intercept))

        def fit(array: FloatArray, n_axes: int = 1) -> FloatArray:
            kept = array[(slice(n_questions),) * n_axes]
            return np.pad(kept, [(0, new)] * n_axes + [(0, 0)] * (array.ndim - n_axes))

        intercept = fit(self.intercept)
        intercept[len(self.intercept) :] = self.intercept.mean()
        return Model(
            intercept,
            fit(self.slopes),
            fit(self.quiz_covariance, 2),
            self.guessing,
            fit(self.pattern_mean),
            fit(self.pattern_weights),
            fit(self.completion, 2),
        )


@dataclass(frozen=True)
class Population:
    """How the students who are asked differ from the training students.

    Attributes
    ----------
    log_variance
        Logarithm of the variance of their abilities.
    log_stretch, shift
        Their mean logits are those of the training students, times exp(log_stretch), plus shift.
    """

    log_variance: float = 0.0
    log_stretch: float = 0.0
    shift: float = 0.0


@dataclass(frozen=True)
class _Block:
    """Some students, with the questions that matter for their choices, padded to equal numbers.

    rows: shape (n,), the students.
    candidates, targets: shapes (n, c) and (n, t), questions that may be asked or that are to be
    predicted.
    is_target: shape (n, t), False for padding.
    """

    rows: IntArray
    candidates: IntArray
    targets: IntArray
    is_target: BoolArray


class Examination:
    """What is known of the students who are being asked.

    Parameters
    ----------
    model
        With as many questions as the arrays have columns.
    pattern
        Which answers may be asked or have been, bool, shape (students, questions). All False if
        that is not known.
    """

    def __init__(self, model: Model, pattern: BoolArray) -> None:
        self.model = model
        # P(target) up to a factor; whether targets may be asked shows in the number of gaps.
        gaps = np.where(pattern, 0, pattern.astype(np.float32) @ model.completion)
        gaps = np.where(gaps > _LEAST_PROBABILITY, np.minimum(gaps, 1), 0)
        self._targets_may_be_asked = bool(
            model.completion.any() and gaps.sum() < _SHARE_OF_GAPS * pattern.sum()
        )
        if self._targets_may_be_asked:
            gaps[:] = 0
        has_gaps = gaps.any(axis=1, keepdims=True)
        self._target_weight = np.where(has_gaps, gaps, pattern).astype(np.float32)
        self._blocks = self._make_blocks(pattern)

        answered = (pattern | (gaps > 0.5)).astype(np.float32)
        count = answered.sum(axis=1, keepdims=True)
        relative = np.where(count > 0, answered / np.sqrt(np.maximum(count, 1)), model.pattern_mean)
        ability = (relative - model.pattern_mean) @ model.pattern_weights
        self._expected = model.intercept + ability @ model.slopes.T
        # One entry for each call of `answer`: which students, which questions, right or wrong.
        self._answers: list[tuple[IntArray, IntArray, IntArray]] = []
        self._n_answers = np.zeros(len(pattern), np.int64)
        self._begin(Population())

    def _begin(self, population: Population) -> None:
        """Set means and covariance of the logits to what is known before any answer."""
        self._population = population
        self._mean = self._means(population, self._expected)
        slopes = self._slopes(population)
        self._covariance = slopes @ slopes.T + self.model.quiz_covariance
        self._variance = np.tile(np.diagonal(self._covariance), (len(self._mean), 1))
        # The covariance of a student's logits is this one minus the sum of the outer products of
        # the student's factors, one for each answer; shape (students, answers, questions).
        self._factors = np.zeros((len(self._mean), 0, self._mean.shape[1]), np.float32)

    def _means(self, population: Population, expected: FloatArray) -> FloatArray:
        stretch = np.float32(np.exp(population.log_stretch))
        return stretch * expected + np.float32(population.shift)

    def _slopes(self, population: Population) -> FloatArray:
        return self.model.slopes * np.float32(np.exp(population.log_variance / 2))

    def answer(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        """Learn from at most one answer of each student.

        Parameters
        ----------
        student, question
            Rows and columns, shape (answers,); no student twice.
        is_right
            1 right, 0 wrong, shape (answers,).
        """
        self._answers.append((student, question, is_right))
        self._n_answers[student] += 1
        self._target_weight[student, question] = 0
        if int(self._n_answers.max()) not in _ADAPT_AFTER:
            self._update(student, question, is_right)
            return
        self._begin(self._adapt())
        for earlier in self._answers:
            self._update(*earlier)

    def _update(self, student: IntArray, question: IntArray, is_right: IntArray) -> None:
        slope, curvature, _ = _match_moments(
            self._mean[student, question],
            self._variance[student, question],
            is_right,
            self.model.guessing,
        )
        factors = self._factors[student]
        covariance = self._covariance[question]
        if factors.shape[1]:
            covariance -= (factors[range(len(student)), :, question][:, None] @ factors)[:, 0]
        factor = covariance * np.sqrt(curvature)[:, None]
        self._mean[student] += covariance * slope[:, None]
        self._variance[student] = np.maximum(self._variance[student] - factor**2, 1e-5)
        new = np.zeros((len(self._mean), 1, factor.shape[1]), np.float32)
        new[student, 0] = factor
        self._factors = np.concatenate([self._factors, new], axis=1)

    def _adapt(self) -> Population:
        """Estimate the population from all answers: one Newton step towards the most probable."""
        now = np.array([*asdict(self._population).values()])
        height = self._log_posterior(now)
        above = np.array([self._log_posterior(now + step) for step in np.diag(_STEPS)])
        below = np.array([self._log_posterior(now - step) for step in np.diag(_STEPS)])
        gradient = (above - below) / (2 * _STEPS)
        curvature = np.maximum((2 * height - above - below) / _STEPS**2, _DEVIATIONS**-2.0)
        return Population(*(now + np.clip(gradient / curvature, -2 * _STEPS, 2 * _STEPS)).tolist())

    def _log_posterior(self, parameters: npt.NDArray[np.float64]) -> float:
        """Logarithm of prior times P(answers), up to a constant, of the fields of `Population`."""
        population = Population(*parameters.tolist())
        n_students = len(self._expected)
        question = np.zeros((n_students, len(self._answers)), np.int64)
        for t, (student, asked, _) in enumerate(self._answers):
            question[student, t] = asked
        rows = np.arange(n_students)[:, None]
        mean = self._means(population, self._expected[rows, question])
        slopes = self._slopes(population)[question]
        covariance = slopes @ slopes.transpose(0, 2, 1)
        covariance += self.model.quiz_covariance[question[:, :, None], question[:, None, :]]
        total = -0.5 * float(((parameters / _DEVIATIONS) ** 2).sum())
        for t, (student, _, is_right) in enumerate(self._answers):
            row = covariance[student, t]
            slope, curvature, probability = _match_moments(
                mean[student, t], np.maximum(row[:, t], 1e-5), is_right, self.model.guessing
            )
            mean[student] += row * slope[:, None]
            covariance[student] -= (row * curvature[:, None])[:, :, None] * row[:, None, :]
            total += float(np.log(probability).sum())
        return total

    def probability(self) -> FloatArray:
        """Give every student's probability to answer every question rightly, in their shape."""
        return self.model.guessing + (1 - self.model.guessing) * self._knows()

    def _knows(self) -> FloatArray:
        """E[sigmoid(x)] by MacKay's approximation (1992)."""
        return _sigmoid(self._mean / np.sqrt(1 + np.float32(np.pi / 8) * self._variance))

    def predict(self) -> IntArray:
        """Predict 1 (right) or 0 (wrong), what has been seen as it was."""
        prediction = (self.probability() > 0.5).astype(np.int64)
        for student, question, is_right in self._answers:
            prediction[student, question] = is_right
        return prediction

    def choose(self, askable: BoolArray) -> IntArray:
        """Choose for every student the question that promises most right predictions in the end.

        The promise of question j is the sum over targets q of the variance that its answer takes
        from the logit of q, times the density of that logit where P(right) = ½: to know a logit
        better helps where that may change the prediction. Where targets may be asked, the chance
        that the prediction for j itself would have been wrong is added.

        Parameters
        ----------
        askable
            Shape (students, questions).

        Returns
        -------
        array of int64, shape (students,)
        """
        guessing = self.model.guessing
        knows = self._knows()
        right = guessing + (1 - guessing) * knows
        # Variance of the answer as a measurement of the logit: 1 / Fisher information.
        information = ((1 - guessing) * knows * (1 - knows)) ** 2 / (right * (1 - right))
        noise = 1 / np.maximum(information, 0.005)
        rounds_left = np.clip(N_ROUNDS - self._n_answers, 1, N_ROUNDS)[:, None]
        spread = _RESOLUTION * rounds_left / N_ROUNDS * self._variance + 0.05
        border = np.log((0.5 - guessing) / 0.5)
        density = np.exp(-((self._mean - border) ** 2) / (2 * spread)) / np.sqrt(spread)
        value = (self._target_weight * density).astype(np.float32)
        gain = 1 / (self._variance + noise)
        own = _OWN_UNCERTAINTY * np.minimum(right, 1 - right) * self._targets_may_be_asked

        chosen = np.zeros(len(askable), np.int64)
        # Made once: new memory for every block would cost more time than the arithmetic.
        largest = max((b.candidates.size * b.targets.shape[1] for b in self._blocks), default=0)
        memory = np.empty((2, largest), np.float32)
        memory_of_places = np.empty(largest, np.int64)
        for block in self._blocks:
            rows = block.rows[:, None]
            at = rows, block.candidates
            shape = (*block.candidates.shape, block.targets.shape[1])
            size = block.candidates.size * shape[2]
            covariance, explained = (array[:size].reshape(shape) for array in memory)
            # Places in the flat array: half the time of an index for each axis.
            places = memory_of_places[:size].reshape(shape)
            first = block.candidates * len(self._covariance)
            np.add(first[:, :, None], block.targets[:, None, :], out=places)
            self._covariance.take(places, out=covariance, mode="clip")
            if self._factors.shape[1]:
                factors = self._factors[block.rows]
                of_candidates = np.take_along_axis(factors, block.candidates[:, None], 2)
                of_targets = np.take_along_axis(factors, block.targets[:, None], 2)
                np.matmul(of_candidates.transpose(0, 2, 1), of_targets, out=explained)
                covariance -= explained
            np.square(covariance, out=covariance)
            values = value[rows, block.targets] * block.is_target
            promise = (covariance @ values[:, :, None])[:, :, 0] * gain[at] + own[at]
            best = np.where(askable[at], promise, -np.inf).argmax(axis=1)
            chosen[block.rows] = block.candidates[range(len(best)), best]
        return chosen

    def _make_blocks(self, pattern: BoolArray) -> list[_Block]:
        order = np.argsort(pattern.sum(axis=1), kind="stable")
        blocks = []
        for first in range(0, len(order), _BLOCK):
            rows = order[first : first + _BLOCK]
            is_target = self._target_weight[rows] > 0
            targets = _first_places(is_target)
            blocks.append(
                _Block(
                    rows,
                    _first_places(pattern[rows]),
                    targets,
                    np.take_along_axis(is_target, targets, axis=1),
                )
            )
        return blocks


def _first_places(mask: BoolArray) -> IntArray:
    """Give the columns that are True in each row, filled up with others to the longest row."""
    n = max(1, int(mask.sum(axis=1).max()))
    return np.argsort(~mask, axis=1, kind="stable")[:, :n]


def _match_moments(
    mean: FloatArray, variance: FloatArray, is_right: IntArray, guessing: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Fit a Gaussian to a Gaussian times the likelihood of an answer, by Gauss-Hermite quadrature.

    Returns
    -------
    slope, curvature
        The new mean is mean + variance · slope, the new variance is variance − variance² ·
        curvature. A surprising right answer, which looks guessed, would make the variance larger;
        it is left as it is.
    probability
        Of the answer.
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
