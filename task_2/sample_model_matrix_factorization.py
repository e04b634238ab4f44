"""Task 2: logistic matrix factorisation with biases, by alternating ridge regressions.

Run:     python task_2/sample_model_matrix_factorization.py --local     predict the local split
         python task_2/local_evaluation.py                              score that
         python task_2/sample_model_matrix_factorization.py             predict the template
         python task_2/sample_model_matrix_factorization.py --help      all flags
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.5679 ± 0.0018 on real answers, where the majority model scores 0.5539

The model: a student goes through the options of a question, first the correct one, then the others
by popularity, and takes one of them. Student s takes the option of decision d with probability
    sigmoid(easiness[d] + ability[s] · loading[d])
where ability and loading are short vectors. Quadratic penalties (Gaussian priors) keep abilities
near 0, first loadings near 1 (wrong options: 0.3) and all other loadings near 0, unless many
answers say otherwise.

The fit: while the decisions stay fixed, the ability of each student is fitted by a logistic
regression; while the students stay fixed, so is the vector of each decision. The two sides take
steps in turns. Each step allows for the uncertainty of the other side, so that too many dimensions
do no harm (variational Bayes).
Control-C ends the fit early and predicts with what it has learned so far.
"""

import argparse
from dataclasses import dataclass

from common import cli, progress, run_log, sample_models, submission
from common.answers import find_ids, number_ids, read_answers
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

TASK = 2
# Penalties chosen on answers held out of the training data. The penalty of abilities is 1, which
# sets their scale.
EASINESS_PENALTY = 1.0
FIRST_LOADING_PENALTY = 10.0
LOADING_PENALTY = 30.0
# Answers in one iteration, measured at full size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 1.5e6


@dataclass(frozen=True)
class Prior:
    """Gaussian prior of the coefficients of one side, students or decisions."""

    mean: FloatArray  # Shape (1 + dimensions,), or a row for each decision.
    penalty: FloatArray  # One over the variance, shape (1 + dimensions,).


def compute_logits(
    students: FloatArray, decisions: FloatArray, student: IntArray, decision: IntArray
) -> FloatArray:
    """Return the logit of each pair, the product of its two vectors, shape (pairs,)."""
    logits = np.zeros(len(student), np.float32)
    # One dimension at a time saves memory.
    for k in range(students.shape[1]):
        logits += students[student, k] * decisions[decision, k]
    return logits


def ridge_step(
    prior: Prior,
    features: FloatArray,
    covariances: FloatArray,
    choices: csr_matrix,
    logits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Update the coefficients of one side by a logistic regression for each of its members.

    A parabola replaces the logistic loss. It touches the loss at the present `logits` and lies
    above it elsewhere (Jaakkola and Jordan 2000), so that each regression is a ridge regression.

    Parameters
    ----------
    prior
        Prior of the coefficients.
    features, covariances
        Means, shape (m, k), and covariances, shape (m, k, k), of the other side's coefficients.
    choices
        Sparse matrix of 0 and 1, shape (n, m): a row for each regression.
    logits
        Present logit of each stored element of `choices`.

    Returns
    -------
    coefficients : array, shape (n, k)
    covariances : array, shape (n, k, k)
    """
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    weights = choices.copy()
    weights.data = np.tanh(half) / (4 * half)
    targets = choices.copy()
    targets.data -= 0.5
    m, k = features.shape
    squares = features[:, :, None] * features[:, None, :] + covariances
    precisions = (weights @ squares.reshape(m, k * k)).reshape(-1, k, k) + np.diag(prior.penalty)
    covariances = np.linalg.inv(precisions)
    coefficients = covariances @ (targets @ features + prior.penalty * prior.mean)[:, :, None]
    return coefficients[:, :, 0].astype(np.float32), covariances.astype(np.float32)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    run_log.add_log_flag(parser)
    cli.add_number(parser, "--dimensions", 8, "length of the vectors", int, "K")
    cli.add_number(parser, "--iterations", 20, "passes of the fit", int)
    cli.add_number(parser, "--seed", 0, "of the random start")
    return parser


def main() -> None:
    """Read the answers, fit the model, predict the template, write the submission."""
    options = build_parser().parse_args()
    if min(options.dimensions, options.iterations) < 1:
        raise InputError("--dimensions and --iterations must be at least 1")
    paths = sample_models.paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=True)
    progress.announce(options.iterations * len(answers) / ANSWERS_PER_SECOND)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, DataFrames. Out, for each template row: `prediction`, `p_option`.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    # The last student and the last question stand for unknown ids, and stay at the prior.
    n_students = len(student_ids) + 1
    n_questions = len(question_ids) + 1
    option = answers["AnswerValue"].to_numpy() - 1
    n_chosen = np.bincount(4 * question + option, minlength=4 * n_questions)
    popularity = n_chosen.reshape(n_questions, 4).astype(float)
    popularity[-1] = popularity.sum(axis=0)
    # The correct option comes first in the order of options, whatever its popularity.
    popularity[question, answers["CorrectAnswer"] - 1] = np.inf
    options_in_order = np.argsort(-popularity, axis=1, kind="stable")
    # Rank of each option in this order: 0 is correct, 3 is the least popular.
    rank_of_option = np.argsort(options_in_order, axis=1)
    rank = rank_of_option[question, option]
    # An option of rank 2 is a no to the ranks 0 and 1 and a yes to 2; nothing is asked of rank 3.
    answer, asked_rank = np.nonzero(rank[:, None] >= np.arange(3))
    is_yes = (rank[answer] == asked_rank).astype(np.float32)
    decision = 3 * question[answer] + asked_rank
    shape = (n_students, 3 * n_questions)
    choices = csr_matrix((is_yes, (student[answer], decision)), shape)

    k = options.dimensions
    # One more of each keeps the logarithm finite.
    counts = 1 + np.bincount(rank, minlength=4)
    mean = np.zeros((n_questions, 3, 1 + k))
    mean[:, :, 0] = [np.log(counts[i] / counts[i + 1 :].sum()) for i in range(3)]
    mean[:, :, 1] = [1, 0.3, 0.3]
    mean = mean.reshape(-1, 1 + k)
    penalty = np.array([EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (k - 1))
    decision_prior = Prior(mean, penalty)
    rng = np.random.default_rng(options.seed)
    decisions = rng.normal(mean, 0.1).astype(np.float32)
    # The covariances of the side that took the last step.
    spread = np.zeros((3 * n_questions, 1 + k, 1 + k), np.float32)
    # A student's vector is a 1 for the easiness, then the ability. A huge penalty fixes the 1.
    student_prior = Prior(np.array([1.0] + [0.0] * k), np.array([1e8] + [1.0] * k))
    students = np.tile(student_prior.mean, (n_students, 1)).astype(np.float32)
    # The order of the matrix's elements, which are sorted by student.
    student, decision = choices.tocoo().coords
    with progress.steps(options.iterations, "fitting", options.log) as (steps, show):
        for _ in steps:
            logits = compute_logits(students, decisions, student, decision)
            students, spread = ridge_step(student_prior, decisions, spread, choices, logits)
            logits = compute_logits(students, decisions, student, decision)
            decisions, spread = ridge_step(decision_prior, students, spread, choices.T, logits)
            show(loss=np.mean(np.logaddexp(0, logits) - choices.data * logits))

    student = find_ids(student_ids, template["UserId"])
    question = find_ids(question_ids, template["QuestionId"])
    p_rank = np.empty((len(template), 4), np.float32)
    # The probability that no option has been taken yet.
    p_none = np.ones(len(template), np.float32)
    for i in range(3):
        p_yes = expit(compute_logits(students, decisions, student, 3 * question + i))
        p_rank[:, i] = p_none * p_yes
        p_none *= 1 - p_yes
    p_rank[:, 3] = p_none
    p_option = np.take_along_axis(p_rank, rank_of_option[question], axis=1)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
