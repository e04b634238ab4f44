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

# Settings of `most_right_predictions`. The values are the same as in item_response/model.py.
_N_ROUNDS = 10
# Share of a logit's variance that ten answers are expected to remove.
_RESOLUTION = 0.7
# The answers of later rounds will move the estimated mean of a logit, by an amount that is not
# known now. The strategy assumes that this amount has at least this variance.
_MIN_SPREAD = 0.05
# By some rules, targets (the answers to be predicted) may be asked. Asking a target makes its
# prediction certain. So the value of asking a question grows by this number times min(p, 1 − p),
# where p is the probability of a right answer: min(p, 1 − p) is the probability that the prediction
# would otherwise be wrong.
_OWN_UNCERTAINTY = 20.0

# Gauss-Hermite quadrature: if z is standard normal, the mean of f(z) is about the weighted mean of
# f(node) over the nodes.
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(11)


class Posterior:
    """The posterior of S students: their logits of Q questions and their k abilities.

    Parameters
    ----------
    known
        The `StudentPosterior` that `strategy_games.start_posterior` returned, updated by all
        answers so far. Its arrays have Q columns for the questions, then k columns for the
        abilities: an ability is treated like the logit of a further question.
    popularity
        How many training students answered each question.
    seed
        A seed for each student, different in every round, shape (S,).
    """

    def __init__(self, known: Any, popularity: IntArray, seed: IntArray) -> None:
        """Separate the columns of `known` that belong to questions from those of abilities.

        `known` is a `StudentPosterior`. Its arrays have Q columns for the questions, then k columns
        for the abilities: an ability is treated like the logit of a further question.
        """
        k = known.model.slopes.shape[1]
        q = known.mean.shape[1] - k
        # Mean and variance of the logits, shape (S, Q).
        self.mean: FloatArray = known.mean[:, :q]
        self.variance: FloatArray = known.variance[:, :q]
        # Covariance of a student's logits before any answer, (Q, Q).
        self.prior_covariance: FloatArray = known.covariance[:q, :q]
        # Every answer of a student reduces the covariance of the student's logits by f fᵀ. These
        # are the vectors f, the *factors*, with an element for each question, shape (S, answers,
        # Q). The covariance after the answers is `prior_covariance` minus the sum of f fᵀ.
        self.factors: FloatArray = known.factors[:, :, :q]

        # For each student, the covariances after the answers of each ability with all logits and
        # all abilities, shape (S, k, Q + k).
        ability_factors = known.factors[:, :, q:].transpose(0, 2, 1)
        ability_rows = known.covariance[q:] - ability_factors @ known.factors
        # Mean and covariance of the abilities, (S, k) and (S, k, k). If all questions are easier or
        # harder for these students than for the training students, the model adds the difference,
        # `shift`, to the means of all columns. It makes sense for logits only, so it is subtracted
        # from the abilities again.
        self.ability_mean: FloatArray = known.mean[:, q:] - np.float32(known.population.shift)
        self.ability_covariance: FloatArray = ability_rows[:, :, q:]
        # Covariance of logits and abilities, (S, Q, k).
        self.cross_covariance: FloatArray = ability_rows[:, :, :q].transpose(0, 2, 1)

        # Discriminations, (Q, k).
        self.slopes: FloatArray = known.model.slopes[:q]
        # Probability that a student who does not know the answer guesses the right one.
        self.guessing = float(known.model.guessing)
        # How many answers of each student are known, (S,).
        self.n_answers: IntArray = known.n_answers.copy()
        # How many training students answered each question, (Q,).
        self.popularity = np.pad(popularity[:q], (0, max(0, q - len(popularity))))
        # Whether the targets, the answers to be predicted, may be asked too. The rules do not tell
        # the model: it concludes this from which questions may be asked.
        self.targets_may_be_asked: bool = known.targets_may_be_asked
        # A seed for each student, different in every round. Strategies that choose at random need
        # it.
        self.seed = seed
        # These arrays share their memory with the arrays of the model. A strategy that changed them
        # would change the predictions of the model, so they are made read-only.
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def take(self, rows: IntArray) -> "Posterior":
        """Return the posterior of some students only; `rows` are the rows of these students."""
        # These arrays have a row for each student. All students share the other attributes.
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
        """Return the covariance between the logits of two lists of questions, for one student.

        The shape is (len(first), len(second)).
        """
        factors = self.factors[student]
        explained = factors[:, first].T @ factors[:, second]
        return np.asarray(self.prior_covariance[np.ix_(first, second)] - explained)

    def knows(self) -> FloatArray:
        """Return the probability that the student knows the answer, shape (S, Q).

        It is the mean of σ(x) over the Gaussian logit x, by MacKay's approximation (1992).
        """
        return _sigmoid(self.mean / np.sqrt(1 + np.pi / 8 * self.variance))

    def right(self) -> FloatArray:
        """Return P(right): the student knows the answer or guesses right. Shape (S, Q)."""
        return self.guessing + (1 - self.guessing) * self.knows()


# ---- The strategies ----------------------------------------------------------------------------


def random(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """A question at random, each of the askable ones equally probable."""
    values = [np.random.default_rng(seed).random(askable.shape[1]) for seed in posterior.seed]
    return _question_with_largest(np.array(values), askable)


def most_popular(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question that most training students answered, whatever the answers so far."""
    return _question_with_largest(np.broadcast_to(posterior.popularity, askable.shape), askable)


def maximum_information(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question with the largest Fisher information about the abilities (D-optimal).

    Let Σ be the covariance of the student's abilities, a the vector of the question's slopes, and i
    the Fisher information of the answer about the logit, at the mean logit. After the answer, the
    inverse of the covariance is Σ⁻¹ + i a aᵀ, whose determinant is |Σ⁻¹| (1 + i aᵀ Σ a). The
    strategy makes this determinant as large as possible: it chooses the question with the largest
    i aᵀ Σ a (Segall 1996; Mulder and van der Linden 2009).
    """
    information = _information(_sigmoid(posterior.mean), posterior.guessing)
    return _question_with_largest(information * _ability_variance(posterior), askable)


def kullback_leibler(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer best distinguishes the estimated abilities from others near them.

    Let p be the probability of a right answer for a student with the estimated abilities, and p'
    the same probability for a student with other abilities. The Kullback-Leibler divergence is

        p log(p / p') + (1 − p) log((1 − p) / (1 − p')).

    The other abilities are drawn from the posterior, and the question with the largest mean
    divergence is chosen (the index KLP of Chang and Ying 1996). p' depends on the other abilities
    only through the logit, slopes · ability + intercept. This logit is normal, and its mean is the
    logit of the estimated abilities. So the mean divergence is an integral over one number,
    computed by Gauss-Hermite quadrature.
    """
    row, column = np.nonzero(askable)
    # Mean and standard deviation of the logit, for each pair of a student and an askable question.
    # Shape (pairs, 1).
    mean = posterior.mean[row, column][:, None]
    deviation = np.sqrt(_ability_variance(posterior)[row, column])[:, None]
    guessing = posterior.guessing
    # P(right) for the estimated abilities, shape (pairs, 1), and for the other abilities, shape
    # (pairs, nodes). Each node of the quadrature is the distance of a logit from its mean, in
    # standard deviations.
    p = guessing + (1 - guessing) * _sigmoid(mean)
    p_nearby = guessing + (1 - guessing) * _sigmoid(mean + deviation * _NODES)
    divergence = p * np.log(p / p_nearby) + (1 - p) * np.log((1 - p) / (1 - p_nearby))
    value = np.zeros(askable.shape)
    value[row, column] = divergence @ _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
    return _question_with_largest(value, askable)


def model_change(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer is expected to move the estimated abilities farthest.

    This is the quality term of MAAT, without its diversity module (Bi et al. 2020): how far the
    mean of the abilities moves, averaged over a right and a wrong answer.

    Let c be the covariance of the abilities with the question's logit, and m the mean logit. An
    answer y moves the mean of the abilities by c · d log P(y) / dm. The length of this move,
    multiplied by the probability P(y), is ‖c‖ · |dP(y) / dm|. It is the same for a right and a
    wrong answer, because P(wrong) = 1 − P(right). So the expected length is 2 ‖c‖ · dP(right) / dm.
    """
    knows = posterior.knows()
    # With the mean logit m, dP(right) / dm is `steepness` times (1 − guessing). The expected length
    # of the move has this factor and the factor 2. Both are left out, because they are the same for
    # all questions.
    steepness = knows * (1 - knows) / np.sqrt(1 + np.pi / 8 * posterior.variance)
    covariance_length = np.linalg.norm(posterior.cross_covariance, axis=2)
    return _question_with_largest(covariance_length * steepness, askable)


def uncertainty(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose own answer is hardest to predict: the largest min(p, 1 − p).

    p is the probability of a right answer. This is uncertainty sampling (Lewis and Gale 1994). The
    winning entry of task 4 in 2020 chose its questions in this way.
    """
    right = posterior.right()
    return _question_with_largest(np.minimum(right, 1 - right), askable)


def eddi(posterior: Posterior, askable: BoolArray, hidden: FloatArray) -> IntArray:
    """The question whose answer tells most about the hidden answers: EDDI's reward.

    The reward is the information that the answer has in common with the hidden answers (Ma et al.
    2019). Every answer is treated as a measurement of its logit with Gaussian noise (`_noise`). The
    hidden answers explain a part of the variance of the answer. The reward is then

        −½ log(1 − explained / total),

    where `total` is the variance of the answer (the variance of its logit plus the variance of its
    noise), and `explained` is C (H + N)⁻¹ Cᵀ. C is the covariance of the question's logit with the
    logits of the hidden answers. H is the covariance matrix of these logits. N is the diagonal
    matrix of the noise variances of the hidden answers. The model only estimates which answers are
    hidden. An improbable hidden answer counts less: its noise variance is divided by the
    probability that the answer is hidden.
    """
    noise = _noise(posterior)
    value = np.zeros(askable.shape)
    for row in range(len(askable)):
        question = np.flatnonzero(askable[row])
        target = np.flatnonzero(hidden[row])
        # The first rows of `covariance` belong to the askable questions, the other rows to the
        # hidden answers. In the formula of the docstring, C is a row of `with_target`, H is
        # `among_targets`, and N is `target_noise`.
        covariance = posterior.covariance(row, np.concatenate([question, target]), target)
        with_target = covariance[: len(question)]
        among_targets = covariance[len(question) :]
        target_noise = np.diag(noise[row, target] / hidden[row, target])
        # C (H + N)⁻¹ of all askable questions, a row for each. `solve` returns the transpose:
        # (H + N)⁻¹ Cᵀ.
        coefficients = np.linalg.solve(among_targets + target_noise, with_target.T).T
        explained = (with_target * coefficients).sum(axis=1)
        total = posterior.variance[row, question] + noise[row, question]
        # Rounding may make the share 1. Then log(1 − share) in the reward would be infinite, so the
        # share is limited. The factor ½ of the reward is left out, because it is the same for all
        # questions.
        share = np.minimum(explained / total, 1 - 1e-6)
        value[row, question] = -np.log1p(-share)
    return _question_with_largest(value, askable)


def most_right_predictions(
    posterior: Posterior, askable: BoolArray, hidden: FloatArray
) -> IntArray:
    """The question after which most predictions of the hidden answers should be right.

    The value of question j is a weighted sum over the hidden answers q,

        Σ weight(q) · covariance(j, q)² / (variance(j) + noise(j)).

    Covariances and variances are those of the logits. The answer to j is treated as a measurement
    of the logit of j with Gaussian noise (`_noise`). The fraction is the variance that the answer
    removes from the logit of q. The weight says how much a better known logit of q should improve
    the predictions (`_prediction_weight`).

    By some rules, hidden answers may be asked, so j may be one of them. Asking j makes the
    prediction for j certain. So the probability that this prediction would otherwise be wrong is
    added, times `_OWN_UNCERTAINTY`.

    `StudentPosterior.select` in item_response/model.py makes the same choice.
    """
    # An answer that is certainly not hidden has the weight 0.
    weight = _prediction_weight(posterior, hidden)
    total_variance = posterior.variance + _noise(posterior)
    value = np.zeros(askable.shape)
    for row in range(len(askable)):
        question = np.flatnonzero(askable[row])
        target = np.flatnonzero(weight[row])
        covariance = posterior.covariance(row, question, target)
        weighted_sum = covariance**2 @ weight[row, target]
        value[row, question] = weighted_sum / total_variance[row, question]
    if posterior.targets_may_be_asked:
        right = posterior.right()
        value += _OWN_UNCERTAINTY * np.minimum(right, 1 - right)
    return _question_with_largest(value, askable)


def _prediction_weight(posterior: Posterior, hidden: FloatArray) -> FloatArray:
    """Return how much a better known logit should improve the predictions, shape (S, Q).

    To know a logit better helps only if its mean then crosses the boundary where P(right) = ½, so
    that the prediction changes. The answers of the rounds left will move this mean. After the last
    round, it is assumed to be normal around its present value, with a variance (`spread`) by a rule
    of thumb: a share of the logit's variance, in proportion to the rounds left. The weight is the
    density of this normal distribution at the boundary, times `hidden`, the probability that the
    answer must be predicted.
    """
    rounds_left = np.clip(_N_ROUNDS - posterior.n_answers, 1, _N_ROUNDS)[:, None]
    spread = _RESOLUTION * rounds_left / _N_ROUNDS * posterior.variance + _MIN_SPREAD
    # P(right) = guessing + (1 − guessing) σ(x) is ½ if the odds of knowing the answer, exp(x), are
    # (½ − guessing) / ½.
    boundary = np.log((0.5 - posterior.guessing) / 0.5)
    weight = hidden * np.exp(-((posterior.mean - boundary) ** 2) / (2 * spread)) / np.sqrt(spread)
    return np.asarray(weight)


# ---- What the strategies share -----------------------------------------------------------------


def _question_with_largest(value: FloatArray, askable: BoolArray) -> IntArray:
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
    """Return the variance of the noise, if answers are treated as measurements of their logits.

    The variance is 1 divided by the Fisher information of the answer about its logit. The shape is
    (S, Q).
    """
    information = _information(posterior.knows(), posterior.guessing)
    # An answer that is nearly certain has almost no information. The bound keeps its noise finite.
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
