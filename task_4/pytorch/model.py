"""Partial VAE: ask what reveals most about the answers that are probably hidden, then predict them.

The model describes a student by a Gaussian over the latent vector z, with independent dimensions.
Before any answer, z has a precision, and a mean that depends on which questions the student has
answered. The encoder is additive: every answer adds a score and a precision, and the mean of z is
the sum of the scores divided by the sum of the precisions. So the posterior after a hypothetical
answer is cheap to compute, and so is the information reward of EDDI (Ma et al. 2019, "Efficient
dynamic discovery of high-value information with partial VAE", arXiv 1809.11142).

This file needs PyTorch only, and no other file of the kit, because it goes into the zip to upload.
"""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

WEIGHTS = "model_task_4.pt"

# The settings were chosen by cross-validation over training students.
# A question that may not be asked counts as a hidden answer if the student answered it with more
# than this probability.
_MIN_PROBABILITY = 0.3
# If there are fewer likely hidden answers than this share of the askable ones, the model concludes
# that the rules let targets be asked.
_MAX_SHARE_HIDDEN = 0.05
# Share of a logit's variance that later answers are expected to remove, however many are left.
_RESOLUTION = 0.5
# Smallest variance of the mean logit's future moves (`select`).
_MIN_SPREAD = 0.05
# If targets may be asked: weight, in the reward of a question (`select`), of the chance that its
# own answer would be predicted wrongly.
_OWN_UNCERTAINTY = 20.0


@dataclass(frozen=True)
class Model:
    """The learned parameters: float32, for Q questions and k latent dimensions."""

    # The decoder: P(right) = guessing + (1 − guessing) sigmoid(loading · z + intercept). Intercepts
    # have the shape (Q,) and loadings (Q, k). `guessing` is the probability, shape (), that a
    # student who does not know an answer guesses it.
    intercept: Tensor
    loading: Tensor
    guessing: Tensor
    # The encoder: what an answer adds to the sum of scores, and to that of precisions, shape
    # (Q, 2, k) each. Index 0 of the second axis is a wrong answer, index 1 a right one.
    score: Tensor
    precision: Tensor
    # Precision of z before any answer, shape (k,).
    prior_precision: Tensor
    # The mean of z before any answer is (m − mask_mean) @ mask_weights. Here m is the student's
    # answered mask, 1 answered and 0 not, divided by the root of the number of answers. Shapes (Q,)
    # and (Q, k).
    mask_mean: Tensor
    mask_weights: Tensor
    # If a fifth of the answers is hidden, visible mask @ completion estimates the probability that
    # the student answered each question. Shape (Q, Q). All 0: do not look for hidden answers.
    completion: Tensor

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        torch.save(asdict(self), folder / WEIGHTS)

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        return Model(**torch.load(folder / WEIGHTS, map_location="cpu", weights_only=True))

    def pad_questions(self, n_questions: int) -> "Model":
        """Return the model for another number of questions.

        Questions beyond that number are cut off. A new question has the mean intercept. Its answer
        tells nothing, and no other answer tells anything about it.
        """
        # `pad` takes a pair of numbers for each axis, the last axis first. A negative one cuts.
        n_new = n_questions - len(self.intercept)
        return replace(
            self,
            intercept=pad(self.intercept, (0, n_new), value=float(self.intercept.mean())),
            loading=pad(self.loading, (0, 0, 0, n_new)),
            score=pad(self.score, (0, 0, 0, 0, 0, n_new)),
            precision=pad(self.precision, (0, 0, 0, 0, 0, n_new)),
            mask_mean=pad(self.mask_mean, (0, n_new)),
            mask_weights=pad(self.mask_weights, (0, 0, 0, n_new)),
            completion=pad(self.completion, (0, n_new, 0, n_new)),
        )


class StudentPosterior:
    """The posterior distribution of S students, who are asked together.

    Parameters
    ----------
    model
        The model, of Q questions.
    answered_mask
        Which answers of each student may be asked or have been revealed, bool, shape (S, Q). All
        False if this is not known.
    """

    def __init__(self, model: Model, answered_mask: Tensor) -> None:
        self.model = model
        # An entry for each call of `observe`: which students, which questions, right or wrong.
        self._observed: list[tuple[Tensor, Tensor, Tensor]] = []

        likely_hidden = self._likely_hidden(answered_mask)
        # With almost no hidden answers, the targets must be among the answers that may be asked.
        self._targets_may_be_asked = bool(
            model.completion.any() and likely_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        )
        if self._targets_may_be_asked:
            likely_hidden[:] = 0
        # Probability that the answer is a target and not yet known, shape (S, Q). It is not
        # normalised: only the ratios within a student count. For a student without likely targets,
        # all askable questions get the same probability.
        has_targets = likely_hidden.any(dim=1, keepdim=True)
        self._target_weight = torch.where(has_targets, likely_hidden, answered_mask.float())

        # Sums of precisions and of scores, shape (S, k) each.
        self._precision = model.prior_precision.repeat(len(answered_mask), 1)
        prior_mean = self._prior_mean(answered_mask | (likely_hidden > 0.5))
        self._score = prior_mean * self._precision

    def _likely_hidden(self, answered_mask: Tensor) -> Tensor:
        """Return the probability that an answer exists but is hidden.

        It is 0 where it would be at most `_MIN_PROBABILITY`.
        """
        completed = answered_mask.float() @ self.model.completion
        probability = torch.where(answered_mask, 0.0, completed)
        return probability.clamp(max=1) * (probability > _MIN_PROBABILITY)

    def _prior_mean(self, answered_mask: Tensor) -> Tensor:
        """Return the mean of z to be expected from the answered mask, shape (S, k)."""
        answered = answered_mask.float()
        count = answered.sum(dim=1, keepdim=True)
        # An empty mask stands for an unknown one. The mean mask in its place has no effect.
        mask_mean = self.model.mask_mean
        # The m in the comment on `Model.mask_mean`.
        scaled = torch.where(count > 0, answered / count.clamp(min=1).sqrt(), mask_mean)
        return (scaled - mask_mean) @ self.model.mask_weights

    def observe(self, student: Tensor, question: Tensor, is_right: Tensor) -> None:
        """Learn from answers.

        Parameters
        ----------
        student
            The students' rows, shape (answers,).
        question
            The questions' columns, shape (answers,).
        is_right
            1 for a right and 0 for a wrong answer, int64, shape (answers,).
        """
        self._observed.append((student, question, is_right))
        # The answers are known now and need not be predicted.
        self._target_weight[student, question] = 0
        self._precision.index_add_(0, student, self.model.precision[question, is_right])
        self._score.index_add_(0, student, self.model.score[question, is_right])

    def logits(self) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the logits, each of shape (S, Q)."""
        variance = 1 / self._precision
        mean = (self._score * variance) @ self.model.loading.T + self.model.intercept
        return mean, variance @ self.model.loading.square().T

    def predict(self) -> Tensor:
        """Return P(right), shape (S, Q), with 1 (right) or 0 (wrong) for known answers."""
        prediction = decode(*self.logits(), self.model.guessing)
        for student, question, is_right in self._observed:
            prediction[student, question] = is_right.to(prediction.dtype)
        return prediction

    def select(self, askable: Tensor) -> Tensor:
        """Select for every student the question with the largest information reward.

        Parameters
        ----------
        askable
            Which questions may be asked, bool, shape (S, Q).

        Returns
        -------
        Tensor of int64, shape (S,)
            A column for each student, 0 for students who may not be asked anything.

        Notes
        -----
        `information_reward` weighs each question by the probability that it is a target, times a
        density at the boundary where P(right) = ½: that of the question's mean logit after later
        answers, as far as it can be foreseen. Only at the boundary does better knowledge of a logit
        change the prediction. If targets may be asked, the chance that the prediction for the asked
        question is wrong is added: once it has been asked, its prediction is certainly right.
        """
        model = self.model
        mean, variance = self.logits()
        right = decode(mean, variance, model.guessing)
        # P(right) = ½ where sigmoid(x) = (0.5 − guessing) / (1 − guessing).
        boundary = torch.log((0.5 - model.guessing) / 0.5)
        # How far the mean logit may still move, as a variance.
        spread = _RESOLUTION * variance + _MIN_SPREAD
        density = torch.exp(-((mean - boundary) ** 2) / (2 * spread)) / spread.sqrt()
        weight = self._target_weight * density

        selected = torch.zeros(len(askable), dtype=torch.int64)
        for row in askable.any(dim=1).nonzero()[:, 0]:
            questions = askable[row].nonzero()[:, 0]
            targets = weight[row].nonzero()[:, 0]
            # How a wrong and a right answer to each question would move the mean of z.
            score = self._score[row] + model.score[questions]
            precision = self._precision[row] + model.precision[questions]
            move = score / precision - self._score[row] / self._precision[row]
            p = right[row, questions]
            value = information_reward(move, p, model.loading[targets], weight[row, targets])
            if self._targets_may_be_asked:
                value += _OWN_UNCERTAINTY * torch.minimum(p, 1 - p)
            selected[row] = questions[value.argmax()]
        return selected


def decode(mean: Tensor, variance: Tensor, guessing: Tensor) -> Tensor:
    """Return P(right) for Gaussian logits: E[sigmoid(x)] by MacKay's approximation (1992)."""
    knows = torch.sigmoid(mean / torch.sqrt(1 + (math.pi / 8) * variance))
    return guessing + (1 - guessing) * knows


def information_reward(move: Tensor, right: Tensor, loading: Tensor, weight: Tensor) -> Tensor:
    """Return the expected reward of each question's answer, shape (questions,).

    The reward is the information about z that the answer shares with the answers to the targets.

    Parameters
    ----------
    move
        How a wrong (index 0) and a right answer (index 1) to each question move the mean of z,
        shape (questions, 2, k).
    right
        P(right) of each question, shape (questions,).
    loading
        Loadings of the targets, shape (targets, k).
    weight
        Weights of the targets, shape (targets,).

    Notes
    -----
    With x_o the known answers, x_i the answer and x_φ the answers to the targets, EDDI's reward is

        E KL(p(z | x_i, x_o) ‖ p(z | x_o)) − E KL(p(z | x_φ, x_i, x_o) ‖ p(z | x_φ, x_o)).

    If the targets are taken one at a time and their weights are small, this is about

        ½ E Σ weight (loading · move)² (2 r − 1),

    summed over the targets. Here (loading · move) is how far the answer moves the logit of the
    target, and r is the variance of z after the answer divided by that before, which is near 1.
    This function takes r = 1, which scored higher.
    """
    gain = 0.5 * (move @ loading.T).square() @ weight
    return gain[:, 0] * (1 - right) + gain[:, 1] * right
