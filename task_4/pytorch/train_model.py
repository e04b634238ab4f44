"""Task 4, partial VAE: learn to predict a student's answers from a few of them.

The folder has the name that the challenge's guide gives to this model.

Run:     python task_4/pytorch/train_model.py --local     learn from the local split
         python task_4/pytorch/local_evaluation.py        score that
         python task_4/pytorch/train_model.py             learn from all training students
         python task_4/package.py task_4/pytorch          write the zip to upload
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  task_4/pytorch/model_task_4.pt
Scores:  accuracy 0.6966 (0.7277 if targets may be asked), mean of the ten public masks; learned
         from right and wrong answers of 1,170 training students in two files (--more_train_data)

The encoder turns the known answers of a student into a Gaussian over the latent vector z. The
decoder turns z into the probability of a right answer to any question. The usual training of a VAE
shows all answers, hundreds for each student, but in the game at most ten answers are known.
Therefore this training shows about half a dozen answers of most students. Instead of the evidence
lower bound, it maximises the log likelihood of the other answers, averaged over z.
"""

import argparse
from pathlib import Path

from common import cli
from common.adam import Adam
from common.adaptive import answered_mask, training
from common.arrays import FloatArray

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR
from tqdm import trange

from model import Model, decode

PACKAGE = Path(__file__).parent

# The settings were chosen by cross-validation over training students.
# Dimensions of z for abilities.
N_DIMENSIONS = 3
# Further dimensions of z, for quiz effects: what the questions of a quiz have in common.
N_QUIZZES = 64
# Probability that a student who does not know an answer guesses it right.
GUESSING = torch.tensor(0.2)
# A student may do better or worse than usual in a whole quiz. The logits of its questions then
# change by a quiz effect, which has this variance.
QUIZ_VARIANCE = 0.8
# Questions that the same students answer are probably in the same quiz. The similarity of two
# questions, from 0 to 1, says how often students answer both (`count_together`). The correlation
# between the quiz effects of two questions is similarity ** QUIZ_POWER.
QUIZ_POWER = 6
N_STEPS = 300
# Students in a batch.
BATCH_SIZE = 256
# The learning rate rises to this number, then it falls (`OneCycleLR`).
LEARNING_RATE = 0.02
# In training, as in a test, the encoder sees only some answers of each student. Their number is
# drawn at random, at most about this number.
MAX_SHOWN = 12
# For this share of the students, drawn at random, the encoder sees most answers: all but about the
# share `answered_mask.HIDDEN_SHARE`.
SHARE_SHOWING_ALL = 0.2
# Precision (1 / variance) of the Gaussian prior of a question's loadings.
LOADING_PRECISION = 20.0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = training.training_parser(__doc__)
    cli.add_number(parser, "--seed", 0, "seed of the random start and the batches")
    return parser


def main() -> None:
    """Read the training answers, fit the model, save its weights."""
    options = build_parser().parse_args()
    answers, n_questions = training.read_training(*training.training_paths(options))

    model = fit(answers, n_questions, options.seed)
    # Record the UserIds of the training students: the evaluation refuses to examine these students.
    with training.replace_weights(PACKAGE, answers["UserId"].to_numpy()) as folder:
        model.save(folder)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


# ---- The model: replace this block by your own. ------------------------------------------------


def fit(answers: pd.DataFrame, n_questions: int, seed: int = 0) -> Model:
    """Train the partial VAE, and learn what the answered mask tells about a student.

    The answered mask says which questions a student has answered. After the training, two
    regressions on the mask are fitted. One predicts the latent vector z (`mask_mean` and
    `mask_weights`). The other one predicts which further questions have hidden answers
    (`completion`).

    Parameters
    ----------
    answers
        UserId, QuestionId and IsCorrect of each answer.
    n_questions
        The number of questions; all QuestionIds are smaller.
    seed
        Seed of the random start, of the batches and of the answers shown.
    """
    # The steps are so short that more threads would only wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    student_ids, student = np.unique(answers["UserId"], return_inverse=True)
    # `answered` is 1 where a student answered a question, `right` where the answer is right.
    answered = np.zeros((len(student_ids), n_questions), np.float32)
    right = np.zeros((len(student_ids), n_questions), np.float32)
    right[student, answers["QuestionId"]] = answers["IsCorrect"]
    answered[student, answers["QuestionId"]] = 1
    together, similarity = answered_mask.count_together(answered)
    quiz_covariance = QUIZ_VARIANCE * similarity**QUIZ_POWER
    quiz_loadings = factorise(quiz_covariance, N_QUIZZES)

    network = PartialVAE(torch.tensor(right), torch.tensor(answered), torch.tensor(quiz_loadings))
    train(network, torch.tensor(right), torch.tensor(answered))
    with torch.no_grad():
        latent, _ = network.encode(torch.tensor(right), torch.tensor(answered - right))
        # The answered mask tells which quizzes a student took, but not whether the student did well
        # in them. So the regression on the mask predicts 0 for the quiz dimensions of z.
        latent[:, N_DIMENSIONS:] = 0
        mask_mean, mask_weights = answered_mask.fit_latent(answered, latent.numpy())
        score, precision = network.evidence()
        return Model(
            intercept=network.intercept.clone(),
            loading=network.loading.clone(),
            guessing=GUESSING,
            score=score,
            precision=precision,
            prior_precision=network.log_precision.exp(),
            mask_mean=torch.tensor(mask_mean),
            mask_weights=torch.tensor(mask_weights),
            completion=torch.tensor(answered_mask.fit_completion(together)),
        )


def factorise(covariance: FloatArray, n_factors: int) -> FloatArray:
    """Approximate a covariance (questions, questions) by F Fᵀ; return F (questions, factors).

    This is a pivoted Cholesky decomposition with at most `n_factors` factors. Each factor belongs
    to the question with the largest variance that earlier factors leave unexplained. It explains
    the rest of this variance, and a part of the variance of questions that correlate with this
    question, such as the other questions of the quiz.
    """
    factors = np.zeros((len(covariance), 0), np.float32)
    # The part of the variance of each question that the factors do not explain yet.
    unexplained = np.diagonal(covariance).copy()
    # A variance up to 1e-3 is small enough to stay unexplained.
    while factors.shape[1] < n_factors and unexplained.max() > 1e-3:
        pivot = unexplained.argmax()
        # The covariances of all questions with the pivot question, without the part that earlier
        # factors explain.
        factor = covariance[:, pivot] - factors @ factors[pivot]
        # Scale the factor so that its square explains the rest of the variance of this question.
        factor = factor / np.sqrt(unexplained[pivot])
        factors = np.column_stack([factors, factor])
        unexplained -= factor**2
    return factors


class PartialVAE(nn.Module):
    """The decoder and the encoder, with the names of `Model`.

    The encoder is Bayes' rule for the average student: an answer adds the slope of its log
    likelihood to the sum of scores, and the curvature to the sum of precisions. This is not exact:
    the dimensions of z depend on each other, and students are not average. Learned multipliers of
    each dimension make up for these errors.

    Parameters
    ----------
    right, answered
        1.0 where a student answered a question correctly, and where a student answered it, shape
        (students, questions).
    quiz_loadings
        Prior means of the loadings of the quiz dimensions, shape (questions, quizzes).
    """

    def __init__(self, right: Tensor, answered: Tensor, quiz_loadings: Tensor) -> None:
        """Set the initial parameters of the decoder and of the encoder.

        The intercept of each question comes from the students' answers, `right` and `answered`. The
        loadings of the quiz dimensions start at `quiz_loadings`.
        """
        super().__init__()
        # Start each question's intercept from its rate of right answers. Four extra answers at the
        # overall rate keep the rate of a question with few answers near the overall rate.
        overall_rate = right.sum() / answered.sum()
        rate = (right.sum(0) + 4 * overall_rate) / (answered.sum(0) + 4)
        # rate = GUESSING + (1 − GUESSING) · knows, where `knows` is the rate without guessing.
        knows = (rate - GUESSING) / (1 - GUESSING)
        self.intercept = nn.Parameter(knows.clamp(0.03, 0.97).logit())
        # The first dimension of z starts as the general ability: all questions have loadings near
        # 1.2. In the other dimensions of ability, the loadings start near 0.
        ability_loadings = 0.1 * torch.randn(len(rate), N_DIMENSIONS)
        ability_loadings[:, 0] += 1.2
        # Keep the initial loadings of the quiz dimensions: `penalty` compares the learned ones with
        # them.
        self.quiz_loadings = quiz_loadings
        self.loading = nn.Parameter(torch.cat([ability_loadings, quiz_loadings], dim=1))
        # Logarithm of the precision of z before any answer.
        self.log_precision = nn.Parameter(torch.zeros(self.loading.shape[1]))
        # `evidence` multiplies its scores and precisions by learned numbers, which start at 1. The
        # parameters are the logarithms of these numbers. Row 0 is for wrong answers, row 1 for
        # right answers.
        self.log_score_multiplier = nn.Parameter(torch.zeros(2, self.loading.shape[1]))
        self.log_precision_multiplier = nn.Parameter(torch.zeros(2, self.loading.shape[1]))

    def evidence(self) -> tuple[Tensor, Tensor]:
        """Return the scores and the precisions of all answers, each of shape (Q, 2, dimensions).

        `encode` adds up the scores and the precisions of a student's answers. The mean of the
        student's latent vector z is the sum of the scores divided by the sum of the precisions. The
        variance of z is 1 divided by the sum of the precisions. Index 0 of the second axis is a
        wrong answer, index 1 a right one.
        """
        # For the average student, z = 0, so the logit is the intercept.
        knows = self.intercept.sigmoid()
        right = GUESSING + (1 - GUESSING) * knows
        # Derivative of P(right) with respect to the logit.
        slope = (1 - GUESSING) * knows * (1 - knows)
        # The score is the derivative of the log likelihood of the answer, log(1 - right) or
        # log(right), with respect to z. It is the derivative with respect to the logit, times the
        # loading.
        log_likelihood_slope = torch.stack([-slope / (1 - right), slope / right], dim=1)
        score = log_likelihood_slope[:, :, None] * self.loading[:, None]
        # Fisher information of an answer about its logit, shape (Q,), and from it about each
        # dimension of z, shape (Q, dimensions).
        information_about_logit = slope**2 / (right * (1 - right))
        information = information_about_logit[:, None] * self.loading**2
        # Where a loading is 0, the information is 0. Adding 1e-4 keeps the precision above 0 there.
        precision = (information[:, None] + 1e-4) * self.log_precision_multiplier.exp()
        return score * self.log_score_multiplier.exp(), precision

    def encode(self, right: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor]:
        """Return the posterior of z, the latent vector of each student, given known answers.

        The dimensions of z are treated as independent Gaussians. Their means and their variances
        are returned, each of shape (students, dimensions).

        `right` is 1.0 where a student's answer to a question is known and right, `wrong` where it
        is known and wrong. All other elements are 0.0. Both have the shape (students, Q).
        """
        score, precision = self.evidence()
        prior_precision = self.log_precision.exp()
        total_precision = prior_precision + wrong @ precision[:, 0] + right @ precision[:, 1]
        total_score = wrong @ score[:, 0] + right @ score[:, 1]
        return total_score / total_precision, 1 / total_precision

    def forward(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Return P(right), shape (students, Q), given the known answers in the form of `encode`."""
        mean, variance = self.encode(right, wrong)
        logit = mean @ self.loading.T + self.intercept
        return decode(logit, variance @ self.loading.T**2, GUESSING)

    def penalty(self) -> Tensor:
        """Return the penalty of the loadings: minus their log prior density, plus a constant.

        The prior is Gaussian. In a dimension of ability, the prior mean of every loading is the
        mean of the loadings of all questions. In the quiz dimensions, the prior means are
        `quiz_loadings`.
        """
        abilities, quizzes = self.loading.tensor_split([N_DIMENSIONS], dim=1)
        deviation = torch.cat([abilities - abilities.mean(0), quizzes - self.quiz_loadings], dim=1)
        return 0.5 * LOADING_PRECISION * deviation.square().sum()


def train(network: PartialVAE, right: Tensor, answered: Tensor) -> None:
    """Train a network to predict a student's hidden answers from some shown answers.

    In every step, some answers of each student in a batch are drawn at random and shown to the
    encoder. The loss is the mean log loss of the predictions of the other answers, the hidden ones.

    `right` is 1 where a student's answer is right, `answered` is 1 where the student has answered.
    Both have the shape (students, questions).
    """
    optimiser = Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
    # The learning rate rises to `LEARNING_RATE` in the first 5 % of the steps, then it falls.
    schedule = OneCycleLR(optimiser, LEARNING_RATE, N_STEPS, pct_start=0.05)
    for _ in trange(N_STEPS, desc="training", disable=None):
        batch = torch.randperm(len(right))[:BATCH_SIZE]
        is_right = right[batch]
        known = answered[batch]
        # Show each answer of a student with the probability `share`, so that about `n_to_show`
        # answers are shown. As in the game, this is a small number, at most `MAX_SHOWN`.
        n_to_show = MAX_SHOWN * torch.rand(len(batch), 1)
        share = n_to_show / known.sum(dim=1, keepdim=True)
        # For some students, show as many answers as allowed below, so that the network learns from
        # more of the data.
        share[torch.rand(len(batch)) < SHARE_SHOWING_ALL] = 1
        # For every student, hide at least about the share `HIDDEN_SHARE` of the answers. In the
        # game, this share of the answers are targets.
        share = share.clamp(max=1 - answered_mask.HIDDEN_SHARE)
        shown = known * (torch.rand_like(known) < share)
        hidden = known - shown
        shown_right = shown * is_right
        shown_wrong = shown * (1 - is_right)
        # The bounds keep the logarithms in the loss finite.
        p_right = network(shown_right, shown_wrong).clamp(1e-5, 1 - 1e-5)
        # Probability of the answer that the student really gave.
        p_answer = torch.where(is_right == 1, p_right, 1 - p_right)
        loss = -(hidden * p_answer.log()).sum() / hidden.sum()
        optimiser.zero_grad()
        # The penalty comes from one prior for all answers together. The loss is a mean over the
        # answers, so the penalty is divided by their number.
        (loss + network.penalty() / answered.sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


# ---- End of the model. -------------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(main)
