"""Which questions were asked in the games of task 4: as a file, and as lines to print."""

from collections.abc import Iterator, Mapping

from common.adaptive.game import Reference
from common.answers import IntArray

import numpy as np
import numpy.typing as npt

_OUTCOMES = ("wrong", "right")


def as_columns(
    reference: Reference, chosen: Mapping[str, IntArray]
) -> dict[str, npt.NDArray[np.generic]]:
    """Return every selection as a row of a table.

    Parameters
    ----------
    reference
        The students and their answers.
    chosen
        For each mask the QuestionIds in the order asked, shape (students, rounds).

    Returns
    -------
    dict
        Columns Mask, UserId, Round (from 1), QuestionId and IsCorrect, ordered by the first three.
    """
    n_students, n_rounds = next(iter(chosen.values())).shape
    student = np.repeat(np.arange(n_students), n_rounds)
    questions = [questions.ravel() for questions in chosen.values()]
    return {
        "Mask": np.repeat(list(chosen), len(student)),
        "UserId": np.tile(reference.student[student], len(chosen)),
        "Round": np.tile(np.arange(1, n_rounds + 1), n_students * len(chosen)),
        "QuestionId": np.concatenate(questions),
        "IsCorrect": np.concatenate([reference.is_correct[student, q] for q in questions]),
    }


def as_lines(
    reference: Reference, chosen: Mapping[str, IntArray], n_students: int
) -> Iterator[str]:
    """Return a line for each of the first students and each mask, student by student."""
    for row, student in enumerate(reference.student[:n_students]):
        for mask, questions in chosen.items():
            asked = (f"{q} {_OUTCOMES[reference.is_correct[row, q]]}" for q in questions[row])
            yield f"UserId {student}, {mask}: {', '.join(asked)}"
