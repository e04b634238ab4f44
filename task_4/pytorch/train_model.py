"""Task 4, partial VAE: learn the questions, then learn to judge students by a few answers.

Run:     python task_4/pytorch/train_model.py --local     learn from the local split
         python task_4/pytorch/local_evaluation.py        score that
         python task_4/pytorch/train_model.py             learn from all training students
         python task_4/package.py task_4/pytorch          write the zip to upload
Writes:  task_4/pytorch/model_task_4_partial_vae.pt
Scores:  0.6966 (0.7244 where targets may be asked) with the right and wrong answers of 1,170
         training students, from two files (--more_train_data), mean of the ten public masks

Two steps. The partial VAE of common/models/ learns the decoder from all answers. The game is unlike
its training, though: ten answers of a student are known, not hundreds. So decoder and encoder are
then tuned together by playing it: of each student in a batch, at most a dozen answers are shown,
and the loss is that of predicting the others.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from common import cli
from common.adaptive import answered_mask
from common.adaptive.game import read_training, save_students
from common.answers import Answers
from common.models.partial_vae import PartialVAE

from model import Model, decode

PACKAGE = Path(__file__).parent
FloatArray = npt.NDArray[np.floating[Any]]

# Chosen by cross-validation over training students.
N_DIMENSIONS = 3
GUESSING = 0.2
# Loadings grow by this factor where guessing explains the easy right answers.
GROWTH_BY_GUESSING = 1.3
# Latent dimensions for quizzes: how many, their variance, and the power that makes the similarity
# of questions fall off.
N_QUIZZES, QUIZ_VARIANCE, QUIZ_POWER = 64, 0.8, 6
# Test students have answered this many questions on average, and at least so many.
MEAN_ANSWERS, FEWEST_ANSWERS = 122, 50
# Tuning: steps, students per step, step size of Adam, most answers shown.
N_STEPS, BATCH_SIZE, LEARNING_RATE, MOST_SHOWN = 240, 256, 0.01, 12
# Half of the students are shown answers chosen at random; the others show informative questions
# more often, by this power of the information.
INFORMATION_POWER = 2.0
# Precisions of the Gaussian priors: loadings, intercepts, rows of the encoder around their start.
LOADING_PRECISION, INTERCEPT_PRECISION, EVIDENCE_PRECISION = 20.0, 2.0, 30.0
# Ways to thin out the students' answers, and parts for cross-fitting.
N_PATTERNS, N_PARTS = 12, 5


def main() -> None:
    """Load, train, write."""
    parser = cli.training_parser(__doc__)
    cli.add_more_train_data_flag(parser)
    parser.add_argument(
        "--without_pattern",
        action="store_true",
        help="make no use of which questions a student has answered",
    )
    parser.add_argument(
        "--dimensions",
        type=int,
        metavar="K",
        default=N_DIMENSIONS,
        help=f"latent dimensions, besides those of quizzes (default {N_DIMENSIONS})",
    )
    parser.add_argument(
        "--seed", type=cli.seed, metavar="N", default=0, help="another random start (default 0)"
    )
    options = parser.parse_args()
    answers, n_questions = read_training(cli.training_paths(options))

    model = fit(answers, n_questions, n_dimensions=options.dimensions, seed=options.seed)
    if options.without_pattern:
        model = forget_pattern(model)
    model.save(PACKAGE)

    save_students(PACKAGE, answers.student)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


# ---- The model: replace this block by your own. ------------------------------------------------


def fit(
    answers: Answers, n_questions: int, *, n_dimensions: int = N_DIMENSIONS, seed: int = 0
) -> Model:
    """Learn from right and wrong answers.

    Parameters
    ----------
    answers
        Of the training students.
    n_questions
        Number of columns: the largest QuestionId plus one.
    n_dimensions
        Latent dimensions, besides those of quizzes.
    seed
        Same seed, same model.
    """
    vae = PartialVAE("is_correct", n_dimensions=n_dimensions, seed=seed, device="cpu").fit(answers)
    row = np.searchsorted(vae.student_ids, answers.student)
    shape = len(vae.student_ids), n_questions
    answered, right = np.zeros(shape, bool), np.zeros(shape, bool)
    answered[row, answers.question] = True
    right[row, answers.question] = answers.is_correct == 1

    pattern = answered.astype(np.float32)
    together, similarity = answered_mask.count_together(pattern)
    patterns = PatternMeans.fit(pattern, vae.student_mean, similarity, seed)
    quizzes = factorise(np.float32(QUIZ_VARIANCE) * similarity**QUIZ_POWER, N_QUIZZES)
    network = Network(*decoder_of(vae, n_questions), quizzes, vae.student_mean.mean(axis=0))
    tune(network, torch.from_numpy(answered), torch.from_numpy(right), patterns, seed)
    return network.model(patterns, answered_mask.complete(together))


def decoder_of(vae: PartialVAE, n_questions: int) -> tuple[FloatArray, FloatArray]:
    """Give the decoder of the partial VAE for all columns: logits are intercept + loading · z.

    Returns
    -------
    intercept, loading : arrays of float32, shapes (n_questions,) and (n_questions, k)
        A question without answers has the mean intercept, and loadings 0.
    """
    origin_and_axes = np.eye(vae.n_dimensions + 1, vae.n_dimensions, k=-1, dtype=np.float32)
    probability = vae.decode(origin_and_axes).astype(np.float64)
    logits = np.log(probability / (1 - probability))
    intercept = np.full(n_questions, logits[0].mean(), np.float32)
    loading = np.zeros((n_questions, vae.n_dimensions), np.float32)
    intercept[vae.question_ids] = logits[0]
    loading[vae.question_ids] = (logits[1:] - logits[0]).T
    return intercept, loading


def factorise(covariance: FloatArray, n_factors: int) -> FloatArray:
    """Approximate a covariance by F Fᵀ, with pivoted Cholesky factors.

    Each factor belongs to one question, the one explained least so far, and those like it: to one
    quiz, since questions of different quizzes are unlike.

    Returns
    -------
    array of float32, shape (questions, n_factors)
        Fewer factors where they are enough.
    """
    factors = np.zeros((len(covariance), 0))
    rest = np.diagonal(covariance).astype(np.float64)
    while factors.shape[1] < n_factors and rest.max() > 1e-3:
        pivot = int(rest.argmax())
        column = (covariance[:, pivot] - factors @ factors[pivot]) / math.sqrt(rest[pivot])
        factors = np.column_stack([factors, column])
        rest -= column**2
    return factors.astype(np.float32)


@dataclass(frozen=True)
class PatternMeans:
    """What thinned-out patterns of answered questions tell about the training students.

    Attributes
    ----------
    kept
        Answers of students thinned out, in several ways, bool, shape (ways, students, questions).
    mean
        The latent means expected from those patterns, by regressions on other students, so that
        they are as uncertain as for new students; relative to the mean, float32, shape (ways,
        students, k).
    pattern_mean, pattern_weights
        As in `Model`, by a regression on all students.
    """

    kept: Tensor
    mean: Tensor
    pattern_mean: FloatArray
    pattern_weights: FloatArray

    @staticmethod
    def fit(
        pattern: FloatArray, latent: FloatArray, similarity: FloatArray, seed: int
    ) -> "PatternMeans":
        """Regress latent means on patterns, shapes (students, questions) and (students, k)."""
        rng = np.random.default_rng(seed)
        kept = np.stack([thin_out(pattern > 0, similarity, rng) for _ in range(N_PATTERNS)])
        part = rng.integers(N_PARTS, size=len(pattern))
        mean = np.zeros((N_PATTERNS, *latent.shape), np.float32)
        for k in range(N_PARTS):
            center, weights = answered_mask.regress(pattern[part != k], latent[part != k])
            mean[:, part == k] = (answered_mask.relative(kept[:, part == k]) - center) @ weights
        return PatternMeans(
            torch.from_numpy(kept),
            torch.from_numpy(mean),
            *answered_mask.regress(pattern, latent),
        )


def thin_out(
    answered: npt.NDArray[np.bool_], similarity: FloatArray, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Leave students about as many answers as test students have, to the most similar questions."""
    first = np.where(answered, rng.random(answered.shape), -1).argmax(axis=1)
    order = np.argsort(np.where(answered, -similarity[first], np.inf), axis=1)
    n_kept = FEWEST_ANSWERS + rng.exponential(MEAN_ANSWERS - FEWEST_ANSWERS, len(answered))
    kept = np.zeros_like(answered)
    np.put_along_axis(kept, order, np.arange(answered.shape[1]) < n_kept[:, None], axis=1)
    return kept & answered


class Network(nn.Module):
    """Decoder and encoder as they are tuned; the names are those of `Model`.

    Parameters
    ----------
    intercept, loading
        Of the partial VAE, shapes (Q,) and (Q, k).
    quizzes
        Loadings of the quizzes, shape (Q, number of quizzes).
    mean
        Mean of the students' latent vectors, shape (k,).
    """

    def __init__(
        self, intercept: FloatArray, loading: FloatArray, quizzes: FloatArray, mean: FloatArray
    ) -> None:
        super().__init__()
        self.n_abilities, n_quizzes = loading.shape[1], quizzes.shape[1]
        n_dimensions = self.n_abilities + n_quizzes
        # The same probability for z = 0, now with guessing.
        knows = (torch.sigmoid(torch.from_numpy(intercept)) - GUESSING) / (1 - GUESSING)
        start = torch.logit(knows.clamp(0.03, 0.97))
        loadings = torch.from_numpy(np.hstack([GROWTH_BY_GUESSING * loading, quizzes]))
        self.intercept, self.loading = nn.Parameter(start), nn.Parameter(loadings.clone())
        self.mean = nn.Parameter(functional.pad(torch.from_numpy(mean), (0, n_quizzes)))
        self.log_precision = nn.Parameter(torch.zeros(n_dimensions))
        self.log_pattern = nn.Parameter(torch.zeros(self.n_abilities))

        # The encoder starts with what Bayes' rule says of a first answer: slope and curvature of
        # the log likelihood of the mean student.
        with torch.no_grad():
            knows = torch.sigmoid(start + loadings @ self.mean)
            right = GUESSING + (1 - GUESSING) * knows
            slope = (1 - GUESSING) * knows * (1 - knows)
            scores = torch.stack([-slope / (1 - right), slope / right], dim=1)
            information = loadings.square() * (slope**2 / (right * (1 - right)))[:, None]
        self.register_buffer("start_loading", loadings)
        self.register_buffer("start_score", scores[:, :, None] * loadings[:, None])
        self.register_buffer("start_precision", information[:, None] + 1e-4)
        self.scale_score = nn.Parameter(torch.zeros(2, n_dimensions))
        self.scale_precision = nn.Parameter(torch.zeros(2, n_dimensions))
        self.own_score = nn.Parameter(torch.zeros(len(intercept), 2, n_dimensions))
        self.own_precision = nn.Parameter(torch.zeros(len(intercept), 2, n_dimensions))

    start_loading: Tensor
    start_score: Tensor
    start_precision: Tensor

    def evidence(self) -> tuple[Tensor, Tensor]:
        """Scores and precisions of every answer, each of shape (Q, 2, dimensions)."""
        score = self.start_score * self.scale_score.exp() + self.own_score
        return score, self.start_precision * (self.scale_precision + self.own_precision).exp()

    def forward(
        self, question: Tensor, is_right: Tensor, shown: Tensor, pattern_mean: Tensor
    ) -> Tensor:
        """Give P(right) for all questions, given some answers.

        Parameters
        ----------
        question, is_right
            Answers of each student, int64, shape (students, n).
        shown
            1.0 for those that are shown, 0.0 for the others, same shape.
        pattern_mean
            What the patterns tell, shape (students, k).

        Returns
        -------
        Tensor, shape (students, Q)
        """
        row = 2 * question + is_right
        score, precision = (
            (functional.embedding(row, part.flatten(0, 1)) * shown[:, :, None]).sum(dim=1)
            for part in self.evidence()
        )
        prior = self.log_precision.exp()
        n_quizzes = len(prior) - self.n_abilities
        before = self.mean + functional.pad(pattern_mean * self.log_pattern.exp(), (0, n_quizzes))
        variance = 1 / (prior + precision)
        mean = variance * (prior * before + score)
        return decode(
            mean @ self.loading.T + self.intercept,
            variance @ self.loading.square().T,
            torch.tensor(GUESSING),
        )

    def shrinkage(self) -> Tensor:
        """Negative log density of the priors, up to a constant."""
        abilities, quizzes = self.loading.tensor_split([self.n_abilities], dim=1)
        return 0.5 * (
            LOADING_PRECISION * (abilities - abilities.mean(dim=0)).square().sum()
            + LOADING_PRECISION
            * (quizzes - self.start_loading[:, self.n_abilities :]).square().sum()
            + INTERCEPT_PRECISION * (self.intercept - self.intercept.mean()).square().sum()
            + EVIDENCE_PRECISION
            * (self.own_score.square().sum() + self.own_precision.square().sum())
        )

    @torch.no_grad()
    def model(self, patterns: PatternMeans, completion: FloatArray) -> Model:
        """Give what goes into the zip; there z is measured from the mean of all students."""
        score, precision = self.evidence()
        weights = torch.from_numpy(patterns.pattern_weights) * self.log_pattern.exp()
        return Model(
            intercept=self.intercept + self.loading @ self.mean,
            loading=self.loading.clone(),
            guessing=torch.tensor(GUESSING),
            score=score - self.mean * precision,
            precision=precision,
            prior_precision=self.log_precision.exp(),
            pattern_mean=torch.from_numpy(patterns.pattern_mean),
            pattern_weights=functional.pad(
                weights, (0, len(self.log_precision) - self.n_abilities)
            ),
            completion=torch.from_numpy(completion),
        )


def tune(
    network: Network, answered: Tensor, right: Tensor, patterns: PatternMeans, seed: int
) -> None:
    """Learn to predict students' answers from a few of them.

    Parameters
    ----------
    network
        Is changed.
    answered, right
        Of every student and question, bool, shape (students, questions).
    patterns
        Of the same students.
    seed
        For students and answers drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    n_students, n_questions = answered.shape
    n_answers = int(answered.sum())
    n_shown_at_most = min(MOST_SHOWN, n_questions)
    log_information = network.start_precision.sum(dim=(1, 2)).log()
    optimiser = torch.optim.Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
    for step in tqdm(range(N_STEPS), "tuning", disable=None):
        warm_up, cosine = (step + 1) / 15, 0.5 + 0.5 * math.cos(math.pi * step / N_STEPS)
        optimiser.param_groups[0]["lr"] = LEARNING_RATE * min(1, warm_up) * max(0.02, cosine)
        batch = torch.randperm(n_students, generator=generator)[:BATCH_SIZE]
        way = step % len(patterns.kept)

        def uniform(*shape: int) -> Tensor:
            return torch.rand(shape, generator=generator).clamp(1e-6, 1 - 1e-6)

        # Gumbel noise: the largest sums are draws without replacement, weighted by information.
        power = INFORMATION_POWER * (uniform(len(batch), 1) < 0.5)
        key = power * log_information - (-uniform(len(batch), n_questions).log()).log()
        key[~patterns.kept[way, batch]] = -math.inf
        key[uniform(len(batch), n_questions) < answered_mask.HIDDEN_SHARE] = -math.inf
        key, question = key.topk(n_shown_at_most, dim=1)
        n_shown = (uniform(len(batch), 1) * (n_shown_at_most + 1)).long()
        shown = ((torch.arange(n_shown_at_most) < n_shown) & (key > -math.inf)).float()

        is_right = right[batch]
        p = network(
            question, is_right.long().gather(1, question), shown, patterns.mean[way, batch]
        ).clamp(1e-5, 1 - 1e-5)
        predicted = answered[batch].float()
        predicted -= torch.zeros_like(predicted).scatter_(1, question, shown)
        loss = -(predicted * torch.where(is_right, p, 1 - p).log()).sum() / predicted.sum()
        optimiser.zero_grad()
        (loss + network.shrinkage() / n_answers).backward()  # type: ignore[no-untyped-call]
        optimiser.step()


# ---- End of the model. -------------------------------------------------------------------------


def forget_pattern(model: Model) -> Model:
    """Give a model that makes no use of which questions a student has answered."""
    return replace(
        model,
        pattern_weights=torch.zeros_like(model.pattern_weights),
        completion=torch.zeros_like(model.completion),
    )


if __name__ == "__main__":
    cli.run(main)
