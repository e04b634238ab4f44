"""Task 4: which question to ask next. Every public function here is a strategy.

`compare_strategies.py` plays all of them: to add one, write a function

    def my_strategy(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray

whose docstring begins with one sentence that says what it asks. The page of results shows it.

The arguments are

    posterior   what is known of the students, see `Posterior`
    askable     which questions may be asked, shape (students, questions); at least one in each row
    hidden      probability that the answer is hidden and will have to be predicted, same shape,
                float32. It is 0 for questions that have been asked. Only the ratios between the
                questions of one student count

The strategy returns the column to ask for every student, int64, shape (students,).

The model is that of `item_response/model.py`: P(right) = c + (1 − c) σ(x) with the guessing c and
the logit x = slopes · ability + quiz effect + intercept, which is Gaussian for each student.
"""

import copy
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray

import numpy as np

# Settings of `most_right_predictions`, with the values of item_response/model.py.
_N_ROUNDS = 10
# Share of a logit's variance that ten answers are expected to remove.
_RESOLUTION = 0.7
# The answers of later rounds will change the mean of a logit. The strategy assumes that the change
# has at least this variance.
_MIN_SPREAD = 0.05
# If targets may be asked, a target that is asked need not be predicted any more: its answer is
# known. So the value of a question grows by this number times min(p, 1 − p), for the probability p
# that its answer is right: the probability that the prediction of this answer would be wrong.
_OWN_UNCERTAINTY = 20.0

# Gauss-Hermite quadrature: the mean of f(z), z standard normal, is Σ weight f(node) / Σ weight.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)


class Posterior:
    """The posterior of S students: their logits of Q questions and their k abilities.

    Parameters
    ----------
    known
        The `StudentPosterior` that `strategy_games.start_posterior` returned, updated by all
        answers so far. Its columns are the Q questions and then the k abilities: the logit of an
        ability's column is the ability itself.
    popularity
        How many training students answered each question.
    seed
        A seed for each student, different in every round, shape (S,).
    """

    def __init__(self, known: Any, popularity: IntArray, seed: IntArray) -> None:
        """Separate what `known`, a `StudentPosterior`, says of questions and of abilities.

        Each ability has a column in `known`, like a question whose logit is the ability. So the
        first Q columns belong to the questions, and the next k to the abilities.
        """
        k = known.model.slopes.shape[1]
        q = known.mean.shape[1] - k
        # Mean and variance of the logits, shape (S, Q).
        self.mean: FloatArray = known.mean[:, :q]
        self.variance: FloatArray = known.variance[:, :q]
        # Covariance of a student's logits before any answer, (Q, Q).
        self.prior_covariance: FloatArray = known.covariance[:q, :q]
        # A factor f for each answer, (S, answers, Q). The covariance after the answers is
        # `prior_covariance` minus the sum of f fᵀ over the student's answers.
        self.factors: FloatArray = known.factors[:, :, :q]

        # For each student, the covariance of each ability with all logits and abilities, after the
        # answers: k rows of the covariance matrix, shape (S, k, Q + k).
        ability_factors = known.factors[:, :, q:].transpose(0, 2, 1)
        ability_rows = known.covariance[q:] - ability_factors @ known.factors
        # Mean and covariance of the abilities, (S, k) and (S, k, k). If the students find all
        # questions easier or harder than the training students did, the model adds a shift to the
        # means of all columns. It belongs to the questions only: subtract it from the abilities.
        self.ability_mean: FloatArray = known.mean[:, q:] - np.float32(known.population.shift)
        self.ability_covariance: FloatArray = ability_rows[:, :, q:]
        # Covariance of logits and abilities, (S, Q, k).
        self.cross_covariance: FloatArray = ability_rows[:, :, :q].transpose(0, 2, 1)

        # Discriminations, (Q, k).
        self.slopes: FloatArray = known.model.slopes[:q]
        # Probability that a student who does not know an answer guesses it.
        self.guessing = float(known.model.guessing)
        # How many answers of each student are known, (S,).
        self.n_answers: IntArray = known.n_answers.copy()
        # How many training students answered each question, (Q,).
        self.popularity = np.pad(popularity[:q], (0, max(0, q - len(popularity))))
        # Whether the answers to be predicted (targets) may be asked too. Nobody tells the model: it
        # concludes this from which questions may be asked.
        self.targets_may_be_asked: bool = known.targets_may_be_asked
        # A seed for each student, different in every round, for strategies that choose at random.
        self.seed = seed
        # These arrays share their memory with those of the model. They are read-only, because a
        # strategy that changed them would change the model's predictions.
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
        """Return the covariance of one student's logits of two lists of questions.

        The shape is (len(first), len(second)).
        """
        factors = self.factors[student]
        explained = factors[:, first].T @ factors[:, second]
        return np.asarray(self.prior_covariance[np.ix_(first, second)] - explained)

    def knows(self) -> FloatArray:
        """Return the probability that the student knows the answer, shape (S, Q).

        It is E[σ(x)] over the logit x, by MacKay's approximation (1992).
        """
        return _sigmoid(self.mean / np.sqrt(1 + np.pi / 8 * self.variance))

    def right(self) -> FloatArray:
        """Return P(right): that the student knows the answer or guesses it, shape (S, Q)."""
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

    Let Σ be the covariance of the student's abilities, a the question's slopes, and I the Fisher
    information of its answer about the logit, at the mean logit. After the answer, the inverse of
    the covariance is Σ⁻¹ + I a aᵀ. Its determinant is |Σ⁻¹| (1 + I aᵀ Σ a), so the question with
    the largest I aᵀ Σ a is chosen (Segall 1996; Mulder and van der Linden 2009).
    """
    information = _information(_sigmoid(posterior.mean), posterior.guessing)
    return _largest(information * _ability_variance(posterior), askable)


def kullback_leibler(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer best distinguishes the estimated abilities from others near them.

    For the estimated abilities, the answer is right with the probability p; for other abilities,
    with the probability p'. The Kullback-Leibler divergence of the two outcomes is

        p log(p / p') + (1 − p) log((1 − p) / (1 − p')).

    The question with the largest mean over the other abilities is chosen, where these are drawn
    from the posterior (the index KLP of Chang and Ying 1996). p' depends on them only through the
    logit, slopes · ability + intercept, which is normal: its mean is the logit of the estimated
    abilities. So the mean is an integral over one number, computed by Gauss-Hermite quadrature.
    """
    row, column = np.nonzero(askable)
    # Mean and standard deviation of the logit, as columns.
    mean = posterior.mean[row, column][:, None]
    deviation = np.sqrt(_ability_variance(posterior)[row, column])[:, None]
    guessing = posterior.guessing
    # P(right) for the estimated abilities, and for the logit at each node of the quadrature. The
    # nodes are in units of the standard deviation.
    p = guessing + (1 - guessing) * _sigmoid(mean)
    p_nearby = guessing + (1 - guessing) * _sigmoid(mean + deviation * _NODES)
    divergence = p * np.log(p / p_nearby) + (1 - p) * np.log((1 - p) / (1 - p_nearby))
    value = np.zeros(askable.shape)
    value[row, column] = divergence @ _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
    return _largest(value, askable)


def model_change(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer is expected to move the estimated abilities farthest.

    This is the quality term of MAAT, without its diversity module (Bi et al. 2020): the mean, over
    a right and a wrong answer, of the distance that the mean of the abilities moves.

    Let c be the covariance of the abilities with the question's logit, and m the mean logit. The
    answer y moves the mean of the abilities by c times the derivative of log P(y) with respect to
    m. Times P(y), the distance is ‖c‖ dP(right)/dm for a right as well as for a wrong answer. So
    the expected distance is twice that.
    """
    knows = posterior.knows()
    # dP(right)/dm is this times the constant 1 − guessing, which changes no choice.
    steepness = knows * (1 - knows) / np.sqrt(1 + np.pi / 8 * posterior.variance)
    covariance_length = np.linalg.norm(posterior.cross_covariance, axis=2)
    return _largest(covariance_length * steepness, askable)


def uncertainty(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose own answer is hardest to predict: the largest min(p, 1 − p).

    Uncertainty sampling (Lewis and Gale 1994), as the winning entry of task 4 asked in 2020.
    """
    right = posterior.right()
    return _largest(np.minimum(right, 1 - right), askable)


def eddi(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer tells most about the hidden answers: EDDI's reward.

    The reward is the information that the answer has in common with the hidden answers (Ma et al.
    2019). Every answer is taken as a measurement of its logit with Gaussian noise (`_noise`). The
    hidden answers explain a part of the variance of the answer. The reward is then

        −½ log(1 − explained / total),

    where `total` is the variance of the answer, that of its logit plus its noise, and `explained`
    is C (H + N)⁻¹ Cᵀ. In this formula, C is the covariance of the question's logit with the logits
    of the hidden answers, H the covariance among these logits, and N the diagonal matrix of their
    noises. A hidden answer that may not exist counts less: its noise is divided by the probability
    that the answer is hidden.
    """
    noise = _noise(posterior)
    value = np.zeros(askable.shape)
    for row in range(len(askable)):
        question = np.flatnonzero(askable[row])
        target = np.flatnonzero(hidden[row])
        covariance = posterior.covariance(row, np.concatenate([question, target]), target)
        with_target, among_targets = np.split(covariance, [len(question)])
        target_noise = np.diag(noise[row, target] / hidden[row, target])
        # (H + N)⁻¹ Cᵀ, transposed.
        coefficients = np.linalg.solve(among_targets + target_noise, with_target.T).T
        explained = (with_target * coefficients).sum(axis=1)
        total = posterior.variance[row, question] + noise[row, question]
        # Rounding may bring the share to 1, whose logarithm would be infinite. The factor ½ changes
        # no choice.
        share = np.minimum(explained / total, 1 - 1e-6)
        value[row, question] = -np.log1p(-share)
    return _largest(value, askable)


def most_right_predictions(
    posterior: Posterior, askable: BoolArray, hidden: FloatArray
) -> IntArray:
    """The question after which most predictions of the hidden answers should be right.

    The value of question j is a weighted sum over the hidden answers q,

        Σ weight(q) · covariance(j, q)² / (variance(j) + noise(j)).

    Covariance and variance are those of the logits. The answer to j is taken as a measurement of
    the logit of j with Gaussian noise (`_noise`). The fraction is then the variance that the answer
    removes from the logit of q. The weight says how much that should improve the prediction of q
    (`_prediction_weight`).

    By some rules, j may be one of the answers to be predicted. Once it has been asked, its
    prediction is right. So the probability that it would be wrong otherwise is added.

    This is the choice of `StudentPosterior.select` in item_response/model.py.
    """
    weight = _prediction_weight(posterior, hidden)
    total_variance = posterior.variance + _noise(posterior)
    value = np.zeros(askable.shape)
    for row in range(len(askable)):
        question = np.flatnonzero(askable[row])
        target = np.flatnonzero(weight[row])
        covariance = posterior.covariance(row, question, target)
        value[row, question] = covariance**2 @ weight[row, target] / total_variance[row, question]
    if posterior.targets_may_be_asked:
        right = posterior.right()
        value += _OWN_UNCERTAINTY * np.minimum(right, 1 - right)
    return _largest(value, askable)


def _prediction_weight(posterior: Posterior, hidden: FloatArray) -> FloatArray:
    """Return how much a better known logit should improve the predictions, shape (S, Q).

    A better known logit changes the prediction only if its mean crosses the boundary where
    P(right) = ½. The weight is therefore `hidden` times the density at the boundary of the mean
    logit after the last round. The mean logit is assumed to move until then by a normal variable,
    whose variance (`spread`) is a rule of thumb: a share of the logit's variance, in proportion to
    the rounds left.
    """
    rounds_left = np.clip(_N_ROUNDS - posterior.n_answers, 1, _N_ROUNDS)[:, None]
    spread = _RESOLUTION * rounds_left / _N_ROUNDS * posterior.variance + _MIN_SPREAD
    # P(right) = guessing + (1 − guessing) σ(x) is ½ where exp(x) = (½ − guessing) / ½.
    boundary = np.log((0.5 - posterior.guessing) / 0.5)
    weight = hidden * np.exp(-((posterior.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
    return np.asarray(weight)


# ---- What they share ---------------------------------------------------------------------------


def _largest(value: FloatArray, askable: BoolArray) -> IntArray:
    """Return for each student the column of the askable question with the largest value."""
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
    """Return the noise variance if answers are taken as Gaussian measurements of their logits.

    It is 1 / Fisher information, shape (S, Q).
    """
    information = _information(posterior.knows(), posterior.guessing)
    # An answer that is nearly certain tells almost nothing. The bound keeps its noise finite.
    return 1 / np.maximum(information, 0.005)


def _ability_variance(posterior: Posterior) -> FloatArray:
    """Return the variance of slopes · ability for each student and question, shape (S, Q).

    It is aᵀ Σ a, with the slopes a of the question and the covariance Σ of the abilities.
    """
    # aᵀ Σ of each question. Its product with a is the variance.
    slopes_times_covariance = posterior.slopes @ posterior.ability_covariance
    variance = (slopes_times_covariance * posterior.slopes).sum(axis=2)
    # Rounding may make a variance negative.
    return np.asarray(np.maximum(variance, 0))
