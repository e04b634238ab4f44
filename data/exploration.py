"""What can be counted in answers, and by subjects and students: arrays in, small tables out.

`data/explore.py` reads the arrays, `data/exploration_page.py` shows the tables. Students, questions
and subjects are numbered from 0 here; -1 stands for an unknown group or quiz.
"""

from dataclasses import dataclass

from common.io import IntArray

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# A share that rests on fewer answers is mostly chance.
FEW_ANSWERS = 20
# A distractor that is chosen in a smaller share of a question's answers attracts hardly anybody.
WEAK_SHARE = 0.05
N_TENTHS = 10
MOST_UNIT_BINS = 30
N_BINS = 24


@dataclass(frozen=True)
class Tally:
    """How many answers belong to each of some things, and how many of them are right.

    Attributes
    ----------
    n, n_right
        int64, of one shape.
    """

    n: IntArray
    n_right: IntArray

    @property
    def share(self) -> FloatArray:
        """Share of right answers; NaN where there are none."""
        share = np.full(self.n.shape, np.nan)
        np.divide(self.n_right, self.n, out=share, where=self.n > 0)
        return share


@dataclass(frozen=True)
class Histogram:
    """How many values lie between one edge and the next.

    Attributes
    ----------
    edges
        Shape (bins + 1,), increasing; a bin includes its lower edge.
    counts
        Shape (bins,).
    median
        Of the values.
    is_log
        Whether bins become wider, so that they are drawn on a logarithmic scale.
    """

    edges: FloatArray
    counts: IntArray
    median: float
    is_log: bool = False


@dataclass(frozen=True)
class Distractors:
    """How the wrong options of questions with enough answers compare.

    Attributes
    ----------
    n_questions
        How many questions these are.
    attraction
        Mean share of the wrong answers of a question that chose the most, the middle, the least
        attractive distractor, shape (3,); NaN if no answer is wrong.
    share
        Histogram of all distractors: of all answers to its question, the share that chose it.
    weak
        Share of distractors that are chosen in less than `WEAK_SHARE` of the answers.
    """

    n_questions: int
    attraction: FloatArray
    share: Histogram
    weak: float


@dataclass(frozen=True)
class Options:
    """Which options are chosen and which are right.

    Attributes
    ----------
    chosen, right
        Share of answers that chose each of the four options, and of answers for which it was the
        right one, shape (4,).
    found
        Of the answers for which it was the right one, the share that chose it, shape (4,); NaN
        where it never was.
    distractors
        None if no question has enough answers.
    """

    chosen: FloatArray
    right: FloatArray
    found: FloatArray
    distractors: Distractors | None


def tally(number: IntArray, is_correct: IntArray, n: int) -> Tally:
    """Count answers and right answers by a number from 0 to n - 1; negative ones do not count.

    Parameters
    ----------
    number, is_correct
        Shape (answers,).
    n
        How many things there are.
    """
    if number.min(initial=0) < 0:
        known = number >= 0
        number, is_correct = number[known], is_correct[known]
    return Tally(
        np.bincount(number, minlength=n), np.bincount(number[is_correct == 1], minlength=n)
    )


def count_histogram(values: IntArray) -> Histogram:
    """Return the histogram of whole numbers from 1: one bin each, or wider and wider bins."""
    low, high = int(values.min()), int(values.max()) + 1
    is_log = high - low > MOST_UNIT_BINS
    if is_log:
        # Each at least as wide as the one before: bins of one and of two numbers in turn would draw
        # teeth where there are none.
        growth = (high / low) ** (1 / N_BINS) - 1
        places, width = [low], 1
        while places[-1] < high:
            width = max(width, round(places[-1] * growth))
            places.append(places[-1] + width)
        edges = np.array(places, np.float64)
    else:
        edges = np.arange(low, high + 1, dtype=np.float64)
    counts, _ = np.histogram(values, edges)
    return Histogram(edges, counts, float(np.median(values)), is_log)


def share_histogram(shares: FloatArray, n_bins: int = 20, high: float = 1.0) -> Histogram:
    """Return the histogram of shares in equal bins from 0 to `high`; larger ones in the last."""
    edges = np.linspace(0, high, n_bins + 1)
    # Shares such as 0.15 belong to the bin that starts there, whatever their last binary digit.
    place = np.clip(np.floor(shares / high * n_bins + 1e-9), 0, n_bins - 1).astype(np.int64)
    return Histogram(edges, np.bincount(place, minlength=n_bins), float(np.median(shares)))


def tenths(n_answers: IntArray) -> npt.NDArray[np.int8]:
    """Give each student (or question) its tenth by number of answers: 0 has the most."""
    rank = np.empty(len(n_answers), np.int64)
    rank[np.argsort(-n_answers, kind="stable")] = np.arange(len(n_answers))
    return (rank * N_TENTHS // len(n_answers)).astype(np.int8)


def filled(
    student: IntArray, question: IntArray, n_of_student: IntArray, n_of_question: IntArray
) -> FloatArray:
    """Return which share of the pairs of students and questions is answered, by tenths of both.

    Parameters
    ----------
    student, question
        Numbers of the student and of the question of every answer.
    n_of_student, n_of_question
        How many answers each student and each question has.

    Returns
    -------
    array of float, shape (10, 10)
        Rows: tenths of the students, those with most answers first; columns: of the questions.
        NaN where there are no pairs.
    """
    of_student, of_question = tenths(n_of_student), tenths(n_of_question)
    cell = of_student[student] * np.int8(N_TENTHS) + of_question[question]
    n = np.bincount(cell, minlength=N_TENTHS**2).reshape(N_TENTHS, N_TENTHS)
    n_pairs = np.outer(
        np.bincount(of_student, minlength=N_TENTHS), np.bincount(of_question, minlength=N_TENTHS)
    )
    share = np.full(n.shape, np.nan)
    np.divide(n, n_pairs, out=share, where=n_pairs > 0)
    return share


def count_options(
    question: IntArray, option: IntArray, correct_option: IntArray, n_questions: int
) -> Options:
    """Count chosen and right options, and compare the distractors of each question.

    Parameters
    ----------
    question
        Number of the question of every answer.
    option, correct_option
        Chosen and right option of every answer, 1 to 4.
    n_questions
        How many questions there are.
    """
    cell = question * 16 + (correct_option.astype(np.int32) - 1) * 4 + (option - 1)
    # By question, right option and chosen option.
    counts = np.bincount(cell, minlength=16 * n_questions).reshape(n_questions, 4, 4)
    total = counts.sum(axis=0)
    n_right, found = total.sum(axis=1), np.full(4, np.nan)
    np.divide(np.diag(total), n_right, out=found, where=n_right > 0)
    n = total.sum()
    return Options(total.sum(axis=0) / n, n_right / n, found, _compare_distractors(counts))


def _compare_distractors(counts: IntArray) -> Distractors | None:
    """Compare wrong options; counts by question, right option and chosen option."""
    # A few questions have had their key changed: their distractors are those of the usual key.
    key = counts.sum(axis=2).argmax(axis=1)
    own = counts[np.arange(len(counts)), key]
    enough = own.sum(axis=1) >= FEW_ANSWERS
    if not enough.any():
        return None
    own, key = own[enough], key[enough]
    wrong = own[np.arange(4) != key[:, None]].reshape(-1, 3)
    wrong = -np.sort(-wrong, axis=1)
    is_wrong = wrong.any(axis=1)
    attraction = wrong[is_wrong] / wrong[is_wrong].sum(axis=1, keepdims=True)
    shares = wrong / own.sum(axis=1, keepdims=True)
    return Distractors(
        n_questions=len(own),
        attraction=attraction.mean(axis=0) if is_wrong.any() else np.full(3, np.nan),
        share=share_histogram(shares.ravel()),
        weak=float((shares < WEAK_SHARE).mean()),
    )


def spread(
    of_question: Tally, start: IntArray, subject: IntArray, n: int
) -> tuple[IntArray, Tally]:
    """Sum the answers to questions over their subjects.

    Parameters
    ----------
    of_question
        Answers to each question.
    start, subject
        Question i has the subjects ``subject[start[i] : start[i + 1]]``.
    n
        Number of subjects.

    Returns
    -------
    n_questions : array of int, shape (n,)
        Questions about each subject.
    answers : Tally
        Answers to these.
    """
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    # Sums of doubles are exact up to 9e15.
    sums = [
        np.bincount(subject, weights, minlength=n).astype(np.int64)
        for weights in (of_question.n[row], of_question.n_right[row])
    ]
    return np.bincount(subject, minlength=n), Tally(*sums)


def main_subjects(
    start: IntArray, subject: IntArray, level: IntArray
) -> tuple[IntArray, npt.NDArray[np.int64]]:
    """Find the first subject of each question that is one level below the root.

    Parameters
    ----------
    start, subject
        As for `spread`.
    level
        Level of each subject, 0 for a root.

    Returns
    -------
    places : array of int
        The subjects found, increasing.
    kind : array of int, shape (questions,)
        Place of each question's in `places`; -1 for a question without one.
    """
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    is_main = level[subject] == 1
    found = np.full(len(start) - 1, -1)
    # Backwards, so that the first one of a question stays.
    found[row[is_main][::-1]] = subject[is_main][::-1]
    places = np.unique(found[found >= 0])
    return places, np.where(found < 0, -1, np.searchsorted(places, found))


def sum_by(kind: IntArray, of_student: Tally, n: int) -> tuple[IntArray, Tally]:
    """Sum the answers of students by their kind, 0 to n - 1, negative where unknown.

    Returns
    -------
    n_students : array of int, shape (n,)
        Students of each kind.
    answers : Tally
        Their answers.
    """
    known = kind >= 0
    sums = [
        np.bincount(kind[known], values[known], minlength=n).astype(np.int64)
        for values in (of_student.n, of_student.n_right)
    ]
    return np.bincount(kind[known], minlength=n), Tally(*sums)
