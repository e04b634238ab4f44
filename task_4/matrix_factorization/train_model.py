"""Task 4, matrix factorisation: learn vectors of the questions by expectation maximisation.

Run:     python task_4/matrix_factorization/train_model.py --local     learn from local split
         python task_4/matrix_factorization/local_evaluation.py        score that
         python task_4/matrix_factorization/train_model.py             learn from all students
         python task_4/package.py task_4/matrix_factorization          write the zip to upload
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  task_4/matrix_factorization/model_task_4_matrix_factorization.npz
Scores:  accuracy 0.6880 (0.7129 if targets may be asked), mean of the ten public masks; learned
         from right and wrong answers of 1,170 training students in two files (--more_train_data)
"""

import argparse
from pathlib import Path

from common import cli
from common.adaptive import training
from common.answers import number_ids
from common.arrays import FloatArray

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

from model import Model, fit_abilities

PACKAGE = Path(__file__).parent

# The settings were chosen by cross-validation over training students.
# Length of the vectors of abilities and of loadings.
N_DIMENSIONS = 4
# Steps of expectation maximisation.
N_STEPS = 30
# Prior mean of the first loading of a question. All first loadings are near it, so that the first
# ability raises the probability of a right answer to every question.
FIRST_LOADING = 0.2
# Penalty of the ridge regressions that estimate the intercept and the loadings of each question.
# The penalty pulls an intercept towards its prior mean as strongly as this number of answers at the
# prior mean would.
PENALTY = 5.0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = training.training_parser(__doc__)
    cli.add_number(parser, "--seed", 0, "seed of the random start")
    return parser


def main() -> None:
    """Read the training answers, fit the model, save its weights."""
    options = build_parser().parse_args()
    answers, n_questions = training.read_training(*training.training_paths(options))

    model = fit(answers, n_questions, options.seed)
    # Record the UserIds of the training students: the evaluation refuses to examine these students.
    with training.replace_weights(PACKAGE, answers["UserId"].to_numpy()) as folder:
        model.save(folder)
    print(f"trained on {len(answers):,} answers, {n_questions:,} questions")


# ---- The model: replace this block by your own. ------------------------------------------------


def fit(answers: pd.DataFrame, n_questions: int, seed: int = 0) -> Model:
    """Fit the model by expectation maximisation.

    Each step computes the distribution of every student's abilities (expectation), then the
    parameters of the questions that fit these abilities best (maximisation).

    Parameters
    ----------
    answers
        UserId, QuestionId and IsCorrect of each answer.
    n_questions
        The number of questions; all QuestionIds are smaller.
    seed
        Seed of the random start.
    """
    student_ids, student = number_ids(answers["UserId"])
    # The row and the column of each answer.
    cells = (student, answers["QuestionId"].to_numpy())
    shape = (len(student_ids), n_questions)
    is_correct = answers["IsCorrect"].to_numpy(np.float32)
    # The matrices are sparse, because most students have answered only some of the questions.
    answered = csr_matrix((np.ones_like(is_correct), cells), shape)
    is_right = csr_matrix((is_correct, cells), shape)

    # The vector of a question is its intercept followed by its loadings. The first ability helps
    # with all questions, so its loadings have a prior mean above 0.
    prior_mean = np.zeros(1 + N_DIMENSIONS)
    prior_mean[0] = is_correct.mean()
    prior_mean[1] = FIRST_LOADING
    # Start near the prior mean. Small random deviations, 0.05, give the abilities different
    # loadings: with equal loadings, the abilities would stay equal.
    start = np.random.default_rng(seed).normal(prior_mean, 0.05, (n_questions, 1 + N_DIMENSIONS))
    # At the start, the loadings are random and explain nothing, so all variance of the answers
    # counts as noise.
    model = make_model(start, noise=is_correct.var())
    for _ in range(N_STEPS):
        mean, covariance = fit_abilities(model, answered, is_right)
        model = fit_questions(mean, covariance, answered, is_right, prior_mean)
    return model


def fit_questions(
    mean: FloatArray,
    covariance: FloatArray,
    answered: csr_matrix,
    is_right: csr_matrix,
    prior_mean: FloatArray,
) -> Model:
    """Fit the parameters of each question by a ridge regression, then the variance of the noise.

    `mean` and `covariance` are the mean and the covariance of the students' abilities. `answered`
    and `is_right` are the same as in `fit_abilities`. `prior_mean` is the prior mean of a
    question's intercept and loadings.
    """
    # The expected answer to a question is vector · x. The vector is the question's intercept
    # followed by its loadings, and x is a 1 followed by the student's abilities.
    x = np.hstack([np.ones((len(mean), 1), np.float32), mean])
    n_students, k = x.shape
    # E[x xᵀ] of each student is E[x] E[x]ᵀ plus the covariance of x. The 1 in x is constant, so its
    # covariances are 0.
    expected_squares = x[:, :, None] * x[:, None, :]
    expected_squares[:, 1:, 1:] += covariance
    # For each question, the sums of E[x xᵀ] and of answer · E[x] over the students who have
    # answered it. Each matrix E[x xᵀ] is written as a row of k * k numbers, so that one product of
    # matrices computes the sums for all questions.
    square_sums = (answered.T @ expected_squares.reshape(n_students, k * k)).reshape(-1, k, k)
    right_sums = is_right.T @ x
    penalised_squares = square_sums + PENALTY * np.eye(k)
    penalised_sums = right_sums + PENALTY * prior_mean
    vectors = np.linalg.solve(penalised_squares, penalised_sums[:, :, None])[:, :, 0]

    # The noise is the mean of E[(answer - prediction)²] over all answers, where the prediction is
    # vector · x. The sum of answer² is the number of right answers, because an answer is 0 or 1.
    # `fitted_squares` is the sum of E[prediction²]: a question adds vectorᵀ · square sum · vector.
    fitted_squares = np.einsum("qi,qij,qj->", vectors, square_sums, vectors)
    residual_squares = is_right.sum() - 2 * (vectors * right_sums).sum() + fitted_squares
    return make_model(vectors, residual_squares / answered.nnz)


def make_model(vectors: FloatArray, noise: float) -> Model:
    """Return a model whose noise has the variance `noise`.

    `vectors` has a row for each question: the intercept, followed by the loadings.
    """
    vectors = vectors.astype(np.float32)
    return Model(intercept=vectors[:, 0], loading=vectors[:, 1:], noise=np.array(noise, np.float32))


# ---- End of the model. -------------------------------------------------------------------------


if __name__ == "__main__":
    cli.run(main)
