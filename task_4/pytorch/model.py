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
# The answered mask marks the questions that a student may be asked. The student may also have
# hidden answers to other questions. The model estimates how probable a hidden answer to each
# question is, and replaces probabilities up to this number by 0.
_MIN_PROBABILITY = 0.3
# The *targets* are the answers that the model has to predict in the game. By most rules, they are
# hidden. If the rules allow asking them, they are in the answered mask instead. The model concludes
# that the rules allow it if it finds almost no hidden answers: if their expected number is below
# this share of the number of answers in the mask.
_MAX_SHARE_HIDDEN = 0.05
# `_weight` assumes that the answers of later rounds remove this share of a logit's variance,
# however many rounds are left.
_RESOLUTION = 0.5
# The answers of later rounds will move the estimated mean of a logit, by an amount that is not
# known now. `_weight` assumes that this amount has at least this variance.
_MIN_SPREAD = 0.05
# If a target may be asked, asking it reveals the answer, and no prediction for it can be wrong any
# more. So `select` adds a term to the value of asking a question: this number times the probability
# that the prediction for the question would otherwise be wrong.
_OWN_UNCERTAINTY = 20.0


@dataclass(frozen=True)
class Model:
    """The learned parameters: float32, for Q questions and a latent vector z of k dimensions."""

    # The decoder: P(right) = guessing + (1 − guessing) sigmoid(loading · z + intercept). Intercepts
    # have the shape (Q,) and loadings (Q, k). `guessing` is the probability, shape (), that a
    # student who does not know an answer guesses it right.
    intercept: Tensor
    loading: Tensor
    guessing: Tensor
    # The encoder: every answer adds its score and its precision to two sums, and the mean of z is
    # the sum of the scores divided by the sum of the precisions. The shapes are (Q, 2, k). Index 0
    # of the second axis is a wrong answer, index 1 a right one.
    score: Tensor
    precision: Tensor
    # Precision (1 / variance) of z before any answer, shape (k,).
    prior_precision: Tensor
    # A linear regression predicts a student's z from which questions the student has answered,
    # whether right or wrong. The *answered mask* is 1 for answered questions and 0 for others. The
    # *scaled mask* is the answered mask divided by the square root of its sum. The mean of z before
    # any answer is (scaled mask − mask_mean) @ mask_weights.
    # Mean of the training students' scaled masks, shape (Q,).
    mask_mean: Tensor
    # Coefficients of this regression, shape (Q, k).
    mask_weights: Tensor
    # Coefficients of another linear regression, shape (Q, Q). The answered mask lacks the student's
    # hidden answers. This regression predicts from the mask the probability that the student has
    # answered each question, hidden or not: answered mask @ completion. It assumes that a fifth of
    # a student's answers is hidden. If all coefficients are 0, the model does not look for hidden
    # answers.
    completion: Tensor

    def save(self, folder: Path) -> None:
        """Write the weights to a folder."""
        torch.save(asdict(self), folder / WEIGHTS)

    @staticmethod
    def load(folder: Path) -> "Model":
        """Read the weights from a folder."""
        return Model(**torch.load(folder / WEIGHTS, map_location="cpu", weights_only=True))

    def pad_questions(self, n_questions: int) -> "Model":
        """Return a copy of the model that has `n_questions` questions.

        If the model has more questions, the last ones are cut off. If it has fewer, new questions
        get the mean intercept. The logit of a new question is the same for all students, so its
        answer tells nothing about other questions, and their answers tell nothing about it.
        """
        # `pad` takes two numbers for each axis, beginning with the last axis: how many entries to
        # add before and after the array. A negative number cuts entries off: `n_new` is negative if
        # questions are cut off.
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
        False if this is not known. By some rules the mask holds the targets, which are to be
        predicted; by other rules the targets are outside the mask.
    """

    def __init__(self, model: Model, answered_mask: Tensor) -> None:
        """Set the distribution before any answer, which depends on the answered mask.

        The *targets* are those answers of a student that the model has to predict in the game. The
        game does not tell the model which answers these are. By most rules, the targets are hidden:
        they may not be asked, they are outside the answered mask, and the model estimates where
        they are. By other rules, the targets may be asked, so they are in the mask.
        """
        self.model = model
        # An entry for each call of `observe`: which students, which questions, right or wrong.
        self._observed: list[tuple[Tensor, Tensor, Tensor]] = []

        # The probability that a student has a hidden answer to a question, shape (S, Q).
        p_hidden = self._hidden_probability(answered_mask)
        # Every student has targets. By most rules, they are hidden and lie outside the answered
        # mask. So if the model looks for hidden answers and finds almost none, the targets must lie
        # inside the mask. A model whose `completion` is 0 does not look for hidden answers.
        looks_for_hidden = model.completion.any()
        finds_few = p_hidden.sum() < _MAX_SHARE_HIDDEN * answered_mask.sum()
        self._targets_may_be_asked = bool(looks_for_hidden and finds_few)
        if self._targets_may_be_asked:
            p_hidden[:] = 0
        # How probable it is that the answer is a target and not yet known, shape (S, Q). The rows
        # need not sum to 1, because `select` compares only the questions of the same student. A
        # student's targets are the hidden answers. If the model finds no hidden answer of a
        # student, all answers in the student's mask are equally likely to be targets.
        has_hidden = p_hidden.any(dim=1, keepdim=True)
        self._target_weight = torch.where(has_hidden, p_hidden, answered_mask.float())

        # Each student has a sum of precisions and a sum of scores, of shape (S, k) each, to which
        # every answer adds. The mean of the latent vector z is the sum of scores divided by the sum
        # of precisions. The sums start from the mean and the precision before any answer.
        self._precision = model.prior_precision.repeat(len(answered_mask), 1)
        # The mean of z before any answer depends on which questions the student has answered. These
        # are the questions in the mask and the questions whose answers are probably hidden.
        probably_answered = answered_mask | (p_hidden > 0.5)
        prior_mean = self._prior_mean(probably_answered)
        self._score = prior_mean * self._precision

    def _hidden_probability(self, answered_mask: Tensor) -> Tensor:
        """Return how probable a hidden answer of each student to each question is, shape (S, Q).

        A hidden answer is an answer to a question outside the answered mask, so questions in the
        mask get 0. Probabilities up to `_MIN_PROBABILITY` are replaced by 0.
        """
        p_answered = answered_mask.float() @ self.model.completion
        p_hidden = torch.where(answered_mask, 0.0, p_answered)
        return p_hidden.clamp(max=1) * (p_hidden > _MIN_PROBABILITY)

    def _prior_mean(self, answered_mask: Tensor) -> Tensor:
        """Predict each student's mean of z, (S, k), from which questions the student answered."""
        answered = answered_mask.float()
        count = answered.sum(dim=1, keepdim=True)
        scaled_mask = answered / count.clamp(min=1).sqrt()
        # If the mask is empty, nobody knows which questions the student has answered: the mean of z
        # is then 0.
        mask_mean = self.model.mask_mean
        scaled_mask = torch.where(count > 0, scaled_mask, mask_mean)
        return (scaled_mask - mask_mean) @ self.model.mask_weights

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
            The question selected for each student, as a column of `askable`; 0 for students who may
            not be asked anything.

        Notes
        -----
        The reward says how far the answer is expected to move the logits of the targets
        (`information_reward`). The weight of a target says how much a better known logit should
        improve the predictions (`_weight`).

        If targets may be asked, asking a question makes its prediction certain. So the probability
        that this prediction would otherwise be wrong is added, times `_OWN_UNCERTAINTY`.
        """
        model = self.model
        mean, variance = self.logits()
        right = decode(mean, variance, model.guessing)
        weight = self._weight(mean, variance)

        selected = torch.zeros(len(askable), dtype=torch.int64)
        for row in askable.any(dim=1).nonzero()[:, 0]:
            questions = askable[row].nonzero()[:, 0]
            targets = weight[row].nonzero()[:, 0]
            # The student has a sum of scores and a sum of precisions, and their ratio is the mean
            # of the latent vector z. One more answer changes the sums. Try a wrong answer (index 0
            # of the second axis) and a right one (index 1) to each question. `move` says how the
            # mean of z would move. The shapes are (questions, 2, k).
            new_score = self._score[row] + model.score[questions]
            new_precision = self._precision[row] + model.precision[questions]
            move = new_score / new_precision - self._score[row] / self._precision[row]
            p_right = right[row, questions]
            # How far the answer to each question is expected to move the logits of the targets.
            reward = information_reward(move, p_right, model.loading[targets], weight[row, targets])
            if self._targets_may_be_asked:
                reward += _OWN_UNCERTAINTY * torch.minimum(p_right, 1 - p_right)
            selected[row] = questions[reward.argmax()]
        return selected

    def _weight(self, mean: Tensor, variance: Tensor) -> Tensor:
        """Return how much a better known logit should improve the predictions, shape (S, Q).

        A better known logit helps only if it can change the prediction, that is, if the mean logit
        can cross the boundary where P(right) = ½. Later answers of the student will move the mean
        logit. Its value after these answers is assumed to be normal around its present value. The
        variance (`spread`) is a rule of thumb: a share of the logit's variance. The weight is the
        density of this distribution at the boundary, times the probability that the question is a
        target.

        `mean` and `variance` are the mean and the variance of the logits, as `logits` returns them.
        """
        # At the boundary, P(right) = guessing + (1 − guessing) sigmoid(x) is ½. Solved for the odds
        # of knowing the answer, exp(x), this gives (½ − guessing) / ½.
        boundary = torch.log((0.5 - self.model.guessing) / 0.5)
        spread = _RESOLUTION * variance + _MIN_SPREAD
        density = torch.exp(-((mean - boundary) ** 2) / (2 * spread)) / spread.sqrt()
        return self._target_weight * density


def decode(mean: Tensor, variance: Tensor, guessing: Tensor) -> Tensor:
    """Return P(right) for logits with a Gaussian distribution.

    The mean of sigmoid(logit) is computed by MacKay's approximation (1992).
    """
    knows = torch.sigmoid(mean / torch.sqrt(1 + (math.pi / 8) * variance))
    return guessing + (1 - guessing) * knows


def information_reward(move: Tensor, right: Tensor, loading: Tensor, weight: Tensor) -> Tensor:
    """Return what each question's answer is expected to tell about the targets, shape (questions,).

    This approximates EDDI's reward: the information about the latent vector z that the answer
    shares with the answers to the targets.

    Parameters
    ----------
    move
        How a wrong (index 0) and a right answer (index 1) to each question move the mean of the
        latent vector z, shape (questions, 2, k).
    right
        P(right) of each question, shape (questions,).
    loading
        Loadings of the targets, shape (targets, k).
    weight
        Weights of the targets, shape (targets,).

    Notes
    -----
    Let x_o be the known answers, x_i the answer to the question, and x_φ the answers to the
    targets. EDDI's reward is the expected difference of two Kullback-Leibler divergences,

        E KL(p(z | x_i, x_o) ‖ p(z | x_o)) − E KL(p(z | x_φ, x_i, x_o) ‖ p(z | x_φ, x_o)).

    If the targets are taken one at a time and their weights are small, the reward is about

        ½ E Σ weight (loading · move)² (2 r − 1),

    where the sum is over the targets, and E is the mean over a wrong and a right answer. Here
    (loading · move) is how far the answer moves the logit of the target, and r is the variance of z
    after the answer divided by the variance before the answer. This function takes r = 1, which
    scored higher; r is near 1 in any case.
    """
    # How far a wrong and a right answer move the targets' logits, shape (questions, 2, targets).
    logit_move = move @ loading.T
    gain = 0.5 * logit_move.square() @ weight
    return gain[:, 0] * (1 - right) + gain[:, 1] * right
