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
near 0, first loadings near 1 and all others near 0, as long as the answers allow it. So the first
ability is a bias of the student, as the easiness is one of the question.

The fit: while the questions stay fixed, every student is a logistic regression, and the other way
round. All students take a step, then all questions, and so on in turns. How uncertain one side is
counts in the step of the other, so that too many dimensions do no harm (variational Bayes).
Control-C ends the fit early and predicts with what it has learned so far.
"""

import argparse

from common import cli, progress, run_log, sample_models, submission
from common.answers import find_ids, number_ids, read_answers
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import expit

TASK = 1
# Chosen on answers held out of training data. The penalty of abilities is 1, to set their scale.
EASINESS_PENALTY, FIRST_LOADING_PENALTY, LOADING_PENALTY = 1.0, 10.0, 30.0


def compute_logits(
    students: FloatArray, questions: FloatArray, student: IntArray, question: IntArray
) -> FloatArray:
    """Return the logit of each pair, the product of its two vectors, shape (pairs,)."""
    logits = np.zeros(len(student), np.float32)
    for k in range(students.shape[1]):  # one dimension at a time, which saves memory
        logits += students[student, k] * questions[question, k]
    return logits


def ridge_step(
    prior: tuple[FloatArray, FloatArray],
    features: FloatArray,
    covariances: FloatArray,
    answers: csr_matrix,
    logits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients, shape (n, k), of many logistic regressions, and their covariances.

    Each regresses a row of the sparse `answers`, shape (n, m), on `features`, shape (m, k), which
    are uncertain by `covariances`, shape (m, k, k). Its loss is replaced by a parabola that touches
    it at the present `logits` and lies above it elsewhere (Jaakkola and Jordan 2000).
    """
    mean, penalty = prior
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    weights, targets = answers.copy(), answers.copy()
    weights.data = np.tanh(half) / (4 * half)
    targets.data -= 0.5
    m, k = features.shape
    squares = features[:, :, None] * features[:, None, :] + covariances
    precisions = (weights @ squares.reshape(m, k * k)).reshape(-1, k, k) + np.diag(penalty)
    covariances = np.linalg.inv(precisions)
    coefficients = covariances @ (targets @ features + penalty * mean)[:, :, None]
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

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: columns of `answers`. Out, for each row of `template`: `prediction`, 0 or 1; `p_right`.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    # One extra row has no answers and stays at the prior: it serves all unknown ids.
    shape = (len(student_ids) + 1, len(question_ids) + 1)
    matrix = csr_matrix((answers["IsCorrect"].astype(np.float32), (student, question)), shape)

    k = options.dimensions
    n_wrong, n_correct = 1 + np.bincount(answers["IsCorrect"], minlength=2)
    mean = np.array([np.log(n_correct / n_wrong), 1] + [0] * (k - 1))
    prior = mean, np.array([EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (k - 1))
    rng = np.random.default_rng(options.seed)
    questions = rng.normal(mean, 0.1, (shape[1], 1 + k)).astype(np.float32)
    spread = np.zeros((shape[1], 1 + k, 1 + k), np.float32)
    # A student is a 1, which a huge penalty pins down, and then the ability.
    student_prior = np.eye(1, 1 + k)[0], np.array([1e8] + [1] * k)
    students = np.tile(student_prior[0], (shape[0], 1)).astype(np.float32)
    # From here on, in the order of the matrix, which is sorted by student.
    student, question = matrix.tocoo().coords
    # At the rate measured at full size, in answers a second.
    progress.announce(options.iterations * len(answers) / 3.5e6)
    with progress.steps(options.iterations, "fitting", options.log) as (steps, show):
        for _ in steps:
            logits = compute_logits(students, questions, student, question)
            students, spread = ridge_step(student_prior, questions, spread, matrix, logits)
            logits = compute_logits(students, questions, student, question)
            questions, spread = ridge_step(prior, students, spread, matrix.T, logits)
            show(loss=np.mean(np.logaddexp(0, logits) - matrix.data * logits))

    student = find_ids(student_ids, template["UserId"])
    question = find_ids(question_ids, template["QuestionId"])
    logits = compute_logits(students, questions, student, question)
    prediction, p_right = (logits > 0).astype(np.int8), expit(logits)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_right, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
