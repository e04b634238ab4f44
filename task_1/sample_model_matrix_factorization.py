"""Task 1: logistic matrix factorisation with biases, by alternating ridge regressions.

Run:     python task_1/sample_model_matrix_factorization.py --local     predict the local split
         python task_1/local_evaluation.py                              score that prediction
         python task_1/sample_model_matrix_factorization.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_1.csv and the zip to upload
Scores:  accuracy 0.7141 on real answers (SD over ten splits: 0.0024), majority model 0.6301

The model: student s answers question q correctly with probability
    sigmoid(easiness[q] + ability[s] · loading[q])
where ability and loading are short vectors. Quadratic penalties (Gaussian priors) keep abilities
near 0, first loadings near 1 and all other loadings near 0, unless many answers say otherwise. As
first loadings are near 1, the first ability adds about the same to all logits of a student: it is
the bias of the student, as the easiness is the bias of the question.

The fit updates students and questions in turns, by a logistic regression for each of them. The
regressions for one side use not only the estimates of the other side but also how uncertain these
are (variational Bayes), so that too many dimensions do no harm.
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
import pandas as pd
from scipy.sparse import csc_matrix, csr_matrix
from scipy.special import expit

TASK = 1
# Penalties chosen on answers held out of the training data. Abilities have the penalty 1, which
# fixes the scale of abilities and loadings.
EASINESS_PENALTY = 1.0
FIRST_LOADING = 1.0
FIRST_LOADING_PENALTY = 10.0
LOADING_PENALTY = 30.0
# Training answers that an iteration handles per second, to estimate the run time. Measured on files
# of the official size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 3.5e6


@dataclass(frozen=True)
class Prior:
    """Gaussian prior of the student vectors or of the question vectors."""

    mean: FloatArray  # Shape (1 + dimensions,).
    penalty: FloatArray  # One over the variance, shape (1 + dimensions,).


def compute_logits(
    student_vectors: FloatArray, question_vectors: FloatArray, student: IntArray, question: IntArray
) -> FloatArray:
    """Return the logit of each pair of student and question: the dot product of their vectors."""
    logits = np.zeros(len(student), np.float32)
    # One dimension at a time saves memory.
    for column in range(student_vectors.shape[1]):
        logits += student_vectors[student, column] * question_vectors[question, column]
    return logits


def ridge_step(
    prior: Prior,
    fixed_vectors: FloatArray,
    fixed_covariances: FloatArray,
    answers: csr_matrix | csc_matrix,
    logits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Update all student vectors, or all question vectors, while the other vectors are fixed.

    Each vector is fitted by a logistic regression on the fixed vectors. For each element of
    `answers`, a parabola replaces the logistic loss. The parabola touches the loss at the present
    logit and lies above the loss at all other logits (Jaakkola and Jordan 2000). With parabolas,
    each regression is a ridge regression, whose solution has a closed form.

    Parameters
    ----------
    prior
        Prior of the vectors that are updated.
    fixed_vectors, fixed_covariances
        Means, shape (m, k), and covariances, shape (m, k, k), of the fixed vectors.
    answers
        Sparse matrix, shape (n, m): 1 for a right answer, 0 for a wrong one. Row i belongs to
        the vector i that is updated. The zeros are stored; pairs without an answer are not.
    logits
        Present logit of each stored element of `answers`, in the order of `answers.data`.

    Returns
    -------
    vectors : array, shape (n, k)
        The new means of the vectors.
    covariances : array, shape (n, k, k)
        The new covariances of the vectors.
    """
    # Let y be an element (1 for right, 0 for wrong), x its present logit and z its new logit. The
    # parabola is a function of z:
    #     curvature · z² / 2 - (y - 1/2) · z + constant,    curvature = tanh(x / 2) / (2 x).
    # The lower limit 1e-4 of |x| / 2 avoids 0 / 0.
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    curvatures = answers.copy()
    curvatures.data = np.tanh(half) / (4 * half)
    centred = answers.copy()
    centred.data -= 0.5
    # The new vector of row i is covariance · target, where
    #     covariance = inverse of (sum of curvature · E[v vᵀ] + diagonal matrix of the penalties)
    #     target = sum of (y - 1/2) · E[v] + penalties · prior mean.
    # Both sums are over the elements y of the row. v is the fixed vector of an element's column:
    # E[v] is its mean, and E[v vᵀ] = E[v] E[v]ᵀ + covariance of v.
    m, k = fixed_vectors.shape
    expected_squares = fixed_vectors[:, :, None] * fixed_vectors[:, None, :] + fixed_covariances
    curvature_sums = (curvatures @ expected_squares.reshape(m, k * k)).reshape(-1, k, k)
    covariances = np.linalg.inv(curvature_sums + np.diag(prior.penalty))
    targets = centred @ fixed_vectors + prior.penalty * prior.mean
    vectors = (covariances @ targets[:, :, None])[:, :, 0]
    return vectors.astype(np.float32), covariances.astype(np.float32)


def question_prior(is_correct: pd.Series, n_dimensions: int) -> Prior:
    """Return the prior of a question's vector: its easiness and a loading for each ability.

    The easiness is the logit of a right answer for a student with abilities 0. Its prior mean is
    the log odds of a right answer to any question. A loading says how much an ability raises the
    logit. The loading of the first ability has a prior mean of 1, so that this ability raises the
    logits of all questions alike. All other loadings have a prior mean of 0. A penalty is the
    precision of the prior, 1 / variance: the larger the penalty, the closer the element of the
    vector stays to its prior mean.
    """
    # Adding 1 to both counts keeps the logarithm finite.
    n_wrong, n_right = np.bincount(is_correct, minlength=2) + 1
    log_odds = np.log(n_right / n_wrong)
    mean = np.array([log_odds, FIRST_LOADING] + [0.0] * (n_dimensions - 1))
    penalty = np.array(
        [EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (n_dimensions - 1)
    )
    return Prior(mean, penalty)


def fit(
    answers: csr_matrix, prior: Prior, options: argparse.Namespace
) -> tuple[FloatArray, FloatArray]:
    """Fit the vectors of students and questions in turns.

    Returns two arrays: one with a row for each student, one with a row for each question.

    `answers` has a row for each student and a column for each question: 1 for a right answer, 0 for
    a wrong one. `prior` is the prior of the questions.
    """
    k = options.dimensions
    n_students, n_questions = answers.shape
    rng = np.random.default_rng(options.seed)
    # Start near the prior means. Without the random differences, whose standard deviation is 0.1,
    # the loadings of all abilities but the first would stay 0.
    questions = rng.normal(prior.mean, 0.1, (n_questions, 1 + k)).astype(np.float32)
    # A student's vector is a 1 followed by the abilities. The 1 multiplies the easiness, the first
    # element of the question's vector. The large penalty 1e8 keeps the 1 from changing.
    student_prior = Prior(mean=np.array([1.0] + [0.0] * k), penalty=np.array([1e8] + [1.0] * k))
    students = np.tile(student_prior.mean, (n_students, 1)).astype(np.float32)
    # The covariances of the question vectors. They are 0 at first: the first step takes the start
    # vectors as exact.
    question_covariances = np.zeros((n_questions, 1 + k, 1 + k), np.float32)
    # The row (student) and the column (question) of each element, in the order of `answers.data`.
    student, question = answers.tocoo().coords
    with progress.steps(options.iterations, "fitting", options.log) as (steps, show):
        for _ in steps:
            logits = compute_logits(students, questions, student, question)
            students, student_covariances = ridge_step(
                student_prior, questions, question_covariances, answers, logits
            )
            logits = compute_logits(students, questions, student, question)
            questions, question_covariances = ridge_step(
                prior, students, student_covariances, answers.T, logits
            )
            # `logits` are from before the step above. Show their mean logistic loss, because it
            # would take time to compute the logits again.
            show(loss=np.mean(np.logaddexp(0, logits) - answers.data * logits))
    return students, questions


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    run_log.add_log_flag(parser)
    cli.add_number(parser, "--dimensions", 8, "length of the vectors", parse=int, metavar="K")
    help_text = "how often students and questions are updated"
    cli.add_number(parser, "--iterations", 20, help_text, parse=int)
    cli.add_number(parser, "--seed", 0, "seed of the random start")
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
    # In: `answers`, `template` (DataFrames). Out, for each template row: `prediction`, `p_right`.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    # For an id without training answers, `find_ids` returns the number after the last id. So one
    # extra student and one extra question stand for all unknown ids. Their vectors stay at the
    # prior mean.
    shape = (len(student_ids) + 1, len(question_ids) + 1)
    is_correct = answers["IsCorrect"].astype(np.float32)
    answer_matrix = csr_matrix((is_correct, (student, question)), shape)
    # Save memory during the fit.
    del student, question, is_correct

    prior = question_prior(answers["IsCorrect"], options.dimensions)
    students, questions = fit(answer_matrix, prior, options)

    template_student = find_ids(student_ids, template["UserId"])
    template_question = find_ids(question_ids, template["QuestionId"])
    logits = compute_logits(students, questions, template_student, template_question)
    p_right = expit(logits)
    prediction = (logits > 0).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
