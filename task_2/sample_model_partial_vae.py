"""Task 2: partial variational autoencoder (partial VAE), which reads any set of answers.

Run:     python task_2/sample_model_partial_vae.py --local     predict the local split
         python task_2/local_evaluation.py                     score that
         python task_2/sample_model_partial_vae.py             predict the template
         torchrun --nproc_per_node 2 -- task_2/sample_model_partial_vae.py --local
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.5670 ± 0.0018 on real answers, where the majority model scores 0.5539

Every student has a latent vector z, distributed N(0, I) before any answer. The encoder turns the
set of a student's known answers, however many, into a Gaussian q(z); the decoder turns z into the
probability of each option of any question. They learn together to predict all answers of a
student from a random part of them (Ma et al. 2019, "EDDI", arXiv 1809.11142; Wang et al. 2020,
arXiv 2003.05980). Control-C ends the training and predicts with what has been learned so far.
"""

import argparse
import atexit
import os

import numpy as np
import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR
from tqdm import trange

from common import cli, layout, schema, submission
from common.answers import find_ids, number_ids, read_answers
from common.errors import InputError

TASK = 2
# What torchrun tells each of the processes that it starts.
RANK, N_PROCESSES = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


class PartialVAE(nn.Module):
    """Encoder and decoder of sets of answers.

    The papers' encoder sums a network h(question, answer) over the set; a second network turns the
    sum into mean and variance of q(z). A question has only four answers, so here h is a table: k
    scores s and k precisions t > 0 for each. Bayes' rule for Gaussian evidence replaces the second
    network: variance = 1 / (1 + Σt), mean = variance · Σs. Without answers q(z) is N(0, I).

    In a batch, `count` is how many answers each student gave, and `answer` holds those of the first
    student, then of the second and so on, each as one number, 4 · question + rank
    of the option (0 the correct one, then by popularity).
    """

    def __init__(self, n_questions: int, k: int) -> None:
        super().__init__()
        self.intercept = nn.Parameter(torch.zeros(4))
        self.own_intercept = nn.Parameter(torch.zeros(n_questions, 4))
        # What all questions share (loadings change with intercepts), and a part of each one's own.
        # At first, dimension 1 is ability, and an answer tells little: t = softplus(-2) = 0.13.
        self.loading = nn.Parameter(torch.eye(1, 4 * k).view(4, k))
        self.loading_slope = nn.Parameter(torch.zeros(4, k))
        self.own_loading = nn.Parameter(0.1 * torch.randn(n_questions, 4, k))
        self.score = nn.Parameter(0.1 * torch.randn(4, k))
        self.own_score = nn.Parameter(torch.zeros(n_questions, 4, k))
        self.precision = nn.Parameter(torch.full((4, k), -2.0))
        self.own_precision = nn.Parameter(torch.zeros(n_questions, 4, k))

    def encode(self, answer: Tensor, count: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of q(z), given the answers whose `shown` is 1 and not 0."""
        precision = functional.softplus(self.precision + self.own_precision)
        table = torch.cat([self.score + self.own_score, precision], dim=2).flatten(0, 1)
        first = (count.cumsum(0) - count).int()
        total = functional.embedding_bag(answer, table, first, mode="sum", per_sample_weights=shown)
        score, precision = total.chunk(2, dim=1)
        variance = 1 / (1 + precision)
        return variance * score, variance

    def decode(self, z: Tensor, student: Tensor, question: Tensor) -> Tensor:
        """Return logits of the ranks, (pairs, 4), for each pair; a student is a row of z."""
        shared = self.loading + self.own_intercept[:, :, None] * self.loading_slope
        # index_select adds gradients up in a fixed order, which z[student] does not.
        loading = (shared + self.own_loading).index_select(0, question)
        product = (loading * z.index_select(0, student)[:, None]).sum(dim=2)
        return self.intercept + self.own_intercept.index_select(0, question) + product

    def forward(self, answer: Tensor, count: Tensor, weight: float) -> Tensor:
        """Return weight · negative evidence lower bound of the students + negative log priors."""
        student = torch.repeat_interleave(count)
        # Every other student shows all answers, as when predicting; the rest a random share.
        share = torch.rand(len(count))
        share[::2] = 1
        shown = torch.rand(len(answer)) < share[student]
        mean, variance = self.encode(answer, count, shown.float())
        z = mean + variance.sqrt() * torch.randn_like(mean)
        logits, rank = self.decode(z, student, answer // 4), (answer % 4).long()
        nll = functional.cross_entropy(logits, rank, reduction="sum")
        divergence = 0.5 * (variance + mean.square() - 1 - variance.log()).sum()
        # Gaussian priors shrink what is a question's own, the more the fewer answers it has.
        own = self.own_score.square().sum() + self.own_precision.square().sum()
        prior = 30 * self.own_loading.square().sum() + 15 * own + self.own_intercept.square().sum()
        return weight * (nll + divergence) + prior


def train(network: nn.Module, answer: Tensor, count: Tensor, options: argparse.Namespace) -> None:
    """Fit the network; the processes that torchrun starts share the students of every batch."""
    if N_PROCESSES > 1:
        distributed.init_process_group("nccl" if options.device == "cuda" else "gloo")
        # Threads of gloo would now and then abort a process that ends without this.
        atexit.register(distributed.destroy_process_group)
        network = nn.parallel.DistributedDataParallel(network)
    sets = torch.split(answer, count.tolist())
    n_steps = max(32, len(sets) // 1024)  # In an epoch.
    adam = torch.optim.Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
    schedule = OneCycleLR(adam, options.learning_rate, options.epochs * n_steps, pct_start=0.03)
    shuffle = np.random.default_rng(options.seed).permutation  # The same in all processes.
    torch.manual_seed(options.seed + RANK)
    try:
        for _ in (bar := trange(options.epochs, desc="training", disable=RANK > 0 or None)):
            for batch in np.array_split(shuffle(len(sets)), n_steps):
                # Begin with the empty set of nobody: a process's share may hold no student.
                share = [sets[-1], *(sets[i] for i in batch[RANK::N_PROCESSES])]
                counts = torch.tensor([len(one) for one in share])
                # This share stands for those of all processes in all steps.
                loss = network(torch.cat(share), counts, N_PROCESSES * n_steps) / len(answer)
                adam.zero_grad()
                loss.backward()
                adam.step()
                schedule.step()
            bar.set_postfix(loss=f"{loss:.4f}")
            if not loss.isfinite():
                raise InputError(f"the loss is {loss:f}, expected a smaller --learning_rate")
    except KeyboardInterrupt:
        print("\ninterrupted: predicting with what has been learned so far")


def main() -> None:
    """Load, train, predict, write."""
    parser = cli.sample_model_parser(__doc__, TASK)
    flag = parser.add_argument
    flag("--dimensions", type=int, default=8, metavar="K", help="length of z (default 8)")
    flag("--epochs", type=int, default=16, metavar="N", help="passes over all (default 16)")
    flag("--learning_rate", type=float, default=0.02, metavar="RATE", help="default 0.02")
    flag("--seed", type=cli.seed, default=0, metavar="N", help="another seed, another random start")
    flag("--device", choices=["cpu", "cuda"], default="cpu", help="default cpu")
    options = parser.parse_args()
    for name in ("dimensions", "epochs", "learning_rate"):
        if not getattr(options, name) > 0:
            raise InputError(f"--{name} is {getattr(options, name)}, expected more than 0")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device is cuda, but PyTorch finds no CUDA device")
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `prediction`, 1 to 4 for every row of `template`.
    cuda = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    torch.set_default_device(cuda if options.device == "cuda" else "cpu")
    torch.manual_seed(options.seed)
    # Numbers instead of ids; the one after the last stands for unknown students and questions.
    student_ids, student = number_ids(answers.student)
    question_ids, question = number_ids(answers.question)
    assert answers.option is not None and answers.correct_option is not None
    # Rank options by how often they are chosen, an unknown question's by how often anywhere.
    n_chosen = np.bincount(4 * question + answers.option - 1, minlength=4 * len(question_ids) + 4)
    n_chosen = n_chosen.reshape(-1, 4)
    n_chosen[-1] = n_chosen.sum(axis=0)
    n_chosen[question, answers.correct_option - 1] = len(answers) + 1  # Ranks first.
    option_of_rank = np.argsort(-n_chosen, axis=1, kind="stable")
    rank_of_option = np.argsort(option_of_rank, axis=1).astype(np.int32)
    by_student = np.argsort(student, kind="stable")
    rank = rank_of_option[question, answers.option - 1]
    answer = torch.as_tensor((4 * question + rank)[by_student])
    count = torch.as_tensor(np.bincount(student, minlength=len(student_ids) + 1))
    model = PartialVAE(len(question_ids) + 1, options.dimensions)
    train(model, answer, count, options)
    if RANK > 0:
        return
    pairs = find_ids(student_ids, template.student), find_ids(question_ids, template.question)
    with torch.no_grad():
        z, _ = model.encode(answer, count, torch.ones(len(answer)))
        rank = model.decode(z, *map(torch.as_tensor, pairs)).argmax(dim=1).cpu().numpy()
    prediction = 1 + option_of_rank[pairs[1], rank]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(
        template, schema.ANSWER_VALUE, prediction, paths.output, layout.submission_name(TASK)
    )
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
