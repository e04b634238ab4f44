"""Compare ways to find groups of wrong options, on simulated answers with planted misconceptions.

Each method finds groups with half of the students, for each of a few settings. A fifth of the
students choose the setting by the rule of the product: the largest gain, if its interval lies above
0. All are measured as in `misconception_map.py`, on the other students; `misconceptions.md` shows
the table.

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

# Average linkage: covariances are divided by their variance plus `SHRINKAGE`, which shrinks them
# towards 0. Groups have at least one of these mean shrunk covariances.
SHRINKAGE = 15
COVARIANCES = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
# Low-rank factorisation: the numbers of factors, and the least mean cosines of the options.
N_FACTORS = (60, 150)
COSINES = (0.4, 0.5, 0.6, 0.7, 0.8)
# Latent classes: an option belongs to a class if the class raises its share among the question's
# wrong options by at least one of these factors.
RAISES = (1.25, 1.5, 2.0, 3.0, 5.0)
# Options that fewer students chose are in no latent class.
MIN_CHOSEN = 20

# A method returns the groups that it finds with some students, for each of its settings.
Method = Callable[[Any], Iterator[IntArray]]


def merge_by_evidence(finding: Any) -> Iterator[IntArray]:
    """Merge the two groups with the strongest evidence: the method of the product."""
    pairs = groups.compare_pairs(finding)
    for threshold in groups.THRESHOLDS:
        yield groups.find_groups(pairs, threshold)


def merge_without_extra_variance(finding: Any) -> Iterator[IntArray]:
    """Merge groups like `merge_by_evidence`, but let a few rare choices be strong evidence."""
    pairs = groups.compare_pairs(finding)
    variance = pairs.variance.copy()
    variance.data -= groups.EXTRA_VARIANCE
    for threshold in (4.0, 4.25, 4.5, 5.0, 6.0, 7.0):
        yield groups.find_groups(replace(pairs, variance=variance), threshold)


def link_shrunk_covariances(finding: Any) -> Iterator[IntArray]:
    """Cluster the options by average linkage of the shrunk covariances of their residuals."""
    pairs = groups.compare_pairs(finding)
    items = np.unique([*pairs.variance.nonzero()])
    covariance = pairs.covariance[items][:, items].toarray()
    variance = pairs.variance[items][:, items].toarray() - np.float32(groups.EXTRA_VARIANCE)
    similarity = covariance / (np.maximum(variance, 0) + SHRINKAGE)
    # `pairs` holds each pair once, but a similarity matrix is symmetric.
    similarity = similarity + similarity.T
    yield from link(similarity, items, COVARIANCES, finding.n_items)


def link_factors(finding: Any) -> Iterator[IntArray]:
    """Factorise the residuals of students and options, and cluster the options' factors."""
    residual = groups._residual_matrix(finding)
    items = np.unique(residual.indices)
    residual = residual.tocsc()[:, items]
    deviation = np.sqrt(np.asarray(residual.multiply(residual).sum(axis=0)))
    scaled = sparse.csr_array(residual.multiply(1 / np.maximum(deviation, 1e-9)))
    for n_factors in N_FACTORS:
        model = TruncatedSVD(n_factors, random_state=0).fit(scaled)
        factors = model.components_.T * model.singular_values_
        factors /= np.maximum(np.linalg.norm(factors, axis=1, keepdims=True), 1e-9)
        yield from link(factors @ factors.T, items, COSINES, finding.n_items)


def link(
    similarity: FloatArray, items: IntArray, least: tuple[float, ...], n_items: int
) -> Iterator[IntArray]:
    """Cluster items by average linkage; yield the groups for each least mean similarity."""
    question = items // N_OPTIONS
    similarity[question[:, None] == question] = similarity.min()
    most = similarity.max()
    distance = most - similarity
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average")
    strength = np.zeros(n_items)
    strength[items] = similarity.max(axis=1)
    for value in least:
        label = np.full(n_items, -1)
        label[items] = fcluster(tree, most - value, "distance") - 1
        yield tidy(label, strength)


def fit_latent_classes(finding: Any) -> Iterator[IntArray]:
    """Fit latent Dirichlet allocation: each student is a mixture of classes of wrong options."""
    item = finding.question * N_OPTIONS + finding.option
    shape = (finding.n_students, finding.n_items)
    chosen = sparse.csr_array((np.ones(len(item)), (finding.student, item)), shape)
    chosen = chosen[np.unique(finding.student)]
    model = LatentDirichletAllocation(N_PLANTED, max_iter=10, random_state=0).fit(chosen)
    n_chosen = np.asarray(chosen.sum(axis=0))
    share_by_class = share_of_question(model.components_)
    raised = share_by_class / np.maximum(share_of_question(n_chosen[None]), 1e-9)
    raised[:, n_chosen < MIN_CHOSEN] = 0
    label = raised.argmax(axis=0)
    strength = raised.max(axis=0)
    for least in RAISES:
        yield tidy(np.where(strength > least, label, -1), strength)


def share_of_question(weight: FloatArray) -> FloatArray:
    """Divide the weights of items by the sum of their question; the shape is (n, n_items)."""
    by_question = weight.reshape(len(weight), -1, N_OPTIONS)
    total = np.maximum(by_question.sum(axis=2, keepdims=True), 1e-12)
    share: FloatArray = (by_question / total).reshape(weight.shape)
    return share


def tidy(label: IntArray, strength: FloatArray) -> IntArray:
    """Keep one option of a question in each group, the strongest, and number the groups.

    `label` is the group of each item, -1 for none.
    """
    items = np.flatnonzero(label >= 0)
    items = items[np.argsort(-strength[items], kind="stable")]
    group_and_question = label[items] * len(label) + items // N_OPTIONS
    items = items[np.unique(group_and_question, return_index=True)[1]]
    size = np.bincount(label[items], minlength=1)
    items = items[size[label[items]] >= 2]
    group = np.full(len(label), -1, np.int32)
    group[items] = np.unique(label[items], return_inverse=True)[1]
    return group


def choose(candidates: Iterator[IntArray], choosing: Any) -> IntArray:
    """Return the groups that the choosing students support most; none if they support none."""
    best_gain = 0.0
    best: IntArray = np.full(choosing.n_items, -1, np.int32)
    for group in candidates:
        gain = groups.ratio_by_student(*groups.gain_by_student(choosing, choosing, group))
        if gain.low > 0 and gain.value > best_gain:
            best_gain = gain.value
            best = group
    return best


METHODS: dict[str, Method] = {
    "merging by evidence (the product)": merge_by_evidence,
    "the same without the extra variance": merge_without_extra_variance,
    "average linkage of shrunk covariances": link_shrunk_covariances,
    "low-rank factorisation, factors clustered": link_factors,
    "latent classes (Dirichlet allocation)": fit_latent_classes,
}


def main() -> None:
    """Print a row for the planted groups, and one for the groups that each method finds."""
    parser = cli.parser(__doc__)
    cli.add_number(parser, "--seed", 0, "seed of the simulation")
    answers, planted = misconception_map.simulate_planted(parser.parse_args().seed)
    truth = misconception_map.number_planted(np.unique(answers["QuestionId"]), planted)
    prepared = misconception_map.prepare(answers, 0)
    print(
        misconception_map.row("what is planted", truth, misconception_map.measure(prepared, truth))
    )
    for name, method in METHODS.items():
        start = time.process_time()
        group = choose(method(prepared.finding), prepared.choosing)
        seconds = time.process_time() - start
        measured = misconception_map.measure(prepared, group)
        index = f"{misconception_map.score_groups(group, truth):.3f} | {seconds:.0f} s"
        print(misconception_map.row(name, group, measured, index), flush=True)


if __name__ == "__main__":
    cli.run(main)
