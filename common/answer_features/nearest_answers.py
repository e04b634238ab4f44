"""Summarise a student's known answers to the questions that are most similar to a question."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from common.answer_features.known import Known
from common.answer_features.pairs import Pairs
from common.arrays import FloatArray, IntArray
from common.item_response.observations import sort_answers
from common.threads import N_THREADS, run_in_threads

import numpy as np

# A row asks for a student's answer to a question. Its nearest answers are the student's known
# answers to the questions that are most similar to this question. At most this many are used.
_N_NEAREST = 32
# For this many of the nearest answers, the option that the student chose becomes a feature.
_N_OPTIONS_SHOWN = 4
# A mean over the nearest answers gives each answer the weight similarity**power. The keys of this
# dict are the powers. Each mean is shrunk towards 0: it is the weighted sum divided by the sum of
# the weights plus a prior weight, which is the value in this dict. Powers and prior weights were
# chosen on training answers (tests/benchmarks/README.md).
PRIOR_WEIGHT_BY_POWER = {2: 2.0, 6: 1.0, 15: 0.5}
# Each thread looks answers up in a table with a row for each student of a group and a column for
# each question. A table has at most this many elements.
_MAX_CELLS = 16_000_000


@dataclass(frozen=True)
class NearestAnswers:
    """A summary of the student's nearest known answers for each row asked, all float32.

    The keys of the dicts are the powers in `PRIOR_WEIGHT_BY_POWER`. Means over the nearest answers
    weight each answer by this power of its similarity, and are shrunk towards 0.
    """

    # For each power, the weighted mean of `Known.residual` over the nearest answers, shape (rows,).
    residual: dict[int, FloatArray]
    # For each power, the sum of the weights (similarity**power) of the nearest answers, shape
    # (rows,).
    weight: dict[int, FloatArray]
    # For each power, how much more often than usual the student chose certain positions in the
    # nearest answers, shape (rows, options). If the right option of the question asked is its third
    # one, the first column is about the third position. The second column is about the position of
    # its most popular wrong option, and so on. There are no columns if the training answers have no
    # options.
    habit: dict[int, FloatArray]
    # A column for each of the `_N_OPTIONS_SHOWN` nearest answers. If the student chose the third
    # option in the nearest answer, the column holds the rank of the third option of the question
    # asked: 0 for the right option, 1 for the most popular wrong one, and so on. NaN if there is no
    # such answer. Shape (rows, answers). There are no columns if the training answers have no
    # options.
    outcome: FloatArray


def summarise_nearest(pairs: Pairs, known: Known, rows: IntArray) -> NearestAnswers:
    """For some rows of `pairs`, summarise the student's known answers to similar questions.

    The nearest answers of a row are the student's answers to the questions that are most similar to
    the row's question.
    """
    asked_student = pairs.numbers["student"][rows]
    asked_question = pairs.numbers["question"][rows]
    n_rows = len(rows)
    n_options = known.n_options if known.has_options else 0
    n_shown = _N_OPTIONS_SHOWN if known.has_options else 0
    # The powers of the similarities that serve as weights of the nearest answers.
    powers = PRIOR_WEIGHT_BY_POWER
    summary = NearestAnswers(
        residual={power: np.zeros(n_rows, np.float32) for power in powers},
        weight={power: np.zeros(n_rows, np.float32) for power in powers},
        habit={power: np.zeros((n_rows, n_options), np.float32) for power in powers},
        outcome=np.full((n_rows, n_shown), np.nan, np.float32),
    )

    def summarise_block(block: IntArray, nearest: IntArray, similarity: FloatArray) -> None:
        """Fill some rows of `summary`.

        Parameters
        ----------
        block
            The rows of `summary` to fill, shape (rows of the block,).
        nearest
            The position in `known` of each nearest answer, the most similar first, shape (rows of
            the block, nearest). -1 where a row has no more answers.
        similarity
            The similarity of each nearest answer, of the same shape. 0 where there is no answer.
        """
        weight_by_power = {power: similarity**power for power in powers}
        # Where `nearest` is -1, there is no answer, and the residual counts as 0. The index -1
        # would read the residual of an unrelated answer, the last one.
        residual = np.where(nearest >= 0, known.residual[nearest], 0)
        for power, weight in weight_by_power.items():
            summary.weight[power][block] = weight.sum(axis=1)
            # The weighted mean of the residuals, shrunk towards 0.
            weighted_sum = (weight * residual).sum(axis=1)
            summary.residual[power][block] = weighted_sum / _divisor_of_shrunk_mean(weight, power)
        if known.has_options:
            # For each row, the ranks of the options of the question asked, in the order in which
            # the question shows them: 0 for the right option, 1 for the most popular wrong one, and
            # so on.
            rank_of_position = known.outcome_of_option[asked_question[block]]
            summary.outcome[block] = _ranks_chosen(known, nearest, rank_of_position)
            # A habit says how much more often than usual the student chose a position.
            habits = _find_habits(known, nearest, weight_by_power, rank_of_position)
            for power, habit in habits.items():
                summary.habit[power][block] = habit

    visit_nearest(
        (known.student, known.question),
        (asked_student, asked_question),
        pairs.n_students,
        pairs.neighbours,
        pairs.similarity,
        _N_NEAREST,
        summarise_block,
    )
    return summary


def _find_habits(
    known: Known,
    nearest: IntArray,
    weight_by_power: Mapping[int, FloatArray],
    rank_of_position: IntArray,
) -> dict[int, FloatArray]:
    """Return how much more often than usual the student chose each position in similar questions.

    Position 0 is the first option that a question shows. In one answer, the excess of a position is
    1 if the student chose it, else 0, minus the share of the position among all known answers to
    the same question. The habit of a position is the weighted mean of its excess over the nearest
    answers, shrunk towards 0. The columns of the result are in the order of ranks: first the habit
    of the position at which the question asked shows its right option, then that of the position
    of its most popular wrong option, and so on.

    Parameters
    ----------
    known
        The known answers.
    nearest
        Indices of the nearest answers in `known`, -1 where there is none, shape (rows, nearest).
    weight_by_power
        For each power in `PRIOR_WEIGHT_BY_POWER`, the weights of the nearest answers: their
        similarities raised to this power, and 0 where there is no answer. Shape (rows, nearest).
    rank_of_position
        The rank of the option at each position of the question asked: 0 for the right option, 1 for
        the most popular wrong one, and so on. Shape (rows, options).

    Returns
    -------
    dict
        For each power, the habits, in the order of ranks, shape (rows, options).
    """
    # Shape (rows, nearest, options): the excess of each position in each nearest answer.
    excess = _excess_over_share(known, nearest)
    # A row of `rank_of_position` is a permutation of the ranks, so `argsort` inverts it. The result
    # holds the position of the right option, then the position of the most popular wrong option,
    # and so on.
    position_of_rank = np.argsort(rank_of_position, axis=1)
    habit_by_power: dict[int, FloatArray] = {}
    for power, weight in weight_by_power.items():
        # For each row and position, sum weight · excess over the nearest answers. For one row, this
        # is the product of a matrix (1, nearest) and a matrix (nearest, options).
        weighted_excess = (weight[:, None, :] @ excess)[:, 0, :]
        habit = weighted_excess / _divisor_of_shrunk_mean(weight, power)[:, None]
        # So far, the columns of `habit` are in the order of positions. Put them into the order of
        # ranks.
        habit_by_power[power] = np.take_along_axis(habit, position_of_rank, axis=1)
    return habit_by_power


def _ranks_chosen(known: Known, nearest: IntArray, rank_of_position: IntArray) -> FloatArray:
    """Return the rank of the asked question's option at the position chosen in each nearest answer.

    If the student chose the third option in a nearest answer, the result is the rank of the third
    option of the question asked: 0 for the right option, 1 for the most popular wrong one, and so
    on.

    Parameters
    ----------
    known
        The known answers.
    nearest
        Indices of the nearest answers in `known`, -1 where there is none, shape (rows, nearest).
        Only the first `_N_OPTIONS_SHOWN` of each row are used.
    rank_of_position
        The rank of the option at each position of the question asked, shape (rows, options).

    Returns
    -------
    array of float32, shape (rows, `_N_OPTIONS_SHOWN`)
        NaN where there is no answer.
    """
    shown = nearest[:, :_N_OPTIONS_SHOWN]
    position_chosen = known.option[shown] - 1
    rank = np.take_along_axis(rank_of_position, position_chosen, axis=1)
    ranks: FloatArray = np.full((len(nearest), _N_OPTIONS_SHOWN), np.nan, np.float32)
    ranks[:, : shown.shape[1]] = np.where(shown >= 0, rank, np.nan)
    return ranks


def _divisor_of_shrunk_mean(weight: FloatArray, power: int) -> FloatArray:
    """Return the number by which the weighted sum of each row is divided to get a shrunk mean.

    This is the sum of the row's weights plus a prior weight. This shrinks the mean towards 0, as if
    there were one more answer, with the value 0 and the prior weight. The weights are similarities
    raised to `power`, for which `PRIOR_WEIGHT_BY_POWER` gives the prior weight.
    """
    total: FloatArray = weight.sum(axis=1) + PRIOR_WEIGHT_BY_POWER[power]
    return total


def _excess_over_share(known: Known, answer: IntArray) -> FloatArray:
    """Compare the option chosen in each answer with the options that all students chose.

    For each answer and each option of its question, the result is 1 if the student chose this
    option, else 0, minus the share of this option among all known answers to the question.

    `answer` holds positions in `known`, shape (rows, answers). The result has shape (rows, answers,
    options), and is 0 where `answer` is -1.
    """
    is_chosen = known.option[answer][:, :, None] == np.arange(1, known.n_options + 1)
    excess = is_chosen - known.option_share[known.question[answer]]
    return np.where((answer >= 0)[:, :, None], excess, 0)


def visit_nearest(
    known_pairs: tuple[IntArray, IntArray],
    asked_pairs: tuple[IntArray, IntArray],
    n_students: int,
    neighbours: IntArray,
    similarity: FloatArray,
    n_nearest: int,
    visit: Callable[[IntArray, IntArray, FloatArray], None],
) -> None:
    """Call `visit` with the nearest known answers for each pair that is asked, block by block.

    The nearest answers of a pair are the answers of the same student to the questions that are most
    similar to the pair's question.

    Parameters
    ----------
    known_pairs
        Student and question of each known answer, as numbers from 0.
    asked_pairs
        Student and question of each pair that is asked.
    n_students
        The number of students.
    neighbours, similarity
        From `similar_questions`.
    n_nearest
        The largest number of answers for each pair.
    visit
        Called in threads, in any order, with three arrays for a block of pairs. The first holds
        their positions in `asked_pairs`, int, shape (pairs,). The second holds the positions in
        `known_pairs` of the nearest answers, int32, shape (pairs, nearest): the most similar first,
        then -1 where there are no more. The third holds the similarities, float32, of the same
        shape, 0 where there is no answer.
    """
    # This function is longer than others, because the inner function uses nearly all its arrays.
    known_student, known_question = known_pairs
    asked_student, asked_question = asked_pairs
    n_questions, n_neighbours = neighbours.shape
    # The positions of the known answers, sorted by student. The answers of student s begin at
    # element `start_of_student[s]`.
    known_by_student, start_of_student, _ = sort_answers(known_student, [], n_students)
    # The positions of the asked pairs, sorted by the student of the pair. Then the students, in the
    # same order.
    asked_by_student = np.argsort(asked_student, kind="stable")
    sorted_asked_student = asked_student[asked_by_student]
    # Each thread looks answers up in a table with a row for each of `n_table_students` students and
    # a column for each question. It looks them up for one block of asked pairs after another. A
    # block of `n_block_rows` pairs takes several arrays of shape (pairs, neighbours). To bound
    # their memory, each of these arrays has at most an eighth of `_MAX_CELLS` elements.
    n_table_students = max(1, min(_MAX_CELLS // n_questions, math.ceil(n_students / N_THREADS)))
    n_block_rows = max(1, _MAX_CELLS // (8 * max(n_neighbours, 1)))

    def visit_students(first_students: IntArray) -> None:
        """Call `visit` for the asked pairs of some students.

        The students are taken in groups of `n_table_students`, and `first_students` holds the first
        student of each group. A table of the group's known answers shows which neighbours of an
        asked question a student has answered.
        """
        # A row for each student of the group, a column for each question: the position in
        # `known_pairs` of the student's answer, or -1 without an answer.
        answer_table = np.full((n_table_students, n_questions), -1, np.int32)
        for first_student in first_students.tolist():
            # The group consists of the students `first_student` to `end_student` - 1.
            end_student = min(first_student + n_table_students, n_students)
            # `answers` holds the positions in `known_pairs` of these students' known answers. Enter
            # the positions into the table.
            first_answer = start_of_student[first_student]
            end_answer = start_of_student[end_student]
            answers = known_by_student[first_answer:end_answer]
            table_row_of_answer = known_student[answers] - first_student
            cells = table_row_of_answer, known_question[answers]
            answer_table[cells] = answers
            # `asked_by_student` is sorted by student, so the asked pairs of this group of students
            # follow each other there. Find these pairs, and visit them in blocks.
            first_asked, end_asked = np.searchsorted(
                sorted_asked_student, [first_student, end_student]
            )
            asked_of_group = asked_by_student[first_asked:end_asked]
            for begin in range(0, len(asked_of_group), n_block_rows):
                block = asked_of_group[begin : begin + n_block_rows]
                question = asked_question[block]
                table_row = asked_student[block] - first_student
                # For each pair, the positions of the student's answers to the neighbours of the
                # question, the most similar question first, -1 where the student has not answered
                # it. Shape (pairs of the block, neighbours).
                candidates = answer_table[table_row[:, None], neighbours[question]]
                nearest, nearness = _take_nearest(candidates, similarity[question], n_nearest)
                visit(block, nearest, nearness)
            # Clear the table for the next group.
            answer_table[cells] = -1

    first_of_table = np.arange(0, n_students, n_table_students)
    run_in_threads(visit_students, np.array_split(first_of_table, N_THREADS))


def _take_nearest(
    candidates: IntArray, similarity: FloatArray, n_nearest: int
) -> tuple[IntArray, FloatArray]:
    """Return the first `n_nearest` candidates of each row that are not -1, and their similarities.

    If a row has fewer such candidates, it is filled up with -1 and the similarity 0. The shapes are
    (rows, `n_nearest`), or (rows, candidates) if that is less.
    """
    # A stable sort by "is missing" moves the missing candidates (-1) to the end, and keeps the
    # order of the others.
    order = np.argsort(candidates < 0, axis=1, kind="stable")[:, :n_nearest]
    nearest = np.take_along_axis(candidates, order, 1)
    nearness = np.take_along_axis(similarity, order, 1)
    return nearest, np.where(nearest >= 0, nearness, np.float32(0))
