"""Task 1: logistic matrix factorisation with biases, by alternating ridge regressions.

Run:     python task_1/sample_model_matrix_factorization.py --local     predict the local split
         python task_1/local_evaluation.py                              score that
         python task_1/sample_model_matrix_factorization.py             predict the template
         python task_1/sample_model_matrix_factorization.py --help      all flags
Writes:  submission_task_1.csv and the zip to upload
Scores:  0.7141 ± 0.0024 on real answers, where the majority model scores 0.6301

The model: student s answers question q correctly with probability
    sigmoid(easiness[q] + ability[s] · loading[q])
where ability and loading are short vectors. Quadratic penalties (Gaussian priors) keep abilities
near 0, first loadings near 1 and all other loadings near 0, unless many answers say otherwise. So
the first ability is the bias of a student, as the easiness is the bias of a question.

The fit: while the questions stay fixed, the ability of each student is fitted by a logistic
regression; while the students stay fixed, so is the vector of each question. The two sides take
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

TASK = 1
# Penalties chosen on answers held out of the training data. The penalty of abilities is 1, which
# sets their scale.
EASINESS_PENALTY = 1.0
FIRST_LOADING_PENALTY = 10.0
LOADING_PENALTY = 30.0
# Answers in one iteration, measured at full size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 3.5e6


@dataclass(frozen=True)
class Prior:
    """Gaussian prior of the coefficients of one side, students or questions."""

    mean: FloatArray  # Shape (1 + dimensions,), or a row for each question.
    penalty: FloatArray  # One over the variance, shape (1 + dimensions,).


def compute_logits(
    students: FloatArray, questions: FloatArray, student: IntArray, question: IntArray
) -> FloatArray:
    """Return the logit of each pair, the product of its two vectors, shape (pairs,)."""
    logits = np.zeros(len(student), np.float32)
    # One dimension at a time saves memory.
    for k in range(students.shape[1]):
        logits += students[student, k] * questions[question, k]
    return logits


def ridge_step(
    prior: Prior,
    features: FloatArray,
    covariances: FloatArray,
    answers: csr_matrix,
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
    answers
        Sparse matrix of 0 and 1, shape (n, m): a row for each regression.
    logits
        Present logit of each stored element of `answers`.

    Returns
    -------
    coefficients : array, shape (n, k)
    covariances : array, shape (n, k, k)
    """
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    weights = answers.copy()
    weights.data = np.tanh(half) / (4 * half)
    targets = answers.copy()
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
    answers = read_answers(paths.train, options=False)
    progress.announce(options.iterations * len(answers) / ANSWERS_PER_SECOND)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template`, DataFrames. Out, for each template row: `prediction`, `p_right`.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    # The last student and the last question stand for unknown ids, and stay at the prior.
    n_students = len(student_ids) + 1
    n_questions = len(question_ids) + 1
    shape = (n_students, n_questions)
    matrix = csr_matrix((answers["IsCorrect"].astype(np.float32), (student, question)), shape)

    k = options.dimensions
    # One more of each keeps the logarithm finite.
    n_wrong, n_correct = 1 + np.bincount(answers["IsCorrect"], minlength=2)
    mean = np.array([np.log(n_correct / n_wrong), 1] + [0] * (k - 1))
    penalty = np.array([EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (k - 1))
    question_prior = Prior(mean, penalty)
    rng = np.random.default_rng(options.seed)
    questions = rng.normal(mean, 0.1, (n_questions, 1 + k)).astype(np.float32)
    # The covariances of the side that took the last step.
    spread = np.zeros((n_questions, 1 + k, 1 + k), np.float32)
    # A student's vector is a 1 for the easiness, then the ability. A huge penalty fixes the 1.
    student_prior = Prior(np.array([1.0] + [0.0] * k), np.array([1e8] + [1.0] * k))
    students = np.tile(student_prior.mean, (n_students, 1)).astype(np.float32)
    # The order of the matrix's elements, which are sorted by student.
    student, question = matrix.tocoo().coords
    with progress.steps(options.iterations, "fitting", options.log) as (steps, show):
        for _ in steps:
            logits = compute_logits(students, questions, student, question)
            students, spread = ridge_step(student_prior, questions, spread, matrix, logits)
            logits = compute_logits(students, questions, student, question)
            questions, spread = ridge_step(question_prior, students, spread, matrix.T, logits)
            show(loss=np.mean(np.logaddexp(0, logits) - matrix.data * logits))

    student = find_ids(student_ids, template["UserId"])
    question = find_ids(question_ids, template["QuestionId"])
    logits = compute_logits(students, questions, student, question)
    p_right = expit(logits)
    prediction = (logits > 0).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
