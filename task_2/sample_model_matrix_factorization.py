"""Task 2: logistic matrix factorisation with biases, by alternating Newton steps.

Run:     python task_2/sample_model_matrix_factorization.py --local     predict the local split
         python task_2/local_evaluation.py                              score that
         python task_2/sample_model_matrix_factorization.py             predict the template
Writes:  submission_task_2.csv and the zip to upload
Scores:  SCORES

The model: a student goes through the options of a question, first the correct one, then the others
by popularity, and decides on each, until one is taken; decision d of student s is a yes with
    sigmoid(easiness[d] + ability[s] · loading[d])
where ability and loading are short vectors. Quadratic penalties, which are Gaussian priors, keep
abilities near 0, first loadings near 1 (0.3 for wrong options) and all others near 0, as long as
the answers allow it. So the first ability is a bias of the student, as easiness is one of d.

The fit: while the decisions stay fixed, every student is a small logistic regression, and the other
way round. All students take one Newton step, then all decisions, and so on in turns.
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

TASK = 2
# Chosen on answers held out of training data. The penalty of abilities, 1, only sets their scale.
EASINESS_PENALTY, FIRST_LOADING_PENALTY, LOADING_PENALTY = 1.0, 10.0, 100.0

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


def compute_logits(
    abilities: FloatArray, decisions: FloatArray, student: IntArray, decision: IntArray
) -> FloatArray:
    """Return log-odds, shape (pairs,). Each row of `decisions` is an easiness, then loadings."""
    logits: FloatArray = decisions[decision, 0]
    for k in range(abilities.shape[1]):  # one factor at a time, which saves memory
        logits += abilities[student, k] * decisions[decision, 1 + k]
    return logits


def newton_step(
    rows: FloatArray,
    prior: npt.NDArray[np.float64] | float,
    penalty: npt.NDArray[np.float64] | float,
    features: FloatArray,
    choices: csr_matrix,
    logits: FloatArray,
) -> FloatArray:
    """Return the coefficients of many logistic regressions after one Newton step of each.

    Row i of `rows`, shape (n, k), regresses row i of the sparse `choices`, shape (n, m), on the
    `features`, shape (m, k), with penalty / 2 · (rows[i] - prior[i])² on top of the log loss.
    """
    residuals, curvatures = choices.copy(), choices.copy()
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
    answers = read_answers(paths.train, options=True)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: the columns of `answers`. Out: `prediction`, 1 to 4 for every row of `template`.
    student_ids, student = number_ids(answers.student)
    question_ids, question = number_ids(answers.question)
    n_students, n_questions = len(student_ids) + 1, len(question_ids) + 1  # last: unknown ids
    assert answers.option is not None and answers.correct_option is not None
    cells = 4 * question + (answers.option - 1)
    popularity = np.bincount(cells, minlength=4 * n_questions).reshape(-1, 4).astype(float)
    popularity[-1] = popularity.sum(axis=0)
    popularity[question, answers.correct_option - 1] = np.inf
    options_in_order = np.argsort(-popularity, axis=1, kind="stable")
    place = np.argsort(options_in_order, axis=1).ravel()[cells]  # 0: correct, 3: least popular
    answer, d = np.nonzero(place[:, None] >= np.arange(3))  # the decisions behind each answer
    yes = (place[answer] == d).astype(np.float32)
    shape = (n_students, 3 * n_questions)
    choices = csr_matrix((yes, (student[answer], 3 * question[answer] + d)), shape)

    k = options.dimensions
    counts = 1 + np.bincount(place, minlength=4)
    prior = np.zeros((n_questions, 3, 1 + k))
    prior[:, :, 0] = [np.log(counts[i] / counts[i + 1 :].sum()) for i in range(3)]
    prior[:, :, 1] = 1, 0.3, 0.3
    prior = prior.reshape(-1, 1 + k)
    penalty = np.array([EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (k - 1))

    decisions = np.random.default_rng(options.seed).normal(prior, 0.1).astype(np.float32)
    abilities = np.zeros((n_students, k), np.float32)
    # From here on in the order of `choices`, which are sorted by student.
    student, decision = choices.tocoo().coords
    bar = trange(options.iterations, desc="fitting", disable=None)
    try:
        for _ in bar:
            logits = compute_logits(abilities, decisions, student, decision)
            abilities = newton_step(abilities, 0, 1, decisions[:, 1:], choices, logits)
            logits = compute_logits(abilities, decisions, student, decision)
            features = np.insert(abilities, 0, 1, axis=1)  # the 1 goes with the easiness
            decisions = newton_step(decisions, prior, penalty, features, choices.T, logits)
            loss = np.mean(np.logaddexp(0, logits) - choices.data * logits)
            bar.set_postfix(loss=f"{loss:.4f}")
    except KeyboardInterrupt:
        bar.close()
        print("interrupted: going on with what it has learned so far", file=sys.stderr)

    student = find_ids(student_ids, template.student)
    question = find_ids(question_ids, template.question)
    probabilities, remaining = [], np.float32(1)
    for i in range(3):
        p_yes = expit(compute_logits(abilities, decisions, student, 3 * question + i))
        probabilities.append(remaining * p_yes)
        remaining = remaining * (1 - p_yes)
    prediction = 1 + options_in_order[question, np.argmax([*probabilities, remaining], axis=0)]
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(
        template, schema.ANSWER_VALUE, prediction, paths.output, layout.submission_name(TASK)
    )
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
