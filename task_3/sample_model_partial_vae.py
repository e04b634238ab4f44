"""Task 3: rank the questions by how much an answer tells about its student, by a partial VAE.

Every student has a latent vector z, distributed N(0, I) before any answer. The encoder turns any
number of a student's answers into a Gaussian q(z). The decoder turns z into p(x | z), the
probabilities of the options x of each question. They learn together to predict all answers of a
student from a random part of them (Ma et al. 2019, "EDDI", arXiv 1809.11142; Wang et al. 2020,
"Educational question mining at scale", arXiv 2003.05980). The quality of a question is how much
information about z its answer is expected to give, the papers' reward for a first question:

    E over x of KL(p(z | x) || p(z))  =  H(E over z of p(x | z)) - E over z of H(p(x | z)).

The sides are equal for the exact posterior. The papers compute the left side with the encoder, an
approximation. This script computes the right side, which needs only the decoder. On real answers,
the rankings of two fits with different seeds correlate 0.96 by the right side, 0.67 by the left.

Run:     python task_3/sample_model_partial_vae.py [--dimensions 8] [--seed 1]
         python task_3/local_evaluation.py --phase public
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submissions/submission_task_3.csv and the zip to upload
Scores:  agreement 0.67 with the best of five experts on 25 real pairs, 0.51 on average (chance)

Control-C ends the training and ranks by what has been learned so far.
"""

import argparse

from common import answer_options, cli, progress, sample_models, submission
from common.adam import Adam
from common.answers import read_answers

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR
from torch.special import entr

TASK = 3
N_STEPS = 600
# Number of students in a batch.
BATCH_SIZE = 128
# The learning rate rises to this value, then falls (one-cycle schedule).
LEARNING_RATE = 0.02
# `PartialVAE.penalty` multiplies sums of squares by these factors. Each factor belongs to a
# Gaussian prior and is 1 / (2 · variance of the prior).
OWN_LOADING_PENALTY = 30
OWN_EVIDENCE_PENALTY = 15
# Number of vectors z that are drawn from N(0, I), to estimate expectations over z.
N_DRAWS = 2000


class PartialVAE(nn.Module):
    """The encoder and the decoder.

    Answers are one-hot, shape (students, questions, options), all 0 where a student gave no answer.
    The right option of each question comes first. The loadings of a question are the sum of a part
    that all questions share and the question's own part. The same holds for its evidence, the
    parameters of the encoder.

    The encoder treats every answer as a Gaussian measurement of z, with k precisions t > 0 and k
    scores s = t · measured value. Then variance = 1 / (1 + Σt), mean = variance · Σs.
    """

    def __init__(self, share: Tensor, k: int) -> None:
        """Set the initial parameters of the decoder and of the encoder.

        The decoder gives each option of a question the logit intercept + loading · z. The encoder
        treats each answer as a measurement of the student's z. The k scores and k precisions of
        such a measurement are the *evidence* of the option chosen (see the class). The loadings of
        a question are the sum of a part that all questions share and a part of its own. So is its
        evidence.

        Parameters
        ----------
        share
            The share of the answers to each question that chose each option, above 0, shape
            (questions, options).
        k
            The length of z.
        """
        super().__init__()
        # A student with z = 0 chooses every option as often as all students together.
        self.intercept = nn.Parameter(share.log())
        # At the start, the first dimension of z is the ability: it raises the logit of the right
        # option, which is option 0 of every question. The other dimensions have only small effects,
        # by the random loadings of each question.
        n_options = share.shape[1]
        start_of_loading = torch.zeros(n_options, k)
        start_of_loading[0, 0] = 1
        self.shared_loading = nn.Parameter(start_of_loading)
        self.own_loading = nn.Parameter(0.1 * torch.randn(*share.shape, k))
        # Each option has 2 k numbers of evidence, for the answers that choose it: first k scores,
        # then k raw precisions. `encode` computes the precision softplus(raw precision), which is
        # above 0. Scores start near 0. Precisions start at softplus(-2) = 0.13, so that an answer
        # tells little about z.
        score = 0.1 * torch.randn(n_options, k)
        raw_precision = torch.full((n_options, k), -2.0)
        self.shared_evidence = nn.Parameter(torch.cat([score, raw_precision], dim=1))
        self.own_evidence = nn.Parameter(torch.zeros(*share.shape, 2 * k))

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance of q(z), each of shape (students, k).

        `x` holds the students' answers, one-hot, shape (students, questions, options).
        """
        score, raw_precision = (self.shared_evidence + self.own_evidence).chunk(2, dim=-1)
        precision = functional.softplus(raw_precision)
        variance = 1 / (1 + torch.einsum("sqx,qxk->sk", x, precision))
        mean = variance * torch.einsum("sqx,qxk->sk", x, score)
        return mean, variance

    def decode(self, z: Tensor) -> Tensor:
        """Return the log probability of each option, shape (students, questions, options).

        `z` holds the latent vector of each student, shape (students, k).
        """
        loading = self.shared_loading + self.own_loading
        return (self.intercept + torch.einsum("sk,qxk->sqx", z, loading)).log_softmax(dim=-1)

    def penalty(self) -> Tensor:
        """Return the penalty that keeps `own_loading` and `own_evidence` near 0.

        These are the parts of the loadings and of the evidence that a question does not share with
        other questions. The penalty is minus the logarithm of their Gaussian prior density, without
        constants. It does not grow with the number of answers. So it has the strongest effect on
        questions with few answers.
        """
        loading_penalty = OWN_LOADING_PENALTY * self.own_loading.square().sum()
        evidence_penalty = OWN_EVIDENCE_PENALTY * self.own_evidence.square().sum()
        return loading_penalty + evidence_penalty


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    cli.add_number(parser, "--dimensions", 8, "length of z", metavar="K")
    cli.add_number(parser, "--seed", 0, "seed of the random start and the batches")
    return parser


def main() -> None:
    """Read the answers, fit the model, rank the questions, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    question = submission.read_ranking_template(paths.template)
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, a DataFrame; `question`, QuestionIds. Out: `quality` of each of them.
    # The highest quality ranks first, NaN ranks last.
    # The steps are so short that more threads would only wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    student_ids, row = np.unique(answers["UserId"], return_inverse=True)
    question_ids, column = np.unique(answers["QuestionId"], return_inverse=True)
    n_options = answer_options.count_options(answers)
    # In the table, 0 is no answer and 1 is the right option. The numbers 2, 3 and so on are the
    # next options in a circle, where the first option follows the last one.
    table = np.zeros((len(student_ids), len(question_ids)), np.int64)
    distance = answers["AnswerValue"] - answers["CorrectAnswer"]
    table[row, column] = 1 + distance % answer_options.number_of_each(answers)
    # Add one answer to each option, so that no share is 0.
    n_chosen = [(table == option).sum(axis=0) for option in range(1, n_options + 1)]
    count = 1 + np.stack(n_chosen, axis=1)
    share = torch.tensor(count / count.sum(axis=1, keepdims=True), dtype=torch.float32)
    model = PartialVAE(share, options.dimensions)

    optimiser = Adam(model.parameters(), betas=(0.9, 0.99), fused=True)
    schedule = OneCycleLR(optimiser, LEARNING_RATE, N_STEPS, pct_start=0.03)
    with progress.steps(N_STEPS, "training") as (steps, show):
        for _ in steps:
            batch = torch.randperm(len(table))[:BATCH_SIZE]
            # Drop class 0, "no answer": a question without an answer then has zeros only.
            x = functional.one_hot(torch.from_numpy(table)[batch], 1 + n_options)[:, :, 1:].float()
            # The encoder sees all answers of every second student, and a random share of the
            # answers of the other students.
            shown_share = torch.rand(len(x), 1, 1)
            shown_share[::2] = 1
            is_shown = torch.rand(*x.shape[:2], 1) < shown_share
            mean, variance = model.encode(x * is_shown)
            z = mean + variance.sqrt() * torch.randn_like(mean)
            nll = -(x * model.decode(z)).sum()
            divergence = 0.5 * (variance + mean.square() - 1 - variance.log()).sum()
            # The loss per answer. The sum over the batch is scaled up to all students.
            loss = ((nll + divergence) * len(table) / len(batch) + model.penalty()) / len(answers)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            show(loss=loss.item())

    # The expected information of an answer, with expectations over z: the entropy of the mean
    # probabilities, minus the mean entropy of the probabilities.
    with torch.no_grad():
        probability = model.decode(torch.randn(N_DRAWS, options.dimensions)).exp()
    gain = (entr(probability.mean(dim=0)) - entr(probability).mean(dim=0)).sum(dim=1).numpy()
    # The quality of a question that nobody answered is unknown. For the others, find the position
    # of the QuestionId in the sorted `question_ids`.
    quality = np.full(len(question), np.nan)
    known = np.isin(question, question_ids)
    quality[known] = gain[np.searchsorted(question_ids, question[known])]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_ranking(question, quality, paths.output)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
