"""Task 4, partial VAE: learn the questions, and to judge students by a few answers.

Run:     python task_4/pytorch/train_model.py --local     learn from the local split
         python task_4/pytorch/local_evaluation.py        score that
         python task_4/pytorch/train_model.py             learn from all training students
         python task_4/package.py task_4/pytorch          write the zip to upload
Writes:  task_4/pytorch/model_task_4.pt
Scores:  0.6966 (0.7277 where targets may be asked) with the right and wrong answers of 1,170
         training students, from two files (--more_train_data), mean of the ten public masks

The encoder turns the answers known of a student into a Gaussian over the latent vector z, the
decoder turns z into the probability of a right answer to any question. Both learn by playing, for
in the game ten answers are known, not hundreds as in the usual training of a VAE: of most students
about half a dozen answers are shown, and instead of the evidence lower bound the log likelihood of
the others, z integrated out, is maximised.
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

# Chosen by cross-validation over training students.
N_DIMENSIONS, GUESSING = 3, torch.tensor(0.2)
# Further dimensions for quizzes: how many, the variance of their effects, and the power that makes
# the similarity of questions fall off.
N_QUIZZES, QUIZ_VARIANCE, QUIZ_POWER = 64, 0.8, 6
N_STEPS, BATCH_SIZE, LEARNING_RATE = 300, 256, 0.02
# Most students show at most so many answers; this share shows nearly all.
MAX_SHOWN, SHARE_SHOWING_ALL = 12, 0.2
# Precision of the Gaussian prior of a question's loadings.
LOADING_PRECISION = 20.0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = training.training_parser(__doc__)
    cli.add_number(parser, "--seed", 0, "another random start")
    return parser


def main() -> None:
    """Load, train, write."""
    options = build_parser().parse_args()
    answers, n_questions = training.read_training(*training.training_paths(options))

    model = fit(answers, n_questions, options.seed)
    with training.replace_weights(PACKAGE, answers["UserId"].to_numpy()) as folder:
        model.save(folder)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


# ---- The model: replace this block by your own. ------------------------------------------------


def fit(answers: pd.DataFrame, n_questions: int, seed: int = 0) -> Model:
    """Learn from right and wrong answers; all QuestionIds are below `n_questions`."""
    torch.set_num_threads(1)  # The steps are so short that several would wait for each other.
    torch.manual_seed(seed)
    student_ids, student = np.unique(answers["UserId"], return_inverse=True)
    right, answered = np.zeros((2, len(student_ids), n_questions), np.float32)
    right[student, answers["QuestionId"]] = answers["IsCorrect"]
    answered[student, answers["QuestionId"]] = 1
    together, similarity = answered_mask.count_together(answered)
    quizzes = factorise(QUIZ_VARIANCE * similarity**QUIZ_POWER, N_QUIZZES)

    network = PartialVAE(torch.tensor(right), torch.tensor(answered), torch.tensor(quizzes))
    train(network, torch.tensor(right), torch.tensor(answered))
    with torch.no_grad():
        latent, _ = network.encode(torch.tensor(right), torch.tensor(answered - right))
        latent[:, N_DIMENSIONS:] = 0  # Which quizzes were taken says nothing of how they went.
        mask_mean, mask_weights = answered_mask.regress(answered, latent.numpy())
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
            completion=torch.tensor(answered_mask.complete(together)),
        )


def factorise(covariance: FloatArray, n_factors: int) -> FloatArray:
    """Approximate a covariance by F Fᵀ, F (questions, n_factors), by pivoted Cholesky: a factor
    each for the question explained least so far and those like it, in effect for one quiz.
    """
    factors = np.zeros((len(covariance), 0), np.float32)
    rest = np.diagonal(covariance).copy()
    while factors.shape[1] < n_factors and rest.max() > 1e-3:
        pivot = rest.argmax()
        column = (covariance[:, pivot] - factors @ factors[pivot]) / np.sqrt(rest[pivot])
        factors = np.column_stack([factors, column])
        rest -= column**2
    return factors


class PartialVAE(nn.Module):
    """Decoder and encoder; the names are those of `Model`.

    The encoder is Bayes' rule: to the sums of scores and of precisions an answer adds slope and
    curvature of its log likelihood, for the mean student. Learned factors for each dimension make
    up for what is left out: given z, dimensions are not independent, and students are not average.
    """

    def __init__(self, right: Tensor, answered: Tensor, quizzes: Tensor) -> None:
        super().__init__()
        # Rates include four answers at the overall rate.
        rate = (right.sum(0) + 4 * right.sum() / answered.sum()) / (answered.sum(0) + 4)
        knows = (rate - GUESSING) / (1 - GUESSING)
        self.intercept = nn.Parameter(knows.clamp(0.03, 0.97).logit())
        # At first, dimension 1 is ability.
        abilities = 0.1 * torch.randn(len(rate), N_DIMENSIONS) + 1.2 * torch.eye(N_DIMENSIONS)[0]
        self.quizzes = quizzes
        self.loading = nn.Parameter(torch.cat([abilities, quizzes], dim=1))
        self.log_precision = nn.Parameter(torch.zeros(self.loading.shape[1]))
        self.log_score_factor = nn.Parameter(torch.zeros(2, self.loading.shape[1]))
        self.log_precision_factor = nn.Parameter(torch.zeros(2, self.loading.shape[1]))

    def evidence(self) -> tuple[Tensor, Tensor]:
        """Return what a wrong and a right answer add, two tensors of shape (Q, 2, dimensions)."""
        knows = self.intercept.sigmoid()
        right = GUESSING + (1 - GUESSING) * knows
        slope = (1 - GUESSING) * knows * (1 - knows)
        slopes = torch.stack([-slope / (1 - right), slope / right], dim=1)
        score = slopes[:, :, None] * self.loading[:, None]
        information = (slope**2 / (right * (1 - right)))[:, None] * self.loading**2
        precision = (information[:, None] + 1e-4) * self.log_precision_factor.exp()
        return score * self.log_score_factor.exp(), precision

    def encode(self, right: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of z, given 1 for answers that are known, (students, Q)."""
        score, precision = self.evidence()
        total = self.log_precision.exp() + wrong @ precision[:, 0] + right @ precision[:, 1]
        return (wrong @ score[:, 0] + right @ score[:, 1]) / total, 1 / total

    def forward(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Return P(right) for all questions, given the answers that are known, in their shape."""
        mean, variance = self.encode(right, wrong)
        logit = mean @ self.loading.T + self.intercept
        return decode(logit, variance @ self.loading.T**2, GUESSING)

    def penalty(self) -> Tensor:
        """Return the negative log density of the prior of the loadings, up to a constant."""
        abilities, quizzes = self.loading.tensor_split([N_DIMENSIONS], dim=1)
        own = torch.cat([abilities - abilities.mean(0), quizzes - self.quizzes], dim=1)
        return 0.5 * LOADING_PRECISION * own.square().sum()


def train(network: PartialVAE, right: Tensor, answered: Tensor) -> None:
    """Learn to predict students' answers from a few of them; arguments of 0.0 and 1.0."""
    optimiser = Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
    schedule = OneCycleLR(optimiser, LEARNING_RATE, N_STEPS, pct_start=0.05)
    for _ in trange(N_STEPS, desc="training", disable=None):
        batch = torch.randperm(len(right))[:BATCH_SIZE]
        is_right, known = right[batch], answered[batch]
        share = MAX_SHOWN * torch.rand(len(batch), 1) / known.sum(dim=1, keepdim=True)
        share[torch.rand(len(batch)) < SHARE_SHOWING_ALL] = 1
        share = share.clamp(max=1 - answered_mask.HIDDEN_SHARE)
        shown = known * (torch.rand_like(known) < share)
        hidden = known - shown
        p = network(shown * is_right, shown * (1 - is_right)).clamp(1e-5, 1 - 1e-5)
        loss = -(hidden * torch.where(is_right == 1, p, 1 - p).log()).sum() / hidden.sum()
        optimiser.zero_grad()
        (loss + network.penalty() / answered.sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()


# ---- End of the model. -------------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(main)
