"""Task 2: logistic matrix factorisation with biases, by alternating ridge regressions.

Run:     python task_2/sample_model_matrix_factorization.py --local     predict the local split
         python task_2/local_evaluation.py                              score that
         python task_2/sample_model_matrix_factorization.py             predict the template
         python task_2/sample_model_matrix_factorization.py --help      all flags
Writes:  submission_task_2.csv and the zip to upload
Scores:  0.5679 ± 0.0018 on real answers, where the majority model scores 0.5539

The model: a student goes through the options of a question, first the correct one, then the others
by popularity, until one is taken. Decision d for or against one is a yes of student s with
    sigmoid(easiness[d] + ability[s] · loading[d])
where ability and loading are short vectors. Quadratic penalties (Gaussian priors) keep abilities
near 0, first loadings near 1 (wrong options: 0.3) and all others near 0, if the answers allow it.

The fit: while the decisions stay fixed, every student is a logistic regression, and the other way
round. All students take a step, then all decisions, and so on in turns. How uncertain one side is
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

TASK = 2
# Chosen on answers held out of training data. The penalty of abilities is 1, to set their scale.
EASINESS_PENALTY, FIRST_LOADING_PENALTY, LOADING_PENALTY = 1.0, 10.0, 30.0


def compute_logits(
    students: FloatArray, decisions: FloatArray, student: IntArray, decision: IntArray
) -> FloatArray:
    """Return the logit of each pair, the product of its two vectors, shape (pairs,)."""
    logits = np.zeros(len(student), np.float32)
    for k in range(students.shape[1]):  # one dimension at a time, which saves memory
        logits += students[student, k] * decisions[decision, k]
    return logits


def ridge_step(
    prior: tuple[FloatArray, FloatArray],
    features: FloatArray,
    covariances: FloatArray,
    choices: csr_matrix,
    logits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return coefficients, shape (n, k), of many logistic regressions, and their covariances.

    Each regresses a row of the sparse `choices`, shape (n, m), on `features`, shape (m, k), which
    are uncertain by `covariances`, shape (m, k, k). Its loss is replaced by a parabola that touches
    it at the present `logits` and lies above it elsewhere (Jaakkola and Jordan 2000).
    """
    mean, penalty = prior
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    weights, targets = choices.copy(), choices.copy()
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
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: columns of `answers`. Out, for each row of `template`: `prediction`, 1 to 4; `p_option`.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    n_students, n_questions = len(student_ids) + 1, len(question_ids) + 1  # last: unknown ids
    cells = 4 * question + (answers["AnswerValue"].to_numpy() - 1)
    popularity = np.bincount(cells, minlength=4 * n_questions).reshape(-1, 4).astype(float)
    popularity[-1] = popularity.sum(axis=0)
    popularity[question, answers["CorrectAnswer"] - 1] = np.inf
    options_in_order = np.argsort(-popularity, axis=1, kind="stable")
    place_of_option = np.argsort(options_in_order, axis=1)  # 0: correct, 3: least popular
    place = place_of_option.ravel()[cells]
    answer, d = np.nonzero(place[:, None] >= np.arange(3))  # the decisions behind each answer
    yes = (place[answer] == d).astype(np.float32)
    shape = (n_students, 3 * n_questions)
    choices = csr_matrix((yes, (student[answer], 3 * question[answer] + d)), shape)

    k = options.dimensions
    counts = 1 + np.bincount(place, minlength=4)
    mean = np.zeros((n_questions, 3, 1 + k))
    mean[:, :, 0] = [np.log(counts[i] / counts[i + 1 :].sum()) for i in range(3)]
    mean[:, :, 1] = 1, 0.3, 0.3
    mean = mean.reshape(-1, 1 + k)
    prior = mean, np.array([EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (k - 1))
    decisions = np.random.default_rng(options.seed).normal(mean, 0.1).astype(np.float32)
    spread = np.zeros((3 * n_questions, 1 + k, 1 + k), np.float32)
    # A student is a 1, which a huge penalty pins down, and then the ability.
    student_prior = np.eye(1, 1 + k)[0], np.array([1e8] + [1] * k)
    students = np.tile(student_prior[0], (n_students, 1)).astype(np.float32)
    # From here on in the order of `choices`, which are sorted by student.
    student, decision = choices.tocoo().coords
    # At the rate measured at full size, in answers a second.
    progress.announce(options.iterations * len(answers) / 1.5e6)
    with progress.steps(options.iterations, "fitting", options.log) as (steps, show):
        for _ in steps:
            logits = compute_logits(students, decisions, student, decision)
            students, spread = ridge_step(student_prior, decisions, spread, choices, logits)
            logits = compute_logits(students, decisions, student, decision)
            decisions, spread = ridge_step(prior, students, spread, choices.T, logits)
            show(loss=np.mean(np.logaddexp(0, logits) - choices.data * logits))

    student = find_ids(student_ids, template["UserId"])
    question = find_ids(question_ids, template["QuestionId"])
    p = [expit(compute_logits(students, decisions, student, 3 * question + i)) for i in range(3)]
    none = np.cumprod([1 - p_yes for p_yes in p], axis=0)
    p_place = np.stack([p[0], none[0] * p[1], none[1] * p[2], none[2]], axis=1)
    p_option = np.take_along_axis(p_place, place_of_option[question], axis=1)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
