"""Partial VAE: ask what reveals most about the answers that are probably hidden, then predict them.

What is known of a student is a Gaussian over the latent vector z, with independent dimensions. The
encoder is additive: before any answer, z has a precision and a mean that depends on which questions
the student has answered; every answer adds a score and a precision (mean = sum of scores / sum of
precisions). So the posterior after any hypothetical answer is known at once, and with it the
information reward of EDDI (Ma et al. 2019, "Efficient dynamic discovery of high-value information
with partial VAE", arXiv 1809.11142).

Needs only PyTorch, no other file of the kit: it goes into the zip.
"""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

WEIGHTS = "model_task_4.pt"

# The settings were chosen by cross-validation over training students.
# A question that may not be asked counts as a hidden answer from this probability on.
_MIN_PROBABILITY = 0.3
# Targets may be asked if the likely hidden answers are fewer than this share of the askable ones.
_MAX_SHARE_HIDDEN = 0.05
# Share of a logit's variance that is still to be resolved, for what lies near P(right) = 1/2.
_RESOLUTION = 0.5
# Weight of a question's own uncertainty, beside the reward, where it may be a target.
_OWN_UNCERTAINTY = 20.0


@dataclass(frozen=True)
class Model:
    """What training has learned; Q questions, k latent dimensions, float32."""

    # The decoder: P(right) = guessing + (1 − guessing) sigmoid(loading · z + intercept), shapes
    # (Q,) and (Q, k); a student who does not know an answer guesses it with probability guessing.
    intercept: Tensor
    loading: Tensor
    guessing: Tensor
    # The encoder: what an answer adds, wrong at place 0 and right at place 1, shape (Q, 2, k).
    score: Tensor
    precision: Tensor
    # Precision of z before any answer, shape (k,).
    prior_precision: Tensor
    # The mean of z before any answer is (m − mask_mean) @ mask_weights for a student with the
    # answered mask m (1 answered, 0 not, divided by the root of their number): (Q,), (Q, k).
    mask_mean: Tensor
    mask_weights: Tensor
    # An answered mask with a fifth of the answers hidden, times this, gives the probability that
    # each question is answered, shape (Q, Q).
    completion: Tensor

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        torch.save(asdict(self), folder / WEIGHTS)

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        return Model(**torch.load(folder / WEIGHTS, map_location="cpu", weights_only=True))

    def pad_questions(self, n_questions: int) -> "Model":
        """Cut or pad to another number of questions; new ones are like a mean one, tell nothing."""
        new = n_questions - len(self.intercept)  # A negative padding cuts.
        return replace(
            self,
            intercept=pad(self.intercept, (0, new), value=float(self.intercept.mean())),
            loading=pad(self.loading, (0, 0, 0, new)),
            score=pad(self.score, (0, 0, 0, 0, 0, new)),
            precision=pad(self.precision, (0, 0, 0, 0, 0, new)),
            mask_mean=pad(self.mask_mean, (0, new)),
            mask_weights=pad(self.mask_weights, (0, 0, 0, new)),
            completion=pad(self.completion, (0, new, 0, new)),
        )


class StudentPosterior:
    """What is known of S students who are asked; the answered mask, bool (S, Q), Q as in the model,
    tells which answers may be asked or have been, all False if that is not known.
    """

    def __init__(self, model: Model, answered_mask: Tensor) -> None:
        self.model = model
        probability = torch.where(answered_mask, 0.0, answered_mask.float() @ model.completion)
        likely_hidden = probability.clamp(max=1) * (probability > _MIN_PROBABILITY)
        self._targets_may_be_asked = bool(
            model.completion.any() and likely_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        )
        if self._targets_may_be_asked:
            likely_hidden[:] = 0
        is_known = likely_hidden.any(dim=1, keepdim=True)
        self._target_weight = torch.where(is_known, likely_hidden, answered_mask.float())

        answered = (answered_mask | (likely_hidden > 0.5)).float()
        count = answered.sum(dim=1, keepdim=True)
        relative = torch.where(count > 0, answered / count.clamp(min=1).sqrt(), model.mask_mean)
        self._precision = model.prior_precision.repeat(len(answered_mask), 1)
        self._score = (relative - model.mask_mean) @ model.mask_weights * self._precision
        self._observed: list[tuple[Tensor, Tensor, Tensor]] = []

    def observe(self, student: Tensor, question: Tensor, is_right: Tensor) -> None:
        """Learn from answers: rows, columns, 1 right or 0 wrong, each of shape (answers,)."""
        self._observed.append((student, question, is_right))
        self._target_weight[student, question] = 0
        self._precision.index_add_(0, student, self.model.precision[question, is_right])
        self._score.index_add_(0, student, self.model.score[question, is_right])

    def logits(self) -> tuple[Tensor, Tensor]:
        """Return mean and variance of every student's logit of every question, in their shape."""
        variance = 1 / self._precision
        mean = (self._score * variance) @ self.model.loading.T + self.model.intercept
        return mean, variance @ self.model.loading.square().T

    def predict(self) -> Tensor:
        """Return P(right) of all questions, 1 (right) or 0 (wrong) for what has been seen."""
        prediction = decode(*self.logits(), self.model.guessing)
        for student, question, is_right in self._observed:
            prediction[student, question] = is_right.to(prediction.dtype)
        return prediction

    def select(self, askable: Tensor) -> Tensor:
        """Return every student's question of largest information reward, int64, targets weighed by
        the probability of being hidden times the density of the logit where P(right) = ½ (a certain
        one needs no more); where targets may be asked, plus the chance of a wrong prediction.
        """
        model = self.model
        mean, variance = self.logits()
        right = decode(mean, variance, model.guessing)
        boundary = torch.log((0.5 - model.guessing) / 0.5)
        spread = _RESOLUTION * variance + 0.05
        density = torch.exp(-((mean - boundary) ** 2) / (2 * spread)) / spread.sqrt()
        weight = self._target_weight * density

        selected = torch.zeros(len(askable), dtype=torch.int64)
        for row in askable.any(dim=1).nonzero()[:, 0]:
            question, target = askable[row].nonzero()[:, 0], weight[row].nonzero()[:, 0]
            # How each question's answer, wrong or right, would move the mean of z.
            score = self._score[row] + model.score[question]
            precision = self._precision[row] + model.precision[question]
            move = score / precision - self._score[row] / self._precision[row]
            p = right[row, question]
            value = information_reward(move, p, model.loading[target], weight[row, target])
            if self._targets_may_be_asked:
                value += _OWN_UNCERTAINTY * torch.minimum(p, 1 - p)
            selected[row] = question[value.argmax()]
        return selected


def decode(mean: Tensor, variance: Tensor, guessing: Tensor) -> Tensor:
    """Return P(right) for Gaussian logits: E[sigmoid(x)] by MacKay's approximation (1992)."""
    knows = torch.sigmoid(mean / torch.sqrt(1 + (math.pi / 8) * variance))
    return guessing + (1 - guessing) * knows


def information_reward(move: Tensor, right: Tensor, loading: Tensor, weight: Tensor) -> Tensor:
    """Return how much the answers to questions tell about z that the targets would tell too.

    The reward of EDDI, with x_o what is known, x_i the answer and x_φ the answers of targets, is

        E KL(p(z | x_i, x_o) ‖ p(z | x_o)) − E KL(p(z | x_φ, x_i, x_o) ‖ p(z | x_φ, x_o)).

    With targets taken one at a time, that is to first order in their weights, it is ½ E Σ weight
    (loading · move)² (2 ratio − 1): how far the logits of targets move, squared. The ratio of the
    variances of z, near 1 for one answer, is taken as 1, which scored higher.

    A wrong and a right answer move the mean of z by `move`, (questions, 2, k); `right` is P(right),
    (questions,). Of the targets come loadings, (targets, k), and weights, (targets,).
    """
    gain = 0.5 * (move @ loading.T).square() @ weight
    return gain[:, 0] * (1 - right) + gain[:, 1] * right
