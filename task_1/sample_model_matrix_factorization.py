"""Task 1: logistic matrix factorisation with biases, by alternating Newton steps.

Run:     python task_1/sample_model_matrix_factorization.py --local     predict the local split
         python task_1/local_evaluation.py                              score that
         python task_1/sample_model_matrix_factorization.py             predict the template
         python task_1/sample_model_matrix_factorization.py --help      all flags
Writes:  submission_task_1.csv and the zip to upload
Scores:  SCORES

The model: student s answers question q correctly with probability
    sigmoid(easiness[q] + ability[s] · loading[q])
where ability and loading are short vectors. Quadratic penalties, which are Gaussian priors, keep
abilities near 0, first loadings near 1 and all others near 0, as long as the answers allow it. So
the first ability is a bias of the student, as the easiness is one of the question.

The fit: while the questions stay fixed, every student is a small logistic regression, and the other
way round. All students take one Newton step, then all questions, and so on in turns.
Control-C ends the fit early and predicts with what it has learned so far.
"""

import sys

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit
from tqdm import trange

from common import cli, layout, schema, submission
from common.answers import find_ids, number_ids, read_answers
from common.errors import InputError

TASK = 1
# Chosen on answers held out of training data. The penalty of abilities, 1, only sets their scale.
EASINESS_PENALTY, FIRST_LOADING_PENALTY, LOADING_PENALTY = 1.0, 10.0, 100.0

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


def compute_logits(
    abilities: FloatArray, questions: FloatArray, student: IntArray, question: IntArray
) -> FloatArray:
    """Return log-odds, shape (pairs,). Each row of `questions` is an easiness, then loadings."""
    logits: FloatArray = questions[question, 0]
    for k in range(abilities.shape[1]):  # one factor at a time, which saves memory
        logits += abilities[student, k] * questions[question, 1 + k]
    return logits


def newton_step(
    rows: FloatArray,
    prior: npt.NDArray[np.float64] | float,
    penalty: npt.NDArray[np.float64] | float,
    features: FloatArray,
    answers: csr_matrix,
    logits: FloatArray,
) -> FloatArray:
    """Return the coefficients of many logistic regressions after one Newton step of each.

    Row i of `rows`, shape (n, k), regresses row i of the sparse `answers`, shape (n, m), on the
    `features`, shape (m, k), with penalty / 2 · (rows[i] - prior)² on top of the log loss.
    """
    residuals, curvatures = answers.copy(), answers.copy()
    residuals.data -= expit(logits)
    # A bound on p (1 - p), so that no step goes too far (Jaakkola and Jordan 2000).
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    curvatures.data = np.tanh(half) / (4 * half)
    k = rows.shape[1]
    gradient = residuals @ features - penalty * (rows - prior)
    products = (features[:, :, None] * features[:, None, :]).reshape(-1, k * k)
    hessian = (curvatures @ products).reshape(-1, k, k) + penalty * np.eye(k)
    return (rows + np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]).astype(np.float32)


def main() -> None:
    """Load, model, predict, write."""
    parser = cli.sample_model_parser(__doc__, TASK)
    flag = parser.add_argument
    flag("--dimensions", type=int, default=6, metavar="K", help="length of the vectors (default 6)")
    flag("--iterations", type=int, default=20, metavar="N", help="passes of the fit (default 20)")
    flag("--seed", type=cli.seed, default=0, metavar="N", help="another seed, another random start")
    options = parser.parse_args()
    if min(options.dimensions, options.iterations) < 1:
        raise InputError("--dimensions and --iterations must be at least 1")
    paths = cli.sample_model_paths(options, TASK)
    template = submission.read_template(paths.template)
    answers = read_answers(paths.train, options=False)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `prediction`, 0 or 1 for every row of `template`.
    student_ids, student = number_ids(answers.student)
    question_ids, question = number_ids(answers.question)
    # One row more than there are: without answers it stays at the prior, for all unknown ids.
    shape = (len(student_ids) + 1, len(question_ids) + 1)
    matrix = csr_matrix((answers.is_correct.astype(np.float32), (student, question)), shape)

    k = options.dimensions
    n_wrong, n_correct = 1 + np.bincount(answers.is_correct, minlength=2)
    prior = np.array([np.log(n_correct / n_wrong), 1] + [0] * (k - 1))
    penalty = np.array([EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (k - 1))

    rng = np.random.default_rng(options.seed)
    questions = rng.normal(prior, 0.1, (shape[1], 1 + k)).astype(np.float32)
    abilities = np.zeros((shape[0], k), np.float32)
    # From here on in the order of the matrix, which is sorted by student.
    student, question = matrix.tocoo().coords
    bar = trange(options.iterations, desc="fitting", disable=None)
    try:
        for _ in bar:
            logits = compute_logits(abilities, questions, student, question)
            abilities = newton_step(abilities, 0, 1, questions[:, 1:], matrix, logits)
            logits = compute_logits(abilities, questions, student, question)
            features = np.insert(abilities, 0, 1, axis=1)  # the 1 goes with the easiness
            questions = newton_step(questions, prior, penalty, features, matrix.T, logits)
            loss = np.mean(np.logaddexp(0, logits) - matrix.data * logits)
            bar.set_postfix(loss=f"{loss:.4f}")
    except KeyboardInterrupt:
        bar.close()
        print("interrupted: going on with what it has learned so far", file=sys.stderr)

    student = find_ids(student_ids, template.student)
    question = find_ids(question_ids, template.question)
    prediction = (compute_logits(abilities, questions, student, question) > 0).astype(np.int8)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(
        template, schema.IS_CORRECT, prediction, paths.output, layout.submission_name(TASK)
    )
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
