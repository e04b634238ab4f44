"""Task 3: rank the questions by how much an answer tells about its student, by factorisation.

The model is that of task 1: student s answers question q correctly with probability
    sigmoid(easiness[q] + ability[s] · loading[q])
where ability and loading are short vectors. Abilities are distributed N(0, I) over the students.
Quadratic penalties (Gaussian priors) keep first loadings near 1 and all other loadings near 0,
unless many answers say otherwise.

The quality of a question is the information that its answer is expected to give about the
abilities, in bits. With H(p) = -p log2 p - (1 - p) log2 (1 - p) it is

    H(E over abilities of p) - E over abilities of H(p),  p = the probability of a right answer.

It is high if about half of the students are right, and if their abilities decide who is.

Run:     python task_3/sample_model_matrix_factorization.py [--dimensions 8] [--seed 1]
         python task_3/local_evaluation.py --phase public
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submissions/submission_task_3.csv and the zip to upload
Scores:  agreement 0.46 with the best of five experts on 25 real pairs, 0.38 on average

Control-C ends the fit early and ranks by what has been learned so far.
"""

import argparse
from dataclasses import dataclass

from common import cli, progress, sample_models, submission
from common.answers import number_ids, read_answers
from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd
from scipy.sparse import csc_matrix, csr_matrix
from scipy.special import entr, expit

TASK = 3
# How often students and questions are updated.
N_ITERATIONS = 20
# The penalties are those of the same model in task 1, chosen there on held-out training answers.
# Abilities have the penalty 1, which fixes the scale of abilities and loadings.
EASINESS_PENALTY = 1.0
FIRST_LOADING = 1.0
FIRST_LOADING_PENALTY = 10.0
LOADING_PENALTY = 30.0

# Gauss-Hermite quadrature: if x is standard normal, the mean of f(x) is about Σ weight · f(node).
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
NODE_WEIGHTS /= NODE_WEIGHTS.sum()


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
    mean = np.zeros(1 + n_dimensions)
    mean[0] = np.log(n_right / n_wrong)
    mean[1] = FIRST_LOADING
    penalty = np.full(1 + n_dimensions, LOADING_PENALTY)
    penalty[0] = EASINESS_PENALTY
    penalty[1] = FIRST_LOADING_PENALTY
    return Prior(mean, penalty)


def fit(answers: csr_matrix, prior: Prior, seed: int) -> FloatArray:
    """Fit the vectors of students and questions in turns; return the vectors of the questions.

    `answers` has a row for each student and a column for each question: 1 for a right answer, 0 for
    a wrong one. `prior` is the prior of the questions.
    """
    n_students, n_questions = answers.shape
    k = len(prior.mean) - 1
    rng = np.random.default_rng(seed)
    # The question vectors start near their prior mean, with random deviations of about 0.1.
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
    with progress.steps(N_ITERATIONS, "fitting") as (steps, show):
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
    return questions


def expected_information(question_vectors: FloatArray) -> FloatArray:
    """Return the information that the answer to each question gives about the abilities, in bits.

    With p for the probability of a right answer, it is the entropy of the mean of p minus the mean
    of the entropy of p. Both means are over the abilities of the students, which are distributed
    N(0, I). So the logit of p, easiness + loadings · abilities, is normal. Its mean is the
    easiness, and its standard deviation is the length of the vector of loadings.
    """
    easiness = question_vectors[:, :1]
    length = np.linalg.norm(question_vectors[:, 1:], axis=1, keepdims=True)
    # Probability of a right answer at each of the `NODES`, shape (questions, nodes).
    p = expit(easiness + length * NODES)
    return np.asarray(binary_entropy(p @ NODE_WEIGHTS) - binary_entropy(p) @ NODE_WEIGHTS)


def binary_entropy(p: FloatArray) -> FloatArray:
    """Return the entropy of outcomes with the probabilities p and 1 - p, in bits."""
    return np.asarray((entr(p) + entr(1 - p)) / np.log(2))


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    cli.add_number(parser, "--dimensions", 8, "length of the vectors", metavar="K")
    cli.add_number(parser, "--seed", 0, "seed of the random start")
    return parser


def main() -> None:
    """Read the answers, fit the model, rank the questions, write the submission."""
    options = build_parser().parse_args()
    paths = sample_models.paths(options, TASK)
    question = submission.read_ranking_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, a DataFrame; `question`, QuestionIds. Out: `quality` of each of them.
    # The highest quality ranks first, NaN ranks last.
    student_ids, row = number_ids(answers["UserId"])
    question_ids, column = number_ids(answers["QuestionId"])
    is_correct = answers["IsCorrect"].astype(np.float32)
    shape = (len(student_ids), len(question_ids))
    answer_matrix = csr_matrix((is_correct, (row, column)), shape)

    prior = question_prior(answers["IsCorrect"], options.dimensions)
    question_vectors = fit(answer_matrix, prior, options.seed)
    # The quality of a question is how much an answer to it is expected to tell about the student.
    information = expected_information(question_vectors)
    # The quality of a question that nobody answered is unknown. For the others, find the position
    # of the QuestionId in the sorted `question_ids`.
    quality = np.full(len(question), np.nan)
    known = np.isin(question, question_ids)
    quality[known] = information[np.searchsorted(question_ids, question[known])]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_ranking(question, quality, paths.output)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(question):,} questions)")


if __name__ == "__main__":
    cli.run(main)
