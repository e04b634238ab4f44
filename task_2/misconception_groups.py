"""Find groups of wrong options that the same students choose, and measure the groups.

A model of answers (`common.item_response`) says how probable each wrong option is for a student who
does not get a question right. The model knows the student's ability, the difficulty of the
question, the popularity of its options and the student's habits, such as clicking the first option.
Two wrong options belong together if more students choose both than this model expects.

The evidence for a pair of options is a score test of independence: the sum of the products of the
residuals of both choices, over the students who got both questions wrong, divided by the standard
deviation of this sum. A constant is added to the variance: a few rare choices are weak evidence.
The evidence for two groups adds up the sums and the variances of all pairs between them. The two
groups with the strongest evidence are merged until none exceeds a threshold (agglomerative
clustering). Students who took no part in the search choose the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from common.arrays import Array, BoolArray, FloatArray, IntArray

import numpy as np
from scipy import sparse

# A student's tendency to choose options of a group is a number that is added to the logits of these
# options. This is its prior variance.
SPREAD = 0.5
# Two groups of options are merged if the evidence that the same students choose options of both
# exceeds a threshold, in standard deviations. `choose_groups` tries each of these thresholds.
THRESHOLDS = (3.5, 3.75, 4.0, 4.5, 5.0, 6.0)
# This constant is added to the variance of each pair of options. Without it, two students who chose
# the same two rare options would be strong evidence. There are many pairs of rare options, so some
# of them would have strong evidence by chance.
EXTRA_VARIANCE = 1.0
# The search for groups considers an option only if one of its pairs has more evidence than this. It
# considers at most MOST_ITEMS options, because the matrices of their pairs are dense.
MIN_EVIDENCE = 2.5
MOST_ITEMS = 4000
# Options of two questions are compared only if at least this many students got both questions
# wrong.
MIN_COMMON = 3
# More pairs of questions than this would need too much memory.
MOST_QUESTION_PAIRS = 4_000_000
# Questions are paired with other questions in blocks of this many. Larger blocks are faster and
# need more memory.
BLOCK = 512
# The normal distribution's 97.5 % quantile.
Z_95 = 1.96
# A ratio that rests on fewer students than this gets no interval: its standard error cannot be
# estimated.
FEW_STUDENTS = 20


@dataclass(frozen=True)
class WrongAnswers:
    """The wrong answers of students, and how probable each wrong option was.

    Students and questions are numbered from 0. An item is an option of a question: its number is
    n_options · question + option.
    """

    # The student of each wrong answer, int32 (n,).
    student: IntArray
    # The question of each wrong answer, int32 (n,).
    question: IntArray
    # The option chosen in each wrong answer, from 0, int8 (n,).
    option: IntArray
    # Probability of each option, given that the answer is wrong, float32 (n, n_options). Rows sum
    # to 1.
    probability: FloatArray
    n_students: int
    n_questions: int

    @property
    def n_options(self) -> int:
        """Return the largest number of options of a question."""
        return int(self.probability.shape[1])

    @property
    def n_items(self) -> int:
        """Return the number of items: `n_options` for each question."""
        return self.n_questions * self.n_options

    def of_students(self, is_wanted: BoolArray) -> WrongAnswers:
        """Return the answers of some students; `is_wanted` has the shape (n_students,)."""
        rows = np.flatnonzero(is_wanted[self.student])
        return replace(
            self,
            student=self.student[rows],
            question=self.question[rows],
            option=self.option[rows],
            probability=self.probability[rows],
        )


def given_wrong(p_option: FloatArray, correct: IntArray) -> FloatArray:
    """Return the probabilities of options given that the answer is wrong, float32.

    `p_option` holds the probabilities of all options, shape (n, n_options), `correct` the right
    option, from 0.
    """
    probability = p_option.astype(np.float32)
    probability[np.arange(len(correct)), correct] = 0
    probability /= np.maximum(probability.sum(axis=1, keepdims=True), np.float32(1e-12))
    return probability


# ---- Pairs of options ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """How much more often than expected students choose both options of a pair.

    Both matrices have a row and a column for each item, and entries at the same positions. A pair
    has one entry, in the row of the item with the smaller number. Pairs that are not compared have
    no entry: two options of one question, or of questions that few students got wrong together.
    """

    # A student's residual of an option is 1 minus the probability of the option if the student
    # chose it, otherwise 0 minus this probability. `covariance` sums, over the students who got
    # both questions wrong, the product of the residuals of the two options.
    covariance: sparse.csr_array
    # The variance that `covariance` has if students choose the two options independently, plus
    # EXTRA_VARIANCE.
    variance: sparse.csr_array
    # Largest number of options of a question; see `WrongAnswers`.
    n_options: int


def compare_pairs(wrong: WrongAnswers, most_pairs: int = MOST_QUESTION_PAIRS) -> Pairs:
    """For pairs of wrong options, compare how often students chose both with the expected number.

    A student's residual of an option is 1 minus its probability if the student chose it, otherwise
    0 minus its probability. The probability comes from an item response model. For two options of
    different questions, the covariance is the sum, over the students who got both questions wrong,
    of the products of their residuals. It is above 0 if more students than expected chose both.

    At most `most_pairs` pairs of questions are compared: those for which the most students got both
    questions wrong.
    """
    n_options = wrong.n_options
    is_wrong = _wrong_matrix(wrong)
    min_students, questions = _frequent_questions(is_wrong, most_pairs)
    # Item n_options · question + option is an option of a question. The matrices below have a row
    # for each student, and a column for each of the `questions` (`wrong_columns`) or each of their
    # `items` (`residual_columns`).
    items = (questions[:, None] * n_options + np.arange(n_options, dtype=np.int32)).ravel()
    wrong_columns = is_wrong.tocsc()[:, questions]
    residual_columns = _residual_matrix(wrong).tocsc()[:, items]
    mean_variance = _mean_variance(wrong)[items]
    # An element for each block of questions: four arrays with an element for each pair of items.
    # They hold the first items, the second items, the covariances and the variances.
    parts: list[tuple[IntArray, IntArray, FloatArray, FloatArray]] = []
    # To save memory, compare one block of questions at a time with the questions of this block and
    # of all later blocks. The pairs with earlier questions were found in the earlier blocks.
    for start in range(0, len(questions), BLOCK):
        block_residuals = residual_columns[:, n_options * start : n_options * (start + BLOCK)]
        other_residuals = residual_columns[:, n_options * start :].tocsr()
        # The covariance of each item of this block (row) with each item of this block and of all
        # later blocks (column).
        covariance = (block_residuals.T @ other_residuals).tocoo()
        # How many students got a question of the block (row) and another question (column) wrong.
        block_wrong = wrong_columns[:, start : start + BLOCK]
        n_common = (block_wrong.T @ wrong_columns[:, start:]).toarray()
        # Keep each pair of questions once, and no question with itself.
        n_rows, n_columns = n_common.shape
        is_later = np.arange(n_columns) > np.arange(n_rows)[:, None]
        n_common[~is_later] = 0
        n_students = n_common[covariance.row // n_options, covariance.col // n_options]
        is_kept = n_students >= min_students
        # The positions in `items` of both items of each pair.
        first = covariance.row[is_kept] + n_options * start
        second = covariance.col[is_kept] + n_options * start
        # The variance of the covariance if students choose the two options independently. The
        # constant EXTRA_VARIANCE is added, so that a few students who chose two rare options are
        # not strong evidence.
        variance = n_students[is_kept] * mean_variance[first] * mean_variance[second]
        variance += np.float32(EXTRA_VARIANCE)
        parts.append((items[first], items[second], covariance.data[is_kept], variance))
    if not parts:
        nothing = sparse.csr_array((wrong.n_items, wrong.n_items), dtype=np.float32)
        return Pairs(nothing, nothing, n_options)
    first_items, second_items, covariances, variances = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    positions = (first_items, second_items)
    shape = (wrong.n_items, wrong.n_items)
    return Pairs(
        covariance=sparse.csr_array((covariances, positions), shape),
        variance=sparse.csr_array((variances, positions), shape),
        n_options=n_options,
    )


def _residual_matrix(wrong: WrongAnswers) -> sparse.csr_array:
    """Return the residuals of the wrong options, shape (students, items).

    The residual of an option is 1 minus its probability if the student chose it, otherwise 0 minus
    its probability.
    """
    residual = -wrong.probability
    residual[np.arange(len(wrong.option)), wrong.option] += 1
    # The right option has probability 0 in a wrong answer, and so no residual.
    row, option = np.nonzero(wrong.probability)
    item = wrong.question[row] * wrong.n_options + option.astype(np.int32)
    positions = (wrong.student[row], item)
    return sparse.csr_array((residual[row, option], positions), (wrong.n_students, wrong.n_items))


def _wrong_matrix(wrong: WrongAnswers) -> sparse.csr_array:
    """Return a matrix (students, questions), 1 where the student got the question wrong."""
    ones = np.ones(len(wrong.student), np.float32)
    positions = (wrong.student, wrong.question)
    return sparse.csr_array((ones, positions), (wrong.n_students, wrong.n_questions))


def _mean_variance(wrong: WrongAnswers) -> FloatArray:
    """Return the mean variance of the residuals of each item, float32 (n_items,)."""
    total = np.empty((wrong.n_questions, wrong.n_options))
    for option in range(wrong.n_options):
        p = wrong.probability[:, option]
        total[:, option] = np.bincount(wrong.question, p * (1 - p), wrong.n_questions)
    n_wrong = np.bincount(wrong.question, minlength=wrong.n_questions)
    mean: FloatArray = (total / np.maximum(n_wrong, 1)[:, None]).ravel().astype(np.float32)
    return mean


def _frequent_questions(is_wrong: sparse.csr_array, most_pairs: int) -> tuple[int, IntArray]:
    """Return the limit for comparing two questions, and the questions to compare.

    Two questions are compared only if at least `min_students` students got both wrong. The first
    result is this limit: the smallest number, from MIN_COMMON on, that leaves at most `most_pairs`
    pairs of questions. The second result lists the questions that occur in these pairs, in
    increasing order.

    `is_wrong` has a row for each student and a column for each question: 1 where the student got
    the question wrong.
    """
    n_pairs_by_students, most_students = _count_common_students(is_wrong)
    # Sum from the last element backwards: element m becomes the number of pairs that m or more
    # students got wrong. The last element is 0, so there is always an element of at most
    # `most_pairs`.
    n_pairs = np.cumsum(n_pairs_by_students[::-1])[::-1]
    is_few_enough = n_pairs <= most_pairs
    smallest = int(np.flatnonzero(is_few_enough)[0])
    min_students = max(MIN_COMMON, smallest)
    questions = np.flatnonzero(most_students >= min_students).astype(np.int32)
    return min_students, questions


def _count_common_students(is_wrong: sparse.csr_array) -> tuple[IntArray, IntArray]:
    """Count for each pair of questions the students who got both questions wrong.

    Returns two arrays of whole numbers. Element m of the first array is the number of pairs that
    exactly m students got wrong. Its last element, for one student more than there are, is 0. Pairs
    that no student got wrong are not counted, so element 0 is 0 too. The second array has an
    element for each question: the most students who got a pair with this question wrong.

    `is_wrong` has a row for each student and a column for each question: 1 where the student got
    the question wrong.
    """
    columns = is_wrong.tocsc()
    n_students, n_questions = is_wrong.shape
    # The loop below meets each pair of questions (A, B) a second time as (B, A).
    n_ordered_pairs = np.zeros(n_students + 2, np.int64)
    most_students = np.zeros(n_questions, np.int64)
    # To save memory, combine one block of questions at a time with all questions.
    for start in range(0, n_questions, BLOCK):
        # Entry (i, j) is the number of students who got both question `start` + i and question j
        # wrong.
        both_wrong = (columns[:, start : start + BLOCK].T @ is_wrong).tocoo()
        # Leave out the entries (i, j) for which both questions are the same.
        is_pair = both_wrong.row + start != both_wrong.col
        n_common = both_wrong.data[is_pair].astype(np.int64)
        n_ordered_pairs += np.bincount(n_common, minlength=n_students + 2)
        # A question occurs in several pairs. `maximum.at` takes all of them into account, while an
        # assignment to `most_students[...]` would keep the last pair of each question only.
        np.maximum.at(most_students, both_wrong.col[is_pair], n_common)
    return n_ordered_pairs // 2, most_students


# ---- Groups --------------------------------------------------------------------------------------


def find_groups(pairs: Pairs, threshold: float) -> IntArray:
    """Group items (wrong options of questions) that the same students choose.

    At first each item is a group of its own. Then the two groups with the strongest evidence are
    merged, again and again, until no evidence exceeds `threshold`. The evidence shows that the same
    students choose items of both groups. It comes from all pairs of an item of one group and an
    item of the other group: it is the sum of the covariances of these pairs, divided by the square
    root of the sum of their variances (see `Pairs`).

    Returns the group of each item, -1 for none; int32 (n_items,). Groups are numbered from 0. A
    group has at least two items, all of different questions. An item is an option of a question,
    and its number is n_options · question + option.
    """
    items = _promising_items(pairs)
    n_items = pairs.covariance.shape[0]
    group = np.full(n_items, -1, np.int32)
    if len(items):
        covariance = pairs.covariance[items][:, items].toarray()
        variance = pairs.variance[items][:, items].toarray()
        # In `pairs`, a pair of items has one entry, in the row of the item with the smaller number.
        # Make the matrices symmetric, so that each pair has an entry in the rows of both items.
        covariance = covariance + covariance.T
        variance = variance + variance.T
        question = items // pairs.n_options
        group[items] = merge_groups(covariance, variance, question, threshold)
    return group


def _promising_items(pairs: Pairs) -> IntArray:
    """Return the items that have a pair with more evidence than MIN_EVIDENCE, in increasing order.

    If there are more than MOST_ITEMS such items, return those with the strongest evidence.
    """
    evidence = pairs.covariance.copy()
    evidence.data /= np.sqrt(pairs.variance.data)
    # Each pair has one entry: its first item is the row, its second item is the column. So the
    # pairs of an item are in the item's row and in its column: take the maximum of both.
    by_row = evidence.max(axis=1).toarray().ravel()
    by_column = evidence.max(axis=0).toarray().ravel()
    strongest = np.maximum(by_row, by_column)
    order = np.argsort(-strongest, kind="stable")[:MOST_ITEMS]
    return np.sort(order[strongest[order] > MIN_EVIDENCE])


def merge_groups(
    covariance: FloatArray, variance: FloatArray, question: IntArray, threshold: float
) -> IntArray:
    """Merge groups of items in steps, and return the group of each item.

    At first each item is a group. Each step merges the two groups with the strongest evidence that
    the same students choose items of both. The steps end when no evidence exceeds `threshold`.

    Parameters
    ----------
    covariance, variance
        As in `Pairs`, but symmetric, shape (n, n).
    question
        The question of each item, shape (n,). No two items of a group share their question.
    threshold
        Two groups are merged only if their evidence, in standard deviations, exceeds this.

    Returns
    -------
    array of int32, shape (n,)
        The group of each item, numbered from 0; -1 for an item in no group.
    """
    n = len(question)
    # The number of each item's group. At first each item is a group. When the second of two groups
    # is merged into the first, the merged group keeps the number of the first.
    group = np.arange(n)
    # From here on, entry (i, j) belongs to the groups i and j: it is the sum over all pairs of an
    # item of group i and an item of group j.
    covariance = covariance.astype(np.float64)
    variance = variance.astype(np.float64)
    shares_question = question[:, None] == question
    evidence = _evidence(covariance, variance, shares_question)
    # The strongest partner of each group: the group with which it has the strongest evidence.
    best = evidence.argmax(axis=1)
    best_evidence = evidence[np.arange(n), best]
    is_gone = np.zeros(n, bool)
    while best_evidence.max() > threshold:
        first = int(best_evidence.argmax())
        second = int(best[first])
        # Merge the second group into the first.
        group[group == second] = first
        is_gone[second] = True
        for total in (covariance, variance):
            total[first] += total[second]
            total[:, first] = total[first]
        shares_question[first] |= shares_question[second]
        shares_question[:, first] = shares_question[first]
        is_excluded = shares_question[first] | is_gone
        evidence_of_merged = _evidence(covariance[first], variance[first], is_excluded)
        evidence[first] = evidence_of_merged
        evidence[:, first] = evidence_of_merged
        evidence[second] = -np.inf
        evidence[:, second] = -np.inf
        # Find the strongest partner anew for the groups whose partner was one of the two merged
        # groups, and for the groups with which the merged group has stronger evidence than their
        # partner.
        is_changed = (best == first) | (best == second) | (evidence_of_merged > best_evidence)
        is_changed[[first, second]] = True
        changed = np.flatnonzero(is_changed)
        best[changed] = evidence[changed].argmax(axis=1)
        best_evidence[changed] = evidence[changed, best[changed]]
    return _number_groups(group)


def _evidence(covariance: FloatArray, variance: FloatArray, is_excluded: Array) -> FloatArray:
    """Return the evidence that two groups belong together, in standard deviations.

    Where `is_excluded`, the evidence is −∞, so that the groups are not merged.
    """
    # If no item of one group was compared with an item of the other, covariance and variance are 0.
    evidence: FloatArray = covariance / np.sqrt(np.maximum(variance, 1e-9))
    evidence[is_excluded] = -np.inf
    return evidence


def _number_groups(group: IntArray) -> IntArray:
    """Return the group of each item, renumbered from 0; -1 for an item that is alone."""
    size = np.bincount(group, minlength=1)
    number = np.full(len(size), -1, np.int32)
    is_group = size >= 2
    number[is_group] = np.arange(is_group.sum(), dtype=np.int32)
    return number[group]


# ---- What groups tell about further answers ------------------------------------------------------


def predict_with_groups(
    known: WrongAnswers, asked: WrongAnswers, group: IntArray, spread: float = SPREAD
) -> FloatArray:
    """Return the probabilities of the options of wrong answers, from a student's other choices.

    A student has a tendency to each group: a number that is added to the logits of the group's
    options. The prior of a tendency is normal with mean 0 and variance `spread`. The estimate of a
    tendency is one step of Newton's method from 0 towards the posterior mode. It is the sum of the
    student's residuals in the group, divided by (sum of the variances of these residuals +
    1 / `spread`).

    Parameters
    ----------
    known, asked
        Answers that are known and answers that are to be predicted. Students and questions have
        the same numbers in both. If both are the same object, each answer is predicted from the
        student's other answers.
    group
        The group of each item; see `find_groups`.
    spread
        The variance of a student's tendency to a group.

    Returns
    -------
    array of float64, shape (n, n_options)
        Probabilities given that the answer is wrong. Rows sum to 1.
    """
    # A chance to choose an option of a group: a wrong answer, and an option of its question that is
    # in a group. The student may or may not have chosen this option.
    chances = _list_chances(known, group)
    # A cell is a number that stands for a student and a group. `cells` holds each cell of the
    # chances in `known` once, in increasing order. For each chance, `position` is the index of its
    # cell in `cells`.
    cells, position = np.unique(chances.cell, return_inverse=True)
    residual = np.bincount(position, chances.is_chosen - chances.p, len(cells))
    variance = np.bincount(position, chances.p * (1 - chances.p), len(cells))
    probability: FloatArray = asked.probability.astype(float)
    if len(cells) == 0:
        return probability
    if asked is not known:
        chances = _list_chances(asked, group)
        position = np.minimum(np.searchsorted(cells, chances.cell), len(cells) - 1)
    is_known = cells[position] == chances.cell
    known_residual = np.where(is_known, residual[position], 0)
    known_variance = np.where(is_known, variance[position], 0)
    if asked is known:
        known_residual -= chances.is_chosen - chances.p
        known_variance -= chances.p * (1 - chances.p)
    tendency = known_residual / (known_variance + 1 / spread)
    # An option is in one group at most, so each pair of answer and option occurs at most once in
    # `chances`. If a pair occurred twice, this line would apply only one of its two factors.
    probability[chances.answer, chances.option] *= np.exp(tendency)
    probability /= probability.sum(axis=1, keepdims=True)
    return probability


@dataclass(frozen=True)
class Chances:
    """The chances that students had, in their wrong answers, to choose an option of a group.

    A chance is a wrong answer together with an option of its question that is in a group, whether
    or not the student chose this option. Each array has the shape (n_chances,).
    """

    # The position of the answer in `WrongAnswers`.
    answer: IntArray
    # The option of the answer's question that is in a group, from 0.
    option: IntArray
    group: IntArray
    # One number for the pair of the student and the group: student · n_groups + group, int64.
    cell: IntArray
    # The probability of the option, float64.
    p: FloatArray
    # Whether the student chose the option.
    is_chosen: BoolArray


def _list_chances(wrong: WrongAnswers, group: IntArray) -> Chances:
    """List the chances that students had, in their wrong answers, to choose an option of a group.

    A chance is a wrong answer together with an option of its question that is in a group, whether
    or not the student chose this option. `group` holds the group of each option of each question,
    -1 for none, shape (n_questions · n_options,).
    """
    # A row for each question, a column for each of its options.
    group_by_question = group.reshape(-1, wrong.n_options)
    # A row for each wrong answer: the groups of the options of the answer's question.
    group_by_answer = group_by_question[wrong.question]
    # There is a chance for each wrong answer and each option of its question that is in a group.
    answer, option = np.nonzero(group_by_answer >= 0)
    group_of_chance = group_by_answer[answer, option]
    # `cell` is a number that stands for the student and the group of a chance. Callers sum over all
    # chances with the same cell: the chances of one student to choose an option of one group.
    cell = wrong.student[answer].astype(np.int64) * count_groups(group) + group_of_chance
    return Chances(
        answer=answer,
        option=option,
        group=group_of_chance,
        cell=cell,
        p=wrong.probability[answer, option].astype(float),
        is_chosen=wrong.option[answer] == option,
    )


def count_groups(group: IntArray) -> int:
    """Return the number of groups; see `find_groups` for `group`."""
    return int(group.max(initial=-1)) + 1


def log_loss(probability: FloatArray, option: IntArray) -> FloatArray:
    """Return the log loss of each answer, float64 (n,)."""
    p_chosen = probability[np.arange(len(option)), option].astype(float)
    loss: FloatArray = -np.log(np.maximum(p_chosen, 1e-9))
    return loss


# ---- How sure groups are -------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratio:
    """A ratio with its interval; NaN where there is nothing to divide by."""

    value: float
    # The bounds of the 95 % interval; NaN if the ratio rests on fewer than FEW_STUDENTS students.
    low: float
    high: float


def ratio_by_student(numerator: FloatArray, denominator: FloatArray) -> Ratio:
    """Return the ratio of two sums over students, with its 95 % interval.

    Both arrays have an element for each student. The interval is clustered by student: it treats
    students as independent, but not the answers of a student. It comes from the standard error of a
    linearised ratio of means (Cochran 1977, Sampling Techniques, section 2.11). If only a few
    students have a denominator other than 0, the error cannot be estimated, and the interval is
    NaN.
    """
    total = denominator.sum()
    if not total > 0:
        return Ratio(np.nan, np.nan, np.nan)
    ratio = numerator.sum() / total
    if np.count_nonzero(denominator) < FEW_STUDENTS:
        return Ratio(float(ratio), np.nan, np.nan)
    # How far each student's numerator is from the value that the ratio of all students predicts.
    residual = numerator - ratio * denominator
    error = np.sqrt((residual**2).sum()) / total
    return Ratio(float(ratio), float(ratio - Z_95 * error), float(ratio + Z_95 * error))


def gain_by_student(
    known: WrongAnswers, asked: WrongAnswers, group: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Measure for each student by how much the groups lower the log loss.

    `known` and `asked` are as in `predict_with_groups`. Returns two arrays of shape (n_students,),
    float64. The first is the decrease of the log loss, summed over the student's answers in
    `asked`. The second is the number of these answers.
    """
    before = log_loss(asked.probability, asked.option)
    after = log_loss(predict_with_groups(known, asked, group), asked.option)
    gain = np.bincount(asked.student, before - after, asked.n_students).astype(float)
    n_answers = np.bincount(asked.student, minlength=asked.n_students).astype(float)
    return gain, n_answers


def choose_groups(
    pairs: Pairs, choosing: WrongAnswers, thresholds: Sequence[float] = THRESHOLDS
) -> IntArray:
    """Find groups with each threshold, and return those that best predict other students' choices.

    `choosing` are wrong answers of students whose answers are not in `pairs`. The gain of a
    threshold is how much its groups lower the mean log loss of these answers. A threshold qualifies
    only if the 95 % interval of its gain lies above 0; otherwise groups that exist by chance would
    often be chosen. If no threshold qualifies, no item is in a group.
    """
    best_gain = 0.0
    best: IntArray = np.full(choosing.n_items, -1, np.int32)
    for threshold in thresholds:
        group = find_groups(pairs, threshold)
        # Predict each answer in `choosing` from the student's other answers in `choosing`.
        gain_sum, n_answers = gain_by_student(known=choosing, asked=choosing, group=group)
        gain = ratio_by_student(gain_sum, n_answers)
        if gain.low > 0 and gain.value > best_gain:
            best_gain = gain.value
            best = group
    return best


@dataclass(frozen=True)
class Choices:
    """How often students who chose an option of a group chose its options in other answers.

    Both matrices have the shape (n_students, n_groups).
    """

    # Number of pairs of the student's choices in which both choices are options of the group.
    n_pairs: sparse.csr_array
    # How many such pairs the item response model expects: it takes the first choice of each pair as
    # given, and predicts the second one.
    n_expected: sparse.csr_array


def pair_choices(known: WrongAnswers, asked: WrongAnswers, group: IntArray) -> Choices:
    """Count how often students who chose an option of a group chose other options of the group.

    The counts are pairs of choices: two choices of one student that are options of the same group.
    The first choice is in the wrong answers `known`, the second choice in the wrong answers
    `asked`. If `known` and `asked` are the same object, a choice makes no pair with itself. `group`
    is as in `find_groups`.

    For each student and group, the result holds the number of pairs, and the expected number of
    pairs. For the latter, the first choices are given, and an item response model predicts the
    second choices.
    """
    # A chance to choose an option of a group: a wrong answer, and an option of its question that is
    # in a group. The student may or may not have chosen this option.
    chances = _list_chances(known, group)
    # Each sum below is a sparse array with a row for each student and a column for each group. `*`
    # multiplies such arrays element by element.
    shape = (known.n_students, count_groups(group))
    # How many options of the group the student chose in `known`.
    n_first = _sum_by_student(chances, chances.is_chosen, known, shape)
    if asked is known:
        # A student who chose k options of a group has k · (k − 1) ordered pairs of choices.
        n_pairs = n_first * n_first - n_first
        # For each first choice, the expected number of second choices is a sum of probabilities: of
        # all options of the group in the student's wrong answers, except for the first choice
        # itself.
        sum_of_p = _sum_by_student(chances, chances.p, known, shape)
        sum_of_p_chosen = _sum_by_student(chances, chances.p * chances.is_chosen, known, shape)
        n_expected = n_first * sum_of_p - sum_of_p_chosen
        return Choices(n_pairs=n_pairs, n_expected=n_expected)
    # `known` and `asked` are different answers. Each choice in `known` makes a pair with each
    # choice in `asked` of the same student and group.
    asked_chances = _list_chances(asked, group)
    n_second = _sum_by_student(asked_chances, asked_chances.is_chosen, asked, shape)
    expected_second = _sum_by_student(asked_chances, asked_chances.p, asked, shape)
    return Choices(n_pairs=n_first * n_second, n_expected=n_first * expected_second)


def _sum_by_student(
    chances: Chances, values: Array, wrong: WrongAnswers, shape: tuple[int, int]
) -> sparse.csr_array:
    """Sum `values` for each student and group; the result has this `shape`.

    `values` has an element for each of the `chances`. A chance is one of the answers `wrong`
    together with an option of its question that is in a group.
    """
    positions = (wrong.student[chances.answer], chances.group)
    return sparse.csr_array((values.astype(float), positions), shape)


def measure_lift(wrong: WrongAnswers, group: IntArray) -> list[Ratio]:
    """Return the lift of each group: repeated choices, divided by the number that is expected.

    Some students who chose an option of the group got other questions of the group wrong too. The
    lift is how often they chose an option of the group in these questions, divided by how often an
    item response model expects it.
    """
    choices = pair_choices(wrong, wrong, group)
    n_pairs = choices.n_pairs.tocsc()
    n_expected = choices.n_expected.tocsc()
    return [
        ratio_by_student(n_pairs[:, [k]].toarray()[:, 0], n_expected[:, [k]].toarray()[:, 0])
        for k in range(count_groups(group))
    ]


def count_students(wrong: WrongAnswers, group: IntArray) -> IntArray:
    """Return how many students chose at least two options of each group."""
    n_groups = count_groups(group)
    chosen_group = group[wrong.question * wrong.n_options + wrong.option]
    rows = np.flatnonzero(chosen_group >= 0)
    # A cell is a number that stands for a student and a group: student · n_groups + group. The
    # group is the remainder modulo n_groups.
    cells = wrong.student[rows].astype(np.int64) * n_groups + chosen_group[rows]
    cells, n_chosen = np.unique(cells, return_counts=True)
    counts: IntArray = np.bincount(cells[n_chosen >= 2] % max(n_groups, 1), minlength=n_groups)
    return counts
