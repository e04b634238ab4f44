"""Compare ways to find groups of wrong options, on simulated answers with planted misconceptions.

An item is an option of a question: item N_OPTIONS · q + o is option o of question q. Groups are an
array with the group of each item, -1 for none.

Each method finds groups with half of the students, for each of a few settings. A fifth of the
students choose the setting by the rule of `task_2/misconceptions.py`: the largest gain, if its
interval lies above 0. All methods are measured on the remaining students, as in
`misconception_map.py`; `misconceptions.md` shows the table.

Run:     python tests/benchmarks/misconception_methods.py
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from common import cli
from common.arrays import FloatArray, IntArray

import misconception_map
import numpy as np
from misconception_map import N_OPTIONS, N_PLANTED, groups
from scipy import sparse
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.decomposition import LatentDirichletAllocation, TruncatedSVD

# Average linkage: the covariance of two options is divided by its variance plus `SHRINKAGE`, which
# shrinks it towards 0 if few students got both questions wrong. Two groups of options are merged
# while the mean shrunk covariance between them reaches a threshold; each of COVARIANCES is tried.
SHRINKAGE = 15
COVARIANCES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
# Low-rank factorisation: each option has a vector of this many factors.
N_FACTORS = (60, 150)
# Two groups of options are merged while the mean cosine between the vectors of their options is at
# least a threshold. Each of COSINES is tried as the threshold.
COSINES = (0.4, 0.5, 0.6, 0.7, 0.8)
# Latent classes of students: among the wrong answers to a question, an option has one share in all
# students and another share in each class. The option belongs to a class if the share in the class,
# divided by the share in all students, exceeds a threshold. Each of RAISES is tried as the
# threshold.
RAISES = (1.25, 1.5, 2.0, 3.0, 5.0)
# An option joins no latent class if fewer students than this chose it.
MIN_CHOSEN = 20
# To avoid a division by 0, a smaller divisor is replaced by this number.
SMALLEST_DIVISOR = 1e-9

# The type of the functions below, each of which is a method to find groups of wrong options. The
# argument is a `WrongAnswers` of task_2/misconception_groups.py: the wrong answers of some
# students. The function yields the groups that it finds, once for each of its settings.
Method = Callable[[Any], Iterator[IntArray]]


def merge_by_evidence(finding: Any) -> Iterator[IntArray]:
    """Find groups as task_2/misconceptions.py does; yield the groups for each threshold.

    Each step merges the two groups with the strongest evidence that they belong together. The steps
    end when no evidence exceeds the threshold.
    """
    pairs = groups.compare_pairs(finding)
    for threshold in groups.THRESHOLDS:
        yield groups.find_groups(pairs, threshold)


def merge_without_extra_variance(finding: Any) -> Iterator[IntArray]:
    """Find groups like `merge_by_evidence`, but without EXTRA_VARIANCE.

    Evidence is a covariance divided by the square root of a variance. EXTRA_VARIANCE is added to
    the variance, so that a few students who chose the same two rare options are only weak evidence.
    Without it, they are strong evidence, so higher thresholds are tried.
    """
    pairs = groups.compare_pairs(finding)
    variance = pairs.variance.copy()
    variance.data -= groups.EXTRA_VARIANCE
    for threshold in (4.0, 4.25, 4.5, 5.0, 6.0, 7.0):
        yield groups.find_groups(replace(pairs, variance=variance), threshold)


def link_shrunk_covariances(finding: Any) -> Iterator[IntArray]:
    """Cluster options by average linkage; options are similar if their shrunk covariance is large.

    The residual of an option is c − p: c is 1 if the student chose the option and 0 if not, and p
    is the probability that the model of answers gives to the option. The covariance of two options
    is the sum of the products of their residuals, over the students who got both questions wrong.
    `finding` is a `WrongAnswers`. The function yields the groups for each of COVARIANCES.
    """
    # `pairs` compares pairs of options in matrices with a row and a column for each option. Take
    # only the options that are in at least one compared pair.
    pairs = groups.compare_pairs(finding)
    first_option, second_option = pairs.variance.nonzero()
    items = np.unique(np.concatenate([first_option, second_option]))
    covariance = pairs.covariance[items][:, items].toarray()
    variance = pairs.variance[items][:, items].toarray()
    # `compare_pairs` has added EXTRA_VARIANCE to the variance of each pair. Remove it, because
    # SHRINKAGE takes its place. A pair that `compare_pairs` leaves out has the variance 0, and
    # would have a negative one here: `maximum` keeps it at 0.
    variance = np.maximum(variance - np.float32(groups.EXTRA_VARIANCE), 0)
    similarity = covariance / (variance + SHRINKAGE)
    # `pairs` holds each pair in the row of one of its options. The similarity matrix needs it in
    # the rows of both.
    similarity = similarity + similarity.T
    yield from link(similarity, items, COVARIANCES, finding.n_items)


def link_factors(finding: Any) -> Iterator[IntArray]:
    """Factorise the choices of wrong options, and cluster options with similar factors.

    `finding` is a `WrongAnswers`. The residuals of its choices form a matrix with a row for each
    student and a column for each option. A truncated singular value decomposition of this matrix
    gives each option a vector of factors. Options are similar if the cosine between their vectors
    is large. For each combination of a number of factors in N_FACTORS and a smallest cosine in
    COSINES, the function yields an array with the group of each option.
    """
    residual = groups._residual_matrix(finding)
    # Take only the options that have a residual, i.e. an entry in their column of the matrix.
    items = np.unique(residual.indices)
    residual = residual.tocsc()[:, items]
    # Divide each column by its Euclidean length, so that options chosen by many students do not
    # dominate the decomposition.
    sum_of_squares = np.asarray(residual.multiply(residual).sum(axis=0))
    length = np.sqrt(sum_of_squares)
    scaled = sparse.csr_array(residual.multiply(1 / np.maximum(length, SMALLEST_DIVISOR)))
    for n_factors in N_FACTORS:
        model = TruncatedSVD(n_factors, random_state=0).fit(scaled)
        # A row for each option.
        factors = model.components_.T * model.singular_values_
        length_of_option = np.linalg.norm(factors, axis=1, keepdims=True)
        # The inner product of two vectors of length 1 is their cosine.
        unit_factors = factors / np.maximum(length_of_option, SMALLEST_DIVISOR)
        cosine = unit_factors @ unit_factors.T
        yield from link(cosine, items, COSINES, finding.n_items)


def link(
    similarity: FloatArray, items: IntArray, thresholds: tuple[float, ...], n_items: int
) -> Iterator[IntArray]:
    """Cluster options by average linkage; yield the groups for each of the thresholds.

    Two groups are merged while the mean similarity of their options is at least the threshold.
    Option o of question q has the number N_OPTIONS · q + o; all numbers are below `n_items`.
    `items` lists the numbers of the options that take part. `similarity` has a row and a column for
    each of `items`; the function overwrites some of its values. Each result is an array (n_items,)
    with the group of each option, -1 for none.
    """
    # Options of one question must not be in one group, so they get the smallest similarity.
    question = items // N_OPTIONS
    is_same_question = question[:, np.newaxis] == question
    similarity[is_same_question] = similarity.min()
    # The strength of an option is its similarity to the most similar other option. If two options
    # of one question are in the same group in spite of their low similarity, `tidy` keeps the
    # stronger one.
    strength = np.zeros(n_items)
    strength[items] = similarity.max(axis=1)
    # `linkage` takes distances. The most similar options have the distance 0.
    largest = similarity.max()
    distance = largest - similarity
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    for threshold in thresholds:
        largest_distance = largest - threshold
        label = np.full(n_items, -1)
        # `fcluster` numbers the groups from 1.
        label[items] = fcluster(tree, largest_distance, "distance") - 1
        yield tidy(label, strength)


def fit_latent_classes(finding: Any) -> Iterator[IntArray]:
    """Find groups of wrong options by latent Dirichlet allocation; yield them for each of RAISES.

    The model treats a student as a text and the wrong options that the student chose as its words.
    Each student is a mixture of latent classes, and each class has a probability of each option.
    Among the wrong answers to a question, an option has a larger share in some classes than in all
    students, larger by some factor. The option joins the class with the largest factor, if this
    factor exceeds a limit. Each of RAISES is tried as the limit: the function yields an array for
    each of them, with the group of each option, -1 for none. `finding` is a `WrongAnswers`.
    """
    # The matrix has a 1 where a student (row) chose an option (column).
    item = finding.question * N_OPTIONS + finding.option
    shape = (finding.n_students, finding.n_items)
    is_chosen = sparse.csr_array((np.ones(len(item)), (finding.student, item)), shape)
    # Leave out students without wrong answers: they would be empty texts.
    is_chosen = is_chosen[np.unique(finding.student)]
    # The model needs to know the number of classes. It is told the true number of groups: the
    # number of planted misconceptions.
    model = LatentDirichletAllocation(N_PLANTED, max_iter=10, random_state=0).fit(is_chosen)
    n_chosen = np.asarray(is_chosen.sum(axis=0))
    share_by_class = share_of_question(model.components_)
    share_of_all = share_of_question(n_chosen[np.newaxis])
    # The share of each option in each class, divided by its share in all students, shape
    # (classes, items).
    factor = share_by_class / np.maximum(share_of_all, SMALLEST_DIVISOR)
    factor[:, n_chosen < MIN_CHOSEN] = 0
    best_class = factor.argmax(axis=0)
    largest_factor = factor.max(axis=0)
    for least_factor in RAISES:
        label = np.where(largest_factor > least_factor, best_class, -1)
        yield tidy(label, strength=largest_factor)


def share_of_question(weight: FloatArray) -> FloatArray:
    """Divide the weight of each option by the sum of its question's options.

    `weight` and the result have the shape (n, n_items): each row has N_OPTIONS columns for the
    first question, then N_OPTIONS for the second, and so on.
    """
    by_question = weight.reshape(len(weight), -1, N_OPTIONS)
    total = np.maximum(by_question.sum(axis=2, keepdims=True), 1e-12)
    share: FloatArray = (by_question / total).reshape(weight.shape)
    return share


def tidy(label: IntArray, strength: FloatArray) -> IntArray:
    """Keep the strongest option of each question in a group; drop groups with a single option.

    `label` is the group of each option, -1 for none. If a group has several options of a question,
    only the option with the largest `strength` stays in it. Both arrays have the shape (n_items,);
    option o of question q has the index N_OPTIONS · q + o. The result has the same form as `label`,
    with groups numbered from 0.
    """
    in_groups = np.flatnonzero(label >= 0)
    strongest_first = in_groups[np.argsort(-strength[in_groups], kind="stable")]
    # Options of the same question in the same group get the same number. `np.unique` returns the
    # position of the first option with each number, which is the strongest of them.
    question = strongest_first // N_OPTIONS
    group_and_question = label[strongest_first] * len(label) + question
    _, first = np.unique(group_and_question, return_index=True)
    strongest = strongest_first[first]
    size_of_group = np.bincount(label[strongest])
    has_company = size_of_group[label[strongest]] >= 2
    kept = strongest[has_company]
    # Number the groups that are left from 0, without gaps.
    _, number = np.unique(label[kept], return_inverse=True)
    group = np.full(len(label), -1, np.int32)
    group[kept] = number
    return group


def choose(candidates: Iterator[IntArray], choosing: Any) -> IntArray:
    """Return the candidate whose groups predict the choices of other students best.

    A candidate is an array with the group of each item. `choosing` holds the wrong answers of the
    other students. The gain of a candidate is the mean decrease of the log loss of these answers. A
    candidate qualifies only if the 95 % interval of its gain lies above 0. If no candidate
    qualifies, the result has no option in any group.
    """
    best_gain = 0.0
    best: IntArray = np.full(choosing.n_items, -1, np.int32)
    for group in candidates:
        # Predict each answer in `choosing` from the student's other answers in `choosing`.
        gain_sums, n_answers = groups.gain_by_student(known=choosing, asked=choosing, group=group)
        # The gain is the sum over all students, divided by the number of all their answers.
        gain = groups.ratio_by_student(gain_sums, n_answers)
        qualifies = gain.low > 0
        if qualifies and gain.value > best_gain:
            best_gain = gain.value
            best = group
    return best


METHODS: dict[str, Method] = {
    "merging by evidence (`task_2/misconceptions.py`)": merge_by_evidence,
    "the same without the extra variance": merge_without_extra_variance,
    "average linkage of shrunk covariances": link_shrunk_covariances,
    "low-rank factorisation, factors clustered": link_factors,
    "latent classes (Dirichlet allocation)": fit_latent_classes,
}


def main() -> None:
    """Print a row for the groups planted in the simulated answers, and a row for each method."""
    parser = cli.parser(__doc__)
    cli.add_number(parser, "--seed", 0, "seed of the simulation")
    answers, planted = misconception_map.simulate_planted(parser.parse_args().seed)
    # The planted groups, in the same form as the groups that a method finds.
    planted_group = misconception_map.number_planted(np.unique(answers["QuestionId"]), planted)
    # The wrong answers of three sets of students. A method finds groups in `prepared.finding`, and
    # `prepared.choosing` decides which setting of the method is best. The answers of the remaining
    # students measure the groups.
    prepared = misconception_map.prepare(answers, 0)
    measured = misconception_map.measure(prepared, planted_group)
    print(misconception_map.row("what is planted", planted_group, measured))
    for name, method in METHODS.items():
        start = time.process_time()
        group = choose(method(prepared.finding), prepared.choosing)
        seconds = time.process_time() - start
        measured = misconception_map.measure(prepared, group)
        rand_index = misconception_map.score_groups(group, planted_group)
        last_cells = f"{rand_index:.3f} | {seconds:.0f} s"
        print(misconception_map.row(name, group, measured, last_cells), flush=True)


if __name__ == "__main__":
    cli.run(main)
