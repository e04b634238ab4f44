"""Task 1: partial variational autoencoder (VAE): its input is any part of the answers of a student.

Run:     python task_1/sample_model_partial_vae.py --local     predict the local split
         python task_1/local_evaluation.py                     score that prediction
         python task_1/sample_model_partial_vae.py             predict the official pairs
         torchrun --nproc_per_node 2 -- task_1/sample_model_partial_vae.py --local
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_1.csv and the zip to upload
Scores:  accuracy 0.7145 on real answers (SD over ten splits: 0.0017), majority model 0.6301

A student is a latent vector z with the prior N(0, I). The encoder turns the set of a student's
known answers, however many, into a Gaussian q(z); the decoder turns z into the probability of a
correct answer to any question. Together they learn to predict all answers of a student from all or
some of them (Ma et al. 2019, "EDDI", arXiv 1809.11142; Wang et al. 2020, arXiv 2003.05980).
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

TASK = 1
# The number of this process, from 0, and how many there are. torchrun sets both.
RANK = int(os.environ.get("RANK", 0))
N_PROCESSES = int(os.environ.get("WORLD_SIZE", 1))
# Answers that the encoder reads per second of training, to estimate the run time. Measured on files
# of the official size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 5e6


class PartialVAE(nn.Module):
    """Encoder and decoder of sets of answers.

    In the papers, one network computes h(question, answer) for each answer, and a second network
    turns the sum of h over the set into mean and variance of q(z). Here h is a table, since an
    answer is only right or wrong: for a right and for a wrong answer to each question, it holds k
    scores s and k precisions t > 0. Bayes' rule for Gaussian evidence replaces the second network:
    variance = 1 / (1 + Σt), mean = variance · Σs. Without answers q(z) is the prior N(0, I).

    In a batch, `answer` holds the number 2 · question + is_correct of each answer. The answers of
    the first student come first, then the answers of the second student, and so on. `count` is the
    number of answers of each student.
    """

    def __init__(self, n_wrong: Tensor, n_correct: Tensor, k: int) -> None:
        """Set the initial parameters.

        `n_wrong` and `n_correct` are the numbers of wrong and correct answers to each question. `k`
        is the length of z.
        """
        super().__init__()
        # The log odds of a right answer to each question. Adding 1 keeps the logarithm finite.
        logit = torch.log((n_correct + 1) / (n_wrong + 1))
        self.intercept = nn.Parameter(logit.mean())
        self.easiness = nn.Parameter(logit - logit.mean())
        # Each loading, score and raw precision is the sum of a part that all questions share and a
        # part of the single question (`own_…`). The prior keeps the question's own part small if
        # the question has few answers. A loading has a third part: `loading_slope` times the
        # easiness.
        #
        # At the start, the shared part of the loadings is 1 for z[0] and 0 for the other elements
        # of z. So only z[0] raises the logit of a right answer, and z[0] becomes the student's
        # ability.
        loading = torch.zeros(k)
        loading[0] = 1
        self.loading = nn.Parameter(loading)
        self.loading_slope = nn.Parameter(torch.zeros(k))
        self.own_loading = nn.Parameter(0.1 * torch.randn(len(logit), k))
        # The encoder's scores and raw precisions of a question have two rows: the first for a wrong
        # answer, the second for a right one.
        self.score = nn.Parameter(0.1 * torch.randn(2, k))
        self.own_score = nn.Parameter(torch.zeros(len(logit), 2, k))
        # At the start, an answer has little influence on q(z): its precision is
        # softplus(raw_precision) = softplus(-2) = 0.13, that of the prior is 1.
        self.raw_precision = nn.Parameter(torch.full((2, k), -2.0))
        self.own_raw_precision = nn.Parameter(torch.zeros(len(logit), 2, k))

    def encode(self, answer: Tensor, count: Tensor, shown: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance of z for each of S students, both with shape (S, k).

        Every answer counts as a noisy measurement of z. For each of the k elements of z, it has a
        precision (1 / variance of the noise) and a score (precision times measured value). Before
        any answer, z has the mean 0 and the precision 1. So by Bayes' rule for Gaussians, its
        precision is 1 plus the sum of the answers' precisions, and its mean is the sum of their
        scores, divided by its precision.

        Parameters
        ----------
        answer
            2 · question + is_correct of each answer. The answers of the first student come first,
            then the answers of the second student, and so on.
        count
            The number of answers of each student, shape (S,).
        shown
            1 for an answer to use, 0 for an answer to leave out, same shape as `answer`.
        """
        # `score` and `precision` have the shape (questions, 2, k): for each question, the k numbers
        # of a wrong answer, then those of a right answer. The part `own_…` is the question's own;
        # all questions share the other part. softplus makes the precisions positive.
        score = self.score + self.own_score
        precision = functional.softplus(self.raw_precision + self.own_raw_precision)
        # `table` has a row for each question and each value of `is_correct`: the k scores and then
        # the k precisions. The number of the row is 2 · question + is_correct, as in `answer`.
        table = torch.cat([score, precision], dim=2).flatten(0, 1)
        # `embedding_bag` looks up the rows of each student's answers and adds them up. It needs the
        # position at which each student's answers begin in `answer`.
        first_answer = (count.cumsum(0) - count).int()
        total = functional.embedding_bag(
            answer, table, first_answer, mode="sum", per_sample_weights=shown
        )
        # The first k columns are sums of scores, the last k columns are sums of precisions.
        score_sum, precision_sum = total.chunk(2, dim=1)
        variance = 1 / (1 + precision_sum)
        return variance * score_sum, variance

    def decode(self, z: Tensor, student: Tensor, question: Tensor) -> Tensor:
        """Return the logit of a correct answer for each pair of a student and a question.

        The logit is intercept + easiness + loading · z, where easiness and loading are those of the
        question. The loading is the sum of three parts: one that all questions share,
        `loading_slope` times the easiness, and one of the question's own.

        `z` holds the latent vector of each student, shape (S, k). `student` holds the row in `z` of
        each pair's student, `question` the number of each pair's question.
        """
        # The loadings of all questions, shape (questions, k).
        loading = self.loading + self.easiness[:, None] * self.loading_slope + self.own_loading
        # Multiply the k loadings of the pair's question by the z of the pair's student.
        # Unlike `z[student]`, `index_select` adds up the gradients of a student's pairs in a fixed
        # order, so that runs with the same seed give the same result.
        product = loading.index_select(0, question) * z.index_select(0, student)
        return self.intercept + self.easiness.index_select(0, question) + product.sum(dim=1)

    def forward(self, answer: Tensor, count: Tensor, weight: float) -> Tensor:
        """Return the loss of a batch of students: -`weight` · ELBO - log prior of the parameters.

        The ELBO (evidence lower bound) is what a variational autoencoder maximises: the log
        likelihood of the answers, minus the Kullback-Leibler divergence of q(z) from the prior
        N(0, I). Here, q(z) is the encoder's Gaussian of each student's latent vector z. `weight`
        scales the sum over the batch to a sum over all students.

        `answer` and `count` are as in `encode`: one number for each answer, and the number of
        answers of each student.
        """
        # For each answer, the position of its student in the batch.
        student = torch.repeat_interleave(count)
        # For every second student, the encoder sees all answers, as in prediction. For the other
        # students, it sees a random share of the answers.
        shown_share = torch.rand(len(count))
        shown_share[::2] = 1
        shown = torch.rand(len(answer)) < shown_share[student]
        mean, variance = self.encode(answer, count, shown.float())
        z = mean + variance.sqrt() * torch.randn_like(mean)
        # Each element of `answer` is 2 · question + is_correct.
        question = answer // 2
        correct = (answer % 2).float()
        logit = self.decode(z, student, question)
        nll = functional.binary_cross_entropy_with_logits(logit, correct, reduction="sum")
        # The Kullback-Leibler divergence of N(mean, variance) from N(0, 1), summed over dimensions.
        divergence = 0.5 * (variance + mean.square() - 1 - variance.log()).sum()
        # Gaussian priors keep the parameters of single questions near 0. They matter most for
        # questions with few answers. Up to a constant, minus the log density of a parameter is its
        # square times 1 / (2 · variance of the prior): the factors 20, 15 and 1 below.
        encoder_squares = self.own_score.square().sum() + self.own_raw_precision.square().sum()
        minus_log_prior = (
            20 * self.own_loading.square().sum()
            + 15 * encoder_squares
            + self.easiness.square().sum()
        )
        return weight * (nll + divergence) + minus_log_prior


def train(network: nn.Module, answer: Tensor, count: Tensor, options: argparse.Namespace) -> None:
    """Fit the network.

    If torchrun starts several processes, each takes some of the students of every batch, and all
    processes but the first exit after the fit.
    """
    if N_PROCESSES > 1:
        distributed.init_process_group("nccl" if options.device == "cuda" else "gloo")
        # Python may crash at exit while threads of gloo, the backend on the CPU, are running.
        # `destroy_process_group` ends these threads.
        atexit.register(distributed.destroy_process_group)
        network = nn.parallel.DistributedDataParallel(network)
    answer_sets = torch.split(answer, count.tolist())
    n_students = len(answer_sets)
    # A batch holds a hundredth of the students, at least 128 and at most 1024. If there are fewer
    # than 128 students, it holds all of them.
    batch_size = min(max(128, n_students // 100), 1024, n_students)
    # 16 passes over the students, but at least 420 steps.
    n_steps = options.steps or max(420, 16 * n_students // batch_size)
    adam = Adam(network.parameters(), betas=(0.9, 0.99), fused=True)
    schedule = OneCycleLR(adam, options.learning_rate, n_steps, pct_start=0.03)
    # All processes draw the same batches.
    rng = np.random.default_rng(options.seed)
    log = options.log if RANK == 0 else None
    if RANK == 0:
        n_shown = n_steps * batch_size / n_students * len(answer)
        progress.announce(n_shown / ANSWERS_PER_SECOND)
    # Only the first process shows a progress bar. The value None shows it on a terminal only.
    disable_bar = True if RANK > 0 else None
    with progress.steps(n_steps, "training", log, disable=disable_bar) as (steps, show):
        for _ in steps:
            batch = rng.choice(n_students, batch_size, replace=False)
            own_students = batch[RANK::N_PROCESSES]
            # The last student stands for unknown ids and has no answers. This empty set of answers
            # is added because `torch.cat` needs a tensor even if the batch holds no student for
            # this process.
            own_sets = [answer_sets[-1], *(answer_sets[i] for i in own_students)]
            own_counts = torch.tensor([len(answers_of_student) for answers_of_student in own_sets])
            # DistributedDataParallel takes the mean of the gradients of the processes. The factor
            # N_PROCESSES turns the mean into the sum.
            weight = N_PROCESSES * n_students / batch_size
            loss = network(torch.cat(own_sets), own_counts, weight)
            adam.zero_grad()
            loss.backward()
            adam.step()
            schedule.step()
            show(loss=loss.item() / len(answer))
            if not loss.isfinite():
                raise InputError(f"the loss became {loss:f}; choose a smaller --learning_rate")
    if RANK > 0:
        # Exit without Python's cleanup: it may crash while threads of gloo are running.
        os._exit(0)


def prepare_torch(options: argparse.Namespace, n_answers: int) -> None:
    """Set the device, the seed and the number of threads."""
    cuda = f"cuda:{os.environ.get('LOCAL_RANK', 0)}"
    torch.set_default_device(cuda if options.device == "cuda" else "cpu")
    torch.manual_seed(options.seed + RANK)
    # With 2 million answers or fewer, the steps are so short that one thread is faster.
    n_threads = torch.get_num_threads() if n_answers > 2_000_000 else 1
    torch.set_num_threads(n_threads)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    run_log.add_log_flag(parser)
    cli.add_number(parser, "--dimensions", 8, "length of z", parse=int, metavar="K")
    help_text = "training steps (default: 16 passes over the students, at least 420 steps)"
    parser.add_argument("--steps", type=int, metavar="N", help=help_text)
    help_text = "highest learning rate of Adam"
    cli.add_number(parser, "--learning_rate", 0.02, help_text, parse=float, metavar="RATE")
    cli.add_number(parser, "--seed", 0, "seed of all random numbers")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="default cpu")
    return parser


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    for name in ("dimensions", "steps", "learning_rate"):
        value = getattr(options, name)
        # `not value > 0` refuses NaN too.
        if value is not None and not value > 0:
            raise InputError(f"--{name} is {value}, expected more than 0")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device is cuda, but PyTorch finds no CUDA device")
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)
    prepare_torch(options, len(answers))

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template` (DataFrames). Out, for each template row: `prediction`, `p_right`.
    # Ids are numbered from 0. For an id without training answers, `find_ids` returns the number
    # after the last id. So one extra student and one extra question stand for all unknown ids.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    n_students = len(student_ids) + 1
    n_questions = len(question_ids) + 1
    is_correct = answers["IsCorrect"].to_numpy()
    # `PartialVAE` reads each answer as one number, 2 · question + is_correct, and needs the answers
    # in the order of the students.
    answer = torch.as_tensor((2 * question + is_correct)[np.argsort(student, kind="stable")])
    count = torch.as_tensor(np.bincount(student, minlength=n_students))
    # Count the answers with each number, 2 · question for wrong and 2 · question + 1 for correct.
    # `view` makes a row for each question: the numbers of its wrong and of its correct answers.
    counts_of_question = answer.bincount(minlength=2 * n_questions).view(-1, 2)
    n_wrong, n_correct = counts_of_question.T
    model = PartialVAE(n_wrong, n_correct, options.dimensions)
    train(model, answer, count, options)

    template_student = torch.as_tensor(find_ids(student_ids, template["UserId"]))
    template_question = find_ids(question_ids, template["QuestionId"])
    with torch.no_grad():
        z, _ = model.encode(answer, count, torch.ones(len(answer)))
        logit = model.decode(z, template_student, torch.as_tensor(template_question))
    p_right = logit.sigmoid().cpu().numpy()
    prediction = (logit > 0).cpu().numpy()
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
