"""Partial VAE: ask what tells most about the likely targets, then predict them.

What is known of a student is a Gaussian over the latent vector z, with independent dimensions. The
encoder is additive: before any answer, z has a precision and a mean that depend on which questions
the student has answered; every answer revealed adds its row of a table of precisions and scores
(mean = variance · sum of scores). So the posterior after any hypothetical answer is a sum of two
small arrays, and the information reward of EDDI (Ma et al. 2019, "EDDI: Efficient dynamic discovery
of high-value information with partial VAE") is a few tensor operations for all
students and questions.

Needs only NumPy and PyTorch, no other file of the kit: it goes into the zip.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

WEIGHTS = "model_task_4_partial_vae.pt"

# The settings were chosen by cross-validation over training students.
# A gap counts as a hidden answer from this probability on.
_LEAST_PROBABILITY = 0.3
# Targets may be asked if the gaps are fewer than this share of the questions to ask from.
_SHARE_OF_GAPS = 0.05
# Share of a logit's variance that is still to be resolved, for what lies near P(right) = 1/2.
_RESOLUTION = 0.5
# Weight of a question's own uncertainty, beside the reward, where it may be a target.
_OWN_UNCERTAINTY = 20.0
# Students whose rewards are computed at once.
_BLOCK = 64


@dataclass(frozen=True)
class Model:
    """What training has learned; Q questions, k latent dimensions, float32.

    Attributes
    ----------
    intercept, loading
        The decoder: P(right) = guessing + (1 − guessing) sigmoid(loading · z + intercept), shapes
        (Q,) and (Q, k).
    guessing
        Least probability of a right answer, shape ().
    score, precision
        The encoder: what an answer to a question adds, wrong at place 0 and right at place 1,
        shape (Q, 2, k).
    prior_precision
        Precision of z before any answer, shape (k,).
    pattern_mean, pattern_weights
        The mean of z before any answer is (p − pattern_mean) @ pattern_weights for a student with
        the answered pattern p (1 answered, 0 not, divided by the root of their number), shapes (Q,)
        and (Q, k).
    completion
        A pattern with a fifth of the answers hidden, times this, gives the probability that each
        question is answered, shape (Q, Q).
    """

    intercept: Tensor
    loading: Tensor
    guessing: Tensor
    score: Tensor
    precision: Tensor
    prior_precision: Tensor
    pattern_mean: Tensor
    pattern_weights: Tensor
    completion: Tensor

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        torch.save(asdict(self), folder / WEIGHTS)

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        return Model(**torch.load(folder / WEIGHTS, map_location="cpu", weights_only=True))

    def fit_width(self, n_questions: int) -> "Model":
        """Cut or fill up for another number of questions: new students may answer new ones.

        A new question is like a mean one, and tells nothing.
        """
        new = max(0, n_questions - len(self.intercept))

        def fit(tensor: Tensor, n_axes: int = 1) -> Tensor:
            kept = tensor[(slice(n_questions),) * n_axes]
            behind = (0, 0) * (tensor.ndim - n_axes)
            return functional.pad(kept, (*behind, *((0, new) * n_axes)))

        intercept = fit(self.intercept)
        intercept[len(self.intercept) :] = self.intercept.mean()
        return Model(
            intercept,
            fit(self.loading),
            self.guessing,
            fit(self.score),
            fit(self.precision),
            self.prior_precision,
            fit(self.pattern_mean),
            fit(self.pattern_weights),
            fit(self.completion, 2),
        )


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

    def __init__(self, model: Model, pattern: Tensor) -> None:
        self.model = model
        gaps = torch.where(pattern, 0.0, pattern.float() @ model.completion)
        gaps = torch.where(gaps > _LEAST_PROBABILITY, gaps.clamp(max=1), 0.0)
        self._targets_may_be_asked = bool(
            model.completion.any() and gaps.sum() < _SHARE_OF_GAPS * pattern.sum()
        )
        if self._targets_may_be_asked:
            gaps[:] = 0
        has_gaps = gaps.any(dim=1, keepdim=True)
        self._target_weight = torch.where(has_gaps, gaps, pattern.float())

        answered = (pattern | (gaps > 0.5)).float()
        count = answered.sum(dim=1, keepdim=True)
        relative = torch.where(count > 0, answered / count.clamp(min=1).sqrt(), model.pattern_mean)
        mean = (relative - model.pattern_mean) @ model.pattern_weights
        self._precision = model.prior_precision.repeat(len(pattern), 1)
        self._score = mean * self._precision
        self._answers: list[tuple[Tensor, Tensor, Tensor]] = []

    def answer(self, student: Tensor, question: Tensor, is_right: Tensor) -> None:
        """Learn from answers.

        Parameters
        ----------
        student, question
            Rows and columns, shape (answers,).
        is_right
            1 right, 0 wrong, shape (answers,).
        """
        self._answers.append((student, question, is_right))
        self._target_weight[student, question] = 0
        self._precision.index_add_(0, student, self.model.precision[question, is_right])
        self._score.index_add_(0, student, self.model.score[question, is_right])

    def probability(self) -> Tensor:
        """Give every student's probability to answer every question rightly, in their shape."""
        return decode(*self._logits(), self.model.guessing)

    def _logits(self) -> tuple[Tensor, Tensor]:
        """Give mean and variance of every student's logit of every question."""
        variance = 1 / self._precision
        mean = (self._score * variance) @ self.model.loading.T + self.model.intercept
        return mean, variance @ self.model.loading.square().T

    def predict(self) -> Tensor:
        """Predict 1 (right) or 0 (wrong), what has been seen as it was."""
        prediction = (self.probability() > 0.5).long()
        for student, question, is_right in self._answers:
            prediction[student, question] = is_right
        return prediction

    def choose(self, askable: Tensor) -> Tensor:
        """Choose for every student the question with the largest information reward.

        The targets of the reward, φ, are what the gaps in the pattern tell: each question counts
        with its probability of being a target, times the density of its logit where P(right) = ½,
        since a prediction that is certain needs no more information. Where targets may be asked,
        the chance that the prediction for the question itself would have been wrong is added.

        Parameters
        ----------
        askable
            Bool, shape (students, questions).

        Returns
        -------
        Tensor of int64, shape (students,)
        """
        model = self.model
        mean, variance = self._logits()
        right = decode(mean, variance, model.guessing)
        border = torch.log((0.5 - model.guessing) / 0.5)
        spread = _RESOLUTION * variance + 0.05
        density = torch.exp(-((mean - border) ** 2) / (2 * spread)) / spread.sqrt()
        weight = self._target_weight * density

        chosen = torch.zeros(len(askable), dtype=torch.int64)
        # Students with about as many questions to ask are worked on together.
        order = askable.sum(dim=1).argsort(stable=True)
        for first in range(0, len(order), _BLOCK):
            rows = order[first : first + _BLOCK]
            n_most = max(1, int(askable[rows].sum(dim=1).max()))
            allowed, question = askable[rows].byte().topk(n_most, dim=1)
            p = right[rows].gather(1, question)
            value = information_reward(
                self._score[rows],
                self._precision[rows],
                model.score[question],
                model.precision[question],
                p,
                (model.loading.T * weight[rows][:, None]) @ model.loading,
            )
            value += _OWN_UNCERTAINTY * torch.minimum(p, 1 - p) * self._targets_may_be_asked
            value[allowed == 0] = -math.inf
            chosen[rows] = question.gather(1, value.argmax(dim=1, keepdim=True))[:, 0]
        return chosen


def decode(mean: Tensor, variance: Tensor, guessing: Tensor) -> Tensor:
    """Give P(right) for Gaussian logits: E[sigmoid(x)] by MacKay's approximation (1992)."""
    knows = torch.sigmoid(mean / torch.sqrt(1 + (math.pi / 8) * variance))
    return guessing + (1 - guessing) * knows


def information_reward(
    score: Tensor,
    precision: Tensor,
    more_score: Tensor,
    more_precision: Tensor,
    right: Tensor,
    of_targets: Tensor,
) -> Tensor:
    """Give how much the answers to questions tell about z that the targets' answers would tell too.

    The reward of EDDI, with x_o what is known, x_i the answer and x_φ the answers of targets, is

        E KL(p(z | x_i, x_o) ‖ p(z | x_o)) − E KL(p(z | x_φ, x_i, x_o) ‖ p(z | x_φ, x_o)).

    Here x_φ adds a precision matrix A, whose dimensions are not independent, and moves the mean of
    z by as much as A takes from the covariance. This is the reward's first order in A, that is the
    sum over targets taken one at a time. In closed form it is ½ E moveᵀ A (2 ratio − 1) move, all
    else cancels: move is the change of the mean of z by x_i, ratio the variance after it over that
    before. The ratio, near 1 for one answer, is taken as 1, which scored higher.

    Parameters
    ----------
    score, precision
        Sums that stand for the students' posteriors, shape (students, k).
    more_score, more_precision
        What a wrong and a right answer to each question would add, shape (students, n, 2, k).
    right
        P(right), shape (students, n).
    of_targets
        A, shape (students, k, k).

    Returns
    -------
    Tensor, shape (students, n)
        In nats, if A is the precision in full; proportional to it.
    """
    after = precision[:, None, None] + more_precision
    move = (score[:, None, None] + more_score) / after - (score / precision)[:, None, None]
    seen_by_targets = (move.flatten(1, 2) @ of_targets).view_as(move)
    gain = 0.5 * (seen_by_targets * move).sum(dim=-1)
    return gain[:, :, 0] * (1 - right) + gain[:, :, 1] * right
