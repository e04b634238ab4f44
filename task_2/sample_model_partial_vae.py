"""Task 2: partial variational autoencoder (VAE): its input is any part of the answers of a student.

Run:     python task_2/sample_model_partial_vae.py --local     predict the local split
         python task_2/local_evaluation.py                     score that prediction
         python task_2/sample_model_partial_vae.py             predict the official pairs
         torchrun --nproc_per_node 2 -- task_2/sample_model_partial_vae.py --local
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_2.csv and the zip to upload
Scores:  accuracy 0.5679 on real answers (SD over ten splits: 0.0020), majority model 0.5539

A student is a latent vector z with the prior N(0, I). The encoder turns the set of a student's
known answers, however many, into a Gaussian q(z); the decoder turns z into the probabilities of the
options of any question. Together they learn to predict all answers of a student from all or
some of them (Ma et al. 2019, "EDDI", arXiv 1809.11142; Wang et al. 2020, arXiv 2003.05980).
Control-C ends the training early and predicts with what it has learned so far.
"""

import argparse
import atexit
import os

from common import answer_options, cli, progress, run_log, sample_models, submission
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
# The number of this process, from 0, and how many there are. torchrun sets both.
RANK = int(os.environ.get("RANK", 0))
N_PROCESSES = int(os.environ.get("WORLD_SIZE", 1))
# Answers that the encoder reads per second of training, to estimate the run time. Measured on files
# of the official size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 1.5e6


class PartialVAE(nn.Module):
    """Encoder and decoder of sets of answers.

    In the papers, one network computes h(question, answer) for each answer, and a second network
    turns the sum of h over the set into mean and variance of q(z). Here h is a table, since an
    answer is only one of few options: it holds k scores s and k precisions t > 0 for each question
    and each option. Bayes' rule for Gaussian evidence replaces the second network:
    variance = 1 / (1 + Σt), mean = variance · Σs. Without answers q(z) is the prior N(0, I).

    An option has the category (option - correct option) modulo the number of options, so that
    category 0 is correct. In a batch, `answer` holds a number for each answer: K · question +
    category, where K is the largest number of options of a question, usually 4. The answers of the
    first student come first, then the answers of the second student, and so on. `count` is the
    number of answers of each student.
    """

    def __init__(self, counts: Tensor, n_options: Tensor, k: int) -> None:
        """Set the initial parameters of the decoder and of the encoder.

        The decoder predicts the category of an answer to a question from a student's z, by a
        softmax over the categories c, whose logits are

            intercept[c] + popularity[question, c] + loading[question, c] · z.

        The encoder turns a student's answers into a Gaussian over z. It has k scores and k
        precisions for each pair of a question and a category. `encode` adds up the scores and the
        precisions of the student's answers.

        Parameters
        ----------
        counts
            How many training answers to each question have each category, shape (questions, K).
            Category 0 is the correct option.
        n_options
            The number of options of each question, shape (questions,). A question has as many
            categories as options, and lacks all higher categories.
        k
            The length of z.
        """
        super().__init__()
        n_questions, n = counts.shape
        self.n_categories = n
        # A question with fewer than K options lacks the last categories. `is_missing` is True for
        # these, shape (questions, K).
        self.is_missing = torch.arange(self.n_categories) >= n_options[:, None]
        self.some_are_missing = bool(self.is_missing.any())
        # At the start, a student with z = 0 chooses each category as often as all students do.
        # `logit` holds the logits that do this. `intercept` is their mean over the questions, and
        # `popularity` is each question's difference from this mean.
        logit = torch.log((counts + 1) / (counts + 1).sum(dim=1, keepdim=True))
        self.intercept = nn.Parameter(logit.mean(dim=0))
        self.popularity = nn.Parameter(logit - logit.mean(dim=0))
        # Each loading, score and raw precision is the sum of a part that all questions share and a
        # part of the single question (`own_…`). The prior keeps the question's own part small if
        # the question has few answers.

        # The decoder: the loading of a question, shape (K, k), says how much each element of z
        # raises the logit of each category. It is loading + popularity · loading_slope +
        # own_loading. At the start, the shared part lets only z[0] raise a logit: the logit of
        # category 0, the correct option. So z[0] becomes the student's ability.
        loading = torch.zeros(n, k)
        loading[0, 0] = 1
        self.loading = nn.Parameter(loading)
        self.loading_slope = nn.Parameter(torch.zeros(n, k))
        self.own_loading = nn.Parameter(0.1 * torch.randn(n_questions, n, k))

        # The encoder: a score is score + own_score, and a precision is softplus(raw_precision +
        # own_raw_precision), which is above 0. At the start, an answer has little influence on
        # q(z): its precision is softplus(-2) = 0.13, and that of the prior is 1.
        self.score = nn.Parameter(0.1 * torch.randn(n, k))
        self.own_score = nn.Parameter(torch.zeros(n_questions, n, k))
        self.raw_precision = nn.Parameter(torch.full((n, k), -2.0))
        self.own_raw_precision = nn.Parameter(torch.zeros(n_questions, n, k))

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
            K · question + category of each answer, for K categories. The answers of the first
            student come first, then the answers of the second student, and so on.
        count
            The number of answers of each student, shape (S,).
        shown
            1 for an answer to use, 0 for an answer to leave out, same shape as `answer`.
        """
        # `score` and `precision` have the shape (questions, K, k): for each question and category,
        # k numbers. The part `own_…` is the question's own; all questions share the other part.
        # softplus makes the precisions positive.
        score = self.score + self.own_score
        precision = functional.softplus(self.raw_precision + self.own_raw_precision)
        # `table` has a row for each question and each category: the k scores and then the k
        # precisions. The number of the row is K · question + category, as in `answer`.
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
        """Return the logits of the categories for pairs of a student and a question.

        The logit of a category is intercept + popularity + loading · z, where popularity and
        loading are those of the question and the category. The loading is the sum of three parts:
        one that all questions share, `loading_slope` times the popularity, and one of the
        question's own.

        `z` holds the latent vector of each student, shape (S, k). `student` holds the row in `z` of
        each pair's student, `question` the number of each pair's question. The result has the shape
        (pairs, categories).
        """
        # The loadings of all questions and categories, shape (questions, K, k).
        loading = self.loading + self.popularity[:, :, None] * self.loading_slope + self.own_loading
        # Multiply the k loadings of each category by the z of the pair's student.
        # Unlike `z[student]`, `index_select` adds up the gradients of a student's pairs in a fixed
        # order, so that runs with the same seed give the same result.
        product = loading.index_select(0, question) * z.index_select(0, student)[:, None]
        logit = self.intercept + self.popularity.index_select(0, question) + product.sum(dim=2)
        if self.some_are_missing:
            # The probability of a category that the question lacks becomes 0.
            logit = logit.masked_fill(self.is_missing.index_select(0, question), -torch.inf)
        return logit

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
        # Each element of `answer` is K · question + category, where K is the number of categories.
        question = answer // self.n_categories
        category = (answer % self.n_categories).long()
        logits = self.decode(z, student, question)
        nll = functional.cross_entropy(logits, category, reduction="sum")
        # The Kullback-Leibler divergence of N(mean, variance) from N(0, 1), summed over dimensions.
        divergence = 0.5 * (variance + mean.square() - 1 - variance.log()).sum()
        # Gaussian priors keep the parameters of single questions near 0. They matter most for
        # questions with few answers. Up to a constant, minus the log density of a parameter is its
        # square times 1 / (2 · variance of the prior): the factors 30, 15 and 1 below.
        encoder_squares = self.own_score.square().sum() + self.own_raw_precision.square().sum()
        minus_log_prior = (
            30 * self.own_loading.square().sum()
            + 15 * encoder_squares
            + self.popularity.square().sum()
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
    answers = read_answers(paths.train, options=True)
    prepare_torch(options, len(answers))

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template` (DataFrames). Out, for each template row: `prediction`, `p_option`.
    # Ids are numbered from 0. For an id without training answers, `find_ids` returns the number
    # after the last id. So one extra student and one extra question stand for all unknown ids.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    n_students = len(student_ids) + 1
    n_questions = len(question_ids) + 1
    # The number of options of each question, 4 in the challenge, and the highest of these numbers.
    n_options = answer_options.number_by_question(answers, question, n_questions)
    most_options = answer_options.count_options(answers)
    # The correct option of each question, from 1. If the answers to a question disagree about it,
    # the last answer counts. A question without training answers gets the option that is chosen
    # most often.
    correct_option = np.full(n_questions, answers["AnswerValue"].mode()[0], np.int8)
    correct_option[question] = answers["CorrectAnswer"]
    # Category 0 is the correct option. Categories 1, 2 and so on are the options after it, where
    # option 1 comes after the last option.
    option = answers["AnswerValue"].to_numpy()
    category = (option - correct_option[question]) % n_options[question]
    # `PartialVAE` reads each answer as one number, and needs the answers in the order of the
    # students.
    answer = torch.as_tensor(
        (most_options * question + category)[np.argsort(student, kind="stable")]
    )
    count = torch.as_tensor(np.bincount(student, minlength=n_students))
    # For each question, how many answers have each category.
    counts = answer.bincount(minlength=most_options * n_questions).view(-1, most_options)
    model = PartialVAE(counts, torch.as_tensor(n_options), options.dimensions)
    train(model, answer, count, options)

    template_student = torch.as_tensor(find_ids(student_ids, template["UserId"]))
    template_question = find_ids(question_ids, template["QuestionId"])
    with torch.no_grad():
        z, _ = model.encode(answer, count, torch.ones(len(answer)))
        logits = model.decode(z, template_student, torch.as_tensor(template_question))
    p_category = logits.softmax(dim=1).cpu().numpy()
    # `p_category` has a column for each category. Reorder the columns: `p_option` shall have a
    # column for each option. The category of an option is its distance from the correct option,
    # modulo the number of options.
    template_options = n_options[template_question][:, np.newaxis]
    distance = np.arange(1, most_options + 1) - correct_option[template_question][:, np.newaxis]
    # A question with fewer options than others lacks the last options and the last categories. The
    # model gives the categories that it lacks the probability 0. Each option that it lacks is
    # assigned the category in the same column, so that the option gets the probability 0 too.
    is_there = np.arange(most_options) < template_options
    category_of_option = np.where(is_there, distance % template_options, np.arange(most_options))
    p_option = np.take_along_axis(p_category, category_of_option, axis=1)
    p_option = answer_options.for_template(p_option, template)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
