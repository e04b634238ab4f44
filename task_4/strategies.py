"""Task 4: which question to ask next. Every public function here is a strategy.

`compare_strategies.py` plays all of them: to add one, write a function

    def my_strategy(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray

whose docstring begins with one sentence that says what it asks. The page of results shows it.

The arguments are

    posterior   what is known of the students, see `Posterior`
    askable     which questions may be asked, shape (students, questions); at least one in each row
    hidden      probability that an answer will have to be predicted, same shape, float32; 0 for
                questions that have been asked. It is not normalised: only the ratios within a
                student count

The strategy returns the column to ask for every student, int64, shape (students,).

The model is that of `item_response/model.py`: P(right) = c + (1 − c) σ(x) with the guessing c and
the logit x = slopes · ability + quiz effect + intercept, which is Gaussian for each student.
"""

import copy
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np

# Settings of `most_right_predictions`, as in item_response/model.py.
_N_ROUNDS = 10
_RESOLUTION = 0.7
_MIN_SPREAD = 0.05
_OWN_UNCERTAINTY = 20.0

# Gauss-Hermite quadrature: the mean of f(z), z standard normal, is Σ weight f(node) / Σ weight.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)


class Posterior:
    """What is known of S students: their logits of Q questions and their k abilities.

    `known` is the `StudentPosterior` that `strategy_games.start_posterior` returned, updated by all
    answers so far. Its last k columns are the abilities.
    """

    def __init__(self, known: Any, popularity: IntArray, seed: IntArray) -> None:
        k = known.model.slopes.shape[1]
        q = known.mean.shape[1] - k
        # Covariance of the abilities with logits and abilities, (S, k, Q + k).
        of_abilities = known.factors[:, :, q:].transpose(0, 2, 1)
        covariance = known.covariance[q:] - of_abilities @ known.factors
        # Moments of the logits, shape (S, Q).
        self.mean: FloatArray = known.mean[:, :q]
        self.variance: FloatArray = known.variance[:, :q]
        # Covariance of a student's logits before any answer, (Q, Q).
        self.prior_covariance: FloatArray = known.covariance[:q, :q]
        # A factor for each answer, (S, answers, Q). The covariance after the answers is the prior
        # one minus the sum of the outer products of the student's factors.
        self.factors: FloatArray = known.factors[:, :, :q]
        # Moments of the abilities, (S, k) and (S, k, k). The model adds the population's shift to
        # every column, also to those of the abilities, so it is taken off.
        self.ability_mean: FloatArray = known.mean[:, q:] - np.float32(known.population.shift)
        self.ability_covariance: FloatArray = covariance[:, :, q:]
        # Covariance of logits and abilities, (S, Q, k).
        self.cross_covariance: FloatArray = covariance[:, :, :q].transpose(0, 2, 1)
        self.slopes: FloatArray = known.model.slopes[:q]  # discriminations, (Q, k)
        self.guessing = float(known.model.guessing)  # probability to guess an unknown answer
        self.n_answers: IntArray = known.n_answers.copy()  # of each student, (S,)
        # How many training students answered each question, (Q,).
        self.popularity = np.pad(popularity[:q], (0, max(0, q - len(popularity))))
        # Whether targets may be asked, as far as the model can tell.
        self.targets_may_be_asked: bool = known.targets_may_be_asked
        # A seed for each student, different in every round, for strategies that draw, (S,).
        self.seed = seed
        # A strategy that changed the arrays in place would change the predictions.
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def take(self, rows: IntArray) -> "Posterior":
        """Return the posterior of some students only."""
        per_student = (
            "mean",
            "variance",
            "factors",
            "ability_mean",
            "ability_covariance",
            "cross_covariance",
            "n_answers",
            "seed",
        )
        taken = copy.copy(self)
        for name in per_student:
            setattr(taken, name, getattr(self, name)[rows])
        return taken

    def covariance(self, student: int, first: IntArray, second: IntArray) -> FloatArray:
        """Return the covariance of a student's logits, shape (len(first), len(second))."""
        factors = self.factors[student]
        explained = factors[:, first].T @ factors[:, second]
        return np.asarray(self.prior_covariance[np.ix_(first, second)] - explained)

    def knows(self) -> FloatArray:
        """Return E[σ(x)] by MacKay's approximation (1992), shape (S, Q)."""
        return _sigmoid(self.mean / np.sqrt(1 + np.pi / 8 * self.variance))

    def right(self) -> FloatArray:
        """Return P(right), shape (S, Q)."""
        return self.guessing + (1 - self.guessing) * self.knows()


# ---- The strategies ----------------------------------------------------------------------------


def random(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """A question at random, each of the askable ones equally probable."""
    keys = [np.random.default_rng(seed).random(askable.shape[1]) for seed in posterior.seed]
    return _largest(np.array(keys), askable)


def most_popular(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question that most training students answered, whatever the answers so far."""
    return _largest(np.broadcast_to(posterior.popularity, askable.shape), askable)


def maximum_information(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question with the largest Fisher information about the abilities (D-optimal).

    It maximises |Σ⁻¹ + I(x̂) a aᵀ| = |Σ⁻¹| (1 + I(x̂) aᵀ Σ a), Σ the covariance of abilities, a the
    slopes, I(x̂) the information at the mean logit (Segall 1996; Mulder and van der Linden 2009).
    """
    information = _information(_sigmoid(posterior.mean), posterior.guessing)
    return _largest(information * _ability_variance(posterior), askable)


def kullback_leibler(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer best distinguishes the estimated abilities from others near them.

    It maximises KL(x) = Σ_y P(y | x̂) log [P(y | x̂) / P(y | x)], averaged over the posterior of the
    logit, x ~ N(x̂, aᵀ Σ a): x̂ is the mean logit, a the slopes, Σ the covariance of the abilities
    (Chang and Ying 1996, the index KLP). The abilities act only through x, so one dimension is
    enough.
    """
    row, column = np.nonzero(askable)
    mean = posterior.mean[row, column][:, None]
    spread = np.sqrt(_ability_variance(posterior)[row, column])[:, None]
    guessing = posterior.guessing
    # P(right) for the estimated abilities, and for abilities near them.
    p = guessing + (1 - guessing) * _sigmoid(mean)
    p_nearby = guessing + (1 - guessing) * _sigmoid(mean + spread * _NODES)
    information = p * np.log(p / p_nearby) + (1 - p) * np.log((1 - p) / (1 - p_nearby))
    value = np.zeros(askable.shape)
    value[row, column] = information @ _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
    return _largest(value, askable)


def model_change(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer is expected to move the estimated abilities farthest.

    The quality term of MAAT, without its diversity module (Bi et al. 2020), is Σ_y P(y)
    ‖θ̂(y) − θ̂‖. An answer moves the abilities by cov(θ, x) ∂ log P(y) / ∂x̂, so the sum is
    2 ‖cov(θ, x)‖ ∂P(right) / ∂x̂.
    """
    knows = posterior.knows()
    # ∂P(right) / ∂x̂, up to the constant factor 1 − c.
    steepness = knows * (1 - knows) / np.sqrt(1 + np.pi / 8 * posterior.variance)
    return _largest(np.linalg.norm(posterior.cross_covariance, axis=2) * steepness, askable)


def uncertainty(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose own answer is hardest to predict: the largest min(p, 1 − p).

    Uncertainty sampling (Lewis and Gale 1994), as the winning entry of task 4 asked in 2020.
    """
    right = posterior.right()
    return _largest(np.minimum(right, 1 - right), askable)


def eddi(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer tells most about the hidden answers: EDDI's reward.

    The reward of question j is I(y_j; x) − E[I(y_j; x | y_h)] (Ma et al. 2019) with latent logits x
    and hidden answers y_h. Answers are taken as Gaussian measurements of their logits, with the
    noise n = 1 / information. N_h is the diagonal matrix of the noises of the hidden answers, each
    divided by the probability that the answer is hidden. The reward is then
    ½ log [(v_j + n_j) / (v_j − C_jh (C_hh + N_h)⁻¹ C_hj + n_j)] with (co)variances v and C.
    """
    noise = _noise(posterior)
    value = np.zeros(askable.shape)
    for row in range(len(askable)):
        question, target = np.flatnonzero(askable[row]), np.flatnonzero(hidden[row])
        covariance = posterior.covariance(row, np.concatenate([question, target]), target)
        c_jh, c_hh = np.split(covariance, [len(question)])
        with_noise = c_hh + np.diag(noise[row, target] / hidden[row, target])
        explained = (c_jh * np.linalg.solve(with_noise, c_jh.T).T).sum(axis=1)
        total = posterior.variance[row, question] + noise[row, question]
        value[row, question] = -np.log1p(-np.minimum(explained / total, 1 - 1e-6))
    return _largest(value, askable)


def most_right_predictions(
    posterior: Posterior, askable: BoolArray, hidden: FloatArray
) -> IntArray:
    """The question after which most predictions of the hidden answers should be right.

    It maximises Σ_q weight(q) cov(j, q)² / (v_j + n_j), as `StudentPosterior.select` of
    `item_response/` explains. Here weight(q) is the probability that q is hidden, times the density
    of its mean logit after the last round where P(right) = ½. If targets may be asked, the chance
    of a wrong prediction of j is added.
    """
    rounds_left = np.clip(_N_ROUNDS - posterior.n_answers, 1, _N_ROUNDS)[:, None]
    spread = _RESOLUTION * rounds_left / _N_ROUNDS * posterior.variance + _MIN_SPREAD
    boundary = np.log((0.5 - posterior.guessing) / 0.5)
    weight = hidden * np.exp(-((posterior.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
    right, total = posterior.right(), posterior.variance + _noise(posterior)
    value = np.zeros(askable.shape)
    for row in range(len(askable)):
        question, target = np.flatnonzero(askable[row]), np.flatnonzero(weight[row])
        covariance = posterior.covariance(row, question, target)
        value[row, question] = covariance**2 @ weight[row, target] / total[row, question]
    if posterior.targets_may_be_asked:
        value += _OWN_UNCERTAINTY * np.minimum(right, 1 - right)
    return _largest(value, askable)


# ---- What they share ---------------------------------------------------------------------------


def _largest(value: FloatArray, askable: BoolArray) -> IntArray:
    """Return each student's askable question of the largest value."""
    return np.asarray(np.where(askable, value, -np.inf).argmax(axis=1))


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _information(knows: FloatArray, guessing: float) -> FloatArray:
    """Return the Fisher information of an answer about its logit x (Birnbaum 1968).

    `knows` is σ(x).
    """
    right = guessing + (1 - guessing) * knows
    return np.asarray(((1 - guessing) * knows * (1 - knows)) ** 2 / (right * (1 - right)))


def _noise(posterior: Posterior) -> FloatArray:
    """Return the variance of the answers as measurements of their logits, shape (S, Q)."""
    return 1 / np.maximum(_information(posterior.knows(), posterior.guessing), 0.005)


def _ability_variance(posterior: Posterior) -> FloatArray:
    """Return the variance of slopes · ability, aᵀ Σ a, shape (S, Q)."""
    half = posterior.slopes @ posterior.ability_covariance
    return np.asarray(np.maximum((half * posterior.slopes).sum(axis=2), 0))
