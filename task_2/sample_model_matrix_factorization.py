"""Task 2: logistic matrix factorisation with biases, by alternating ridge regressions.

Run:     python task_2/sample_model_matrix_factorization.py --local     predict the local split
         python task_2/local_evaluation.py                              score that prediction
         python task_2/sample_model_matrix_factorization.py             predict the official pairs
Guide:   "Default arguments for local evaluation" with --local, "… for Codalab submission" without
Writes:  submission_task_2.csv and the zip to upload
Scores:  accuracy 0.5679 on real answers (SD over ten splits: 0.0018), majority model 0.5539

The model: an answer is a chain of up to three decisions between yes and no. Is the option the
correct one? If not, is it the most popular wrong one? If not, is it the second most popular one?
Each question of four options has three decisions. Student s says yes in decision d with probability
    sigmoid(easiness[d] + ability[s] · loading[d])
where ability and loading are short vectors. Quadratic penalties (Gaussian priors) keep abilities
near 0, first loadings near 1 (for wrong options near 0.3) and all other loadings near 0, unless
many answers say otherwise.

The fit updates students and decisions in turns, by a logistic regression for each of them. The
regressions for one side use not only the estimates of the other side but also how uncertain these
are (variational Bayes), so that too many dimensions do no harm.
Control-C ends the fit early and predicts with what it has learned so far.
"""

import argparse
from dataclasses import dataclass

from common import answer_options, cli, progress, run_log, sample_models, submission
from common.answers import find_ids, number_ids, read_answers
from common.arrays import FloatArray, IntArray
from common.errors import InputError
from common.probabilities import write_probabilities

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix
from scipy.special import expit

TASK = 2
# Penalties chosen on answers held out of the training data. Abilities have the penalty 1, which
# fixes the scale of abilities and loadings.
EASINESS_PENALTY = 1.0
# A question has three decisions: is the answer right; if not, is it the most popular wrong option;
# if not, is it the second most popular one? The first loading of a decision says how much the first
# ability raises the logit of a yes. Its prior mean is larger in the first decision than in the
# others.
FIRST_LOADING = 1.0
FIRST_LOADING_OF_OTHERS = 0.3
FIRST_LOADING_PENALTY = 10.0
LOADING_PENALTY = 30.0
# Training answers that an iteration handles per second, to estimate the run time. Measured on files
# of the official size (tests/benchmarks/full_size.md).
ANSWERS_PER_SECOND = 1.5e6


@dataclass(frozen=True)
class Prior:
    """Gaussian prior of the student vectors or of the decision vectors."""

    mean: FloatArray  # Shape (1 + dimensions,), or a row for each decision.
    penalty: FloatArray  # One over the variance, shape (1 + dimensions,).


def compute_logits(
    student_vectors: FloatArray, decision_vectors: FloatArray, student: IntArray, decision: IntArray
) -> FloatArray:
    """Return the logit of each pair of student and decision: the dot product of their vectors."""
    logits = np.zeros(len(student), np.float32)
    # One dimension at a time saves memory.
    for column in range(student_vectors.shape[1]):
        logits += student_vectors[student, column] * decision_vectors[decision, column]
    return logits


def ridge_step(
    prior: Prior,
    fixed_vectors: FloatArray,
    fixed_covariances: FloatArray,
    choices: csr_matrix | csc_matrix,
    logits: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Update all student vectors, or all decision vectors, while the other vectors are fixed.

    Each vector is fitted by a logistic regression on the fixed vectors. For each element of
    `choices`, a parabola replaces the logistic loss. The parabola touches the loss at the present
    logit and lies above the loss at all other logits (Jaakkola and Jordan 2000). With parabolas,
    each regression is a ridge regression, whose solution has a closed form.

    Parameters
    ----------
    prior
        Prior of the vectors that are updated.
    fixed_vectors, fixed_covariances
        Means, shape (m, k), and covariances, shape (m, k, k), of the fixed vectors.
    choices
        Sparse matrix, shape (n, m): 1 for a yes, 0 for a no. Row i belongs to the vector i that
        is updated. The zeros are stored; decisions that were not taken are not.
    logits
        Present logit of each stored element of `choices`, in the order of `choices.data`.

    Returns
    -------
    vectors : array, shape (n, k)
        The new means of the vectors.
    covariances : array, shape (n, k, k)
        The new covariances of the vectors.
    """
    # Let y be an element (1 for a yes, 0 for a no), x its present logit and z its new logit. The
    # parabola is a function of z:
    #     curvature · z² / 2 - (y - 1/2) · z + constant,    curvature = tanh(x / 2) / (2 x).
    # The lower limit 1e-4 of |x| / 2 avoids 0 / 0.
    half = np.maximum(np.abs(logits) / 2, 1e-4)
    curvatures = choices.copy()
    curvatures.data = np.tanh(half) / (4 * half)
    centred = choices.copy()
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


def rank_options(
    question: IntArray,
    option: IntArray,
    correct_option: IntArray,
    n_questions: int,
    n_options: int,
) -> IntArray:
    """Return the rank of each option of each question, shape (n_questions, n_options).

    Rank 0 is the correct option, 1 the most popular wrong one, and so on. Options that a question
    does not have rank last, since nobody chose them. The last question is a placeholder: it stands
    for all questions that have no training answers. Its correct option is unknown. So its ranks
    follow the popularity of the options in all answers together: its most popular option has rank
    0.

    Parameters
    ----------
    question, option, correct_option
        For each answer, the number of its question, the option that the student chose, and the
        correct option. Options are numbered from 0.
    n_questions
        Number of questions, including the last one.
    n_options
        Largest number of options of a question, usually 4.
    """
    # Count the answers in each cell of a table (questions, options), numbered row by row.
    cell = n_options * question + option
    n_chosen = np.bincount(cell, minlength=n_options * n_questions)
    popularity = n_chosen.reshape(n_questions, n_options).astype(float)
    popularity[-1] = popularity.sum(axis=0)
    # Infinite popularity puts the correct option first.
    popularity[question, correct_option] = np.inf
    options_in_order = np.argsort(-popularity, axis=1, kind="stable")
    # The inverse permutation: the position of each option in this order.
    return np.argsort(options_in_order, axis=1)


def list_decisions(
    student: IntArray, question: IntArray, rank: IntArray, n_students: int, n_decisions: IntArray
) -> csr_matrix:
    """Return the yes/no decisions that make up the answers, a row for each student.

    The model takes an answer as a chain of decisions: is it the correct option; if not, is it the
    most popular wrong one; and so on. So an answer whose option has rank 0, the correct option, is
    a yes (1) in decision 0 of its question. Rank 1 is a no (0) in decision 0 and a yes in decision
    1. The last rank is a no in all decisions.

    `student`, `question` and `rank` have an element for each answer. `n_decisions` has the number
    of decisions of each question. If the largest of these numbers is 3, question q has the columns
    3 q, 3 q + 1 and 3 q + 2.
    """
    most_decisions = int(n_decisions.max())
    # An answer of rank r takes the decisions 0 to r of its question: decision r is the first yes,
    # and no decision follows a yes. Only if r is the question's last rank, there is no decision r:
    # the answer is a no in all decisions.
    decisions = np.arange(most_decisions)
    # Whether each answer (row) takes each decision of its question (column).
    is_taken = rank[:, None] >= decisions
    # A question with few options has fewer decisions than `most_decisions`: leave out those that it
    # does not have.
    is_taken &= decisions < n_decisions[question][:, None]
    answer_row, decision = np.nonzero(is_taken)
    is_yes = (rank[answer_row] == decision).astype(np.float32)
    column = most_decisions * question[answer_row] + decision
    shape = n_students, most_decisions * len(n_decisions)
    return csr_matrix((is_yes, (student[answer_row], column)), shape)


def decision_prior(
    rank: IntArray, n_decisions_of_answer: IntArray, n_questions: int, n_dimensions: int
) -> Prior:
    """Return the prior of the vectors of all decisions. It is the same for every question.

    Decision d of a question asks whether an answer has rank d: yes for an answer of rank d, no for
    an answer of a higher rank. An answer of a lower rank does not come to this decision, because an
    earlier decision was a yes. Rank 0 is the correct option, rank 1 the most popular wrong option.
    The vector of a decision holds the easiness, which is the logit of a yes for a student whose
    abilities are all 0, and the loadings, which multiply the abilities.

    A penalty is the precision of the prior, 1 / variance: the larger the penalty, the closer the
    element of the vector stays to its prior mean.

    `rank` is the rank of each training answer. `n_decisions_of_answer` is the number of decisions
    of each answer's question: one fewer than the question has options.
    """
    most_decisions = int(n_decisions_of_answer.max())
    # The prior means of a question's decisions, a row for each decision. The loop below sets the
    # easiness and the first loading. The other loadings have the prior mean 0.
    means_of_question = np.zeros((most_decisions, 1 + n_dimensions))
    for decision in range(most_decisions):
        # Leave out the answers to questions that have too few options to have this decision.
        has_decision = n_decisions_of_answer > decision
        # The number of answers of each rank. Adding 1 keeps the logarithms finite.
        n_by_rank = np.bincount(rank[has_decision], minlength=most_decisions + 1) + 1
        n_yes = n_by_rank[decision]
        n_no = n_by_rank[decision + 1 :].sum()
        log_odds_of_yes = np.log(n_yes / n_no)
        first_loading = FIRST_LOADING if decision == 0 else FIRST_LOADING_OF_OTHERS
        means_of_question[decision, :2] = log_odds_of_yes, first_loading
    mean = np.tile(means_of_question, (n_questions, 1))
    penalty = np.array(
        [EASINESS_PENALTY, FIRST_LOADING_PENALTY] + [LOADING_PENALTY] * (n_dimensions - 1)
    )
    return Prior(mean, penalty)


def fit(
    choices: csr_matrix, prior: Prior, options: argparse.Namespace
) -> tuple[FloatArray, FloatArray]:
    """Fit the vectors of students and decisions in turns.

    Returns two arrays: one with a row for each student, one with a row for each decision.

    A question of four options has three decisions between yes and no: is the answer the correct
    option; if not, is it the most popular wrong option; if not, is it the second most popular one?
    `choices` has a row for each student and a column for each decision: 1 for a yes, 0 for a no.
    `prior` is the prior of the decisions.
    """
    k = options.dimensions
    n_students, n_decisions = choices.shape
    rng = np.random.default_rng(options.seed)
    # Start near the prior means. Without the random differences, whose standard deviation is 0.1,
    # the loadings of all abilities but the first would stay 0.
    decisions = rng.normal(prior.mean, 0.1, (n_decisions, 1 + k)).astype(np.float32)
    # A student's vector is a 1 followed by the abilities. The 1 multiplies the easiness, the first
    # element of the decision's vector. The large penalty 1e8 keeps the 1 from changing.
    student_prior = Prior(mean=np.array([1.0] + [0.0] * k), penalty=np.array([1e8] + [1.0] * k))
    students = np.tile(student_prior.mean, (n_students, 1)).astype(np.float32)
    # The covariances of the decision vectors. They are 0 at first: the first step takes the start
    # vectors as exact.
    decision_covariances = np.zeros((n_decisions, 1 + k, 1 + k), np.float32)
    # The row (student) and the column (decision) of each element, in the order of `choices.data`.
    student, decision = choices.tocoo().coords
    with progress.steps(options.iterations, "fitting", options.log) as (steps, show):
        for _ in steps:
            logits = compute_logits(students, decisions, student, decision)
            students, student_covariances = ridge_step(
                student_prior, decisions, decision_covariances, choices, logits
            )
            logits = compute_logits(students, decisions, student, decision)
            decisions, decision_covariances = ridge_step(
                prior, students, student_covariances, choices.T, logits
            )
            # `logits` are from before the step above. Show their mean logistic loss, because it
            # would take time to compute the logits again.
            show(loss=np.mean(np.logaddexp(0, logits) - choices.data * logits))
    return students, decisions


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this script's flags."""
    parser = sample_models.parser(__doc__, TASK)
    run_log.add_log_flag(parser)
    cli.add_number(parser, "--dimensions", 8, "length of the vectors", parse=int, metavar="K")
    help_text = "how often students and decisions are updated"
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
    answers = read_answers(paths.train, options=True)
    progress.announce(options.iterations * len(answers) / ANSWERS_PER_SECOND)

    # ---- The model: replace this block by your own. -------------------------------------------
    # In: `answers`, `template` (DataFrames). Out, for each template row: `prediction`, `p_option`.
    student_ids, student = number_ids(answers["UserId"])
    question_ids, question = number_ids(answers["QuestionId"])
    # For an id without training answers, `find_ids` returns the number after the last id. So one
    # extra student and one extra question stand for all unknown ids. Their vectors stay at the
    # prior mean.
    n_students = len(student_ids) + 1
    n_questions = len(question_ids) + 1
    option = answers["AnswerValue"].to_numpy() - 1
    correct_option = answers["CorrectAnswer"].to_numpy() - 1
    n_options = answer_options.number_by_question(answers, question, n_questions)
    most_options = answer_options.count_options(answers)
    rank_of_option = rank_options(question, option, correct_option, n_questions, most_options)
    rank = rank_of_option[question, option]
    # A question has one decision fewer than options.
    n_decisions = n_options - 1
    choices = list_decisions(student, question, rank, n_students, n_decisions)
    prior = decision_prior(rank, n_decisions[question], n_questions, options.dimensions)
    # Save memory during the fit.
    del student, question, option, correct_option

    students, decisions = fit(choices, prior, options)

    template_student = find_ids(student_ids, template["UserId"])
    template_question = find_ids(question_ids, template["QuestionId"])
    p_rank = np.empty((len(template), most_options), np.float32)
    # An answer is a chain of decisions. Decision 0 asks: is it the option of rank 0, the correct
    # one? If not, decision 1 asks: is it the option of rank 1, the most popular wrong one? And so
    # on. So rank r is chosen if the decisions before r are no and decision r is yes; the last rank
    # is chosen if all decisions are no. `p_no` is the probability that all decisions so far are no.
    p_no = np.ones(len(template), np.float32)
    most_decisions = most_options - 1
    for rank_of_yes in range(most_decisions):
        template_decision = most_decisions * template_question + rank_of_yes
        p_yes = expit(compute_logits(students, decisions, template_student, template_decision))
        # A question with n decisions has the ranks 0 to n. Rank n has no decision of its own, so it
        # gets the remaining probability.
        p_yes[n_decisions[template_question] <= rank_of_yes] = 1
        p_rank[:, rank_of_yes] = p_no * p_yes
        p_no *= 1 - p_yes
    p_rank[:, most_decisions] = p_no
    # `p_rank` has a column for each rank. `p_option` has a column for each option, from 1.
    p_option = np.take_along_axis(p_rank, rank_of_option[template_question], axis=1)
    p_option = answer_options.for_template(p_option, template)
    prediction = 1 + p_option.argmax(axis=1)
    # ---- End of the model. --------------------------------------------------------------------

    submission.write_predictions(template, TASK, prediction, paths.output)
    write_probabilities(template, TASK, p_option, paths.probabilities)
    print(f"written: {cli.show(paths.output)} and the zip beside it ({len(prediction):,} rows)")


if __name__ == "__main__":
    cli.run(main)
