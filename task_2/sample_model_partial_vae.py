"""Task 2: partial variational autoencoder (partial VAE), which reads any set of answers.

Run:     python task_2/sample_model_partial_vae.py --local     predict the local split
         python task_2/local_evaluation.py                     score that
         python task_2/sample_model_partial_vae.py             predict the template
         torchrun --nproc_per_node 2 -- task_2/sample_model_partial_vae.py --local
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.5679 ± 0.0020 on real answers, where the majority model scores 0.5539

A student is a latent vector z, N(0, I) before any answer. The encoder turns the set of a student's
known answers, however many, into a Gaussian q(z); the decoder turns z into the probabilities of the
options of any question. Together they learn to predict all answers of a student from a random part
of them (Ma et al. 2019, "EDDI", arXiv 1809.11142; Wang et al. 2020, arXiv 2003.05980).
Control-C ends the training early and predicts with what it has learned so far.
"""

import argparse
import atexit
import os

from common import cli, progress, run_log, sample_models, submission
from common.adam import Adam
from common.answers import find_ids, number_ids, read_answers
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

TASK = 2
# Set by torchrun, which may start several processes.
RANK = int(os.environ.get("RANK", 0))
N_PROCESSES = int(os.environ.get("WORLD_SIZE", 1))
# Answers shown in training, measured at full size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 1.5e6


class PartialVAE(nn.Module):
    """Encoder and decoder of sets of answers.

    The papers' encoder sums a network h(question, answer) over the set; a second network turns the
    sum into mean and variance of q(z). A question has only four answers, so here h is a table: k
    scores s and k precisions t > 0 for each. Bayes' rule for Gaussian evidence replaces the second
    network: variance = 1 / (1 + Σt), mean = variance · Σs. Without answers q(z) is N(0, I).

    In a batch, `answer` holds 4 · question + category for each answer, where category is (option -
    correct option) modulo 4: first the answers of the first student, then those of the second, and
    so on. `count` is the number of answers of each student.
    """

    def __init__(self, n_answers: Tensor, k: int) -> None:
        super().__init__()
        logit = torch.log((n_answers + 1) / (n_answers + 1).sum(dim=1, keepdim=True))
        self.intercept = nn.Parameter(logit.mean(dim=0))
        self.popularity = nn.Parameter(logit - logit.mean(dim=0))
        # Loadings, scores and precisions have a part that all questions share, and a part `own_…`
        # of each question. The shared loadings change with popularity. At the start dimension 1 is
        # ability, and an answer tells little: its precision is softplus(-2) = 0.13.
        self.loading = nn.Parameter(torch.eye(1, 4 * k).view(4, k))
        self.loading_slope = nn.Parameter(torch.zeros(4, k))
        self.own_loading = nn.Parameter(0.1 * torch.randn(len(logit), 4, k))
        self.score = nn.Parameter(0.1 * torch.randn(4, k))
        self.own_score = nn.Parameter(torch.zeros(len(logit), 4, k))
        self.precision = nn.Parameter(torch.full((4, k), -2.0))
        self.own_precision = nn.Parameter(torch.zeros(len(logit), 4, k))

    def encode(self, answer: Tensor, count: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of q(z), given the answers whose `shown` is 1, not 0."""
        precision = functional.softplus(self.precision + self.own_precision)
        table = torch.cat([self.score + self.own_score, precision], dim=2).flatten(0, 1)
        first = (count.cumsum(0) - count).int()
        total = functional.embedding_bag(answer, table, first, mode="sum", per_sample_weights=shown)
        score, precision = total.chunk(2, dim=1)
        variance = 1 / (1 + precision)
        return variance * score, variance

    def decode(self, z: Tensor, student: Tensor, question: Tensor) -> Tensor:
        """Return logits of the categories for each pair; a student is a row of z."""
        loading = self.loading + self.popularity[:, :, None] * self.loading_slope + self.own_loading
        # Unlike z[student], index_select adds gradients up in a fixed, reproducible order.
        product = loading.index_select(0, question) * z.index_select(0, student)[:, None]
        return self.intercept + self.popularity.index_select(0, question) + product.sum(dim=2)

    def forward(self, answer: Tensor, count: Tensor, weight: float) -> Tensor:
        """Return the loss: weight · negative evidence lower bound + negative log priors."""
        student = torch.repeat_interleave(count)
        # Every other student shows all answers, as in prediction; the others show a random share.
        share = torch.rand(len(count))
        share[::2] = 1
        shown = torch.rand(len(answer)) < share[student]
        mean, variance = self.encode(answer, count, shown.float())
        z = mean + variance.sqrt() * torch.randn_like(mean)
        logits = self.decode(z, student, answer // 4)
        category = (answer % 4).long()
        nll = functional.cross_entropy(logits, category, reduction="sum")
        divergence = 0.5 * (variance + mean.square() - 1 - variance.log()).sum()
        # Gaussian priors shrink the own part of a question more, the fewer answers it has.
        own = self.own_score.square().sum() + self.own_precision.square().sum()
        prior = 30 * self.own_loading.square().sum() + 15 * own + self.popularity.square().sum()
        return weight * (nll + divergence) + prior


def train(network: nn.Module, answer: Tensor, count: Tensor, options: argparse.Namespace) -> None:
    """Fit the network.

    If torchrun starts several processes, they share the students of every batch, and all but the
    first end after the fit.
    """
    if N_PROCESSES > 1:
        distributed.init_process_group("nccl" if options.device == "cuda" else "gloo")
        # Otherwise gloo's threads may abort when Python ends.
        atexit.register(distributed.destroy_process_group)
        network = nn.parallel.DistributedDataParallel(network)
    sets = torch.split(answer, count.tolist())
    batch_size = min(max(128, len(sets) // 100), 1024, len(sets))
    n_steps = options.steps or max(420, 16 * len(sets) // batch_size)
    adam = Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
    schedule = OneCycleLR(adam, options.learning_rate, n_steps, pct_start=0.03)
    # All processes draw the same batches.
    rng = np.random.default_rng(options.seed)
    log = options.log if RANK == 0 else None
    if RANK == 0:
        n_shown = n_steps * batch_size / len(sets) * len(answer)
        progress.announce(n_shown / ANSWERS_PER_SECOND)
    with progress.steps(n_steps, "training", log, disable=RANK > 0 or None) as (steps, show):
        for _ in steps:
            batch = rng.choice(len(sets), batch_size, replace=False)
            # The empty last set comes first, since this process's share may hold no student.
            share = [sets[-1], *(sets[i] for i in batch[RANK::N_PROCESSES])]
            counts = torch.tensor([len(answers_of_student) for answers_of_student in share])
            loss = network(torch.cat(share), counts, N_PROCESSES * len(sets) / batch_size)
            adam.zero_grad()
            loss.backward()
            adam.step()
            schedule.step()
            show(loss=loss.item() / len(answer))
            if not loss.isfinite():
                raise InputError(f"the loss is {loss:f}, expected a smaller --learning_rate")
    if RANK > 0:
        # A regular end of Python may abort while gloo's threads run.
        os._exit(0)


def prepare_torch(options: argparse.Namespace, n_answers: int) -> None:
    """Set the device, the seed and the number of threads."""
    cuda = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    torch.set_default_device(cuda if options.device == "cuda" else "cpu")
    torch.manual_seed(options.seed + RANK)
    # With few answers the steps are too short for more than one thread.
    n_threads = torch.get_num_threads() if n_answers > 2_000_000 else 1
    torch.set_num_threads(n_threads)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    run_log.add_log_flag(parser)
    flag = parser.add_argument
    flag("--dimensions", type=int, default=8, metavar="K", help="length of z (default 8)")
    flag("--steps", type=int, metavar="N", help="default 420, or 16 passes over the students")
    flag("--learning_rate", type=float, default=0.02, metavar="RATE", help="default 0.02")
    flag("--seed", type=cli.seed, default=0, metavar="N", help="of the random start (default 0)")
    flag("--device", choices=["cpu", "cuda"], default="cpu", help="default cpu")
    return parser


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    for name in ("dimensions", "steps", "learning_rate"):
        if (value := getattr(options, name)) is not None and not value > 0:
            raise InputError(f"--{name} is {value}, expected more than 0")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device is cuda, but PyTorch finds no CUDA device")
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)
    prepare_torch(options, len(answers))

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, DataFrames. Out, for each template row: `prediction`, `p_option`.
    # Ids are numbered from 0. The number after the last stands for unknown students or questions.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    # The correct option of each question. An unknown question gets the most frequent option.
    correct_option = np.full(len(question_ids) + 1, answers["AnswerValue"].mode()[0], np.int8)
    correct_option[question] = answers["CorrectAnswer"]
    category = (answers["AnswerValue"].to_numpy() - correct_option[question]) % 4
    by_student = np.argsort(student, kind="stable")
    answer = torch.as_tensor((4 * question + category)[by_student])
    count = torch.as_tensor(np.bincount(student, minlength=len(student_ids) + 1))
    n_answers = answer.bincount(minlength=4 * len(question_ids) + 4).view(-1, 4)
    model = PartialVAE(n_answers, options.dimensions)
    train(model, answer, count, options)
    student = find_ids(student_ids, template["UserId"])
    question = find_ids(question_ids, template["QuestionId"])
    with torch.no_grad():
        z, _ = model.encode(answer, count, torch.ones(len(answer)))
        logits = model.decode(z, torch.as_tensor(student), torch.as_tensor(question))
    p_category = logits.softmax(dim=1).cpu().numpy()
    category_of_option = (np.arange(1, 5) - correct_option[question, np.newaxis]) % 4
    p_option = np.take_along_axis(p_category, category_of_option, axis=1)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
