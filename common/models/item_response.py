r"""Multidimensional item response theory, logistic with guessing, fitted in closed form.

A student has a latent vector `ability` (k numbers), a question k `slopes` (discriminations) and an
intercept (easiness), and

    P(right) = guessing + (1 − guessing) sigmoid(slopes · ability + intercept).

Abilities are N(0, I). Questions come in kinds; (slopes, intercept) are N(mean, covariance) over the
questions of a kind. How many questions are of which kind, and each kind's mean and covariance, are
estimated from the same answers (empirical Bayes), so that nothing has to be tuned: they decide how
far a question with few answers shrinks towards others of its kind, and a dimension that the answers
do not support shrinks away. Only the guessing is given. With k = 1 and no guessing this is the
two-parameter logistic model, with the student's and the question's bias as ability and intercept;
with more dimensions it is logistic matrix factorisation.

A Gaussian times the likelihood of the answers is no Gaussian; but it is if each answer's likelihood
is taken as exp(κψ − wψ²/2) with ψ the logit. Both algorithms here do that, and solve the same
weighted least squares for students and for questions in turn:

* `fit` (variational): the Gaussian closest to the posterior has for w the expected curvature of the
  log likelihood, and κ = expected slope + w E[ψ] (Opper and Archambeau 2009, "The variational
  Gaussian approximation revisited"). The curvature is that of an answer not seen yet, Fisher's
  information, which is never negative.
* `sample` (Gibbs): whether a right answer was known or guessed is drawn, κ = ½ if known and −½
  otherwise, and w is drawn from the Pólya-Gamma distribution PG(1, ψ) (Polson, Scott and Windle
  2013, "Bayesian inference for logistic models using Pólya-Gamma latent variables").

Answers lie sorted by student in compressed sparse rows, students in random order. One pass over
them, in blocks that fit the processor's cache and in several threads, updates every student and
sums up what the questions need; nothing of the size students × questions is ever made.
"""

import itertools
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.cluster import KMeans

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
Reduce = Callable[[FloatArray], FloatArray]


def _count_threads() -> int:
    """Take as many as BLAS is given, so that processes that share a machine do not collide."""
    # May be a list, one number for each level of nesting.
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(given) if given.isdecimal() and int(given) else min(os.cpu_count() or 1, 8)


N_THREADS = _count_threads()
# Answers per task of a thread, at most and at least, and how many tasks there are in between. They
# do not depend on the number of threads, so that neither do the results.
_CHUNK, _SMALLEST_CHUNK, _N_CHUNKS = 1 << 19, 1 << 14, 8
# Answers per block whose temporary arrays stay in the cache.
_BLOCK = 1 << 13
# The start is found in so many steps of the fit in one dimension, and then in rounds of subspace
# iteration, each a polynomial of this degree, with so many more dimensions than asked for. The
# first of these rounds take only the first so many answers, the last ones take all.
_START_ANSWERS = 4_000_000
_START_STEPS, _OVERSAMPLING = 3, 10
_START_ROUNDS, _LAST_START_ROUNDS, _START_DEGREE = 2, 2, 5
# Residuals of a student or question with few answers count less: as if there were so many more.
_START_SHRINKAGE = 10
# From this step on questions may be of different kinds: at most so many, one for so many questions.
_KINDS_FROM, _MOST_KINDS, _QUESTIONS_PER_KIND = 3, 10, 100
# Weight, in questions, of the spread of all questions in that of a kind.
_WEIGHT_OF_ALL = 100.0
# The information of an answer is taken as at least this, or a few steps could overshoot.
_LEAST_INFORMATION = 0.01
# Slope and curvature of the log likelihood hardly change beyond.
_FARTHEST_LOGIT = np.float32(40)
# Terms of the infinite sum in a Pólya-Gamma draw; the rest is replaced by its mean, which leaves
# out less than 0.1 % of the variance.
_POLYA_GAMMA_TERMS = 4
# Weight, in questions, of the prior guess about the spread of slopes and intercepts.
_PRIOR_QUESTIONS = 3.0
_PRIOR_SLOPE_VARIANCE = 0.1
# Root mean square of the slopes in each dimension beyond the first, and their prior variance.
_START_SLOPE, _START_VARIANCE = 0.4, 0.1
# Standard deviation of what is added to the slopes before the first draw.
_PUSH = 0.2


@dataclass(frozen=True)
class Observations:
    """Right and wrong answers in compressed sparse rows, one row for each student.

    Attributes
    ----------
    start
        Shape (students + 1,), int64: the answers of student i are start[i] to start[i + 1].
    question
        Shape (answers,), int32, from 0.
    correct
        Shape (answers,), int8: 1 right, 0 wrong.
    used
        Shape (answers,), bool: False for an answer that is to be left out; None uses all.
    n_questions
        Number of questions, answered or not.
    """

    start: npt.NDArray[np.int64]
    question: npt.NDArray[np.int32]
    correct: npt.NDArray[np.int8]
    used: npt.NDArray[np.bool_] | None
    n_questions: int

    @property
    def n_students(self) -> int:
        """Number of students, with or without answers."""
        return len(self.start) - 1


@dataclass(frozen=True)
class Gaussians:
    """Independent Gaussian distributions, one for each student or question.

    Attributes
    ----------
    mean
        Shape (n, d), float32. Of a student: ability, d = k. Of a question: slopes, then intercept,
        d = k + 1.
    covariance
        Shape (n, d, d), float32.
    """

    mean: FloatArray
    covariance: FloatArray

    def __len__(self) -> int:
        """Count the distributions."""
        return len(self.mean)


@dataclass(frozen=True)
class Fit:
    """What is known about students and questions.

    Attributes
    ----------
    students
        Posterior of every student's ability, k dimensions.
    questions
        Posterior of every question's slopes and intercept, k + 1 dimensions.
    prior
        Distribution of slopes and intercept over the questions of each kind; every group has
        equally many kinds, which follow one another.
    kind
        Probability that a question is of each kind, shape (questions, kinds), float32.
    """

    students: Gaussians
    questions: Gaussians
    prior: Gaussians
    kind: FloatArray


@dataclass(frozen=True)
class Draw:
    """One draw from the joint posterior.

    Attributes
    ----------
    ability
        Shape (students, k), float32.
    question
        Slopes, then intercept, shape (questions, k + 1), float64.
    prior
        The distribution over the questions of each group, drawn as well; kinds are left aside.
    """

    ability: FloatArray
    question: FloatArray
    prior: Gaussians


def sort_by_student(
    student: IntArray, question: IntArray, correct: IntArray, n_students: int, n_questions: int
) -> tuple[Observations, npt.NDArray[np.int32]]:
    """Sort answers by student.

    Parameters
    ----------
    student, question
        Shape (answers,), integers from 0.
    correct
        Shape (answers,), 1 right, 0 wrong.
    n_students, n_questions
        How many there are, with or without answers.

    Returns
    -------
    observations : Observations
    order : array of int32, shape (answers,)
        The row that each sorted answer came from.
    """
    n = len(student)
    # A sparse matrix with one answer in each column: its conversion is a stable counting sort,
    # several times faster than argsort.
    matrix = scipy.sparse.coo_matrix(
        (np.ones(n, np.int8), (student.astype(np.int32), np.arange(n, dtype=np.int32))),
        shape=(n_students, max(n, 1)),
    ).tocsr()
    order = matrix.indices.astype(np.int32, copy=False)
    return (
        Observations(
            start=matrix.indptr.astype(np.int64),
            question=question[order].astype(np.int32, copy=False),
            correct=correct[order].astype(np.int8, copy=False),
            used=None,
            n_questions=n_questions,
        ),
        order,
    )


def fit(
    observations: Observations,
    n_dimensions: int,
    *,
    group: IntArray | None = None,
    guessing: FloatArray | float = 0.0,
    seed: int = 0,
    start: Fit | None = None,
    first_step: int = 0,
    reduce: Reduce | None = None,
) -> Iterator[Fit]:
    """Fit by variational Bayes, endlessly: each step improves the fit; the caller stops.

    Parameters
    ----------
    observations
        The answers. The start is found on the first students: shuffle them.
    n_dimensions
        Number k of latent dimensions, at least 1.
    group
        Shape (questions,), integers from 0: questions of one group share a prior. Default: all do.
    guessing
        Least probability of a right answer, 0 to below 1, one number or one for each question.
    seed
        Seed of the start.
    start, first_step
        Go on from this state instead, reached after so many steps.
    reduce
        Sums an array over the processes that share the work, each with its own students.

    Yields
    ------
    Fit
        After each step.
    """
    reduce = reduce or _alone
    group = _one_group(observations) if group is None else group
    answered = reduce(_count_answers(observations)) > 0
    guess = np.asarray(guessing, np.float32)
    state = start or _find_start(observations, n_dimensions, group, seed, reduce)
    for step in itertools.count(first_step):
        if step == _KINDS_FROM:
            state = _split_into_kinds(state, group, answered, seed)
        state = _step(observations, state, group, guess, answered, reduce)
        yield state


def student_posterior(
    observations: Observations,
    questions: Gaussians,
    *,
    guessing: FloatArray | float = 0.0,
    n_steps: int = 10,
) -> Gaussians:
    """Give the posterior of students' abilities when the questions are known already.

    Parameters
    ----------
    observations
        The students' answers.
    questions
        From a fit with other students.
    guessing
        As in `fit`.
    n_steps
        Steps of the variational approximation; ten are plenty.

    Returns
    -------
    Gaussians
        Of `observations.n_students` students; N(0, I) without answers.
    """
    k = questions.mean.shape[1] - 1
    students = standard_normal(observations.n_students, k)
    packed = _pack_questions(questions)
    guess = np.asarray(guessing, np.float32)
    for _ in range(n_steps):
        students = _update(observations, students, packed, guess, None)[0]
    return students


def standard_normal(n: int, k: int) -> Gaussians:
    """Give n standard Gaussians of k dimensions: students without answers."""
    identity = np.broadcast_to(np.eye(k, dtype=np.float32), (n, k, k)).copy()
    return Gaussians(np.zeros((n, k), np.float32), identity)


def logit_moments(
    students: Gaussians, questions: Gaussians, student: IntArray, question: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Give mean and variance of the logit slopes · ability + intercept for pairs.

    Parameters
    ----------
    students, questions
        Posteriors, taken as independent.
    student, question
        Shape (pairs,): places in `students` and `questions`.

    Returns
    -------
    mean, variance : array of float32, shape (pairs,)
    """
    packed_students, packed = _pack_students(students), _pack_questions(questions)
    mean, variance = np.empty((2, len(student)), np.float32)

    def work(rows: slice) -> None:
        parts = mean[rows], variance[rows]
        for block, m, v in _block_moments(packed_students, packed, student[rows], question[rows]):
            parts[0][block], parts[1][block] = m, v

    _for_chunks(work, len(student))
    return mean, variance


def logits(
    ability: FloatArray, questions: FloatArray, student: IntArray, question: IntArray
) -> FloatArray:
    """Give the logits slopes · ability + intercept of pairs.

    Parameters
    ----------
    ability
        Shape (students, k).
    questions
        Slopes, then intercept, shape (questions, k + 1).
    student, question
        Shape (pairs,): places in `ability` and `questions`.
    """
    result = np.empty(len(student), np.float32)
    a, z = _with_one(ability), questions.astype(np.float32, order="C", copy=False)

    def work(rows: slice) -> None:
        part = result[rows]
        for block, x in _products(a, z, student[rows], question[rows]):
            part[block] = x

    _for_chunks(work, len(student))
    return result


def probability(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Give E[sigmoid(x)] for Gaussian x by MacKay's approximation.

    Source: MacKay (1992), "The evidence framework applied to classification networks".

    Parameters
    ----------
    mean, variance
        Moments of the logit x, equal shapes.
    """
    scaled = mean / np.sqrt(1 + np.float32(math.pi / 8) * variance)
    return np.asarray(sigmoid(scaled), np.float32)


def sigmoid(x: FloatArray) -> FloatArray:
    """Give 1 / (1 + exp(−x)) without overflow."""
    return np.asarray(np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x)))


def sample(
    observations: Observations,
    start: Fit,
    *,
    group: IntArray | None = None,
    guessing: FloatArray | float = 0.0,
    seed: int = 0,
    first_sweep: int = 0,
    rank: int = 0,
    reduce: Reduce | None = None,
) -> Iterator["Draw"]:
    """Draw from the exact posterior by Gibbs sampling, endlessly; the caller stops.

    The variational fit takes students and questions as independent and so trusts the dimensions
    beyond the first too little; where answers are few, an average over samples predicts better.
    Each costs a pass.

    Parameters
    ----------
    observations, group, guessing, reduce
        As in `fit`.
    start
        From `fit`. The first draws still remember it: leave them out. To go on after a draw, give
        it as the means and the prior here, and `first_sweep`.
    seed
        Same seed, same draws.
    first_sweep
        Number of the first draw.
    rank
        Number of this process among those that share the work.

    Yields
    ------
    Draw
        One after each sweep over students and questions.
    """
    reduce = reduce or _alone
    group = _one_group(observations) if group is None else group
    answered = reduce(_count_answers(observations)) > 0
    n_chunks = len(_chunks(observations))
    k = start.students.mean.shape[1]
    ability, z = start.students.mean, start.questions.mean.astype(np.float64)
    # The first kind of every group, in case that a group has no answers.
    first = slice(None, None, len(start.prior) // _count_groups(group))
    prior = Gaussians(start.prior.mean[first], start.prior.covariance[first])
    kind, guess = _one_kind(group), np.asarray(guessing, np.float32)
    if first_sweep == 0:
        # Dimensions that the variational fit switched off need a push to be considered again.
        push = np.random.default_rng(seed).standard_normal((len(z), k - 1))
        z[:, 1:k] += _PUSH * push * (group == 0)[:, None]
    no_variance = np.zeros((len(z), k + 1, k + 1), np.float32)
    for sweep in itertools.count(first_sweep):
        # Every process draws the same questions, and other students.
        rng = np.random.default_rng([seed, sweep])
        rngs = [np.random.default_rng([seed, sweep, rank, c]) for c in range(n_chunks)]
        prior = _draw_prior(z, group, answered, prior, rng)
        students, sums = _update(
            observations,
            Gaussians(ability, np.zeros((len(ability), 0, 0), np.float32)),
            _pack_questions(Gaussians(z.astype(np.float32), no_variance)),
            guess,
            rngs,
        )
        ability = students.mean
        z = _draw(*_question_equations(reduce(sums), prior, kind), rng)
        yield Draw(ability, z, prior)


# ---- One step of the variational fit -----------------------------------------------------------


def _step(
    observations: Observations,
    state: Fit,
    group: IntArray,
    guessing: FloatArray,
    answered: npt.NDArray[np.bool_],
    reduce: Reduce,
) -> Fit:
    """Update weights, then students, then questions, then their kinds and the priors of these."""
    packed = _pack_questions(state.questions)
    students, sums = _update(observations, state.students, packed, guessing, None)
    has_answers = np.diff(observations.start) > 0
    precision, linear = _question_equations(reduce(sums), state.prior, state.kind)
    covariance = _invert(precision)
    mean = np.einsum("nij,nj->ni", covariance, linear)
    kind = _assign_kinds(mean, covariance, state, group, answered)
    prior = _estimate_prior(mean, covariance, kind, group, answered, state.prior)
    new = Fit(
        students,
        Gaussians(mean.astype(np.float32), covariance.astype(np.float32)),
        prior,
        kind,
    )
    return _standardise(new, np.flatnonzero(has_answers), reduce)


def _standardise(state: Fit, students: IntArray, reduce: Reduce) -> Fit:
    """Scale the latent space so that abilities have mean 0 and covariance I over the students.

    No prediction changes, but the fit needs far fewer steps (parameter expansion: Liu, Rubin and
    Wu 1998, "Parameter expansion to accelerate EM").
    """
    k = state.students.mean.shape[1]
    m = state.students.mean[students].astype(np.float64)
    second = m.T @ m + state.students.covariance[students].sum(axis=0, dtype=np.float64)
    sums = reduce(np.concatenate([[float(len(m))], m.sum(axis=0), second.ravel()]))
    centre = sums[1 : k + 1] / sums[0]
    spread = sums[k + 1 :].reshape(k, k) / sums[0] - np.outer(centre, centre)
    root = np.linalg.cholesky(spread)
    inverse = np.linalg.inv(root).astype(np.float32)
    mean, covariance = state.students.mean.copy(), state.students.covariance.copy()
    mean[students] = (m - centre) @ inverse.T
    # One large product instead of many small ones.
    twice = np.kron(inverse, inverse).T
    covariance[students] = (covariance[students].reshape(-1, k * k) @ twice).reshape(-1, k, k)
    # What slopes · ability + intercept gives must stay the same.
    transform = np.eye(k + 1)
    transform[:k, :k] = root.T
    transform[k, :k] = centre

    def transformed(g: Gaussians) -> Gaussians:
        t = transform.astype(g.mean.dtype)
        return Gaussians(g.mean @ t.T, t @ g.covariance @ t.T)

    return replace(
        state,
        students=Gaussians(mean, covariance),
        questions=transformed(state.questions),
        prior=transformed(state.prior),
    )


def _count_groups(group: IntArray) -> int:
    return int(group.max(initial=0)) + 1


def _one_kind(group: IntArray) -> FloatArray:
    """Give every group one kind, its own."""
    return np.eye(_count_groups(group), dtype=np.float32)[group]


def _split_into_kinds(
    state: Fit, group: IntArray, answered: npt.NDArray[np.bool_], seed: int
) -> Fit:
    """Split every group's questions into kinds by the directions of their slopes."""
    n_groups, k = len(state.prior), state.questions.mean.shape[1] - 1
    smallest = np.bincount(group[answered], minlength=n_groups).min()
    n_kinds = min(_MOST_KINDS, int(smallest) // _QUESTIONS_PER_KIND)
    if k == 1 or n_kinds < 2:
        return state
    direction = state.questions.mean[:, :k].astype(np.float64)
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-6)
    kind = np.zeros((len(group), n_groups * n_kinds), np.float32)
    for g in range(n_groups):
        rows = np.flatnonzero(answered & (group == g))
        found = KMeans(n_kinds, n_init=1, random_state=seed).fit_predict(direction[rows])
        kind[rows, g * n_kinds + found] = 1
    mean, covariance = state.questions.mean.astype(np.float64), state.questions.covariance
    old = Gaussians(
        *(np.repeat(x, n_kinds, axis=0) for x in (state.prior.mean, state.prior.covariance))
    )
    prior = _estimate_prior(mean, covariance, kind, group, answered, old)
    # Those without answers get theirs from the shares of the kinds.
    state = replace(state, prior=prior, kind=kind)
    return replace(state, kind=_assign_kinds(mean, covariance, state, group, answered))


def _assign_kinds(
    mean: FloatArray,
    covariance: FloatArray,
    state: Fit,
    group: IntArray,
    answered: npt.NDArray[np.bool_],
) -> FloatArray:
    """Give every question's probabilities to be of each kind of its group."""
    n_groups = _count_groups(group)
    n_kinds = len(state.prior) // n_groups
    if n_kinds == 1:
        return state.kind
    inverse = np.linalg.inv(state.prior.covariance)
    # E[(z − μ)ᵀ Σ⁻¹ (z − μ)] as one matrix product over all questions and kinds.
    n, d = mean.shape
    second = covariance + mean[:, :, None] * mean[:, None, :]
    towards = np.einsum("cij,cj->ci", inverse, state.prior.mean)
    distance = second.reshape(n, d * d) @ inverse.reshape(-1, d * d).T - 2 * mean @ towards.T
    distance += (towards * state.prior.mean).sum(axis=1)
    count = state.kind[answered].sum(axis=0, dtype=np.float64) + 1
    share = count / np.repeat(count.reshape(n_groups, n_kinds).sum(axis=1), n_kinds)
    log_probability = np.log(share) - (distance + np.linalg.slogdet(state.prior.covariance)[1]) / 2
    of_group = np.repeat(_one_kind(group), n_kinds, axis=1) > 0
    log_probability = np.where(of_group, log_probability, -np.inf)
    log_probability -= log_probability.max(axis=1, keepdims=True)
    probability = np.exp(log_probability)
    probability /= probability.sum(axis=1, keepdims=True)
    return np.where(answered[:, None], probability, share * of_group).astype(np.float32)


def _estimate_prior(
    mean: FloatArray,
    covariance: FloatArray,
    kind: FloatArray,
    group: IntArray,
    answered: npt.NDArray[np.bool_],
    old: Gaussians,
) -> Gaussians:
    """Estimate mean and covariance of the questions of each kind (empirical Bayes)."""
    d, n_groups = mean.shape[1], _count_groups(group)
    n_kinds = len(old) // n_groups
    new_mean, new_covariance = old.mean.copy(), old.covariance.copy()
    for g in range(n_groups):
        rows = answered & (group == g)
        n = int(rows.sum())
        if not n:
            continue
        means, covariances = mean[rows], covariance[rows]
        centre = means.mean(axis=0)
        deviation = means - centre
        total = covariances.sum(axis=0) + deviation.T @ deviation
        guess = _PRIOR_QUESTIONS * _PRIOR_SLOPE_VARIANCE * np.eye(d)
        spread = (total + guess) / (n + _PRIOR_QUESTIONS)
        own = slice(g * n_kinds, (g + 1) * n_kinds)
        if n_kinds == 1:
            new_mean[own], new_covariance[own] = centre, spread
            continue
        weight = kind[rows, own].astype(np.float64)
        count = weight.sum(axis=0)[:, None]
        # As if each kind had one more question, which is like the mean of all.
        new_mean[own] = (weight.T @ means + centre) / (count + 1)
        for c, w in enumerate(weight.T, own.start):
            deviation = means - new_mean[c]
            total = np.tensordot(w, covariances, 1) + (deviation * w[:, None]).T @ deviation
            new_covariance[c] = (total + _WEIGHT_OF_ALL * spread) / (w.sum() + _WEIGHT_OF_ALL)
    return Gaussians(new_mean, new_covariance)


def _question_equations(
    sums: FloatArray, prior: Gaussians, kind: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give the precision and the linear term of every question's posterior."""
    d = prior.mean.shape[1]
    i, j = _packed_places(d)
    inverse = np.linalg.inv(prior.covariance.astype(np.float64))
    precision = (kind @ inverse.reshape(-1, d * d)).reshape(-1, d, d)
    precision[:, i, j] += sums[:, : len(i)]
    precision[:, j, i] = precision[:, i, j]
    linear = kind @ np.einsum("cij,cj->ci", inverse, prior.mean)
    return precision, linear + sums[:, len(i) :]


def _find_start(
    observations: Observations, k: int, group: IntArray, seed: int, reduce: Reduce
) -> Fit:
    """Fit one general ability, then find the other dimensions in what it leaves unexplained.

    From a random start, the fit takes many steps to turn towards the dimensions that matter, and
    meanwhile the prior shrinks them away. It does so less if the start knows of no guessing.
    """
    no_guessing = np.zeros((), np.float32)
    n_students = int(np.searchsorted(observations.start, _START_ANSWERS))
    few = _first_students(observations, min(n_students, observations.n_students))
    one = _first_guess(few, group, reduce)
    answered = reduce(_count_answers(few)) > 0
    for _ in range(_START_STEPS - 1):
        one = _step(few, one, group, no_guessing, answered, reduce)
    students = standard_normal(observations.n_students, 1)
    students.mean[: few.n_students] = one.students.mean
    students.covariance[: few.n_students] = one.students.covariance
    n_answers = reduce(_count_answers(observations))
    one = replace(one, students=students)
    one = _step(observations, one, group, no_guessing, n_answers > 0, reduce)
    slopes = _START_SLOPE * _residual_directions(observations, one, k - 1, n_answers, seed, reduce)
    n_groups = len(one.prior)
    mean, prior_mean = np.zeros((len(group), k + 1)), np.zeros((n_groups, k + 1))
    # From (general slope, intercept) to (general slope, other slopes, intercept).
    ends = [0, k]
    mean[:, ends], prior_mean[:, ends] = one.questions.mean, one.prior.mean
    mean[:, 1:k] = slopes
    prior_covariance = np.tile(_START_VARIANCE * np.eye(k + 1), (n_groups, 1, 1))
    prior_covariance[np.ix_(range(n_groups), ends, ends)] = one.prior.covariance
    students = standard_normal(observations.n_students, k)
    students.mean[:, :1] = one.students.mean
    return Fit(
        students,
        Gaussians(mean.astype(np.float32), np.zeros((len(mean), k + 1, k + 1), np.float32)),
        Gaussians(prior_mean, prior_covariance),
        one.kind,
    )


def _first_guess(observations: Observations, group: IntArray, reduce: Reduce) -> Fit:
    """Start in one dimension: all slopes alike, intercepts from the shares of right answers."""
    n_groups = _count_groups(group)
    n_answers = reduce(_count_answers(observations))
    n_correct = reduce(_count_answers(observations, correct=True))
    total = np.bincount(group, n_answers, n_groups) + 2
    share = (np.bincount(group, n_correct, n_groups) + 1) / total
    prior_mean = np.zeros((n_groups, 2))
    # Whether an answer is right depends on the ability; which distractor is chosen, rather not.
    prior_mean[0, 0] = 1
    prior_mean[:, 1] = np.log(share / (1 - share))
    mean = prior_mean[group]
    shrunk = (n_correct + 5 * share[group]) / (n_answers + 5)
    mean[:, 1] = np.log(shrunk / (1 - shrunk))
    return Fit(
        standard_normal(observations.n_students, 1),
        Gaussians(mean.astype(np.float32), np.zeros((len(mean), 2, 2), np.float32)),
        Gaussians(prior_mean, np.tile(np.diag([0.3, 1.0]), (n_groups, 1, 1))),
        _one_kind(group),
    )


def _residual_directions(
    observations: Observations, fit: Fit, n: int, n_answers: FloatArray, seed: int, reduce: Reduce
) -> FloatArray:
    """Find the directions in which the residuals of a fit vary most, over the questions.

    They are the leading right singular vectors of the sparse matrix of residuals, by randomised
    subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4), sped up by polynomials.

    Returns
    -------
    array, shape (questions, n)
        Scaled to a mean square of 1 over the answers, and cut off at three times that.
    """
    n_questions = observations.n_questions
    rng = np.random.default_rng(seed)
    size = min(n + _OVERSAMPLING, n_questions) if n else 0
    if size == 0:
        return np.zeros((n_questions, n))
    question_scale = 1 / np.sqrt(n_answers + _START_SHRINKAGE).astype(np.float32)[:, None]
    ability = _with_one(fit.students.mean)
    chunks = []
    for first, last in _chunks(observations):
        answers = slice(int(observations.start[first]), int(observations.start[last]))
        indptr = (observations.start[first : last + 1] - answers.start).astype(np.int32)
        lengths = np.diff(indptr)
        student = np.repeat(np.arange(first, last, dtype=np.int32), lengths)
        question = observations.question[answers]
        residual = observations.correct[answers].astype(np.float32)
        for block, x in _products(ability, fit.questions.mean, student, question):
            residual[block] -= sigmoid(x)
        if observations.used is not None:
            residual *= observations.used[answers]
        # Rows and columns scaled by the root of their length: noise alone is then even.
        residual *= np.repeat(1 / np.sqrt(lengths + np.float32(_START_SHRINKAGE)), lengths)
        shape = (last - first, n_questions)
        chunks.append(scipy.sparse.csr_matrix((residual, question, indptr), shape=shape))

    def squared(basis: FloatArray, n_chunks: int) -> FloatArray:
        """Multiply by the residuals' matrix, transposed, times itself."""
        scaled = np.ascontiguousarray(basis * question_scale, np.float32)
        total = np.zeros(basis.shape)
        for part in _imap(lambda c: chunks[c].T @ (chunks[c] @ scaled), range(n_chunks)):
            total += part
        return np.asarray(reduce(total) * question_scale)

    def improve(basis: FloatArray, n_chunks: int) -> FloatArray:
        """Turn the basis towards the leading directions, by a Chebyshev polynomial.

        It amplifies what lies above the smallest eigenvalue found in the basis, and is bounded
        below (Zhou, Saad, Tiago and Chelikowsky 2006, "Self-consistent-field calculations using
        Chebyshev-filtered subspace iteration").
        """
        basis = np.linalg.qr(basis)[0]
        image = squared(basis, n_chunks)
        scale = 2 / max(np.linalg.eigvalsh(basis.T @ image)[0], 1e-12)
        previous, current = basis, scale * image - basis
        for _ in range(_START_DEGREE - 1):
            image = scale * squared(current, n_chunks) - current
            previous, current = current, 2 * image - previous
        return np.asarray(current)

    n_few = min(len(chunks), -(-_START_ANSWERS // _CHUNK))
    basis: FloatArray = rng.standard_normal((n_questions, size))
    for _ in range(_START_ROUNDS):
        basis = improve(basis, n_few)
    for _ in range(_LAST_START_ROUNDS):
        basis = improve(basis, len(chunks))
    basis = np.linalg.qr(basis)[0]
    leading_last = np.linalg.eigh(basis.T @ squared(basis, len(chunks)))[1]
    directions = (basis @ leading_last[:, ::-1][:, :n]) * question_scale
    total_square = (n_answers[:, None] * directions**2).sum(axis=0)
    directions *= np.sqrt(n_answers.sum() / np.maximum(total_square, 1e-30))
    return np.pad(np.clip(directions, -3, 3), [(0, 0), (0, n - directions.shape[1])])


def _first_students(observations: Observations, n: int) -> Observations:
    n_answers = int(observations.start[n])
    return Observations(
        observations.start[: n + 1],
        observations.question[:n_answers],
        observations.correct[:n_answers],
        None if observations.used is None else observations.used[:n_answers],
        observations.n_questions,
    )


def _count_answers(observations: Observations, correct: bool = False) -> FloatArray:
    """Count the answers, or the right answers, to each question."""

    def count(question: IntArray) -> IntArray:
        return np.bincount(question, minlength=observations.n_questions)

    question, used, right = observations.question, observations.used, observations.correct == 1
    if correct:
        counts = count(question[right if used is None else right & used])
    else:
        counts = count(question) if used is None else count(question) - count(question[~used])
    return counts.astype(np.float64)


def _one_group(observations: Observations) -> IntArray:
    return np.zeros(observations.n_questions, np.int8)


def _alone(array: FloatArray) -> FloatArray:
    """Sum over the only process there is."""
    return array


# ---- One pass over the answers -----------------------------------------------------------------


@dataclass(frozen=True)
class _PackedQuestions:
    """Questions as the pass over the answers needs them.

    moments: shape (questions, d(d+1)/2), E[zzᵀ] with z = (slopes, intercept), upper triangle.
    mean: shape (questions, d), E[z].
    both: these side by side.
    """

    moments: FloatArray
    mean: FloatArray
    both: FloatArray


def _packed_places(d: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows and columns of the upper triangle: the last of each column's, so that (d, d) is last."""
    j, i = np.tril_indices(d)
    return i, j


def _pack_questions(questions: Gaussians) -> _PackedQuestions:
    i, j = _packed_places(questions.mean.shape[1])
    mean = questions.mean
    moments = questions.covariance[:, i, j] + mean[:, i] * mean[:, j]
    # Rows must be contiguous: everything below takes them one by one.
    return _PackedQuestions(
        np.ascontiguousarray(moments),
        np.ascontiguousarray(mean),
        np.concatenate([moments, mean], axis=1),
    )


def _pack_students(students: Gaussians) -> FloatArray:
    """E[ttᵀ] with t = (ability, 1), upper triangle, off the diagonal doubled; then E[t]."""
    k = students.mean.shape[1]
    i, j = _packed_places(k + 1)
    t = _with_one(students.mean)
    moments = t[:, i] * t[:, j]
    inside = (i < k) & (j < k)
    moments[:, inside] += students.covariance[:, i[inside], j[inside]]
    moments[:, i != j] *= 2
    return np.concatenate([moments, t], axis=1)


def _with_one(ability: FloatArray) -> FloatArray:
    return np.concatenate([ability, np.ones((len(ability), 1), np.float32)], axis=1)


def _blocks_of_rows(
    a: FloatArray, b: FloatArray, row_of_a: IntArray, row_of_b: IntArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Give the rows of pairs, block by block: the block, and the rows, overwritten by the next."""
    buffer_a = np.empty((_BLOCK, a.shape[1]), np.float32)
    buffer_b = np.empty((_BLOCK, b.shape[1]), np.float32)
    for begin in range(0, len(row_of_a), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        n = len(row_of_a[block])
        # "clip" only because it takes twice as fast as checking each place.
        np.take(a, row_of_a[block], axis=0, out=buffer_a[:n], mode="clip")
        np.take(b, row_of_b[block], axis=0, out=buffer_b[:n], mode="clip")
        yield block, buffer_a[:n], buffer_b[:n]


def _products(
    a: FloatArray, b: FloatArray, row_of_a: IntArray, row_of_b: IntArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Give the scalar products of pairs of rows, block by block: the block, and its products."""
    for block, rows_of_a, rows_of_b in _blocks_of_rows(a, b, row_of_a, row_of_b):
        yield block, np.einsum("ij,ij->i", rows_of_a, rows_of_b)


def _block_moments(
    students: FloatArray, questions: _PackedQuestions, student: IntArray, question: IntArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Give mean and variance of the logits of pairs, block by block; `students` are packed."""
    d = questions.mean.shape[1]
    for block, a, b in _blocks_of_rows(students, questions.both, student, question):
        square = np.einsum("ij,ij->i", a[:, :-d], b[:, :-d])
        mean = np.einsum("ij,ij->i", a[:, -d:], b[:, -d:])
        yield block, mean, np.maximum(square - mean * mean, 0)


def _update(
    observations: Observations,
    students: Gaussians,
    questions: _PackedQuestions,
    guessing: FloatArray,
    rngs: list[np.random.Generator] | None,
) -> tuple[Gaussians, FloatArray]:
    """Update the students and sum up what the questions need.

    With `rngs`, one for each chunk, abilities are drawn, and `students.covariance` is not used.
    """
    k = students.mean.shape[1]
    chunks = _chunks(observations)
    mean = students.mean.copy()
    covariance = students.covariance.copy() if rngs is None else students.covariance
    total = np.zeros((observations.n_questions, (k + 1) * (k + 2) // 2 + k + 1), np.float64)

    def work(c: int) -> FloatArray:
        rows = slice(chunks[c][0], chunks[c][1])
        rng = None if rngs is None else rngs[c]
        old = Gaussians(students.mean[rows], students.covariance[rows])
        mean[rows], new_covariance, sums = _update_chunk(
            observations, rows, old, questions, guessing, rng
        )
        if rng is None:
            covariance[rows] = new_covariance
        return sums

    for sums in _imap(work, range(len(chunks))):
        # In the order of the chunks, so that a run repeats exactly.
        total += sums
    return Gaussians(mean, covariance), total


def _update_chunk(
    observations: Observations,
    rows: slice,
    students: Gaussians,
    questions: _PackedQuestions,
    guessing: FloatArray,
    rng: np.random.Generator | None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    k = students.mean.shape[1]
    i, j = _packed_places(k + 1)
    start = observations.start[rows.start : rows.stop + 1]
    answers = slice(int(start[0]), int(start[-1]))
    indptr = (start - start[0]).astype(np.int32)
    question = observations.question[answers]
    shape = (len(indptr) - 1, observations.n_questions)
    right = observations.correct[answers] == 1
    kappa, weight = np.empty((2, len(question)), np.float32)
    student = np.repeat(np.arange(shape[0], dtype=np.int32), np.diff(indptr))
    if rng is None:
        packed = _pack_students(students)
        for block, m, v in _block_moments(packed, questions, student, question):
            guess = _guess_of(guessing, question[block])
            kappa[block], weight[block] = _expected_terms(m, v, right[block], guess)
    else:
        ability = _with_one(students.mean)
        for block, x in _products(ability, questions.mean, student, question):
            guess = _guess_of(guessing, question[block])
            kappa[block], weight[block] = _draw_terms(x, right[block], guess, rng)
    if observations.used is not None:
        kappa *= observations.used[answers]
        weight *= observations.used[answers]
    weights = scipy.sparse.csr_matrix((weight, question, indptr), shape=shape)
    kappas = scipy.sparse.csr_matrix((kappa, question, indptr), shape=shape)

    # Students: precision I + Σ w E[aaᵀ], linear term Σ κ E[a] − w E[ab].
    sums = weights @ questions.moments
    n_square = k * (k + 1) // 2
    precision = np.empty((shape[0], k, k), np.float32)
    precision[:, i[:n_square], j[:n_square]] = sums[:, :n_square]
    precision[:, j[:n_square], i[:n_square]] = sums[:, :n_square]
    precision[:, range(k), range(k)] += 1
    linear = (kappas @ questions.mean)[:, :k] - sums[:, n_square:-1]
    if rng is None:
        covariance = _invert(precision)
        mean = np.einsum("nij,nj->ni", covariance, linear)
    else:
        covariance = np.zeros((shape[0], 0, 0), np.float32)
        mean = _draw(precision, linear, rng)

    # Questions: precision Σ w E[ttᵀ], linear term Σ κ E[t] with t = (ability, 1).
    t = _with_one(mean)
    moments = np.ascontiguousarray(t[:, i] * t[:, j])
    if rng is None:
        moments[:, :n_square] += covariance[:, i[:n_square], j[:n_square]]
    return mean, covariance, np.concatenate([weights.T @ moments, kappas.T @ t], axis=1)


def _guess_of(guessing: FloatArray, question: IntArray) -> FloatArray:
    return guessing[question] if guessing.ndim else guessing


def _expected_terms(
    mean: FloatArray, variance: FloatArray, right: npt.NDArray[np.bool_], guessing: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Give κ and w from the expected slope and curvature of the log likelihood.

    Expectations are means over the two points one deviation away from the mean: Gauss-Hermite
    quadrature, exact for polynomials up to the third degree.
    """
    deviation = np.sqrt(variance)
    slope, information, knows = np.zeros((3, len(mean)), np.float32)
    for point in (mean - deviation, mean + deviation):
        # e⁻ˣ: P(knows) = 1 / (1 + e⁻ˣ), P(right) = (1 + guessing e⁻ˣ) / (1 + e⁻ˣ).
        np.clip(point, -_FARTHEST_LOGIT, _FARTHEST_LOGIT, out=point)
        odds = np.exp(np.negative(point, out=point), out=point)
        knows_there = 1 / (1 + odds)
        # Slope for a right answer; with that for a wrong one, −P(knows), its mean is 0.
        slope_there = odds * knows_there
        slope_there *= 1 - guessing
        slope_there /= 1 + guessing * odds
        slope += slope_there
        slope_there *= knows_there
        information += slope_there
        knows += knows_there
    information *= np.float32(0.5)
    np.maximum(information, np.float32(_LEAST_INFORMATION), out=information)
    kappa = np.where(right, slope, -knows)
    kappa *= np.float32(0.5)
    kappa += information * mean
    return kappa, information


def _draw_terms(
    logit: FloatArray,
    right: npt.NDArray[np.bool_],
    guessing: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draw κ and w."""
    knows = sigmoid(logit)
    threshold = rng.random(len(logit), dtype=np.float32) * (guessing + (1 - guessing) * knows)
    knew = right & (threshold < knows)
    return knew - np.float32(0.5), _polya_gamma(logit, rng)


def _polya_gamma(logit: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw from PG(1, logit): definition 1 of Polson et al., the tail of the sum by its mean."""
    n = np.arange(_POLYA_GAMMA_TERMS, dtype=np.float32)[:, None] + np.float32(0.5)
    scale = 1 / (2 * math.pi**2 * (n**2 + (logit / np.float32(2 * math.pi)) ** 2))
    drawn = (rng.standard_exponential(scale.shape, dtype=np.float32) - 1) * scale
    # E[w] = tanh(ψ/2) / (2ψ), which is 1/4 for ψ = 0.
    half = np.maximum(np.abs(logit) / 2, np.float32(5e-4))
    return np.asarray(drawn.sum(axis=0) + np.tanh(half) / (4 * half), np.float32)


def _invert(matrices: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Invert many small positive definite matrices, shape (n, d, d)."""
    return np.asarray(np.linalg.inv(matrices))


def _draw(
    precision: npt.NDArray[Any], linear: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Draw from Gaussians given by precision matrices and linear terms."""
    root = np.linalg.cholesky(precision)
    inverse_root = np.linalg.inv(root)
    # Mean P⁻¹h = R⁻ᵀ(R⁻¹h), noise R⁻ᵀε.
    inner = np.einsum("nij,nj->ni", inverse_root, linear)
    inner += rng.standard_normal(inner.shape, dtype=inner.dtype)
    return np.asarray(np.einsum("nji,nj->ni", inverse_root, inner))


def _draw_prior(
    z: FloatArray,
    group: IntArray,
    answered: npt.NDArray[np.bool_],
    old: Gaussians,
    rng: np.random.Generator,
) -> Gaussians:
    """Draw mean and covariance of the questions of each group (normal inverse Wishart)."""
    d = z.shape[1]
    mean, covariance = old.mean.copy(), old.covariance.copy()
    for g in range(len(old)):
        members = z[answered & (group == g)]
        if not len(members):
            continue
        centre = members.mean(axis=0)
        scatter = (members - centre).T @ (members - centre)
        scatter += _PRIOR_QUESTIONS * _PRIOR_SLOPE_VARIANCE * np.eye(d)
        # An inverse Wishart draw is the inverse of a sum of squared Gaussians.
        root = np.linalg.cholesky(np.linalg.inv(scatter))
        x = rng.standard_normal((len(members) + d, d)) @ root.T
        covariance[g] = np.linalg.inv(x.T @ x)
        mean[g] = centre + np.linalg.cholesky(covariance[g] / len(members)) @ rng.standard_normal(d)
    return Gaussians(mean, covariance)


def _chunks(observations: Observations) -> list[tuple[int, int]]:
    """Cut the students into ranges with about equally many answers."""
    end = int(observations.start[-1])
    size = min(_CHUNK, max(_SMALLEST_CHUNK, end // _N_CHUNKS))
    cuts = np.searchsorted(observations.start, np.arange(size, end, size))
    bounds = [0, *np.unique(cuts).tolist(), observations.n_students]
    return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]


def _for_chunks(work: Callable[[slice], None], n: int) -> None:
    """Work on n answers, chunk by chunk, in several threads."""
    for _ in _imap(lambda begin: work(slice(begin, begin + _CHUNK)), range(0, n, _CHUNK)):
        pass


def _imap(function: Callable[[int], Any], items: range) -> Iterator[Any]:
    if len(items) < 2 or N_THREADS == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(N_THREADS) as pool:
        yield from pool.map(function, items)
